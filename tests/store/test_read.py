"""Arrays in suite order, whatever the order in which rows were written or IDs sort."""

from datetime import datetime

import numpy as np
import pytest

from harness.errors import Misconfigured, NotFound
from harness.output.answer import Counts, Summary
from harness.output.decision import Outcome
from harness.output.exposure import Exposure
from harness.store import read, write
from harness.store.connection import Store

from .conftest import OTHER, RUN, SUITE, write_outputs, write_run, write_suite

ORDER = ["q-b", "q-a", "q-c", "q-d"]


def tables(connection):
    """All evidence of the run, by name."""
    return {each.name: each.rows.read_all() for each in read.evidence(connection, RUN)}


class TestFindRun:
    @pytest.mark.parametrize("name", ["ab12", "ab", "a"])
    def test_by_id_and_by_unique_prefix(self, small: Store, name: str) -> None:
        """Any number of digits that one run alone has."""
        with small.reading() as connection:
            found = read.find_run(connection, name)
        assert (found.run, found.candidate, found.parent, found.suite_place) == ("ab12", "new", "old", "suites/small")
        assert (found.decision, found.exploratory, found.reading, found.remarks) == (None, None, None, ())

    def test_the_latest(self, small: Store) -> None:
        """The one that was last run or decided: an old run that is decided again is the latest."""
        with small.reading() as connection:
            assert read.find_run(connection, "latest").run == "cd34"

    def test_the_latest_follows_a_decision(self, empty: Store) -> None:
        """`updated_at` moves, the run does not."""
        with empty.writing() as connection:
            write_run(connection, RUN, 1)
            write_run(connection, OTHER, 2)
            write.update(connection, "runs", {"run": RUN}, {"updated_at": datetime(2026, 12, 1)})
        with empty.reading() as connection:
            assert read.find_run(connection, "latest").run == RUN

    @pytest.mark.parametrize("name", ["ab123", "x", "AB12", "%", "a%", "_b12", "' OR ''='"])
    def test_no_such_run(self, small: Store, name: str) -> None:
        """A prefix is text, no pattern."""
        with small.reading() as connection, pytest.raises(NotFound):
            read.find_run(connection, name)

    def test_a_prefix_that_two_runs_have(self, small: Store) -> None:
        """Named, so that the next try can be longer."""
        with small.reading() as connection, pytest.raises(Misconfigured, match="ab12, cd34"):
            read.find_run(connection, "")


class TestWhatIsThere:
    def test_a_run(self, small: Store) -> None:
        """By its whole ID; a prefix is another question."""
        with small.reading() as connection:
            assert [read.has_run(connection, name) for name in (RUN, OTHER, "ab")] == [True, True, False]

    def test_findings_of_other_runs(self, small: Store) -> None:
        """Waived ones too; a run's own are not among them, and rules without one add nothing."""
        with small.reading() as connection:
            assert read.findings_besides(connection, OTHER) == {"e" * 64, "f" * 64}
            assert read.findings_besides(connection, RUN) == frozenset()

    def test_exposures_by_data_in_their_order(self, empty: Store) -> None:
        """The order of writing is that of reading the outcomes."""
        rows = [("r2", "d", "p", "c", None, "o"), ("r9", "e", "p", "c", "a", "o"), ("r1", "d", "q", "c", "a", "n")]
        with empty.writing() as connection:
            for row in rows:
                names = ("run", "data", "policy", "candidate", "parent", "outcomes")
                columns = {name: [value] for name, value in zip(names, row, strict=True)}
                write.append(connection, "exposures", {}, columns)
        with empty.reading() as connection:
            found = read.exposures(connection, "d")
        assert found == (Exposure(*rows[0]), Exposure(*rows[2]))


class TestOutcomesDigest:
    def change(self, empty: Store, *changes: str) -> str:
        with empty.writing() as connection:
            for table in ("suites", "cases", "judgements", "runs", "rankings"):
                connection.execute(f"DELETE FROM {table}")
            write_suite(connection)
            write_run(connection, RUN, 1)
            write_outputs(connection)
            for change in changes:
                connection.execute(change)
        with empty.reading() as connection:
            return read.outcomes_digest(connection, RUN)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE rankings SET score = score / 2", "UPDATE rankings SET release = 'renamed'",
            "DELETE FROM rankings WHERE side = 'parent'", "DELETE FROM rankings WHERE case_id = 'q-d'",
        ],
    )  # fmt: skip
    def test_what_leaves_it(self, empty: Store, change: str) -> None:
        """Scores that keep the order, another name, another parent, cases of another role."""
        assert self.change(empty, change) == self.change(empty)

    @pytest.mark.parametrize(
        "change",
        [
            "UPDATE rankings SET position = 3 - position WHERE case_id = 'q-a'",
            "DELETE FROM rankings WHERE case_id = 'q-a' AND position = 2",
            "UPDATE rankings SET document_id = 'd8' WHERE case_id = 'q-b' AND position = 2",
            "DELETE FROM rankings",
        ],
    )  # fmt: skip
    def test_what_changes_it(self, empty: Store, change: str) -> None:
        """Another order, a document less, another document, none at all."""
        assert self.change(empty, change) != self.change(empty)


