"""What two vectors are worth to each other. Shapes: both [w], or [..., w] with axes that broadcast."""

import numpy as np
from numpy.typing import NDArray

from harness.readout.normalisation import l2
from harness.rows.mask import Floats

Vectors = NDArray[np.floating]


def dot(a: Vectors, b: Vectors) -> Floats:
    """The sum of products; any number, higher is nearer."""
    product: Floats = np.sum(a.astype(np.float64) * b.astype(np.float64), axis=-1)
    return product


def cosine(a: Vectors, b: Vectors, epsilon: float) -> Floats:
    """The dot product of both at unit length: from -1 to 1, higher is nearer.

    Lengths below `epsilon` are taken as that, so a zero vector has cosine 0; with `epsilon` 0 it raises Misconfigured.
    """
    return dot(l2(a, epsilon), l2(b, epsilon))


def squared_l2(a: Vectors, b: Vectors) -> Floats:
    """The squared distance: at least 0, lower is nearer."""
    gap = a.astype(np.float64) - b.astype(np.float64)
    return dot(gap, gap)


def squared_l2_of_cosine(value: float) -> float:
    """Of unit vectors alone: |a - b|² = 2 - 2 cos. A floor of cosine .8 is a ceiling of .4."""
    return 2 - 2 * value


def cosine_of_squared_l2(value: float) -> float:
    """Of unit vectors alone: cos = 1 - |a - b|² / 2."""
    return 1 - value / 2
