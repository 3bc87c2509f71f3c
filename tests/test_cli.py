"""The command line: one object or one message, and the exit code of the contract."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import harness
from harness.cli import main

from .verb.conftest import Project, project  # noqa: F401  # the fixture

COMMANDS = (
    "admit", "bundle", "check", "decide", "demo", "describe", "diff", "explain", "freeze", "report", "run", "runs",
    "sql", "verify",
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
        assert set(harness.__all__) == set(COMMANDS)
        assert all(callable(getattr(harness, name)) for name in COMMANDS)

    def test_a_verb_keeps_its_name_beside_a_room_of_that_name(self) -> None:
        import harness.run.ranking  # binds the room to the package, but for the verb

        assert callable(harness.run)


@pytest.mark.usefixtures("project")
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


@pytest.mark.usefixtures("project")
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

    def test_ctrl_c_is_130(self, command, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupted(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr("harness.verb.freeze.load", interrupted)
        assert command("freeze", "s")[0] == 130

    def test_a_fault_of_our_own_is_70_without_a_traceback(self, command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("HARNESS_TRACEBACK", raising=False)
        monkeypatch.setattr("harness.verb.freeze.load", lambda _: 1 / 0)
        code, _, err = command("freeze", "s")
        assert code == 70
        assert "ZeroDivisionError" in err
        assert "Traceback" not in err
