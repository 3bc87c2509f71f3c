"""Rank statistics of weighted cases: a case of weight 3 counts as three tied cases."""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from harness.compare.group import Bools, Codes, Floats


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


def exchanged_spearman(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """Spearman [b] of x with y after masked cases [b, n] took the other side's x.

    The two sides exchange their ranks, not their values: a cosine and a logit share no scale.
    """
    ranks = rankdata(_exchanged_ranks(x, other, mask), axis=1)
    target = rankdata(y)
    ranks -= ranks.mean(axis=1, keepdims=True)
    target -= target.mean()
    scale = np.sqrt((ranks**2).sum(axis=1) * (target**2).sum())
    return np.asarray((ranks * target).sum(axis=1) / np.where(scale > 0, scale, np.nan))


def exchanged_auroc(x: Floats, other: Floats, y: Floats, mask: Bools) -> Floats:
    """AUROC [b] of x after masked cases [b, n] took the other side's x, by rank as in Spearman."""
    ranks = rankdata(_exchanged_ranks(x, other, mask), axis=1)
    n_positive = y.sum()
    pairs = n_positive * (len(y) - n_positive)
    wins = (ranks * y).sum(axis=1) - n_positive * (n_positive + 1) / 2
    return np.asarray(wins / pairs if pairs > 0 else np.full(len(mask), np.nan))


def _exchanged_ranks(x: Floats, other: Floats, mask: Bools) -> Floats:
    return np.asarray(np.where(mask, rankdata(other), rankdata(x)))
