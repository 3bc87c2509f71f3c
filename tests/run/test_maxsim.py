"""What late interaction over ragged rows returns, held against every pair scored the plain way."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import EmptySlice
from harness.readout import interaction
from harness.rows.ragged import Ragged
from harness.run import maxsim as room
from harness.run.maxsim import RaggedChunk, rough_scores, score_pairs, search_rows, unscorable, winners
from harness.run.search import Chunk, search

GRID = 1e-6
SMALL = {"ROWS": 5, "GROUP": 11, "PAIRS": 12, "EXACT": 60}


def ragged(rng, counts, width=16, scale=1.0):
    return Ragged.of([scale * rng.normal(size=(count, width)) for count in counts], width)


def chunked(rows, size):
    return [RaggedChunk(i, rows.part(i, min(i + size, len(rows)))) for i in range(0, len(rows), size)]


def texts(rows):
    return [rows.rows(i).astype(np.float64) for i in range(len(rows))]


def plain_keys(queries, documents, reduce, grid=GRID):
    """[q, c] scores in steps of the grid: every dot product, and the sum of their maxima, rounded once."""
    keys = np.empty((len(queries), len(documents)))
    for q, query in enumerate(texts(queries)):
        for c, document in enumerate(texts(documents)):
            score = math.fsum(max(math.fsum(mine * theirs) for theirs in document) for mine in query)
            keys[q, c] = np.rint(score / (len(query) if reduce == "mean" else 1) / grid)
    return keys


def assert_is_brute_force(found, queries, documents, *, depth, reduce="sum", grid=GRID):
    keys = plain_keys(queries, documents, reduce, grid)
    for hits, row in zip(found.hits, keys, strict=True):
        last = np.sort(row)[::-1][:depth].min(initial=np.inf)
        expected = [c for c in np.lexsort((np.arange(len(row)), -row)) if row[c] >= last]
        assert hits.documents.tolist() == expected
        np.testing.assert_allclose(hits.scores, row[expected] * grid, rtol=1e-12, atol=0)


def same(one, other):
    return all(
        a.documents.tobytes() == b.documents.tobytes() and a.scores.tobytes() == b.scores.tobytes()
        and a.crossing == b.crossing
        for a, b in zip(one.hits, other.hits, strict=True)
    )  # fmt: skip


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.fixture
def small(monkeypatch):
    """Blocks so small that every loop turns."""
    for name, value in SMALL.items():
        monkeypatch.setattr(room, name, value)


QUERY = Ragged.of([np.array([[1, 0], [0, 1]])], 2)
DOCUMENTS = Ragged.of([np.array([[-2, -2]]), np.array([[0.5, -1], [0.5, -3], [-2, -2]]), np.array([[1, 1]])], 2)


class TestExactness:
    def test_a_hand_worked_ranking(self):
        """The rows reach −2 and −2, .5 and −1, 1 and 1; the mean is half the sum."""
        found = search_rows(QUERY, [RaggedChunk(0, DOCUMENTS)], depth=3, grid=GRID, reduce="sum")
        assert found.hits[0].documents.tolist() == [2, 1, 0]
        assert found.hits[0].scores.tolist() == pytest.approx([2, -0.5, -4])
        mean = search_rows(QUERY, [RaggedChunk(0, DOCUMENTS)], depth=2, grid=GRID, reduce="mean")
        assert mean.hits[0].scores.tolist() == pytest.approx([1, -0.25])

    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    @pytest.mark.parametrize("depth", [1, 3, 10, 500])
    def test_equals_every_pair_scored_the_plain_way(self, rng, reduce, depth):
        """Texts of one to nine rows of unlike lengths, also at a depth beyond the corpus."""
        queries = ragged(rng, [3, 1, 4, 2])
        documents = ragged(rng, rng.integers(1, 10, 120))
        documents = Ragged(documents.values * rng.uniform(0.1, 10, (len(documents.values), 1)).astype(np.float32),
                           documents.offsets)  # fmt: skip
        found = search_rows(queries, chunked(documents, 50), depth=depth, grid=GRID, reduce=reduce)
        assert_is_brute_force(found, queries, documents, depth=depth, reduce=reduce)

    def test_is_the_reference_of_the_readout(self, rng):
        """The plain MaxSim of the room that says what it means."""
        queries, documents = ragged(rng, [4, 6]), ragged(rng, [5, 1, 8, 3])
        found = search_rows(queries, [RaggedChunk(0, documents)], depth=4, grid=GRID, reduce="sum")
        for hits, query in zip(found.hits, texts(queries), strict=True):
            wanted = [interaction.maxsim(query, documents.rows(c)).score for c in hits.documents]
            assert hits.scores == pytest.approx(wanted, abs=GRID)

    @pytest.mark.parametrize("depth", [1, 4])
    def test_float32_noise_far_above_the_grid_decides_nothing(self, rng, small, depth):
        """Long rows almost at right angles to the query's, each beside a short one: float32 orders them at random."""
        query = rng.normal(size=(1, 64))
        documents = 100 * rng.normal(size=(75, 64))
        documents -= (documents @ query.T) @ query / np.sum(query**2)
        rows = Ragged.of([np.stack([document, document / 1000]) for document in documents], 64)
        found = search_rows(Ragged.of([query], 64), chunked(rows, 30), depth=depth, grid=1e-9, reduce="sum")
        assert_is_brute_force(found, Ragged.of([query], 64), rows, depth=depth, grid=1e-9)

    def test_what_differs_in_float32_alone_ties(self, rng):
        """A hundred orders of the same numbers have the same sum, each beside a short row; none is better."""
        numbers = np.concatenate([rng.normal(size=63) * 100, [2000]]).astype(np.float32)
        documents = Ragged.of(
            [np.stack([row, row / 1e4]) for row in (rng.permutation(numbers) for _ in range(100))], 64
        )
        query = Ragged.of([np.ones((1, 64))], 64)
        assert len(np.unique(rough_scores(query, documents, "sum"))) > 1
        found = search_rows(query, chunked(documents, 60), depth=1, grid=1e-9, reduce="sum")
        assert found.hits[0].documents.tolist() == list(range(100))

    def test_rows_beyond_float32_still_rank(self, small):
        """Finite rows whose float32 product would overflow, either way or to no number at all."""
        documents = Ragged.of([np.array([[k * 1e30, -1e30], [0, -1e30]]) for k in range(1, 13)], 2)
        for query, best in (([1e30, 1e30], [11, 10]), ([-1e30, 0], list(range(12)))):
            rows = Ragged.of([np.array([query])], 2)
            found = search_rows(rows, chunked(documents, 4), depth=2, grid=1.0, reduce="sum")
            assert found.hits[0].documents.tolist() == best

    def test_a_sum_beyond_float32_does_not_hide_one_within(self):
        """Products of 10⁴⁰ that are infinite in float32 cancel, or stand far below what is of ordinary size."""
        query = Ragged.of([np.array([[1e30, 0], [0, -1e30]])], 2)
        documents = Ragged.of([np.array([[k * 1e10, 5e10]]) for k in range(1, 10)], 2)
        found = search_rows(query, [RaggedChunk(0, documents)], depth=2, grid=1e34, reduce="sum")
        assert found.hits[0].documents.tolist() == [8, 7]
        mixed = Ragged.of([np.array([[first]]) for first in (-1e30, 1.0, -2e30, 2.0, -3e30)], 1)
        found = search_rows(Ragged.of([np.full((1, 1), 1e30)], 1), [RaggedChunk(0, mixed)], depth=2, grid=1e20,
                            reduce="sum")  # fmt: skip
        assert found.hits[0].documents.tolist() == [3, 1]

    def test_on_an_edge_of_the_grid_the_exact_sum_decides(self, rng):
        """Half a step is rounded to the even one, 0; what a product's rounding adds in float64 would make it 1."""
        queries, documents = ragged(rng, [5]), ragged(rng, rng.integers(1, 9, 30))
        for c, document in enumerate(texts(documents)):
            exact = [max(math.fsum(mine * theirs) for theirs in document) for mine in texts(queries)[0]]
            step = 2 * abs(math.fsum(exact))
            assert score_pairs(queries, documents, np.array([[0, c]]), grid=step, reduce="sum").tolist() == [0]

    def test_what_float64_would_lose_is_summed_exactly(self):
        """2⁶⁰ + .75 − 2⁶⁰ is .75, within a dot product and across the rows of the query."""
        far = 2.0**60
        within = score_pairs(Ragged.of([np.array([[far, 0.75, -far]])], 3), Ragged.of([np.ones((1, 3))], 3),
                             np.array([[0, 0]]), grid=0.25, reduce="sum")  # fmt: skip
        across = score_pairs(Ragged.of([np.array([[far], [0.75], [-far]])], 1), Ragged.of([np.ones((2, 1))], 1),
                             np.array([[0, 0]]), grid=0.25, reduce="sum")  # fmt: skip
        assert within.tolist() == across.tolist() == [0.75]

    def test_only_what_can_be_among_the_best_is_scored_twice(self, rng, monkeypatch):
        """Of 600 documents that float32 tells apart, hardly more than the three best go to float64."""
        documents, looked = ragged(rng, np.full(600, 3)), []

        def counting(side, queries, rows, grid, exact=room._exact_keys):
            looked.append(len(queries))
            return exact(side, queries, rows, grid)

        monkeypatch.setattr(room, "_exact_keys", counting)
        search_rows(ragged(rng, [4]), [RaggedChunk(0, documents)], depth=3, grid=GRID, reduce="sum")
        assert 3 <= sum(looked) <= 6
        looked.clear()
        search_rows(ragged(rng, [4]), chunked(documents, 100), depth=3, grid=GRID, reduce="sum")
        assert 3 <= sum(looked) <= 18

    def test_no_documents_and_no_queries(self):
        """An empty corpus answers every query with nothing; no queries have no hits."""
        one = search_rows(QUERY, [], depth=5, grid=GRID, reduce="sum")
        assert one.hits[0].documents.tolist() == [] and one.hits[0].crossing == 0
        none = search_rows(Ragged.of([], 2), [RaggedChunk(0, DOCUMENTS)], depth=5, grid=GRID, reduce="sum")
        assert none.hits == ()

    def test_a_generator_of_chunks_will_do(self):
        """Chunks are gone through once."""
        chunks = (chunk for chunk in chunked(DOCUMENTS, 1))
        assert search_rows(QUERY, chunks, depth=1, grid=GRID, reduce="sum").hits[0].documents.tolist() == [2]


