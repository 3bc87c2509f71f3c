"""A statistic seen by group: what whole groups bring to it.

Resampling, flipping and leaving out all act on whole groups, so each needs only one row per group. Those rows lie
on a grid of a power of two that is wide enough for their sums to be exact in float64 (fixed point). An exact sum has
no order: neither threads, nor the order of cases, nor the size of a block can change its bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice, HarnessError, Unpairable

Floats: TypeAlias = NDArray[np.float64]
Codes: TypeAlias = NDArray[np.intp]
Bools: TypeAlias = NDArray[np.bool_]

CELLS = 1 << 21
"""Numbers that one block of draws may hold: 16 MB in float64."""


class ByGroup(Protocol):
    """A statistic as a function of how often each group stands in the sample. `present` [p]: groups with cases."""

    @property
    def present(self) -> Codes: ...

    def of(self, counts: Floats) -> Floats:
        """The statistic [b] under counts [b, g]; NaN where undefined."""

    def whole(self) -> float:
        """The statistic where every group counts once, computed as `of` does."""

    def leave_one_out(self) -> Floats:
        """The statistic [p] without one group at a time, in the order of `present`."""


@dataclass(frozen=True, slots=True, eq=False)
class Additive:
    """What groups bring adds up: columns [g, m] on a grid, and `finish` [b, m] → [b] of their weighted sums.

    `remark`: what an interval found from it must say of it.
    """

    columns: Floats
    finish: Callable[[Floats], Floats]
    present: Codes
    remark: str = ""

    def of(self, counts: Floats) -> Floats:
        return self.finish(counts @ self.columns)

    def whole(self) -> float:
        return float(self.finish(self.columns.sum(axis=0, keepdims=True))[0])

    def leave_one_out(self) -> Floats:
        return self.finish(self.columns.sum(axis=0) - self.columns[self.present])


@dataclass(frozen=True, slots=True, eq=False)
class Expanded:
    """What groups bring does not add up: each group's count is spread over its cases and `per_case` asked anew.

    `folded`: it is a distance from a right value, or a difference of two such.
    """

    per_case: Callable[[Floats], Floats]
    groups: Codes
    present: Codes
    folded: bool = False

    def of(self, counts: Floats) -> Floats:
        rows = max(1, CELLS // len(self.groups))
        blocks = [counts[start : start + rows] for start in range(0, len(counts), rows)]
        return np.concatenate([self.per_case(block[:, self.groups]) for block in blocks])

    def whole(self) -> float:
        return float(self.per_case(np.ones((1, len(self.groups))))[0])

    def leave_one_out(self) -> Floats:
        rows = max(1, CELLS // len(self.groups))
        blocks = [self.present[start : start + rows] for start in range(0, len(self.present), rows)]
        return np.concatenate([self.per_case((self.groups != left[:, None]).astype(np.float64)) for left in blocks])


def mean_by_group(values: Floats, groups: Codes, n_groups: int, remark: str = "") -> Additive:
    """The mean of values [n] by group: a ratio of two sums."""
    present = groups_present(groups, len(values), n_groups)
    rows = np.stack([values, np.ones(len(values))], axis=1)
    return Additive(grid_sums(rows, groups, n_groups), ratio, present, remark)


def on_grid(values: Floats, terms: int) -> Floats:
    """Each column rounded to a power of two such that any signed sum of `terms` of its values is exact in float64.

    Shapes: values [n, m]. The step is at most 2**-51 of the column's largest magnitude times `terms`.
    """
    largest = np.maximum(values.max(axis=0, initial=0.0), -values.min(axis=0, initial=0.0))
    _, exponent = np.frexp(largest * terms)
    shift = np.minimum(52 - exponent, 1000)
    # By products, which are as exact as np.ldexp of each number, and many times as fast.
    up, down = np.ldexp(1.0, shift), np.ldexp(1.0, -shift)
    moved = values * up
    return np.asarray(np.multiply(np.rint(moved, out=moved), down, out=moved), dtype=np.float64)


def group_sums(rows: Floats, groups: Codes, n_groups: int) -> Floats:
    """Sums [g, m] of rows [n, m] by group, the same bytes in whatever order the cases stand."""
    return np.hstack(list(_sums(rows, groups, n_groups)))


def grid_sums(rows: Floats, groups: Codes, n_groups: int) -> Floats:
    """The same sums, such that any signed sum of them is exact too."""
    found = np.empty((n_groups, rows.shape[1]))
    at = 0
    for sums in _sums(rows, groups, n_groups):
        found[:, at : at + sums.shape[1]] = on_grid(sums, n_groups)
        at += sums.shape[1]
    return found


def _sums(rows: Floats, groups: Codes, n_groups: int) -> Iterator[Floats]:
    """So many columns at a time that what stands between rows and sums stays small."""
    order = np.argsort(groups, kind="stable")
    present, starts = np.unique(groups[order], return_index=True)
    width = max(1, CELLS // max(len(rows), n_groups))
    for at in range(0, rows.shape[1], width):
        exact = on_grid(rows[:, at : at + width], len(rows))[order]
        sums = np.zeros((n_groups, exact.shape[1]))
        sums[present] = exact if len(present) == len(rows) else np.add.reduceat(exact, starts, axis=0)
        yield sums + 0.0  # of a group of one case, too, a negative zero is none


def groups_present(groups: Codes, n_cases: int, n_groups: int) -> Codes:
    """The codes that occur, rising. Raises Unpairable where codes [n] do not fit n cases and g groups."""
    if len(groups) != n_cases:
        raise Unpairable(
            "group codes",
            found=f"{len(groups)} codes for {n_cases} cases",
            expected="one code per case",
            mend="Take the groups of the same cases as the values.",
        )
    present = np.unique(groups)
    if present[0] < 0 or present[-1] >= n_groups:
        raise Unpairable(
            "group codes",
            found=f"codes from {present[0]} to {present[-1]}",
            expected=f"codes from 0 to {n_groups - 1}",
            mend="Draw over all groups that the cases can belong to.",
        )
    return np.asarray(present, dtype=np.intp)


def ratio(sums: Floats) -> Floats:
    """[b], the first of sums [b, 2] over the second; NaN where that is not above 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[:, 1] > 0, sums[:, 0] / sums[:, 1], np.nan)


def refuse_unusable(subject: str, values: Floats) -> None:
    """Raises EmptySlice without cases, HarnessError for a value that is not finite."""
    if len(values) == 0:
        raise EmptySlice(
            subject,
            found="no cases",
            expected="at least one scored case",
            mend="Look at the slice's members and at the status of its cases.",
        )
    if not np.isfinite(values).all():
        raise HarnessError(
            subject,
            found=f"{int((~np.isfinite(values)).sum())} values that are not finite",
            expected="values of scored cases alone",
            mend="Take the scored cases first; status says which they are.",
        )
