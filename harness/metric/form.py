"""What the files of this room share: statuses, policies for 0/0, and the forms in which a metric is handed on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.output.case import OutputStatus
from harness.output.contribution import CaseRanks, CaseRows, RankKind
from harness.output.value import CaseValues, Status

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Objects: TypeAlias = NDArray[np.object_]
Word: TypeAlias = Literal["zero", "one", "leave-out"]

LARGEST = 1e40
"""The largest number that a prediction or a target may be: cubes of squared errors, summed, still fit into a float."""

WORTH: dict[str, float] = {"zero": 0.0, "one": 1.0, "leave-out": np.nan}


@dataclass(frozen=True, slots=True)
class Policy:
    """What stands where a metric is 0/0.

    `absent`: a class that is neither gold nor predicted. `division`: the precision of a class (or case) for which
    nothing is predicted, the recall of one that has no gold. `empty`: a case without gold and without predicted
    labels. What is left out is in no mean; a metric of which nothing is left is undefined. The defaults for classes
    give scikit-learn's numbers.
    """

    absent: Word = "leave-out"
    division: Word = "zero"
    empty: Word = "one"


UNDEFINED = Policy(absent="leave-out", division="leave-out")
"""For a metric of one class: 0/0 is no number."""


def case_status(output_status: Objects, *, applicable: Bools, usable: Bools) -> Objects:
    """Statuses [n]. What the data decide comes first; `usable` says where an output is what it should be."""
    status = np.full(len(output_status), Status.SCORED, dtype=object)
    status[~usable] = Status.FAILED
    status[output_status == OutputStatus.FAILED] = Status.FAILED
    status[output_status == OutputStatus.MISSING] = Status.MISSING
    status[~applicable] = Status.NOT_APPLICABLE
    return status


def scored(status: Objects) -> Bools:
    """[n], True where a case has a value."""
    return np.asarray(status == Status.SCORED, dtype=bool)


def mean_of(metric: str, case_ids: Objects, values: Floats, status: Objects) -> CaseValues:
    """A mean: values [n]. A scored case whose value is NaN becomes undefined."""
    counted = scored(status)
    status = np.where(counted & np.isnan(values), Status.UNDEFINED, status).astype(object)
    return CaseValues(metric, case_ids, np.where(counted, values, np.nan), status)


def finish_of(
    metric: str, case_ids: Objects, rows: Floats, finish: Callable[[Floats], Floats], status: Objects
) -> CaseRows:
    """A finish of summed rows [n, m]. Where all scored cases together have no value, each is undefined."""
    counted = scored(status)
    if counted.any() and np.isnan(finish(rows[counted].sum(axis=0))):
        status = np.where(counted, Status.UNDEFINED, status).astype(object)
    return CaseRows(metric, case_ids, np.where(scored(status)[:, None], rows, np.nan), finish, status)


def rank_of(metric: str, case_ids: Objects, x: Floats, y: Floats, kind: RankKind, status: Objects) -> CaseRanks:
    """A rank statistic of columns x and y [n, k]; undefined where every column is."""
    counted = scored(status)
    if counted.any():
        x_varies, y_varies = (np.ptp(each[counted], axis=0) > 0 for each in (x, y))
        defined = {
            "auroc": y_varies,
            "average_precision": (y[counted] > 0).any(axis=0),
            "pearson": x_varies & y_varies,
            "spearman": x_varies & y_varies,
            "kendall": x_varies & y_varies,
        }[kind]
        if not defined.any():
            status = np.where(counted, Status.UNDEFINED, status).astype(object)
    keep = scored(status)[:, None]
    return CaseRanks(metric, case_ids, np.where(keep, x, np.nan), np.where(keep, y, np.nan), kind, status)


def ordered_sum(values: Floats) -> Floats:
    """Sums over the last axis, the same bits in whatever order its values stand."""
    return np.asarray(np.ascontiguousarray(np.sort(values, axis=-1)).sum(axis=-1))


def ordered_mean(values: Floats) -> Floats:
    """Means over the last axis, NaN left out, the same bits in whatever order its values stand; NaN where all are."""
    there = ~np.isnan(values)
    return divided(ordered_sum(np.where(there, values, 0.0)), there.sum(axis=-1))


def divided(top: Floats | Ints, bottom: Floats | Ints, otherwise: float = np.nan) -> Floats:
    """top / bottom, and `otherwise` where bottom is 0 or below."""
    result = np.full(np.broadcast(top, bottom).shape, otherwise)
    return np.asarray(np.divide(top, bottom, out=result, where=np.asarray(bottom) > 0))


def between(values: Floats, position: int) -> float:
    """A number above values[position - 1] and not above values[position], halfway where floats allow; values rise and
    differ. At position 0 it is the lowest, at the end just above the highest."""
    if position == 0:
        return float(values[0])
    if position == len(values):
        return float(np.nextafter(values[-1], np.inf))
    low, high = float(values[position - 1]), float(values[position])
    middle = low + (high - low) / 2
    return middle if low < middle <= high else high


def objects(values: list[str]) -> Objects:
    """[n] of text as an object array."""
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result
