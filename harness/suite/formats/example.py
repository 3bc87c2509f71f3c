"""What every format of cases without a corpus comes to: inputs and gold, each with its place."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from harness.errors import Misconfigured
from harness.file.lines import JsonObject, Place, checked_id, refuse, shown
from harness.suite.case import Gold, Inputs
from harness.suite.definition import Source

CaseTask: TypeAlias = Literal[
    "classification", "multilabel", "regression", "similarity", "entity", "answer", "multiple-choice"
]

INPUTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "classification": (("text",), ("text_a", "text_b")),
    "multilabel": (("text",), ("text_a", "text_b")),
    "regression": (("text",), ("text_a", "text_b")),
    "similarity": (("text_a", "text_b"),),
    "entity": (("tokens",),),
    "answer": (("question", "context"),),
    "multiple-choice": (("question", "choices"), ("question", "context", "choices")),
}
"""The inputs that a task's cases may have: one of these sets, whole."""

GOLD: dict[str, str] = {
    "classification": "label",
    "multilabel": "labels",
    "regression": "value",
    "similarity": "value",
    "entity": "tags",
    "answer": "answers",
    "multiple-choice": "label",
}
"""The key under which a task's gold stands."""


@dataclass(frozen=True, slots=True)
class ExampleFiles:
    """The files of the cases, in the order in which they are read. A format that reads a folder as a whole has it, and
    the splits that `[cases] role` names.
    """

    paths: tuple[Path, ...]
    folder: Path | None = None
    splits: tuple[str, ...] = ()

    @property
    def all(self) -> tuple[Path, ...]:
        return self.paths


@dataclass(frozen=True, slots=True)
class ExampleRow:
    """A case as it was read. `gold` is None where the data don't speak of it, and without anything in it where they say
    that nobody knows. `further` are its keys beyond the format's own.
    """

    id: str
    inputs: Inputs
    gold: Gold | None
    further: JsonObject
    place: Place

    @property
    def case_id(self) -> str:
        return self.id

    @property
    def text(self) -> str:
        """The inputs as one reads them."""
        if "tokens" in self.inputs:
            return " ".join(self.inputs["tokens"])
        texts = [self.inputs[name] for name in ("text", "text_a", "text_b", "question") if name in self.inputs]
        return "\n".join(str(each) for each in texts)


@dataclass(frozen=True, slots=True)
class Examples:
    """Everything a format's files say, in file order. `labels`: every label that the data may give, in their order;
    None where the format does not say. `revision`: of the data, where their format pins one.
    """

    rows: tuple[ExampleRow, ...]
    labels: tuple[str, ...] | None = None
    revision: str | None = None


def locate(base: Path, source: Source, mapped: Sequence[str]) -> ExampleFiles:
    """The file `base`, or the files below it that `[cases] role` names. Raises Misconfigured where none is named."""
    if mapped:
        return ExampleFiles(tuple(base / name for name in mapped))
    if base.is_dir():
        raise Misconfigured(
            str(base), found="a folder", expected="the file of the cases",
            mend="Name the file in `path` of `source`, or several with a role each under [cases] role.",
        )  # fmt: skip
    return ExampleFiles((base,))


def unique(rows: Iterator[ExampleRow]) -> Iterator[ExampleRow]:
    """Rows as they come. Raises Misconfigured for an ID that is blank or stands twice, also in two files."""
    seen: dict[str, Place] = {}
    for row in rows:
        checked_id(row.id, row.place)
        first = seen.setdefault(row.id, row.place)
        if first is not row.place:
            refuse(
                row.place, f"case ID {shown(row.id)} appears twice (first at {first})", "case IDs that are unique",
                "Give each case its own ID.",
            )  # fmt: skip
        yield row
