"""Exact search by inner product or cosine, block by block, so that memory does not grow with the corpus.

float32 proposes, float64 decides. A score is the float64 sum over one pair's products, put on the grid; it depends on
the two vectors alone. A document is left out only where the rounding error of float32 sums cannot carry it to the
last place; a query that so many stay in question for that they aren't held is scanned again in full. So block size,
document order, thread count and hardware never change a result.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.run.front import Front, Hits
from harness.run.pool import STRIP, Pairs, Pool, rough_scores, within
from harness.run.vectors import (
    TILE,
    Block,
    Chunk,
    Indices,
    Queries,
    Scores,
    Vectors,
    blocks,
    direction_divisors,
    tiles,
)

__all__ = ["Chunk", "Found", "score_pairs", "search"]

# Pairs taken together to float64.
PAIRS = 1 << 7
# Queries scanned together, for which every document of a block may have to be scored.
SCAN = 1 << 8


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
    """
    if iter(chunks) is chunks:
        raise TypeError("chunks are gone through more than once: give a list, not an iterator")
    cosine = {"cosine": True, "dot": False}[score_type]
    side = Queries.of(np.ascontiguousarray(queries, dtype=np.float32), cosine)
    proposed = _propose(side, chunks, depth, grid)
    hits: list[Hits | None] = [None] * len(queries)
    if not len(proposed.bad):
        keys = _proposed_keys(side, chunks, proposed, grid)
        for q, ranked in _settled(proposed, keys, depth, keep_limit, grid):
            hits[q] = ranked
        none = np.empty(0, dtype=np.int64)
        fronts = {
            q: Front(depth, keep_limit, none if must_keep is None else must_keep[q])
            for q in np.setdiff1d(np.flatnonzero([each is None for each in hits]), side.bad).tolist()
        }
        _add(fronts, proposed.pairs.rows, proposed.pairs.documents, keys)
        _scan(fronts, side, chunks, proposed, grid)
        for q, front in fronts.items():
            hits[q] = front.hits(grid)
    return Found(tuple(hits), side.bad, proposed.bad, side.zero, proposed.zero)


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
    side = Queries.of(np.ascontiguousarray(queries, dtype=np.float32), {"cosine": True, "dot": False}[score_type])
    chunk = Chunk(0, np.ascontiguousarray(documents, dtype=np.float32))
    with np.errstate(invalid="ignore", over="ignore"):
        keys = _keys(side, chunk, pairs[:, 0], pairs[:, 1], grid)
    return np.where(np.isfinite(keys), keys * grid, np.nan)


@dataclass(frozen=True, slots=True)
class _Proposed:
    """Pairs whose exact score could be among the best, rows rising.

    `settled` [q] are the queries for which all such pairs are here; of the others none is. What float32 scores less
    than the `floor` [q] isn't among the best. `error` [q] is how far such a score can be off.
    """

    pairs: Pairs
    settled: NDArray[np.bool_]
    floor: Vectors
    error: Scores
    bad: Indices
    zero: Indices


def _propose(queries: Queries, chunks: Iterable[Chunk], depth: int, grid: float) -> _Proposed:
    ranked = np.ones(len(queries.seen), dtype=np.bool_)
    ranked[queries.bad] = False
    strips = [slice(start, start + STRIP) for start in range(0, max(1, len(queries.seen)), STRIP)]
    pools = [Pool.of(queries.seen[strip], ranked[strip], depth, grid) for strip in strips]
    bad, zero = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    scratch = np.empty(TILE * STRIP, dtype=np.float32)
    longest = -1.0
    for chunk in tiles(chunks):
        block = Block.of(chunk, queries.cosine)
        bad.append(block.bad)
        zero.append(block.zero)
        if block.longest > longest:
            longest = block.longest
            error = queries.error(longest)
            for strip, pool in zip(strips, pools, strict=True):
                pool.widen(error[strip])
        for pool in pools:
            pool.look(block, scratch)
    left = [pool.prune() for pool in pools]
    rows = np.concatenate([strip.start + pairs.rows for strip, pairs in zip(strips, left, strict=True)])
    joined = Pairs.joined(left)
    return _Proposed(
        Pairs(rows, joined.documents, joined.rough),
        np.concatenate([pool.open for pool in pools]),
        np.concatenate([pool.floor for pool in pools]),
        np.concatenate([pool.error for pool in pools]),
        np.concatenate(bad), np.concatenate(zero),
    )  # fmt: skip


