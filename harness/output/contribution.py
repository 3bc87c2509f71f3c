"""What each case brings to a metric, in the three forms of docs/design.md; a mean's is `CaseValues`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.output.value import CaseValues, Status

RankKind: TypeAlias = Literal["pearson", "spearman", "kendall", "auroc", "average_precision"]
ForecastKind: TypeAlias = Literal[
    "mass_ece",
    "mass_mce",
    "calibration_slope",
    "calibration_intercept",
    "calibration_slope_error",
    "calibration_intercept_error",
    "aurc",
    "risk_at_coverage",
]
"""What is made of forecasts in their order, of which both sides bring what came of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class CaseRows:
    """Rows that add up, and `finish` of their sums: [..., m] → [...], NaN where the metric is undefined.

    Shapes: case_ids [n] str, rows [n, m] float64 (NaN unless scored), status [n] of Status values.
    """

    metric: str
    case_ids: NDArray[np.object_]
    rows: NDArray[np.float64]
    finish: Callable[[NDArray[np.float64]], NDArray[np.float64]]
    status: NDArray[np.object_]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """[n], True where the case has a row."""
        return np.asarray(self.status == Status.SCORED, dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class CaseRanks:
    """Predictions x and what holds, y, whose order is compared; of k columns, the mean over those that are defined.

    Shapes: case_ids [n] str, x and y [n, k] float64 (NaN unless scored), status [n] of Status values.
    """

    metric: str
    case_ids: NDArray[np.object_]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    kind: RankKind
    status: NDArray[np.object_]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """[n], True where the case takes part."""
        return np.asarray(self.status == Status.SCORED, dtype=bool)


@dataclass(frozen=True, slots=True, eq=False)
class CaseForecasts:
    """Forecasts x and what came of them, y, of k columns: the mean over the columns, or of all as one where `pooled`.

    `parameter`: how many bins, or which coverage. Shapes: case_ids [n] str, x and y [n, k] float64 (NaN unless scored),
    status [n] of Status values.
    """

    metric: str
    case_ids: NDArray[np.object_]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    kind: ForecastKind
    status: NDArray[np.object_]
    parameter: float = 0.0
    pooled: bool = False

    @property
    def scored(self) -> NDArray[np.bool_]:
        """[n], True where the case takes part."""
        return np.asarray(self.status == Status.SCORED, dtype=bool)


Contribution: TypeAlias = CaseValues | CaseRows | CaseRanks | CaseForecasts
