"""What exact search over sparse vectors returns, held against dense search and the plain sum."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from harness.errors import Misconfigured
from harness.run import inverted as room
from harness.run.inverted import SparseChunk, SparseVectors, score_pairs, search_sparse
from harness.run.search import Chunk, search

GRID = 1e-6


def sparse(matrix):
    return SparseVectors.of(csr_array(np.asarray(matrix, dtype=np.float32)))


def chunked(matrix, size):
    return [SparseChunk(start, sparse(matrix[start : start + size])) for start in range(0, len(matrix), size)]


def drawn(rng, count, width=40, share=0.2):
    values = rng.normal(size=(count, width)) * (rng.random((count, width)) < share)
    return values.astype(np.float32)


def same(one, other):
    return all(
        a.documents.tobytes() == b.documents.tobytes() and a.scores.tobytes() == b.scores.tobytes()
        and a.crossing == b.crossing
        for a, b in zip(one.hits, other.hits, strict=True)
    )  # fmt: skip


@pytest.fixture
def rng():
    return np.random.default_rng(3)


class TestExactness:
    def test_a_hand_worked_ranking(self):
        """(2, 0, 1) with (3, 0, 0), (1, 1, 1), (0, 5, 0): 6, 3 and nothing in common; cosines 2/√5, 3/√15 and 0."""
        documents = [[3, 0, 0], [1, 1, 1], [0, 5, 0]]
        options = {"depth": 3, "grid": GRID}
        found = search_sparse(sparse([[2, 0, 1]]), chunked(np.array(documents), 2), score_type="dot", **options)
        assert found.hits[0].documents.tolist() == [0, 1, 2]
        assert found.hits[0].scores.tolist() == pytest.approx([6, 3, 0])
        cosine = search_sparse(sparse([[2, 0, 1]]), chunked(np.array(documents), 2), score_type="cosine", **options)
        assert cosine.hits[0].scores == pytest.approx([2 / 5**0.5, 3 / 15**0.5, 0], abs=GRID)

    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    @pytest.mark.parametrize("depth", [1, 10, 500])
    def test_equals_every_pair_scored_the_plain_way(self, rng, score_type, depth):
        """Weights of either sign, also at a depth beyond the corpus: then every document is there."""
        queries, documents = drawn(rng, 5), drawn(rng, 200) * rng.uniform(0.1, 10, (200, 1)).astype(np.float32)
        found = search_sparse(sparse(queries), chunked(documents, 64), depth=depth, grid=GRID, score_type=score_type)
        for hits, query in zip(found.hits, queries.astype(np.float64), strict=True):
            exact = documents.astype(np.float64)
            scores = np.array([math.fsum(query * document) for document in exact])
            if score_type == "cosine":
                scores /= np.linalg.norm(query) * np.linalg.norm(exact, axis=1)
            keys = np.rint(scores / GRID)
            expected = [c for c in np.lexsort((np.arange(200), -keys)) if keys[c] >= np.sort(keys)[-min(depth, 200)]]
            assert hits.documents.tolist() == expected
            np.testing.assert_allclose(hits.scores, keys[expected] * GRID, rtol=1e-12, atol=0)

    def test_sharing_nothing_is_better_than_a_negative_score(self):
        """−1 stands below the documents that score 0, which are ranked like any other."""
        found = search_sparse(sparse([[1, 0, 0]]), chunked(np.array([[-1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 0, 0]]), 2),
                              depth=4, grid=GRID, score_type="dot")  # fmt: skip
        assert found.hits[0].documents.tolist() == [3, 1, 2, 0]
        assert found.hits[0].scores.tolist() == pytest.approx([1, 0, 0, -1])

    def test_products_are_summed_in_float64_in_the_order_of_the_vocabulary(self):
        """2⁶⁰ and −2⁶⁰ cancel before .75 comes, or swallow it; .1 twice is what float64 makes of it."""
        far = 2.0**60
        query = sparse([[1, 1, 1]])
        for document, score in (([far, -far, 0.75], 0.75), ([far, 0.75, -far], 0.0)):
            found = search_sparse(query, chunked(np.array([document]), 1), depth=1, grid=0.25, score_type="dot")
            assert found.hits[0].scores.tolist() == [score]
        found = search_sparse(query, chunked(np.array([[0.1, 0.1, 0]]), 1), depth=1, grid=1e-12, score_type="dot")
        assert found.hits[0].scores[0] == pytest.approx(2 * float(np.float32(0.1)), abs=1e-12)

    def test_no_documents_and_no_queries(self):
        """An empty corpus answers every query with nothing; no queries have no hits."""
        one = search_sparse(sparse([[1, 2]]), [], depth=5, grid=GRID, score_type="dot")
        assert one.hits[0].documents.tolist() == []
        none = search_sparse(sparse(np.empty((0, 2))), chunked(np.ones((3, 2)), 2), depth=5, grid=GRID,
                             score_type="dot")  # fmt: skip
        assert none.hits == ()

    def test_a_generator_of_chunks_will_do(self):
        """Chunks are gone through once."""
        chunks = (chunk for chunk in chunked(np.array([[1, 0], [2, 0]]), 1))
        found = search_sparse(sparse([[1, 0]]), chunks, depth=1, grid=GRID, score_type="dot")
        assert found.hits[0].documents.tolist() == [1]


@st.composite
def crowded(draw):
    """Sparse vectors of a few small whole numbers, so that most scores tie; a depth and a chunk size."""
    width = draw(st.integers(1, 6))
    row = st.lists(st.sampled_from([0, 0, 0, -1, 1, 2]), min_size=width, max_size=width)
    documents = np.array(draw(st.lists(row, min_size=1, max_size=50)), dtype=np.float32)
    queries = np.array(draw(st.lists(row, min_size=1, max_size=4)), dtype=np.float32)
    scale = np.float32(draw(st.sampled_from([1.0, 0.1, 1e-6, 5e-7])))
    return queries, documents * scale, draw(st.integers(1, 20)), draw(st.integers(1, 51))


class TestTies:
    @settings(max_examples=100, deadline=None)
    @given(crowded(), st.sampled_from(["cosine", "dot"]), st.integers(1, 8), st.integers(1, 30))
    def test_crowds_of_duplicates_equal_dense_search(self, case, score_type, limit, blocks):
        """The same hits with the same bits, crossing groups and what must be kept included, in blocks of any size."""
        queries, documents, depth, size = case
        keep = [np.arange(0, len(documents), 3)] * len(queries)
        options = {"depth": depth, "grid": GRID, "keep_limit": limit, "must_keep": keep, "score_type": score_type}
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "PAIRS", blocks)
            patch.setattr(room, "WEIGHTS", 2 * blocks)
            found = search_sparse(sparse(queries), chunked(documents, size), **options)
        assert same(found, search(queries, [Chunk(0, documents)], **options))

    def test_zero_has_no_sign(self):
        """From below and from above it is the same float."""
        found = search_sparse(sparse([[1.0]]), chunked(np.array([[-1e-9], [1e-9], [0]]), 1), depth=3, grid=GRID,
                              score_type="dot")  # fmt: skip
        assert found.hits[0].scores.tobytes() == np.zeros(3).tobytes()


class TestInvariance:
    @settings(max_examples=20, deadline=None)
    @given(st.integers(1, 50), st.integers(1, 200), st.integers(0, 2**32 - 1), st.sampled_from(["cosine", "dot"]))
    def test_neither_blocks_nor_order_nor_company_change_a_hit(self, size, blocks, seed, score_type):
        """Any chunks, any blocks, any order of documents, each query alone, on a grid that hides no rounding."""
        rng = np.random.default_rng(seed)
        queries, documents = drawn(rng, 3), drawn(rng, 40)
        options = {"depth": 7, "grid": 1e-16, "score_type": score_type}
        whole = search_sparse(sparse(queries), [SparseChunk(0, sparse(documents))], **options)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "PAIRS", blocks)
            patch.setattr(room, "WEIGHTS", blocks)
            assert same(whole, search_sparse(sparse(queries), chunked(documents, size), **options))
        order = rng.permutation(40)
        moved = search_sparse(sparse(queries), chunked(documents[order], size), **options)
        for q, (mine, other) in enumerate(zip(whole.hits, moved.hits, strict=True)):
            alone = search_sparse(sparse(queries[q : q + 1]), chunked(documents, size), **options).hits[0]
            assert mine.documents.tolist() == alone.documents.tolist()
            assert mine.scores.tobytes() == alone.scores.tobytes() == other.scores.tobytes()
            assert set(mine.documents.tolist()) == set(order[other.documents].tolist())

    def test_indices_of_any_whole_type_and_memory_mapped_weights_serve(self, rng, tmp_path):
        """How the vectors are stored is no matter, nor whether a 0 is."""
        queries, documents = sparse(drawn(rng, 3)), sparse(drawn(rng, 30))
        np.save(tmp_path / "weights.npy", documents.data)
        mapped = SparseVectors(documents.indptr, documents.indices.astype(np.int64),
                               np.load(tmp_path / "weights.npy", mmap_mode="r"), documents.width)  # fmt: skip
        options = {"depth": 5, "grid": GRID, "score_type": "dot"}
        plain = search_sparse(queries, [SparseChunk(0, documents)], **options)
        assert same(plain, search_sparse(queries, [SparseChunk(0, mapped)], **options))
        stored = SparseVectors(np.array([0, 2, 2]), np.array([0, 1]), np.array([0, 1], np.float32), 40)
        bare = SparseVectors(np.array([0, 1, 1]), np.array([1]), np.array([1], np.float32), 40)
        results = [search_sparse(each, [SparseChunk(0, documents)], **options) for each in (stored, bare)]
        assert same(*results)


class TestBadVectors:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    def test_a_query_that_is_not_finite_fails_alone(self, rng, value, score_type):
        """Its place in the hits is None; the others rank as if it weren't there."""
        queries, documents = drawn(rng, 3), drawn(rng, 30)
        queries[1, 2] = value
        options = {"depth": 5, "grid": GRID, "score_type": score_type}
        found = search_sparse(sparse(queries), chunked(documents, 8), **options)
        assert found.hits[1] is None and found.bad_queries.tolist() == [1]
        others = search_sparse(sparse(queries[[0, 2]]), chunked(documents, 8), **options)
        assert [hits.documents.tolist() for hits in (found.hits[0], found.hits[2])] == [
            hits.documents.tolist() for hits in others.hits
        ]

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_a_document_that_is_not_finite_fails_every_query(self, rng, value):
        """All such documents are named, in whichever chunk they are."""
        documents = drawn(rng, 30)
        documents[[4, 27], 0] = value
        found = search_sparse(sparse(drawn(rng, 2)), chunked(documents, 8), depth=5, grid=GRID, score_type="dot")
        assert found.hits == (None, None) and found.bad_documents.tolist() == [4, 27]

    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    def test_vectors_of_zeros_are_named_and_score_zero(self, score_type):
        """Nothing finds them: they stand with all that share nothing with the query. So does a stored 0."""
        stored = SparseVectors(np.array([0, 1, 2, 2]), np.array([0, 1]), np.array([1, 0], np.float32), 2)
        queries = SparseVectors(np.array([0, 1, 1]), np.array([0]), np.array([1], np.float32), 2)
        found = search_sparse(queries, [SparseChunk(5, stored)], depth=3, grid=GRID, score_type=score_type)
        assert found.zero_documents.tolist() == [6, 7] and found.zero_queries.tolist() == [1]
        assert found.hits[0].documents.tolist() == [5, 6, 7]
        assert found.hits[0].scores.tolist() == pytest.approx([1, 0, 0])
        assert found.hits[1].scores.tolist() == [0, 0, 0]

    def test_the_smallest_weight_is_not_zero(self):
        """Its square is beyond float32, not beyond float64; and the cosine is 1."""
        tiny = sparse([[np.float32(1e-45)]])
        found = search_sparse(tiny, [SparseChunk(0, tiny)], depth=1, grid=GRID, score_type="cosine")
        assert found.zero_documents.tolist() == [] and found.hits[0].scores == pytest.approx([1])


