"""Intervals: the bootstrap over whole groups, and exact ones for rates."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy import special

from harness.compare.draw import DRAWN, Resample, over_draws
from harness.compare.group import Additive, ByGroup, Codes, Expanded, Floats
from harness.compare.statistic import AnyStatistic, Grouped, as_mean

Method: TypeAlias = Literal["bca", "percentile"]

FOLDED = "a distance from a right value"
BROUGHT = 1 << 25
"""Numbers that groups bring to statistics, held at once: 256 MB."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided interval; `method` names how it was found, and why it was not found as asked.

    NaN ends: undefined. An infinite end: nothing bounds it. `draws` is 0 for an exact interval.
    """

    low: float
    high: float
    method: str
    draws: int


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """One side's statistic, its groups [n], and the least and the greatest value that the metric can take."""

    statistic: AnyStatistic
    groups: Codes
    lowest: float = 0.0
    highest: float = 1.0


def bootstrap(
    statistic: AnyStatistic, groups: Codes, *, resample: Resample, method: Method = "bca", level: float = 0.95
) -> Interval:
    """The interval of a statistic, or of a paired delta, whole groups resampled. See `bootstrap_many`."""
    return bootstrap_many([Grouped(statistic, groups)], resample=resample, method=method, level=level)[0]


def bootstrap_many(
    members: Sequence[Grouped], *, resample: Resample, method: Method = "bca", level: float = 0.95
) -> list[Interval]:
    """Intervals of many statistics under the same draws: the bytes that each would get alone.

    The estimand is the statistic over cases (of a mean: a ratio of sums), so the number of cases varies with the
    groups drawn. Draws in which the statistic is undefined are left out and named; where their share is above
    1 - level, so is the interval. BCa falls back to percentiles where its correction is undefined, and says so.
    Source: Efron (1987), Better bootstrap confidence intervals, with groups in the place of observations.
    """
    intervals = []
    for by_group in _at_once(members, resample):
        drawn = over_draws(by_group, resample)
        intervals += [_from_draws(row, one, method, level) for row, one in zip(drawn, by_group, strict=True)]
    return intervals


def _at_once(members: Sequence[Grouped], resample: Resample) -> Iterator[list[ByGroup]]:
    """Members by group, so many at a time as memory allows: what they bring, and what is drawn of them."""
    chunk: list[ByGroup] = []
    brought = 0
    for member in members:
        one = member.statistic.by_group(member.groups, resample.n_groups)
        size = one.columns.size if isinstance(one, Additive) else 0
        if chunk and (brought + size > BROUGHT or (len(chunk) + 1) * resample.draws > DRAWN):
            yield chunk
            chunk, brought = [], 0
        chunk.append(one)
        brought += size
    if chunk:
        yield chunk


def side_intervals(
    sides: Sequence[Side], *, resample: Resample, method: Method = "bca", level: float = 0.95
) -> list[Interval]:
    """One side's own intervals, for floors and the table of metrics.

    A rate (values 0 and 1 of a metric that takes none beyond, each group one case) has its Clopper-Pearson interval. A
    statistic without spread between groups shows no uncertainty to a bootstrap: there, the share of groups that might
    differ is bounded by Clopper-Pearson and each taken to be as far off as the metric allows. All else is bootstrapped
    by group.
    """
    found = {i: _without_draws(side, level) for i, side in enumerate(sides)}
    rest = [i for i, interval in found.items() if interval is None]
    members = [Grouped(sides[i].statistic, sides[i].groups) for i in rest]
    drawn = bootstrap_many(members, resample=resample, method=method, level=level)
    by_draws = dict(zip(rest, drawn, strict=True))
    return [exact or by_draws[i] for i, exact in found.items()]


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Interval:
    """The exact interval of a rate: covers at least `level`. Source: Clopper and Pearson (1934)."""
    tail = (1 - level) / 2
    low = float(special.betaincinv(successes, n - successes + 1, tail)) if successes > 0 else 0.0
    high = float(special.betaincinv(successes + 1, n - successes, 1 - tail)) if successes < n else 1.0
    return Interval(low, high, "clopper-pearson", 0)


