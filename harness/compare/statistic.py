"""A metric as a statistic of weighted cases, in three forms, and a pair of them.

Nothing downstream assumes a mean: intervals, jackknife and swaps ask the statistic again under other weights.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, Self, TypeAlias

import numpy as np

from harness.compare.forecast import WeightedForecast
from harness.compare.group import (
    Additive,
    Bools,
    ByGroup,
    Codes,
    Expanded,
    Floats,
    grid_sums,
    groups_present,
    mean_by_group,
    ratio,
    refuse_unusable,
)
from harness.compare.ordering import FIRST_ORDER, RankMean, WeightedRank
from harness.errors import Unpairable


class Statistic(Protocol):
    """Cases that a number is made of."""

    @property
    def n_cases(self) -> int: ...

    def value(self) -> float:
        """The statistic where every case counts once. The order of cases never changes it."""

    def of(self, weights: Floats) -> Floats:
        """The statistic [b] under weights [b, n] ≥ 0; a case of weight 2 counts as two. NaN where undefined."""

    def take(self, index: Codes | Bools) -> Self:
        """The same statistic of some cases. Raises EmptySlice where none are left."""

    def by_group(self, groups: Codes, n_groups: int) -> ByGroup:
        """The statistic as a function of group counts; groups [n] holds codes below n_groups."""


@dataclass(frozen=True, slots=True, eq=False)
class Mean:
    """The mean of one value per case: values [n]."""

    values: Floats

    def __post_init__(self) -> None:
        refuse_unusable("a mean", self.values)

    @property
    def n_cases(self) -> int:
        return len(self.values)

    def value(self) -> float:
        return math.fsum(self.values) / len(self.values)

    def of(self, weights: Floats) -> Floats:
        return ratio(np.stack([_weighted(weights, self.values[:, None])[:, 0], weights.sum(axis=1)], axis=1))

    def take(self, index: Codes | Bools) -> "Mean":
        return Mean(self.values[index])

    def by_group(self, groups: Codes, n_groups: int) -> Additive:
        return mean_by_group(self.values, groups, n_groups)

    def differs(self, other: "Mean") -> Bools:
        return np.asarray(self.values != other.values)

    def exchanged(self, other: "Mean", mask: Bools) -> Floats:
        return np.asarray(np.where(mask, other.values, self.values).mean(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """A function of summed contributions: rows [n, m], one per case, and `finish` [b, m] → [b] (F1, R², ECE).

    `finish` treats every row of its input alone, and gives NaN where the metric is undefined.
    """

    rows: Floats
    finish: Callable[[Floats], Floats]

    def __post_init__(self) -> None:
        refuse_unusable("summed contributions", self.rows)

    @property
    def n_cases(self) -> int:
        return len(self.rows)

    def value(self) -> float:
        return float(self.finish(np.array([[math.fsum(column) for column in self.rows.T]]))[0])

    def of(self, weights: Floats) -> Floats:
        return self.finish(_weighted(weights, self.rows))

    def take(self, index: Codes | Bools) -> "Finish":
        return Finish(self.rows[index], self.finish)

    def by_group(self, groups: Codes, n_groups: int) -> Additive:
        present = groups_present(groups, self.n_cases, n_groups)
        return Additive(grid_sums(self.rows, groups, n_groups), self.finish, present)

    def differs(self, other: "Finish") -> Bools:
        return np.asarray((self.rows != other.rows).any(axis=1))

    def exchanged(self, other: "Finish", mask: Bools) -> Floats:
        return self.finish(self.rows.sum(axis=0) + _weighted(mask.astype(np.float64), other.rows - self.rows))


OneSide: TypeAlias = Mean | Finish | WeightedRank | WeightedForecast | RankMean


@dataclass(frozen=True, slots=True, eq=False)
class Paired:
    """The same statistic of the same cases, in the same order, by candidate and by parent.

    As a statistic it is the delta: candidate minus parent. Raises Unpairable where forms or sizes differ.
    """

    candidate: OneSide
    parent: OneSide

    def __post_init__(self) -> None:
        sides = (self.candidate, self.parent)
        forms = [f"{type(side).__name__} of {side.n_cases} cases" for side in sides]
        if forms[0] != forms[1]:
            raise Unpairable(
                "two sides",
                found=" and ".join(forms),
                expected="one form over the same cases",
                mend="Align both sides by case ID, and take the cases that both scored.",
            )

    @property
    def n_cases(self) -> int:
        return self.candidate.n_cases

    def value(self) -> float:
        return self.candidate.value() - self.parent.value()

    def delta(self, weights: Floats) -> Floats:
        """Candidate minus parent, [b] under weights [b, n]."""
        mean = as_mean(self)
        return mean.of(weights) if mean else self.candidate.of(weights) - self.parent.of(weights)

    def of(self, weights: Floats) -> Floats:
        return self.delta(weights)

    def take(self, index: Codes | Bools) -> "Paired":
        return Paired(self.candidate.take(index), self.parent.take(index))

    def by_group(self, groups: Codes, n_groups: int) -> ByGroup:
        mean = as_mean(self)
        if mean:
            return mean.by_group(groups, n_groups)
        if isinstance(self.candidate, Finish) and isinstance(self.parent, Finish):
            return _finished_delta(self.candidate, self.parent).by_group(groups, n_groups)
        many = expanded(self)
        if many:
            return mean_by_group(many.values, groups, n_groups, FIRST_ORDER)
        folded = isinstance(self.candidate, WeightedForecast) and self.candidate.folded
        return Expanded(self.delta, groups, groups_present(groups, self.n_cases, n_groups), folded)

    def differs(self) -> Bools:
        """[n], True where the two sides bring something different to the statistic."""
        return self.candidate.differs(self.parent)  # type: ignore[arg-type]  # one form, by __post_init__

    def swapped(self, mask: Bools) -> Floats:
        """The delta [b] after candidate and parent exchanged the cases that a mask [b, n] marks."""
        candidate = self.candidate.exchanged(self.parent, mask)  # type: ignore[arg-type]
        parent = self.parent.exchanged(self.candidate, mask)  # type: ignore[arg-type]
        return candidate - parent

    def jackknife(self, groups: Codes) -> Floats:
        """The delta [p] without one group at a time, in rising order of the codes that occur in groups [n]."""
        return self.by_group(groups, int(groups.max()) + 1).leave_one_out()


AnyStatistic: TypeAlias = OneSide | Paired


@dataclass(frozen=True, slots=True, eq=False)
class Grouped:
    """A statistic and the groups [n] of its cases: one thing to be resampled or tested."""

    statistic: AnyStatistic
    groups: Codes


def as_mean(statistic: AnyStatistic) -> Mean | None:
    """The statistic as a mean over cases, where it is one: the delta of two means is the mean of the deltas."""
    if isinstance(statistic, Mean):
        return statistic
    if isinstance(statistic, Paired):
        candidate, parent = statistic.candidate, statistic.parent
        if isinstance(candidate, Mean) and isinstance(parent, Mean):
            return Mean(candidate.values - parent.values)
    return None


def expanded(statistic: AnyStatistic) -> Mean | None:
    """A rank statistic of very many cases as the mean of its pseudo-values: its expansion to first order in the
    weights of the cases. None of any other.
    """
    if isinstance(statistic, Paired):
        candidate, parent = expanded(statistic.candidate), expanded(statistic.parent)
        return Mean(candidate.values - parent.values) if candidate and parent else None
    if not isinstance(statistic, WeightedRank | RankMean) or not statistic.large:
        return None
    values = statistic.pseudo_values()
    return None if np.isnan(values[0]) else Mean(values)


def _finished_delta(candidate: Finish, parent: Finish) -> Finish:
    width = candidate.rows.shape[1]

    def delta(sums: Floats) -> Floats:
        return candidate.finish(sums[:, :width]) - parent.finish(sums[:, width:])

    return Finish(np.hstack([candidate.rows, parent.rows]), delta)


def _weighted(weights: Floats, rows: Floats) -> Floats:
    """Sums [b, m] of rows [n, m] under weights [b, n]; not by BLAS, whose order of summing follows the threads."""
    return np.asarray(np.einsum("bn,nm->bm", weights, rows, optimize=False))
