"""Every view answers its question on a store that was worked out by hand."""

import re
from importlib import resources

import pytest

from harness.rows.windows import multiplicity, split
from harness.store import write
from harness.store.connection import Store
from harness.store.query import query

SCRIPT = resources.files("harness.store").joinpath("views.sql").read_text(encoding="utf-8")
VIEWS = re.findall(r"CREATE OR REPLACE VIEW (\w+)", SCRIPT)


def view(store: Store, columns: str, name: str) -> list[tuple[object, ...]]:
    """Rows in the view's own order."""
    return list(query(store, f"SELECT {columns} FROM {name} WHERE run LIKE 'ab%'").rows)


class TestEveryView:
    def test_there_are_views(self) -> None:
        """Eighteen of them; a new one wants a test here."""
        assert sorted(VIEWS) == sorted([
            "case_deltas", "worst_regressions", "slice_scoreboard", "transition_counts", "first_answers",
            "judging_queue", "cut_cases", "cases_without_output", "open_rules", "cut_pairs", "out_of_reach",
            "case_predictions", "confusions", "slice_cases", "regressed_cases", "case_causes", "cause_counts",
            "windows",
        ])  # fmt: skip

    @pytest.mark.parametrize("name", VIEWS)
    def test_it_can_be_asked_of_one_run(self, small: Store, name: str) -> None:
        """`WHERE run LIKE` works on each, as the script says; a run of which nothing is known has no rows."""
        assert query(small, f"SELECT * FROM {name} WHERE run LIKE 'ab%'").rows
        assert not query(small, f"SELECT * FROM {name} WHERE run LIKE 'zz%'").rows

    @pytest.mark.parametrize("name", VIEWS)
    def test_a_question_stands_before_it(self, name: str) -> None:
        """One line of comment, so that a reader need not read the SQL."""
        assert re.search(rf"^-- .+\nCREATE OR REPLACE VIEW {name} ", SCRIPT, re.MULTILINE)


class TestCaseDeltas:
    def test_candidate_minus_parent(self, small: Store) -> None:
        """NULL where a side has no value, with both reasons; the other role is there and says so."""
        columns = (
            "case_id, role, case_group, parent_value, candidate_value, delta, candidate_status, parent_status, text"
        )
        found = query(small, f"SELECT {columns} FROM case_deltas WHERE metric = 'RR@10' ORDER BY case_id").rows
        assert found == (
            ("q-a", "promotion", "g1", 1.0, 0.5, -0.5, "scored", "scored", "refund"),
            ("q-b", "promotion", "g1", 0.5, 1.0, 0.5, "scored", "scored", "reset pasword"),
            ("q-c", "promotion", "g2", 0.0, None, None, "missing", "scored", "login"),
            ("q-d", "development", "g3", None, 0.0, None, "scored", "failed", "chosen on"),
        )

    def test_a_case_that_the_parent_was_not_measured_on(self, small: Store) -> None:
        """It stands with no parent at all."""
        found = query(small, "SELECT case_id, parent_status FROM case_deltas WHERE metric = 'P@5' ORDER BY 1").rows
        assert found == (("q-a", "scored"), ("q-b", "scored"), ("q-c", None), ("q-d", "scored"))


class TestWorstRegressions:
    def test_worst_first_and_promotion_alone(self, small: Store) -> None:
        """P@5: q-b lost .75 and q-a .25; RR@10: q-a lost .5, and q-b gained; q-d is none of them."""
        assert view(small, "metric, case_id, delta, text", "worst_regressions") == [
            ("P@5", "q-b", -0.75, "reset pasword"), ("P@5", "q-a", -0.25, "refund"), ("RR@10", "q-a", -0.5, "refund"),
        ]  # fmt: skip

    def test_of_a_loss_where_it_rose_most(self, losses: Store) -> None:
        """Of log_loss q-a rose by 1 and q-c by 2; q-b fell, which is a gain."""
        assert view(losses, "case_id, delta", "worst_regressions") == [("q-c", 2.0), ("q-a", 1.0)]


