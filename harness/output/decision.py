"""What the gate says, rule by rule and in all."""

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """What a rule or a run comes to; a waived FAIL is WAIVED, and only a rule can be."""

    PASS = "PASS"
    FAIL = "FAIL"
    UNDECIDED = "UNDECIDED"
    WAIVED = "WAIVED"


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule's outcome with its evidence; None where a figure does not apply.

    `low` and `high` bound the delta where there is one, else the value. `method` names how they were found.
    `finding` is the digest by which a waiver names this FAIL. `awaits_judging`: it would have
    failed, but may have failed for want of judgements.
    """

    id: str
    kind: str
    metric: str
    slice: str
    outcome: Outcome
    reason: str
    critical: bool
    value: float | None = None
    parent_value: float | None = None
    delta: float | None = None
    low: float | None = None
    high: float | None = None
    margin: float | None = None
    n_cases: int = 0
    n_groups: int = 0
    p: float | None = None
    p_adjusted: float | None = None
    mde: float | None = None
    method: str | None = None
    finding: str | None = None
    awaits_judging: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """The gate's answer over the promotion role. `remarks` are what a reader must know besides the rules."""

    outcome: Outcome
    exploratory: bool
    rules: tuple[RuleResult, ...]
    remarks: tuple[str, ...] = ()
