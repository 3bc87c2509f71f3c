"""A reader sees the old thing or the new one, never a part."""

import errno
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.errors import Stopped, Tampered
from harness.file.whole import new_folder, write_bytes


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(path: Path, text: str) -> None:
    with new_folder(path) as part:
        (part / "a.txt").write_text(text)


class TestFile:
    def test_what_is_written_is_there_whole(self, tmp_path: Path) -> None:
        """In folders that were not there, and with nothing left beside it."""
        path = tmp_path / "new" / "deep" / "file.bin"
        write_bytes(path, bytes(range(256)) * 5000)
        assert path.read_bytes() == bytes(range(256)) * 5000
        assert names(path.parent) == ["file.bin"]

    def test_what_a_killed_writer_left_is_overwritten(self, tmp_path: Path) -> None:
        """A longer part of an earlier writer leaves no tail."""
        (tmp_path / ".file.part").write_bytes(b"half of a longer thing")
        write_bytes(tmp_path / "file", b"new")
        assert (tmp_path / "file").read_bytes() == b"new"
        assert names(tmp_path) == ["file"]

    def test_a_full_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The refusal says what the system said, and which file."""
        write_bytes(tmp_path / "file", b"old")

        def full(descriptor: int) -> None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(Stopped, match="No space left on device") as refusal:
            write_bytes(tmp_path / "file", b"new")
        assert refusal.value.subject == str(tmp_path / "file")
        assert (tmp_path / "file").read_bytes() == b"old"
        assert names(tmp_path) == ["file"]

    def test_a_folder_in_its_place_stays(self, tmp_path: Path) -> None:
        """A folder of that name is not taken away for a file."""
        (tmp_path / "file").mkdir()
        (tmp_path / "file" / "kept").touch()
        with pytest.raises(Stopped):
            write_bytes(tmp_path / "file", b"new")
        assert names(tmp_path / "file") == ["kept"]
        assert names(tmp_path) == ["file"]

    def test_a_file_where_a_folder_should_be(self, tmp_path: Path) -> None:
        """Nothing below it can be written, and that is said."""
        (tmp_path / "a").write_text("old")
        with pytest.raises(Stopped):
            write_bytes(tmp_path / "a" / "b", b"new")
        assert (tmp_path / "a").read_text() == "old"


class TestFolder:
    def test_it_takes_the_place_of_the_old_one(self, tmp_path: Path) -> None:
        """Whole: a file that the new one lacks is gone."""
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "stale.txt").touch()
        fill(tmp_path / "out", "new")
        assert names(tmp_path / "out") == ["a.txt"]
        assert names(tmp_path) == ["out"]

    @pytest.mark.parametrize("fault", [ValueError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
    def test_a_block_that_fails_leaves_the_old_one(self, tmp_path: Path, fault: BaseException) -> None:
        """An interruption as well."""
        fill(tmp_path / "out", "old")
        with pytest.raises((ValueError, KeyboardInterrupt, Stopped)), new_folder(tmp_path / "out") as part:
            (part / "a.txt").write_text("half")
            raise fault
        assert (tmp_path / "out" / "a.txt").read_text() == "old"

    def test_a_block_that_fails_brings_no_folder(self, tmp_path: Path) -> None:
        """Where there was none there is none, and the next one starts empty."""
        with pytest.raises(ValueError), new_folder(tmp_path / "out") as part:
            (part / "left.txt").touch()
            raise ValueError
        assert not (tmp_path / "out").exists()
        fill(tmp_path / "out", "new")
        assert names(tmp_path / "out") == ["a.txt"]

    def test_a_refusal_in_the_block_keeps_its_kind(self, tmp_path: Path) -> None:
        """Only what the system says becomes Stopped."""
        with pytest.raises(Tampered), new_folder(tmp_path / "out"):
            raise Tampered("x", found="a", expected="b", mend="c")

    def test_what_a_killed_writer_left_does_not_matter(self, tmp_path: Path) -> None:
        """Neither a half-filled part nor an old one that was not yet taken away."""
        fill(tmp_path / "out", "first")
        for left in (".out.part", ".out.old"):
            (tmp_path / left / "deep").mkdir(parents=True)
            (tmp_path / left / "deep" / "junk").touch()
        fill(tmp_path / "out", "second")
        assert (tmp_path / "out" / "a.txt").read_text() == "second"
        assert names(tmp_path) == ["out"]

    def test_killed_between_the_two_renamings(self, tmp_path: Path) -> None:
        """The old one, already moved aside, comes back before a next writer that fails too."""
        fill(tmp_path / "out", "old")
        (tmp_path / "out").rename(tmp_path / ".out.old")
        (tmp_path / ".out.part").mkdir()
        with pytest.raises(ValueError), new_folder(tmp_path / "out"):
            raise ValueError
        assert (tmp_path / "out" / "a.txt").read_text() == "old"

    def test_a_renaming_that_fails_loses_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """The old one is moved aside, never taken away before the new one stands."""
        fill(tmp_path / "out", "old")
        rename, calls = Path.rename, []

        def fails_the_second_time(self: Path, target: Path) -> Path:
            calls.append(self)
            if len(calls) == 2:
                raise OSError(errno.EIO, "input/output error")
            return rename(self, target)

        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", fails_the_second_time)
            with pytest.raises(Stopped):
                fill(tmp_path / "out", "new")
        with pytest.raises(ValueError), new_folder(tmp_path / "out"):
            raise ValueError
        assert (tmp_path / "out" / "a.txt").read_text() == "old"

    def test_the_block_gets_an_empty_folder_beside_its_place(self, tmp_path: Path) -> None:
        """Beside, so that putting it in place is one renaming on one file system."""
        with new_folder(tmp_path / "deep" / "out") as part:
            assert part.is_dir() and not names(part)
            assert part.parent == tmp_path / "deep"
            assert not (tmp_path / "deep" / "out").exists()

    def test_those_who_write_one_at_once_take_turns(self, tmp_path: Path) -> None:
        """As two runs of one project, each with its own store, that come to the same report."""
        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(fill, tmp_path / "out", f"{i}") for i in range(40)]:
                done.result()
        assert names(tmp_path) == ["out"] and names(tmp_path / "out") == ["a.txt"]
