"""Tests of "the candidate is worse by more than the margin", by exchanging candidate and parent in whole groups.

If nothing changed, either side might have been called the candidate, in each group by itself. p is the share of such
exchanges that make the candidate look at least as bad as it does, with the +1 for the labels as they are: it is
never below 1/(draws + 1), and at most α with probability at most α.
"""

from collections.abc import Sequence

import numpy as np
from scipy import special

from harness.compare.draw import DRAWN, SignFlips, over_draws
from harness.compare.group import Additive, ByGroup, Codes, Expanded, Floats, group_sums, groups_present, on_grid
from harness.compare.statistic import Grouped, Mean, Paired, as_mean, expanded
from harness.errors import Misconfigured


def sign_flip(
    deltas: Floats, groups: Codes, *, flips: SignFlips, margin: float = 0.0, higher_is_better: bool = True
) -> float:
    """p [0, 1] that the mean of deltas [n] is not below -margin (for a loss: not above margin).

    Studentised: the mean over its standard error by group, both anew for every draw. Each group's sum is taken from
    the margin before its sign is flipped, so the null is the margin itself.
    """
    zeros = np.zeros(len(deltas))
    member = Grouped(Paired(Mean(deltas), Mean(zeros)), groups)
    return float(worse_p([member], flips=flips, margin=margin, higher_is_better=[higher_is_better])[0])


def label_swap(
    paired: Paired, groups: Codes, *, flips: SignFlips, margin: float = 0.0, higher_is_better: bool = True
) -> float:
    """p [0, 1] that a delta of any form is not below -margin; NaN where the delta is undefined.

    The margin moves the distribution under exchange; its shape is taken to be that of no change. A draw in which
    the delta is undefined counts against rejecting.
    """
    swap = _swaps(paired, groups, flips.n_groups, 1.0 if higher_is_better else -1.0)
    return float(_share_as_bad([swap], [margin], flips)[0])


def worse_p(
    members: Sequence[Grouped], *, flips: SignFlips, higher_is_better: Sequence[bool], margin: float = 0.0
) -> Floats:
    """p [m] of a family under the same draws: `sign_flip` for means, `label_swap` for every other form; of rank
    statistics of very many cases `sign_flip` of their pseudo-values. Raises Misconfigured for what is no pair.
    """
    asked, margins = [], []
    for member, higher in zip(members, higher_is_better, strict=True):
        if not isinstance(member.statistic, Paired):
            raise Misconfigured(
                "a test of being worse",
                found=type(member.statistic).__name__,
                expected="a pair of candidate and parent",
                mend="Pair both sides' statistics first.",
            )
        # Of very many cases' ranks, the pseudo-values are exchanged in sign: no draw sorts all cases anew.
        mean, sign = as_mean(member.statistic) or expanded(member.statistic), 1.0 if higher else -1.0
        if mean:
            asked.append(_flips(sign * mean.values + margin, member.groups, flips.n_groups))
            margins.append(0.0)
        else:
            asked.append(_swaps(member.statistic, member.groups, flips.n_groups, sign))
            margins.append(margin)
    return _share_as_bad(asked, margins, flips)


def mcnemar_exact(parent_only: int, candidate_only: int) -> float:
    """Two-sided p that cases right on one side alone fall to either side alike. Source: McNemar (1947), exact form."""
    fewer, n = min(parent_only, candidate_only), parent_only + candidate_only
    return min(1.0, 2 * float(special.bdtr(fewer, n, 0.5))) if n else 1.0


def _flips(shifted: Floats, groups: Codes, n_groups: int) -> ByGroup:
    """Student's t of a ratio of sums as a function of the groups' signs [b, g]."""
    present = groups_present(groups, len(shifted), n_groups)
    sums = group_sums(np.stack([shifted, np.ones(len(shifted))], axis=1), groups, n_groups)
    total, size = sums[:, 0], sums[:, 1]
    squares, sizes_squared, n = (total**2).sum(), (size**2).sum(), size.sum()

    def t(signed: Floats) -> Floats:
        # Σ (±total - mean·size)² without the groups one by one: a sign leaves its square as it is.
        mean = signed[:, 0] / n
        spread = squares - 2 * mean * signed[:, 1] + mean**2 * sizes_squared
        with np.errstate(invalid="ignore", divide="ignore"):
            value = signed[:, 0] / np.sqrt(np.where(spread > 1e-12 * squares, spread, 0.0))
        return np.where(signed[:, 0] == 0, 0.0, value)

    return Additive(on_grid(np.stack([total, total * size], axis=1), n_groups), t, present)


def _swaps(paired: Paired, groups: Codes, n_groups: int, sign: float) -> ByGroup:
    """The delta, better when higher, as a function of signs [b, g]; -1 exchanges a group's two sides."""
    candidate = paired.candidate.by_group(groups, n_groups)
    parent = paired.parent.by_group(groups, n_groups)
    if not (isinstance(candidate, Additive) and isinstance(parent, Additive)):
        return Expanded(lambda signs: sign * paired.swapped(signs < 0), groups, candidate.present)
    gap = on_grid(parent.columns - candidate.columns, n_groups)
    whole = candidate.columns.sum(axis=0), parent.columns.sum(axis=0), gap.sum(axis=0)

    def delta(signed: Floats) -> Floats:
        moved = (whole[2] - signed) / 2
        return sign * (candidate.finish(whole[0] + moved) - parent.finish(whole[1] - moved))

    return Additive(gap, delta, candidate.present)


def _share_as_bad(asked: Sequence[ByGroup], margins: Sequence[float], flips: SignFlips) -> Floats:
    p = np.empty(len(asked))
    at_once = max(1, DRAWN // flips.draws)
    for start in range(0, len(asked), at_once):
        some = asked[start : start + at_once]
        for i, (statistic, row) in enumerate(zip(some, over_draws(some, flips), strict=True), start):
            threshold = statistic.whole() + margins[i]
            if np.isfinite(threshold):
                threshold += 1e-9 * max(1e-3, abs(threshold))  # equal but for rounding is as bad
            as_bad = np.count_nonzero(~(row > threshold))
            p[i] = np.nan if np.isnan(threshold) else (1 + as_bad) / (1 + flips.draws)
    return p