@st.composite
def crowded(draw):
    """Ragged rows of a few small whole numbers, so that most scores tie; a depth and a chunk size."""
    width = draw(st.integers(1, 3))
    row = st.lists(st.integers(-2, 2), min_size=width, max_size=width)
    text = st.lists(row, min_size=1, max_size=4).map(np.array)
    documents = draw(st.lists(text, min_size=1, max_size=30))
    queries = draw(st.lists(text, min_size=1, max_size=3))
    scale = draw(st.sampled_from([1.0, 0.1, 1e-6, 5e-7]))
    return (
        Ragged.of(queries, width), Ragged.of([scale * document for document in documents], width),
        draw(st.integers(1, 12)), draw(st.integers(1, 31)),
    )  # fmt: skip


class TestTies:
    @settings(max_examples=100, deadline=None)
    @given(crowded(), st.sampled_from(["sum", "mean"]))
    def test_crowds_of_duplicates_equal_brute_force(self, case, reduce):
        """Small whole numbers tie everywhere, also on the edges of the grid; the whole last group is there."""
        queries, documents, depth, size = case
        with pytest.MonkeyPatch.context() as patch:
            for name, value in SMALL.items():
                patch.setattr(room, name, value)
            found = search_rows(queries, chunked(documents, size), depth=depth, grid=GRID, reduce=reduce)
        assert_is_brute_force(found, queries, documents, depth=depth, reduce=reduce)

    @settings(max_examples=60, deadline=None)
    @given(crowded(), st.integers(1, 6))
    def test_texts_of_one_row_are_dense_search(self, case, limit):
        """The same hits with the same bits as search by dot product, crossing groups and what must be kept included."""
        queries, documents, depth, size = case
        single = [Ragged(rows.values, np.arange(len(rows.values) + 1)) for rows in (queries, documents)]
        keep = [np.arange(0, len(documents.values), 3)] * len(queries.values)
        options = {"depth": depth, "grid": GRID, "keep_limit": limit, "must_keep": keep}
        found = search_rows(single[0], chunked(single[1], size), reduce="sum", **options)
        assert same(found, search(queries.values, [Chunk(0, documents.values)], score_type="dot", **options))

    def test_equal_scores_are_equal_to_the_bit(self, rng):
        """A document and its copies in other chunks, and zero from below and from above."""
        documents = ragged(rng, [3, 5, 2, 4, 3, 1, 6]).take(np.array([0, 1, 2, 1, 3, 4, 5, 1, 6]))
        found = search_rows(ragged(rng, [4]), chunked(documents, 2), depth=9, grid=GRID, reduce="sum").hits[0]
        assert len({found.scores[found.documents == copy][0].tobytes() for copy in (1, 3, 7)}) == 1
        near = Ragged.of([np.array([[-1e-9]]), np.array([[1e-9]])], 1)
        zeros = search_rows(Ragged.of([np.ones((1, 1))], 1), [RaggedChunk(0, near)], depth=2, grid=GRID, reduce="sum")
        assert zeros.hits[0].scores.tobytes() == np.zeros(2).tobytes()


