"""What exact search returns, held against every pair scored the plain way."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run import pool, vectors
from harness.run import search as room
from harness.run.search import Chunk, Found, search

GRID = 1e-6


def plain_keys(queries, documents, score_type, grid=GRID):
    """[q, c] scores in steps of the grid, each its own float64 sum."""
    keys = np.empty((len(queries), len(documents)))
    for q, query in enumerate(queries.astype(np.float64)):
        for c, document in enumerate(documents.astype(np.float64)):
            score = math.fsum(query * document)
            if score_type == "cosine":
                score /= (math.sqrt(math.fsum(query**2)) or 1.0) * (math.sqrt(math.fsum(document**2)) or 1.0)
            keys[q, c] = np.rint(score / grid)
    return keys


def chunked(documents, size):
    return [Chunk(start, documents[start : start + size]) for start in range(0, len(documents), size)]


def assert_is_brute_force(found: Found, queries, documents, *, depth, score_type, grid=GRID):
    keys = plain_keys(queries, documents, score_type, grid)
    for hits, row in zip(found.hits, keys, strict=True):
        last = np.sort(row)[::-1][:depth].min(initial=np.inf)
        expected = [c for c in np.lexsort((np.arange(len(row)), -row)) if row[c] >= last]
        assert hits.documents.tolist() == expected
        np.testing.assert_allclose(hits.scores, row[expected] * grid, rtol=1e-12, atol=0)


def same(one: Found, other: Found) -> bool:
    return all(
        a.documents.tobytes() == b.documents.tobytes() and a.scores.tobytes() == b.scores.tobytes()
        for a, b in zip(one.hits, other.hits, strict=True)
    )


@pytest.fixture
def rng():
    return np.random.default_rng(5)


def shrink(patch, held=2, growth=2):
    """Blocks, strips and pools so small that every path is taken; `held` is how many a pool has room for."""
    for module, name, value in (
        (vectors, "BLOCK", 7), (vectors, "TILE", 3), (pool, "STRIP", 2), (room, "STRIP", 2), (pool, "GROUPS", 2),
        (pool, "ROOM", held), (room, "SCAN", 3), (pool, "GROWTH", growth), (room, "PAIRS", 5),
    ):  # fmt: skip
        patch.setattr(module, name, value)


@pytest.fixture
def small(monkeypatch):
    """Blocks, strips and pools so small that every path is taken."""
    shrink(monkeypatch)


class TestExactness:
    @pytest.mark.parametrize("score_type", ["cosine", "dot"])
    @pytest.mark.parametrize("depth", [1, 3, 10, 500])
    def test_equals_every_pair_scored_the_plain_way(self, rng, score_type, depth):
        """Random vectors of unlike lengths, also at a depth beyond the corpus."""
        queries = rng.normal(size=(6, 24)).astype(np.float32)
        documents = (rng.normal(size=(300, 24)) * rng.uniform(0.1, 10, (300, 1))).astype(np.float32)
        found = search(queries, chunked(documents, 64), depth=depth, grid=GRID, score_type=score_type)
        assert_is_brute_force(found, queries, documents, depth=depth, score_type=score_type)

    def test_documents_that_differ_only_beyond_float32_are_told_apart(self, rng, small):
        """A hundred documents within float32's error of one another stand in their exact order."""
        query = np.ones((1, 100), dtype=np.float32)
        documents = np.full((100, 100), 0.125, dtype=np.float32)
        for row in rng.permutation(100):
            documents[row, :row] = np.nextafter(np.float32(0.125), np.float32(1))
        found = search(query, [Chunk(0, documents)], depth=5, grid=1e-9, score_type="dot")
        assert found.hits[0].documents.tolist() == [99, 98, 97, 96, 95]

    def test_a_hand_worked_ranking(self):
        """The cosines of (1, 0) with (3, 4), (1, 0) and (−1, 0) are .6, 1 and −1."""
        documents = np.array([[3, 4], [1, 0], [-1, 0]], dtype=np.float32)
        found = search(np.array([[1, 0]], np.float32), [Chunk(0, documents)], depth=2, grid=GRID, score_type="cosine")
        assert found.hits[0].documents.tolist() == [1, 0]
        assert found.hits[0].scores == pytest.approx([1.0, 0.6], abs=1e-12)

    @pytest.mark.parametrize("depth", [1, 4])
    def test_float32_noise_far_above_the_grid_decides_nothing(self, rng, small, depth):
        """Long vectors almost at right angles to the query: float32 orders them nearly at random, and is corrected."""
        query = rng.normal(size=(1, 64))
        documents = 100 * rng.normal(size=(300, 64))
        documents -= (documents @ query.T) @ query / np.sum(query**2)
        query, documents = query.astype(np.float32), documents.astype(np.float32)
        found = search(query, chunked(documents, 50), depth=depth, grid=1e-9, score_type="dot")
        assert_is_brute_force(found, query, documents, depth=depth, score_type="dot", grid=1e-9)

    def test_dot_products_beyond_float32_still_rank(self, small):
        """Finite vectors whose float32 product would overflow are scored in float64."""
        documents = np.array([[k * 1e30, -1e30] for k in range(1, 31)], dtype=np.float32)
        found = search(np.array([[1e30, 1e30]], np.float32), chunked(documents, 4), depth=2, grid=1.0, score_type="dot")
        assert found.hits[0].documents.tolist() == [29, 28]
        lowest = search(np.array([[-1e30, 0]], np.float32), chunked(documents, 4), depth=2, grid=1.0, score_type="dot")
        assert lowest.hits[0].documents.tolist() == [0, 1]

    def test_a_length_beyond_float32_that_comes_late_spoils_nothing(self, small):
        """The documents before it were ranked by float32, and the query's products overflow from there on."""
        documents = np.array([[k, 1] for k in range(1, 41)], dtype=np.float32)
        documents[33] = [1e30, 0]
        documents[35] = [-1e30, 0]
        queries = np.array([[1e20, 1e20], [-1e20, 1e20], [1, 1]], dtype=np.float32)
        found = search(queries, chunked(documents, 9), depth=3, grid=1.0, score_type="dot")
        assert_is_brute_force(found, queries, documents, depth=3, score_type="dot", grid=1.0)

    @pytest.mark.parametrize("held", [2, 256])
    def test_a_cosine_has_no_size(self, rng, monkeypatch, held):
        """Lengths from the smallest to the largest that float32 has, and those it can't tell from 1, beside them."""
        shrink(monkeypatch, held=held)
        queries = rng.normal(size=(4, 24)).astype(np.float32)
        directions = rng.normal(size=(200, 24))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = np.concatenate([10.0 ** rng.uniform(-36, 37, 80), 1 + rng.uniform(-6e-6, 6e-6, 100), np.ones(20)])
        documents = (directions * rng.permutation(lengths)[:, None]).astype(np.float32)
        found = search(queries, chunked(documents, 64), depth=9, grid=1e-9, score_type="cosine")
        assert_is_brute_force(found, queries, documents, depth=9, score_type="cosine", grid=1e-9)

    @pytest.mark.parametrize("direction", [1, -1])
    @pytest.mark.parametrize("growth", [0, 2])
    def test_neither_rising_nor_falling_scores_are_a_trap(self, rng, monkeypatch, direction, growth):
        """Every document better than all before it, and every document worse."""
        shrink(monkeypatch, held=256, growth=growth)
        queries = np.abs(rng.normal(size=(3, 2))).astype(np.float32)
        documents = np.linspace(0.1, 1, 400)[::direction, None] * np.ones((1, 2))
        documents = documents.astype(np.float32)
        found = search(queries, chunked(documents, 100), depth=5, grid=GRID, score_type="dot")
        assert_is_brute_force(found, queries, documents, depth=5, score_type="dot")

    def test_no_documents_and_no_queries(self):
        """An empty corpus answers every query with nothing; no queries have no hits."""
        one = search(np.ones((1, 3), np.float32), [], depth=5, grid=GRID, score_type="dot")
        assert one.hits[0].documents.tolist() == [] and one.hits[0].crossing == 0
        none = search(np.empty((0, 3), np.float32), [Chunk(0, np.ones((2, 3), np.float32))], depth=5, grid=GRID,
                      score_type="dot")  # fmt: skip
        assert none.hits == ()


