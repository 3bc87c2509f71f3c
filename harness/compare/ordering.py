"""Correlations and orderings: the rank form, of one column or as the mean over classes."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from harness.compare.forecast import WeightedForecast
from harness.compare.group import (
    Additive,
    Bools,
    Codes,
    Expanded,
    Floats,
    groups_present,
    mean_by_group,
    ratio,
    refuse_unusable,
)
from harness.compare.influence import (
    auroc_influence,
    average_precision_influence,
    kendall,
    kendall_influence,
    pearson_influence,
    spearman_influence,
)
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

FIRST_ORDER = "to first order"
"""What intervals of expanded rank statistics say of themselves."""


class _Asked(NamedTuple):
    """`most`: cases, times columns, up to which draws ask the statistic itself; beyond, its expansion."""

    weighted: Callable[[Floats, Floats, Floats], Floats]
    exchanged: Callable[[Floats, Floats, Floats, Bools], Floats]
    influence: Callable[[Floats, Floats], Floats]
    most: int = 10_000


RANKS: dict[RankKind, _Asked] = {
    "pearson": _Asked(weighted_pearson, exchanged_pearson, pearson_influence),
    "spearman": _Asked(weighted_spearman, exchanged_spearman, spearman_influence),
    "kendall": _Asked(weighted_kendall, exchanged_kendall, kendall_influence, most=2_000),
    "auroc": _Asked(weighted_auroc, exchanged_auroc, auroc_influence),
    "average_precision": _Asked(weighted_average_precision, exchanged_average_precision, average_precision_influence),
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
    _value: float | None = field(default=None, init=False, repr=False)
    _pseudo: Floats | None = field(default=None, init=False, repr=False)

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

    @property
    def large(self) -> bool:
        """Whether there are too many cases to ask the statistic itself in every draw."""
        return self.n_cases > RANKS[self.kind].most

    def value(self) -> float:
        """Computed once: of many cases it is a sort."""
        if self._value is None:
            many = self.kind == "kendall" and self.large
            value = kendall(self.x, self.y) if many else float(self.of(np.ones((1, self.n_cases)))[0])
            object.__setattr__(self, "_value", value)
            return value
        return self._value

    def of(self, weights: Floats) -> Floats:
        return RANKS[self.kind].weighted(self.x, self.y, weights)

    def influence(self) -> Floats:
        """[n], what each case does to the statistic: see `influence.py`."""
        return RANKS[self.kind].influence(self.x, self.y)

    def pseudo_values(self) -> Floats:
        """[n], the statistic and what each case does to it; their mean is the statistic. Computed once."""
        if self._pseudo is None:
            found = self.value() + self.influence()
            object.__setattr__(self, "_pseudo", found)
            return found
        return self._pseudo

    def take(self, index: Codes | Bools) -> "WeightedRank":
        return WeightedRank(self.x[index], self.y[index], self.kind)

    def by_group(self, groups: Codes, n_groups: int) -> Additive | Expanded:
        return _by_group(self, groups, n_groups)

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
    _pseudo: Floats | None = field(default=None, init=False, repr=False)

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

    @property
    def large(self) -> bool:
        """Whether there are too many cases to ask the statistic itself in every draw."""
        kinds = [column.kind for column in self.columns if isinstance(column, WeightedRank)]
        return len(kinds) == len(self.columns) and self.n_cases * len(kinds) > RANKS[kinds[0]].most

    def value(self) -> float:
        return float(_mean_of_defined([np.array([column.value()]) for column in self.columns])[0])

    def influence(self) -> Floats:
        """[n], the mean over those columns that are defined; NaN where none is."""
        every = [column.influence() for column in self.columns if isinstance(column, WeightedRank)]
        own = [each for each in every if not np.isnan(each[0])]
        # Sorted first, so that no order of classes changes a bit.
        return np.asarray(np.sort(own, axis=0).sum(axis=0) / len(own)) if own else np.full(self.n_cases, np.nan)

    def pseudo_values(self) -> Floats:
        """[n], the mean and what each case does to it. Computed once."""
        if self._pseudo is None:
            found = self.value() + self.influence()
            object.__setattr__(self, "_pseudo", found)
            return found
        return self._pseudo

    def of(self, weights: Floats) -> Floats:
        return _mean_of_defined([column.of(weights) for column in self.columns])

    def take(self, index: Codes | Bools) -> "RankMean":
        return RankMean(tuple(column.take(index) for column in self.columns))

    def by_group(self, groups: Codes, n_groups: int) -> Additive | Expanded:
        return _by_group(self, groups, n_groups)

    def differs(self, other: "RankMean") -> Bools:
        pairs = zip(self.columns, other.columns, strict=True)
        differs = [mine.differs(theirs) for mine, theirs in pairs]  # type: ignore[arg-type]  # of one kind
        return np.asarray(np.any(differs, axis=0))

    def exchanged(self, other: "RankMean", mask: Bools) -> Floats:
        pairs = zip(self.columns, other.columns, strict=True)
        return _mean_of_defined([mine.exchanged(theirs, mask) for mine, theirs in pairs])  # type: ignore[arg-type]


def _by_group(statistic: WeightedRank | RankMean, groups: Codes, n_groups: int) -> Additive | Expanded:
    """Of very many cases, the expansion to first order where the statistic is defined; else the statistic itself."""
    if statistic.large and not np.isnan(statistic.value()):
        return mean_by_group(statistic.pseudo_values(), groups, n_groups, FIRST_ORDER)
    return Expanded(statistic.of, groups, groups_present(groups, statistic.n_cases, n_groups))


def _mean_of_defined(values: list[Floats]) -> Floats:
    """[b], the mean of arrays [b] without NaN; sorted first, so that no order of classes changes a bit."""
    stacked = np.sort(np.stack(values), axis=0)
    there = ~np.isnan(stacked)
    return ratio(np.stack([np.where(there, stacked, 0.0).sum(axis=0), there.sum(axis=0)], axis=1))
