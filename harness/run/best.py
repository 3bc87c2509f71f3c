"""Exact search where a text may have several vectors: the best pair of two texts' vectors is their score.

Vectors are searched as if each were a text, ever deeper, until the documents that they belong to are as many as are
wanted. A document whose best vector is above the last place of such a search, or level with it, is there with its exact
score, and no other document is: so how deep it went never changes a result.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from harness.rows.ragged import Ragged, meetings
from harness.run import search as plain
from harness.run.front import Front, Hits
from harness.run.maxsim import RaggedChunk
from harness.run.search import Found
from harness.run.vectors import Chunk, Indices, Scores

# Queries that are searched together, each with all documents of a tied group.
QUERIES = 1 << 8
# How many times deeper the next search goes.
DEEPER = 4


def search_best(
    queries: Ragged,
    chunks: Sequence[RaggedChunk],
    *,
    depth: int,
    grid: float,
    score_type: Literal["cosine", "dot"],
    keep_limit: int = 1000,
    must_keep: Sequence[Indices] | None = None,
) -> Found:
    """The `depth` best documents of every query, with all that tie for the last place; all as in `search`.

    Every text has a vector. A text with one that isn't finite is bad; one with a vector without a direction is told
    among the zero ones.
    """
    owner = _owner(chunks)
    starts = np.cumsum([0, *(len(chunk.rows.values) for chunk in chunks)]).tolist()
    vectors = [Chunk(start, chunk.rows.values) for start, chunk in zip(starts, chunks, strict=False)]
    told, none = _Told(), np.empty(0, dtype=np.int64)
    hits: list[Hits | None] = [None] * len(queries)
    for start in range(0, len(queries), QUERIES):
        left, size = np.arange(start, min(start + QUERIES, len(queries))), depth
        while len(left):
            found = plain.search(
                queries.values[queries.positions(left)], vectors, depth=size, grid=grid, score_type=score_type,
                keep_limit=max(1, len(owner)),
            )  # fmt: skip
            told.add(found, np.repeat(left, queries.counts[left]))
            if len(found.bad_documents):
                return told.as_found([None] * len(queries), owner)
            ends = np.cumsum(queries.counts[left]).tolist()
            more = []
            for query, first, end in zip(left.tolist(), [0, *ends], ends, strict=False):
                some = [each for each in found.hits[first:end] if each is not None]
                if len(some) < end - first:
                    continue
                certain = _certain(some, owner, depth)
                if certain is None:
                    more.append(query)
                    continue
                front = Front(depth, keep_limit, none if must_keep is None else must_keep[query])
                front.add(certain.documents, np.rint(certain.scores / grid) + 0.0)
                hits[query] = front.hits(grid)
            left, size = np.array(more, dtype=np.int64), size * DEEPER
    return told.as_found(hits, owner)


def _owner(chunks: Sequence[RaggedChunk]) -> Indices:
    """[v], the document of each vector."""
    every = [chunk.start + np.repeat(np.arange(len(chunk.rows)), chunk.rows.counts) for chunk in chunks]
    return np.concatenate([np.empty(0, dtype=np.int64), *every])


def _certain(some: Sequence[Hits], owner: Indices, depth: int) -> Hits | None:
    """The documents of one query of which the best score is known for certain, from the hits of each of its vectors;
    None where they are fewer than `depth` and not all that there are.
    """
    floor = max(float(each.scores[-1]) if len(each.scores) < len(owner) else -np.inf for each in some)
    documents = owner[np.concatenate([each.documents for each in some])]
    scores = np.concatenate([each.scores for each in some])
    order = np.lexsort((-scores, documents))
    documents, scores = documents[order], scores[order]
    best = np.append(True, documents[1:] != documents[:-1])[: len(documents)] & (scores >= floor)
    if np.count_nonzero(best) < depth and floor > -np.inf:
        return None
    return Hits(documents[best], scores[best])


@dataclass(slots=True)
class _Told:
    """Vectors that aren't finite or have no direction: of queries by their text, of documents by their own place."""

    bad_queries: set[int] = field(default_factory=set)
    zero_queries: set[int] = field(default_factory=set)
    bad: set[int] = field(default_factory=set)
    zero: set[int] = field(default_factory=set)

    def add(self, found: Found, texts: Indices) -> None:
        self.bad_queries |= set(texts[found.bad_queries].tolist())
        self.zero_queries |= set(texts[found.zero_queries].tolist())
        self.bad |= set(found.bad_documents.tolist())
        self.zero |= set(found.zero_documents.tolist())

    def as_found(self, hits: Sequence[Hits | None], owner: Indices) -> Found:
        def rising(places: set[int]) -> Indices:
            return np.array(sorted(places), dtype=np.int64)

        documents = [np.unique(owner[rising(each)]) for each in (self.bad, self.zero)]
        return Found(tuple(hits), rising(self.bad_queries), documents[0], rising(self.zero_queries), documents[1])


def score_best(
    queries: Ragged, documents: Ragged, pairs: Indices, *, grid: float, score_type: Literal["cosine", "dot"]
) -> Scores:
    """The scores [p] of pairs of a query and a document, the same to the bit as `search_best` gives them.

    Shapes: pairs [p, 2]. NaN where a vector of one of the two isn't finite.
    """
    if not len(pairs):
        return np.empty(0)
    every = meetings(queries.offsets, documents.offsets, pairs)
    scores = plain.score_pairs(queries.values, documents.values, every.rows, grid=grid, score_type=score_type)
    best: Scores = np.maximum.reduceat(scores, every.starts)
    return best
