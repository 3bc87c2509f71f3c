"""What people are told of a run, on a store that was worked out by hand."""

import pytest

from harness.output.cause import Cause
from harness.output.change import CaseChange, FirstAnswer, Predicted, Prediction, TransitionCount, Transitions
from harness.store import account, write
from harness.store.account import Loss, Unjudged
from harness.store.case import CaseAccount, Given, RankedDocument, SideAccount, ValueAccount, case_account
from harness.store.connection import Store

from .conftest import OTHER, RUN, SUITE, rows, write_decision, write_run, write_suite

OF_A = Predicted("REFUND", Prediction("LOGIN", 0.875, ()), Prediction("LOGIN", 0.5, ("tied",)))
OF_B = Predicted("LOGIN", Prediction("REFUND", 0.625, ()), Prediction("LOGIN", 0.75, ()))


class TestRuns:
    def test_the_latest_first(self, small: Store) -> None:
        """A run that was not decided says so."""
        with small.reading() as connection:
            found = account.runs(connection)
        assert [line.run for line in found] == [OTHER, RUN]
        assert found[1].as_record() == {
            "run": RUN, "suite": "small", "candidate": "new", "parent": "old", "decision": "unfinished",
            "exploratory": False, "updated_at": "1970-01-01T00:00:00Z",
        }  # fmt: skip

    def test_a_decided_run(self, empty: Store) -> None:
        """With what was decided."""
        with empty.writing() as connection:
            write_run(connection, RUN, 1)
            write.update(connection, "runs", {"run": RUN}, {"decision": "PASS", "exploratory": True})
        with empty.reading() as connection:
            (line,) = account.runs(connection)
        assert (line.decision, line.exploratory) == ("PASS", True)


class TestTransitions:
    def test_by_slice_with_all_first(self, small: Store) -> None:
        """q-b and q-c are typos; what nobody made is 0, and what was not tested has no p."""
        with small.reading() as connection:
            found = account.transitions(connection, RUN)
        assert found == Transitions("Success@1", (
            TransitionCount("all", 1, 1, both_wrong_different=1, lost_groups=1, won_groups=0, p=1.0),
            TransitionCount("typos", both_right=1, both_wrong_different=1),
        ))  # fmt: skip

    def test_slices_stand_in_the_suites_order(self, empty: Store) -> None:
        """Not in that of their names."""
        with empty.writing() as connection:
            write_suite(connection)
            rows(connection, "slices", {"suite_digest": SUITE}, "slice definition critical min_support",
                 ("a-later-one", "true", False, 20))  # fmt: skip
            rows(connection, "slice_members", {"suite_digest": SUITE}, "slice case_id", ("a-later-one", "q-b"))
            write_run(connection, RUN, 1)
            write_decision(connection)
        with empty.reading() as connection:
            found = account.transitions(connection, RUN)
        assert [each.slice for each in found.counts] == ["all", "typos", "a-later-one"]

    def test_without_a_parent_there_are_none(self, small: Store) -> None:
        """And no criterion."""
        with small.reading() as connection:
            assert account.transitions(connection, OTHER) == Transitions("", ())


class TestCaseChanges:
    def test_the_greatest_loss_first(self, small: Store) -> None:
        """q-a fell to .5 and q-b rose; q-c has no value, q-d is of another role."""
        with small.reading() as connection:
            found = account.case_changes(connection, RUN, "RR@10")
        assert found == (
            CaseChange("q-a", "refund", (), 1.0, 0.5, FirstAnswer("d3", "", 1), FirstAnswer("d9", "nine", -1), OF_A),
            CaseChange(
                "q-b",
                "reset pasword",
                ("typos",),
                0.5,
                1.0,
                FirstAnswer("d2", "", 1),
                FirstAnswer("d1", "one", 2),
                OF_B,
            ),
        )

    def test_of_a_loss_the_greatest_rise_first(self, losses: Store) -> None:
        """q-c rose by 2, q-a by 1, and q-b fell."""
        with losses.reading() as connection:
            found = account.case_changes(connection, RUN, "log_loss")
        assert [(each.case_id, each.candidate_value - each.parent_value) for each in found] == [
            ("q-c", 2.0), ("q-a", 1.0), ("q-b", -2.0),
        ]  # fmt: skip
        assert {each.predicted for each in found} == {None}

    def test_deltas_in_suite_order(self, small: Store) -> None:
        """Of the cases that both sides scored."""
        with small.reading() as connection:
            assert account.case_deltas(connection, RUN, "RR@10") == (0.5, -0.5)
            assert account.case_deltas(connection, OTHER, "RR@10") == ()


