"""What a report says, before it has a form: typed results, read from the store, in the order a reader needs them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.output.answer import Answer, DeltaSummary
from harness.output.cause import CauseCount
from harness.output.change import CaseChange, TransitionCount
from harness.output.companion import Companion
from harness.output.diagnostic import Diagnostic


@dataclass(frozen=True, slots=True)
class SliceInfo:
    """A slice with the condition it was frozen from; `all` is the whole promotion role."""

    name: str
    definition: str
    critical: bool
    cases: int
    groups: int


@dataclass(frozen=True, slots=True)
class MeaningChange:
    """One field of the release's meaning that differs between parent and candidate; None where a side lacks it."""

    field: str
    parent: str | None
    candidate: str | None

    @property
    def one_sided(self) -> bool:
        """Whether it is a field of an encoder, and only one of the two releases has it."""
        return "towers." in self.field and (self.parent is None or self.candidate is None)


@dataclass(frozen=True, slots=True)
class Content:
    """Everything a report shows. `metrics` in the suite's order, the primary one first.

    `regressions`, `improvements` and `case_deltas`, these in suite order, are over promotion and by the metric that the
    answer follows. `companions`: by side, what stands beside its metrics; `diagnostics`, by which nothing is decided.
    `causes`: by slice, what was seen where cases got worse.
    `limits`: the sentences that say what these intervals are conditional on.
    """

    answer: Answer
    primary: str
    metrics: tuple[str, ...]
    slices: tuple[SliceInfo, ...]
    criterion: str
    transitions: tuple[TransitionCount, ...]
    regressions: tuple[CaseChange, ...]
    improvements: tuple[CaseChange, ...]
    changes: tuple[MeaningChange, ...]
    case_deltas: tuple[float, ...]
    method: str
    draws: int
    level: float
    limits: tuple[str, ...]
    companions: Mapping[str, tuple[Companion, ...]] = field(default_factory=dict)
    diagnostics: tuple[Diagnostic, ...] = ()
    causes: tuple[CauseCount, ...] = ()

    @property
    def deltas(self) -> dict[str, dict[str, DeltaSummary]]:
        """By slice and metric."""
        return self.answer.deltas
