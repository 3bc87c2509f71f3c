"""From what cases bring to a metric to the statistic that is compared."""

import numpy as np

from harness.compare.group import Bools
from harness.compare.ordering import RankMean, WeightedRank
from harness.compare.statistic import Finish, Mean, OneSide
from harness.output.contribution import CaseRanks, CaseRows, Contribution


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
    return Mean(np.asarray(found.values[kept]))
