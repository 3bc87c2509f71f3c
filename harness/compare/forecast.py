"""Measures of forecasts that hang on their order, or have no closed form: of weighted cases, as in the rank form.

A case of weight 3 counts as three. Both sides bring forecasts and what came of them, for what a forecast is about (the
label that a side thinks likeliest) may be another on either side.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy import special

from harness.compare.group import CELLS, Bools, Codes, Expanded, Floats, groups_present, refuse_unusable
from harness.compare.logistic import logistic, shift
from harness.compare.rank import Ties
from harness.errors import Unpairable
from harness.output.contribution import ForecastKind


@dataclass(frozen=True, slots=True, eq=False)
class WeightedForecast:
    """Forecasts x [n, k] and what came of them, y [n, k]: one sample of n · k, of which those of a case come together.

    `mass_ece`, `mass_mce`: x from 0 to 1, `parameter` bins of equal mass, none cut inside a tied group.
    `calibration_slope`, `calibration_intercept`, and how far they are from 1 and 0: x are log odds. `aurc`,
    `risk_at_coverage`: x is how sure, y the loss.
    """

    x: Floats
    y: Floats
    kind: ForecastKind
    parameter: float = 0.0
    _points: "_Points" = field(init=False, repr=False)

    def __post_init__(self) -> None:
        refuse_unusable(self.kind, self.x)
        refuse_unusable(self.kind, self.y)
        if self.x.shape != self.y.shape:
            raise Unpairable(
                self.kind, found=f"forecasts {self.x.shape} and outcomes {self.y.shape}",
                expected="one of each per case", mend="Take both from the same cases.",
            )  # fmt: skip
        object.__setattr__(self, "_points", _Points.of(self.x.ravel(), self.y.ravel()))

    @property
    def n_cases(self) -> int:
        return len(self.x)

    @property
    def folded(self) -> bool:
        """Whether it is a distance from a right value, which draws on either side of that only make larger."""
        return self.kind.endswith("_error")

    def value(self) -> float:
        return float(self.of(np.ones((1, self.n_cases)))[0])

    def of(self, weights: Floats) -> Floats:
        rows = max(1, CELLS // self.x.size)
        blocks = [weights[start : start + rows] for start in range(0, len(weights), rows)]
        k = self.x.shape[1]
        return np.concatenate([self._measured(np.repeat(block, k, axis=1)) for block in blocks])

    def _measured(self, weights: Floats) -> Floats:
        held = self._points.ties.weights(weights)
        x, y = (np.broadcast_to(each, held.shape) for each in (self._points.x, self._points.y))
        return MEASURES[self.kind](x, y, held, self.parameter)

    def take(self, index: Codes | Bools) -> Self:
        return type(self)(self.x[index], self.y[index], self.kind, self.parameter)

    def by_group(self, groups: Codes, n_groups: int) -> Expanded:
        return Expanded(self.of, groups, groups_present(groups, self.n_cases, n_groups), self.folded)

    def differs(self, other: "WeightedForecast") -> Bools:
        return np.asarray(((self.x != other.x) | (self.y != other.y)).any(axis=1))

    def exchanged(self, other: "WeightedForecast", mask: Bools) -> Floats:
        rows = max(1, CELLS // self.x.size)
        blocks = [mask[start : start + rows] for start in range(0, len(mask), rows)]
        return np.concatenate([self._swapped(other, block) for block in blocks])

    def _swapped(self, other: "WeightedForecast", mask: Bools) -> Floats:
        x, y = (
            np.where(mask[:, :, None], theirs, mine).reshape(len(mask), -1)
            for mine, theirs in ((self.x, other.x), (self.y, other.y))
        )
        order = np.lexsort((y, x), axis=-1)
        x, y = (np.take_along_axis(each, order, axis=1) for each in (x, y))
        return MEASURES[self.kind](x, y, np.ones(x.shape), self.parameter)


@dataclass(frozen=True, slots=True, eq=False)
class _Points:
    """The distinct (x, y) by rising x, then y, so that no order of cases changes a bit. Shapes: x and y [u]."""

    x: Floats
    y: Floats
    ties: Ties

    @classmethod
    def of(cls, x: Floats, y: Floats) -> "_Points":
        codes = [np.unique(each, return_inverse=True)[1] for each in (x, y)]
        ties = Ties.among((codes[0] * (len(y) + 1) + codes[1]).astype(np.float64))
        first = ties.order[ties.starts]
        return cls(x[first], y[first], ties)


@dataclass(frozen=True, slots=True, eq=False)
class _Tied:
    """Where groups of equal x begin and end in rows [b, u] of rising x. Shapes: start [b, u], last [b, u]."""

    start: Codes
    last: Bools

    @classmethod
    def of(cls, x: Floats) -> "_Tied":
        new = np.concatenate([np.ones((len(x), 1), dtype=bool), x[:, 1:] != x[:, :-1]], axis=1)
        start = np.maximum.accumulate(np.where(new, np.arange(x.shape[1]), 0), axis=1)
        return cls(start, np.concatenate([new[:, 1:], np.ones((len(x), 1), dtype=bool)], axis=1))

    def before(self, values: Floats) -> Floats:
        """[b, u], the sum of values [b, u] of all that have a lower x."""
        below = np.cumsum(values, axis=1) - values
        return np.take_along_axis(below, self.start, axis=1)


@dataclass(frozen=True, slots=True, eq=False)
class _Gaps:
    """Of bins of equal mass: weights, and what forecasts are beside what came of them. Shapes: both [b, bins]."""

    held: Floats
    gap: Floats

    @classmethod
    def of(cls, x: Floats, y: Floats, weights: Floats, bins: int) -> "_Gaps":
        total = weights.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            place = np.floor(bins * _Tied.of(x).before(weights) / total)
        # A weight of 0 behind all others would begin one bin more.
        at = np.clip(np.nan_to_num(place), 0, bins - 1).astype(np.int64) + bins * np.arange(len(x))[:, None]

        def by_bin(values: Floats) -> Floats:
            return np.bincount(at.ravel(), values.ravel(), bins * len(x)).reshape(len(x), bins).astype(np.float64)

        return cls(by_bin(weights), by_bin(weights * (x - y)))


def mass_ece(x: Floats, y: Floats, weights: Floats, bins: float) -> Floats:
    """[b], the expected calibration error over bins of equal mass."""
    found = _Gaps.of(x, y, weights, int(bins))
    total = found.held.sum(axis=1)
    return np.asarray(np.abs(found.gap).sum(axis=1) / np.where(total > 0, total, np.nan))


def mass_mce(x: Floats, y: Floats, weights: Floats, bins: float) -> Floats:
    """[b], the largest gap of a bin of equal mass."""
    found = _Gaps.of(x, y, weights, int(bins))
    there = found.held > 0
    gaps = np.where(there, np.abs(found.gap) / np.where(there, found.held, 1.0), -1.0).max(axis=1)
    return np.where(gaps < 0, np.nan, gaps)


def aurc(x: Floats, y: Floats, weights: Floats, _: float = 0.0) -> Floats:
    """[b], the mean risk over all numbers of answered cases, the surest first; inside a tied group each case stands for
    the group's mean. Source: Geifman and El-Yaniv, Selective classification for deep neural networks, 2017.
    """
    x, y, weights = -x[:, ::-1], y[:, ::-1], weights[:, ::-1]
    tied = _Tied.of(x)
    answered, paid = tied.before(weights), tied.before(weights * y)
    here, lost = np.cumsum(weights, axis=1) - answered, np.cumsum(weights * y, axis=1) - paid
    rate = lost / np.where(here > 0, here, 1.0)
    # Σ (paid + j · rate) / (answered + j) for j from 1 to `here`, by harmonic numbers.
    step = special.digamma(answered + here + 1) - special.digamma(answered + 1)
    risks = np.where(tied.last, here * rate + (paid - rate * answered) * step, 0.0).sum(axis=1)
    total = weights.sum(axis=1)
    return np.asarray(risks / np.where(total > 0, total, np.nan))


def risk_at_coverage(x: Floats, y: Floats, weights: Floats, coverage: float) -> Floats:
    """[b], the mean loss of the surest, where at least so large a share is answered and no tied group is cut."""
    x, y, weights = -x[:, ::-1], y[:, ::-1], weights[:, ::-1]
    answered, paid = np.cumsum(weights, axis=1), np.cumsum(weights * y, axis=1)
    total = answered[:, -1:]
    reached = _Tied.of(x).last & (answered >= coverage * total * (1 - 1e-12)) & (answered > 0)
    at = np.argmax(reached, axis=1)[:, None]
    answered, paid = (np.take_along_axis(each, at, axis=1)[:, 0] for each in (answered, paid))
    return np.asarray(paid / np.where(answered > 0, answered, np.nan))


Measure = Callable[[Floats, Floats, Floats, float], Floats]
MEASURES: dict[ForecastKind, Measure] = {
    "mass_ece": mass_ece,
    "mass_mce": mass_mce,
    "calibration_slope": lambda x, y, weights, _: logistic(x, y, weights),
    "calibration_intercept": lambda x, y, weights, _: shift(x, y, weights),
    "calibration_slope_error": lambda x, y, weights, _: np.abs(logistic(x, y, weights) - 1),
    "calibration_intercept_error": lambda x, y, weights, _: np.abs(shift(x, y, weights)),
    "aurc": aurc,
    "risk_at_coverage": risk_at_coverage,
}
"""Each [b] of x, y and weights [b, u], rows by rising x."""
