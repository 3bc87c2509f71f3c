"""What a rule needs to know of a paired delta, and when the data are too plain to be resampled."""

from dataclasses import dataclass

import numpy as np
from scipy import special

from harness.compare.group import Codes, Floats
from harness.compare.interval import Interval, clopper_pearson, largest_share, no_spread
from harness.compare.statistic import AnyStatistic, Paired, as_mean, expanded

FEW_CHANGED_GROUPS = 10


@dataclass(frozen=True, slots=True)
class DeltaEvidence:
    """A paired delta (candidate minus parent) on the cases that both sides scored.

    `se` is by group, conditional on these weights, corpus and judgements. `mde` is the smallest true change that the
    rule would see at its α and power: it comes from `se` alone, never from the delta.
    """

    value: float
    parent_value: float
    delta: float
    interval: Interval
    se: float
    n_cases: int
    n_groups: int
    n_changed_groups: int
    mde: float


@dataclass(frozen=True, slots=True)
class Degenerate:
    """Evidence that a bootstrap cannot judge, with a bound that does not need one.

    `changed_share` bounds from above the share of cases, in the population, on which the two sides differ: the bound
    on the share of groups, with every changed group as large as the largest. `largest_loss` is that share times the
    metric's largest possible loss. Where it exceeds the margin the rule is
    undecided, but for `every_group_beyond`: all groups lost alike, and more than the margin.
    """

    reason: str
    changed_share: float
    largest_loss: float
    every_group_beyond: bool


def delta_evidence(
    paired: Paired, groups: Codes, *, interval: Interval, alpha: float, power: float = 0.8
) -> DeltaEvidence:
    """Evidence for one rule: groups [n], the delta's interval, and the one-sided α at which the rule decides."""
    se = standard_error(paired, groups)
    return DeltaEvidence(
        value=paired.candidate.value(),
        parent_value=paired.parent.value(),
        delta=paired.value(),
        interval=interval,
        se=se,
        n_cases=paired.n_cases,
        n_groups=len(np.unique(groups)),
        n_changed_groups=n_changed_groups(paired, groups),
        mde=mde(se, alpha, power),
    )


def n_changed_groups(paired: Paired, groups: Codes) -> int:
    """Groups in which the two sides differ on at least one case."""
    return len(np.unique(groups[paired.differs()]))


def standard_error(statistic: AnyStatistic, groups: Codes) -> float:
    """By group: of a mean, the linearised ratio estimator; of any other form, the jackknife. NaN for one group.

    Source: Cochran, Sampling Techniques, on ratio estimators; Tukey's jackknife.
    """
    by_group = statistic.by_group(groups, int(groups.max()) + 1)
    g = len(by_group.present)
    if g < 2:
        return float("nan")
    mean = as_mean(statistic) or expanded(statistic)
    if mean:
        total, size = mean.by_group(groups, int(groups.max()) + 1).columns[by_group.present].T
        residual = total - total.sum() / size.sum() * size
        return float(np.sqrt(g / (g - 1) * (residual**2).sum()) / size.sum())
    return _spread(by_group.leave_one_out())


def jackknife_error(statistic: AnyStatistic, groups: Codes) -> float:
    """The standard error by leaving out one group at a time, of any form. NaN for one group.

    Source: Tukey (1958).
    """
    return _spread(statistic.by_group(groups, int(groups.max()) + 1).leave_one_out())


def _spread(left_out: Floats) -> float:
    g = len(left_out)
    if g < 2:
        return float("nan")
    return float(np.sqrt((g - 1) / g * ((left_out - left_out.mean()) ** 2).sum()))


def mde(se: float, alpha: float, power: float = 0.8) -> float:
    """The smallest true change that a one-sided test at α sees with this power: (z₁₋α + z_power) × SE."""
    return float(special.ndtri(1 - alpha) + special.ndtri(power)) * se


def degenerate(
    paired: Paired,
    groups: Codes,
    *,
    margin: float,
    worst_loss: float,
    level: float = 0.95,
    higher_is_better: bool = True,
) -> Degenerate | None:
    """Whether a delta's evidence is degenerate: no spread between groups, or fewer than ten groups that changed.

    `worst_loss` is the most that the metric can lose on a group, in its own units and positive (1 for nDCG). Of a
    metric that is no mean of bounded cases it is found to first order: a changed group moves it by at most twice what
    the parent's most telling group does now; where no group does, by all that it can.
    None where the evidence can be resampled. Source of the bound: Clopper and Pearson (1934).
    """
    left_out = paired.jackknife(groups)
    g, changed = len(left_out), n_changed_groups(paired, groups)
    spreadless = no_spread(left_out)
    if not spreadless and changed >= FEW_CHANGED_GROUPS:
        return None
    share = largest_share(clopper_pearson(changed, g, level).high, groups)
    if as_mean(paired) is None or not np.isfinite(worst_loss):
        worst_loss = min(worst_loss, _first_order(paired, groups))
    loss = -paired.value() if higher_is_better else paired.value()
    return Degenerate(
        reason="no spread between groups" if spreadless and changed else f"{changed} of {g} groups changed",
        changed_share=share,
        largest_loss=share * worst_loss,
        every_group_beyond=spreadless and loss > margin,
    )


def _first_order(paired: Paired, groups: Codes) -> float:
    """What all groups together could lose were each changed: twice the largest move that leaving one out makes."""
    left_out = paired.parent.by_group(groups, int(groups.max()) + 1).leave_one_out()
    moves = np.abs(left_out - paired.parent.value())
    largest = float(np.nanmax(moves)) if not np.isnan(moves).all() else 0.0
    return 2 * largest * len(left_out) if largest > 0 else float("inf")
