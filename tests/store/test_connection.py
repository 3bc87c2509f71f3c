"""One writer or many readers; a step is kept whole or not at all; reading reaches nothing but the store."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import harness
from harness.errors import Misconfigured, NotFound, Stopped
from harness.store import connection as room
from harness.store import write
from harness.store.connection import Store

PROJECT = Path(harness.__file__).parents[1]


def note(store: Store, step: str = "measured") -> None:
    with store.writing() as connection:
        write.finish(connection, "run", step, 1.0)


def steps(store: Store) -> list[str]:
    with store.reading() as connection:
        return [row[0] for row in connection.execute("SELECT step FROM steps ORDER BY step").fetchall()]


@contextmanager
def holding(store: Store, mode: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open until the block ends."""
    code = (
        "import sys; from pathlib import Path; from harness.store.connection import Store\n"
        f"with Store(Path(sys.argv[1])).{mode}() as connection:\n"
        "    if sys.argv[2] == 'writing': connection.execute(\"INSERT INTO steps VALUES ('run', 'half', 1)\")\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    arguments = [sys.executable, "-c", code, str(store.path), mode]
    with subprocess.Popen(arguments, cwd=PROJECT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout and process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


class TestOneTransaction:
    def test_what_a_step_wrote_is_there(self, empty: Store) -> None:
        """In a folder that was not there before."""
        note(empty)
        assert steps(empty) == ["measured"]

    @pytest.mark.parametrize("fault", [ValueError("no"), KeyboardInterrupt()])
    def test_a_step_that_raises_leaves_nothing(self, empty: Store, fault: BaseException) -> None:
        """What was there before is as it was: removed rows too."""
        note(empty)
        with pytest.raises(type(fault)), empty.writing() as connection:
            write.finish(connection, "run", "decided", 1.0)
            write.remove(connection, "steps", {"run": "run"})
            raise fault
        assert steps(empty) == ["measured"]

    def test_sql_that_fails_in_a_step_leaves_nothing(self, empty: Store) -> None:
        """The first statement goes with the second."""
        note(empty)
        with pytest.raises(duckdb.Error), empty.writing() as connection:
            write.finish(connection, "run", "decided", 1.0)
            connection.execute("INSERT INTO steps VALUES ('run', NULL, 1)")
        assert steps(empty) == ["measured"]

    def test_a_first_step_that_raises_is_no_store(self, empty: Store) -> None:
        """A file without tables is as good as none: NotFound, not an error of SQL."""
        with pytest.raises(ValueError), empty.writing():
            raise ValueError
        with pytest.raises(NotFound), empty.reading():
            pass
        note(empty)
        assert steps(empty) == ["measured"]

    def test_a_killed_writer_leaves_what_was_finished(self, empty: Store) -> None:
        """Half a step is no step, and the next one needs no repair."""
        note(empty)
        with holding(empty, "writing") as process:
            process.kill()
            process.wait()
        assert steps(empty) == ["measured"]
        note(empty, "decided")
        assert steps(empty) == ["decided", "measured"]


class TestWhoMayOpenIt:
    def test_a_writer_keeps_everyone_out(self, empty: Store) -> None:
        """In one line, with the file's name."""
        note(empty)
        with holding(empty, "writing"):
            for opening in (empty.reading, empty.writing):
                with pytest.raises(Stopped) as refusal, opening():
                    pass
                assert "another process holds the store" in refusal.value.found
                assert refusal.value.subject == str(empty.path)
                assert "\n" not in refusal.value.found

    def test_readers_stand_beside_each_other(self, empty: Store) -> None:
        """In another process and in this one; a writer waits for them."""
        note(empty)
        with holding(empty, "reading"):
            with empty.reading(), empty.reading():
                assert steps(empty) == ["measured"]
            with pytest.raises(Stopped), empty.writing():
                pass

    def test_one_process_does_not_read_while_it_writes(self, empty: Store) -> None:
        """Stopped as well; moving the file away would be the wrong mend."""
        note(empty)
        with empty.writing(), pytest.raises(Stopped), empty.reading():
            pass
        with empty.reading(), pytest.raises(Stopped), empty.writing():
            pass

    def test_no_store(self, empty: Store) -> None:
        """NotFound, and looking makes none."""
        with pytest.raises(NotFound), empty.reading():
            pass
        assert not empty.path.parent.exists()

    @pytest.mark.parametrize("content", [b"", b"id,text\n", b"\x00" * 20_000, b"not a store " * 2000])
    @pytest.mark.parametrize("folder", ["plain", "blocks"])
    def test_a_file_that_is_no_store(self, tmp_path: Path, content: bytes, folder: str) -> None:
        """Misconfigured for reader and writer, whatever the path is called, and the file is left alone."""
        store = Store(tmp_path / folder / "store.duckdb")
        store.path.parent.mkdir()
        store.path.write_bytes(content)
        for opening in (store.reading, store.writing):
            with pytest.raises(Misconfigured) as refusal, opening():
                pass
            assert "\n" not in refusal.value.found
        assert store.path.read_bytes() == content

    @pytest.mark.parametrize("damage", ["cut", "flipped"])
    def test_a_damaged_store(self, empty: Store, damage: str) -> None:
        """Misconfigured too, not a traceback."""
        note(empty)
        content = bytearray(empty.path.read_bytes())
        if damage == "flipped":
            content[12288 : 12288 + 64] = bytes(64)
        empty.path.write_bytes(content[: 20_000 if damage == "cut" else None])
        with pytest.raises(Misconfigured), empty.reading():
            pass

    def test_a_place_that_cannot_be_written(self, tmp_path: Path) -> None:
        """A file stands where the folder should be."""
        (tmp_path / "file").touch()
        with pytest.raises(Stopped), Store(tmp_path / "file" / "store.duckdb").writing():
            pass


class TestSilence:
    def test_no_query_draws_a_progress_bar(self, small: Store) -> None:
        """Neither while a store is read nor while it is written. By default one is drawn where no script is run."""
        code = (
            "import sys, pathlib; from harness.store.connection import Store\n"
            "store = Store(pathlib.Path(sys.argv[1]))\n"
            "for opened in (store.reading, store.writing):\n"
            "    with opened() as connection:\n"
            "        print(connection.execute(\"SELECT current_setting('enable_progress_bar')\").fetchall())\n"
        )
        done = subprocess.run([sys.executable, "-c", code, str(small.path)], capture_output=True, text=True)
        assert done.stdout.split() == ["[(False,)]"] * 2, done.stderr


class TestAnotherVersion:
    @pytest.mark.parametrize(
        "change",
        ["UPDATE layout SET digest = 'of another version'", "DROP TABLE layout", "DELETE FROM layout"],
        ids=["another version", "before there were versions", "no version"],
    )
    def test_a_store_with_other_tables(self, empty: Store, change: str) -> None:
        """Misconfigured for reader and writer, before a row is touched: it would not be what it seems."""
        note(empty)
        with empty.writing() as connection:
            connection.execute(change)
        for opening in (empty.reading, empty.writing):
            with pytest.raises(Misconfigured, match="another version"), opening():
                pass

    def test_a_database_of_someone_else(self, empty: Store) -> None:
        """Nothing of ours is written into it."""
        empty.path.parent.mkdir()
        with duckdb.connect(str(empty.path)) as connection:
            connection.execute("CREATE TABLE runs (run INTEGER)")
        for opening in (empty.reading, empty.writing):
            with pytest.raises(Misconfigured), opening():
                pass
        with duckdb.connect(str(empty.path)) as connection:
            assert connection.execute("SHOW TABLES").fetchall() == [("runs",)]


class TestViews:
    def test_they_follow_the_package(self, empty: Store) -> None:
        """A store keeps its tables under new views: the next writer puts them in."""
        note(empty)
        with empty.writing() as connection:
            connection.execute("DROP VIEW open_rules")
            connection.execute("UPDATE layout SET views = 'of another version'")
        note(empty, "decided")
        with empty.reading() as connection:
            assert connection.execute("SELECT * FROM open_rules").fetchall() == []
        assert steps(empty) == ["decided", "measured"]

    def test_comments_are_no_part_of_a_version(self, monkeypatch: pytest.MonkeyPatch, empty: Store) -> None:
        """A reworded comment must not lock anyone out of a store."""
        note(empty)
        script = room._script
        monkeypatch.setattr(room, "_script", lambda name: "-- reworded\n\n" + script(name).replace("  ", " "))
        assert steps(empty) == ["measured"]
        monkeypatch.setattr(room, "_script", lambda name: script(name).replace("VARCHAR", "TEXT"))
        with pytest.raises(Misconfigured, match="another version"), empty.reading():
            pass


class TestReadingIsSealed:
    @pytest.mark.parametrize(
        "statement",
        [
            "INSERT INTO steps VALUES ('run', 'x', 1)", "DELETE FROM steps", "CREATE TABLE t (a INTEGER)",
            "ATTACH '{}/other.duckdb'", "COPY steps TO '{}/out.csv'", "EXPORT DATABASE '{}/out'", "INSTALL httpfs",
            "LOAD httpfs", "SET enable_external_access = true", "SET python_enable_replacements = true",
            "SET threads = 1", "RESET threads", "SELECT * FROM read_text('{}/secret.txt')",
            "SELECT * FROM read_csv('{}/secret.txt')", "SELECT * FROM '{}/secret.csv'", "SELECT * FROM glob('{}/*')",
            "SELECT * FROM seen_by_python", "SELECT * FROM store",
        ],
    )  # fmt: skip
    def test_sql_reaches_nothing_but_the_store(self, small: Store, tmp_path: Path, statement: str) -> None:
        """It cannot write, read or list files, attach, install, set options, or see Python's variables."""
        (tmp_path / "secret.txt").write_text("secret")
        (tmp_path / "secret.csv").write_text("secret\n1\n")
        seen_by_python = [{"a": 1}]
        before = sorted(tmp_path.rglob("*"))
        with small.reading() as connection:
            with pytest.raises(duckdb.Error):
                connection.execute(statement.format(tmp_path)).fetchall()
            assert connection.execute("SELECT step FROM steps").fetchall() == [("decided",)]
        assert seen_by_python and sorted(tmp_path.rglob("*")) == before

    def test_a_writer_does_not_see_pythons_variables_either(self, empty: Store) -> None:
        """A table whose name is misspelt is an error there as well."""
        seen_by_python = {"a": [1]}
        with pytest.raises(duckdb.CatalogException), empty.writing() as connection:
            connection.execute("SELECT * FROM seen_by_python")
        assert seen_by_python