@st.composite
def crowded(draw):
    """Queries and documents from a few small whole numbers, so that most scores tie; a depth and a chunk size."""
    width = draw(st.integers(1, 5))
    numbers = st.integers(-2, 2)
    row = st.lists(numbers, min_size=width, max_size=width)
    documents = draw(st.lists(row, min_size=1, max_size=60))
    queries = draw(st.lists(row, min_size=1, max_size=4))
    scale = draw(st.sampled_from([1.0, 0.1, 1e-6, 5e-7]))
    return (
        np.array(queries, dtype=np.float32), (np.array(documents) * scale).astype(np.float32),
        draw(st.integers(1, 20)), draw(st.integers(1, 70)),
    )  # fmt: skip


class TestTies:
    @settings(max_examples=150, deadline=None)
    @given(crowded(), st.sampled_from(["cosine", "dot"]), st.sampled_from([0, 2, 256]), st.integers(0, 2))
    def test_crowds_of_duplicates_equal_brute_force(self, case, score_type, held, growth):
        """Small whole numbers tie everywhere, also on the edges of the grid; the whole last group is there.

        Whether or not a pool has room for them, and however often it is pruned.
        """
        queries, documents, depth, size = case
        with pytest.MonkeyPatch.context() as patch:
            shrink(patch, held, growth)
            crowd = search(queries, chunked(documents, size), depth=depth, grid=GRID, score_type=score_type)
        whole = search(queries, [Chunk(0, documents)], depth=depth, grid=GRID, score_type=score_type)
        assert same(crowd, whole)
        exact = documents.astype(np.float64) / (1.0 if score_type == "cosine" else GRID)
        steps = queries.astype(np.float64) @ exact.T
        if score_type == "dot" and np.any(np.abs(steps - np.floor(steps) - 0.5) < 1e-3):
            return  # half a step: the plain sum may round to either side
        assert_is_brute_force(whole, queries, documents, depth=depth, score_type=score_type)

    def test_the_group_across_the_depth_is_whole(self):
        """Two above, five equal, depth 3: seven hits, the five by rising index."""
        documents = np.array([[1], [3], [1], [1], [2], [1], [1], [0]], dtype=np.float32)
        found = search(np.ones((1, 1), np.float32), chunked(documents, 3), depth=3, grid=GRID, score_type="dot")
        assert found.hits[0].documents.tolist() == [1, 4, 0, 2, 3, 5, 6]
        assert found.hits[0].crossing == 0

    @pytest.mark.parametrize("size", [1, 5])
    def test_a_tie_too_large_for_the_pool_is_found(self, small, size):
        """Five equal documents in one chunk or five, of which a pool holds three: depth 1 has all five."""
        documents = np.ones((5, 2), dtype=np.float32)
        found = search(np.ones((1, 2), np.float32), chunked(documents, size), depth=1, grid=GRID, score_type="dot")
        assert found.hits[0].documents.tolist() == [0, 1, 2, 3, 4]

    @pytest.mark.parametrize("held", [2, 256])
    @pytest.mark.parametrize("size", [1, 3, 100])
    def test_a_group_past_the_limit_is_told_by_size_and_what_must_be_kept(self, monkeypatch, size, held):
        """Of 50 equal documents behind one better, past a limit of 10, the judged two stay and the first of all."""
        shrink(monkeypatch, held=held)
        documents = np.ones((60, 4), dtype=np.float32)
        documents[17] = 2
        documents[51:] = 0
        found = search(
            np.ones((2, 4), np.float32), chunked(documents, size), depth=5, grid=GRID, score_type="dot",
            keep_limit=10, must_keep=[np.array([3, 44, 55]), np.array([], dtype=np.int64)],
        )  # fmt: skip
        assert found.hits[0].documents.tolist() == [17, 0, 3, 44]
        assert found.hits[0].scores == pytest.approx([8, 4, 4, 4])
        assert found.hits[1].documents.tolist() == [17, 0]
        assert [hits.crossing for hits in found.hits] == [50, 50]

    @pytest.mark.parametrize("size", [1, 3, 100])
    def test_what_stands_for_the_rest_is_the_first_that_need_not_stay(self, small, size):
        """Its lowest index, whatever the chunks; a group of nothing but judged documents needs none."""
        documents = np.ones((12, 4), dtype=np.float32)
        found = search(
            np.ones((2, 4), np.float32), chunked(documents, size), depth=5, grid=GRID, score_type="dot",
            keep_limit=10, must_keep=[np.array([0, 1, 3]), np.arange(12)],
        )  # fmt: skip
        assert found.hits[0].documents.tolist() == [0, 1, 2, 3]
        assert found.hits[1].documents.tolist() == list(range(12))
        assert [hits.crossing for hits in found.hits] == [12, 12]

    @pytest.mark.parametrize("held", [2, 256])
    @pytest.mark.parametrize(("limit", "hits"), [(10, 10), (9, 1)])
    def test_a_group_as_large_as_the_limit_is_whole(self, monkeypatch, held, limit, hits):
        """Ten equal documents at depth 5; past the limit the first stands for all."""
        shrink(monkeypatch, held=held)
        found = search(np.ones((1, 2), np.float32), [Chunk(0, np.ones((10, 2), np.float32))], depth=5, grid=GRID,
                       score_type="dot", keep_limit=limit)  # fmt: skip
        assert found.hits[0].documents.tolist() == list(range(hits))
        assert found.hits[0].crossing == (0 if hits == 10 else 10)

    @pytest.mark.parametrize("held", [2, 256])
    def test_a_group_that_ends_at_the_depth_is_kept_whatever_its_size(self, monkeypatch, held):
        """Twenty equal documents, depth 20: nothing crosses, so all stay past a limit of 10."""
        shrink(monkeypatch, held=held)
        documents = np.zeros((50, 2), dtype=np.float32)
        documents[5:25] = 1
        found = search(np.ones((1, 2), np.float32), [Chunk(0, documents)], depth=20, grid=GRID, score_type="dot",
                       keep_limit=10)  # fmt: skip
        assert found.hits[0].documents.tolist() == list(range(5, 25))
        assert found.hits[0].crossing == 0

    def test_better_documents_found_late_push_a_large_group_out(self, small):
        """Forty equal ones come first, then three better: at depth 3 the forty leave no trace."""
        documents = np.ones((43, 2), dtype=np.float32)
        documents[40:] = [[2, 2], [3, 3], [2, 2]]
        found = search(np.ones((1, 2), np.float32), chunked(documents, 5), depth=3, grid=GRID, score_type="dot",
                       keep_limit=4, must_keep=[np.array([0, 1])])  # fmt: skip
        assert found.hits[0].documents.tolist() == [41, 40, 42]
        assert found.hits[0].crossing == 0

    def test_equal_scores_are_equal_to_the_bit(self, rng):
        """A document and its copies in other chunks carry the same float, and so do zero from below and from above."""
        documents = rng.normal(size=(40, 33)).astype(np.float32)
        documents[[7, 19, 33]] = documents[2]
        found = search(documents[:1], chunked(documents, 6), depth=40, grid=GRID, score_type="cosine")
        hits = found.hits[0]
        assert len({hits.scores[hits.documents == copy][0].tobytes() for copy in (2, 7, 19, 33)}) == 1
        near = search(np.ones((1, 1), np.float32), [Chunk(0, np.array([[-1e-9], [1e-9]], np.float32))], depth=2,
                      grid=GRID, score_type="dot")  # fmt: skip
        assert near.hits[0].scores.tobytes() == np.zeros(2).tobytes()


