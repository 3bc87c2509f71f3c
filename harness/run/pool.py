"""What float32 cannot rule out: for each query the documents that could be among its best by exact score."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.run.vectors import Block, Indices, Scores, Vectors

# Queries that share a pool.
STRIP = 1 << 10
# Groups of documents whose best set the first bar.
GROUPS = 1 << 10
# A pool is pruned when it has taken in this many times what it should end with. Seldom is fewer sorts; often, a bar
# that rises sooner.
GROWTH = 2
# Documents beyond the depth that are held for one query.
ROOM = 1 << 8


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs [p] of a query's row and a document, with their float32 scores."""

    rows: Indices
    documents: Indices
    rough: Vectors

    @classmethod
    def joined(cls, parts: "list[Pairs]") -> "Pairs":
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.documents for part in parts]),
            np.concatenate([part.rough for part in parts]),
        )


@dataclass(slots=True)
class Pool:
    """Queries in float32, `across` [d, q], and the pairs in question.

    `bar` [q] is no higher than the `depth`-th best float32 score so far, and `error` [q] how far any score so far can
    be off. With a float32 score below the `floor` [q] nothing can reach the last place. A query is `open` until more
    documents are in question for it than are held; then none are.
    """

    across: Vectors
    depth: int
    grid: float
    open: NDArray[np.bool_]
    error: Scores
    bar: Vectors
    floor: Vectors
    held: list[Pairs]
    taken: int = 0

    @classmethod
    def of(cls, seen: Vectors, ranked: NDArray[np.bool_], depth: int, grid: float) -> "Pool":
        """A pool that takes documents for the `ranked` [q] of the queries."""
        nothing = Pairs(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32))
        low = np.full(len(seen), -np.inf, dtype=np.float32)
        return cls(np.ascontiguousarray(seen.T), depth, grid, ranked.copy(), np.zeros(len(seen)), low, low, [nothing])

    def widen(self, error: Scores) -> None:
        """From here on scores may be off by more; without bound, and the query is no longer open."""
        self.error = error
        self.open &= np.isfinite(error)
        self._lift(self.bar)

    def _lift(self, bar: Vectors) -> None:
        self.bar = np.fmax(self.bar, bar)
        # Both scores may be off, and two that are rounded to one value of the grid differ by a step at most.
        with np.errstate(invalid="ignore"):
            floor = np.nextafter((self.bar - 2 * self.error - self.grid).astype(np.float32), np.float32(-np.inf))
        self.floor = np.where(np.isfinite(self.error), floor, np.float32(-np.inf))

    def look(self, block: Block) -> None:
        """Takes in what is in question of a block."""
        full = GROWTH * self.depth * len(self.bar)
        with np.errstate(over="ignore", invalid="ignore"):
            rough = rough_scores(block.seen, self.across)
            above = self._above(rough)
            if np.count_nonzero(above) > full and len(rough) >= self.depth:
                self._lift(_bar(rough, self.depth))
                above = self._above(rough)
        at = np.flatnonzero(above)
        documents, rows = np.divmod(at, rough.shape[1])
        self.held.append(Pairs(rows, documents + block.start, rough.ravel()[at]))
        self.taken += len(at)
        if self.taken > full:
            self.prune()

    def _above(self, rough: Vectors) -> NDArray[np.bool_]:
        # Nothing reaches NaN.
        return rough >= np.where(self.open, self.floor, np.float32(np.nan))

    def prune(self) -> Pairs:
        """Lifts the bar, and returns, rows rising, what is still in question."""
        pairs = Pairs.joined(self.held)
        # NumPy sorts 16 bits in linear time.
        order = np.argsort(pairs.rows.astype(np.uint16), kind="stable")
        rows, rough = pairs.rows[order], pairs.rough[order]
        counts = np.bincount(rows, minlength=len(self.bar))
        table = np.full((len(self.bar), counts.max(initial=0)), -np.inf, dtype=np.float32)
        table[rows, within(rows, counts)] = rough
        if table.shape[1] >= self.depth:
            self._lift(np.partition(table, -self.depth, axis=1)[:, -self.depth])
        stays = rough >= self.floor[rows]
        self.open &= np.bincount(rows[stays], minlength=len(self.bar)) <= self.depth + ROOM
        stays &= self.open[rows]
        left = Pairs(rows[stays], pairs.documents[order[stays]], rough[stays])
        self.held, self.taken = [left], 0
        return left


def rough_scores(documents: Vectors, across: Vectors) -> Vectors:
    """[b, q], in float32, of documents [b, d] and queries [d, q]."""
    scores: Vectors = documents @ across
    return scores


def _bar(rough: Vectors, depth: int) -> Vectors:
    """[q]: the `depth`-th best of the best of groups of documents, of scores [b, q], b at least `depth`."""
    size = max(1, len(rough) // max(GROUPS, depth))
    best = rough[: len(rough) // size * size].reshape(-1, size, rough.shape[1]).max(axis=1)
    bar: Vectors = np.partition(best.T, -depth, axis=1)[:, -depth]
    return bar


def within(rows: Indices, counts: Indices) -> Indices:
    """The place of each of `rows` [p], rising, among its own; `counts` has how many there are of each row."""
    return np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
