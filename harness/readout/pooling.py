"""From the counted rows of one text to one vector.

Shapes throughout: rows [r, d], mask [r] bool where True counts, result [d] float64 unless said. Masked rows are left
out before the reduction, so their values, NaN among them, never matter. All raise EmptySlice when no row counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice, Misconfigured
from harness.readout.projection import Dense, dense
from harness.rows.mask import Bools, Floats, Ints, kept, physical_positions

Rows = NDArray[np.floating]


def first(rows: Rows, mask: Bools) -> Floats:
    """The first counted row, wherever padding stands."""
    row: Floats = kept(rows, mask)[0]
    return row


def physical_first(rows: Rows, mask: Bools) -> Floats:
    """The first column's row, though it be padding. At least one row must count all the same."""
    kept(rows, mask)
    row: Floats = rows[0].astype(np.float64)
    return row


def last(rows: Rows, mask: Bools) -> Floats:
    """The last counted row, wherever padding stands."""
    row: Floats = kept(rows, mask)[-1]
    return row


def boundary(rows: Rows, mask: Bools) -> Floats:
    """The first and the last counted row, joined [2d]; the same row twice when only one counts."""
    return kept(rows, mask)[[0, -1]].ravel()


def mean(rows: Rows, mask: Bools) -> Floats:
    """The sum of the n counted rows over n."""
    counted = kept(rows, mask)
    return np.asarray(counted.sum(axis=0) / len(counted))


def mean_sqrt(rows: Rows, mask: Bools) -> Floats:
    """The sum of the n counted rows over √n."""
    counted = kept(rows, mask)
    return np.asarray(counted.sum(axis=0) / np.sqrt(len(counted)))


def maximum(rows: Rows, mask: Bools) -> Floats:
    """The largest value of the counted rows in each dimension, also where all are negative."""
    return np.asarray(kept(rows, mask).max(axis=0))


def weighted_mean(rows: Rows, mask: Bools, weights: NDArray[np.floating] | Ints) -> Floats:
    """The counted rows' sum, each times its weight, over the sum of the counted rows' weights.

    Shapes: weights [r]. Raises Misconfigured for a counted weight below 0 or not finite, or when all are 0.
    """
    counted = kept(rows, mask)
    share = weights[mask].astype(np.float64)
    mass = share.sum()
    if not np.isfinite(share).all() or (share < 0).any() or mass == 0:
        raise Misconfigured(
            "pooling weights",
            found=f"weights from {share.min()} to {share.max()} with the sum {mass}",
            expected="finite weights of at least 0, not all of them 0",
            mend="Take them from positions of the rows that count.",
        )
    return np.asarray(share @ counted / mass)


def weighted_by_content(rows: Rows, mask: Bools, positions: Ints) -> Floats:
    """Weighted mean by positions [r] that count from the text's first row, so padding never moves them.

    The positions are those of the attended rows: a prompt that is left out leaves the other rows their weights.
    """
    return weighted_mean(rows, mask, positions)


def weighted_by_column(rows: Rows, mask: Bools) -> Floats:
    """Weighted mean by physical column, from 1: left padding changes the vector."""
    return weighted_mean(rows, mask, physical_positions(len(rows)))


def bert_pooler(rows: Rows, mask: Bools, by: Dense) -> Floats:
    """The physical first row through a dense map and tanh, as BERT's own pooler has it.

    Raises Misconfigured for another activation.
    """
    if by.activation != "tanh":
        raise Misconfigured(
            "BERT pooler", found=f"activation '{by.activation}'", expected="tanh", mend="Use a dense projection."
        )
    return dense(physical_first(rows, mask), by)


@dataclass(frozen=True, slots=True, eq=False)
class Attention:
    """Weights of the rows that were learned: softmax over the counted rows of `outer tanh(inner h + bias)`.

    Shapes: inner [a, d], bias [a], outer [hops, a].
    Source: Lin et al., A structured self-attentive sentence embedding, ICLR 2017 (there without a bias).
    """

    inner: NDArray[np.floating]
    bias: NDArray[np.floating] | None
    outer: NDArray[np.floating]


def attention_weights(rows: Rows, mask: Bools, by: Attention) -> Floats:
    """[hops, c], over the counted rows alone; each hop's weights are at least 0 and sum to 1."""
    linear = kept(rows, mask) @ by.inner.astype(np.float64).T
    scores = by.outer.astype(np.float64) @ np.tanh(linear if by.bias is None else linear + by.bias).T
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


def attention(rows: Rows, mask: Bools, by: Attention) -> Floats:
    """The counted rows weighted by one hop of attention. Raises Misconfigured where there are several."""
    if len(by.outer) != 1:
        raise Misconfigured(
            "attention pooling",
            found=f"{len(by.outer)} hops",
            expected="one",
            mend="Use `multi_hop`, which joins them.",
        )
    return multi_hop(rows, mask, by)


def multi_hop(rows: Rows, mask: Bools, by: Attention) -> Floats:
    """The counted rows weighted by each hop of attention, joined in the order of the hops [hops · d]."""
    return (attention_weights(rows, mask, by) @ kept(rows, mask)).ravel()


def concatenate(vectors: Sequence[Floats]) -> Floats:
    """The vectors joined in their order. Raises EmptySlice when there are none."""
    if not vectors:
        raise EmptySlice("pooling modes", found="none", expected="at least one", mend="Name the modes to join.")
    return np.concatenate(vectors)