def _proposed_keys(queries: Queries, chunks: Iterable[Chunk], proposed: _Proposed, grid: float) -> Scores:
    order = np.argsort(proposed.pairs.documents)
    documents = proposed.pairs.documents[order]
    keys = np.empty(len(order), dtype=np.float64)
    for chunk in blocks(chunks):
        first, end = np.searchsorted(documents, [chunk.start, chunk.start + len(chunk.vectors)])
        # Rising rows are read faster.
        at = np.sort(order[first:end])
        keys[at] = _keys(queries, chunk, proposed.pairs.rows[at], proposed.pairs.documents[at] - chunk.start, grid)
    return keys


def _keys(queries: Queries, chunk: Chunk, rows: Indices, documents: Indices, grid: float) -> Scores:
    """Scores [p], in steps of the grid, of the pairs of query `rows` and the chunk's own `documents`, both [p]."""
    score, length = np.empty(len(rows)), np.empty(len(rows))
    width = chunk.vectors.shape[1]
    mine, theirs = np.empty((PAIRS, width)), np.empty((PAIRS, width))
    narrow = np.empty((PAIRS, width), dtype=np.float32)
    for start in range(0, len(rows), PAIRS):
        part = slice(start, start + PAIRS)
        count = len(rows[part])
        np.take(queries.exact, rows[part], axis=0, out=mine[:count], mode="clip")
        theirs[:count] = np.take(chunk.vectors, documents[part], axis=0, out=narrow[:count], mode="clip")
        np.einsum("nd,nd->n", mine[:count], theirs[:count], out=score[part])
        if queries.cosine:
            np.einsum("nd,nd->n", theirs[:count], theirs[:count], out=length[part])
    if queries.cosine:
        score = score / queries.divisors[rows] / direction_divisors(np.sqrt(length))
    # Adding 0 makes −0 into 0, which equals it but has other bits.
    keys: Scores = np.rint(score / grid) + 0.0
    return keys


def _settled(proposed: _Proposed, keys: Scores, depth: int, keep_limit: int, grid: float) -> Iterator[tuple[int, Hits]]:
    """Settled queries and their hits, but for those whose group at the last place is larger than the limit."""
    rows, documents = proposed.pairs.rows, proposed.pairs.documents
    for start in range(0, len(proposed.settled), STRIP):
        part = slice(*np.searchsorted(rows, [start, start + STRIP]))
        settled = proposed.settled[start : start + STRIP]
        counts = np.bincount(rows[part] - start, minlength=len(settled))
        at = rows[part] - start, within(rows[part] - start, counts)
        own_keys = np.full((len(settled), counts.max(initial=1)), -np.inf)
        own_keys[at] = keys[part]
        own = np.zeros(own_keys.shape, dtype=np.int64)
        own[at] = documents[part]
        order = np.lexsort((own, -own_keys), axis=1)
        own_keys, own = np.take_along_axis(own_keys, order, axis=1), np.take_along_axis(own, order, axis=1)
        last = own_keys[:, min(depth, own_keys.shape[1]) - 1, None]
        ends = np.minimum(np.count_nonzero(own_keys >= last, axis=1), counts)
        large = np.count_nonzero(own_keys == last, axis=1) > keep_limit
        scores = own_keys * grid
        for row in np.flatnonzero(settled & ~large).tolist():
            yield start + row, Hits(own[row, : ends[row]].copy(), scores[row, : ends[row]].copy())


def _scan(
    fronts: dict[int, Front], queries: Queries, chunks: Iterable[Chunk], proposed: _Proposed, grid: float
) -> None:
    """Scores every document in question for the queries that aren't settled."""
    left = np.array([q for q in fronts if not proposed.settled[q]], dtype=np.int64)
    if not len(left):
        return
    for chunk in blocks(chunks):
        seen = Block.of(chunk, queries.cosine).seen
        for start in range(0, len(left), SCAN):
            part = left[start : start + SCAN]
            last = np.array([fronts[q].last for q in part.tolist()])
            floor = np.maximum(proposed.floor[part], (last - 1) * grid - proposed.error[part])
            with np.errstate(over="ignore", invalid="ignore"):
                below = rough_scores(seen, queries.seen[part].T) < floor
            # Not `>=`: what overflows to NaN has to be scored.
            rows, documents = np.nonzero(~below.T)
            keys = _keys(queries, chunk, part[rows], documents, grid)
            _add(fronts, part[rows], documents + chunk.start, keys)


def _add(fronts: dict[int, Front], rows: Indices, documents: Indices, keys: Scores) -> None:
    """Puts scored pairs, `rows` rising, before the fronts there are."""
    edges = np.flatnonzero(np.diff(rows, prepend=-1, append=-1))
    for first, end in itertools.pairwise(edges.tolist()):
        front = fronts.get(int(rows[first]))
        if front is not None:
            front.add(documents[first:end], keys[first:end])
