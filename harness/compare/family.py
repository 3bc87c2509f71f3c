"""Many tests at once: p-values adjusted over all declared members.

A member without a p-value (NaN) counts as 1: it is declared, so it stays in the family's size.
"""

import numpy as np

from harness.compare.group import Floats


def holm(p: Floats) -> Floats:
    """Adjusted p-values [m] that hold the chance of any false rejection. Source: Holm (1979)."""
    known = np.where(np.isnan(p), 1.0, p)
    order = np.argsort(known, kind="stable")
    stepped = known[order] * np.arange(len(p), 0, -1)
    return _in_place(np.maximum.accumulate(stepped), order)


def benjamini_hochberg(p: Floats) -> Floats:
    """Adjusted p-values [m] that hold the share of false rejections. Source: Benjamini and Hochberg (1995)."""
    known = np.where(np.isnan(p), 1.0, p)
    order = np.argsort(known, kind="stable")
    stepped = known[order] * len(p) / np.arange(1, len(p) + 1)
    return _in_place(np.minimum.accumulate(stepped[::-1])[::-1], order)


def _in_place(stepped: Floats, order: np.ndarray[tuple[int], np.dtype[np.intp]]) -> Floats:
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted
