"""How a readout's result moves with what went in, for checks against finite differences.

`upstream` is the gradient of some loss by the result, in the result's shape; each function gives that loss's gradient
by the inputs, in their shapes. A masked row's gradient is 0.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.readout.interaction import maxsim, row_similarities
from harness.readout.pooling import Attention, attention_weights
from harness.readout.probability import softmax
from harness.readout.sparse import LOGARITHMS, Activation
from harness.rows.mask import Bools, Floats, kept

Array = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class LinearGradient:
    """Of `x Wᵀ + b`. Shapes: x [w_in], weight [w_out, w_in], bias [w_out]."""

    x: Floats
    weight: Floats
    bias: Floats


@dataclass(frozen=True, slots=True)
class AttentionGradient:
    """Of `multi_hop`. Shapes: rows [r, d], inner [a, d], bias [a], outer [hops, a]."""

    rows: Floats
    inner: Floats
    bias: Floats
    outer: Floats


@dataclass(frozen=True, slots=True)
class PairGradient:
    """Of a score between rows. Shapes: query [q, w], document [k, w]."""

    query: Floats
    document: Floats


def linear(x: Array, weight: Array, upstream: Array) -> LinearGradient:
    """Shapes: x [w_in], weight [w_out, w_in], upstream [w_out]."""
    return LinearGradient(upstream @ weight, np.outer(upstream, x), upstream.astype(np.float64))


def l2(x: Array, epsilon: float, upstream: Array) -> Floats:
    """[w]. Along x itself nothing moves, unless x is shorter than `epsilon`."""
    length = float(np.sqrt(np.sum(x * x)))
    if length <= epsilon:
        return np.asarray(upstream / epsilon, dtype=np.float64)
    unit = x / length
    return (upstream - unit * np.sum(unit * upstream)) / length


def maximum(rows: Array, mask: Bools, upstream: Array) -> Floats:
    """[r, d]: in each dimension all of it goes to the row that won, the first among equals."""
    best = np.flatnonzero(mask)[kept(rows, mask).argmax(axis=0)]
    gradient = np.zeros(rows.shape)
    gradient[best, np.arange(rows.shape[1])] = upstream
    return gradient


def sparse_pool(
    logits: Array, mask: Bools, activation: Activation, mode: Literal["max", "sum"], upstream: Array
) -> Floats:
    """[r, v]: by `sum` each counted row moves its own weight; by `max` the row that won does, the first among equals.

    A logit that isn't above 0 moves nothing.
    """
    counted = kept(logits, mask)
    slope, inner = np.where(counted > 0, 1.0, 0.0), np.maximum(counted, 0)
    for _ in range(LOGARITHMS[activation]):
        slope, inner = slope / (1 + inner), np.log1p(inner)
    share = np.ones_like(inner) if mode == "sum" else (np.arange(len(inner))[:, None] == inner.argmax(axis=0))
    gradient = np.zeros(logits.shape)
    gradient[mask] = slope * share * upstream
    return gradient


def multi_hop(rows: Array, mask: Bools, by: Attention, upstream: Array) -> AttentionGradient:
    """Shapes: upstream [hops · d]."""
    counted = kept(rows, mask)
    by_hop = upstream.reshape(len(by.outer), -1)
    weights = attention_weights(rows, mask, by)
    by_weight = by_hop @ counted.T
    by_score = weights * (by_weight - np.sum(weights * by_weight, axis=1, keepdims=True))
    hidden = np.tanh(counted @ by.inner.T + (0.0 if by.bias is None else by.bias))
    by_linear = (by_score.T @ by.outer) * (1 - hidden**2)
    by_rows = np.zeros(rows.shape)
    by_rows[mask] = weights.T @ by_hop + by_linear @ by.inner
    return AttentionGradient(by_rows, by_linear.T @ counted, by_linear.sum(axis=0), by_score @ hidden)


def of_maxsim(query: Array, document: Array) -> PairGradient:
    """Each query row moves with the document row that it chose, the first among equals, and no other."""
    best = maxsim(query, document).best
    by_document = np.zeros(document.shape)
    np.add.at(by_document, best, query)
    return PairGradient(document[best].astype(np.float64), by_document)


def of_smooth_maxsim(query: Array, document: Array, temperature: float) -> PairGradient:
    """Each query row moves with all document rows, by the softmax of its similarities."""
    shares = softmax(row_similarities(query, document), temperature)
    return PairGradient(shares @ document, shares.T @ query)
