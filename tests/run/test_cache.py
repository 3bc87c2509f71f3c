"""The cache gives back what was put in, to the bit, or nothing; and whatever befalls its files, a run goes on."""

import errno
import hashlib
import logging
import multiprocessing
import os
import time
from pathlib import Path

import numpy as np
import pytest

from harness.candidate.side import Piece
from harness.run import cache as room
from harness.run import shard
from harness.run.cache import Cache, clear, entries, prune

KEY, OTHER = "a" * 64, "b" * 64


def item(name: object) -> str:
    return hashlib.sha256(str(name).encode()).hexdigest()


def dense(count: int, start: int = 0, width: int = 4) -> dict[str, Piece]:
    """Pieces of one row each; a piece's numbers follow from its name."""
    return {item(at): Piece(np.full((1, width), at, dtype=np.float32)) for at in range(start, start + count)}


def same(found: Piece, expected: Piece) -> bool:
    """Equal to the bit, NaN and the sign of zero included."""
    if (found.indices is None) != (expected.indices is None) or found.values.shape != expected.values.shape:
        return False
    alike = found.values.dtype == np.float32 and found.values.tobytes() == expected.values.tobytes()
    if found.indices is None or expected.indices is None:
        return alike
    return alike and found.indices.dtype == np.int32 and found.indices.tobytes() == expected.indices.tobytes()


def files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def holds(folder: Path, pieces: dict[str, Piece], key: str = KEY) -> bool:
    """Whether a fresh cache gives all of these, each as it was put in."""
    found = Cache(folder).get(key, list(pieces))
    return found.keys() == pieces.keys() and all(same(found[name], piece) for name, piece in pieces.items())


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


