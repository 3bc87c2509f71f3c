"""The value of one metric on every case, and why a case has none."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class Status(StrEnum):
    """Why a case has a value or none.

    `missing`: no output. `failed`: the model raised, or its output isn't finite. `undefined`: the outputs allow
    no value. `not-applicable`: the data allow none, fixed when the suite is frozen; outside `n_total`.
    """

    SCORED = "scored"
    MISSING = "missing"
    FAILED = "failed"
    UNDEFINED = "undefined"
    NOT_APPLICABLE = "not-applicable"


@dataclass(frozen=True, slots=True)
class CaseValues:
    """Shapes: case_ids [n] str, values [n] float64 (NaN unless scored), status [n] of Status values."""

    metric: str
    case_ids: NDArray[np.object_]
    values: NDArray[np.float64]
    status: NDArray[np.object_]

    @property
    def scored(self) -> NDArray[np.bool_]:
        """[n], True where the case has a value."""
        return np.asarray(self.status == Status.SCORED, dtype=bool)
