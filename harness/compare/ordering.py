"""Correlations and orderings: the rank form, of one column or as the mean over classes."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from harness.compare.forecast import WeightedForecast
from harness.compare.group import Bools, Codes, Expanded, Floats, groups_present, ratio, refuse_unusable
from harness.compare.rank import (
    exchanged_auroc,
    exchanged_average_precision,
    exchanged_kendall,
    exchanged_pearson,
    exchanged_spearman,
    weighted_auroc,
    weighted_average_precision,
    weighted_kendall,
    weighted_pearson,
    weighted_spearman,
)
from harness.errors import Misconfigured, Unpairable
from harness.output.contribution import RankKind


class _Asked(NamedTuple):
    weighted: Callable[[Floats, Floats, Floats], Floats]
    exchanged: Callable[[Floats, Floats, Floats, Bools], Floats]


RANKS: dict[RankKind, _Asked] = {
    "pearson": _Asked(weighted_pearson, exchanged_pearson),
    "spearman": _Asked(weighted_spearman, exchanged_spearman),
    "kendall": _Asked(weighted_kendall, exchanged_kendall),
    "auroc": _Asked(weighted_auroc, exchanged_auroc),
    "average_precision": _Asked(weighted_average_precision, exchanged_average_precision),
}


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRank:
    """A correlation or ordering of a prediction x [n] with what holds, y [n]; ties are shared evenly.

    `pearson`, `spearman`, `kendall` (tau-b): undefined where x or y is constant. `auroc`, `average_precision`: y is
    0 or 1; undefined without both classes, or without a positive.
    """

    x: Floats
    y: Floats
    kind: RankKind

    def __post_init__(self) -> None:
        refuse_unusable(self.kind, self.x)
        refuse_unusable(self.kind, self.y)
        if len(self.x) != len(self.y):
            raise Unpairable(
                self.kind,
                found=f"{len(self.x)} predictions and {len(self.y)} true values",
                expected="one of each per case",
                mend="Take both from the same cases.",
            )
        if self.kind in ("auroc", "average_precision") and not np.isin(self.y, (0, 1)).all():
            raise Misconfigured(
                self.kind,
                found="true values besides 0 and 1",
                expected="1 for a positive case, 0 for a negative one",
                mend="Choose spearman for graded values, or name the positive class.",
            )

    @property
    def n_cases(self) -> int:
        return len(self.x)

    def value(self) -> float:
        return float(self.of(np.ones((1, self.n_cases)))[0])

    def of(self, weights: Floats) -> Floats:
        return RANKS[self.kind].weighted(self.x, self.y, weights)

    def take(self, index: Codes | Bools) -> "WeightedRank":
        return WeightedRank(self.x[index], self.y[index], self.kind)

    def by_group(self, groups: Codes, n_groups: int) -> Expanded:
        return Expanded(self.of, groups, groups_present(groups, self.n_cases, n_groups))

    def differs(self, other: "WeightedRank") -> Bools:
        return np.asarray(self.x != other.x)

    def exchanged(self, other: "WeightedRank", mask: Bools) -> Floats:
        return RANKS[self.kind].exchanged(self.x, other.x, self.y, mask)


@dataclass(frozen=True, slots=True, eq=False)
class RankMean:
    """The plain mean of rank statistics, or of measures of forecasts, of the same cases, one for each class, over those
    that are defined.

    A class that a draw has no case of is left out of that draw's mean. Raises Unpairable where sizes differ.
    """

    columns: tuple["WeightedRank | WeightedForecast", ...]

    def __post_init__(self) -> None:
        sizes = sorted({column.n_cases for column in self.columns})
        if len(sizes) != 1:
            raise Unpairable(
                "a mean over classes",
                found=f"{len(self.columns)} classes of {sizes} cases",
                expected="at least one class, and the same cases for each",
                mend="Take every class from the same cases.",
            )

    @property
    def n_cases(self) -> int:
        return self.columns[0].n_cases

    def value(self) -> float:
        return float(self.of(np.ones((1, self.n_cases)))[0])

    def of(self, weights: Floats) -> Floats:
        return _mean_of_defined([column.of(weights) for column in self.columns])

    def take(self, index: Codes | Bools) -> "RankMean":
        return RankMean(tuple(column.take(index) for column in self.columns))

    def by_group(self, groups: Codes, n_groups: int) -> Expanded:
        return Expanded(self.of, groups, groups_present(groups, self.n_cases, n_groups))

    def differs(self, other: "RankMean") -> Bools:
        pairs = zip(self.columns, other.columns, strict=True)
        differs = [mine.differs(theirs) for mine, theirs in pairs]  # type: ignore[arg-type]  # of one kind
        return np.asarray(np.any(differs, axis=0))

    def exchanged(self, other: "RankMean", mask: Bools) -> Floats:
        pairs = zip(self.columns, other.columns, strict=True)
        return _mean_of_defined([mine.exchanged(theirs, mask) for mine, theirs in pairs])  # type: ignore[arg-type]


def _mean_of_defined(values: list[Floats]) -> Floats:
    """[b], the mean of arrays [b] without NaN; sorted first, so that no order of classes changes a bit."""
    stacked = np.sort(np.stack(values), axis=0)
    there = ~np.isnan(stacked)
    return ratio(np.stack([np.where(there, stacked, 0.0).sum(axis=0), there.sum(axis=0)], axis=1))
