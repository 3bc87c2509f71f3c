"""Whether a case is wrong by little: how far what is right lies from what would have given it.

It describes a case and is in no mean. A gap is a difference of probabilities; one that is met but for rounding counts.
"""

import numpy as np

from harness.metric.choice import Chosen
from harness.metric.classification import Classified, forecasts
from harness.metric.form import Bools, Floats, scored
from harness.metric.multilabel import Multilabelled

ROUNDING = 1e-9


def near_class(outputs: Classified, gap: float, limit: float | None = None) -> Bools:
    """[n], whether another class was given, and the right one is at most `gap` less likely; a tie is none.

    `limit`: the probability from which the positive one of two classes is given, and then the distance is from there.
    """
    wrong = scored(outputs.status) & (outputs.predicted != outputs.gold)
    positive = forecasts(outputs).positive
    if limit is not None and positive is not None:
        return _near_limits(outputs.probabilities[:, [positive]], np.array([limit]), wrong[:, None], gap)
    codes = np.stack([outputs.predicted, outputs.gold], axis=1)
    chances = np.take_along_axis(outputs.probabilities, np.maximum(codes, 0), axis=1)
    return np.asarray(wrong & ~outputs.tied & (chances[:, 0] - chances[:, 1] <= gap + ROUNDING), dtype=bool)


def near_set(outputs: Multilabelled, gap: float) -> Bools:
    """[n], whether the set is another, and each label that is wrong lies within `gap` of its threshold."""
    wrong = scored(outputs.status)[:, None] & (outputs.predicted != outputs.gold)
    return _near_limits(outputs.probabilities, outputs.thresholds, wrong, gap)


def near_choice(outputs: Chosen, gap: float) -> Bools:
    """[n], whether another choice was made, and the right one is at most `gap` less likely; a tie is none."""
    counted = scored(outputs.status)
    starts = outputs.offsets[:-1]
    right = starts + np.maximum(outputs.gold, 0)
    best = np.maximum.reduceat(outputs.probabilities, starts) if len(starts) else np.empty(0)
    wrong = counted & ~outputs.tied & (outputs.share[right] == 0)
    return np.asarray(wrong & (best - outputs.probabilities[right] <= gap + ROUNDING), dtype=bool)


def _near_limits(chances: Floats, limits: Floats, wrong: Bools, gap: float) -> Bools:
    """[n] from [n, k]: something is wrong, and all that is lies within `gap` of its limit [k]."""
    beyond = wrong & ~(np.abs(chances - limits) <= gap + ROUNDING)
    return np.asarray(wrong.any(axis=1) & ~beyond.any(axis=1), dtype=bool)
