"""Recorded outputs of tasks without a corpus, read from JSON Lines and put under the suite's own case IDs."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from harness.errors import Misconfigured
from harness.file.lines import Entry, JsonValue, Place, read_objects, refuse, shown, text_of
from harness.output.case import CaseOutput, OutputStatus
from harness.output.task import Number, Scores, Span, Tags, TaskOutput
from harness.release.definition import Recorded
from harness.release.open import Release
from harness.run.output import Executed, Remark
from harness.run.replay_conll import read_conll_tags
from harness.run.replay_squad import read_squad_predictions
from harness.suite.case import Case, Suite
from harness.suite.formats.conll import ColumnFile

BY_KEY = {"logits": ("logit",), "probabilities": ("probability",), "tags": ("tags",)}
"""The score types under which a key may stand; any may be beside the others."""

FARTHEST = 2**63 - 1
"""The last character that the store can name."""

NOT_FINITE = "its output holds a number that is not finite"

KEYS: Mapping[str, tuple[str, ...]] = {
    "classification": ("logits", "probabilities"),
    "multilabel": ("logits", "probabilities"),
    "multiple-choice": ("logits", "probabilities"),
    "regression": ("value",),
    "similarity": ("value",),
    "entity": ("tags",),
    "answer": ("answer",),
}
"""The keys that an output of a task stands under: one of them."""


@dataclass(frozen=True, slots=True)
class Read:
    """One line's output, and where it stands."""

    output: TaskOutput
    place: Place


def replay_cases(release: Release, suite: Suite) -> Executed:
    """A recorded release's outputs over a suite of cases. A case that the file lacks is missing.

    A number that isn't finite fails its case. Raises Misconfigured, with the line, for what cannot be read.
    """
    recorded = release.recorded
    if recorded is None or release.outputs is None:
        raise TypeError(f"release {release.name} is not recorded")
    cases = {case.id: case for case in suite.cases}
    labels: list[str] = []
    read = READERS[recorded.format](release, recorded, suite, labels)
    found: dict[str, Read] = {}
    strangers: list[str] = []
    for case_id, one in read:
        if case_id in found:
            refuse(
                one.place, f"case ID {shown(case_id)} appears twice (first at line {found[case_id].place.line})",
                "each case once", "Keep one of the two.",
            )  # fmt: skip
        found[case_id] = one
        if case_id not in cases:
            strangers.append(case_id)
    if not found:
        refuse(release.outputs, "no output", "an output for each case", "Record the outputs, or correct the path.")
    return Executed(
        outputs=tuple(_output(case, found.get(case.id)) for case in suite.cases),
        remarks=tuple(
            Remark("not-a-case", len(strangers), f"{len(strangers)} outputs for other cases, the first {shown(first)}")
            for first in strangers[:1]
        ),
        labels=tuple(labels),
        named=recorded.label_map,
    )


def _jsonl(release: Release, recorded: Recorded, suite: Suite, labels: list[str]) -> Iterator[tuple[str, Read]]:
    task = suite.definition.task
    keys = KEYS[task]
    choices = {case.id: case.inputs["choices"] for case in suite.cases} if task == "multiple-choice" else {}
    for entry in read_objects(release.folder / recorded.path, constants=True):
        case_id = entry.keys.get("id")
        named = [key for key in keys if key in entry.keys]
        if "id" in entry.keys and not isinstance(case_id, str):
            text_of(entry, "id")
        if not isinstance(case_id, str) or len(named) != 1:
            refuse(
                entry.place, f"the keys {', '.join(sorted(entry.keys))}",
                f"`id`, as text, and {' or '.join(f'`{key}`' for key in keys)}", "Correct that line.",
            )  # fmt: skip
        key = named[0]
        if recorded.score_type not in BY_KEY.get(key, (recorded.score_type,)):
            refuse(
                entry.place, f"`{key}` in outputs recorded with score_type = {recorded.score_type!r}",
                f"score_type = {BY_KEY[key][0]!r}", "Correct score_type in release.toml.",
            )  # fmt: skip
        if key == "tags":
            yield case_id, Read(_tags(entry), entry.place)
        elif key == "value":
            yield case_id, Read(Number(_number(entry, key, entry.keys[key])), entry.place)
        elif key == "answer":
            yield case_id, Read(_span(entry), entry.place)
        elif task == "multiple-choice":
            yield case_id, Read(_choices(entry, key, choices.get(case_id)), entry.place)
        else:
            yield case_id, Read(_labelled(entry, key, labels), entry.place)