class TestLostMost:
    def test_worst_first(self, small: Store) -> None:
        """q-b lost .75 and q-a .25 of P@5; at most so many."""
        losses = (Loss("q-b", -0.75, "reset pasword"), Loss("q-a", -0.25, "refund"))
        with small.reading() as connection:
            assert account.lost_most(connection, RUN, "P@5", "all", 5) == losses
            assert account.lost_most(connection, RUN, "P@5", "all", 1) == losses[:1]
            assert account.lost_most(connection, OTHER, "P@5", "all", 5) == ()

    def test_of_a_loss_where_it_rose_most(self, losses: Store) -> None:
        with losses.reading() as connection:
            found = account.lost_most(connection, RUN, "log_loss", "all", 5)
        assert found == (Loss("q-c", 2.0, "login"), Loss("q-a", 1.0, "refund"))

    def test_of_a_slice(self, small: Store) -> None:
        """Its members alone; a name is text, no SQL."""
        with small.reading() as connection:
            found = account.lost_most(connection, RUN, "P@5", "typos", 5)
            assert [loss.case_id for loss in found] == ["q-b"]
            assert account.lost_most(connection, RUN, "P@5", "' OR ''='", 5) == ()


class TestCounted:
    @pytest.mark.parametrize(
        ("count", "cases"),
        [("missing", ["q-c"]), ("truncated", ["q-a"]), ("tied", ["q-a"]), ("failed", []), ("non-finite", [])],
    )
    def test_by_output_by_what_was_cut_and_by_flag(self, small: Store, count: str, cases: list[str]) -> None:
        """The candidate's promotion cases alone: q-d failed on the parent's side."""
        with small.reading() as connection:
            assert [each.case_id for each in account.counted(connection, RUN, count, "all", 5)] == cases

    def test_of_a_slice_and_at_most_so_many(self, small: Store) -> None:
        with small.reading() as connection:
            assert [each.case_id for each in account.counted(connection, RUN, "missing", "typos", 5)] == ["q-c"]
            assert account.counted(connection, RUN, "truncated", "typos", 5) == ()
            assert account.counted(connection, RUN, "missing", "all", 0) == ()
            assert account.counted(connection, OTHER, "missing", "all", 5) == ()


class TestJudgingQueue:
    def test_first_places_first(self, small: Store) -> None:
        """A negative judgement counts as none."""
        with small.reading() as connection:
            found = account.judging_queue(connection, RUN)
        assert found == (Unjudged("q-a", "refund", 1, "d9", "nine"), Unjudged("q-b", "reset pasword", 2, "d4", "four"))


class TestCaseAccount:
    def test_what_both_sides_did(self, small: Store) -> None:
        """The parent first, with at most so many documents; a document whose text was not kept has no head."""
        with small.reading() as connection:
            found = case_account(connection, RUN, "q-a", 1)
        assert found == CaseAccount(
            "promotion", "g1", "refund", (),
            (
                SideAccount("parent", "old", "ok", "", 8, 9, (RankedDocument(1, "d3", 0.8, 1, ""),)),
                SideAccount(
                    "candidate", "new", "ok", "", 8, 2, (RankedDocument(1, "d9", 0.7, -1, "nine"),),
                    Given(1, 0, ("d3",)),
                ),
            ),
            (ValueAccount("RR@10", 1.0, 0.5, -0.5, "scored"), ValueAccount("P@5", 0.5, 0.25, -0.25, "scored")),
            OF_A,
            (
                Cause("candidate-recall", "its last stage was not given d3"),
                Cause("tied", "its output hangs on a tie"),
            ),
        )  # fmt: skip

    def test_what_a_last_stage_was_given(self, small: Store) -> None:
        """Of q-b two documents, one of the two relevant ones among them; of q-c nothing, and nothing is relevant."""
        with small.reading() as connection:
            found = [case_account(connection, RUN, case_id, 5) for case_id in ("q-b", "q-c")]
        assert [[side.given for side in told.sides] for told in found if told] == [
            [None, Given(2, 1, ("d2",))], [None, Given(0, 0, ())],
        ]  # fmt: skip

    def test_a_metric_without_values_by_case_is_none_of_them(self, losses: Store) -> None:
        """f1_macro is of all cases together."""
        with losses.reading() as connection:
            told = case_account(connection, RUN, "q-a", 5)
        assert told is not None
        assert [each.metric for each in told.values] == ["log_loss"]
        assert told.predicted is None

    def test_a_side_without_an_output(self, small: Store) -> None:
        """No document, and why; the candidate's value is none, and why."""
        with small.reading() as connection:
            found = case_account(connection, RUN, "q-c", 5)
        assert found is not None
        assert found.slices == ("typos",)
        assert [(side.status, len(side.documents)) for side in found.sides] == [("ok", 1), ("missing", 0)]
        assert found.values == (
            ValueAccount("RR@10", 0.0, None, None, "missing"), ValueAccount("P@5", None, None, None, "missing"),
        )  # fmt: skip

    @pytest.mark.parametrize("case_id", ["nobody", "q", "Q-A", ""])
    def test_no_such_case(self, small: Store, case_id: str) -> None:
        """IDs are whole and exact."""
        with small.reading() as connection:
            assert case_account(connection, RUN, case_id, 5) is None
