"""Logistic regression of what came on log odds, of many weightings of the same cases at once.

Source: Cox, Two further applications of a model for binary regression, 1958.
"""

import numpy as np
from scipy import special

from harness.compare.group import Bools, Floats

STEPS = 60
CLOSE = 1e-11
FAR = 4.0
"""The longest step: a longer one leaves the range in which the loss is anything like its parabola."""


def logistic(x: Floats, y: Floats, weights: Floats) -> Floats:
    """The slope [b] on log odds x [b, u] of outcomes y [b, u] from 0 to 1, with an intercept, under weights [b, u].

    NaN where no finite slope is the best: one outcome alone, log odds all equal, outcomes that a cut tells apart.
    """
    found = np.full(len(x), np.nan)
    rows = np.flatnonzero(_overlap(x, y, weights))
    # Centred and scaled, or the two coefficients hang on one another and steps get long.
    total = np.maximum(weights.sum(axis=1, keepdims=True), 1e-300)
    centre = (weights * x).sum(axis=1, keepdims=True) / total
    spread = np.sqrt((weights * (x - centre) ** 2).sum(axis=1, keepdims=True) / total)
    at = np.zeros((len(x), 2))
    for _ in range(STEPS):
        if not len(rows):
            break
        odds, w = (x[rows] - centre[rows]) / spread[rows], weights[rows]
        chances = special.expit(at[rows, :1] * odds + at[rows, 1:])
        error, curve = w * (y[rows] - chances), w * chances * (1 - chances)
        g = (error * odds).sum(axis=1), error.sum(axis=1)
        h = (curve * odds**2).sum(axis=1), (curve * odds).sum(axis=1), curve.sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            determinant = h[0] * h[2] - h[1] ** 2
            steps = np.stack([h[2] * g[0] - h[1] * g[1], h[0] * g[1] - h[1] * g[0]], axis=1) / determinant[:, None]
        at[rows] += np.clip(steps, -FAR, FAR)
        lost = ~np.isfinite(steps).all(axis=1)
        close = np.abs(steps).max(axis=1) <= CLOSE * np.maximum(1.0, np.abs(at[rows]).max(axis=1))
        found[rows[close]] = at[rows[close], 0] / spread[rows[close], 0]
        rows = rows[~(close | lost)]
    return found


def shift(x: Floats, y: Floats, weights: Floats) -> Floats:
    """What must be added to log odds x [b, u] for their mean chance to be the share of outcomes y [b, u].

    NaN where there is one outcome alone.
    """
    found = np.full(len(x), np.nan)
    ones, zeros = ((weights * each).sum(axis=1) for each in (y, 1 - y))
    rows = np.flatnonzero((ones > 0) & (zeros > 0))
    at = np.zeros((len(x), 1))
    for _ in range(STEPS):
        if not len(rows):
            break
        chances = special.expit(x[rows] + at[rows])
        error, curve = weights[rows] * (y[rows] - chances), weights[rows] * chances * (1 - chances)
        # Where all chances are near 0 or 1 the curve is flat, and the step is cut.
        steps = np.clip(error.sum(axis=1) / np.maximum(curve.sum(axis=1), 1e-300), -FAR, FAR)
        at[rows, 0] += steps
        close = np.abs(steps) <= CLOSE * np.maximum(1.0, np.abs(at[rows, 0]))
        found[rows[close]] = at[rows[close], 0]
        rows = rows[~close]
    return found


def _overlap(x: Floats, y: Floats, weights: Floats) -> Bools:
    """[b], whether outcomes of both kinds stand on both sides of any cut."""
    held = weights > 0
    ones, zeros = held & (y > 0), held & (y < 1)

    def ends(among: Bools) -> tuple[Floats, Floats]:
        return np.where(among, x, np.inf).min(axis=1), np.where(among, x, -np.inf).max(axis=1)

    (low_one, high_one), (low_zero, high_zero) = ends(ones), ends(zeros)
    there = ones.any(axis=1) & zeros.any(axis=1)
    return np.asarray(there & (low_one < high_zero) & (low_zero < high_one))
