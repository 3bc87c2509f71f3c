"""Exact late interaction over rows that are not padded: each query row's largest dot product, summed or averaged.

All rows of many documents meet all rows of many queries in one float32 product, whose largest values are then taken
document by document. That proposes, with a bound on its rounding error; float64 decides. A score is the sum of
correctly rounded row maxima, put on the grid: it depends on the rows of the two texts alone, and blocks, company,
order, threads and hardware never change it.

Source: Khattab and Zaharia, ColBERT, SIGIR 2020. The bounds: Higham, Accuracy and Stability of Numerical Algorithms,
2nd edition, section 3.1.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice
from harness.rows.ragged import Ragged, runs
from harness.run.front import Front, add_block, fronts_of, lasts
from harness.run.search import Found
from harness.run.vectors import OVERFLOW, SINGLE, TINY, Indices, Scores

Reduce: TypeAlias = Literal["sum", "mean"]

# Rows of either side in one product: its 4 MB stay in the cache while the maxima are taken.
ROWS = 1 << 10
# Rows of documents, and pairs of a query and a document, that are proposed together.
GROUP = 1 << 18
PAIRS = 1 << 21
# Pairs of rows taken together to float64.
EXACT = 1 << 22

DOUBLE = float(np.finfo(np.float64).eps) / 2


@dataclass(frozen=True, slots=True)
class RaggedChunk:
    """The rows of the documents `start`, `start` + 1, …; may be memory-mapped."""

    start: int
    rows: Ragged


def search_rows(
    queries: Ragged,
    chunks: Iterable[RaggedChunk],
    *,
    depth: int,
    grid: float,
    reduce: Reduce,
    keep_limit: int = 1000,
    must_keep: Sequence[Indices] | None = None,
) -> Found:
    """The `depth` best documents of every query, with all that tie for the last place; as `search`, for rows.

    `reduce`: what becomes of the maxima, a sum over the query's rows or their mean. Higher scores are better. They
    are multiples of `grid`, equal ones equal to the bit. Chunks are gone through once, so a generator will do.
    A text is bad where it has no row or a value isn't finite: a bad query has no hits, and where a document is bad
    no query has any, because its place is unknown. No vector of `Found` is ever zero: a row of zeros scores 0.
    """
    none = np.empty(0, dtype=np.int64)
    bad_queries, bad = unscorable(queries), none
    good = np.setdiff1d(np.arange(len(queries)), bad_queries)
    side = _Queries.of(queries.take(good), reduce)
    every = fronts_of(len(queries), depth, keep_limit, must_keep)
    fronts = [every[q] for q in good]
    for chunk in _groups(chunks, max(1, PAIRS // max(1, len(good)))):
        lengths = _lengths(chunk.rows.values)
        bad = np.concatenate([bad, chunk.start + _bad(chunk.rows, lengths)])
        if len(good) and not len(bad):
            _add_group(fronts, side, chunk, lengths, grid)
    failed = set(range(len(queries)) if len(bad) else bad_queries.tolist())
    hits = tuple(None if q in failed else front.hits(grid) for q, front in enumerate(every))
    return Found(hits, bad_queries, bad, none, none)


def score_pairs(
    queries: Ragged, documents: Ragged, pairs: NDArray[np.integer], *, grid: float, reduce: Reduce
) -> Scores:
    """The scores [p] of pairs of a query and a document, the same to the bit as `search_rows` gives them.

    Shapes: pairs [p, 2], the index of a query and that of a document, in any order. NaN where one of the two is
    `unscorable`.
    """
    side = _Queries.of(queries, reduce)
    scores = np.full(len(pairs), np.nan)
    good = ~np.isin(pairs[:, 0], unscorable(queries)) & ~np.isin(pairs[:, 1], unscorable(documents))
    order = np.flatnonzero(good)[np.argsort(pairs[good, 1], kind="stable")]
    for mine in np.split(order, np.flatnonzero(np.diff(pairs[order, 1])) + 1):
        if len(mine):
            scores[mine] = _exact_keys(side, pairs[mine, 0], documents.rows(pairs[mine[0], 1]), grid) * grid
    return scores


def rough_scores(queries: Ragged, documents: Ragged, reduce: Reduce) -> NDArray[np.float32]:
    """[q, c], the score of every query with every document in float32: fast, within rounding of the exact one.

    Every text has a row.
    """
    sums = np.empty((len(queries), len(documents)), dtype=np.float32)
    for theirs in runs(documents.offsets, ROWS):
        block = documents.part(theirs.start, theirs.stop)
        for mine in runs(queries.offsets, ROWS):
            part = queries.part(mine.start, mine.stop)
            # Along the last axis, where a document's rows lie side by side: down the first it took four times as long.
            maxima = np.maximum.reduceat(part.values @ block.values.T, block.offsets[:-1], axis=1)
            sums[mine, theirs] = np.add.reduceat(maxima, part.offsets[:-1], axis=0)
    if reduce == "mean":
        sums /= queries.counts[:, None].astype(np.float32)
    return sums


def winners(query: NDArray[np.float32], document: NDArray[np.float32]) -> Indices:
    """[q], the document row with which each query row has its largest dot product, the first among equals.

    Shapes: query [q, d], document [k, d], finite. Equal are dot products that round to one float64. Raises EmptySlice
    for a document without rows.
    """
    if not len(document):
        raise EmptySlice(
            "document rows", found="none", expected="at least one row", mend="Leave the text out of the scoring."
        )
    return _row_maxima(query.astype(np.float64), document.astype(np.float64)).rows


def unscorable(texts: Ragged) -> Indices:
    """The texts without a row, and those with a value that isn't finite; rising."""
    return _bad(texts, _lengths(texts.values))


