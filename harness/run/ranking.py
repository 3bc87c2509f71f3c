"""From scored documents to the ranking that is kept: the suite's order, cut at its depth but never inside a tie."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.output.case import Ranking
from harness.output.order import expected_order, trec_order

# A tied group across the depth that is larger than this is kept by its size and its judged documents.
WHOLE_GROUP = 1000


@dataclass(frozen=True, slots=True)
class Cut:
    """How a ranking is wanted. `drop_self`: leave out the document whose ID is the query's. `exact`: cut a tied group
    that crosses the depth where the total order says, for a next stage is given so many documents and no more.
    """

    depth: int
    ties: str
    drop_self: bool
    exact: bool = False


def cut_ranking(
    case_id: str,
    documents: NDArray[np.object_],
    scores: NDArray[np.float64],
    cut: Cut,
    *,
    judged: Collection[str] = (),
    crossing: int = 0,
) -> Ranking:
    """The ranking to keep of one case.

    Shapes: documents, scores [m], finite, any order, each document once. `crossing`: where the last tied group
    came in already reduced to its judged documents, its true size; never where the cut is exact. Under `trec` the order
    is total, so the cut is exact; under `expected` the tied group that crosses the depth stays whole, or by size past
    WHOLE_GROUP.
    """
    if cut.drop_self and np.any(mine := documents == case_id):
        if crossing and scores[mine][0] == scores.min():
            crossing -= 1
        documents, scores = documents[~mine], scores[~mine]
    if cut.ties == "trec":
        order = trec_order(documents, scores)[: cut.depth]
        # Kept as trec_eval sees them, so that what it takes for a tie is one here too.
        with np.errstate(over="ignore"):
            return Ranking(documents[order], scores[order].astype(np.float32).astype(np.float64))
    order = expected_order(documents, scores)
    documents, scores = documents[order], scores[order]
    if cut.exact:
        return Ranking(documents[: cut.depth], scores[: cut.depth])
    if len(scores) <= cut.depth and not crossing:
        return Ranking(documents, scores)
    boundary = scores[min(cut.depth, len(scores)) - 1]
    above = int(np.searchsorted(-scores, -boundary, side="left"))
    end = int(np.searchsorted(-scores, -boundary, side="right"))
    reduced = crossing > 0 and end == len(scores)
    size = crossing if reduced else end - above
    if not reduced and (size <= WHOLE_GROUP or above + size <= cut.depth):
        return Ranking(documents[:end], scores[:end])
    kept = np.array([index < above or documents[index] in judged for index in range(end)], dtype=bool)
    # One of the group stays even where none is judged, so that the last score tells which group was reduced.
    kept[above] |= not kept[above:].any()
    return Ranking(documents[:end][kept], scores[:end][kept], size)