class TestRoundTrip:
    def test_single_vectors(self, tmp_path: Path) -> None:
        """Also those that are no numbers: NaN with a payload, infinities, the negative zero, the smallest number."""
        bits = np.array([0x7FC00001, 0xFF800000, 0x80000000, 0x00000001], dtype=np.uint32)
        pieces = {item("odd"): Piece(bits.view(np.float32)[None]), **dense(50)}
        Cache(tmp_path).put(KEY, pieces)
        assert holds(tmp_path, pieces)

    def test_several_rows_a_text_and_none(self, tmp_path: Path) -> None:
        """As late interaction has them; the empty ones first, last and between."""
        rng = np.random.default_rng(1)
        counts = [0, 3, 0, 0, 17, 1, 0]
        pieces = {item(at): Piece(rng.standard_normal((n, 8)).astype(np.float32)) for at, n in enumerate(counts)}
        Cache(tmp_path).put(KEY, pieces)
        assert holds(tmp_path, pieces)

    def test_nothing_but_texts_without_rows(self, tmp_path: Path) -> None:
        pieces = {item(at): Piece(np.empty((0, 8), dtype=np.float32)) for at in range(3)}
        Cache(tmp_path).put(KEY, pieces)
        assert holds(tmp_path, pieces)

    def test_sparse_vectors(self, tmp_path: Path) -> None:
        """Values [l, 1] with their indices; a text may have no value at all."""
        rng = np.random.default_rng(2)
        pieces = {
            item(at): Piece(rng.random((n, 1), dtype=np.float32), np.arange(n, dtype=np.int32) * 30_000)
            for at, n in enumerate((5, 0, 2))
        }
        Cache(tmp_path).put(KEY, pieces)
        assert holds(tmp_path, pieces)

    def test_a_key_is_its_own(self, tmp_path: Path) -> None:
        """The same item under another key is another piece; an item that was never put is not there."""
        here, there = dense(1), {item(0): Piece(np.ones((1, 9), dtype=np.float32))}
        Cache(tmp_path).put(KEY, here)
        assert Cache(tmp_path).get(OTHER, list(here)) == {}
        Cache(tmp_path).put(OTHER, there)
        assert holds(tmp_path, here) and holds(tmp_path, there, OTHER)
        assert Cache(tmp_path).get(KEY, [item("never")]) == {}

    def test_pieces_of_several_batches_are_found_together(self, tmp_path: Path) -> None:
        """By the object that put them and by another one; an item asked for twice is given once."""
        kept = Cache(tmp_path)
        for start in (0, 10, 20):
            kept.put(KEY, dense(10, start))
        asked = [*dense(40), item(3)]
        for found in (kept.get(KEY, asked), Cache(tmp_path).get(KEY, asked)):
            assert found.keys() == dense(30).keys()
            assert all(same(found[name], piece) for name, piece in dense(30).items())

    def test_a_batch_put_twice_is_one_file(self, tmp_path: Path) -> None:
        """Also in another order, and from another process: its name follows from its items."""
        Cache(tmp_path).put(KEY, dense(5))
        before = {path: path.read_bytes() for path in files(tmp_path)}
        Cache(tmp_path).put(KEY, dict(reversed(dense(5).items())))
        assert {path: path.read_bytes() for path in files(tmp_path)} == before and len(before) == 1

    def test_items_whose_digests_begin_alike_are_told_apart(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The search goes by the first eight bytes; what it finds is held against all of them."""
        monkeypatch.setattr(shard, "heads_of", lambda digests: np.zeros(len(digests), dtype=np.uint64))
        Cache(tmp_path).put(KEY, dense(3))
        found = Cache(tmp_path).get(KEY, list(dense(6)))
        assert len(found) == 1 and all(same(found[name], dense(3)[name]) for name in found)

    def test_any_other_tool_can_read_a_file(self, tmp_path: Path) -> None:
        """It is a safetensors file."""
        from safetensors.numpy import load_file

        Cache(tmp_path).put(KEY, dense(3))
        found = load_file(files(tmp_path)[0])
        assert sorted(found["values"][:, 0].tolist()) == [0, 1, 2] and found["offsets"].tolist() == [0, 1, 2, 3]


class TestDamage:
    """A file that is not what was written is removed and named in the log, and nothing of it is given."""

    @pytest.mark.parametrize("size", [0, 4, 60, 700, -1])
    def test_a_file_cut_short(self, tmp_path: Path, size: int, caplog: pytest.LogCaptureFixture) -> None:
        Cache(tmp_path).put(KEY, dense(5))
        [path] = files(tmp_path)
        whole = path.read_bytes()
        path.write_bytes(whole[:size])
        kept = Cache(tmp_path)
        assert kept.get(KEY, list(dense(5))) == {}
        assert files(tmp_path) == [] and str(path) in caplog.text
        kept.put(KEY, dense(5))
        assert path.read_bytes() == whole and holds(tmp_path, dense(5))
        assert kept.get(KEY, list(dense(5))).keys() == dense(5).keys()

    def test_any_flipped_bit_is_seen_or_does_no_harm(self, tmp_path: Path) -> None:
        """One in every byte of the file: what is given is as it was put in, and if anything is missing, all of it."""
        Cache(tmp_path).put(KEY, dense(2, width=2))
        [path] = files(tmp_path)
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << at % 8)]) + whole[at + 1 :])
            found = Cache(tmp_path).get(KEY, list(dense(2, width=2)))
            assert all(same(found[name], dense(2, width=2)[name]) for name in found), at
            assert len(found) in (0, 2), at
            assert (len(found) == 2) == path.exists(), at
        assert len(whole) < 800

    def test_a_file_that_cannot_be_removed_is_named_once(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        Cache(tmp_path).put(KEY, dense(5))
        files(tmp_path)[0].write_bytes(b"")

        def refused(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(Path, "unlink", refused)
        kept = Cache(tmp_path)
        for _ in range(3):
            assert kept.get(KEY, list(dense(5))) == {}
        assert len(caplog.records) == 1

    def test_only_what_is_asked_for_is_read(self, tmp_path: Path) -> None:
        """The index is checked as a whole, pieces one by one: damage in one is no other's."""
        Cache(tmp_path).put(KEY, dense(9, start=1))
        [path] = files(tmp_path)
        whole = path.read_bytes()
        at = whole.index(np.full(4, 3, dtype=np.float32).tobytes())
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        assert Cache(tmp_path).get(KEY, [item(3), item(4)]) == {} and not path.exists()
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        assert same(Cache(tmp_path).get(KEY, [item(4)])[item(4)], dense(9)[item(4)]) and path.exists()

    def test_a_file_under_another_key_is_not_that_keys(self, tmp_path: Path) -> None:
        Cache(tmp_path).put(KEY, dense(2))
        [path] = files(tmp_path)
        (tmp_path / OTHER).mkdir()
        (tmp_path / OTHER / path.name).write_bytes(path.read_bytes())
        assert Cache(tmp_path).get(OTHER, list(dense(2))) == {}
        assert holds(tmp_path, dense(2))

    def test_a_damaged_file_costs_only_its_own_pieces(self, tmp_path: Path) -> None:
        kept = Cache(tmp_path)
        kept.put(KEY, dense(3))
        [path] = files(tmp_path)
        kept.put(KEY, dense(3, start=3))
        path.write_bytes(b"")
        assert Cache(tmp_path).get(KEY, list(dense(6))).keys() == dense(3, start=3).keys()

    def test_a_file_that_goes_while_it_is_used(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Another process pruned it, before it was opened or after: what was taken stays, the rest is missing, and
        there is nothing to tell.
        """
        kept = Cache(tmp_path)
        kept.put(KEY, dense(3))
        taken, listed = kept.get(KEY, [item(0)]), files(tmp_path)
        monkeypatch.setattr(room, "_inside", lambda *_: listed)
        listed[0].unlink()
        assert same(taken[item(0)], dense(1)[item(0)])
        assert kept.get(KEY, [item(1)]) == Cache(tmp_path).get(KEY, [item(1)]) == {} and not caplog.records

    def test_a_folder_that_goes_while_it_is_written_costs_one_batch(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        """Another process pruned the last file in it; the next batch makes it anew."""
        whole, kept = room._write, Cache(tmp_path)

        def gone(path: Path, arrays: shard.Arrays) -> None:
            path.parent.rmdir()
            whole(path, arrays)

        with monkeypatch.context() as patch:
            patch.setattr(room, "_write", gone)
            kept.put(KEY, dense(3))
        kept.put(KEY, dense(3, 3))
        assert kept.get(KEY, list(dense(6))).keys() == dense(3, 3).keys() and not caplog.records


class TestForeign:
    def test_what_is_no_part_of_the_cache_is_left_alone(self, tmp_path: Path) -> None:
        """Neither read, nor counted, nor removed, not even where all is."""
        Cache(tmp_path).put(KEY, dense(2))
        foreign = [tmp_path / "notes.txt", tmp_path / KEY / "model.safetensors", tmp_path / "models" / "x.safetensors"]
        for path in foreign:
            path.parent.mkdir(exist_ok=True)
            path.write_text("mine")
        assert holds(tmp_path, dense(2))
        assert [entry.key for entry in entries(tmp_path)] == [KEY]
        clear(tmp_path)
        assert files(tmp_path) == sorted(foreign) and entries(tmp_path) == ()

    def test_a_folder_that_is_not_there_is_an_empty_cache(self, tmp_path: Path) -> None:
        assert entries(tmp_path / "none") == () and Cache(tmp_path / "none").get(KEY, [item(1)]) == {}
        assert prune(tmp_path / "none", 0) == 0
        clear(tmp_path / "none")

    def test_a_file_in_the_place_of_the_folder(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "cache").write_text("mine")
        kept = Cache(tmp_path / "cache")
        kept.put(KEY, dense(2))
        assert kept.get(KEY, list(dense(2))) == {} and len(caplog.records) == 1


class TestRefusedDisk:
    """A run goes on without keeping anything, and says so once."""

    def test_a_full_disk(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        kept = Cache(tmp_path)
        kept.put(KEY, dense(2))

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        for start in (2, 4, 6):
            kept.put(KEY, dense(2, start))
        assert [record.getMessage() for record in caplog.records] == [
            f"The cache in {tmp_path} keeps nothing more of this run: No space left on device."
        ]
        assert len(files(tmp_path)) == 1 and kept.get(KEY, list(dense(8))).keys() == dense(2).keys()

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_cannot_be_written(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        Cache(tmp_path).put(KEY, dense(2))
        for path in (tmp_path / KEY, tmp_path):
            path.chmod(0o555)
        kept = Cache(tmp_path)
        assert kept.get(KEY, list(dense(2))).keys() == dense(2).keys()
        kept.put(KEY, dense(2, 2))
        kept.put(OTHER, dense(2))
        assert len(caplog.records) == 1
        for path in (tmp_path, tmp_path / KEY):
            path.chmod(0o755)

    def test_a_read_only_place(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog) -> None:
        """What is there is given; no use is noted, nothing is written or removed."""
        Cache(tmp_path).put(KEY, dense(2))

        def refused(*_: object, **__: object) -> None:
            raise OSError(errno.EROFS, "Read-only file system")

        for owner, name in ((os, "utime"), (room, "NamedTemporaryFile"), (Path, "unlink")):
            monkeypatch.setattr(owner, name, refused)
        kept = Cache(tmp_path)
        kept.put(KEY, dense(2, 2))
        assert kept.get(KEY, list(dense(4))).keys() == dense(2).keys()
        assert [record.levelno for record in caplog.records] == [logging.WARNING]

    def test_a_limit_of_nothing_keeps_nothing(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        Cache(tmp_path, limit=0).put(KEY, dense(2))
        assert files(tmp_path) == [] and not caplog.records


class TestLimit:
    SIZE = shard.size_of(shard.arrays_of(KEY, dense(10)))

    def test_the_least_recently_used_goes_first(self, tmp_path: Path) -> None:
        """Three batches where two fit; the first was used again since."""
        for start, seconds in ((0, 300), (10, 200), (20, 100)):
            Cache(tmp_path).put(KEY, dense(10, start))
            age(max(files(tmp_path), key=lambda path: path.stat().st_mtime), seconds)
        Cache(tmp_path).get(KEY, [item(0)])
        Cache(tmp_path, limit=3 * self.SIZE).put(KEY, dense(10, 30))
        found = Cache(tmp_path).get(KEY, list(dense(40)))
        assert found.keys() == {**dense(10), **dense(20, 20)}.keys()

    def test_it_never_grows_beyond_its_limit(self, tmp_path: Path) -> None:
        for start in range(0, 200, 10):
            Cache(tmp_path, limit=4 * self.SIZE).put(KEY, dense(10, start))
            assert sum(path.stat().st_size for path in files(tmp_path)) <= 4 * self.SIZE
        assert len(files(tmp_path)) >= 3

    def test_a_run_keeps_what_it_uses(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        """What it took and what it put stay, however old; what does not fit beside them is not kept, and said once."""
        Cache(tmp_path).put(KEY, dense(10))
        kept = Cache(tmp_path, limit=2 * self.SIZE)
        kept.get(KEY, list(dense(10)))
        for start in (10, 20, 30):
            kept.put(KEY, dense(10, start))
        assert kept.get(KEY, list(dense(40))).keys() == dense(20).keys()
        assert len(caplog.records) == 1 and "this run alone" in caplog.text

    def test_what_it_uses_stays_also_where_another_process_used_something_later(self, tmp_path: Path) -> None:
        Cache(tmp_path).put(KEY, dense(10))
        kept = Cache(tmp_path, limit=2 * self.SIZE)
        kept.get(KEY, list(dense(10)))
        age(files(tmp_path)[0], 100)
        Cache(tmp_path).put(KEY, dense(10, 10))
        kept.put(KEY, dense(10, 20))
        assert Cache(tmp_path).get(KEY, list(dense(30))).keys() == {**dense(10), **dense(10, 20)}.keys()

    def test_what_could_never_fit_drives_nothing_out(self, tmp_path: Path) -> None:
        Cache(tmp_path).put(KEY, dense(10))
        Cache(tmp_path, limit=2 * self.SIZE).put(OTHER, dense(1000))
        assert holds(tmp_path, dense(10))

    def test_pruning_goes_down_to_a_limit(self, tmp_path: Path) -> None:
        for start in (0, 10, 20):
            Cache(tmp_path).put(KEY, dense(10, start))
        [entry] = entries(tmp_path)
        assert (entry.pieces, entry.files) == (30, 3)
        assert prune(tmp_path, entry.bytes) == entry.bytes
        left = prune(tmp_path, entry.bytes - 1)
        assert left == sum(each.bytes for each in entries(tmp_path)) < entry.bytes
        assert prune(tmp_path, 0) == 0 and list(tmp_path.iterdir()) == []


class TestParts:
    def test_a_killed_writer_leaves_a_part_that_goes_when_it_is_old(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Killed before the file could appear; nothing of it is ever read. A fresh part may be another's at work."""
        pid = os.fork()
        if pid == 0:
            os.fsync = lambda _: os._exit(77)
            Cache(tmp_path).put(KEY, dense(5))
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 77
        [part] = files(tmp_path)
        assert part.suffix == ".part" and Cache(tmp_path).get(KEY, list(dense(5))) == {} and entries(tmp_path) == ()
        Cache(tmp_path).put(KEY, dense(5))
        assert part.exists() and holds(tmp_path, dense(5))
        age(part, room.ABANDONED + 1)
        Cache(tmp_path).put(OTHER, dense(5))
        assert not part.exists() and holds(tmp_path, dense(5))

    def test_clearing_takes_fresh_ones_too(self, tmp_path: Path) -> None:
        Cache(tmp_path).put(KEY, dense(5))
        part = files(tmp_path)[0].with_name(f".{'0' * 32}.x.part")
        part.write_bytes(b"half")
        prune(tmp_path, 0)
        assert files(tmp_path) == [part]
        clear(tmp_path)
        assert list(tmp_path.iterdir()) == []


def _work(folder: Path, seed: int, queue: "multiprocessing.Queue[str]") -> None:
    """Puts, takes, prunes and clears at random; what it is given must be what was put."""
    rng = np.random.default_rng(seed)
    try:
        for _ in range(60):
            kept = Cache(folder, limit=int(rng.integers(2, 6)) * TestLimit.SIZE)
            batch = dense(10, 10 * int(rng.integers(6)))
            key = (KEY, OTHER)[rng.integers(2)]
            found = kept.get(key, list(batch))
            assert all(same(found[name], batch[name]) for name in found)
            kept.put(key, {name: piece for name, piece in batch.items() if name not in found})
            entries(folder)
            if rng.random() < 0.2:
                prune(folder, int(rng.integers(3)) * TestLimit.SIZE)
            if rng.random() < 0.1:
                clear(folder)
        queue.put("")
    except BaseException as error:
        queue.put(repr(error))
        raise


class TestSeveralProcesses:
    def test_they_read_write_and_prune_at_once(self, tmp_path: Path) -> None:
        """Three of them, each at random: none raises, none is given anything but what was put."""
        context = multiprocessing.get_context("fork")
        queue: multiprocessing.Queue[str] = context.Queue()
        workers = [context.Process(target=_work, args=(tmp_path, seed, queue)) for seed in range(3)]
        for worker in workers:
            worker.start()
        assert [queue.get(timeout=60) for _ in workers] == ["", "", ""]
        for worker in workers:
            worker.join()
        assert all(path.suffix != ".part" for path in files(tmp_path))