def _bad(texts: Ragged, lengths: Scores) -> Indices:
    bad = texts.counts == 0
    # Squares of finite values can overflow, so a length only says where to look.
    suspects = np.flatnonzero(~np.isfinite(lengths))
    suspects = suspects[~np.isfinite(texts.values[suspects]).all(axis=1)]
    bad[np.searchsorted(texts.offsets, suspects, side="right") - 1] = True
    return np.flatnonzero(bad)


@dataclass(frozen=True, slots=True)
class _Queries:
    """Queries as scoring needs them.

    `exact` [r, d] float64 are their rows. `reach` [q] is the sum of each one's row lengths, a bound on its sum with
    rows of length 1. `divisors` [q] are the numbers of rows for a mean, else 1. `operations` is how often a sum is
    rounded at most, with a few to spare for what is done with it.
    """

    rows: Ragged
    exact: Scores
    reach: Scores
    divisors: Scores
    operations: int

    @classmethod
    def of(cls, rows: Ragged, reduce: Reduce) -> "_Queries":
        counts = rows.counts
        exact = rows.values.astype(np.float64)
        owners = np.repeat(np.arange(len(rows)), counts)
        reach = np.bincount(owners, weights=_lengths(exact), minlength=len(rows)).astype(np.float64)
        divisors = {"sum": np.ones_like(counts), "mean": counts}[reduce].astype(np.float64)
        return cls(rows, exact, reach, divisors, exact.shape[1] + int(counts.max(initial=0)) + 8)

    def keys(self, queries: Indices | slice, sums: Scores, grid: float) -> Scores:
        """Sums of maxima [q, …] of the given queries as scores in steps of the grid; never falls as a sum rises."""
        divisors = self.divisors[queries].reshape(-1, *[1] * (sums.ndim - 1))
        # Adding 0 makes −0 into 0, which equals it but has other bits.
        return np.rint(sums / divisors / grid) + 0.0


