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
# Times the depth that a query may have taken in and still be pruned together with others.
WIDE = 1 << 3
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

    def look(self, block: Block, scratch: Vectors) -> None:
        """Takes in what is in question of a block; `scratch` [s] is memory for its scores, if they fit."""
        if not self.open.any():
            return
        full = GROWTH * self.depth * len(self.bar)
        with np.errstate(over="ignore", invalid="ignore"):
            rough = rough_scores(block.seen, self.across, scratch)
            enough = len(rough) >= self.depth
            if enough and self.bar.max() == -np.inf:
                self._lift(_bar(rough, self.depth))
            at = self._above(rough)
            if enough and len(at) > full:
                self._lift(_bar(rough, self.depth))
                at = self._above(rough)
        documents, rows = np.divmod(at, rough.shape[1])
        self.held.append(Pairs(rows, documents + block.start, rough.ravel()[at]))
        self.taken += len(at)
        if self.taken > full:
            self.prune()

    def _above(self, rough: Vectors) -> Indices:
        # Nothing reaches NaN.
        return np.flatnonzero(rough >= np.where(self.open, self.floor, np.float32(np.nan)))

    def prune(self) -> Pairs:
        """Lifts the bar, and returns, rows rising, what is still in question."""
        pairs = Pairs.joined(self.held)
        # NumPy sorts 16 bits in linear time.
        order = np.argsort(pairs.rows.astype(np.uint16), kind="stable")
        rows, rough = pairs.rows[order], pairs.rough[order]
        self._lift(last_places(rows, rough, len(self.bar), self.depth))
        stays = rough >= self.floor[rows]
        self.open &= np.bincount(rows[stays], minlength=len(self.bar)) <= self.depth + ROOM
        kept = np.flatnonzero(stays & self.open[rows])
        left = Pairs(rows[kept], pairs.documents[order[kept]], rough[kept])
        self.held, self.taken = [left], 0
        return left


def rough_scores(documents: Vectors, across: Vectors, scratch: Vectors | None = None) -> Vectors:
    """[b, q], in float32, of documents [b, d] and queries [d, q]."""
    shape = len(documents), across.shape[1]
    size = shape[0] * shape[1]
    # Memory that is still in a cache is written faster than new memory.
    out = scratch[:size].reshape(shape) if scratch is not None and size <= len(scratch) else None
    scores: Vectors = np.matmul(documents, across, out=out)
    return scores


def _bar(rough: Vectors, depth: int) -> Vectors:
    """[q]: the `depth`-th best of the best of groups of documents, of scores [b, q], b at least `depth`."""
    size = max(1, len(rough) // max(GROUPS, depth))
    best = rough[: len(rough) // size * size].reshape(-1, size, rough.shape[1]).max(axis=1)
    bar: Vectors = np.partition(best.T, -depth, axis=1)[:, -depth]
    return bar


def last_places(rows: Indices, rough: Vectors, count: int, depth: int) -> Vectors:
    """[count]: the `depth`-th best score of each row, -inf where it has fewer; `rows` [p] rise."""
    counts = np.bincount(rows, minlength=count)
    ends = np.cumsum(counts)
    nth = np.full(count, -np.inf, dtype=np.float32)
    # One query that takes in everything must not make a table of all queries that wide.
    wide = counts > WIDE * depth
    for row in np.flatnonzero(wide):
        nth[row] = np.partition(rough[ends[row] - counts[row] : ends[row]], -depth)[-depth]
    if wide.any():
        narrow = ~wide[rows]
        rows, rough, counts = rows[narrow], rough[narrow], np.where(wide, 0, counts)
    table = np.full((count, counts.max(initial=0)), -np.inf, dtype=np.float32)
    table[rows, within(rows, counts)] = rough
    if table.shape[1] >= depth:
        nth = np.maximum(nth, np.partition(table, -depth, axis=1)[:, -depth])
    return nth


def within(rows: Indices, counts: Indices) -> Indices:
    """The place of each of `rows` [p], rising, among its own; `counts` has how many there are of each row."""
    return np.arange(len(rows)) - (np.cumsum(counts) - counts)[rows]
