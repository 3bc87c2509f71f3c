"""Metrics of one number per case, in the target's own units."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from harness.errors import Misconfigured, Unpairable
from harness.metric.correlation import CORRELATIONS, correlation
from harness.metric.form import LARGEST, Bools, Floats, Objects, case_status, divided, finish_of, mean_of, scored
from harness.metric.label import refuse_task
from harness.metric.name import MetricName
from harness.output.contribution import Contribution
from harness.output.value import Status


@dataclass(frozen=True, slots=True)
class Inverse:
    """What undoes the transform of the training targets: `link` of output · scale + shift."""

    scale: float = 1.0
    shift: float = 0.0
    link: Literal["identity", "exp", "expm1"] = "identity"

    def __post_init__(self) -> None:
        if not (np.isfinite([self.scale, self.shift]).all() and self.scale != 0):
            raise Misconfigured(
                "inverse transform",
                found=f"scale {self.scale}, shift {self.shift}",
                expected="finite numbers, the scale not 0",
                mend="Take them from the training targets.",
            )

    def __call__(self, outputs: Floats) -> Floats:
        """Outputs [n] in the target's units; infinite where they don't fit into a float."""
        moved = outputs * self.scale + self.shift
        with np.errstate(over="ignore"):
            return moved if self.link == "identity" else np.exp(moved) if self.link == "exp" else np.expm1(moved)


@dataclass(frozen=True, slots=True, eq=False)
class Regressed:
    """Predictions and targets in the target's units. Shapes: all [n]; prediction is NaN unless scored.

    `clipped`: the prediction lay outside the declared range and was put on its edge.
    """

    case_ids: Objects
    target: Floats
    prediction: Floats
    clipped: Bools
    inverse: Inverse
    status: Objects


@dataclass(frozen=True, slots=True)
class Range:
    """The numbers that a prediction may be; ones beyond are put on the nearer end, and counted."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise Misconfigured(
                "range", found=f"{self.low} to {self.high}", expected="a low below a high", mend="Exchange the two."
            )


def regressed(
    case_ids: Objects,
    target: Floats,
    output: Floats,
    output_status: Objects,
    *,
    inverse: Inverse | None = None,
    clip: Range | None = None,
) -> Regressed:
    """Reads outputs [n] through the inverse transform, then the range. A target of NaN is missing: not-applicable.

    A prediction that is not finite, or beyond LARGEST when it was clipped, has failed. Raises Misconfigured for such a
    target.
    """
    if (np.abs(target) > LARGEST).any():
        raise Misconfigured(
            "targets", found=f"one beyond {LARGEST:g}", expected="numbers, or none",
            mend="Mend the case, or take it out.",
        )  # fmt: skip
    inverse = inverse or Inverse()
    found = inverse(output)
    within = found if clip is None else np.clip(found, clip.low, clip.high)
    usable = np.isfinite(found) & (np.abs(within) <= LARGEST)
    status = case_status(output_status, applicable=~np.isnan(target), usable=usable)
    counted = scored(status)
    return Regressed(
        case_ids=case_ids,
        target=target,
        prediction=np.where(counted, within, np.nan),
        clipped=counted & (within != found),
        inverse=inverse,
        status=status,
    )


def contribution(name: MetricName, outputs: Regressed) -> Contribution:
    """What each case brings to a metric of numbers. Raises Misconfigured for a metric of another task."""
    refuse_task(name, "regression")
    if name.base in CORRELATIONS:
        return correlation(name, outputs.case_ids, outputs.prediction, outputs.target, outputs.status)
    error = outputs.prediction - outputs.target
    if name.base in PER_CASE:
        return mean_of(str(name), outputs.case_ids, PER_CASE[name.base](error), outputs.status)
    if name.base == "rmse":
        rows = np.stack([np.ones(len(error)), error**2], axis=1)
        return finish_of(str(name), outputs.case_ids, rows, _rmse, outputs.status)
    # Away from their mean, for a sum of squares minus a square of sums loses what both have in common. The mean is of
    # all targets, also of cases without an output: where two sides exchange cases both must be as far away.
    away = outputs.target - _mean(outputs.target[~np.isnan(outputs.target)])
    rows = np.stack([np.ones(len(error)), error**2, away, away**2], axis=1)
    return finish_of(str(name), outputs.case_ids, rows, _r2, outputs.status)