class TestInvariance:
    @settings(max_examples=25, deadline=None)
    @given(st.integers(1, 200), st.integers(0, 2**32 - 1), st.sampled_from(["cosine", "dot"]))
    def test_neither_chunks_nor_order_nor_company_change_a_hit(self, size, seed, score_type):
        """Any chunk size, any order of documents, each query alone: the same documents with the same scores."""
        rng = np.random.default_rng(seed)
        queries = rng.normal(size=(5, 19)).astype(np.float32)
        documents = rng.normal(size=(40, 19)).astype(np.float32)[rng.integers(0, 40, 200)]
        options = {"depth": 9, "grid": GRID, "score_type": score_type}
        whole = search(queries, [Chunk(0, documents)], **options)
        assert same(whole, search(queries, chunked(documents, size), **options))
        alone = [search(query[None], chunked(documents, size), **options).hits[0] for query in queries]
        order = rng.permutation(200)
        moved = search(queries, chunked(documents[order], size), **options)
        for mine, single, other in zip(whole.hits, alone, moved.hits, strict=True):
            assert mine.documents.tolist() == single.documents.tolist()
            assert mine.scores.tobytes() == single.scores.tobytes() == other.scores.tobytes()
            assert set(mine.documents.tolist()) == set(order[other.documents].tolist())

    def test_the_thread_count_changes_nothing(self, rng):
        """One thread of the matrix product and two give the same bytes."""
        threadpoolctl = pytest.importorskip("threadpoolctl")
        queries = rng.normal(size=(40, 32)).astype(np.float32)
        documents = rng.normal(size=(3000, 32)).astype(np.float32)
        results = []
        for threads in (1, 2):
            with threadpoolctl.threadpool_limits(threads):
                results.append(search(queries, chunked(documents, 999), depth=20, grid=GRID, score_type="cosine"))
        assert same(*results)

    @settings(max_examples=40, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(["cosine", "dot"]), st.sampled_from([0, 256]))
    def test_whatever_float32_says_within_its_error_the_hits_are_the_same(self, seed, score_type, held):
        """Scores moved at random by up to the error of a sum, under documents that lie closer than that."""
        rng = np.random.default_rng(seed)
        queries = rng.normal(size=(3, 16)).astype(np.float32)
        documents = np.repeat(rng.normal(size=(1, 16)), 60, axis=0)
        documents = (documents / np.linalg.norm(documents[0]) + rng.normal(size=(60, 16)) * 3e-7).astype(np.float32)

        def noisy(block, across, scratch=None):
            lengths = np.linalg.norm(block, axis=1)[:, None] * np.linalg.norm(across, axis=0)
            noise = rng.choice([-0.9, 0.9], lengths.shape) * vectors.sum_error(16) * lengths
            return (block.astype(np.float64) @ across + noise).astype(np.float32)

        with pytest.MonkeyPatch.context() as patch:
            shrink(patch, held)
            patch.setattr(pool, "rough_scores", noisy)
            patch.setattr(room, "rough_scores", noisy)
            found = search(queries, chunked(documents, 20), depth=4, grid=1e-12, score_type=score_type)
        assert same(found, search(queries, [Chunk(0, documents)], depth=4, grid=1e-12, score_type=score_type))
        whole = search(queries, [Chunk(0, documents)], depth=60, grid=1e-12, score_type=score_type)
        for mine, all_of_them in zip(found.hits, whole.hits, strict=True):
            assert mine.documents.tolist() == all_of_them.documents[: len(mine.documents)].tolist()

    def test_memory_mapped_and_fortran_ordered_vectors_serve(self, rng, tmp_path):
        """How the vectors lie in memory is no matter."""
        queries, documents = (rng.normal(size=(n, 8)).astype(np.float32) for n in (3, 50))
        np.save(tmp_path / "vectors.npy", documents)
        mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
        options = {"depth": 4, "grid": GRID, "score_type": "dot"}
        plain = search(queries, [Chunk(0, documents)], **options)
        assert same(plain, search(queries, [Chunk(0, mapped[:20]), Chunk(20, mapped[20:])], **options))
        assert same(plain, search(np.asfortranarray(queries), [Chunk(0, np.asfortranarray(documents))], **options))