class TestCases:
    def test_in_suite_order(self, small: Store) -> None:
        """With role and group."""
        with small.reading() as connection:
            found = read.cases(connection, SUITE)
        assert list(found.case_ids) == ORDER
        assert list(found.roles) == ["promotion", "promotion", "promotion", "development"]
        assert list(found.groups) == ["g1", "g1", "g2", "g3"]


class TestRankings:
    def test_the_candidates_arrays(self, small: Store) -> None:
        """q-b ranks d1 .9, d4 .8; q-a d9 .7, d3 .6; q-c nothing; q-d d1 .5.

        Judged, by document ID: q-b d1 (2), d2 (1, not retrieved); q-a d3 (1), d9 (-1); q-c none; q-d d1 (1).
        """
        with small.reading() as connection:
            found = read.rankings(connection, RUN, "candidate")
        assert list(found.case_ids) == ORDER
        assert list(found.status) == ["ok", "ok", "missing", "ok"]
        assert list(found.truncated) == [False, True, False, False]
        assert list(found.non_finite) == [False] * 4
        assert list(found.crossing) == [7, 0, 0, 0]
        assert list(found.offsets) == [0, 2, 4, 4, 5]
        assert list(found.scores) == [0.9, 0.8, 0.7, 0.6, 0.5]
        assert list(found.judged_offsets) == [0, 2, 4, 4, 5]
        assert list(found.judged_grade) == [2, 1, 1, -1, 1]
        np.testing.assert_array_equal(found.judged_score, [0.9, np.nan, 0.6, 0.7, 0.5])
        assert list(found.judged_position) == [0, -1, 1, 0, 0]

    def test_the_parents_arrays(self, small: Store) -> None:
        """The same judgements beside other rankings; a failed case keeps its judgements and ranks nothing."""
        with small.reading() as connection:
            found = read.rankings(connection, RUN, "parent")
        assert list(found.status) == ["ok", "ok", "ok", "failed"]
        assert list(found.non_finite) == [False, False, False, True]
        assert list(found.offsets) == [0, 1, 2, 3, 3]
        assert list(found.scores) == [0.9, 0.8, 0.4]
        np.testing.assert_array_equal(found.judged_score, [np.nan, 0.9, 0.8, np.nan, np.nan])
        assert list(found.judged_position) == [-1, 0, 0, -1, -1]

    def test_types_do_not_depend_on_content(self, small: Store) -> None:
        """A side without a single row has arrays of the same types."""
        with small.reading() as connection:
            full, nothing = (read.rankings(connection, RUN, side) for side in ("candidate", "nobody"))
        for name in read.RankingRows.__dataclass_fields__:
            assert getattr(full, name).dtype == getattr(nothing, name).dtype, name
        assert list(nothing.offsets) == [0] == list(nothing.judged_offsets)

    def test_runs_do_not_mix(self, small: Store) -> None:
        """The other run put d2 first."""
        with small.reading() as connection:
            found = read.rankings(connection, "cd34", "candidate")
            first = read.first_documents(connection, RUN)
        assert list(found.case_ids) == ["q-b"]
        assert list(found.judged_position) == [-1, 0]
        assert first == {
            ("candidate", "q-b"): "d1", ("candidate", "q-a"): "d9", ("candidate", "q-d"): "d1",
            ("parent", "q-b"): "d2", ("parent", "q-a"): "d3", ("parent", "q-c"): "d5",
        }  # fmt: skip

    def test_judged_documents_stand_in_the_order_of_their_bytes(self, empty: Store) -> None:
        """Not in that of a language: B, a, ä, an emoji."""
        ids = ["ä", "a", "😀", "B"]
        with empty.writing() as connection:
            write.append(connection, "runs", {"run": RUN, "suite_digest": SUITE}, {
                "suite": ["s"], "suite_place": ["p"], "candidate": ["c"], "version": ["1"],
                "updated_at": [np.datetime64("2026-01-01", "us")],
            })  # fmt: skip
            write.append(connection, "cases", {"suite_digest": SUITE, "case_id": "q"}, {
                "position": [0], "role": ["promotion"], "case_group": ["g"], "answerable": [True], "text": [""],
            })  # fmt: skip
            write.append(connection, "outputs", {"run": RUN, "side": "candidate", "release": "c", "case_id": "q"}, {
                "status": ["ok"], "reason": [""], "non_finite": [False], "retrieved": [0], "crossing": [0],
            })  # fmt: skip
            judged = {"document_id": ids, "grade": [3, 2, 4, 1]}
            write.append(connection, "judgements", {"suite_digest": SUITE, "case_id": "q"}, judged)
        with empty.reading() as connection:
            assert list(read.rankings(connection, RUN, "candidate").judged_grade) == [1, 2, 3, 4]


