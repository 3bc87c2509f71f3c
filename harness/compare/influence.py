"""What single cases do to a rank statistic: its first-order expansion in the weights of the cases.

A statistic T of n cases becomes, under weights w near 1, T + Σ wᵢ·IFᵢ / Σ w; the influences IF sum to 0. Each of these
costs one sort, where resampling the statistic itself costs one a draw. x and y are [n], and so is what comes back; NaN
where the statistic is undefined.
Source: Hampel (1974); of AUROC, the structural components of DeLong, DeLong and Clarke-Pearson (1988).
"""

import numpy as np

from harness.compare.group import Codes, Floats
from harness.compare.rank import Ties


def auroc_influence(x: Floats, y: Floats) -> Floats:
    """Of P(x of a positive > x of a negative) + half P(equal)."""
    ties = Ties.among(x)
    ones = np.ones((1, len(x)))
    positive, negative = ties.weights(ones * y)[0], ties.weights(ones * (1 - y))[0]
    n_positive, n_negative = positive.sum(), negative.sum()
    if not n_positive or not n_negative:
        return np.full(len(x), np.nan)
    below = (np.cumsum(negative) - negative / 2)[ties.code] / n_negative
    above = (n_positive - np.cumsum(positive) + positive / 2)[ties.code] / n_positive
    value = float((positive * (np.cumsum(negative) - negative / 2)).sum() / (n_positive * n_negative))
    return np.asarray(len(x) * np.where(y > 0, (below - value) / n_positive, (above - value) / n_negative))


def average_precision_influence(x: Floats, y: Floats) -> Floats:
    """Of the mean precision at the positives' scores. A case moves the precision at every score not above its own."""
    ties = Ties.among(x)
    ones = np.ones((1, len(x)))
    positive, every = ties.weights(ones * y)[0], ties.weights(ones)[0]
    total = positive.sum()
    if not total:
        return np.full(len(x), np.nan)
    found, seen = (np.cumsum(each[::-1])[::-1] for each in (positive, every))
    precision = found / seen
    value = float((positive * precision).sum() / total)
    gain, loss = np.cumsum(positive / seen), np.cumsum(positive * precision / seen)
    own = np.where(y > 0, precision[ties.code] - value + gain[ties.code], 0.0)
    return np.asarray(len(x) / total * (own - loss[ties.code]))


def pearson_influence(x: Floats, y: Floats) -> Floats:
    """Of Pearson's correlation: the product of standard scores, less the correlation times their mean square."""
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.full(len(x), np.nan)
    scores = [(each - each.mean()) / each.std() for each in (x, y)]
    value = float((scores[0] * scores[1]).mean())
    return np.asarray(scores[0] * scores[1] - value * (scores[0] ** 2 + scores[1] ** 2) / 2)


def spearman_influence(x: Floats, y: Floats) -> Floats:
    """Of the correlation of midranks. A case has its own ranks, and moves those of all cases above it."""
    n = len(x)
    sides = Ties.among(x), Ties.among(y)
    sizes = [ties.weights(np.ones((1, n)))[0] for ties in sides]
    spread = [(n**3 - (size**3).sum()) / 12 for size in sizes]
    if min(spread) == 0:
        return np.full(n, np.nan)
    ranks = [(np.cumsum(size) - size / 2 - n / 2)[ties.code] for size, ties in zip(sizes, sides, strict=True)]
    moved = ranks[0] * ranks[1]
    for ties, other in zip(sides, reversed(ranks), strict=True):
        tied = ties.weights(other[None])[0]
        moved = moved + (tied.sum() - np.cumsum(tied) + tied / 2)[ties.code]
    scale = np.sqrt(spread[0]) * np.sqrt(spread[1])
    value = float((ranks[0] * ranks[1]).sum() / scale)
    own = [(n**2 - size**2)[ties.code] / 4 / s for size, ties, s in zip(sizes, sides, spread, strict=True)]
    return np.asarray(n * (moved / scale - value / 2 * (own[0] + own[1])))


