"""From logits to probabilities.

Each acts on the last axis, and raises Misconfigured unless the temperature is above 0.
"""

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.rows.mask import Floats


def scaled(logits: NDArray[np.floating], temperature: float) -> Floats:
    """The logits over the temperature: above 1 flattens what they say, below 1 sharpens it.

    Raises Misconfigured for a temperature that is not above 0.
    """
    if not (np.isfinite(temperature) and temperature > 0):
        raise Misconfigured(
            "temperature",
            found=str(temperature),
            expected="a number above 0",
            mend="Set it to 1 where nothing is to be scaled.",
        )
    return logits.astype(np.float64) / temperature


def log_softmax(logits: NDArray[np.floating], temperature: float) -> Floats:
    """The logarithm of `softmax`, exact also where the probability is too small for a float."""
    lowered = scaled(logits, temperature)
    lowered = lowered - lowered.max(axis=-1, keepdims=True)
    result: Floats = lowered - np.log(np.exp(lowered).sum(axis=-1, keepdims=True))
    return result


def softmax(logits: NDArray[np.floating], temperature: float) -> Floats:
    """Probabilities [..., c] of labels that exclude one another: they sum to 1."""
    return np.exp(log_softmax(logits, temperature))


def sigmoid(logits: NDArray[np.floating], temperature: float) -> Floats:
    """The probability of each label by itself: 1 / (1 + exp(-x / T)), without overflow on either side."""
    x = scaled(logits, temperature)
    small = np.exp(-np.abs(x))
    chance: Floats = np.where(x >= 0, 1, small) / (1 + small)
    return chance


def softmax_mean_logits(logits: NDArray[np.floating]) -> Floats:
    """[c], the logits whose softmax is the mean of the softmax of each of [k, c], k above 0: its logarithm."""
    return _log_mean(log_softmax(logits, 1.0))


def sigmoid_mean_logits(logits: NDArray[np.floating]) -> Floats:
    """[c], the logits whose sigmoid is the mean of the sigmoid of each of [k, c], k above 0: its log odds, also where
    the mean is nearer to 1 than a float can say.
    """
    x = scaled(logits, 1.0)
    return _log_mean(-np.logaddexp(0, -x)) - _log_mean(-np.logaddexp(0, x))


def _log_mean(logarithms: Floats) -> Floats:
    """[c], the logarithm of the mean of what the [k, c] are logarithms of."""
    return np.asarray(np.logaddexp.reduce(logarithms, axis=0) - np.log(len(logarithms)))
