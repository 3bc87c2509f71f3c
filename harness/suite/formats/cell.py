"""What a table's cell says of a field: written as text, or with a type."""

import json
import math
import re
from collections.abc import Sequence

from harness.file.lines import JsonValue, Place, refuse, shown
from harness.suite.formats.example import CaseTask

# What Python's float() takes besides, such as 1_000, nan and inf, is no number here.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_WHOLE = re.compile(r"\d{1,9}", re.ASCII)
GOLD_FIELDS = ("label", "labels", "value", "tags", "answers")
UNKNOWN = -1
"""The class that stands for a gold label which is withheld, in data sets of the Hugging Face hub."""


def written_value(field: str, text: str, between: str | None, where: Place) -> JsonValue:
    """The value of a text cell, as JSON Lines would have it; null for an empty cell of gold.

    Lists are JSON, and labels may stand `between` a separator, where `[]` is no label at all.
    Raises Misconfigured for what is no number, or no list.
    """
    if field in GOLD_FIELDS and not text.strip():
        return None
    match field:
        case "value":
            return _number(text, where)
        case "labels" if between is not None and text.strip() != "[]":
            return [each.strip() for each in text.split(between)]
        case "labels" | "tags" | "tokens" | "answers" | "choices":
            return _list(field, text, where)
    return text


def typed_value(field: str, task: CaseTask, value: JsonValue, classes: Sequence[str], where: Place) -> JsonValue:
    """The value of a cell with a type, as JSON Lines would have it. `classes` are what its numbers mean, where the
    data say; of these, -1 is a label that is withheld.

    Raises Misconfigured for a number that is none of them.
    """
    if value is None or (field in GOLD_FIELDS and value == ""):
        return None
    if field == "answers" and isinstance(value, dict):
        return _answers(value, where)
    if classes and field in ("labels", "tags") and isinstance(value, list):
        return [_class(field, each, classes, where) for each in value]
    if classes and field == "label":
        if value == UNKNOWN:
            return None
        name = _class(field, value, classes, where)
        return value if task == "multiple-choice" else name
    if field == "id" or (field == "label" and task == "classification"):
        return _text(value)
    if field == "labels" and isinstance(value, list):
        return [_text(each) for each in value]
    return value


def choice(label: JsonValue, choices: JsonValue, where: Place) -> JsonValue:
    """The right choice as its number, where it is written in digits. Raises Misconfigured where these could also be
    the text of another.
    """
    if not isinstance(label, str) or not _WHOLE.fullmatch(label.strip()):
        return label
    number = int(label)
    if isinstance(choices, list) and label in choices and choices.index(label) != number:
        refuse(
            where, f"`label` {shown(label)}, which may be a choice's number from 0 or its text",
            "a label that can be read in one way", "Write the cases as JSON Lines, where a number has no quotes.",
        )  # fmt: skip
    return number


def given_choices(cells: Sequence[JsonValue], where: Place) -> JsonValue:
    """The choices that stand in columns of their own: a row may have fewer than there are columns."""
    given = list(cells)
    while given and given[-1] in (None, ""):
        given.pop()
    if None in given or "" in given:
        refuse(where, "an empty choice before one that isn't", "choices without a gap", "Correct that row.")
    return given


def _number(text: str, where: Place) -> float:
    if not NUMBER.fullmatch(text.strip(" \t")) or not math.isfinite(float(text)):
        refuse(
            where, f"`value` is {shown(text)}", "a number, with a point for its decimals, or an empty cell",
            "Correct it, or say under `columns` of `source` which column holds the numbers.",
        )  # fmt: skip
    return float(text)


def _list(field: str, text: str, where: Place) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list):
        refuse(
            where, f"`{field}` is {shown(text)}", 'a JSON list in the cell, as ["a", "b"]',
            "Write it so, or say with `between` in `source` what stands between the labels."
            if field == "labels" else "Write it so; quotes within quotes are doubled.",
        )  # fmt: skip
    return value


def _class(field: str, value: JsonValue, classes: Sequence[str], where: Place) -> str:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(classes):
        refuse(
            where, f"`{field}` with {shown(str(value))}", f"a class, from 0 to {len(classes) - 1}",
            "Correct the data, or the classes that are written with them.",
        )  # fmt: skip
    return classes[value]


def _answers(value: dict[str, JsonValue], where: Place) -> JsonValue:
    """Texts and their places as two lists, as the hub's copies of SQuAD have them."""
    texts, starts = value.get("text"), value.get("answer_start")
    if not isinstance(texts, list) or not isinstance(starts, list) or len(texts) != len(starts):
        refuse(
            where, f"`answers` with {', '.join(map(shown, value))}", "`text` and `answer_start`, of one length",
            "Correct the data.",
        )  # fmt: skip
    return [{"text": text, "start": start} for text, start in zip(texts, starts, strict=True)]


def _text(value: JsonValue) -> JsonValue:
    """A whole number or a truth as text: of one type throughout the column, it has only one spelling."""
    return json.dumps(value) if isinstance(value, bool | int) else value