def wilson(successes: int, n: int, level: float = 0.95) -> Interval:
    """The score interval of a rate: covers `level` on average. Source: Wilson (1927)."""
    z = float(special.ndtri((1 + level) / 2))
    rate = successes / n
    centre = (rate + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * float(np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n)))
    low = 0.0 if successes == 0 else centre - half
    high = 1.0 if successes == n else centre + half
    return Interval(low, high, "wilson", 0)


def largest_share(of_groups: float, groups: Codes) -> float:
    """The greatest share of cases that a share of groups can hold, where each is as large as the largest in [n]."""
    sizes = np.bincount(groups)
    n_groups = np.count_nonzero(sizes)
    return float(min(1.0, of_groups * n_groups * sizes.max() / sizes.sum()))


def no_spread(left_out: Floats) -> bool:
    """Whether leaving out any group [p] leaves the statistic where it is."""
    return bool(np.ptp(left_out) <= 1e-12 * max(1.0, float(np.abs(left_out).max())))


def _without_draws(side: Side, level: float) -> Interval | None:
    present = np.unique(side.groups)
    mean = as_mean(side.statistic)
    rate = mean and (side.lowest, side.highest) == (0, 1) and np.isin(mean.values, (0, 1)).all()
    if mean and rate and len(present) == mean.n_cases:
        return clopper_pearson(int(mean.values.sum()), mean.n_cases, level)
    left_out = side.statistic.by_group(side.groups, int(present[-1]) + 1).leave_one_out()
    if not no_spread(left_out):
        return None
    value = side.statistic.value()
    share = largest_share(clopper_pearson(0, len(present), level).high, side.groups)
    return Interval(
        value - share * (value - side.lowest),
        value + share * (side.highest - value),
        f"clopper-pearson over groups (no spread over {len(present)})",
        0,
    )


def _from_draws(drawn: Floats, statistic: ByGroup, method: Method, level: float) -> Interval:
    if len(statistic.present) < 2:
        return Interval(np.nan, np.nan, "undefined: one group", len(drawn))
    defined = drawn[~np.isnan(drawn)]
    n_undefined = len(drawn) - len(defined)
    note = f"; {n_undefined} of {len(drawn)} draws undefined" if n_undefined else ""
    observed = statistic.whole()
    if np.isnan(observed) or n_undefined > (1 - level) * len(drawn):
        return Interval(np.nan, np.nan, "undefined" + note, len(drawn))
    tails = np.array([(1 - level) / 2, (1 + level) / 2])
    name: str = method
    if method == "bca":
        # The bias correction takes the fold for a bias, and would give an interval that holds next to nothing.
        folded = isinstance(statistic, Expanded) and statistic.folded
        corrected = FOLDED if folded else _bca_tails(tails, defined, observed, statistic.leave_one_out())
        if isinstance(corrected, str):
            name = f"percentile (BCa undefined: {corrected})"
        else:
            tails = corrected
    if isinstance(statistic, Additive) and statistic.remark:
        name = f"{name}, {statistic.remark}"
    low, high = np.quantile(defined, tails)
    return Interval(float(low), float(high), name + note, len(drawn))


def _bca_tails(tails: Floats, drawn: Floats, observed: float, left_out: Floats) -> Floats | str:
    """The quantiles to read instead of `tails`, or in words why there are none."""
    if np.isnan(left_out).any():
        return "the statistic is undefined without one of the groups"
    if no_spread(left_out):
        return "no spread in the jackknife"
    gap = drawn - observed
    tie = np.abs(gap) <= 1e-9 * np.abs(gap).max()
    below = (np.count_nonzero((gap < 0) & ~tie) + np.count_nonzero(tie) / 2) / len(drawn)
    if below in (0.0, 1.0):
        return "every draw on one side of the estimate"
    influence = left_out.mean() - left_out
    acceleration = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    z0 = special.ndtri(below)
    z = z0 + special.ndtri(tails)
    shrink = 1 - acceleration * z
    if (shrink <= 0).any():
        return "the acceleration is too large"
    return np.asarray(special.ndtr(z0 + z / shrink))