class TestCandidates:
    def test_how_many_each_case_was_given_and_which_judged_ones(self, small: Store) -> None:
        """In suite order q-b, q-a, q-c, q-d; judgements by document: d1 and not d2 of q-b, d9 and not d3 of q-a."""
        with small.reading() as connection:
            found = read.candidates(connection, RUN, "candidate")
            rows = read.rankings(connection, RUN, "candidate")
        assert found is not None
        assert found.counts.tolist() == [2, 1, 0, 0]
        assert rows.judged_offsets.tolist() == [0, 2, 4, 4, 5]
        assert found.given.tolist() == [True, False, False, True, False]

    def test_a_side_without_a_last_stage_has_none(self, small: Store) -> None:
        with small.reading() as connection:
            assert read.candidates(connection, RUN, "parent") is None
            found = read.candidate_sets(connection, RUN)
        assert {side: (each.cases, each.pairs) for side, each in found.items()} == {"candidate": (2, 3)}


class TestResults:
    def test_rules_come_back_in_the_order_of_the_suite(self, small: Store) -> None:
        """Typed, with None where a figure does not apply."""
        with small.reading() as connection:
            found = read.rule_results(connection, RUN)
        assert [rule.id for rule in found] == ["first", "second", "guard:typos:RR@10", "always:failed"]
        assert [rule.outcome for rule in found] == [Outcome.WAIVED, Outcome.UNDECIDED, Outcome.FAIL, Outcome.PASS]
        assert all(isinstance(rule.outcome, Outcome) for rule in found)
        assert [rule.awaits_judging for rule in found] == [False, True, False, False]
        assert (found[2].delta, found[2].p_adjusted, found[2].finding, found[1].delta) == (-0.2, 0.01, "e" * 64, None)

    def test_summaries_by_side_slice_and_metric(self, small: Store) -> None:
        """In the order in which they were written."""
        with small.reading() as connection:
            found = read.summaries(connection, RUN)
        assert found["parent"] == {"all": {"RR@10": Summary(0.5, 0.0, 1.0, 3, 3, 2)}}
        assert list(found["candidate"]) == ["typos", "all"]
        assert found["candidate"]["all"]["P@5"] == Summary(0.25, None, None, 2, 3, 1)

    def test_counts(self, small: Store) -> None:
        """Names with a hyphen become fields."""
        with small.reading() as connection:
            assert read.counts(connection, RUN, "candidate") == Counts(3, 1, 0, 0, 1, 0)


class TestEvidence:
    def test_the_same_rows_in_another_order_are_the_same_tables(self, empty: Store) -> None:
        """What is bundled depends on what happened, not on the order of writing."""
        rows = [("q1", "d1", 1), ("q1", "d2", -1), ("q0", "d1", 0)]
        found = []
        for order in (rows, rows[::-1]):
            with empty.writing() as connection:
                write.replace(connection, "runs", {"run": RUN, "suite_digest": SUITE}, {
                    "suite": ["s"], "suite_place": ["p"], "candidate": ["c"], "version": ["1"],
                    "updated_at": [np.datetime64("2026-01-01", "us")],
                })  # fmt: skip
                names = zip(("case_id", "document_id", "grade"), zip(*order, strict=True), strict=True)
                columns = {name: list(column) for name, column in names}
                write.replace(connection, "judgements", {"suite_digest": SUITE}, columns)
            with empty.reading() as connection:
                found.append(tables(connection))
        assert found[0] == found[1]
        assert found[0]["judgements"].num_rows == 3

    def test_it_is_of_one_run(self, small: Store) -> None:
        """Its own rankings, and the suite's cases."""
        with small.reading() as connection:
            found = tables(connection)
        assert found["rankings"].num_rows == 8
        assert set(found["rankings"]["run"].to_pylist()) == {RUN}
        assert found["cases"].num_rows == 4

    def test_clocks_stay_out(self, small: Store) -> None:
        """No table says when, or how long it took."""
        with small.reading() as connection:
            found = tables(connection)
        assert not {"runs", "steps"} & set(found)
        assert not {"updated_at", "seconds"} & {name for table in found.values() for name in table.column_names}