class TestInvariance:
    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.integers(1, 7), min_size=1, max_size=40), st.integers(1, 50), st.integers(1, 50),
           st.integers(0, 2**32 - 1), st.sampled_from(["sum", "mean"]))  # fmt: skip
    def test_neither_blocks_nor_order_nor_company_change_a_hit(self, counts, size, rows, seed, reduce):
        """Any chunks, any blocks, any order of documents, each query alone: the same documents with the same bits."""
        rng = np.random.default_rng(seed)
        queries, documents = ragged(rng, [2, 5, 1], width=9), ragged(rng, counts, width=9)
        options = {"depth": 4, "grid": GRID, "reduce": reduce}
        whole = search_rows(queries, [RaggedChunk(0, documents)], **options)
        with pytest.MonkeyPatch.context() as patch:
            for name in SMALL:
                patch.setattr(room, name, rows)
            assert same(whole, search_rows(queries, chunked(documents, size), **options))
        order = rng.permutation(len(documents))
        moved = search_rows(queries, chunked(documents.take(order), size), **options)
        for q, (mine, other) in enumerate(zip(whole.hits, moved.hits, strict=True)):
            alone = search_rows(queries.part(q, q + 1), chunked(documents, size), **options).hits[0]
            assert mine.documents.tolist() == alone.documents.tolist()
            assert mine.scores.tobytes() == alone.scores.tobytes() == other.scores.tobytes()
            assert set(mine.documents.tolist()) == set(order[other.documents].tolist())

    def test_the_thread_count_changes_nothing(self, rng):
        """One thread and two give the same bytes."""
        threads = pytest.importorskip("threadpoolctl")
        queries, documents = ragged(rng, [32] * 8, 64), ragged(rng, rng.integers(1, 90, 300), 64)
        results = []
        for count in (1, 2):
            with threads.threadpool_limits(count):
                chunks = [RaggedChunk(0, documents)]
                results.append(search_rows(queries, chunks, depth=20, grid=1e-12, reduce="sum"))
        assert same(*results)

    def test_memory_mapped_and_fortran_ordered_rows_serve(self, rng, tmp_path):
        """How the rows lie in memory is no matter."""
        queries, documents = ragged(rng, [3, 2]), ragged(rng, rng.integers(1, 6, 40))
        np.save(tmp_path / "rows.npy", documents.values)
        mapped = Ragged(np.load(tmp_path / "rows.npy", mmap_mode="r"), documents.offsets)
        fortran = Ragged(np.asfortranarray(documents.values), documents.offsets)
        options = {"depth": 6, "grid": GRID, "reduce": "sum"}
        plain = search_rows(queries, [RaggedChunk(0, documents)], **options)
        assert same(plain, search_rows(queries, chunked(mapped, 7), **options))
        assert same(plain, search_rows(queries, [RaggedChunk(0, fortran)], **options))