def kendall_influence(x: Floats, y: Floats) -> Floats:
    """Of tau-b: how many cases each agrees with, less how many it disagrees with, and what it does to the ties."""
    n = len(x)
    sides = Ties.among(x), Ties.among(y)
    tied = [ties.weights(np.ones((1, n)))[0] for ties in sides]
    apart = [float(n) ** 2 - (size**2).sum() for size in tied]
    if min(apart) == 0:
        return np.full(n, np.nan)
    agree = agreements(sides[0].code, sides[1].code)
    scale = np.sqrt(apart[0]) * np.sqrt(apart[1])
    value = float(agree.sum() / scale)
    own = [(n - size[ties.code]) / s for size, ties, s in zip(tied, sides, apart, strict=True)]
    return np.asarray(n * (2 * agree / scale - value * (own[0] + own[1])))


def kendall(x: Floats, y: Floats) -> float:
    """Tau-b itself, of many cases: the same bits as by all pairs, for its sums are whole numbers."""
    sides = Ties.among(x), Ties.among(y)
    apart = [float(len(x)) ** 2 - (ties.weights(np.ones((1, len(x))))[0] ** 2).sum() for ties in sides]
    if min(apart) == 0:
        return float("nan")
    agree = agreements(sides[0].code, sides[1].code).sum()
    return float(np.clip(agree / (np.sqrt(apart[0]) * np.sqrt(apart[1])), -1.0, 1.0))


def agreements(x: Codes, y: Codes) -> Floats:
    """[n], the sum over all other cases of sign(xᵢ - xⱼ)·sign(yᵢ - yⱼ): whole numbers, in n·log²n steps.

    Source: Knight (1966), with counts by case in the place of their sum.
    """
    both_below = _dominated(x, y)
    pair = x * (int(y.max(initial=0)) + 1) + y
    same = _counts(pair)
    x_below, x_same, y_below, y_same = *_below(x), *_below(y)
    # Among equal x, those with a lower y, and the other way round: places within a tie.
    lower_y_same_x = _below_within(pair, x)
    lower_x_same_y = _below_within(y * (int(x.max(initial=0)) + 1) + x, y)
    left_up = x_below - both_below - lower_x_same_y
    right_down = y_below - both_below - lower_y_same_x
    both_above = len(x) - x_below - x_same - (y_below - both_below - lower_y_same_x) - (y_same - same - lower_x_same_y)
    return np.asarray(both_below + both_above - left_up - right_down, dtype=np.float64)


def _below(codes: Codes) -> tuple[Codes, Codes]:
    """How many cases lie below each, and how many are equal to it, itself included."""
    rising = np.sort(codes)
    below = np.searchsorted(rising, codes, "left")
    return below, np.searchsorted(rising, codes, "right") - below


def _counts(codes: Codes) -> Codes:
    return _below(codes)[1]


def _below_within(pair: Codes, outer: Codes) -> Codes:
    """How many cases of the same outer code have a lower pair."""
    return np.asarray(_below(pair)[0] - _below(outer)[0], dtype=np.intp)


def _dominated(x: Codes, y: Codes) -> Codes:
    """[n], how many cases lie below each in both x and y: a merge sort by y, bottom up, of cases in order of x."""
    n = len(x)
    order = np.lexsort((-y, x))  # of equal x the highest y first, so that none of them is counted for another
    inside, found = y[order].astype(np.int64), np.zeros(n, dtype=np.int64)
    who = np.arange(n)
    height = int(y.max(initial=0)) + 1
    width = 1
    while width < n:
        block = np.arange(n) // (2 * width) * height
        left = np.arange(n) // width % 2 == 0
        keys = block + inside
        found[who[~left]] += np.searchsorted(keys[left], keys[~left], "left") - np.searchsorted(
            keys[left], block[~left], "left"
        )
        merged = np.argsort(keys, kind="stable")
        inside, who = inside[merged], who[merged]
        width *= 2
    counts = np.empty(n, dtype=np.intp)
    counts[order] = found
    return counts