class TestSparseVectors:
    def test_the_rows_of_a_matrix(self):
        """Indices that are out of order are put into it."""
        matrix = csr_array((np.array([5, 6], np.float32), np.array([2, 0]), np.array([0, 2, 2])), shape=(2, 3))
        vectors = SparseVectors.of(matrix)
        assert vectors.indices.tolist() == [0, 2] and vectors.data.tolist() == [6, 5]
        assert len(vectors) == 2 and vectors.width == 3

    @pytest.mark.parametrize(
        ("indptr", "indices", "found"),
        [
            ([0, 2, 3], [1, 0, 2], "vector 0"),
            ([0, 1, 3], [0, 1, 1], "vector 1"),
            ([0, 0, 3], [0, 2, 1], "vector 1"),
            ([0, 1, 3], [0, 1, 3], "vocabulary of 3"),
            ([0, 1, 3], [-1, 1, 2], "from -1"),
            ([0, 1, 2], [0, 1, 2], "up to 2"),
            ([0, 1, 3], [0, 1], "2 indices"),
            ([0, 3, 1, 3], [0, 1, 2], "rise from 0"),
            ([1, 3], [0, 1, 2], "rise from 0"),
            ([], [0, 1, 2], "rise from 0"),
        ],
    )
    def test_what_is_no_csr_is_refused(self, indptr, indices, found):
        """An index twice, out of order or out of the vocabulary; starts that fall or miss weights."""
        data = np.ones(3, dtype=np.float32)
        with pytest.raises(Misconfigured, match=found):
            SparseVectors(np.array(indptr, dtype=np.int64), np.array(indices, dtype=np.int64), data, 3)

    def test_other_types_are_refused(self):
        """Weights are float32, indices whole numbers, starts int64."""
        starts, indices, data = np.array([0, 1]), np.array([0]), np.ones(1, dtype=np.float32)
        for arguments in (
            (starts.astype(np.int32), indices, data),
            (starts, indices.astype(np.float64), data),
            (starts, indices, data.astype(np.float64)),
        ):
            with pytest.raises(Misconfigured, match="float32"):
                SparseVectors(*arguments, 3)


