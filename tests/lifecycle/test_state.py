"""A release goes DRAFT, RECONCILED, EVALUATED, CANDIDATE, each on evidence, and never skips."""

import json
from pathlib import Path

import pytest

from harness.errors import NotAdmitted, Tampered
from harness.lifecycle.state import LEDGER, ORDER, State, advance, evidence, refuse_changed, state

DRAFT, RECONCILED, EVALUATED, CANDIDATE = ORDER


def climb(folder: Path, content_id: str, to: State) -> None:
    for step in ORDER[1 : ORDER.index(to) + 1]:
        advance(folder, content_id, step, {"step": str(step)})


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / LEDGER).read_text().splitlines()]


class TestOrder:
    def test_the_four_states(self) -> None:
        """What comes after belongs to the deployment."""
        assert [str(each) for each in ORDER] == ["DRAFT", "RECONCILED", "EVALUATED", "CANDIDATE"]

    def test_nothing_proven_is_a_draft(self, tmp_path: Path) -> None:
        """Asking writes nothing."""
        assert state(tmp_path, "c1") is DRAFT
        assert not list(tmp_path.iterdir())

    def test_one_step_after_the_other(self, tmp_path: Path) -> None:
        """Each is one line with its evidence."""
        for step in ORDER[1:]:
            assert advance(tmp_path, "c1", step, {"run": str(step)}) is step
            assert state(tmp_path, "c1") is step
        assert [(line["state"], line["evidence"]) for line in lines(tmp_path)] == [
            (str(step), {"run": str(step)}) for step in ORDER[1:]
        ]

    @pytest.mark.parametrize(
        ("now", "to"), [(DRAFT, EVALUATED), (DRAFT, CANDIDATE), (RECONCILED, CANDIDATE)], ids=lambda each: str(each)
    )
    def test_no_state_is_skipped(self, tmp_path: Path, now: State, to: State) -> None:
        """The refusal names both, and the state stays."""
        climb(tmp_path, "c1", now)
        before = len(lines(tmp_path)) if now is not DRAFT else 0
        with pytest.raises(NotAdmitted) as refusal:
            advance(tmp_path, "c1", to, {"run": "r"})
        assert refusal.value.found == f"state {now}"
        assert str(to) in refusal.value.expected
        assert state(tmp_path, "c1") is now
        assert (tmp_path / LEDGER).exists() == (now is not DRAFT)
        assert before == (len(lines(tmp_path)) if before else 0)


class TestEvidence:
    def test_the_same_twice_appends_nothing(self, tmp_path: Path) -> None:
        """Also later, from a state further on, and whether a list or a tuple tells it."""
        climb(tmp_path, "c1", RECONCILED)
        advance(tmp_path, "c1", EVALUATED, {"run": "r", "suites": ["a", "b"]})
        before = (tmp_path / LEDGER).read_bytes()
        assert advance(tmp_path, "c1", EVALUATED, {"suites": ("a", "b"), "run": "r"}) is EVALUATED
        assert advance(tmp_path, "c1", RECONCILED, {"step": "RECONCILED"}) is EVALUATED
        assert (tmp_path / LEDGER).read_bytes() == before

    def test_further_evidence_for_a_state_already_reached(self, tmp_path: Path) -> None:
        """It is kept, and takes nothing back."""
        climb(tmp_path, "c1", CANDIDATE)
        assert advance(tmp_path, "c1", EVALUATED, {"run": "another"}) is CANDIDATE
        assert len(lines(tmp_path)) == 4

    def test_no_state_without_any(self, tmp_path: Path) -> None:
        """Nothing is written."""
        with pytest.raises(NotAdmitted, match="no evidence"):
            advance(tmp_path, "c1", RECONCILED, {})
        assert not list(tmp_path.iterdir())

    def test_what_was_shown_can_be_read(self, tmp_path: Path) -> None:
        """For one state of one content, in order."""
        climb(tmp_path, "c1", CANDIDATE)
        climb(tmp_path, "c2", EVALUATED)
        advance(tmp_path, "c1", EVALUATED, {"run": "another"})
        assert evidence(tmp_path, "c1", EVALUATED) == ({"step": "EVALUATED"}, {"run": "another"})
        assert evidence(tmp_path, "c3", EVALUATED) == ()


class TestContent:
    def test_changed_content_is_a_draft_again(self, tmp_path: Path) -> None:
        """What was proven is of the other content, and comes back with it."""
        climb(tmp_path, "c1", CANDIDATE)
        assert state(tmp_path, "c2") is DRAFT
        with pytest.raises(NotAdmitted):
            advance(tmp_path, "c2", EVALUATED, {"run": "r"})
        climb(tmp_path, "c2", RECONCILED)
        assert (state(tmp_path, "c2"), state(tmp_path, "c1")) == (RECONCILED, CANDIDATE)

    def test_the_same_evidence_for_other_content_is_another_step(self, tmp_path: Path) -> None:
        """One line each."""
        for content in ("c1", "c2"):
            advance(tmp_path, content, RECONCILED, {"parity": True})
        assert [line["content_id"] for line in lines(tmp_path)] == ["c1", "c2"]

    def test_a_step_on_changed_files(self, tmp_path: Path) -> None:
        """It is refused with both contents."""
        refuse_changed(tmp_path, then="c1", now="c1")
        with pytest.raises(Tampered, match="c2, shown for c1"):
            refuse_changed(tmp_path, then="c1", now="c2")


class TestTampering:
    def test_a_step_that_was_taken_out(self, tmp_path: Path) -> None:
        """Neither a state nor a step is given."""
        climb(tmp_path, "c1", CANDIDATE)
        kept = (tmp_path / LEDGER).read_text().splitlines(keepends=True)
        (tmp_path / LEDGER).write_text(kept[0] + kept[2])
        with pytest.raises(Tampered, match="line 2"):
            state(tmp_path, "c1")
        with pytest.raises(Tampered):
            advance(tmp_path, "c1", RECONCILED, {"new": True})