class TestPairs:
    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    def test_a_pair_has_the_score_that_search_gives_it(self, rng, small, reduce):
        """To the bit, for any pairs in any order, also one twice; no pairs have no scores."""
        queries, documents = ragged(rng, [3, 1, 7]), ragged(rng, rng.integers(1, 9, 20))
        found = search_rows(queries, chunked(documents, 6), depth=20, grid=GRID, reduce=reduce)
        table = np.empty((3, 20))
        for q, hits in enumerate(found.hits):
            table[q, hits.documents] = hits.scores
        pairs = rng.integers(0, (3, 20), (100, 2))
        scores = score_pairs(queries, documents, pairs, grid=GRID, reduce=reduce)
        assert scores.tobytes() == table[pairs[:, 0], pairs[:, 1]].tobytes()
        assert score_pairs(queries, documents, pairs[:0], grid=GRID, reduce=reduce).shape == (0,)

    def test_a_pair_that_cannot_be_scored_has_no_number(self, rng):
        """NaN where a side has no row or isn't finite; the other pairs are scored as if it weren't there."""
        queries, documents = ragged(rng, [2, 0, 3]), ragged(rng, [4, 2, 0, 1])
        queries.rows(2)[1, 3], documents.rows(1)[0, 0] = np.inf, np.nan
        pairs = np.array([[q, c] for q in range(3) for c in range(4)])
        scores = score_pairs(queries, documents, pairs, grid=GRID, reduce="mean")
        assert np.flatnonzero(~np.isnan(scores)).tolist() == [0, 3]
        wanted = interaction.maxsim(queries.rows(0), documents.rows(3)).score / 2
        assert scores[3] == pytest.approx(wanted, abs=GRID)


