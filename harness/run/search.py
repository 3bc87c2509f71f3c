"""Exact search by inner product or cosine, block by block, so that memory does not grow with the corpus.

faiss proposes in float32, float64 decides. A score is the float64 sum over one pair's products, put on the grid; it
depends on the two vectors alone. What faiss left out is bounded by the rounding error of float32 sums, and a query
for which that bound does not settle the last place is scanned again in full. So block size, document order, thread
count and hardware never change a result.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured

Vectors = NDArray[np.float32]
Indices = NDArray[np.int64]
Scores = NDArray[np.float64]
Nearest: TypeAlias = Callable[[Vectors, Vectors, int], tuple[Vectors, Indices]]

# Rows of the corpus looked at together, and queries times rows scored together in the second look.
BLOCK = 1 << 16
SCAN = 1 << 24
# Vectors, or pairs of them, taken together to float64.
PAIRS = 1 << 10
# Places beyond the depth that faiss is asked for. More of them cost time; fewer cost more second looks.
SLACK = 32
GPU_PLACES = 2048

UNIT = float(np.finfo(np.float32).eps) / 2
TINY = float(np.finfo(np.float32).tiny)
OVERFLOW = float(np.finfo(np.float32).max) / 16


@dataclass(frozen=True, slots=True)
class Chunk:
    """Vectors [c, d] float32 of the documents `start`, `start` + 1, …; may be memory-mapped."""

    start: int
    vectors: Vectors


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


@dataclass(frozen=True, slots=True)
class Found:
    """Hits by query; None for each where a vector isn't finite, its own or any document's.

    `bad_queries` and `bad_documents` are those vectors. `zero_queries` and `zero_documents` have no direction: their
    cosine is undefined, and taken as 0; both are empty for dot products.
    """

    hits: tuple[Hits | None, ...]
    bad_queries: Indices
    bad_documents: Indices
    zero_queries: Indices
    zero_documents: Indices


def search(
    queries: Vectors,
    chunks: Iterable[Chunk],
    *,
    depth: int,
    grid: float,
    score_type: Literal["cosine", "dot"],
    keep_limit: int = 1000,
    must_keep: Sequence[Indices] | None = None,
) -> Found:
    """The `depth` best documents of every query, with all that tie for the last place.

    Shapes: queries [q, d]; chunks are gone through up to three times, so they are a list or iterate afresh, never a
    generator. Higher scores are better. They are multiples of `grid`, equal ones equal to the bit. `must_keep[q]` are
    document indices that stay in the hits of query q where they are in a crossing group larger than `keep_limit`.
    Raises Misconfigured where faiss is not installed.
    """
    if iter(chunks) is chunks:
        raise TypeError("chunks are gone through more than once: give a list, not an iterator")
    cosine = {"cosine": True, "dot": False}[score_type]
    nearest = _nearest()
    side = _Side.of(np.ascontiguousarray(queries, dtype=np.float32), cosine)
    none = np.empty(0, dtype=np.int64)
    fronts = [_Front(depth, keep_limit, none if must_keep is None else must_keep[q]) for q in range(len(queries))]
    proposed = _propose(nearest, side, chunks, depth + SLACK)
    if not len(proposed.bad):
        exact = _Exact(side, grid, fronts)
        _score_proposed(exact, chunks, proposed)
        _scan(exact, chunks, proposed.error, _unsettled(exact, proposed))
    failed = set(side.bad.tolist())
    return Found(
        tuple(None if len(proposed.bad) or q in failed else front.hits(grid) for q, front in enumerate(fronts)),
        side.bad, proposed.bad, side.zero, proposed.zero,
    )  # fmt: skip


def score_pairs(
    queries: Vectors,
    documents: Vectors,
    pairs: Indices,
    *,
    grid: float,
    score_type: Literal["cosine", "dot"],
) -> Scores:
    """The scores [p] of pairs of a query and a document, the same to the bit as `search` gives them.

    Shapes: queries [q, d], documents [c, d], pairs [p, 2], the index of a query and that of a document, in any order.
    NaN where the vector of one of the two isn't finite.
    """
    cosine = {"cosine": True, "dot": False}[score_type]
    exact = _Exact(_Side.of(np.ascontiguousarray(queries, dtype=np.float32), cosine), grid, [])
    with np.errstate(invalid="ignore", over="ignore"):
        keys = exact.keys(Chunk(0, documents), pairs[:, 0], pairs[:, 1])
    return np.where(np.isfinite(keys), keys * grid, np.nan)


@dataclass(frozen=True, slots=True)
class _Side:
    """Vectors [n, d] with what their scores are divided by, and what faiss sees of them.

    `divisors` [n] are the lengths for cosine and else 1. `seen` [n, d] float32 is scaled to unit length for cosine,
    and 0 where a vector isn't finite.
    """

    vectors: Vectors
    lengths: Scores
    divisors: Scores
    seen: Vectors
    bad: Indices
    zero: Indices
    cosine: bool

    @classmethod
    def of(cls, vectors: Vectors, cosine: bool) -> "_Side":
        squares = np.empty(len(vectors), dtype=np.float64)
        seen = np.empty_like(vectors) if cosine else vectors
        for start in range(0, len(vectors), PAIRS):
            part = slice(start, start + PAIRS)
            exact = vectors[part].astype(np.float64)
            squares[part] = np.einsum("nd,nd->n", exact, exact)
            if cosine:
                with np.errstate(invalid="ignore"):
                    seen[part] = exact / _divisors(np.sqrt(squares[part]))[:, None]
        # No finite float32 has a square beyond float64, so the sum tells of every vector that isn't finite.
        finite = np.isfinite(squares)
        lengths = np.sqrt(np.where(finite, squares, 0.0))
        divisors = _divisors(lengths) if cosine else np.ones(len(vectors))
        if not finite.all():
            seen = np.where(finite[:, None], seen, np.float32(0))
        zero = finite & (lengths == 0) & cosine
        return cls(vectors, lengths, divisors, seen, np.flatnonzero(~finite), np.flatnonzero(zero), cosine)


def _divisors(lengths: Scores) -> Scores:
    """What a cosine is divided by; 1 for a vector without direction, whose products are all 0."""
    return np.where(lengths > 0, lengths, 1.0)


@dataclass(frozen=True, slots=True)
class _Proposed:
    """Each query's best by float32: documents [q, k], −1 where there are none.

    `error` [q] is how far a float32 score can be from the exact one, infinite where float32 can overflow; `rest` [q]
    bounds the float32 scores of all other documents. `whole`: there are no others.
    """

    documents: Indices
    rest: Scores
    error: Scores
    whole: bool
    bad: Indices
    zero: Indices


def _propose(nearest: "Nearest", queries: _Side, chunks: Iterable[Chunk], places: int) -> _Proposed:
    count = len(queries.vectors)
    best = np.full((count, places), -np.inf, dtype=np.float32)
    documents = np.full((count, places), -1, dtype=np.int64)
    rest = np.full(count, -np.inf, dtype=np.float32)
    bad, zero = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    total, longest = 0, 0.0
    for chunk in _blocks(chunks):
        side = _Side.of(chunk.vectors, queries.cosine)
        bad.append(chunk.start + side.bad)
        zero.append(chunk.start + side.zero)
        total += len(chunk.vectors)
        longest = max(longest, float(side.lengths.max()))
        if not count:
            continue
        scores, found = nearest(queries.seen, side.seen, min(places, len(chunk.vectors)))
        if scores.shape[1] < len(chunk.vectors):
            rest = np.maximum(rest, scores.min(axis=1))
        scores = np.concatenate([best, scores], axis=1)
        found = np.concatenate([documents, np.where(found < 0, -1, found + chunk.start)], axis=1)
        order = np.argpartition(-scores, places - 1, axis=1)
        rest = np.maximum(rest, np.take_along_axis(scores, order[:, places:], axis=1).max(axis=1))
        best = np.take_along_axis(scores, order[:, :places], axis=1)
        documents = np.take_along_axis(found, order[:, :places], axis=1)
    error = _float32_error(queries, longest)
    return _Proposed(
        documents, rest.astype(np.float64), error, total <= places, np.concatenate(bad), np.concatenate(zero)
    )


def _float32_error(queries: _Side, longest: float) -> Scores:
    """How far any float32 sum of products can be from the exact one, with vectors no longer than `longest`.

    n·u / (1 − n·u) times the sum of absolute products, which is at most the product of the lengths; n is the width,
    and a little for the rounding of scaled vectors. Source: Higham, Accuracy and Stability of Numerical Algorithms,
    2nd edition, section 3.1.
    """
    width = queries.vectors.shape[1]
    operations = (width + 4) * UNIT
    lengths = np.ones(len(queries.vectors)) if queries.cosine else queries.lengths * longest
    return np.where(lengths < OVERFLOW, operations / (1 - operations) * lengths + width * TINY, np.inf)


@dataclass(frozen=True, slots=True)
class _Exact:
    """The queries, and for each what is best so far by exact score on the grid."""

    queries: _Side
    grid: float
    fronts: list["_Front"]

    @property
    def last(self) -> Scores:
        """[q], the key in the last place."""
        return np.array([front.last for front in self.fronts], dtype=np.float64)

    def keys(self, chunk: Chunk, rows: Indices, documents: Indices) -> Scores:
        """Scores [p], in steps of the grid, of the pairs of query `rows` and the chunk's own `documents`, both [p]."""
        keys = np.empty(len(rows), dtype=np.float64)
        for start in range(0, len(rows), PAIRS):
            part = slice(start, start + PAIRS)
            mine = self.queries.vectors[rows[part]].astype(np.float64)
            theirs = chunk.vectors[documents[part]].astype(np.float64)
            score = np.einsum("nd,nd->n", mine, theirs)
            if self.queries.cosine:
                length = np.sqrt(np.einsum("nd,nd->n", theirs, theirs))
                score = score / self.queries.divisors[rows[part]] / _divisors(length)
            # Adding 0 makes −0 into 0, which equals it but has other bits.
            keys[part] = np.rint(score / self.grid) + 0.0
        return keys

    def add(self, rows: Indices, documents: Indices, keys: Scores) -> None:
        """Puts scored pairs, `rows` rising, before each query's front."""
        edges = np.flatnonzero(np.diff(rows, prepend=-1, append=-1))
        for first, end in itertools.pairwise(edges):
            self.fronts[rows[first]].add(documents[first:end], keys[first:end])


