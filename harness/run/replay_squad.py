"""Answers that were made elsewhere, in the files that SQuAD's own script reads."""

import sys
from pathlib import Path

from harness.file.lines import JsonObject, listed, read_json, refuse, shown
from harness.output.task import Span

LARGEST = sys.float_info.max


def read_squad_predictions(path: Path, null_odds: Path | None = None) -> dict[str, Span]:
    """Answers by question: an object of texts by ID, of which an empty one, or null, is no answer.

    `null_odds` has a number for each, by how much no answer scored higher than the answer; it is kept as the null
    score beside a score of 0, for only their difference is known.

    Raises Misconfigured for a file that isn't such an object, and for questions that only one of the two has.
    """
    answers, odds = _object(path), {} if null_odds is None else _object(null_odds)
    for identifier, text in answers.items():
        if not isinstance(text, str | None):
            refuse(
                path, f"the answer of {shown(identifier)} is no text", "one text a question",
                "Record the best answer alone; a list of several is another file.",
            )  # fmt: skip
    if null_odds is None:
        return {identifier: Span(str(text) if text else None) for identifier, text in answers.items()}
    lacking, strange = answers.keys() - odds.keys(), odds.keys() - answers.keys()
    if lacking or strange:
        refuse(
            null_odds, f"{len(lacking)} answered questions lacking and {len(strange)} others: "
            f"{listed(sorted(lacking or strange))}",
            f"the questions of {path.name}", "Record both files in one run.",
        )  # fmt: skip
    spans = {}
    for identifier, text in answers.items():
        number = odds[identifier]
        if isinstance(number, bool) or not isinstance(number, int | float) or abs(number) > LARGEST:
            refuse(null_odds, f"the null odds of {shown(identifier)} are no number", "a number a question", "Mend it.")
        spans[identifier] = Span(str(text) if text else None, score=0.0, null_score=float(number))
    return spans


def _object(path: Path) -> JsonObject:
    value = read_json(path)
    if not isinstance(value, dict):
        refuse(path, "no JSON object", "an object with a key for each question's ID", "Correct the file.")
    return value
