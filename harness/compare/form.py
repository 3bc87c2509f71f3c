"""From what cases bring to a metric to the statistic that is compared."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.compare.forecast import WeightedForecast
from harness.compare.group import Bools, Floats
from harness.compare.ordering import RankMean, WeightedRank
from harness.compare.statistic import Finish, Mean, OneSide
from harness.output.contribution import CaseForecasts, CaseRanks, CaseRows, Contribution


def statistic(found: Contribution, members: Bools | None = None) -> OneSide:
    """The statistic of the scored cases, of those among the members [n] where these are given.

    Raises EmptySlice where none is left.
    """
    kept = found.scored if members is None else found.scored & members
    if isinstance(found, CaseRows):
        return Finish(found.rows[kept], found.finish)
    if isinstance(found, CaseRanks):
        columns = [WeightedRank(x, y, found.kind) for x, y in zip(found.x[kept].T, found.y[kept].T, strict=True)]
        return columns[0] if len(columns) == 1 else RankMean(tuple(columns))
    if isinstance(found, CaseForecasts):
        x, y = found.x[kept], found.y[kept]
        if found.pooled:
            return WeightedForecast(x, y, found.kind, found.parameter)
        parts = [WeightedForecast(x[:, [c]], y[:, [c]], found.kind, found.parameter) for c in range(x.shape[1])]
        return parts[0] if len(parts) == 1 else RankMean(tuple(parts))
    return Mean(np.asarray(found.values[kept]))


def of_cases(found: Contribution, index: NDArray[np.intp]) -> Contribution:
    """The same metric of some cases, in their order."""
    case_ids, status = found.case_ids[index], found.status[index]
    if isinstance(found, CaseRows):
        return replace(found, case_ids=case_ids, status=status, rows=found.rows[index])
    if isinstance(found, CaseRanks | CaseForecasts):
        return replace(found, case_ids=case_ids, status=status, x=found.x[index], y=found.y[index])
    return replace(found, case_ids=case_ids, status=status, values=found.values[index])


def brought(found: Contribution) -> Floats:
    """All that cases bring, [n, m]; NaN of those that are not scored."""
    if isinstance(found, CaseRows):
        return found.rows
    if isinstance(found, CaseRanks | CaseForecasts):
        return np.hstack([found.x, found.y])
    return np.where(found.scored, found.values, np.nan)[:, None]
