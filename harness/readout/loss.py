"""What training objectives mean, and their gradients: lower is better, and each is a mean over what is counted.

A `…_gradient` is that of the loss by its first argument, in that argument's shape.
"""

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice, Misconfigured
from harness.readout.probability import log_softmax, sigmoid, softmax
from harness.rows.mask import Bools, Floats, Ints

Array = NDArray[np.floating]


def cross_entropy(logits: Array, labels: Ints, temperature: float, ignored: int | None) -> float:
    """The mean of -log softmax(logits / T) at the label. Shapes: logits [n, c], labels [n].

    Rows whose label is `ignored` are left out of both sum and count. Raises EmptySlice when no row is left.
    """
    rows = _labelled(labels, ignored)
    return float(-np.mean(log_softmax(logits[rows], temperature)[np.arange(len(rows)), labels[rows]]))


def cross_entropy_gradient(logits: Array, labels: Ints, temperature: float, ignored: int | None) -> Floats:
    """[n, c], 0 in ignored rows."""
    rows = _labelled(labels, ignored)
    gradient = np.zeros(logits.shape)
    gradient[rows] = softmax(logits[rows], temperature)
    gradient[rows, labels[rows]] -= 1
    return gradient / (len(rows) * temperature)


def cross_entropy_temperature_gradient(logits: Array, labels: Ints, temperature: float, ignored: int | None) -> float:
    """The gradient of `cross_entropy` by the temperature: as that by the logits, for the logits scale with 1 / T."""
    by_logits = cross_entropy_gradient(logits, labels, temperature, ignored)
    return float(-np.sum(by_logits * logits) / temperature)


def binary_cross_entropy(logits: Array, targets: Array) -> float:
    """The mean over all [n, c] of -t log σ(x) - (1 - t) log σ(-x), targets from 0 to 1."""
    x = _counted(logits)
    return float(np.mean(np.maximum(x, 0) - x * targets + np.log1p(np.exp(-np.abs(x)))))


def binary_cross_entropy_gradient(logits: Array, targets: Array) -> Floats:
    """[n, c]."""
    return (sigmoid(logits, 1.0) - targets) / _counted(logits).size


def squared_error(values: Array, targets: Array) -> float:
    """The mean of the squared gaps."""
    return float(np.mean((_counted(values) - targets) ** 2))


def squared_error_gradient(values: Array, targets: Array) -> Floats:
    """[n]."""
    return 2 * (_counted(values) - targets) / values.size


def huber(values: Array, targets: Array, delta: float) -> float:
    """The mean of half the squared gap, and beyond `delta` of delta · (|gap| - delta / 2)."""
    gap = np.abs(_counted(values) - targets)
    return float(np.mean(np.where(gap <= delta, gap**2 / 2, delta * (gap - delta / 2))))


def huber_gradient(values: Array, targets: Array, delta: float) -> Floats:
    """[n], at most `delta` / n each way."""
    return np.clip(_counted(values) - targets, -delta, delta) / values.size


def contrastive(scores: Array, positives: Bools, admitted: Bools, temperature: float) -> float:
    """The mean over anchors [n] of the mean over an anchor's positives of -log softmax(scores / T) there.

    Shapes: all [n, m]. The softmax of an anchor goes over its `admitted` columns alone, its positives among them.
    Raises EmptySlice for an anchor without a positive, Misconfigured for a positive that isn't admitted.
    Source: Khosla et al., Supervised contrastive learning, 2020, with the mean outside the logarithm.
    """
    share = _positive_share(positives, admitted)
    log_chance = log_softmax(np.where(admitted, scores, -np.inf), temperature)
    return float(-np.sum(share[positives] * log_chance[positives]) / len(scores))


def contrastive_gradient(scores: Array, positives: Bools, admitted: Bools, temperature: float) -> Floats:
    """[n, m], 0 where a column isn't admitted."""
    share = _positive_share(positives, admitted)
    chance = softmax(np.where(admitted, scores, -np.inf), temperature)
    return (chance - share) / (len(scores) * temperature)


def weighted_tasks(sums: Array, counts: Ints, weights: Array) -> float:
    """The tasks' mean losses, each times its weight, summed. Shapes: all [t]; `counts` of what each sum is over.

    Raises EmptySlice for a task that counts nothing, Misconfigured for a weight below 0.
    """
    if not len(counts) or (counts < 1).any():
        raise EmptySlice(
            "tasks", found="a task that counts nothing", expected="rows in every task", mend="Leave it out."
        )
    if (weights < 0).any() or not weights.any():
        raise Misconfigured(
            "task weights", found=str(weights), expected="weights of at least 0, not all 0", mend="Raise them."
        )
    return float(np.sum(weights * sums / counts))


def _labelled(labels: Ints, ignored: int | None) -> Ints:
    rows = np.arange(len(labels)) if ignored is None else np.flatnonzero(labels != ignored)
    if not len(rows):
        raise EmptySlice("loss", found="no labelled row", expected="at least one", mend="Leave the batch out.")
    return rows


def _counted(values: Array) -> Floats:
    if not values.size:
        raise EmptySlice("loss", found="no value", expected="at least one", mend="Leave the batch out.")
    return values.astype(np.float64)


def _positive_share(positives: Bools, admitted: Bools) -> Floats:
    if not len(positives) or not positives.any(axis=1).all():
        raise EmptySlice(
            "contrastive loss", found="an anchor without a positive", expected="one or more", mend="Leave it out."
        )
    if (positives & ~admitted).any():
        raise Misconfigured(
            "contrastive loss",
            found="a positive that its own softmax leaves out",
            expected="positives among the admitted columns",
            mend="Admit every positive.",
        )
    share: Floats = positives / positives.sum(axis=1, keepdims=True)
    return share
