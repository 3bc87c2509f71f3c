"""What became of the cases between parent and candidate."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """The document that a side put first; grade None where nobody judged it."""

    document_id: str
    head: str
    grade: int | None


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One promotion case whose value of one metric moved."""

    case_id: str
    text: str
    slices: tuple[str, ...]
    parent_value: float
    candidate_value: float
    parent_first: FirstAnswer | None
    candidate_first: FirstAnswer | None


@dataclass(frozen=True, slots=True)
class TransitionCount:
    """How many promotion cases of a slice went which way, by the declared criterion."""

    slice: str
    both_right: int = 0
    parent_only: int = 0
    candidate_only: int = 0
    both_wrong_same: int = 0
    both_wrong_different: int = 0


@dataclass(frozen=True, slots=True)
class Transitions:
    """Counts by slice, `all` first, under the criterion by which a case is right; no parent, no criterion."""

    criterion: str
    counts: tuple[TransitionCount, ...]
