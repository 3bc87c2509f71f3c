"""A gate to be fed by hand: per-case values of both sides in, one result a rule out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from harness.compare.draw import Resample
from harness.compare.scoreboard import Cell, Population, scoreboard
from harness.gate.decide import judge
from harness.gate.policy import Flags, Policy
from harness.gate.rule import Guards, Rule, Uncertainty
from harness.output.contribution import CaseRows, Contribution
from harness.output.decision import RuleResult
from harness.output.value import CaseValues, Status

Entry = float | Status
Values = Mapping[str, Sequence[Entry]]
METRIC = "nDCG@10"
RECALL = "recall[RARE]"


def case_values(metric: str, ids: Sequence[str], entries: Sequence[Entry], order: Sequence[int]) -> CaseValues:
    status = [entry if isinstance(entry, Status) else Status.SCORED for entry in entries]
    values = [np.nan if isinstance(entry, Status) else float(entry) for entry in entries]
    return CaseValues(
        metric, np.array(ids, dtype=object)[order], np.array(values)[order], np.array(status, dtype=object)[order]
    )


def contribution(metric: str, ids: Sequence[str], entries: Sequence[Entry], order: Sequence[int]) -> Contribution:
    """Of RECALL, 1 is a case of the class that was found, 0 one that was not, and -1 a case of another class."""
    found = case_values(metric, ids, entries, order)
    if metric != RECALL:
        return found
    rows = np.stack([found.values == 1, found.values >= 0], axis=1).astype(float)
    return CaseRows(metric, found.case_ids, rows, _share, found.status)


def _share(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(invalid="ignore"):
        return np.asarray(sums[..., 0] / sums[..., 1])


@dataclass(frozen=True, slots=True)
class Gate:
    """A number is a scored case, a Status one without a value. Names of cases and groups are free, so is the order."""

    draws: int = 1000
    ids: Sequence[str] | None = None
    order: Sequence[int] | None = None
    groups: Sequence[str] | None = None
    slices: Mapping[str, Sequence[int]] = field(default_factory=dict)
    critical: frozenset[str] = frozenset()
    min_support: Mapping[str, int] = field(default_factory=dict)
    missing: str = "undecided"
    max_judged_gap: float | None = None
    judged: Mapping[str, str] = field(default_factory=dict)
    span: Mapping[str, float] = field(default_factory=dict)
    family: str = "holm"
    truncated: Sequence[int] = ()
    non_finite: Sequence[int] = ()

    def cells(self, candidate: Values, parent: Values | None) -> tuple[Population, dict[tuple[str, str], Cell]]:
        n = len(next(iter(candidate.values())))
        ids = list(self.ids or (f"q{i}" for i in range(n)))
        order = list(self.order if self.order is not None else range(n))
        population = Population.of(
            np.array(ids, dtype=object),
            np.array(self.groups or ids, dtype=object),
            {name: {ids[i] for i in members} for name, members in self.slices.items()},
        )
        sides = [
            {metric: contribution(metric, ids, entries, order) for metric, entries in side.items()}
            for side in (candidate, parent)
            if side is not None
        ]
        rng = np.random.default_rng(1)
        resample = Resample.draw(population.n_groups(population.slices["all"]), self.draws, rng)
        cells = scoreboard(
            population, sides[0], sides[1] if parent else None, resample=resample, method="bca", level=0.95
        )
        return population, cells

    def judge(
        self, candidate: Values, parent: Values | None, *rules: Rule, guards: Guards | None = None
    ) -> dict[str, RuleResult]:
        """Results by rule ID, in their order."""
        population, cells = self.cells(candidate, parent)
        policy = Policy(
            rules=rules, guards=guards, guarded=tuple(self.slices) if guards else (),
            uncertainty=Uncertainty(draws=self.draws, family=self.family),
            critical=self.critical, min_support=self.min_support, missing=self.missing,
            max_judged_gap=self.max_judged_gap, judged=self.judged, span=self.span,
        )  # fmt: skip
        results = judge(policy, population, cells, self._flags(candidate, parent), np.random.default_rng(2))
        assert len({result.id for result in results}) == len(results)
        return {result.id: result for result in results}

    def _flags(self, candidate: Values, parent: Values | None) -> Flags:
        first = next(iter(candidate.values()))
        n = len(first)
        other = next(iter(parent.values())) if parent else [0.0] * n
        measured = {"non-finite": _at(self.non_finite, n), "truncated": _at(self.truncated, n)}
        return Flags({**_lacks(first), **measured}, {**_lacks(other), **dict.fromkeys(measured, _at((), n))})


def _lacks(entries: Sequence[Entry]) -> dict[str, NDArray[np.bool_]]:
    kinds = {"missing": Status.MISSING, "failed": Status.FAILED}
    return {name: np.array([entry is kind for entry in entries]) for name, kind in kinds.items()}


def _at(places: Sequence[int], n: int) -> NDArray[np.bool_]:
    return np.isin(np.arange(n), list(places))


@pytest.fixture
def gate() -> type[Gate]:
    """Made anew for every question, with what the question needs."""
    return Gate
