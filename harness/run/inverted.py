"""Exact search over sparse vectors by dot product or cosine, through an index from vocabulary to queries.

A score is the float64 sum over the vocabulary entries that both vectors have, in the order of the vocabulary, put on
the grid. Products of float32 weights are exact in float64 and the order is fixed, so a score depends on the two
vectors alone: blocks, company, document order, threads and hardware never change it. Where a text has several vectors,
the score of two texts is that of their best pair.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.rows.ragged import meetings, runs
from harness.run.front import add_block, fronts_of, lasts
from harness.run.search import Found
from harness.run.vectors import Indices, Scores

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# Weights of documents, and pairs of a query and a document, that are scored together.
WEIGHTS = 1 << 22
PAIRS = 1 << 22
# Pairs of which the shared weights are multiplied together.
SHARED = 1 << 14


@dataclass(frozen=True, slots=True)
class SparseVectors:
    """The vectors [width] of n texts, of which only some weights are there, row by row (CSR); all others are 0.

    Shapes: vector i has `data[indptr[i] : indptr[i + 1]]`, float32, at those `indices`, which are whole numbers,
    rise within each vector and are below `width`; indptr [n + 1] int64 rises from 0. All but indptr may be
    memory-mapped; weights may be negative, or 0. `texts` [n + 1] int64, where a text may have several vectors, which
    stand together: text i has those from `texts[i]` on, at least one. Raises Misconfigured for anything else.
    """

    indptr: Indices
    indices: NDArray[np.integer]
    data: NDArray[np.float32]
    width: int
    texts: Indices | None = None

    def __post_init__(self) -> None:
        if found := self._fault():
            raise Misconfigured(
                "sparse vectors",
                found=found,
                expected="float32 weights whose vocabulary indices rise within each vector",
                mend="Hand them over as a CSR matrix with sorted indices and no index twice in one row.",
            )

    def _fault(self) -> str | None:
        starts, indices, data = self.indptr, self.indices, self.data
        if data.dtype != np.float32 or starts.dtype != np.int64 or not np.issubdtype(indices.dtype, np.integer):
            return f"weights {data.dtype}, indices {indices.dtype}, indptr {starts.dtype}"
        if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
            return "indptr that does not rise from 0"
        if not starts[-1] == len(indices) == len(data):
            return f"{len(data)} weights, {len(indices)} indices, and indptr up to {starts[-1]}"
        if self.texts is not None and not (
            self.texts[0] == 0 and self.texts[-1] == len(starts) - 1 and (np.diff(self.texts) > 0).all()
        ):
            return f"{len(starts) - 1} vectors, not divided among the texts so that each has one"
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.width:
            return f"indices from {indices.min()} to {indices.max()} in a vocabulary of {self.width}"
        falls = np.flatnonzero(indices[1:] <= indices[:-1]) + 1
        falls = falls[~np.isin(falls, starts)]
        if len(falls):
            return f"vector {np.searchsorted(starts, falls[0], side='right') - 1}, whose indices don't rise"
        return None

    @classmethod
    def of(cls, matrix: "csr_array") -> "SparseVectors":
        """The rows [n, width] of a CSR matrix of SciPy."""
        ordered = matrix.sorted_indices()
        return cls(ordered.indptr.astype(np.int64), ordered.indices, ordered.data, matrix.shape[1])

    @property
    def vectors(self) -> Indices:
        """[n + 1], from where on the vectors of each text stand among all."""
        return np.arange(len(self.indptr)) if self.texts is None else self.texts

    def __len__(self) -> int:
        return len(self.indptr if self.texts is None else self.texts) - 1


@dataclass(frozen=True, slots=True)
class SparseChunk:
    """The vectors of the documents `start`, `start` + 1, …"""

    start: int
    vectors: SparseVectors


def search_sparse(
    queries: SparseVectors,
    chunks: Iterable[SparseChunk],
    *,
    depth: int,
    grid: float,
    score_type: Literal["cosine", "dot"],
    keep_limit: int = 1000,
    must_keep: Sequence[Indices] | None = None,
) -> Found:
    """The `depth` best documents of every query, with all that tie for the last place; as `search`, for sparse vectors.

    Higher scores are better. They are multiples of `grid`, equal ones equal to the bit. Every document is ranked: one
    that shares nothing with the query scores 0, above those whose score is negative. Chunks are gone through once, so
    a generator will do. `zero_queries` and `zero_documents` are, unlike those of `search`, named for dot products
    too: vectors of zeros alone, whose every score is 0 and whose cosine is taken as that.
    """
    side = _Block.of(queries, slice(0, len(queries)), score_type == "cosine")
    # By vocabulary, so that each weight of a document meets the queries that share it, and no others.
    postings = side.weights.T.tocsr()
    fronts = fronts_of(len(queries), depth, keep_limit, must_keep)
    bad = zero = np.empty(0, dtype=np.int64)
    for chunk in chunks:
        for part in _parts(chunk.vectors, max(1, PAIRS // max(1, len(side.divisors)))):
            block = _Block.of(chunk.vectors, part, score_type == "cosine")
            first = chunk.start + part.start
            bad, zero = np.concatenate([bad, first + block.bad]), np.concatenate([zero, first + block.zero])
            if len(bad):
                continue
            scores = (block.weights @ postings).toarray(order="F").T
            with np.errstate(invalid="ignore"):
                # Adding 0 makes −0 into 0, which equals it but has other bits.
                keys = np.rint(scores / side.divisors[:, None] / block.divisors / grid) + 0.0
                keys = _best(_best(keys, side.starts, axis=0), block.starts, axis=1)
            add_block(fronts, first, keys, keys >= lasts(fronts)[:, None])
    failed = set(range(len(queries)) if len(bad) else side.bad.tolist())
    hits = tuple(None if q in failed else front.hits(grid) for q, front in enumerate(fronts))
    return Found(hits, side.bad, bad, side.zero, zero)


def score_pairs(
    queries: SparseVectors,
    documents: SparseVectors,
    pairs: Indices,
    *,
    grid: float,
    score_type: Literal["cosine", "dot"],
) -> Scores:
    """The scores [p] of pairs of a query and a document, the same to the bit as `search_sparse` gives them.

    Shapes: pairs [p, 2], the index of a query and that of a document, in any order. NaN where a weight of one of the
    two isn't finite.
    """
    mine, theirs = (_Block.of(each, slice(0, len(each)), score_type == "cosine") for each in (queries, documents))
    if queries.texts is None and documents.texts is None:
        return _scores(mine, theirs, pairs, grid)
    every = meetings(queries.vectors, documents.vectors, pairs)
    return _best(_scores(mine, theirs, every.rows, grid), every.starts, axis=0)


def _scores(mine: "_Block", theirs: "_Block", pairs: Indices, grid: float) -> Scores:
    """[p], of pairs [p, 2] of vectors."""
    scores = np.empty(len(pairs))
    for start in range(0, len(pairs), SHARED):
        rows, columns = pairs[start : start + SHARED].T
        products = mine.weights[rows].multiply(theirs.weights[columns]).tocsr().sorted_indices()
        owners = np.repeat(np.arange(len(rows)), np.diff(products.indptr))
        # Summed one after another in the order of the vocabulary, as the search does.
        sums = np.bincount(owners, weights=products.data, minlength=len(rows))
        with np.errstate(invalid="ignore"):
            keys = np.rint(sums / mine.divisors[rows] / theirs.divisors[columns] / grid) + 0.0
        keys[~mine.finite[rows] | ~theirs.finite[columns]] = np.nan
        scores[start : start + SHARED] = keys * grid
    return scores


def _best(scores: Scores, starts: Indices | None, axis: int) -> Scores:
    """The largest of each text's scores along an axis; the scores themselves where a text has one vector."""
    if starts is None or not scores.shape[axis]:
        return scores
    found: Scores = np.maximum.reduceat(scores, starts, axis=axis)
    return found


