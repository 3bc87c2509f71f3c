"""Vectors read in blocks, and the bound on what float32 makes of their scores."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run import vectors as room
from harness.run.vectors import Block, Chunk, Queries, blocks, sum_error, tiles


@pytest.fixture
def rng():
    return np.random.default_rng(8)


class TestBlocks:
    @pytest.mark.parametrize(("read", "sizes"), [(blocks, [4, 4, 2, 3]), (tiles, [4, 3, 1, 2, 3])])
    def test_every_document_is_in_one_piece_in_its_place(self, monkeypatch, read, sizes):
        """Chunks of ten and three in blocks of four; tiles of three, but for the first."""
        monkeypatch.setattr(room, "BLOCK", 4)
        monkeypatch.setattr(room, "TILE", 3)
        documents = np.arange(26, dtype=np.float32).reshape(13, 2)
        pieces = list(read([Chunk(0, documents[:10]), Chunk(10, documents[10:])]))
        assert [len(piece.vectors) for piece in pieces] == sizes
        assert [piece.start for piece in pieces] == np.cumsum([0, *sizes[:-1]]).tolist()
        assert np.array_equal(np.concatenate([piece.vectors for piece in pieces]), documents)

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
    def test_a_file_does_not_pile_up_in_memory(self, tmp_path, monkeypatch):
        """Of 32 MB read in blocks of 1 MB, at no time more than a few are this process's; nor of part of the file."""
        monkeypatch.setattr(room, "BLOCK", 1 << 12)
        np.save(tmp_path / "vectors.npy", np.ones((1 << 17, 64), dtype=np.float32))
        mapped = np.load(tmp_path / "vectors.npy", mmap_mode="r")
        before, most = _file_pages(), 0
        for vectors in (mapped, mapped[1:], np.asarray(mapped)):
            for block in blocks([Chunk(0, vectors)]):
                assert block.vectors.sum() == block.vectors.size
                most = max(most, _file_pages())
        assert most - before < 8 << 20

    def test_what_was_written_to_a_private_copy_stays(self, tmp_path):
        """Its pages are not the file's."""
        np.save(tmp_path / "vectors.npy", np.zeros((10, 2), dtype=np.float32))
        private = np.load(tmp_path / "vectors.npy", mmap_mode="c")
        private[3] = 7
        for _ in range(2):
            read = np.concatenate([block.vectors for block in blocks([Chunk(0, private)])])
            assert read[3].tolist() == [7, 7]


def _file_pages() -> int:
    """Bytes of files that this process holds in memory."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssFile"))


class TestWhatFloat32Sees:
    def test_lengths_are_1_for_cosine(self, rng):
        """From subnormal to the largest, give or take twice the error of a sum; a zero vector stays zero."""
        directions = rng.normal(size=(300, 20))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        lengths = np.concatenate([10.0 ** rng.uniform(-42, 37, 200), 1 + rng.uniform(-1e-5, 1e-5, 99), [0]])
        with np.errstate(all="raise", under="ignore"):
            block = Block.of(Chunk(0, (directions * lengths[:, None]).astype(np.float32)), cosine=True)
        seen = np.linalg.norm(block.seen.astype(np.float64), axis=1)
        assert np.abs(seen[:-1] - 1).max() <= 2 * sum_error(20)
        assert seen[-1] == 0 and block.zero.tolist() == [299]

    @pytest.mark.parametrize(("off", "as_they_are"), [(0.2, True), (3, False)])
    def test_only_lengths_that_float32_takes_for_1_are_left_as_they_are(self, rng, off, as_they_are):
        """A fifth of a sum's error off, and three times it."""
        documents = rng.normal(size=(40, 20))
        documents *= (1 + off * sum_error(20)) / np.linalg.norm(documents, axis=1, keepdims=True)
        documents = documents.astype(np.float32)
        assert (Block.of(Chunk(0, documents), cosine=True).seen is documents) == as_they_are

    @pytest.mark.parametrize("scale", [1e-30, 1e-9, 1.0, 1e9, 1e30])
    def test_no_document_is_longer_than_the_longest(self, rng, scale):
        """Whether float32 can square its length or not."""
        documents = (rng.normal(size=(50, 30)) * scale).astype(np.float32)
        longest = Block.of(Chunk(0, documents), cosine=False).longest
        exact = np.linalg.norm(documents.astype(np.float64), axis=1).max()
        assert exact <= longest <= exact * (1 + 1e-5)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from([1, 7, 64, 300]), st.booleans(), st.floats(-25, 15))
    def test_no_score_is_off_by_more_than_the_error(self, seed, width, cosine, power):
        """Random vectors of all lengths, and copies of the queries, where the sums have all one sign."""
        rng = np.random.default_rng(seed)
        queries = rng.normal(size=(5, width)).astype(np.float32)
        documents = rng.normal(size=(40, width)) * 10.0 ** rng.uniform(min(power, 0), max(power, 0), (40, 1))
        documents[:5] = queries / np.linalg.norm(queries, axis=1, keepdims=True)
        documents[5:10] = documents[:5] * (1 + rng.uniform(-1, 1, (5, 1)) * sum_error(width) / 2)
        documents = documents.astype(np.float32)
        side, block = Queries.of(queries, cosine), Block.of(Chunk(0, documents), cosine)
        exact = documents.astype(np.float64) @ queries.T.astype(np.float64)
        if cosine:
            exact /= np.linalg.norm(documents.astype(np.float64), axis=1)[:, None] * side.lengths
        rough = block.seen @ side.seen.T
        assert np.all(np.abs(rough - exact) <= side.error(block.longest))
