"""What a pool holds, lets go of, and gives up on."""

import tracemalloc

import numpy as np
import pytest

from harness.run import pool as room
from harness.run.pool import Pool, last_places
from harness.run.vectors import Block, Chunk

SCRATCH = np.empty(4, dtype=np.float32)


def looked(scores, *, depth, error=0.0, grid=1e-6, tile=3):
    """A pool that has seen documents [n] of the given scores [n, q] for each of q queries."""
    scores = np.asarray(scores, dtype=np.float32)
    count = scores.shape[1]
    pool = Pool.of(np.eye(count, dtype=np.float32), np.ones(count, dtype=bool), depth, grid)
    pool.widen(np.full(count, error))
    for start in range(0, len(scores), tile):
        pool.look(Block.of(Chunk(start, scores[start : start + tile]), cosine=False), SCRATCH)
    return pool


class TestPool:
    def test_what_stays_is_within_twice_the_error_and_a_step_of_the_last_place(self):
        """Depth 2 of 9, 8, 7, 6, …, 1 with an error of 0.6: 8 may be 7.4 and 7 may be 7.6, but 6 no more than 6.6."""
        scores = np.arange(1.0, 10)[::-1, None]
        assert sorted(looked(scores, depth=2, error=0.6).prune().documents.tolist()) == [0, 1, 2]
        assert sorted(looked(scores, depth=2, error=0.4).prune().documents.tolist()) == [0, 1]
        assert sorted(looked(scores, depth=2, error=0.4, grid=0.3).prune().documents.tolist()) == [0, 1, 2]

    @pytest.mark.parametrize("tile", [1, 4, 100])
    @pytest.mark.parametrize("depth", [1, 7, 100])
    def test_the_bar_is_never_above_the_last_place(self, tile, depth):
        """At whatever depth; and after the last prune it is that score, if there are as many documents."""
        scores = np.random.default_rng(3).normal(size=(100, 6)).astype(np.float32)
        pool = looked(scores, depth=depth, tile=tile)
        last = np.sort(scores, axis=0)[-depth]
        assert np.all(pool.bar <= last)
        pairs = pool.prune()
        assert np.array_equal(pool.bar, last)
        assert np.all(np.diff(pairs.rows) >= 0) and len(pairs.rows) == 6 * depth

    def test_too_few_documents_all_stay(self):
        """Three of them at depth 5."""
        assert looked([[1], [3], [2]], depth=5).prune().documents.tolist() == [0, 1, 2]

    def test_a_query_with_too_many_in_question_closes_alone(self, monkeypatch):
        """Two beyond the depth are held: of four equal ones at depth 1 none is, and of three all are."""
        monkeypatch.setattr(room, "ROOM", 2)
        pool = looked([[1, 1], [1, 1], [1, 1], [1, 0], [0, 0]], depth=1)
        pairs = pool.prune()
        assert pool.open.tolist() == [False, True]
        assert pairs.rows.tolist() == [1, 1, 1] and pairs.documents.tolist() == [0, 1, 2]

    def test_a_closed_query_takes_in_nothing(self, monkeypatch):
        """However good what comes."""
        monkeypatch.setattr(room, "ROOM", 0)
        pool = looked([[1, 1], [1, 0]], depth=1)
        pool.prune()
        pool.look(Block.of(Chunk(2, np.array([[5, 5]], dtype=np.float32)), cosine=False), SCRATCH)
        assert pool.held[-1].rows.tolist() == [1]

    def test_the_last_place_of_every_row_whatever_their_sizes(self):
        """None, few, just enough and very many; one with very many makes no table that wide for all."""
        rng = np.random.default_rng(4)
        sizes = [0, 2, 3, 50_000, 24, 25, *[5] * 500]
        rows = np.repeat(np.arange(len(sizes)), sizes)
        rough = rng.normal(size=len(rows)).astype(np.float32)
        tracemalloc.start()
        found = last_places(rows, rough, len(sizes), 3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        for row, size in enumerate(sizes):
            assert found[row] == (-np.inf if size < 3 else np.sort(rough[rows == row])[-3])
        assert peak < 10e6

    def test_an_error_without_bound_closes_a_query(self):
        """And leaves everything in question for it."""
        pool = looked([[1, 1], [2, 2]], depth=1)
        pool.widen(np.array([np.inf, 0]))
        assert pool.prune().rows.tolist() == [1]
        assert pool.open.tolist() == [False, True] and pool.floor[0] == -np.inf