def _add_group(fronts: list[Front], side: _Queries, chunk: RaggedChunk, lengths: Scores, grid: float) -> None:
    """Scores those of the chunk's documents that can be in the last place or above it, and adds them."""
    starts = chunk.rows.offsets[:-1]
    reach = side.reach[:, None] * np.maximum.reduceat(lengths, starts)
    error = np.where(reach < OVERFLOW, _error(SINGLE, side.operations, reach), np.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = rough_scores(side.rows, chunk.rows, "sum").astype(np.float64)
        low = np.where(np.isfinite(error), side.keys(slice(None), sums - error, grid), -np.inf)
        high = np.where(np.isfinite(error), side.keys(slice(None), sums + error, grid), np.inf)
    last = lasts(fronts)
    depth = fronts[0].depth
    if len(chunk.rows) >= depth:
        last = np.maximum(last, np.partition(low, -depth, axis=1)[:, -depth])
    wanted = high >= last[:, None]
    keys = low
    for document in np.flatnonzero(wanted.any(axis=0)):
        queries = np.flatnonzero(wanted[:, document])
        keys[queries, document] = _exact_keys(side, queries, chunk.rows.rows(document), grid)
    add_block(fronts, chunk.start, keys, wanted)


def _exact_keys(side: _Queries, queries: Indices, rows: NDArray[np.float32], grid: float) -> Scores:
    """[n], the score in steps of the grid of each of the given queries [n] with one document's rows."""
    document = rows.astype(np.float64)
    longest = _lengths(document).max()
    keys = np.empty(len(queries))
    step = max(1, EXACT // (len(document) * side.operations))
    for start in range(0, len(queries), step):
        mine = queries[start : start + step]
        maxima = (side.exact[side.rows.positions(mine)] @ document.T).max(axis=1)
        counts = side.rows.counts[mine]
        sums = np.add.reduceat(maxima, np.cumsum(counts) - counts)
        error = _error(DOUBLE, side.operations, side.reach[mine] * longest)
        part = side.keys(mine, sums - error, grid)
        # An error that reaches over an edge of the grid leaves two keys, and the exact sum between them.
        for i in np.flatnonzero(part != side.keys(mine, sums + error, grid)):
            query = side.exact[side.rows.offsets[mine[i]] : side.rows.offsets[mine[i] + 1]]
            exact = math.fsum(_row_maxima(query, document).values)
            part[i] = side.keys(mine[i : i + 1], np.array([exact]), grid)[0]
        keys[start : start + step] = part
    return keys


@dataclass(frozen=True, slots=True)
class _RowMaxima:
    """Each query row's largest dot product, correctly rounded, and the first row that has it; both [q]."""

    values: Scores
    rows: Indices


def _row_maxima(query: Scores, document: Scores) -> _RowMaxima:
    products = query @ document.T
    error = _error(DOUBLE, query.shape[1] + 8, _lengths(query) * _lengths(document).max())
    near = products >= products.max(axis=1, keepdims=True) - 2 * error[:, None]
    exact = np.full(products.shape, -np.inf)
    for row, candidates in enumerate(near):
        # Products of float32 values are exact in float64, so only their sum is rounded, once.
        exact[row, candidates] = [math.fsum(each) for each in (query[row] * document[candidates]).tolist()]
    return _RowMaxima(exact.max(axis=1), exact.argmax(axis=1))


def _error(unit: float, operations: int, reach: Scores) -> Scores:
    """How far a sum of products can be from the exact one in any order, `reach` bounding that of absolute products.

    n·u / (1 − n·u) times the reach, and what underflows.
    """
    return operations * unit / (1 - operations * unit) * reach + operations**2 * TINY


def _lengths(values: NDArray[np.floating]) -> Scores:
    """[r], the length of each row or a little more."""
    width = values.shape[1]
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.einsum("rd,rd->r", values, values).astype(np.float64)
    lengths: Scores = np.sqrt(squares * (1 + 2 * width * SINGLE) + width * TINY)
    return lengths


def _groups(chunks: Iterable[RaggedChunk], documents: int) -> Iterator[RaggedChunk]:
    for chunk in chunks:
        for run in runs(chunk.rows.offsets, GROUP):
            for start in range(run.start, run.stop, documents):
                end = min(start + documents, run.stop)
                yield RaggedChunk(chunk.start + start, chunk.rows.part(start, end))
