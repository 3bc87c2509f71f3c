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

    _refuse_unfit(logits, gold, logits.shape[1])

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


def fit_vector(logits: Floats, gold: Ints) -> Scaling:
    """A scale and a shift for each class. Raises Misconfigured where classes can be told apart without an error."""
    k = logits.shape[1]
    _refuse_unfit(logits, gold, k)

    def objective(x: Floats) -> tuple[float, Floats]:
        error = _residual(logits * x[:k] + x[k:], gold)
        return _nll(logits * x[:k] + x[k:], gold), np.concatenate([(error * logits).sum(axis=0), error.sum(axis=0)])

    x = _minimised("vector scaling", objective, np.concatenate([np.ones(k), np.zeros(k)]))
    return Scaling(np.diag(x[:k]), _centred(x[k:]))


def fit_matrix(logits: Floats, gold: Ints) -> Scaling:
    """A linear map of the logits. Raises Misconfigured as `fit_vector`, and for fewer cases than numbers to find."""
    k = logits.shape[1]
    _refuse_unfit(logits, gold, k)
    if len(logits) < k * (k + 1):
        raise Misconfigured(
            "matrix scaling", found=f"{len(logits)} cases for {k * (k + 1)} numbers", expected="more cases than that",
            mend="Fit vector scaling, or a temperature.",
        )  # fmt: skip

    def objective(x: Floats) -> tuple[float, Floats]:
        weights, bias = x[: k * k].reshape(k, k), x[k * k :]
        error = _residual(logits @ weights + bias, gold)
        return _nll(logits @ weights + bias, gold), np.concatenate([(logits.T @ error).ravel(), error.sum(axis=0)])

    x = _minimised("matrix scaling", objective, np.concatenate([np.eye(k).ravel(), np.zeros(k)]))
    return Scaling(x[: k * k].reshape(k, k), _centred(x[k * k :]))


def fit_platt(scores: Floats, gold: Ints) -> Platt:
    """Slope and intercept on scores [n] of gold 0 or 1 [n], held against Platt's targets, which are short of 0 and 1.

    Raises Misconfigured for a slope that is not above 0: the score is turned the wrong way round, or says nothing.
    """
    _refuse_unfit(scores, gold, 2)
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
        raise Misconfigured(
            "Platt scaling", found=f"the slope {slope / spread:.4g}",
            expected="one above 0: what scores higher is likelier",
            mend="Turn the score round: record a distance as its negative, and see which label is 1.",
        )  # fmt: skip
    return Platt(float(slope / spread), float(intercept - slope * centre / spread))


def fit_beta(chances: Floats, gold: Ints) -> Beta:
    """a, b and c on probabilities [n] of gold 0 or 1 [n]. Raises Misconfigured where either class is lacking."""
    from scipy.optimize import minimize

    _refuse_unfit(chances, gold, 2)
    parts = _log_odds_parts(chances)

    def objective(x: Floats) -> tuple[float, Floats]:
        given = parts @ x[:2] + x[2]
        error = sigmoid(given) - gold
        return float((np.logaddexp(0, given) - gold * given).sum()), np.append(parts.T @ error, error.sum())

    found = minimize(
        objective, np.array([1.0, 1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(0, None), (0, None), (None, None)],
        options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 10_000},
    )  # fmt: skip
    return Beta(*(float(each) for each in found.x))


def fit_isotonic(scores: Floats, gold: Ints) -> Steps:
    """The rising steps nearest to gold 0 or 1 [n] in squared error; tied scores [n] are one point, with their mean."""
    from sklearn.isotonic import IsotonicRegression

    _refuse_unfit(scores, gold, 2)
    found = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(scores, gold)
    at, values = np.asarray(found.X_thresholds_, float), np.asarray(found.y_thresholds_, float)
    return Steps(at, values, int(np.isin(found.predict(scores), (0.0, 1.0)).sum()))


def fit_histogram(scores: Floats, gold: Ints, bins: int = 10) -> Steps:
    """The share of gold 1 in bins of equal mass, never cut inside a tied group. Source: Zadrozny and Elkan, 2001."""
    _refuse_unfit(scores, gold, 2)
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


def _residual(logits: Floats, gold: Ints) -> Floats:
    error = softmax(logits)
    error[np.arange(len(gold)), gold] -= 1
    return error


def _log_odds_parts(chances: Floats) -> Floats:
    """ln p and -ln(1 - p) [n, 2]; of 0 and 1 what the nearest floats give."""
    inside = np.clip(chances, 1e-300, 1 - 2.0**-53)
    return np.stack([np.log(inside), -np.log1p(-inside)], axis=1)


def _centred(bias: Floats) -> Floats:
    """What is added to every class alike changes nothing: the one with mean 0 is told."""
    return np.asarray(bias - bias.mean())


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


def _refuse_unfit(scores: Floats, gold: Ints, classes: int) -> None:
    """Raises Misconfigured without cases, for scores that aren't finite, and for two classes of which one lacks."""
    if (
        not len(gold)
        or np.isnan(scores).any()
        or (scores == np.inf).any()
        or (scores.ndim == 1 and not np.isfinite(scores).all())
        or (classes == 2 and scores.ndim == 1 and len(np.unique(gold)) < 2)
    ):
        raise Misconfigured(
            "calibration cases",
            found=f"{len(gold)} cases, {len(np.unique(gold))} of the classes, "
            f"{int((~np.isfinite(scores)).sum())} scores that are not finite",
            expected="finite scores of cases of both kinds", mend="Look at the cases of the calibration role.",
        )  # fmt: skip
