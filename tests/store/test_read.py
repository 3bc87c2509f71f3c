"""Arrays in suite order, whatever the order in which rows were written or IDs sort."""

from datetime import datetime

import pytest

from harness.errors import Misconfigured, NotFound
from harness.output.answer import Counts, Summary
from harness.output.decision import Outcome
from harness.output.exposure import Exposure
from harness.store import read, write
from harness.store.connection import Store

from .conftest import OTHER, RUN, SUITE, write_outputs, write_run, write_suite

ORDER = ["q-b", "q-a", "q-c", "q-d"]


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
