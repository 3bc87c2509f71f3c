"""Gradients by central differences, to hold the analytic ones against."""

import numpy as np

STEP = 1e-6


def slope(function, at):
    """How a number moves with each entry of `at`, in the shape of `at`."""
    at = np.asarray(at, dtype=np.float64)
    result = np.zeros(at.shape)
    for entry in np.ndindex(*at.shape):
        step = np.zeros(at.shape)
        step[entry] = STEP
        result[entry] = (function(at + step) - function(at - step)) / (2 * STEP)
    return result
