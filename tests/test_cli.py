"""The command line: one object or one message, and the exit code of the contract."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.cli import main

from .verb.conftest import Project, plain_page, project  # noqa: F401  # the fixtures

COMMANDS = (
    "admit", "bundle", "cache", "calibrate", "check", "decide", "demo", "describe", "diff", "explain", "export",
    "freeze", "report", "run", "runs", "selftest", "sql", "verify",
)  # fmt: skip
HEAVY = ("torch", "duckdb", "scipy", "pandas", "numpy", "pyarrow", "matplotlib", "transformers")


def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout, stderr of a command line."""
    monkeypatch.setattr(sys, "argv", ["harness", *words])
    with pytest.raises(SystemExit) as left:
        main()
    said = capsys.readouterr()
    return int(left.value.code or 0), said.out, said.err


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    return lambda *words: call(capsys, monkeypatch, *words)


class TestHelp:
    def test_help_imports_nothing_heavy(self) -> None:
        code = (
            "import sys; sys.argv = ['harness', '--help']\n"
            "from harness.cli import main\n"
            "try: main()\nexcept SystemExit: pass\n"
            f"print('LOADED', [name for name in {HEAVY} if name in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert "LOADED []" in done.stdout, done.stderr

    @pytest.mark.parametrize("name", COMMANDS)
    def test_every_command_has_help(self, command, name: str) -> None:
        code, out, _ = command(name, "--help")
        assert code == 0
        assert name in out

    def test_every_command_is_a_function_too(self) -> None:
        """And none besides but the one whose result is an object in memory, and `calibrate`'s other half."""
        assert set(harness.__all__) == {*COMMANDS, "mteb_model", "threshold"}
        assert all(callable(getattr(harness, name)) for name in harness.__all__)

    def test_a_verb_keeps_its_name_beside_a_room_of_that_name(self) -> None:
        import harness.run.ranking  # binds the room to the package, but for the verb

        assert callable(harness.run)


@pytest.mark.usefixtures("project")
class TestCache:
    def test_entries_are_one_object_or_a_line_each(self, command) -> None:
        """A cache of one entry; cleared, of none."""
        from harness.candidate.side import Piece
        from harness.run.cache import Cache

        pieces = {str(at): Piece(np.zeros((1, 4), dtype=np.float32)) for at in range(1234)}
        Cache(Path(".harness/cache")).put("c" * 64, pieces)
        [entry] = json.loads(command("cache", "--json")[1])["entries"]
        assert entry.keys() == {"key", "pieces", "files", "bytes", "last_used", "used_by"}
        assert (entry["key"], entry["pieces"], entry["used_by"]) == ("c" * 64, 1234, [])
        first, total = command("cache")[1].splitlines()
        assert first.startswith("cccccccccccc       1,234 vectors       0.1 MB") and total.strip() == "0.1 MB in 1 key"
        assert command("cache", "--prune", "--limit", "1GB", "--json")[0] == 0
        assert json.loads(command("cache", "--clear", "--json")[1]) == {"entries": []}
        assert command("cache")[1].startswith("Nothing is kept")
        assert command("cache", "--limit", "1GB")[0] == 2


@pytest.mark.usefixtures("project", "plain_page")
class TestAnswer:
    def test_json_is_one_object_and_nothing_else(self, command) -> None:
        assert command("freeze", "s", "--json")[0] == 0
        code, out, _ = command("run", "s", "--candidate", "better", "--parent", "old", "--json")
        answer = json.loads(out)
        assert (code, answer["exit_code"], answer["decision"]) == (0, 0, "PASS")
        assert Path(answer["report"]).is_file()
        assert Path(answer["bundle"]).is_dir()
        assert Path(answer["store"]).is_file()

    def test_a_fail_exits_1_and_says_which_rule(self, command) -> None:
        command("freeze", "s")
        code, out, _ = command("run", "s", "--candidate", "worse", "--parent", "old")
        assert code == 1
        assert "FAIL headline" in out

    def test_verify_names_what_changed(self, command) -> None:
        command("freeze", "s")
        bundle = json.loads(command("run", "s", "--candidate", "better", "--parent", "old", "--json")[1])["bundle"]
        assert command("verify", bundle)[0] == 0
        (Path(bundle) / "decision.json").write_text("{}")
        code, out, _ = command("verify", bundle, "--json")
        assert code == 4
        assert json.loads(out)["findings"][0]["path"] == "decision.json"

    def test_explain_says_why(self, command) -> None:
        command("freeze", "s")
        command("run", "s", "--candidate", "worse", "--parent", "old")
        assert "beyond the margin" in command("explain", "latest")[1]
        assert "lost most" in command("explain", "latest", "--rule", "headline")[1]
        assert "question 1" in command("explain", "latest", "--case", "q1")[1]
        assert command("explain", "latest", "--case", "nobody")[0] == 2

    @pytest.mark.parametrize("form", ["table", "csv", "json"])
    def test_sql_prints_rows(self, command, form: str) -> None:
        command("freeze", "s")
        command("run", "s", "--candidate", "better", "--parent", "old")
        code, out, _ = command("sql", "SELECT count(*) AS n FROM rankings", "--format", form)
        assert code == 0
        assert "480" in out

    def test_a_row_is_a_line_where_no_terminal_reads(self, command) -> None:
        """Nothing is folded into a pipe, however long."""
        command("freeze", "s")
        command("run", "s", "--candidate", "better", "--parent", "old")
        _, out, _ = command("sql", f"SELECT '{'long ' * 60}' AS text, run FROM runs")
        assert len(out.splitlines()) == 3 and "long " * 59 in out

    def test_a_terminal_is_told_nothing_by_a_text(self, command, project: Project) -> None:  # noqa: F811
        """Neither an ID nor a value reaches it with an escape of its own; CSV is the value itself."""
        for name in ("suites/s/corpus.jsonl", "suites/s/queries.jsonl", "suites/s/qrels/test.tsv"):
            path = project.root / name
            escape = "\x1b" if path.suffix == ".tsv" else "\\u001b"
            path.write_text(path.read_text().replace("q0", f"q0{escape}[31m").replace("question 0", f"{escape}[1m"))
        command("freeze", "s")
        command("run", "s", "--candidate", "better", "--parent", "old")
        assert command("explain", "latest", "--case", "q0\x1b[31m")[1].startswith("q0\ufffd[31m (promotion")
        assert "\x1b" not in command("sql", 'SELECT case_id, text AS "a\x1b" FROM case_deltas')[1]
        assert "q0\x1b[31m" in command("sql", "SELECT case_id FROM case_deltas", "--format", "csv")[1]


@pytest.mark.usefixtures("project", "plain_page")
class TestStdout:
    """Whoever reads may leave: what a command found is in its exit code, whatever became of its words."""

    def code(self, *words: str, stdout: int, shell: str | None = None) -> tuple[int, str]:
        program = [sys.executable, "-c", "from harness.cli import main; main()", *words]
        command = ["sh", "-c", shell, *program] if shell else program
        done = subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True)
        return done.returncode, done.stderr

    @pytest.fixture
    def nobody(self) -> Iterator[int]:
        """The writing end of a pipe whose reader has left."""
        reader, writer = os.pipe()
        os.close(reader)
        yield writer
        os.close(writer)

    def test_a_reader_that_left_changes_no_exit_code(self, command, nobody: int) -> None:
        """`harness runs --json | true` is 0, a FAIL stays 1, a mistake 2; nobody is shown a traceback."""
        command("freeze", "s")
        assert self.code("runs", "--json", stdout=nobody)[0] == 2
        command("run", "s", "--candidate", "worse", "--parent", "old")
        failed = "report", "latest"
        for expected, *words in ((1, *failed), (1, *failed, "--json"), (0, "runs"), (0, "runs", "--json")):
            assert self.code(*words, stdout=nobody) == (expected, "")

    @pytest.mark.parametrize(
        "words", [("report", "latest"), ("explain", "latest"), ("sql", "FROM rankings"), ("check", "s")], ids=" ".join
    )
    def test_nor_does_any_form_of_printing(self, command, nobody: int, words: tuple[str, ...]) -> None:
        """A PASS must not become the 1 that a library leaves with when a pipe breaks."""
        command("freeze", "s")
        command("run", "s", "--candidate", "better", "--parent", "old")
        assert self.code(*words, stdout=nobody) == (0, "")

    def test_no_stdout_at_all(self, command) -> None:
        """As under `>&-`."""
        command("freeze", "s")
        code, err = self.code("check", "s", stdout=subprocess.DEVNULL, shell='exec "$0" "$@" >&-')
        assert (code, err) == (0, "")

    @pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
    @pytest.mark.parametrize("form", [(), ("--json",)])
    def test_a_full_disk_behind_it(self, command, form: tuple[str, ...]) -> None:
        """That is not a reader that left: what was to be kept there is lost, and the command says so."""
        command("freeze", "s")
        with Path("/dev/full").open("w") as full:
            code, err = self.code("check", "s", *form, stdout=full.fileno())
        assert code == 5
        assert "Traceback" not in err