class TestScorePairs:
    def test_a_hand_worked_pair(self):
        """(2, 0, 1) with (1, 1, 1): 3, and 3 / √15 as cosine; with (0, 5, 0) nothing is shared."""
        queries, documents = sparse([[2, 0, 1]]), sparse([[1, 1, 1], [0, 5, 0]])
        pairs = np.array([[0, 1], [0, 0]])
        assert score_pairs(queries, documents, pairs, grid=GRID, score_type="dot").tolist() == pytest.approx([0, 3])
        found = score_pairs(queries, documents, pairs, grid=GRID, score_type="cosine")
        assert found == pytest.approx([0, 3 / 15**0.5], abs=GRID)

    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    def test_every_pair_has_the_score_of_the_search(self, rng, monkeypatch, score_type):
        """To the bit, in whatever order and however many at a time."""
        queries, documents = drawn(rng, 5), drawn(rng, 60)
        monkeypatch.setattr(room, "SHARED", 7)
        hits = search_sparse(
            sparse(queries), chunked(documents, 13), depth=60, grid=GRID, score_type=score_type
        ).hits  # fmt: skip
        pairs = rng.permutation(np.array([[q, d] for q in range(5) for d in range(60)]))
        found = score_pairs(sparse(queries), sparse(documents), pairs, grid=GRID, score_type=score_type)
        known = [hits[q].scores[hits[q].documents.tolist().index(d)] for q, d in pairs]
        assert found.tobytes() == np.array(known).tobytes()

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_a_weight_that_is_not_finite_gives_no_score(self, bad):
        """Also where the other vector hasn't that weight."""
        queries, documents = sparse([[1, 0], [bad, 1]]), sparse([[0, bad], [1, 1]])
        pairs = np.array([[0, 0], [0, 1], [1, 1]])
        found = score_pairs(queries, documents, pairs, grid=GRID, score_type="dot")
        assert np.isnan(found).tolist() == [True, False, True] and found[1] == 1


