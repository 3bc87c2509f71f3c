"""What can be seen where a case got worse: observations, of which each may be its cause and none is proven to be."""

from dataclasses import dataclass

MEANINGS = {
    "non-finite": "the candidate's output is no finite number",
    "no-output": "the candidate has no output, and the parent has one",
    "candidate-recall": "the last stage was not given a relevant document that the parent reached",
    "truncated": "more of the case, of a relevant document or of their pair is cut than on the parent's side",
    "calibration-only": "both sides say the same numbers, or put labels or choices in one order: only how sure they "
    "are, or what is made of it, is another",
    "no-answer": "one side says nothing and the other something",
    "type": "an entity is found under another type, as the parent finds none",
    "label-boundary": "what is right lies within the suite's boundary_gap of what was given, or an entity has other "
    "ends, and not so on the parent's side",
    "tied": "a relevant document, or what is predicted, ties with others",
    "encoding": "the text holds a replacement or control character, or UTF-8 that was read as another encoding",
    "prompt-changed": "the text, or documents, are put to the model in other words",
    "unexplained": "none of the others holds",
}
"""By cause, in the order in which a case is counted under the first that holds."""


@dataclass(frozen=True, slots=True)
class Cause:
    """One that holds of a case, and what was seen."""

    cause: str
    seen: str


@dataclass(frozen=True, slots=True)
class CauseCount:
    """How many cases of a slice got worse and are counted under a cause."""

    slice: str
    cause: str
    cases: int
