"""gate.toml names what a CANDIDATE must have shown."""

from pathlib import Path
from typing import Any

import pytest

from harness.errors import Misconfigured
from harness.lifecycle.requirement import FILE, GateDefinition, missing, read, unproven
from harness.lifecycle.state import State


def written(root: Path, text: str) -> GateDefinition:
    (root / FILE).write_text(text, encoding="utf-8")
    return read(root)


class TestTheFile:
    def test_without_one(self, tmp_path: Path) -> None:
        """The suite that ran, and a declared parent."""
        assert read(tmp_path) == GateDefinition()

    def test_as_written(self, tmp_path: Path) -> None:
        """Suites and how well the parent must be known."""
        found = written(tmp_path, 'schema = "harness.gate.v1"\nsuites = ["help", "law"]\nparent = "candidate"\n')
        assert (found.suites, found.parent) == (["help", "law"], "candidate")

    @pytest.mark.parametrize(
        "line", ['suite = ["help"]', 'parent = "CANDIDATE"', 'schema = "harness.gate.v2"', "suites = 1"]
    )
    def test_what_is_refused(self, tmp_path: Path, line: str) -> None:
        """A misspelt key, an unknown state, another schema, a wrong type."""
        with pytest.raises(Misconfigured, match="line 1"):
            written(tmp_path, line)


class TestCandidate:
    def lacks(self, gate: GateDefinition, passed: set[str], parent: State | None, **locks: str) -> tuple[str, ...]:
        under = {suite: {f"{suite} then"} for suite in passed}
        return missing(gate, ran="help", passed=under, locks=locks, parent=parent, parent_name="old")

    def test_the_suite_that_ran_is_enough_without_a_file(self) -> None:
        """Against any parent."""
        assert self.lacks(GateDefinition(), {"help"}, State.DRAFT) == ()

    def test_every_suite_that_is_named(self) -> None:
        """Each that was not passed, once, in the file's order."""
        gate = GateDefinition(suites=["law", "help", "law", "code"])
        assert self.lacks(gate, {"help"}, State.DRAFT) == ("a PASS on the suite law", "a PASS on the suite code")
        assert self.lacks(gate, {"help", "law", "code"}, State.DRAFT) == ()

    def test_every_suite_as_it_is_frozen_now(self) -> None:
        """A PASS under another lock is none; of a suite without its lock at hand, any is; the one that ran decided."""
        gate = GateDefinition(suites=["help", "law"])
        found = self.lacks(gate, {"help", "law"}, State.DRAFT, law="law now", help="help now")
        assert found == ("a PASS on the suite law as it is frozen now (law now)",)
        assert self.lacks(gate, {"help", "law"}, State.DRAFT, law="law then") == ()
        assert self.lacks(gate, {"help", "law"}, State.DRAFT) == ()

    def test_a_parent(self) -> None:
        """Without one there is nothing to go back to."""
        assert self.lacks(GateDefinition(), {"help"}, None) == ("a rollback parent",)

    @pytest.mark.parametrize("state", list(State))
    def test_a_parent_that_is_candidate_here(self, state: State) -> None:
        """Only where it is asked for."""
        found = self.lacks(GateDefinition(parent="candidate"), {"help"}, state)
        assert found == (() if state is State.CANDIDATE else (f"a parent that is CANDIDATE here: old is {state}",))
        assert self.lacks(GateDefinition(), {"help"}, state) == ()


class TestEvidence:
    @pytest.mark.parametrize(
        ("to", "evidence", "expected"),
        [
            (State.RECONCILED, {"checks": {"labels": True, "parity": True}}, ()),
            (State.RECONCILED, {"checks": {"labels": True, "parity": False}}, ("the check parity",)),
            (State.RECONCILED, {}, ("`checks`",)),
            (State.RECONCILED, {"checks": {}}, ("`checks`",)),
            (State.EVALUATED, {"run": "r", "suite": "s"}, ()),
            (State.EVALUATED, {"run": "r"}, ("`suite`",)),
            (State.CANDIDATE, {"run": "r", "bundle": "b"}, ()),
            (State.CANDIDATE, {"bundle": ""}, ("`run`", "`bundle`")),
        ],
    )
    def test_what_it_does_not_tell(self, to: State, evidence: Any, expected: tuple[str, ...]) -> None:
        """Each part by name; a failed check too."""
        assert unproven(to, evidence) == expected
