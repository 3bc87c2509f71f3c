"""Measures of how far probabilities are from how often they come true, and of what is lost by answering.

A forecast is a probability and what came of it, 1 or 0. Bins are (low, high], the first also holding 0.
"""

from dataclasses import dataclass
from typing import cast

import numpy as np

from harness.errors import Misconfigured
from harness.metric.form import Floats, Ints, Objects, finish_of, mean_of, ordered_mean, ordered_sum, scored
from harness.metric.name import MetricName
from harness.metric.task import CLIP
from harness.output.contribution import CaseForecasts, Contribution, ForecastKind
from harness.output.value import Status

SURENESS = ("aurc", "risk_at_coverage")
ANSWERED = ("coverage", "answered_accuracy")
MEASURED = (
    "ece_top_label", "ece_positive", "ece_classwise", "mce", "brier_reliability", "brier_resolution",
    "brier_uncertainty", "calibration_slope", "calibration_intercept", "calibration_slope_error",
    "calibration_intercept_error", *SURENESS, *ANSWERED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Abstain:
    """Nothing is said of a case that is less sure than `below`, by one of the grounds of `sureness`."""

    ground: str = "confidence"
    below: float = -np.inf


NEVER = Abstain()


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Probabilities x and what came of them, y: [n, k], k of each case."""

    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Forecasts:
    """What these measures read of one side.

    `likeliest`: of the label or choice that is given, [n, 1]; of sets, that of every label. `every`: of every label,
    [n, k], none of choices. `positive`: the column of what bare names are of where there are two classes, None where
    there are more. `sure` [n] by ground, the higher the surer; `loss` [n], 1 where the answer is wrong. Rows of cases
    that are not scored may hold anything.
    """

    case_ids: Objects
    likeliest: Sample
    every: Sample
    positive: int | None
    exclusive: bool
    sure: dict[str, Floats]
    loss: Floats
    status: Objects
    abstain: Abstain = NEVER

    @property
    def answered(self) -> Floats:
        """[n], 1 where the release says anything, 0 where it abstains."""
        return np.asarray(self.sure[self.abstain.ground] >= self.abstain.below, dtype=np.float64)


def contribution(name: MetricName, outputs: Forecasts, column: int | None = None) -> Contribution:
    """What each case brings to a measure of its forecasts; `column`: of the one label that the name is of.

    Raises Misconfigured for a bare ece_positive of more than two classes.
    """
    if name.base in SURENESS:
        sample = Sample(outputs.sure[str(name.param("ground"))][:, None], outputs.loss[:, None])
        coverage = float(name.param("coverage")) if name.base == "risk_at_coverage" else 0.0
        return _forecasts(name, outputs, sample, cast(ForecastKind, name.base), coverage)
    if name.base == "coverage":
        return mean_of(str(name), outputs.case_ids, outputs.answered, outputs.status)
    if name.base == "answered_accuracy":
        rows = np.stack([outputs.answered * (1 - outputs.loss), outputs.answered], axis=1)
        return finish_of(str(name), outputs.case_ids, rows, _share, outputs.status)
    sample = _sample(name, outputs, column)
    apart = name.base == "ece_classwise"
    if name.base.startswith("calibration_"):
        odds = Sample(log_odds(sample.x), sample.y)
        return _forecasts(name, outputs, odds, cast(ForecastKind, name.base))
    bins = int(name.param("bins"))
    if name.base.startswith("brier_"):
        summed = outputs.exclusive and sample is outputs.every
        return _brier(name, outputs, sample, bins, summed)
    if name.form == "rank":
        return _forecasts(name, outputs, sample, "mass_mce" if name.base == "mce" else "mass_ece", bins, apart)
    return _largest_gap(name, outputs, sample, bins) if name.base == "mce" else _gap(name, outputs, sample, bins, apart)


def log_odds(chances: Floats) -> Floats:
    """ln p / (1 - p), of 0 and 1 what the bound of log losses gives."""
    inside = np.clip(chances, CLIP, 1 - CLIP)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def sureness(chances: Floats) -> dict[str, Floats]:
    """[n] by ground, of probabilities [n, k] of labels that exclude one another: the greatest, how far it is ahead of
    the second, and minus the entropy in nats.
    """
    rising = np.sort(chances, axis=1)
    second = rising[:, -2] if chances.shape[1] > 1 else np.zeros(len(chances))
    logs = np.log(np.where(chances > 0, chances, 1.0))
    return {
        "confidence": rising[:, -1],
        "margin": rising[:, -1] - second,
        "entropy": ordered_sum(chances * logs),
    }


def set_sureness(chances: Floats) -> dict[str, Floats]:
    """[n] by ground, of probabilities [n, k] of labels each by itself: as sure as of the label it is least sure of, and
    minus the sum of the labels' entropies.
    """
    likelier = np.maximum(chances, 1 - chances).min(axis=1)
    both = np.stack([chances, 1 - chances])
    logs = np.log(np.where(both > 0, both, 1.0))
    return {
        "confidence": likelier,
        "margin": 2 * likelier - 1,
        "entropy": ordered_sum((both * logs).sum(axis=0)),
    }


def _sample(name: MetricName, outputs: Forecasts, column: int | None) -> Sample:
    if column is None and (name.base == "ece_positive" or name.base.startswith("calibration_")):
        column = outputs.positive
    if column is None and name.base.startswith("brier_"):
        column = outputs.positive
    if column is not None:
        return Sample(outputs.every.x[:, [column]], outputs.every.y[:, [column]])
    if name.base == "ece_positive" and outputs.exclusive:
        raise Misconfigured(
            f"metric '{name}'", found=f"{outputs.every.x.shape[1]} classes", expected="two",
            mend="Write ece_classwise, which is over all classes, or ece_positive[CLASS].",
        )  # fmt: skip
    every = name.base in ("ece_positive", "ece_classwise") or name.base.startswith("brier_")
    return outputs.every if every else outputs.likeliest


def _forecasts(
    name: MetricName, outputs: Forecasts, sample: Sample, kind: ForecastKind, parameter: float = 0.0,
    apart: bool = False,
) -> CaseForecasts:  # fmt: skip
    counted = scored(outputs.status)
    keep, status = counted[:, None], outputs.status
    held = sample.y[counted]
    if kind.startswith("calibration_") and counted.any() and not _told(kind, sample.x[counted], held):
        status, keep = np.where(counted, Status.UNDEFINED, status).astype(object), np.zeros_like(keep)
    x, y = (np.where(keep, each, np.nan) for each in (sample.x, sample.y))
    return CaseForecasts(str(name), outputs.case_ids, x, y, kind, status, parameter, pooled=not apart)


def _told(kind: ForecastKind, odds: Floats, came: Floats) -> bool:
    """Whether there is a finite slope, or shift: both outcomes are there, and for a slope no cut tells them apart."""
    ones, zeros = odds[came > 0], odds[came < 1]
    if not (len(ones) and len(zeros)):
        return False
    return kind.startswith("calibration_intercept") or bool(ones.min() < zeros.max() and zeros.min() < ones.max())


def _gap(name: MetricName, outputs: Forecasts, sample: Sample, bins: int, apart: bool) -> Contribution:
    """The mean gap of bins, each weighted by its cases. Source: Naeini, Cooper and Hauskrecht, 2015; of every class,
    Kull et al., Beyond temperature scaling, 2019.
    """
    columns = sample.x.shape[1] if apart else 1
    gaps = _by_bin(sample, sample.x - sample.y, bins, apart)
    rows = np.hstack([gaps, np.full((len(gaps), 1), 1.0 if apart else sample.x.shape[1])])

    def finish(sums: Floats) -> Floats:
        parts = np.abs(sums[..., :-1]).reshape(*sums.shape[:-1], columns, bins).sum(axis=-1)
        return _over(ordered_mean(parts), sums[..., -1])

    return finish_of(str(name), outputs.case_ids, rows, finish, outputs.status)


def _largest_gap(name: MetricName, outputs: Forecasts, sample: Sample, bins: int) -> Contribution:
    """The gap of the bin in which it is largest."""
    ones = np.ones(sample.x.shape)
    rows = np.hstack([_by_bin(sample, each, bins, False) for each in (sample.x - sample.y, ones)])

    def finish(sums: Floats) -> Floats:
        gaps, counts = np.abs(sums[..., :bins]), sums[..., bins:]
        largest = np.where(counts > 0, gaps / np.where(counts > 0, counts, 1.0), -1.0).max(axis=-1)
        return np.where(largest < 0, np.nan, largest)

    return finish_of(str(name), outputs.case_ids, rows, finish, outputs.status)


def _brier(name: MetricName, outputs: Forecasts, sample: Sample, bins: int, summed: bool) -> Contribution:
    """A part of the Brier score, by bins: reliability − resolution + uncertainty is the score, but for what forecasts
    differ within a bin. `summed`: over classes, as brier_sum is; else of all forecasts as one sample, as brier_binary.

    Source: Murphy, A new vector partition of the probability score, 1973.
    """
    columns = sample.x.shape[1] if summed else 1
    ones = np.ones(sample.x.shape)
    rows = np.hstack([_by_bin(sample, each, bins, summed) for each in (ones, sample.x, sample.y)])
    part = name.base.removeprefix("brier_")

    def finish(sums: Floats) -> Floats:
        counts, said, came = np.moveaxis(sums.reshape(*sums.shape[:-1], 3, columns, bins), -3, 0)
        n, held = counts.sum(axis=-1), came.sum(axis=-1)
        rate = _over(held, n)
        there = np.where(counts > 0, counts, 1.0)
        if part == "reliability":
            return ordered_sum(_over(((said - came) ** 2 / there).sum(axis=-1), n))
        if part == "resolution":
            return ordered_sum(_over(((came - counts * rate[..., None]) ** 2 / there).sum(axis=-1), n))
        return ordered_sum(rate * (1 - rate))

    return finish_of(str(name), outputs.case_ids, rows, finish, outputs.status)


def _by_bin(sample: Sample, values: Floats, bins: int, apart: bool) -> Floats:
    """[n, bins], or [n, k · bins] where labels are apart: each case's values [n, k] in the bins of its forecasts."""
    place = bin_of(sample.x, bins)
    n, k = place.shape
    if apart or k == 1:
        rows = np.zeros((n, k, bins))
        np.put_along_axis(rows, place[..., None], values[..., None], axis=2)
        return rows.reshape(n, k * bins)
    return np.stack([ordered_sum(np.where(place == b, values, 0.0)) for b in range(bins)], axis=1)


def bin_of(chances: Floats, bins: int) -> Ints:
    """The place, from 0, of the bin (low, high] of equal width; 0 is in the first."""
    edges = np.linspace(0, 1, bins + 1)
    return np.clip(np.searchsorted(edges, chances, side="left") - 1, 0, bins - 1).astype(np.int64)


def _share(sums: Floats) -> Floats:
    return _over(sums[..., 0], sums[..., 1])


def _over(top: Floats, n: Floats) -> Floats:
    """top / n, and NaN without cases."""
    return np.asarray(top / np.where(n > 0, n, np.nan))