class TestTextsOfSeveralVectors:
    """The score of two texts is that of their best pair of vectors."""

    def texts(self, rng, counts):
        """Weights of either sign, among them vectors of zeros, with offsets by text."""
        matrix = np.rint(drawn(rng, sum(counts), width=9, share=0.4) * 4).astype(np.float32)
        return matrix, np.cumsum([0, *counts])

    def vectors(self, matrix, offsets):
        plain = sparse(matrix)
        return SparseVectors(plain.indptr, plain.indices, plain.data, plain.width, offsets.astype(np.int64))

    def chunks(self, matrix, offsets, size):
        for start in range(0, len(offsets) - 1, size):
            mine = offsets[start : start + size + 1]
            yield SparseChunk(start, self.vectors(matrix[mine[0] : mine[-1]], mine - mine[0]))

    def test_a_hand_worked_ranking(self):
        """(1, 0) and (0, 2) meet d0's (3, 0) and (0, 1): 3, 0, 0, 2; d1's (0, 2): 0 and 4; d2 has zeros: 0."""
        documents = self.vectors(np.array([[3, 0], [0, 1], [0, 2], [0, 0]]), np.array([0, 2, 3, 4]))
        queries = self.vectors(np.array([[1, 0], [0, 2]]), np.array([0, 2]))
        found = search_sparse(queries, [SparseChunk(0, documents)], depth=3, grid=GRID, score_type="dot")
        assert found.hits[0].documents.tolist() == [1, 0, 2]
        assert found.hits[0].scores.tolist() == pytest.approx([4, 3, 0])
        assert found.zero_documents.tolist() == [2] and found.zero_queries.tolist() == []

    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    @pytest.mark.parametrize(("weights", "pairs", "size"), [(1 << 22, 1 << 22, 50), (7, 1, 3), (1 << 22, 40, 7)])
    def test_equals_the_largest_of_all_pairs(self, rng, monkeypatch, score_type, weights, pairs, size):
        """Whatever is scored together, negative scores among them, and one text of one vector."""
        monkeypatch.setattr(room, "WEIGHTS", weights)
        monkeypatch.setattr(room, "PAIRS", pairs)
        documents, theirs = self.texts(rng, [int(each) for each in rng.integers(1, 5, 30)])
        queries, mine = self.texts(rng, [1, 3, 2, 1, 4])
        found = search_sparse(self.vectors(queries, mine), self.chunks(documents, theirs, size), depth=30, grid=GRID,
                              score_type=score_type)  # fmt: skip
        every = queries.astype(np.float64) @ documents.astype(np.float64).T
        if score_type == "cosine":
            lengths = [np.linalg.norm(each.astype(np.float64), axis=1) for each in (queries, documents)]
            every /= np.outer(*(np.where(each > 0, each, 1) for each in lengths))
        for q, hits in enumerate(found.hits):
            block = every[mine[q] : mine[q + 1]]
            best = np.array([block[:, start:end].max() for start, end in itertools.pairwise(theirs)])
            keys = np.rint(best / GRID)
            order = np.lexsort((np.arange(30), -keys))
            assert hits.documents.tolist() == order.tolist()
            np.testing.assert_allclose(hits.scores, keys[order] * GRID, rtol=1e-12, atol=0)

    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    def test_pairs_have_the_scores_of_the_search(self, rng, score_type):
        """To the bit, also where the texts of one side alone have several."""
        documents, theirs = self.texts(rng, [2, 1, 3, 1])
        queries, mine = self.texts(rng, [1, 2])
        asked, stored = self.vectors(queries, mine), self.vectors(documents, theirs)
        both = [(asked, stored), (sparse(queries), stored), (asked, sparse(documents))]
        for some, others in both:
            found = search_sparse(some, [SparseChunk(0, others)], depth=9, grid=GRID, score_type=score_type)
            pairs = np.array([(q, d) for q in range(len(some)) for d in range(len(others))])
            scores = score_pairs(some, others, pairs, grid=GRID, score_type=score_type).reshape(len(some), -1)
            for q, hits in enumerate(found.hits):
                assert hits.scores.tobytes() == scores[q][hits.documents].tobytes()
        assert score_pairs(*both[0], np.empty((0, 2), dtype=np.int64), grid=GRID, score_type="dot").shape == (0,)

    def test_texts_of_one_vector_rank_as_always(self, rng):
        documents, theirs = self.texts(rng, [1] * 20)
        options = {"depth": 5, "grid": GRID, "score_type": "dot"}
        plain = search_sparse(sparse(documents[:3]), [SparseChunk(0, sparse(documents))], **options)
        some = [SparseChunk(0, self.vectors(documents, theirs))]
        assert same(plain, search_sparse(sparse(documents[:3]), some, **options))

    def test_a_vector_that_is_not_finite_is_its_texts(self):
        """A query's fails that query; a document's fails them all, and is named by its text."""
        bad = np.array([[1, 0], [np.nan, 1], [1, 1]], dtype=np.float32)
        good = SparseChunk(0, sparse([[1, 1]]))
        found = search_sparse(self.vectors(bad, np.array([0, 2, 3])), [good], depth=1, grid=GRID, score_type="dot")
        assert found.bad_queries.tolist() == [0] and found.hits[0] is None and found.hits[1] is not None
        documents = [SparseChunk(4, self.vectors(bad, np.array([0, 1, 3])))]
        found = search_sparse(sparse([[1, 1]]), documents, depth=1, grid=GRID, score_type="dot")
        assert found.bad_documents.tolist() == [5] and found.hits == (None,)
        pairs = np.array([[0, 0], [0, 1]])
        scores = score_pairs(sparse([[1, 1]]), documents[0].vectors, pairs, grid=GRID, score_type="dot")
        assert np.isnan(scores).tolist() == [False, True]

    @pytest.mark.parametrize("offsets", [[0, 1], [1, 2], [0, 0, 2], [0, 2, 1, 2]])
    def test_texts_that_do_not_share_out_the_vectors_are_refused(self, offsets):
        with pytest.raises(Misconfigured, match="divided among the texts"):
            self.vectors(np.eye(2), np.array(offsets))
