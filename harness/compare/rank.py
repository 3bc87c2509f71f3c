"""Correlations and orderings of weighted cases: a case of weight 3 counts as three tied cases."""

from dataclasses import dataclass

import numpy as np

from harness.compare.group import CELLS, Bools, Codes, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """Values coded by rank: cases with equal values share a code. Shapes: code [n], order [n], starts [u]."""

    code: Codes
    order: Codes
    starts: Codes

    @classmethod
    def among(cls, values: Floats) -> "Ties":
        _, code = np.unique(values, return_inverse=True)
        order = np.argsort(code, kind="stable")
        starts = np.flatnonzero(np.diff(code[order], prepend=-1))
        return cls(code, order, starts)

    def weights(self, weights: Floats) -> Floats:
        """[b, u] weight of every distinct value, from weights [b, n]."""
        return np.asarray(np.add.reduceat(weights[:, self.order], self.starts, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """The distinct (x, y) of cases, in an order that theirs doesn't change. Shapes: x and y [p]; ties of n cases."""

    x: Ties
    y: Ties
    ties: Ties
    first: Codes

    @classmethod
    def among(cls, x: Floats, y: Floats) -> "Points":
        sides = Ties.among(x), Ties.among(y)
        ties = Ties.among((sides[0].code * (len(y) + 1) + sides[1].code).astype(np.float64))
        return cls(*sides, ties, ties.order[ties.starts])

    def varied(self, weights: Floats) -> Bools:
        """[b], whether both sides have two or more values under weights [b, n]."""
        enough = [(side.weights(weights) > 0).sum(axis=1) > 1 for side in (self.x, self.y)]
        return np.asarray(enough[0] & enough[1])


def weighted_pearson(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Pearson's correlation, [b] in [-1, 1], under weights [b, n]; undefined (NaN) where x or y has one value."""
    points = Points.among(x, y)
    held = points.ties.weights(weights)
    total = held.sum(axis=1, keepdims=True)
    apart = []
    for side in (x[points.first], y[points.first]):
        with np.errstate(invalid="ignore"):
            apart.append(side - (held * side).sum(axis=1, keepdims=True) / total)
    product = (held * apart[0] * apart[1]).sum(axis=1)
    spread = [np.where(points.varied(weights), (held * each**2).sum(axis=1), np.nan) for each in apart]
    return np.asarray(np.clip(product / (np.sqrt(spread[0]) * np.sqrt(spread[1])), -1.0, 1.0))


def weighted_spearman(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Pearson correlation of midranks, [b] in [-1, 1], under weights [b, n].

    Undefined (NaN) where one side has fewer than two distinct values of positive weight.
    """
    total = weights.sum(axis=1)
    centred, spread, enough = [], [], np.ones(len(weights), dtype=bool)
    for ties in (Ties.among(x), Ties.among(y)):
        tied = ties.weights(weights)
        midrank = np.cumsum(tied, axis=1) - tied / 2
        centred.append((midrank - total[:, None] / 2)[:, ties.code])
        # The variance of midranks in closed form: Kendall's correction for ties, times the weight.
        spread.append((total**3 - (tied**3).sum(axis=1)) / 12)
        enough &= (tied > 0).sum(axis=1) > 1
    product = (weights * centred[0] * centred[1]).sum(axis=1)
    scale = np.sqrt(np.where(enough, spread[0] * spread[1], np.nan))
    return np.asarray(np.clip(product / scale, -1.0, 1.0))


def weighted_auroc(x: Floats, y: Floats, weights: Floats) -> Floats:
    """P(x of a positive > x of a negative) + half P(equal), [b] in [0, 1], under weights [b, n]; y is 0 or 1.

    Undefined (NaN) without weight on both classes.
    """
    ties = Ties.among(x)
    positive = ties.weights(weights * y)
    negative = ties.weights(weights * (1 - y))
    below = np.cumsum(negative, axis=1) - negative / 2
    pairs = positive.sum(axis=1) * negative.sum(axis=1)
    return np.asarray((positive * below).sum(axis=1) / np.where(pairs > 0, pairs, np.nan))


def weighted_average_precision(x: Floats, y: Floats, weights: Floats) -> Floats:
    """The mean precision at the positives' scores, [b] in [0, 1], under weights [b, n]; y is 0 or 1.

    At a score the whole tied group counts as found. Undefined (NaN) without weight on a positive.
    """
    ties = Ties.among(x)
    positive, every = ties.weights(weights * y), ties.weights(weights)
    found, seen = (np.cumsum(each[:, ::-1], axis=1)[:, ::-1] for each in (positive, every))
    precision = found / np.where(seen > 0, seen, 1.0)
    total = positive.sum(axis=1)
    return np.asarray((positive * precision).sum(axis=1) / np.where(total > 0, total, np.nan))


def weighted_kendall(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Kendall's tau-b, [b] in [-1, 1], under weights [b, n]; undefined (NaN) where x or y has one value of weight.

    Its sums are whole numbers, so exact, where the weights are. Costs the square of the distinct (x, y) points.
    """
    points = Points.among(x, y)
    codes = [side.code[points.first] for side in (points.x, points.y)]
    held = points.ties.weights(weights)
    total = held.sum(axis=1)
    agree = np.zeros(len(weights))
    rows = max(1, CELLS // len(points.first))
    for start in range(0, len(points.first), rows):
        block = slice(start, start + rows)
        signs = [np.sign(code[block, None] - code[None, :]) for code in codes]
        agree += (held[:, block] * (held @ (signs[0] * signs[1]).T.astype(np.float64))).sum(axis=1)
    apart = [total**2 - (side.weights(weights) ** 2).sum(axis=1) for side in (points.x, points.y)]
    scale = np.where(points.varied(weights), np.sqrt(apart[0]) * np.sqrt(apart[1]), np.nan)
    return np.asarray(np.clip(agree / scale, -1.0, 1.0))


def exchanged_pearson(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """Pearson's correlation [b] of x with y after masked cases [b, n] took the other side's x.

    The two sides exchange their standard scores, not their values: a cosine and a logit share no scale.
    """
    return _correlation(np.where(mask, _standard(other), _standard(x)), y)


def exchanged_spearman(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """Spearman [b] of x with y after masked cases [b, n] took the other side's x.

    The two sides exchange their ranks, not their values: a cosine and a logit share no scale.
    """
    return _correlation(_ranks(_exchanged_ranks(x, other, mask)), _ranks(y))


def exchanged_auroc(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """AUROC [b] of x after masked cases [b, n] took the other side's x, by rank as in Spearman."""
    ranks = _ranks(_exchanged_ranks(x, other, mask))
    n_positive = y.sum()
    pairs = n_positive * (len(y) - n_positive)
    wins = (ranks * y).sum(axis=1) - n_positive * (n_positive + 1) / 2
    return np.asarray(wins / pairs if pairs > 0 else np.full(len(mask), np.nan))


def exchanged_average_precision(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """Average precision [b] of x after masked cases [b, n] took the other side's x, by rank as in Spearman."""
    ranks = _exchanged_ranks(x, other, mask)
    order = np.argsort(-ranks, axis=1, kind="stable")
    ranks, gold = np.take_along_axis(ranks, order, axis=1), y[order]
    place = np.arange(len(y))
    precision = np.cumsum(gold, axis=1) / (place + 1)
    last = np.diff(ranks, axis=1, append=-1.0) != 0
    group_end = np.minimum.accumulate(np.where(last, place, len(y))[:, ::-1], axis=1)[:, ::-1]
    total = (gold * np.take_along_axis(precision, group_end, axis=1)).sum(axis=1)
    return np.asarray(total / (y.sum() or np.nan))


def exchanged_kendall(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """Kendall's tau-b [b] of x after masked cases [b, n] took the other side's x, by rank as in Spearman."""
    ranks = _ranks(x), _ranks(other)
    sides = (~mask).astype(np.float64), mask.astype(np.float64)
    agree, tied = np.zeros(len(mask)), np.zeros(len(mask))
    rows = max(1, CELLS // len(y))
    for start in range(0, len(y), rows):
        block = slice(start, start + rows)
        order = np.sign(y[block, None] - y[None, :])
        for mine, one in zip(ranks, sides, strict=True):
            for theirs, another in zip(ranks, sides, strict=True):
                gap = mine[block, None] - theirs[None, :]
                agree += (one[:, block] * (another @ (np.sign(gap) * order).T)).sum(axis=1)
                tied += (one[:, block] * (another @ (gap == 0).T.astype(np.float64))).sum(axis=1)
    apart = (len(y) ** 2 - tied) * (len(y) ** 2 - (np.unique(y, return_counts=True)[1] ** 2).sum())
    return np.asarray(agree / np.sqrt(np.where(apart > 0, apart, np.nan)))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1 on along the last axis, of equal values their mean."""
    # Half a second to import, which most runs never need.
    from scipy.stats import rankdata

    return np.asarray(rankdata(values, axis=-1))


def _exchanged_ranks(x: Floats, other: Floats, mask: Bools) -> Floats:
    return np.asarray(np.where(mask, _ranks(other), _ranks(x)))


def _correlation(x: Floats, y: Floats) -> Floats:
    """[b], of rows x [b, n] with y [n]; NaN where either is constant."""
    x, y = x - x.mean(axis=1, keepdims=True), y - y.mean()
    scale = np.sqrt((x**2).sum(axis=1) * (y**2).sum())
    return np.asarray((x * y).sum(axis=1) / np.where(scale > 0, scale, np.nan))


def _standard(values: Floats) -> Floats:
    spread = values.std() if np.ptp(values) > 0 else 1.0
    return np.asarray((values - values.mean()) / spread)
