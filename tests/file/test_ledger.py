"""Lines chained by digest: what was written once stays, in its order."""

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness.errors import Stopped, Tampered
from harness.file import ledger
from harness.identity import canonical_json

PROJECT = Path(harness.__file__).parents[1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger of four entries."""
    path = tmp_path / "ledger.jsonl"
    for number in range(4):
        ledger.append(path, {"n": number, "who": "ä\n"})
    return path


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().split(b"\n")[:-1]


class TestAppending:
    def test_entries_come_back_first_first(self, path: Path) -> None:
        """Without the link, which is the ledger's own."""
        assert ledger.read(path) == [{"n": number, "who": "ä\n"} for number in range(4)]

    def test_each_line_carries_the_digest_of_the_line_before(self, path: Path) -> None:
        """The first carries zeros; a line feed inside a text is no end of line."""
        lines = lines_of(path)
        assert len(lines) == 4
        links = [json.loads(line)["previous"] for line in lines]
        assert links == ["0" * 64, *(hashlib.sha256(line).hexdigest() for line in lines[:-1])]

    def test_each_line_carries_the_digest_of_what_it_says(self, path: Path) -> None:
        """Of its canonical JSON without that key; so the last line is held too, which no other line follows."""
        for line in lines_of(path):
            says = json.loads(line)
            own = says.pop("own_digest")
            assert own == hashlib.sha256(canonical_json(says)).hexdigest()

    def test_a_line_without_its_own_digest_is_chained_all_the_same(self, path: Path) -> None:
        """As earlier versions and deployment processes write them: a last one is then as open as it always was."""
        lines = lines_of(path)
        path.write_bytes(b"\n".join([*lines[:3], without_own_digest(lines[3])]) + b"\n")
        assert ledger.append(path, {"n": 4})
        assert [entry["n"] for entry in ledger.read(path)] == [0, 1, 2, 3, 4]

    def test_what_is_there_is_never_written_again(self, path: Path) -> None:
        """The old bytes are the beginning of the new ones."""
        before = path.read_bytes()
        assert ledger.append(path, {"n": 4})
        assert path.read_bytes().startswith(before)

    @pytest.mark.parametrize(
        "entry", [{"who": "ä\n", "n": 1}, {"n": 1.0, "who": "ä\n"}], ids=["other order of keys", "1.0 for 1"]
    )
    def test_the_same_entry_twice_appends_nothing(self, path: Path, entry: dict[str, str | float]) -> None:
        """Also when others stand between, and whatever the order of its keys."""
        before = path.read_bytes()
        assert not ledger.append(path, entry)
        assert path.read_bytes() == before

    def test_a_tuple_is_the_list_that_it_becomes(self, path: Path) -> None:
        """JSON has lists only, and the same evidence is the same."""
        assert ledger.append(path, {"suites": ("a", "b")})
        assert not ledger.append(path, {"suites": ("a", "b")})
        assert not ledger.append(path, {"suites": ["a", "b"]})

    def test_no_file_is_no_entries(self, tmp_path: Path) -> None:
        """Reading makes no file."""
        assert ledger.read(tmp_path / "none.jsonl") == []
        assert not list(tmp_path.iterdir())

    def test_a_value_that_json_lacks_leaves_the_file(self, path: Path) -> None:
        """NaN is no evidence."""
        before = path.read_bytes()
        with pytest.raises(ValueError):
            ledger.append(path, {"n": float("nan")})
        assert path.read_bytes() == before

    def test_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        """A file stands in the place of the folder: Stopped, not a traceback."""
        (tmp_path / "file").touch()
        with pytest.raises(Stopped):
            ledger.append(tmp_path / "file" / "ledger.jsonl", {"n": 1})

    def test_processes_that_append_at_once_lose_nothing(self, tmp_path: Path) -> None:
        """Three processes, twenty entries each, and one chain of sixty that holds."""
        code = (
            "import sys; from pathlib import Path; from harness.file import ledger\n"
            "for n in range(20): ledger.append(Path(sys.argv[1]), {'by': sys.argv[2], 'n': n})"
        )
        path = tmp_path / "ledger.jsonl"
        writers = [
            subprocess.Popen([sys.executable, "-c", code, str(path), name], cwd=PROJECT, stderr=subprocess.PIPE)
            for name in "abc"
        ]
        assert [writer.communicate()[1] for writer in writers] == [b"", b"", b""]
        entries = ledger.read(path)
        assert len(entries) == 60
        for name in "abc":
            assert [entry["n"] for entry in entries if entry["by"] == name] == list(range(20))


def without_own_digest(line: bytes) -> bytes:
    return canonical_json({name: value for name, value in json.loads(line).items() if name != "own_digest"})


Edit = Callable[[list[bytes]], list[bytes]]


class TestTampering:
    @pytest.mark.parametrize(
        ("edit", "line"),
        [
            (lambda lines: [lines[0].replace(b'"n":0', b'"n":7'), *lines[1:]], 1),
            (lambda lines: [*lines[:3], lines[3].replace(b'"n":3', b'"n":7')], 4),
            (lambda lines: [*lines[:3], lines[3].replace(b'"n":3', b'"m":1,"n":3')], 4),
            (lambda lines: [without_own_digest(lines[0]), *lines[1:]], 2),
            (lambda lines: [lines[0], lines[1] + b" ", *lines[2:]], 3),
            (lambda lines: lines[1:], 1),
            (lambda lines: [*lines[:1], *lines[2:]], 2),
            (lambda lines: [lines[0], lines[2], lines[1], lines[3]], 2),
            (lambda lines: [*lines, lines[-1]], 5),
            (lambda lines: [*lines[:2], b"", *lines[2:]], 3),
            (lambda lines: [*lines[:3], lines[3][:-5]], 4),
            (lambda lines: [*lines, b"[1, 2]"], 5),
            (lambda lines: [*lines, b'"previous"'], 5),
            (lambda lines: [*lines, b"\xff\xfe"], 5),
            (lambda lines: [*lines, b'{"n":4}'], 5),
            (lambda lines: [*lines, b"[" * 100_000], 5),
        ],
        ids=[
            "changed", "last changed", "last with more", "without its own digest", "a blank added",
            "first removed", "one removed", "reordered", "repeated", "empty line",
            "torn last line", "no object", "a text", "no UTF-8", "no link", "nested without end",
        ],
    )  # fmt: skip
    def test_it_is_seen_at_its_line(self, path: Path, edit: Edit, line: int) -> None:
        """The line is the first that does not carry its own digest, or that of the one before it.

        A torn last line is tampering too: a line gets there whole, by renaming, or not at all.
        """
        path.write_bytes(b"\n".join(edit(lines_of(path))) + b"\n")
        with pytest.raises(Tampered) as refusal:
            ledger.read(path)
        assert refusal.value.subject == f"{path} line {line}"

    def test_line_ends_are_not_content(self, path: Path) -> None:
        """A checkout that turns line feeds into CR LF breaks no chain, and the next entry is chained as ever."""
        path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
        assert len(ledger.read(path)) == 4
        assert ledger.append(path, {"n": 4})
        assert b"\r" not in path.read_bytes()
        assert len(ledger.read(path)) == 5

    def test_a_folder_in_its_place(self, tmp_path: Path) -> None:
        """It was a file when it was written."""
        (tmp_path / "ledger.jsonl").mkdir()
        with pytest.raises(Tampered, match="ledger"):
            ledger.read(tmp_path / "ledger.jsonl")

    def test_nothing_is_appended_to_a_broken_chain(self, path: Path) -> None:
        """Else the break would be chained over."""
        path.write_bytes(b"\n".join(lines_of(path)[1:]) + b"\n")
        before = path.read_bytes()
        with pytest.raises(Tampered):
            ledger.append(path, {"n": 9})
        assert path.read_bytes() == before

    def test_a_killed_writer_leaves_the_ledger(self, path: Path) -> None:
        """Its part and its lock lie beside and mean nothing."""
        path.with_name(".ledger.jsonl.part").write_bytes(path.read_bytes()[:40])
        path.with_name(".ledger.jsonl.lock").touch()
        assert len(ledger.read(path)) == 4
        assert ledger.append(path, {"n": 4})
        assert len(ledger.read(path)) == 5