class TestCasePredictions:
    def test_both_sides_beside_what_holds_in_suite_order(self, small: Store) -> None:
        """The parent said nothing of q-d; of q-c nobody knows what holds."""
        columns = "case_id, role, gold, parent, candidate, parent_probability, candidate_probability, candidate_flags"
        assert view(small, columns, "case_predictions") == [
            ("q-b", "promotion", "LOGIN", "REFUND", "LOGIN", 0.625, 0.75, []),
            ("q-a", "promotion", "REFUND", "LOGIN", "LOGIN", 0.875, 0.5, ["tied"]),
            ("q-c", "promotion", None, "LOGIN", None, 0.25, None, []),
            ("q-d", "development", "REFUND", None, "LOGIN", None, 0.75, []),
        ]  # fmt: skip


class TestConfusions:
    def test_what_was_given_for_what_by_side(self, small: Store) -> None:
        """Promotion alone, so q-d is none; what holds where nobody knows is NULL."""
        assert view(small, "side, gold, prediction, cases", "confusions") == [
            ("candidate", "REFUND", "LOGIN", 1),
            ("parent", "LOGIN", "REFUND", 1), ("parent", "REFUND", "LOGIN", 1), ("parent", None, "LOGIN", 1),
        ]  # fmt: skip


class TestSliceScoreboard:
    def test_both_sides_and_the_difference(self, small: Store) -> None:
        """What the parent lacks is NULL; the counts are the candidate's."""
        columns = "slice, metric, parent_value, candidate_value, delta, low, high, n_scored, n_total, n_groups, mde"
        assert view(small, columns, "slice_scoreboard") == [
            ("all", "P@5", None, 0.25, None, None, None, 2, 3, 1, None),
            ("all", "RR@10", 0.5, 0.75, 0.0, -0.5, 0.5, 2, 3, 1, 0.4),
            ("typos", "RR@10", None, 1.0, None, None, None, 1, 2, 1, None),
        ]


class TestTransitionCounts:
    def test_by_slice_and_over_all(self, small: Store) -> None:
        """q-b and q-c are typos; q-d has no transition, so `all` counts three."""
        assert view(small, "slice, transition, cases", "transition_counts") == [
            ("all", "both-right", 1), ("all", "both-wrong-different", 1), ("all", "parent-only", 1),
            ("typos", "both-right", 1), ("typos", "both-wrong-different", 1),
        ]  # fmt: skip


class TestFirstAnswers:
    def test_what_each_side_put_first(self, small: Store) -> None:
        """In suite order; a document that nobody judged has no grade, one that was not kept no head."""
        assert view(small, "side, case_id, document_id, head, score, grade", "first_answers") == [
            ("candidate", "q-b", "d1", "one", 0.9, 2), ("candidate", "q-a", "d9", "nine", 0.7, -1),
            ("candidate", "q-d", "d1", "one", 0.5, 1),
            ("parent", "q-b", "d2", None, 0.9, 1), ("parent", "q-a", "d3", None, 0.8, 1),
            ("parent", "q-c", "d5", None, 0.4, None),
        ]  # fmt: skip


class TestJudgingQueue:
    def test_unjudged_documents_of_the_candidates_promotion_cases(self, small: Store) -> None:
        """A negative judgement counts as none; what stands first is asked first; the parent's d5 is not asked."""
        assert view(small, "case_id, position, document_id, head", "judging_queue") == [
            ("q-a", 1, "d9", "nine"), ("q-b", 2, "d4", "four"),
        ]  # fmt: skip


class TestCutCases:
    def test_most_lost_first(self, small: Store) -> None:
        """A case that lost nothing, or of which nothing is known, is not cut."""
        assert view(small, "side, case_id, tokens_kept, tokens_lost, text", "cut_cases") == [
            ("candidate", "q-a", 8, 2, "refund"), ("parent", "q-a", 8, 9, "refund"), ("parent", "q-c", 8, 3, "login"),
        ]  # fmt: skip


