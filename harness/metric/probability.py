"""Probabilities as a model gave them: checked, and of their rounding alone mended."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.metric.form import Bools, Floats, divided, ordered_sum
from harness.metric.task import CLIP

ScoreType: TypeAlias = Literal["logit", "probability"]

TOLERANCE = 1e-4
"""How far probabilities may sum beside 1: what rounding to four or more decimals, or to float32, brings about."""


@dataclass(frozen=True, slots=True, eq=False)
class Chances:
    """Shapes: probabilities [..., k] (NaN where not usable), usable [...]."""

    probabilities: Floats
    usable: Bools


def exclusive(scores: Floats, kind: ScoreType, tolerance: float = TOLERANCE) -> Chances:
    """Probabilities [n, k] of classes that exclude one another. Logits go through a softmax.

    Probabilities are not usable where one is not finite or outside 0 to 1, or where their sum is further than
    `tolerance` from 1; what is nearer is rounding, and they are divided by their sum, as scikit-learn does.
    """
    usable = np.asarray(np.isfinite(scores).all(axis=-1))
    if kind == "logit":
        lowered = np.where(usable[..., None], scores, 0.0)
        grown = np.exp(lowered - lowered.max(axis=-1, keepdims=True))
        chances = grown / ordered_sum(grown)[..., None]
    else:
        chances = np.where(usable[..., None], scores, 0.0)
        total = ordered_sum(chances)
        usable &= _within(chances, tolerance).all(axis=-1) & (np.abs(total - 1) <= tolerance)
        chances = divided(chances, total[..., None], 0.0)
    return Chances(np.where(usable[..., None], chances, np.nan), usable)


def separate(scores: Floats, kind: ScoreType, tolerance: float = TOLERANCE) -> Chances:
    """Probabilities [n, k] of labels each by itself. Logits go through a sigmoid; probabilities stay as they are."""
    usable = np.asarray(np.isfinite(scores).all(axis=-1))
    chances = np.where(usable[..., None], scores, 0.0)
    if kind == "logit":
        small = np.exp(-np.abs(chances))
        chances = np.where(chances >= 0, 1, small) / (1 + small)
    else:
        usable &= _within(chances, tolerance).all(axis=-1)
    return Chances(np.where(usable[..., None], chances, np.nan), usable)


def surprise(probability: Floats) -> Floats:
    """-ln of the probability [n] of what holds, which counts as at least 2**-52 (scikit-learn's bound for float64)."""
    return -np.log(np.clip(probability, CLIP, 1.0))


def _within(chances: Floats, tolerance: float) -> Bools:
    return np.asarray((chances >= 0) & (chances <= 1 + tolerance))
