"""The best pair of two texts' vectors, held against all pairs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.rows.ragged import Ragged
from harness.run import best
from harness.run.best import score_best, search_best
from harness.run.maxsim import RaggedChunk
from harness.run.search import search
from harness.run.vectors import Chunk

GRID = 1e-6


def drawn(seed: int, texts: int, most: int, levels: int = 0) -> Ragged:
    """Texts of one to `most` vectors; on few levels, so that scores tie, where that is said."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, most + 1, texts)
    rows = [rng.normal(size=(count, 4)) if not levels else rng.integers(-levels, levels + 1, (count, 4)) + 0.5
            for count in counts]  # fmt: skip
    return Ragged.of(rows, 4)


def chunked(documents: Ragged, size: int) -> list[RaggedChunk]:
    return [
        RaggedChunk(start, documents.part(start, min(start + size, len(documents))))
        for start in range(0, len(documents), size)
    ]


def by_hand(queries: Ragged, documents: Ragged, query: int) -> np.ndarray:
    """[n], every document's best dot product, on the grid."""
    mine = queries.rows(query).astype(np.float64)
    every = [np.max(mine @ documents.rows(each).astype(np.float64).T) for each in range(len(documents))]
    return np.rint(np.array(every) / GRID) * GRID


class TestAllPairs:
    @given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 12), st.integers(1, 9), st.sampled_from([0, 1]))
    def test_the_best_documents_and_all_that_tie_for_the_last_place(self, seed, texts, depth, size, levels) -> None:
        """Whatever the chunks, and however many vectors the documents have."""
        documents, queries = drawn(seed, texts, 7, levels), drawn(seed + 1, 3, 3, levels)
        found = search_best(queries, chunked(documents, size), depth=depth, grid=GRID, score_type="dot")
        for query in range(3):
            scores = by_hand(queries, documents, query)
            last = np.sort(scores)[::-1][: min(depth, texts)][-1]
            hits = found.hits[query]
            assert set(hits.documents.tolist()) == set(np.flatnonzero(scores >= last).tolist())
            assert hits.scores.tolist() == pytest.approx(scores[hits.documents].tolist(), abs=1e-9)
            assert (np.diff(hits.scores) <= 0).all()

    def test_a_document_of_many_vectors_takes_one_place(self) -> None:
        """A hundred vectors of the first document are all nearer than those of the others."""
        documents = Ragged.of([np.full((100, 1), 9.0), [[3.0]], [[2.0], [1.0]]], 1)
        found = search_best(Ragged.of([[[1.0]]], 1), chunked(documents, 2), depth=2, grid=GRID, score_type="dot")
        assert found.hits[0].documents.tolist() == [0, 1] and found.hits[0].scores.tolist() == [9.0, 3.0]

    def test_single_vectors_are_searched_as_always(self) -> None:
        documents, queries = drawn(1, 60, 1), drawn(2, 4, 1)
        found = search_best(queries, chunked(documents, 13), depth=7, grid=GRID, score_type="cosine")
        plain = search(queries.values, [Chunk(0, documents.values)], depth=7, grid=GRID, score_type="cosine")
        for one, other in zip(found.hits, plain.hits, strict=True):
            assert one.documents.tolist() == other.documents.tolist() and one.scores.tolist() == other.scores.tolist()

    def test_how_many_queries_are_searched_together_changes_nothing(self, monkeypatch) -> None:
        documents, queries = drawn(3, 50, 5, 1), drawn(4, 9, 2, 1)
        whole = search_best(queries, chunked(documents, 9), depth=5, grid=GRID, score_type="cosine")
        monkeypatch.setattr(best, "QUERIES", 2)
        parts = search_best(queries, chunked(documents, 50), depth=5, grid=GRID, score_type="cosine")
        for one, other in zip(whole.hits, parts.hits, strict=True):
            assert one.documents.tolist() == other.documents.tolist() and one.scores.tolist() == other.scores.tolist()

    def test_pairs_have_the_scores_of_the_search(self) -> None:
        documents, queries = drawn(5, 20, 6), drawn(6, 4, 3)
        found = search_best(queries, chunked(documents, 7), depth=20, grid=GRID, score_type="cosine")
        for query, hits in enumerate(found.hits):
            pairs = np.stack([np.full(20, query), hits.documents], axis=1)
            assert (
                score_best(queries, documents, pairs, grid=GRID, score_type="cosine").tolist() == hits.scores.tolist()
            )


class TestTiedGroups:
    DOCUMENTS = Ragged.of([[[2.0]], *([[[1.0], [1.0], [0.0]]] * 6)], 1)

    def test_a_large_one_is_counted_in_documents(self) -> None:
        """Six documents of two vectors each that tie: six, of which the one that must be kept stays."""
        found = search_best(
            Ragged.of([[[1.0]]], 1), chunked(self.DOCUMENTS, 3), depth=2, grid=GRID, score_type="dot", keep_limit=4,
            must_keep=[np.array([5])],
        )  # fmt: skip
        hits = found.hits[0]
        assert hits.crossing == 6 and hits.documents.tolist() == [0, 1, 5]

    def test_a_small_one_is_kept_whole(self) -> None:
        found = search_best(
            Ragged.of([[[1.0]]], 1), chunked(self.DOCUMENTS, 3), depth=2, grid=GRID, score_type="dot", keep_limit=6
        )
        assert found.hits[0].crossing == 0 and found.hits[0].documents.tolist() == list(range(7))


class TestWithoutANumber:
    def test_a_vector_that_is_not_finite_is_its_texts(self) -> None:
        bad = Ragged.of([[[1.0], [np.nan]], [[1.0]]], 1)
        fine = Ragged.of([[[2.0], [1.0]]], 1)
        found = search_best(bad, chunked(fine, 1), depth=1, grid=GRID, score_type="dot")
        assert found.hits[0] is None and found.hits[1] is not None and found.bad_queries.tolist() == [0]
        found = search_best(fine, chunked(bad, 1), depth=1, grid=GRID, score_type="dot")
        assert found.hits == (None,) and found.bad_documents.tolist() == [0]
        assert np.isnan(score_best(fine, bad, np.array([[0, 0], [0, 1]]), grid=GRID, score_type="dot")).tolist() == [
            True, False,
        ]  # fmt: skip

    def test_a_vector_without_a_direction_is_told(self) -> None:
        zero = Ragged.of([[[1.0]], [[1.0], [0.0]]], 1)
        found = search_best(zero, chunked(zero, 1), depth=2, grid=GRID, score_type="cosine")
        assert found.zero_queries.tolist() == [1] and found.zero_documents.tolist() == [1]

    def test_without_documents_there_is_no_hit(self) -> None:
        found = search_best(Ragged.of([[[1.0]]], 1), [], depth=3, grid=GRID, score_type="dot")
        assert found.hits[0].documents.tolist() == []
