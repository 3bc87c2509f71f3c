"""What became of the cases between parent and candidate."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """The document that a side put first; grade None where nobody judged it."""

    document_id: str
    head: str
    grade: int | None


@dataclass(frozen=True, slots=True)
class Prediction:
    """What a side's output of a case comes to in a task without a corpus, as one reads it; None where it has none.

    `probability` is that of the predicted label or choice. `flags`: tied, clipped, …
    """

    said: str | None
    probability: float | None
    flags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Predicted:
    """A case's gold, None where nobody knows, and both sides' predictions; `parent` None in a run without one."""

    gold: str | None
    parent: Prediction | None
    candidate: Prediction


@dataclass(frozen=True, slots=True)
class CaseChange:
    """One promotion case whose value of one metric moved: what either side put first, or predicted."""

    case_id: str
    text: str
    slices: tuple[str, ...]
    parent_value: float
    candidate_value: float
    parent_first: FirstAnswer | None
    candidate_first: FirstAnswer | None
    predicted: Predicted | None = None


@dataclass(frozen=True, slots=True)
class TransitionCount:
    """How many promotion cases of a slice went which way, by the declared criterion.

    `lost_groups` and `won_groups`: in which more cases went one way than the other; `p`: that they fall to either side
    alike, exact and two-sided; None where it was not tested.
    """

    slice: str
    both_right: int = 0
    parent_only: int = 0
    candidate_only: int = 0
    both_wrong_same: int = 0
    both_wrong_different: int = 0
    lost_groups: int | None = None
    won_groups: int | None = None
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Transitions:
    """Counts by slice, `all` first, under the criterion by which a case is right; no parent, no criterion."""

    criterion: str
    counts: tuple[TransitionCount, ...]
