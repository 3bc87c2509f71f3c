"""To unit length, and to fewer dimensions. Each acts on the last axis."""

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.rows.mask import Floats


def l2(x: NDArray[np.floating], epsilon: float) -> Floats:
    """x [..., w] divided by its length, or by `epsilon` where the length is below that.

    So a zero vector stays zero. With `epsilon` 0 it has no direction and raises Misconfigured.
    """
    x = x.astype(np.float64)
    length = np.sqrt(np.sum(x * x, axis=-1, keepdims=True))
    if epsilon < 0 or (epsilon == 0 and (length == 0).any()):
        raise Misconfigured(
            "L2 normalisation",
            found="a vector of length 0" if epsilon == 0 else f"epsilon {epsilon}",
            expected="vectors with a direction, or an epsilon above 0",
            mend="Declare the epsilon that the library divides by; zero vectors then stay zero.",
        )
    unit: Floats = x / np.maximum(length, epsilon)
    return unit


def truncate(x: NDArray[np.floating], dimensions: int) -> Floats:
    """The first `dimensions` of x [..., w]. Raises Misconfigured when there are fewer. Not of unit length any more."""
    if not 1 <= dimensions <= x.shape[-1]:
        raise Misconfigured(
            "truncated dimensions",
            found=f"{dimensions} of {x.shape[-1]}",
            expected=f"from 1 to {x.shape[-1]}",
            mend="Leave the truncation out, or set it within the vector's width.",
        )
    return x[..., :dimensions].astype(np.float64)
