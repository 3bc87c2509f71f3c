"""A few of a run's vectors, chosen by the digests of IDs, for what is told of their space."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoded
from harness.identity import text_digest
from harness.run.index import Index
from harness.suite.case import Document, Suite

QUERIES, DOCUMENTS, EACH = 500, 1000, 4
"""At most so many queries and documents by chance, and besides so many relevant documents of each of those queries."""


@dataclass(frozen=True, slots=True, eq=False)
class VectorSample:
    """Vectors as the model gave them, rising by ID. Shapes: queries [q, d], documents [m, d]; `texts` [m], digests.

    `by_chance` [m]: whether a document was drawn, and isn't only there as a relevant one of a query. `relevant`: pairs
    of query ID and document ID, of these queries and documents.
    """

    query_ids: NDArray[np.object_]
    queries: NDArray[np.float32]
    document_ids: NDArray[np.object_]
    documents: NDArray[np.float32]
    texts: NDArray[np.object_]
    by_chance: NDArray[np.bool_]
    relevant: frozenset[tuple[str, str]]


def sampled(suite: Suite, documents: Sequence[Document], queries: Encoded, index: Index) -> VectorSample:
    """The sample of one release. `documents` are those of the index, in its order, each of one vector."""
    row = {each.id: at for at, each in enumerate(documents)}
    cases = {case.id: at for at, case in enumerate(suite.cases)}
    asked = sorted(chosen(cases, QUERIES))
    positive: dict[str, list[str]] = {}
    for judged in suite.judgements:
        if judged.grade > 0 and judged.document_id in row:
            positive.setdefault(judged.case_id, []).append(judged.document_id)
    drawn = set(chosen(row, DOCUMENTS))
    wanted = sorted(drawn.union(*(chosen(positive.get(case, []), EACH) for case in asked)))
    there = set(wanted)
    return VectorSample(
        query_ids=np.array(asked, dtype=object),
        queries=queries.vectors[[cases[each] for each in asked]],
        document_ids=np.array(wanted, dtype=object),
        documents=_rows(index, [row[each] for each in wanted], queries.values.shape[1]),
        texts=np.array([text_digest(documents[row[each]].text) for each in wanted], dtype=object),
        by_chance=np.array([each in drawn for each in wanted], dtype=bool),
        relevant=frozenset((case, each) for case in asked for each in positive.get(case, []) if each in there),
    )


def sampled_pairs(
    case_ids: Sequence[str], texts: Sequence[tuple[str, str]], queries: Encoded, documents: Encoded
) -> VectorSample:
    """The sample where every case is two texts, the first read as a query and the second as a document.

    Each text once, under the lowest ID that has it: many pairs share one. Nothing says which texts belong together.
    """
    row = {each: at for at, each in enumerate(case_ids)}
    first: dict[str, str] = {}
    second: dict[str, str] = {}
    for each in sorted(row):
        first.setdefault(texts[row[each]][0], each)
        second.setdefault(texts[row[each]][1], each)
    asked, wanted = sorted(chosen(first.values(), QUERIES)), sorted(chosen(second.values(), DOCUMENTS))
    return VectorSample(
        query_ids=np.array(asked, dtype=object),
        queries=queries.vectors[[row[each] for each in asked]],
        document_ids=np.array(wanted, dtype=object),
        documents=documents.vectors[[row[each] for each in wanted]],
        texts=np.array([text_digest(texts[row[each]][1]) for each in wanted], dtype=object),
        by_chance=np.ones(len(wanted), dtype=bool),
        relevant=frozenset(),
    )


def lengths(vectors: NDArray[np.float32]) -> list[float | None]:
    """[n], of vectors [n, d]; None where one isn't finite."""
    exact = vectors.astype(np.float64)
    found = np.sqrt(np.einsum("nd,nd->n", exact, exact))
    return [float(each) if np.isfinite(each) else None for each in found]


def chosen(ids: Iterable[str], most: int) -> list[str]:
    """At most so many, those whose digests are lowest: the same whatever their order, and whatever else is asked."""
    return sorted(ids, key=lambda each: (text_digest(each), each))[:most]


def _rows(index: Index, wanted: Sequence[int], width: int) -> NDArray[np.float32]:
    """[m, width] of the documents at these places of the index."""
    found = np.empty((len(wanted), width), dtype=np.float32)
    places = np.array(wanted, dtype=np.int64)
    for part in index.parts:
        here = (places >= part.start) & (places < part.start + len(part.offsets) - 1)
        found[here] = part.values[places[here] - part.start]
    return found
