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
