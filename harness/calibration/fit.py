"""Maps from raw scores to probabilities, fitted on the calibration role alone.

Every fit minimises the negative log-likelihood (isotonic: squared error by the pool-adjacent-violators algorithm) and
is deterministic. What is fitted is a small record of numbers with one method, `probabilities`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Objective: TypeAlias = Callable[[Floats], tuple[float, Floats]]

TOLERANCE = 1e-10
LEAST_TEMPERATURE, GREATEST_TEMPERATURE = 1e-3, 1e3


@dataclass(frozen=True, slots=True)
class Temperature:
    """softmax(logits / t), t > 0: no order of classes changes. Source: Guo et al., On calibration of modern neural
    networks, 2017.
    """

    temperature: float

    def probabilities(self, logits: Floats) -> Floats:
        """[n, k] from logits [n, k]."""
        return softmax(logits / self.temperature)


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """softmax(logits @ weights + bias): weights [k, k], diagonal of vector scaling; bias [k].

    Source: Guo et al., 2017.
    """

    weights: Floats
    bias: Floats

    def probabilities(self, logits: Floats) -> Floats:
        """[n, k] from logits [n, k]."""
        return softmax(logits @ self.weights + self.bias)


@dataclass(frozen=True, slots=True)
class Platt:
    """sigmoid(slope · score + intercept) of one score. Source: Platt, Probabilistic outputs for support vector
    machines, 1999.
    """

    slope: float
    intercept: float

    def probabilities(self, scores: Floats) -> Floats:
        """[n] from scores [n]."""
        return sigmoid(self.slope * scores + self.intercept)


@dataclass(frozen=True, slots=True)
class Beta:
    """1 / (1 + exp(-c) · (1 - p)^b / p^a) of a probability p; a, b ≥ 0, so no order changes.

    Source: Kull, Silva Filho and Flach, Beta calibration, 2017.
    """

    a: float
    b: float
    c: float

    def probabilities(self, chances: Floats) -> Floats:
        """[n] from probabilities [n]."""
        return sigmoid(_log_odds_parts(chances) @ np.array([self.a, self.b]) + self.c)


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """A rising function of a score: of isotonic regression, linear between `at` [m] and flat beyond; of a histogram,
    `values` [m] of the bins (edges[i], edges[i + 1]], the first also holding what lies below.

    `n_certain`: how many of the fitted cases it gives exactly 0 or 1, for which no loss is finite if they are wrong.
    """

    at: Floats
    values: Floats
    n_certain: int
    bins: bool = False

    def probabilities(self, scores: Floats) -> Floats:
        """[n] from scores [n]."""
        if self.bins:
            return np.asarray(self.values[np.searchsorted(self.at, scores, side="left")])
        return np.interp(scores, self.at, self.values)


Calibration: TypeAlias = Temperature | Scaling | Platt | Beta | Steps


def fit_temperature(logits: Floats, gold: Ints) -> Temperature:
    """The temperature with the least loss on logits [n, k] of gold classes [n].

    Raises Misconfigured where the loss falls for ever: all cases right, or none.
    """
    from scipy.optimize import minimize_scalar

    refuse_unfit(logits, gold, logits.shape[1])
    refuse_flat(logits)

    def loss(log_t: float) -> float:
        return _nll(logits / np.exp(log_t), gold)

    low, high = np.log(LEAST_TEMPERATURE), np.log(GREATEST_TEMPERATURE)
    found = minimize_scalar(loss, bounds=(low, high), method="bounded", options={"xatol": 1e-9})
    if min(found.x - low, high - found.x) < 1e-3 or (logits.argmax(axis=1) == gold).all():
        raise Misconfigured(
            "temperature", found=f"a loss that still falls at {np.exp(found.x):g}",
            expected="cases of which some are right and some are wrong", mend="Fit on more cases, or another family.",
        )  # fmt: skip
    return Temperature(float(np.exp(found.x)))


def fit_platt(scores: Floats, gold: Ints) -> Platt:
    """Slope and intercept on scores [n] of gold 0 or 1 [n], held against Platt's targets, which are short of 0 and 1.

    Raises Misconfigured for a slope that is not above 0: the score is turned the wrong way round, or says nothing.
    """
    refuse_unfit(scores, gold, 2)
    positive = gold == 1
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    # Centred and scaled, so that a score's unit does not decide how well it is fitted.
    centre, spread = float(scores.mean()), float(scores.std()) or 1.0
    unit = (scores - centre) / spread

    def objective(x: Floats) -> tuple[float, Floats]:
        given = x[0] * unit + x[1]
        error = sigmoid(given) - target
        loss = np.logaddexp(0, given) - target * given
        return float(loss.sum()), np.array([(error * unit).sum(), error.sum()])

    slope, intercept = _minimised("Platt scaling", objective, np.array([1.0, 0.0]))
    if slope <= 0:
        raise _turned("Platt scaling", f"the slope {slope / spread:.4g}")
    return Platt(float(slope / spread), float(intercept - slope * centre / spread))


def fit_beta(chances: Floats, gold: Ints) -> Beta:
    """a, b and c on probabilities [n] of gold 0 or 1 [n]. Raises Misconfigured where either class is lacking."""
    from scipy.optimize import minimize

    refuse_unfit(chances, gold, 2)
    if separated(chances, gold):
        raise Misconfigured(
            "beta calibration", found="a loss that falls for ever: a cut tells what is gold from what is not",
            expected="cases of which some are wrong", mend="Fit platt, whose targets are short of 0 and 1.",
        )  # fmt: skip
    parts = _log_odds_parts(chances)

    def objective(x: Floats) -> tuple[float, Floats]:
        given = parts @ x[:2] + x[2]
        error = sigmoid(given) - gold
        return float((np.logaddexp(0, given) - gold * given).sum()), np.append(parts.T @ error, error.sum())

    found = minimize(
        objective, np.array([1.0, 1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0, None), (0, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
    )  # fmt: skip
    a, b, c = (float(each) for each in found.x)
    if not a + b:
        raise _turned("beta calibration", "a and b of 0, whatever the score")
    return Beta(a, b, c)


def fit_isotonic(scores: Floats, gold: Ints) -> Steps:
    """The rising steps nearest to gold 0 or 1 [n] in squared error; tied scores [n] are one point, with their mean."""
    from sklearn.isotonic import IsotonicRegression

    refuse_unfit(scores, gold, 2)
    found = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, gold)
    at, values = np.asarray(found.X_thresholds_, float), np.asarray(found.y_thresholds_, float)
    if not np.ptp(values):
        raise _turned("isotonic regression", f"one step, {values[0]:.4g}, whatever the score")
    return Steps(at, values, int(np.isin(found.predict(scores), (0.0, 1.0)).sum()))


def fit_histogram(scores: Floats, gold: Ints, bins: int = 10) -> Steps:
    """The share of gold 1 in bins of equal mass, never cut inside a tied group. Source: Zadrozny and Elkan, 2001."""
    refuse_unfit(scores, gold, 2)
    edges = mass_edges(scores, bins)
    place = np.searchsorted(edges, scores, side="left")
    counts = np.bincount(place, minlength=len(edges) + 1)
    values = np.bincount(place, gold, minlength=len(edges) + 1) / counts
    return Steps(edges, values, int(np.isin(values[place], (0.0, 1.0)).sum()), bins=True)


def mass_edges(scores: Floats, bins: int) -> Floats:
    """The scores [m] behind which bins of equal mass end, each once, so that no tied group is cut; m < bins."""
    rising, n = np.sort(scores), len(scores)
    last = -(-n * np.arange(1, bins) // bins) - 1
    edges = np.unique(rising[np.maximum(last, 0)])
    return np.asarray(edges[edges < rising[-1]])


def softmax(logits: Floats) -> Floats:
    """[n, k], rows that sum to 1."""
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(grown / grown.sum(axis=1, keepdims=True))


def sigmoid(values: Floats) -> Floats:
    """[n], without overflow."""
    small = np.exp(-np.abs(values))
    return np.asarray(np.where(values >= 0, 1, small) / (1 + small))


def _nll(logits: Floats, gold: Ints) -> float:
    highest = logits.max(axis=1)
    total = highest + np.log(np.exp(logits - highest[:, None]).sum(axis=1))
    return float((total - logits[np.arange(len(gold)), gold]).sum())


def _log_odds_parts(chances: Floats) -> Floats:
    """ln p and -ln(1 - p) [n, 2]; of 0 and 1 what the nearest floats give."""
    inside = np.clip(chances, 1e-300, 1 - 2.0**-53)
    return np.stack([np.log(inside), -np.log1p(-inside)], axis=1)


def separated(scores: Floats, gold: Ints) -> bool:
    """Whether a cut through scores [n] tells gold 1 [n] from 0, but for ties on the cut itself."""
    return bool(scores[gold == 1].min() >= scores[gold == 0].max())


def _turned(what: str, found: str) -> Misconfigured:
    return Misconfigured(
        what, found=found, expected="a map that rises: what scores higher is likelier",
        mend="Turn the score round: record a distance as its negative, and see which label is 1.",
    )  # fmt: skip


def _minimised(what: str, objective: Objective, start: Floats) -> Floats:
    """Where a smooth convex loss is least. Raises Misconfigured where it falls for ever."""
    from scipy.optimize import minimize

    with np.errstate(over="ignore", invalid="ignore"):  # of scores beyond what their sums can hold: refused below
        found = minimize(objective, start, jac=True, method="BFGS", options={"gtol": 1e-7, "maxiter": 20_000})
    if not np.isfinite(found.fun) or not np.isfinite(found.x).all() or np.abs(found.x).max() > 1e4:
        raise Misconfigured(
            what, found="a loss that falls for ever: the classes are told apart without an error",
            expected="cases of which some are wrong", mend="Fit on more cases, or a family with fewer numbers.",
        )  # fmt: skip
    return np.asarray(found.x)


def refuse_unfit(scores: Floats, gold: Ints, classes: int) -> None:
    """Raises Misconfigured without cases, for scores that aren't finite, and of one score [n] for one class alone and
    for scores that are all equal.
    """
    single = scores.ndim == 1
    if (
        not len(gold)
        or np.isnan(scores).any()
        or (scores == np.inf).any()
        or (single and not np.isfinite(scores).all())
        or (classes == 2 and single and len(np.unique(gold)) < 2)
    ):
        raise Misconfigured(
            "calibration cases",
            found=f"{len(gold)} cases, {len(np.unique(gold))} of the classes, "
            f"{int((~np.isfinite(scores)).sum())} scores that are not finite",
            expected="finite scores of cases of both kinds", mend="Look at the cases of the calibration role.",
        )  # fmt: skip
    if single and not np.ptp(scores):
        raise Misconfigured(
            "calibration cases", found=f"one score, {scores[0]:g}, of all {len(gold)}",
            expected="scores that differ: one that does not says nothing of a case",
            mend="Look at what the release gives the cases of the calibration role.",
        )  # fmt: skip


def refuse_flat(logits: Floats) -> None:
    """Raises Misconfigured for logits [n, k] that are the same in every case, or that put no class before another."""
    said = np.where(np.isfinite(logits), logits - logits.max(axis=1, keepdims=True), -np.inf)
    if (said == said[0]).all() or not (said < 0)[np.isfinite(said)].any():
        raise Misconfigured(
            "calibration cases", found=f"the same scores of the classes in all {len(logits)}",
            expected="scores that differ: others say nothing of a case",
            mend="Look at what the release gives the cases of the calibration role.",
        )  # fmt: skip
