"""Cases as JSON Lines: `id`, the inputs, the gold of the task, and any further keys as attributes."""

from collections.abc import Iterator, Sequence
from typing import cast

from harness.file.lines import Entry, JsonValue, read_objects, refuse, shown, text_of
from harness.metric.form import LARGEST
from harness.suite.case import Gold, GoldAnswer, Inputs
from harness.suite.definition import Columns, Source
from harness.suite.formats.example import (
    GOLD,
    INPUTS,
    CaseTask,
    ExampleFiles,
    ExampleRow,
    Examples,
    unique,
)
from harness.suite.formats.example import locate as locate

LISTS = ("tokens", "choices")


def read(files: ExampleFiles, source: Source, task: CaseTask) -> Examples:
    """Every case of the files. Raises Misconfigured with file and line for whatever isn't as the format says."""
    return Examples(tuple(unique(_rows(files, source.columns, task))))


def _rows(files: ExampleFiles, columns: Columns, task: CaseTask) -> Iterator[ExampleRow]:
    renamed = {str(key): name for name, key in columns.model_dump(exclude_none=True).items()}
    for path in files.paths:
        for entry in read_objects(path):
            for key, name in renamed.items():
                if key != name and name not in renamed and {key, name} <= entry.keys.keys():
                    refuse(
                        entry.place, f"both `{key}`, which `columns` call {name}, and `{name}`", f"one {name} a case",
                        "Rename or remove one of the two.",
                    )  # fmt: skip
            yield case_of(Entry(entry.place, {renamed.get(key, key): value for key, value in entry.keys.items()}), task)


def case_of(entry: Entry, task: CaseTask) -> ExampleRow:
    """A case from the keys of one object. Raises Misconfigured for an input or a gold that isn't what its task has."""
    inputs = inputs_of(entry, task)
    key = GOLD[task]
    gold = gold_of(entry, task, inputs) if key in entry.keys else None
    own = {"id", key, *inputs}
    further = {name: value for name, value in entry.keys.items() if name not in own}
    return ExampleRow(text_of(entry, "id"), inputs, gold, further, entry.place)


def inputs_of(entry: Entry, task: CaseTask) -> Inputs:
    """The inputs of a case, by name."""
    sets = INPUTS[task]
    # The largest that is there whole: `context` belongs to a question that has one.
    found = max((names for names in sets if all(name in entry.keys for name in names)), key=len, default=None)
    if found is None:
        wanted = " or ".join(" and ".join(f"`{name}`" for name in names) for names in sets)
        refuse(
            entry.place, f"the keys {', '.join(sorted(entry.keys))}", f"{wanted}, which a case of {task} has",
            "Add what is lacking, or say under `columns` of `source` which key holds it.",
        )  # fmt: skip
    inputs = {name: _texts(entry, name) if name in LISTS else text_of(entry, name) for name in found}
    if not inputs.get("choices", True):
        refuse(entry.place, "no choice", "at least one", "Add the choices, or take the case out.")
    return inputs


def gold_of(entry: Entry, task: CaseTask, inputs: Inputs) -> Gold:
    """What holds of a case; nothing in it where the key is null."""
    key = GOLD[task]
    value = entry.keys[key]
    if value is None:
        return Gold()
    match task:
        case "classification":
            return Gold(label=_named(entry, (text_of(entry, key),))[0])
        case "multilabel":
            labels = _named(entry, _texts(entry, key))
            if len(set(labels)) < len(labels):
                refuse(entry.place, f"`labels` {list(labels)}", "each label once", "Take the repeated one out.")
            return Gold(labels=labels)
        case "regression" | "similarity":
            return Gold(value=number_of(entry, key))
        case "entity":
            tags = _texts(entry, key)
            if len(tags) != len(inputs["tokens"]):
                refuse(
                    entry.place, f"{len(tags)} tags for {len(inputs['tokens'])} tokens", "one tag a token",
                    "Correct that line.",
                )  # fmt: skip
            return Gold(tags=tags)
        case "answer":
            return Gold(answers=_answers(entry, str(inputs["context"])))
        case "multiple-choice":
            return Gold(choice=_choice(entry, value, inputs["choices"]))


def number_of(entry: Entry, key: str) -> float:
    """A key that must be a finite number."""
    value = entry.keys[key]
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(
            entry.place, f"`{key}` is {shown(str(value))}", "a number, without quotes", f"Write `{key}` as a number."
        )
    if abs(value) > LARGEST:
        refuse(entry.place, f"`{key}` is beyond {LARGEST:g}", "a number", f"Write `{key}` as a smaller number.")
    return float(value)


def _texts(entry: Entry, key: str) -> tuple[str, ...]:
    value = entry.keys[key]
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        refuse(entry.place, f"`{key}` is no list of texts", "a list of texts", f'Write "{key}": ["…", "…"].')
    return tuple(cast(list[str], value))


def _named(entry: Entry, labels: tuple[str, ...]) -> tuple[str, ...]:
    """Labels that a reader can tell."""
    if not all(label.strip() for label in labels):
        refuse(entry.place, "a blank label", "labels by name, null where nobody knows one", "Write it out.")
    return labels


def _answers(entry: Entry, context: str) -> tuple[GoldAnswer, ...]:
    """A list of texts, or of objects with `text` and perhaps `start`, the first character in the context."""
    value = entry.keys["answers"]
    if not isinstance(value, list):
        refuse(entry.place, "`answers` is no list", "a list; an empty one has no answer", 'Write "answers": ["…"].')
    return tuple(_answer(entry, each, context) for each in value)


def _answer(entry: Entry, value: JsonValue, context: str) -> GoldAnswer:
    if isinstance(value, str):
        return placed(GoldAnswer(value), context, entry)
    held = value if isinstance(value, dict) else {}
    text, start = held.get("text"), held.get("start")
    if (
        not isinstance(text, str)
        or held.keys() - {"text", "start"}
        or isinstance(start, bool)
        or not isinstance(start, int | None)
    ):
        refuse(
            entry.place, f"an answer {shown(str(value))}", "a text, or an object with `text` and `start`",
            'Write {"text": "…", "start": 17}.',
        )  # fmt: skip
    return placed(GoldAnswer(text, start), context, entry)


def placed(answer: GoldAnswer, context: str, entry: Entry) -> GoldAnswer:
    """An answer that stands where it is said to. Raises Misconfigured where the context has something else there, and
    for one without text.
    """
    if not answer.text.strip():
        refuse(
            entry.place, f"a gold answer without text, {shown(answer.text)}",
            "texts; a question without an answer has none at all", "Take it out of the answers.",
        )  # fmt: skip
    at = answer.start
    if at is not None and (at < 0 or context[at : at + len(answer.text)] != answer.text):
        refuse(
            entry.place, f"the answer {shown(answer.text)} is said to begin at character {at}, where the context has "
            f"{shown(context[max(at, 0) : max(at, 0) + len(answer.text)])}",
            "answers that stand where they are said to", "Correct `start`: it counts characters, from 0.",
        )  # fmt: skip
    return answer


def _choice(entry: Entry, value: JsonValue, choices: str | Sequence[str]) -> int:
    """A choice by its number from 0, or by its text."""
    named = [i for i, each in enumerate(choices) if (i if type(value) is int else each) == value]
    if len(named) != 1:
        refuse(
            entry.place, f"`label` is {shown(str(value))}",
            f"a number from 0 to {len(choices) - 1}, or the text of one choice", "Count the choices from 0.",
        )  # fmt: skip
    return named[0]