def _conll(release: Release, recorded: Recorded, suite: Suite, labels: list[str]) -> Iterator[tuple[str, Read]]:
    """Tags in columns, the sentences in the order of the cases; the tokens stand where the suite's own files have them,
    or first.
    """
    source = suite.definition.source
    tokens = source.columns.tokens if source.format == "conll" else None
    file = ColumnFile(
        release.folder / recorded.path,
        tokens if isinstance(tokens, int) else 1,
        -1 if recorded.column is None else recorded.column,
        tab=source.separator == "tab",
        comments=source.comments,
        gaps=True,
    )
    for case_id, one in read_conll_tags(file, {case.id: _tokens(case) for case in suite.cases}).items():
        yield case_id, Read(Tags(one.tags), one.place)


def _squad(release: Release, recorded: Recorded, suite: Suite, labels: list[str]) -> Iterator[tuple[str, Read]]:
    path = release.folder / recorded.path
    odds = None if recorded.null_scores is None else release.folder / recorded.null_scores
    for case_id, span in read_squad_predictions(path, odds).items():
        yield case_id, Read(span, Place(path, 1))


def _tokens(case: Case) -> tuple[str, ...]:
    return tuple(case.inputs["tokens"])


Reader = Callable[[Release, Recorded, Suite, list[str]], Iterator[tuple[str, Read]]]
READERS: Mapping[str, Reader] = {"jsonl": _jsonl, "conll": _conll, "squad": _squad}
OF_TASK = {"conll": "entity", "squad": "answer"}


def _labelled(entry: Entry, key: str, labels: list[str]) -> Scores:
    """One number a label. `labels` are those of the first line, which every line must have."""
    value = entry.keys[key]
    names = list(value) if isinstance(value, dict) else entry.keys.get("labels")
    numbers = list(value.values()) if isinstance(value, dict) else value
    if (
        not isinstance(numbers, list)
        or not isinstance(names, list)
        or len(names) != len(numbers)
        or not all(isinstance(name, str) for name in names)
        or len(set(map(str, names))) < len(names)
        or not names
    ):
        refuse(
            entry.place, f"`{key}` that do not say of which label each number is",
            "an object, label to number, or a list with as many `labels` beside it, each once",
            f'Write "{key}": {{"REFUND": 0.7, "OTHER": 0.3}}.',
        )  # fmt: skip
    by_name = {str(name): _number(entry, key, number) for name, number in zip(names, numbers, strict=True)}
    if not labels:
        labels.extend(by_name)
    if by_name.keys() != set(labels):
        lacking, strange = sorted(set(labels) - by_name.keys()), sorted(by_name.keys() - set(labels))
        told = [f"lack {', '.join(map(shown, lacking))}"] * bool(lacking)
        told += [f"have {', '.join(map(shown, strange))} besides"] * bool(strange)
        refuse(
            entry.place, f"`{key}` that {' and '.join(told)}, held against the first line",
            f"the same {len(labels)} labels on every line", "Write a number for every label of the model.",
        )  # fmt: skip
    return Scores(np.array([by_name[name] for name in labels], dtype=np.float64))