def _score_proposed(exact: _Exact, chunks: Iterable[Chunk], proposed: _Proposed) -> None:
    keys = np.full(proposed.documents.shape, -np.inf)
    for chunk in _blocks(chunks):
        inside = (proposed.documents >= chunk.start) & (proposed.documents < chunk.start + len(chunk.vectors))
        rows = np.nonzero(inside)[0]
        keys[inside] = exact.keys(chunk, rows, proposed.documents[inside] - chunk.start)
    there = proposed.documents >= 0
    exact.add(np.nonzero(there)[0], proposed.documents[there], keys[there])


def _unsettled(exact: _Exact, proposed: _Proposed) -> Indices:
    """Queries for which a document that was not proposed could still reach the last place."""
    with np.errstate(invalid="ignore"):
        reach = np.rint((proposed.rest + proposed.error) / exact.grid)
    # Not `reach >= last`: a NaN has to count as unsettled.
    beyond = ~(reach < exact.last) & ~(proposed.whole & np.isfinite(proposed.error))
    beyond[exact.queries.bad] = False
    return np.flatnonzero(beyond)


def _scan(exact: _Exact, chunks: Iterable[Chunk], error: Scores, queries: Indices) -> None:
    """Scores every document that could be in the last place or above, for the given queries, from the start."""
    if not len(queries):
        return
    floor = (exact.last[queries] - 1) * exact.grid - error[queries]
    for q in queries:
        exact.fronts[q].clear()
    for chunk in _blocks(chunks):
        seen = _Side.of(chunk.vectors, exact.queries.cosine).seen
        step = max(1, SCAN // len(seen))
        for start in range(0, len(queries), step):
            part = queries[start : start + step]
            with np.errstate(over="ignore", invalid="ignore"):
                rough = exact.queries.seen[part] @ seen.T
                rows, documents = np.nonzero(~(rough < floor[start : start + step, None]))
            exact.add(part[rows], documents + chunk.start, exact.keys(chunk, part[rows], documents))


@dataclass(slots=True)
class _Front:
    """One query's best so far: all above the last place, and the group that holds it, in whatever order they came.

    Keys are scores in steps of the grid. `size` is the size of that group, 0 while there are fewer documents than
    places; past the limit, only what must be kept of the group is held.
    """

    depth: int
    limit: int
    must_keep: Indices
    documents: Indices = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    keys: Scores = field(default_factory=lambda: np.empty(0, dtype=np.float64))
    last: float = -np.inf
    size: int = 0

    def clear(self) -> None:
        self.documents, self.keys, self.last, self.size = self.documents[:0], self.keys[:0], -np.inf, 0

    def add(self, documents: Indices, keys: Scores) -> None:
        self.documents = np.concatenate([self.documents, documents])
        self.keys = np.concatenate([self.keys, keys])
        full = len(self.keys) if self.size == 0 else int(np.count_nonzero(self.keys > self.last))
        if full >= self.depth:
            self.last = float(np.partition(self.keys, -self.depth)[-self.depth])
            self.size = int(np.count_nonzero(self.keys == self.last))
        elif self.size:
            self.size += int(np.count_nonzero(keys == self.last))
        self._keep(self.keys >= self.last)
        if self.size > max(self.limit, self.depth):
            self._reduce_group()

    def hits(self, grid: float) -> Hits:
        above = int(np.count_nonzero(self.keys > self.last))
        crossing = self.size if self.size > self.limit and above + self.size > self.depth else 0
        if crossing:
            self._reduce_group()
        order = np.lexsort((self.documents, -self.keys))
        return Hits(self.documents[order], self.keys[order] * grid, crossing)

    def _reduce_group(self) -> None:
        """One document more than must be kept stays, the first, so that the group's score is always seen."""
        kept = (self.keys > self.last) | np.isin(self.documents, self.must_keep)
        others = np.where(kept, np.iinfo(np.int64).max, self.documents)
        if not kept.all():
            kept[np.argmin(others)] = True
        self._keep(kept)

    def _keep(self, stays: NDArray[np.bool_]) -> None:
        self.documents, self.keys = self.documents[stays], self.keys[stays]


def _blocks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    for chunk in chunks:
        for start in range(0, len(chunk.vectors), BLOCK):
            part = np.ascontiguousarray(chunk.vectors[start : start + BLOCK], dtype=np.float32)
            yield Chunk(chunk.start + start, part)


def require_faiss() -> None:
    """Raises Misconfigured where faiss is not installed; asked before anything is encoded."""
    _nearest()


def _nearest() -> "Nearest":
    """faiss's best pairs of queries [q, d] and documents [c, d]: scores [q, k] and rows [q, k]."""
    try:
        import faiss
    except ImportError as missing:
        raise Misconfigured(
            "search", found="faiss is not installed", expected="faiss-cpu or faiss-gpu",
            mend="pip install 'retrieval-harness[cpu]' (or [gpu] where there is a CUDA device).",
        ) from missing  # fmt: skip
    gpus = faiss.get_num_gpus() if hasattr(faiss, "StandardGpuResources") else 0
    resources = faiss.StandardGpuResources() if gpus else None

    def nearest(queries: Vectors, documents: Vectors, places: int) -> tuple[Vectors, Indices]:
        if resources is not None and places <= GPU_PLACES:
            scores, rows = faiss.knn_gpu(resources, queries, documents, places, metric=faiss.METRIC_INNER_PRODUCT)
        else:
            scores, rows = faiss.knn(queries, documents, places, metric=faiss.METRIC_INNER_PRODUCT)
        return scores, rows

    return nearest