class TestBadVectors:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_a_query_that_is_not_finite_fails_alone(self, rng, value):
        """Its place in the hits is None; the others rank as if it weren't there."""
        queries, documents = (rng.normal(size=(n, 4)).astype(np.float32) for n in (3, 30))
        queries[1, 2] = value
        options = {"depth": 5, "grid": GRID, "score_type": "cosine"}
        found = search(queries, chunked(documents, 8), **options)
        assert found.hits[1] is None and found.bad_queries.tolist() == [1]
        others = search(queries[[0, 2]], chunked(documents, 8), **options)
        assert [hits.documents.tolist() for hits in (found.hits[0], found.hits[2])] == [
            hits.documents.tolist() for hits in others.hits
        ]

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_a_document_that_is_not_finite_fails_every_query(self, rng, value):
        """All such documents are named, in whichever chunk they are."""
        queries, documents = (rng.normal(size=(n, 4)).astype(np.float32) for n in (2, 30))
        documents[[4, 27], 0] = value
        found = search(queries, chunked(documents, 8), depth=5, grid=GRID, score_type="dot")
        assert found.hits == (None, None)
        assert found.bad_documents.tolist() == [4, 27]

    def test_bad_and_zero_documents_are_told_apart(self):
        """Side by side, among lengths that float32 can and can't square."""
        documents = np.array([[np.nan, 1], [0, 0], [1e30, 0], [1, 0], [1e-30, 0], [np.inf, 0], [3, 4]], np.float32)
        found = search(np.ones((1, 2), np.float32), [Chunk(10, documents)], depth=1, grid=GRID, score_type="cosine")
        assert found.bad_documents.tolist() == [10, 15]
        assert found.zero_documents.tolist() == [11]

    def test_a_vector_without_direction_is_named_and_scores_zero(self):
        """The cosine with a zero vector is undefined: 0, between what points along and what points away."""
        documents = np.array([[-1, 0], [0, 0], [1, 0]], dtype=np.float32)
        queries = np.array([[1, 0], [0, 0]], dtype=np.float32)
        found = search(queries, [Chunk(0, documents)], depth=3, grid=GRID, score_type="cosine")
        assert found.hits[0].documents.tolist() == [2, 1, 0]
        assert found.hits[1].scores.tolist() == [0, 0, 0]
        assert found.zero_documents.tolist() == [1] and found.zero_queries.tolist() == [1]
        plain = search(queries, [Chunk(0, documents)], depth=3, grid=GRID, score_type="dot")
        assert plain.zero_documents.tolist() == plain.zero_queries.tolist() == []


class TestRefusals:
    def test_chunks_that_can_be_read_only_once_are_refused(self):
        """A generator would be empty at the second look."""
        with pytest.raises(TypeError, match="more than once"):
            search(np.ones((1, 2), np.float32), iter([]), depth=1, grid=GRID, score_type="dot")
