"""How far probabilities are from how often they come true.

Bins are (low, high], the first also holding what lies on or below its lower edge. The measures of `Bins` are functions
of summed rows, so that whole groups of cases can be resampled.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.calibration.fit import mass_edges, sigmoid
from harness.errors import Misconfigured

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Mass: TypeAlias = Literal["width", "mass"]

BINS = 15
"""As in Guo et al., On calibration of modern neural networks, 2017."""


@dataclass(frozen=True, slots=True, eq=False)
class Bins:
    """Forecasts in bins. Shapes: edges [m + 1]; counts, confidence and hits [m], sums over the cases of a bin.

    A reliability diagram shows `hits / counts` over `confidence / counts`, with the counts.
    """

    edges: Floats
    counts: Floats
    confidence: Floats
    hits: Floats

    @property
    def gaps(self) -> Floats:
        """[m], how far the mean confidence is from the share of hits; NaN of an empty bin."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray(np.abs(self.confidence - self.hits) / self.counts)

    @property
    def ece(self) -> float:
        """The mean gap, each bin weighted by its cases. Source: Naeini, Cooper and Hauskrecht, 2015."""
        return float(np.abs(self.confidence - self.hits).sum() / self.counts.sum())

    @property
    def mce(self) -> float:
        """The largest gap of a bin that has cases."""
        return float(np.nanmax(self.gaps))


def edges_of(confidence: Floats, bins: int = BINS, mass: Mass = "width") -> Floats:
    """Edges [m + 1] from 0 to 1: of equal width, or of equal mass, which are fewer where many forecasts are equal."""
    if mass == "width":
        return np.linspace(0, 1, bins + 1)
    inner = mass_edges(confidence, bins)
    return np.unique(np.concatenate([[0.0], inner[inner > 0], [1.0]]))


def binned(confidence: Floats, hits: Floats, edges: Floats) -> Bins:
    """Forecasts [n] from 0 to 1 and what came of them, 0 or 1 [n], in bins. Raises Misconfigured without a forecast."""
    if not len(confidence) or not ((confidence >= 0) & (confidence <= 1)).all():
        raise Misconfigured(
            "forecasts", found=f"{len(confidence)}, or some outside 0 to 1", expected="probabilities of scored cases",
            mend="Look at the cases of the promotion role.",
        )  # fmt: skip
    place = np.maximum(np.searchsorted(edges, confidence, side="left") - 1, 0)
    m = len(edges) - 1
    counts = np.bincount(place, minlength=m).astype(np.float64)
    sums = (np.bincount(place, each, m).astype(np.float64) for each in (confidence, hits))
    return Bins(edges, counts, *sums)


def top_label(probabilities: Floats, gold: Ints, bins: int = BINS, mass: Mass = "width") -> Bins:
    """Of probabilities [n, k] the highest, and whether its class was gold [n]."""
    confidence = probabilities.max(axis=1)
    hits = (probabilities.argmax(axis=1) == gold).astype(np.float64)
    return binned(confidence, hits, edges_of(confidence, bins, mass))


def positive(probabilities: Floats, gold: Ints, bins: int = BINS, mass: Mass = "width") -> Bins:
    """Of the probability [n] of one class or label, whether it was gold, 0 or 1 [n]."""
    return binned(probabilities, gold.astype(np.float64), edges_of(probabilities, bins, mass))


def classwise(probabilities: Floats, gold: Ints, bins: int = BINS, mass: Mass = "width") -> float:
    """The mean over classes of the ECE of each class's own probability [n, k]. Source: Kull et al., Beyond temperature
    scaling, 2019.
    """
    k = probabilities.shape[1]
    return float(
        np.mean([positive(probabilities[:, c], (gold == c).astype(np.int64), bins, mass).ece for c in range(k)])
    )


@dataclass(frozen=True, slots=True)
class BrierParts:
    """The Brier score of forecasts of 0 or 1, and what it is made of: reliability − resolution + uncertainty, exactly.

    Source: Murphy, A new vector partition of the probability score, 1973.
    """

    score: float
    reliability: float
    resolution: float
    uncertainty: float


def brier_parts(chances: Floats, gold: Ints) -> BrierParts:
    """Of the probability [n] of what is gold 1 [n], by the forecasts that differ."""
    _, place, counts = np.unique(chances, return_inverse=True, return_counts=True)
    rate = np.bincount(place, gold) / counts
    forecast = np.bincount(place, chances) / counts
    base = float(gold.mean())
    n = len(gold)
    return BrierParts(
        score=float(np.mean((chances - gold) ** 2)),
        reliability=float((counts * (forecast - rate) ** 2).sum() / n),
        resolution=float((counts * (rate - base) ** 2).sum() / n),
        uncertainty=base * (1 - base),
    )


@dataclass(frozen=True, slots=True)
class Recalibration:
    """Logistic regression of what is gold on the forecasts' log odds: slope 1, intercept 0 where they are calibrated.

    A slope below 1 is overconfidence; `intercept` is that at slope 1 (calibration in the large). Source: Cox, Two
    further applications of a model for binary regression, 1958.
    """

    slope: float
    intercept: float


def recalibration(chances: Floats, gold: Ints) -> Recalibration:
    """Of the probability [n] of gold 1 [n]. NaN where one class is lacking, or the log odds are all equal."""
    inside = np.clip(chances, 2.0**-52, 1 - 2.0**-52)
    odds = np.log(inside) - np.log1p(-inside)
    if len(np.unique(gold)) < 2:
        return Recalibration(float("nan"), float("nan"))
    slope = (
        _newton(np.stack([odds, np.ones(len(odds))], axis=1), gold, np.zeros(len(odds)))[0] if np.ptp(odds) else np.nan
    )
    return Recalibration(float(slope), float(_newton(np.ones((len(odds), 1)), gold, odds)[0]))


def _newton(design: Floats, gold: Ints, offset: Floats) -> Floats:
    """The coefficients [m] of a logistic regression of design [n, m] with an offset [n]; NaN without an optimum."""
    x = np.zeros(design.shape[1])
    for _ in range(100):
        chances = sigmoid(design @ x + offset)
        weight = chances * (1 - chances)
        try:
            step = np.linalg.solve((design * weight[:, None]).T @ design, design.T @ (gold - chances))
        except np.linalg.LinAlgError:
            return np.full(len(x), np.nan)
        x = x + step
        if not np.isfinite(x).all() or np.abs(x).max() > 1e6:
            return np.full(len(x), np.nan)
        if np.abs(step).max() < 1e-12 * max(1.0, float(np.abs(x).max())):
            return x
    return np.full(len(x), np.nan)