def _choices(entry: Entry, key: str, choices: str | tuple[str, ...] | None) -> Scores:
    """One number a choice: in the order of the data, or by the choices' text."""
    value = entry.keys[key]
    if isinstance(value, dict) and choices is not None:
        if sorted(value) != sorted(choices):
            refuse(
                entry.place, f"`{key}` of {', '.join(map(shown, value))}",
                f"one number for each of {', '.join(map(shown, choices))}", "Write a number for each choice.",
            )  # fmt: skip
        value = [value[choice] for choice in choices]
    if not isinstance(value, list) or (choices is not None and len(value) != len(choices)):
        refuse(
            entry.place, f"`{key}` with {len(value) if isinstance(value, list | dict) else 'no'} numbers",
            "one number for each choice", "Write a list in the order of the choices.",
        )  # fmt: skip
    return Scores(np.array([_number(entry, key, each) for each in value], dtype=np.float64))


def _tags(entry: Entry) -> Tags:
    value = entry.keys["tags"]
    if not isinstance(value, list) or not all(isinstance(each, str | None) for each in value):
        refuse(
            entry.place, "`tags` that are no list of texts", "a list of texts, null for a tag that is lacking",
            'Write "tags": ["O", "B-PER"].',
        )  # fmt: skip
    return Tags(tuple("" if each is None else str(each) for each in value))


def _span(entry: Entry) -> Span:
    """`answer` is a text or null; beside it perhaps `start`, `end`, `score` and `null_score`."""
    text = entry.keys["answer"]
    if text is not None and not isinstance(text, str):
        refuse(entry.place, "an `answer` that is no text", "a text, or null for none", "Correct that line.")
    at = {}
    for key in ("start", "end"):
        place = entry.keys.get(key)
        if place is not None and (not isinstance(place, int) or isinstance(place, bool) or not 0 <= place <= FARTHEST):
            refuse(entry.place, f"`{key}` is {shown(str(place))}", "a character, from 0", f"Correct `{key}`.")
        at[key] = place
    scores = {
        key: None if entry.keys.get(key) is None else _number(entry, key, entry.keys[key])
        for key in ("score", "null_score")
    }
    return Span(text, at["start"], at["end"], scores["score"], scores["null_score"])


def _number(entry: Entry, key: str, value: JsonValue) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        refuse(entry.place, f"`{key}` with {shown(str(value))}", "a number", "Write numbers without quotes.")
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _output(case: Case, found: Read | None) -> CaseOutput:
    if found is None:
        return CaseOutput(case.id, OutputStatus.MISSING, "the recorded outputs have no line for this case")
    return settled(case, found.output)


def settled(case: Case, output: TaskOutput) -> CaseOutput:
    """The output of a case, failed where a number isn't finite or there are more tags than tokens."""
    match output:
        case Scores(values):
            broken = not np.isfinite(values).all()
        case Number(value):
            broken = not math.isfinite(value)
        case Span():
            broken = not all(each is None or math.isfinite(each) for each in (output.score, output.null_score))
        case Tags(tags):
            tokens = len(case.inputs["tokens"])
            if len(tags) > tokens:
                return CaseOutput(case.id, OutputStatus.FAILED, f"{len(tags)} tags for {tokens} tokens")
            broken = False
    if broken:
        return CaseOutput(case.id, OutputStatus.FAILED, NOT_FINITE, non_finite=True)
    return CaseOutput(case.id, OutputStatus.OK, output=output)


def require_recorded(recorded: Recorded, task: str) -> None:
    """Raises Misconfigured for a format, or a kind of score, that says nothing of the task's cases."""
    formats = [format for format in READERS if OF_TASK.get(format, task) == task]
    if recorded.format not in formats:
        raise Misconfigured(
            "[recorded] format", found=f"{recorded.format!r} in a suite of {task}",
            expected=f"one of {', '.join(formats)}", mend="Record the outputs as JSON Lines.",
        )  # fmt: skip
    if recorded.score_type == "squared-l2":
        raise Misconfigured(
            "[recorded] score_type", found="a distance, by which a higher number isn't more alike",
            expected="a score by which higher is more alike",
            mend='Record the distance as its negative, with score_type = "value".',
        )  # fmt: skip