@pytest.mark.usefixtures("project", "plain_page")
class TestRefusal:
    @pytest.mark.parametrize(
        "words",
        [
            ("run", "s", "--candidate", "better", "--parent", "old"),
            ("run", "s", "--candidte", "better"),
            ("run", "nowhere", "--candidate", "better", "--parent", "old"),
            ("nonsense",),
            ("runs",),
            ("verify", "nowhere"),
            ("sql", "SELECT 1"),
            ("decide", "latest"),
        ],
    )
    def test_a_mistake_is_exit_2_in_both_forms(self, command, words: tuple[str, ...]) -> None:
        code, out, err = command(*words)
        assert (code, out) == (2, "")
        assert "Traceback" not in err
        code, out, _ = command(*words, "--json")
        refused = json.loads(out)
        assert (code, refused["exit_code"]) == (2, 2)
        assert set(refused["error"]) == {"kind", "subject", "found", "expected", "mend"}

    def test_a_slice_that_is_chance_names_its_line(self, command, project: Project) -> None:  # noqa: F811
        """And writes no lock."""
        toml = project.root / "suites/s/suite.toml"
        toml.write_text(toml.read_text().replace("kind = 'typo'", "random() < 0.5"))
        code, _, err = command("freeze", "s")
        line = 1 + toml.read_text().splitlines().index('where = "random() < 0.5"')
        assert code == 2
        assert f"suite.toml line {line}" in err and "other cases each time" in err
        assert not (toml.parent / "suite.lock.json").exists()

    def test_ctrl_c_is_130(self, command, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("harness.verb.freeze.load", interrupted)
        assert command("freeze", "s")[0] == 130

    def test_a_place_that_cannot_be_reached_is_5_and_named(self, command, monkeypatch: pytest.MonkeyPatch) -> None:
        """Permissions and full disks are no fault of our own."""

        def denied(_: object) -> None:
            raise PermissionError(13, "Permission denied", "suites/s/corpus.jsonl")

        monkeypatch.setattr("harness.verb.freeze.load", denied)
        code, _, err = command("freeze", "s")
        assert code == 5 and err.startswith("suites/s/corpus.jsonl: Permission denied.")

    @pytest.mark.parametrize("words", [("check", "a" * 300), ("admit", "a" * 300)])
    def test_a_name_that_no_file_can_have_is_not_found(self, command, words: tuple[str, str]) -> None:
        code, _, err = command(*words)
        assert code == 2 and "too long" in err

    def test_a_fault_of_our_own_is_70_without_a_traceback(self, command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HARNESS_TRACEBACK", raising=False)
        monkeypatch.setattr("harness.verb.freeze.load", lambda _: 1 / 0)
        code, _, err = command("freeze", "s")
        assert code == 70
        assert "ZeroDivisionError" in err
        assert "Traceback" not in err
