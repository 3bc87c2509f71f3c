"""What a run found, as every command that speaks of a run gives it back."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from harness.identity import Json
from harness.output.decision import Decision, Outcome, RuleResult

EXIT_CODE = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.UNDECIDED: 3}


@dataclass(frozen=True, slots=True)
class Named:
    """A release by name and by content."""

    name: str
    content_id: str


@dataclass(frozen=True, slots=True)
class Summary:
    """One metric of one side over one slice of the promotion role, with its own interval."""

    value: float | None
    low: float | None
    high: float | None
    n_scored: int
    n_total: int
    n_groups: int


@dataclass(frozen=True, slots=True)
class DeltaSummary:
    """Candidate minus parent over the paired promotion cases of one slice, for one metric."""

    delta: float | None
    low: float | None
    high: float | None
    mde: float | None
    n_cases: int
    n_groups: int
    n_changed_groups: int


@dataclass(frozen=True, slots=True)
class Counts:
    """The candidate's promotion cases. `tied`: tied documents whose order could change a reported metric."""

    cases: int
    missing: int
    failed: int
    tied: int
    truncated: int
    not_applicable: int


@dataclass(frozen=True, slots=True)
class Answer:
    """A decided run. `metrics` is by side, slice and metric name, `deltas` by slice and metric name.

    `reading` is how many runs had read these promotion outcomes, this one included. `ranks`: whether documents of a
    corpus are ranked. `losses`: metrics that are better when lower; `targets`: the right value of
    those that are better when nearer to it. `followed`: the metric by which a case is told to
    have got worse or better, None where none has values by case.
    """

    run: str
    decision: Decision
    suite: str
    suite_digest: str
    candidate: Named
    parent: Named | None
    metrics: dict[str, dict[str, dict[str, Summary]]]
    counts: Counts
    store: str
    report: str | None = None
    bundle: str | None = None
    reading: int = 1
    deltas: dict[str, dict[str, DeltaSummary]] = field(default_factory=dict)
    task: str = "retrieval"
    ranks: bool = True
    losses: tuple[str, ...] = ()
    targets: Mapping[str, float] = field(default_factory=dict)
    followed: str | None = None

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader must know besides the rules."""
        return self.decision.remarks

    @property
    def exit_code(self) -> int:
        """0 PASS, 1 FAIL, 3 UNDECIDED or exploratory."""
        return 3 if self.decision.exploratory else EXIT_CODE[self.decision.outcome]

    def as_record(self) -> dict[str, Json]:
        """The object that `--json` prints. An end of an interval that nothing bounds is null."""
        return {
            "run": self.run,
            "decision": str(self.decision.outcome),
            "exit_code": self.exit_code,
            "exploratory": self.decision.exploratory,
            "suite": {"name": self.suite, "digest": self.suite_digest},
            "candidate": asdict(self.candidate),
            "parent": None if self.parent is None else asdict(self.parent),
            "metrics": {
                side: {name: {metric: _record(each) for metric, each in by.items()} for name, by in slices.items()}
                for side, slices in self.metrics.items()
            },
            "deltas": {
                name: {metric: _record(each) for metric, each in by.items()} for name, by in self.deltas.items()
            },
            "rules": [{**_record(rule), "outcome": str(rule.outcome)} for rule in self.decision.rules],
            "counts": asdict(self.counts),
            "store": self.store,
            "report": self.report,
            "bundle": self.bundle,
            "reading": self.reading,
            "remarks": list(self.remarks),
        }


def _record(each: Summary | DeltaSummary | RuleResult) -> dict[str, Json]:
    return {
        name: None if isinstance(value, float) and math.isinf(value) else value for name, value in asdict(each).items()
    }