class TestWindows:
    def test_one_row_for_each(self, small: Store) -> None:
        """Of ten tokens in windows of four, every two, each window shares two with the next, and no token stands in
        more than two; three and two tokens share nothing.
        """
        columns = "member, reads, case_id, document_id, position, token_start, token_end, tokens, character_start"
        found = view(
            small, f"{columns}, left_tokens, right_tokens, owned_start, stride, windows, multiplicity", "windows"
        )
        assert found == [
            ("first", "query", "q-a", None, 1, 0, 3, 3, 0, 0, 0, None, 3, 2, 1),
            ("first", "query", "q-a", None, 2, 3, 5, 2, 12, 0, 0, None, 3, 2, 1),
            (None, "document", None, "d2", 1, 0, 4, 4, 0, 0, 2, 0, 2, 4, 2),
            (None, "document", None, "d2", 2, 2, 6, 4, 10, 2, 2, 4, 2, 4, 2),
            (None, "document", None, "d2", 3, 4, 8, 4, 20, 2, 2, 6, 2, 4, 2),
            (None, "document", None, "d2", 4, 6, 10, 4, 30, 2, 0, 8, 2, 4, 2),
        ]

    @pytest.mark.parametrize(("count", "size", "stride"), [(10, 4, 2), (11, 5, 2), (30, 7, 3), (8, 7, 1), (9, 5, 4)])
    def test_multiplicity_is_what_counting_gives(self, empty: Store, count: int, size: int, stride: int) -> None:
        """In how many windows a token stands at most."""
        spans = split(count, size, stride)
        lists = {"token_start": [spans[:, 0].tolist()], "token_end": [spans[:, 1].tolist()]}
        also = {name: [[0] * len(spans)] for name in ("character_start", "character_end")}
        row = {
            "reads": ["query"],
            "reading": [1],
            "size": [size],
            "aggregation": ["best"],
            "around": [0],
            "uncovered": [0],
        }
        with empty.writing() as connection:
            key = {"run": "ab", "side": "candidate", "release": "new"}
            write.append(connection, "texts_in_windows", key, {**row, **lists, **also})
        expected = multiplicity(spans, count).max()
        assert set(view(empty, "multiplicity", "windows")) == {(expected,)}


class TestCutPairs:
    def test_most_lost_first_and_by_text(self, small: Store) -> None:
        """A pair that was read whole is not cut."""
        columns = "side, case_id, document_id, query_tokens_lost, document_tokens_lost"
        assert view(small, columns, "cut_pairs") == [
            ("candidate", "q-b", "d4", 1, 20), ("candidate", "q-a", "d9", 0, 12),
        ]  # fmt: skip


class TestOutOfReach:
    def test_relevant_documents_that_were_no_candidates(self, small: Store) -> None:
        """Of a side with a last stage alone, in suite order: d1 of q-b was given, what is judged below 1 is no loss."""
        assert view(small, "side, case_id, document_id, grade", "out_of_reach") == [
            ("candidate", "q-b", "d2", 1), ("candidate", "q-a", "d3", 1), ("candidate", "q-d", "d1", 1),
        ]  # fmt: skip


class TestCasesWithoutOutput:
    def test_with_the_reason(self, small: Store) -> None:
        """Missing and failed, on either side."""
        assert view(small, "side, case_id, status, reason", "cases_without_output") == [
            ("candidate", "q-c", "missing", ""), ("parent", "q-d", "failed", "no number"),
        ]  # fmt: skip


class TestOpenRules:
    def test_most_serious_first(self, small: Store) -> None:
        """FAIL, UNDECIDED, WAIVED; a PASS is closed."""
        assert view(small, "id, outcome, p_adjusted, reason", "open_rules") == [
            ("guard:typos:RR@10", "FAIL", 0.01, "worse"), ("second", "UNDECIDED", None, "few"),
            ("first", "WAIVED", None, "known"),
        ]  # fmt: skip