def _rmse(sums: Floats) -> Floats:
    return np.sqrt(np.maximum(divided(sums[..., 1], sums[..., 0]), 0.0))


def _r2(sums: Floats) -> Floats:
    """1 minus the squared errors over the targets' squared distances from the mean of all these cases.

    Undefined where the targets are constant.
    """
    n, errors, total, squares = np.moveaxis(sums, -1, 0)
    spread = squares - divided(total**2, n)
    return 1 - divided(errors, np.where(spread > SPREAD * squares, spread, 0.0))


PER_CASE: dict[str, Callable[[Floats], Floats]] = {"mae": np.abs, "mse": np.square}


SPREAD = 1e-13
"""The least share of the squares' sum that counts as spread; below it float64 has nothing left to tell."""


@dataclass(frozen=True, slots=True)
class Extent:
    """The least and the greatest of some numbers; NaN of none."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TargetSummary:
    """What stands behind the numbers. Ranges are of the scored cases; `n_beyond` predictions lie outside the targets'.

    `n_without_target` cases have no target, `n_clipped` predictions were put on the edge of the declared range.
    """

    targets: Extent
    predictions: Extent
    n_scored: int
    n_without_target: int
    n_missing: int
    n_failed: int
    n_clipped: int
    n_beyond: int
    inverse: Inverse


def target_summary(outputs: Regressed) -> TargetSummary:
    """Ranges and counts of targets and predictions."""
    counted = scored(outputs.status)
    targets, predictions = _extent(outputs.target[counted]), _extent(outputs.prediction[counted])
    beyond = (outputs.prediction < targets.low) | (outputs.prediction > targets.high)
    return TargetSummary(
        targets=targets,
        predictions=predictions,
        n_scored=int(counted.sum()),
        n_without_target=int((outputs.status == Status.NOT_APPLICABLE).sum()),
        n_missing=int((outputs.status == Status.MISSING).sum()),
        n_failed=int((outputs.status == Status.FAILED).sum()),
        n_clipped=int(outputs.clipped.sum()),
        n_beyond=int((beyond & counted).sum()),
        inverse=outputs.inverse,
    )


@dataclass(frozen=True, slots=True)
class Residuals:
    """Prediction minus target of one slice's scored cases; above 0 is too high. NaN of no case.

    `low`, `median` and `high` are quantiles .05, .5 and .95; `spread` is the standard deviation around `mean`.
    """

    slice: str
    n: int
    mean: float
    spread: float
    low: float
    median: float
    high: float
    largest: float


def residuals(outputs: Regressed, slices: Mapping[str, Bools]) -> tuple[Residuals, ...]:
    """Residuals by slice, members [n]. Raises Unpairable for members of other cases."""
    found = []
    for name, members in slices.items():
        if len(members) != len(outputs.status):
            raise Unpairable(
                f"slice {name!r}",
                found=f"{len(members)} marks for {len(outputs.status)} cases",
                expected="one mark per case",
                mend="Take the slice of the same cases.",
            )
        kept = scored(outputs.status) & members
        error = np.sort(outputs.prediction[kept] - outputs.target[kept])
        if not len(error):
            found.append(Residuals(name, 0, *[float("nan")] * 6))
            continue
        low, median, high = np.quantile(error, [0.05, 0.5, 0.95]).tolist()
        largest = float(np.abs(error).max())
        found.append(Residuals(name, len(error), float(error.mean()), float(error.std()), low, median, high, largest))
    return tuple(found)


def _mean(values: Floats) -> float:
    """The same bits in any order; 0 of none."""
    return math.fsum(values.tolist()) / len(values) if len(values) else 0.0


def _extent(values: Floats) -> Extent:
    return Extent(float(values.min()), float(values.max())) if len(values) else Extent(float("nan"), float("nan"))