@dataclass(frozen=True, slots=True)
class _Block:
    """The vectors [v, width] of some texts in float64, and what their scores are divided by: lengths for cosine, else
    1; never 0. `starts` [t]: the first vector of each text, None where each has one. `finite` [v]; `bad` and `zero`,
    texts with a vector that isn't, or of zeros alone.
    """

    weights: "csr_array"
    divisors: Scores
    starts: Indices | None
    finite: NDArray[np.bool_]
    bad: Indices
    zero: Indices

    @classmethod
    def of(cls, vectors: SparseVectors, part: slice, cosine: bool) -> "_Block":
        from scipy.sparse import csr_array

        texts = vectors.vectors[part.start : part.stop + 1]
        starts = vectors.indptr[texts[0] : texts[-1] + 1]
        inside = slice(starts[0], starts[-1])
        data, count = vectors.data[inside].astype(np.float64), len(starts) - 1
        # Summed one after another, as scores are; no square of a finite float32 is beyond float64.
        squares = np.bincount(np.repeat(np.arange(count), np.diff(starts)), weights=data**2, minlength=count)
        weights = csr_array((data, vectors.indices[inside], starts - starts[0]), shape=(count, vectors.width))
        divisors = np.sqrt(np.where(squares > 0, squares, 1.0)) if cosine else np.ones(count)
        owners = np.repeat(np.arange(len(texts) - 1), np.diff(texts))
        finite = np.isfinite(squares)
        bad, zero = np.unique(owners[~finite]), np.unique(owners[squares == 0])
        return cls(weights, divisors, None if vectors.texts is None else texts[:-1] - texts[0], finite, bad, zero)


def _parts(vectors: SparseVectors, count: int) -> Iterator[slice]:
    """Stretches of whole texts, of no more weights and vectors together than are taken at once, if it can be."""
    texts = vectors.vectors
    for run in runs(vectors.indptr[texts], WEIGHTS):
        for part in runs(texts[run.start : run.stop + 1] - texts[run.start], count):
            yield slice(run.start + part.start, run.start + part.stop)