class TestBadTexts:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None])
    def test_a_bad_query_fails_alone(self, rng, value):
        """Its place in the hits is None, for a value that isn't finite or for no row; the others rank without it."""
        queries, documents = ragged(rng, [2, 0 if value is None else 3, 4]), ragged(rng, [2, 1, 3, 5])
        if value is not None:
            queries.rows(1)[2, 5] = value
        options = {"depth": 3, "grid": GRID, "reduce": "sum"}
        found = search_rows(queries, chunked(documents, 3), **options)
        assert found.hits[1] is None and found.bad_queries.tolist() == [1] and found.bad_documents.tolist() == []
        keep = [np.array([0]), np.array([1]), np.array([2])]
        others = search_rows(queries.take(np.array([0, 2])), chunked(documents, 3), **options)
        assert [found.hits[0].documents.tolist(), found.hits[2].documents.tolist()] == [
            hits.documents.tolist() for hits in others.hits
        ]
        flat = Ragged.of([np.ones((1, 16))] * 4, 16)
        kept = search_rows(queries, [RaggedChunk(0, flat)], depth=1, grid=GRID, reduce="sum", keep_limit=1,
                           must_keep=keep)  # fmt: skip
        assert kept.hits[2].documents.tolist() == [0, 2]

    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, None])
    def test_a_bad_document_fails_every_query(self, rng, value):
        """All of them are named, in whichever chunk, first or last."""
        counts = np.array([1, 3, 2, 5, 4, 2, 1])
        if value is None:
            counts[[0, 4, 6]] = 0
        documents = ragged(rng, counts)
        if value is not None:
            for text in (0, 4, 6):
                documents.rows(text)[-1, 2] = value
        for size in (1, 2, 7):
            found = search_rows(ragged(rng, [2, 2]), chunked(documents, size), depth=2, grid=GRID, reduce="sum")
            assert found.hits == (None, None) and found.bad_documents.tolist() == [0, 4, 6]
        assert unscorable(documents).tolist() == [0, 4, 6]

    def test_a_large_value_is_not_a_bad_one(self):
        """Squares beyond float32 are no reason to fail."""
        assert unscorable(Ragged.of([np.full((2, 3), 3e38), np.full((1, 3), -1e30)], 3)).tolist() == []

    def test_rows_of_zeros_score_zero(self):
        """They have no direction, and a dot product does not need one."""
        found = search_rows(QUERY, [RaggedChunk(0, Ragged.of([np.zeros((2, 2))], 2))], depth=1, grid=GRID, reduce="sum")
        assert found.hits[0].scores.tolist() == [0] and found.zero_documents.tolist() == []


class TestWinners:
    @settings(max_examples=60, deadline=None)
    @given(crowded())
    def test_are_those_of_the_reference(self, case):
        """Whole numbers, exact in any arithmetic, and many equal rows."""
        queries, documents, _, _ = case
        for mine, theirs in ((q, d) for q in range(len(queries)) for d in range(len(documents))):
            query, document = queries.rows(mine), documents.rows(theirs)
            assert winners(query, document).tolist() == interaction.maxsim(query, document).best.tolist()

    @pytest.mark.parametrize("copies", [2, 9, 40])
    def test_the_first_among_equals_wins(self, rng, copies):
        """A document said over and over: each row's match is in the first saying, wherever a block ends."""
        query, document = (rng.normal(size=(n, 33)).astype(np.float32) for n in (11, 7))
        once = winners(query, document).tolist()
        assert winners(query, np.tile(document, (copies, 1))).tolist() == once
        assert len(set(once)) > 1

    def test_a_document_without_rows_is_refused(self):
        with pytest.raises(EmptySlice):
            winners(np.ones((2, 3), np.float32), np.ones((0, 3), np.float32))


class TestRough:
    @pytest.mark.parametrize("reduce", ["sum", "mean"])
    def test_is_sentence_transformers_own(self, rng, small, reduce):
        """Its padded scores in float32, for texts of unlike lengths, all of whose similarities can be negative."""
        torch = pytest.importorskip("torch")
        from sentence_transformers.util import maxsim as referee

        queries, documents = ragged(rng, [3, 1, 6]), ragged(rng, [4, 1, 9, 2, 2])
        documents = Ragged(documents.values - 3 * np.sign(queries.values[0]), documents.offsets)
        sides = [[torch.tensor(rows.rows(i)) for i in range(len(rows))] for rows in (queries, documents)]
        wanted = referee(*sides, length_normalize=reduce == "mean").numpy()
        found = rough_scores(queries, documents, reduce)
        assert found.dtype == np.float32 and found.min() < 0
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
