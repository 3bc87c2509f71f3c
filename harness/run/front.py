"""Each query's best documents so far, in whatever order they come, with all that tie for the last place."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.run.vectors import Indices, Scores


@dataclass(frozen=True, slots=True)
class Hits:
    """One query's documents by falling score, equal scores by rising index.

    Shapes: documents [h] int64, scores [h] float64. All of the tied group that crosses the depth is here, unless it
    is larger than the limit: then `crossing` is its size, and of it only those that had to be kept stand at the end,
    and one other that stands for the rest.
    """

    documents: Indices
    scores: Scores
    crossing: int = 0


@dataclass(slots=True)
class Front:
    """One query's documents: all above the last of `depth` places, and the tied group that holds it.

    Keys are scores in steps of the grid, so that equal is equal. `last` is the key in the last place, minus infinity
    while there are fewer documents than places: no document below it has to be added. `tied` is the size of its
    group. Of a group larger than both `limit` and `depth` only `must_keep` is held, and the first of the others.
    """

    depth: int
    limit: int
    must_keep: Indices
    last: float = -np.inf
    tied: int = 0
    documents: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    keys: Scores = field(default_factory=lambda: np.empty(0, dtype=np.float64))

    def add(self, documents: Indices, keys: Scores) -> None:
        """Shapes: both [n]; each document comes once."""
        self.documents = np.concatenate([self.documents, documents])
        self.keys = np.concatenate([self.keys, keys])
        # Of a reduced group not every member is held, so it counts by size: as long as no more than `depth` are
        # above it the last place is in it.
        above = int(np.count_nonzero(self.keys > self.last))
        if above >= self.depth:
            self.last = float(np.partition(self.keys, -self.depth)[-self.depth])
            self.tied = int(np.count_nonzero(self.keys == self.last))
        else:
            self.tied += int(np.count_nonzero(keys == self.last))
        self._hold(self.keys >= self.last)
        if self.tied > max(self.limit, self.depth):
            self._reduce()

    def hits(self, grid: float) -> Hits:
        """By falling score, equal ones by rising index."""
        above = int(np.count_nonzero(self.keys > self.last))
        crossing = self.tied if self.tied > self.limit and above + self.tied > self.depth else 0
        if crossing:
            self._reduce()
        order = np.lexsort((self.documents, -self.keys))
        return Hits(self.documents[order], self.keys[order] * grid, crossing)

    def _reduce(self) -> None:
        held = (self.keys > self.last) | np.isin(self.documents, self.must_keep)
        if not held.all():
            held[np.argmin(np.where(held, np.iinfo(np.int64).max, self.documents))] = True
        self._hold(held)

    def _hold(self, stays: NDArray[np.bool_]) -> None:
        self.documents, self.keys = self.documents[stays], self.keys[stays]


def fronts_of(count: int, depth: int, limit: int, must_keep: Sequence[Indices] | None) -> list[Front]:
    """One for each of `count` queries. Shapes: must_keep [count], or nothing that must be kept."""
    none = np.empty(0, dtype=np.int64)
    return [Front(depth, limit, none if must_keep is None else must_keep[q]) for q in range(count)]


def lasts(fronts: Sequence[Front]) -> Scores:
    """[q], the key in each one's last place."""
    return np.array([front.last for front in fronts], dtype=np.float64)


def add_block(fronts: Sequence[Front], start: int, keys: Scores, wanted: NDArray[np.bool_]) -> None:
    """Adds those of the documents `start`, `start` + 1, … that are wanted. Shapes: keys and wanted [q, c]."""
    for q in np.flatnonzero(wanted.any(axis=1)).tolist():
        documents = np.flatnonzero(wanted[q])
        fronts[q].add(start + documents, keys[q, documents])
