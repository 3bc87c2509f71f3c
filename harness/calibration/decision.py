"""From calibrated probabilities to decisions: thresholds by what errors cost, and when to say nothing."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Ground: TypeAlias = Literal["confidence", "margin", "entropy"]


def cost_threshold(false_positive: float, false_negative: float) -> float:
    """The probability from which saying yes costs less than saying no: C_FP / (C_FP + C_FN).

    Raises Misconfigured for costs that aren't above 0. Source: Elkan, The foundations of cost-sensitive learning, 2001.
    """
    if not (false_positive > 0 and false_negative > 0 and np.isfinite(false_positive + false_negative)):
        raise Misconfigured(
            "costs", found=f"{false_positive} and {false_negative}", expected="two costs above 0",
            mend="Say what a false alarm and a miss cost; only their ratio counts.",
        )  # fmt: skip
    return false_positive / (false_positive + false_negative)


def capacity_threshold(scores: Floats, capacity: float) -> float:
    """The lowest score from which at most a share `capacity` of scores [n] is taken, never cutting a tied group."""
    if not 0 < capacity <= 1 or not len(scores):
        raise Misconfigured(
            "capacity", found=f"{capacity} of {len(scores)} scores",
            expected="a share above 0, at most 1, of some scores", mend="Say which share can be worked on.",
        )  # fmt: skip
    values, counts = np.unique(scores, return_counts=True)
    taken = np.cumsum(counts[::-1])[::-1]
    fits = np.flatnonzero(taken <= capacity * len(scores) * (1 + 1e-12))
    return float(values[fits[0]]) if len(fits) else float(np.nextafter(values[-1], np.inf))


def sureness(probabilities: Floats, ground: Ground = "confidence") -> Floats:
    """[n], the higher the surer: the greatest of probabilities [n, k], how far it is ahead of the second, or minus the
    entropy in nats.
    """
    if ground == "confidence":
        return np.asarray(probabilities.max(axis=1))
    if ground == "margin":
        first, second = np.sort(probabilities, axis=1)[:, :-3:-1].T
        return np.asarray(first - second)
    logs = np.log(np.where(probabilities > 0, probabilities, 1.0))
    return np.asarray((probabilities * logs).sum(axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class RiskCoverage:
    """Mean loss of the cases that are answered, the surest first. Shapes: coverage and risk [m], one point for each
    sureness that differs, so that tied cases are answered together.

    `aurc`: the mean risk over all numbers of answered cases, tied ones in any order alike.

    Source: Geifman and El-Yaniv, Selective classification for deep neural networks, 2017.
    """

    coverage: Floats
    risk: Floats
    aurc: float

    def at(self, coverage: float) -> float:
        """The risk where at least so large a share is answered, and no tied group is cut."""
        return float(self.risk[np.searchsorted(self.coverage, coverage - 1e-12)])


def risk_coverage(sure: Floats, losses: Floats) -> RiskCoverage:
    """Of sureness [n] and the loss [n] of each answer. Raises Misconfigured without cases."""
    if not len(sure):
        raise Misconfigured("risk and coverage", found="no case", expected="scored cases", mend="Look at the slice.")
    _, place, counts = np.unique(-sure, return_inverse=True, return_counts=True)
    lost = np.bincount(place, losses)
    answered, paid = np.cumsum(counts), np.cumsum(lost)
    # Inside a tied group each case stands for the group's mean.
    step = np.concatenate([np.arange(1, count + 1) for count in counts])
    before = np.repeat(np.concatenate([[0], paid[:-1]]), counts)
    at = np.arange(1, len(sure) + 1)
    running = (before + step * np.repeat(lost / counts, counts)) / at
    return RiskCoverage(answered / len(sure), paid / answered, float(running.mean()))


def best_f1_threshold(scores: Floats, gold: Ints) -> float:
    """From which score [n] on saying yes has the highest F1 against gold 0 or 1 [n]: halfway between two scores that
    differ, the highest of equally good ones. Raises Misconfigured without a positive case.
    """
    if not gold.any():
        raise Misconfigured(
            "the threshold with the best F1", found="no calibration case that has the label", expected="some",
            mend="Give it cases, or declare the label's threshold.",
        )  # fmt: skip
    values, place = np.unique(scores, return_inverse=True)
    given = np.cumsum(np.bincount(place)[::-1])[::-1]
    right = np.cumsum(np.bincount(place, gold)[::-1])[::-1]
    reached = 2 * right / (given + gold.sum())
    best = int(np.flatnonzero(reached == reached.max())[-1])
    if best == 0:
        return float(values[0])
    low, high = float(values[best - 1]), float(values[best])
    middle = low + (high - low) / 2
    return middle if low < middle <= high else high


@dataclass(frozen=True, slots=True)
class Abstention:
    """Sureness below which nothing is said, and what that comes to: the share that is answered, and its risk."""

    below: float
    coverage: float
    risk: float


def abstain_for_coverage(sure: Floats, losses: Floats, coverage: float) -> Abstention:
    """The highest bar over which at least so large a share of sureness [n] is; no tied group is cut."""
    if not 0 < coverage <= 1:
        raise Misconfigured(
            "coverage", found=f"{coverage}", expected="a share above 0, at most 1", mend="Say which share is answered.",
        )  # fmt: skip
    curve = risk_coverage(sure, losses)
    return _abstention(sure, curve, int(np.searchsorted(curve.coverage, coverage - 1e-12)))


def abstain_for_risk(sure: Floats, losses: Floats, risk: float) -> Abstention:
    """The bar under which the most is answered with no more risk than this. Raises Misconfigured where none is."""
    if not 0 <= risk <= 1:
        raise Misconfigured(
            "risk", found=f"{risk}", expected="a share from 0 to 1", mend="Say how many of the answered may be wrong.",
        )  # fmt: skip
    curve = risk_coverage(sure, losses)
    within = np.flatnonzero(curve.risk <= risk)
    if not len(within):
        raise Misconfigured(
            "risk", found=f"at least {curve.risk.min():.4g}, however few are answered", expected=f"{risk} at most",
            mend="Allow more risk, or improve the model.",
        )  # fmt: skip
    return _abstention(sure, curve, int(within[-1]))


def _abstention(sure: Floats, curve: RiskCoverage, at: int) -> Abstention:
    falling = np.unique(sure)[::-1]
    return Abstention(float(falling[at]), float(curve.coverage[at]), float(curve.risk[at]))
