"""A stored run decided again: one lock decides, and everything that speaks of the run speaks of that lock."""

import json
import re
import shutil
from pathlib import Path

import pytest

import harness
from harness.errors import Misconfigured, NotFound
from harness.output.decision import Outcome, RuleResult
from harness.verb.decide import OTHER_DATA

from .conftest import GUARDS, HEADLINE, Project

pytestmark = pytest.mark.usefixtures("plain_page")

WIDE = HEADLINE.replace("0.02", "0.9")
PLAIN_SLICE = '[[slices]]\nname = "plain"\nwhere = "kind = \'plain\'"\n'


def lock_of(project: Project) -> dict[str, object]:
    return json.loads((project.root / "suites/s/suite.lock.json").read_bytes())


def rule(answer: object, name: str) -> RuleResult:
    return next(each for each in answer.decision.rules if each.id == name)


def report_of(run: str) -> str:
    return Path("reports", run, "report.md").read_text()


class TestOneLock:
    def test_answer_report_and_views_follow_the_lock_that_decides(self, project: Project) -> None:
        """A wider margin and another slice: nothing goes on speaking of the old ones."""
        harness.freeze("s")
        found = harness.run("s", candidate="worse", parent="old")
        assert (found.exit_code, found.suite_digest) == (1, lock_of(project)["digest"])
        assert "within the margin" not in report_of(found.run)
        project.suite(rules=WIDE + GUARDS.replace('"every"', '["plain"]'), more=PLAIN_SLICE)
        harness.freeze("s")
        again = harness.decide(found.run)
        assert again.suite_digest == lock_of(project)["digest"] != found.suite_digest
        assert [each.id for each in again.decision.rules][:2] == ["headline", "guard:plain:RR@10"]
        told = report_of(found.run)
        assert "EXPLORATORY" in told
        assert "plain" in told
        assert again.suite_digest[:12] in told
        slices = harness.sql("SELECT DISTINCT slice FROM transition_counts ORDER BY slice").rows
        assert slices == (("all",), ("plain",), ("typo",))
        assert "plain" in harness.explain(found.run, case="q0")

    def test_back_under_the_first_lock(self, project: Project) -> None:
        """The same bytes as before the detour."""
        harness.freeze("s")
        found = harness.run("s", candidate="worse", parent="old")
        told = report_of(found.run)
        project.suite(rules=WIDE)
        harness.freeze("s")
        harness.decide(found.run)
        assert report_of(found.run) != told
        project.suite()
        harness.freeze("s")
        assert harness.decide(found.run) == found
        assert report_of(found.run) == told

    def test_other_data_leave_the_runs_own_lock(self, project: Project) -> None:
        """New judgements say nothing of outcomes that were measured by the old ones; the decision says so."""
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        project.judge("q0 d1 1")
        project.suite(rules=HEADLINE.replace("0.02", "0.03"))
        project.judge("q0 d1 1")
        harness.freeze("s")
        again = harness.decide(found.run)
        assert OTHER_DATA in again.remarks and OTHER_DATA not in found.remarks
        assert again.suite_digest == found.suite_digest != lock_of(project)["digest"]
        assert again.decision.rules == found.decision.rules

    def test_without_its_suite_nothing_is_decided(self, project: Project) -> None:
        """Its exposures and waivers would be unknown."""
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        shutil.rmtree(project.root / "suites/s")
        with pytest.raises(NotFound, match="Put it back"):
            harness.decide(found.run)

    def test_the_latest_is_the_one_that_was_decided_last(self, project: Project) -> None:
        """Not the one that was run last."""
        harness.freeze("s")
        first = harness.run("s", candidate="better", parent="old")
        second = harness.run("s", candidate="worse", parent="old")
        assert harness.decide("latest").run == second.run
        harness.decide(first.run)
        assert harness.decide("latest").run == first.run
        assert [line.run for line in harness.runs()] == [first.run, second.run]


class TestStates:
    def test_without_a_parent_it_ends_at_evaluated(self, project: Project) -> None:
        """Floors and invariants alone make no candidate: there is nothing to roll back to."""
        project.suite(rules='[[rules]]\nid = "floor"\nkind = "at-least"\nmetric = "RR@10"\nvalue = 0.9\n' + HEADLINE)
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="none")
        assert (found.exit_code, found.bundle) == (0, None)
        assert project.states("better") == ["RECONCILED", "EVALUATED"]
        with pytest.raises(Misconfigured, match="without a parent"):
            harness.bundle(found.run)
        assert project.states("better") == ["RECONCILED", "EVALUATED"]
        assert not (project.root / "releases/better/bundles").exists()

    def test_a_pass_on_deciding_again_is_evaluated(self, project: Project) -> None:
        """`decide` takes the step that `run` would have taken; the bundle is asked for by its own name."""
        harness.freeze("s")
        failed = harness.run("s", candidate="worse", parent="old")
        assert project.states("worse") == ["RECONCILED"]
        waive(project, failed)
        passed = harness.decide(failed.run)
        assert (passed.decision.outcome, passed.bundle) == (Outcome.PASS, None)
        assert project.states("worse") == ["RECONCILED", "EVALUATED"]

    def test_an_exploratory_pass_is_not(self, project: Project) -> None:
        """Its rules were chosen with the outcomes at hand."""
        harness.freeze("s")
        found = harness.run("s", candidate="worse", parent="old")
        project.suite(rules=WIDE)
        harness.freeze("s")
        assert harness.decide(found.run).exit_code == 3
        assert project.states("worse") == ["RECONCILED"]

    def test_a_parent_that_passed_under_another_lock_is_remarked(self, project: Project) -> None:
        """The chain of comparisons has a joint there; under one lock nothing is said."""
        harness.freeze("s")
        harness.run("s", candidate="better", parent="old")
        then = str(lock_of(project)["digest"])
        project.recorded("next", lambda i: 1, others=("d3", "d2", "d1"))
        assert not any("another lock" in each for each in harness.run("s", candidate="next", parent="better").remarks)
        project.suite(rules=HEADLINE.replace("0.02", "0.3"))
        harness.freeze("s")
        project.recorded("third", lambda i: 1, others=("d2", "d3", "d1"))
        found = harness.run("s", candidate="third", parent="better")
        (remark,) = [each for each in found.remarks if "another lock" in each]
        assert then[:12] in remark and found.suite_digest[:12] in remark
        assert (found.decision.outcome, found.decision.exploratory) == (Outcome.PASS, False)


class TestAfterAFail:
    """What may be changed once a candidate's outcomes were read, and what makes a later PASS exploratory."""

    @pytest.fixture
    def failed(self, project: Project) -> Project:
        harness.freeze("s")
        assert harness.run("s", candidate="worse", parent="old").exit_code == 1
        return project

    def again(self, project: Project, *judgements: str, **changes: str) -> object:
        project.suite(**changes)
        project.judge(*judgements)
        harness.freeze("s")
        return harness.run("s", candidate="worse", parent="old")

    @pytest.mark.parametrize("line", ["depth = 50", 'ties = "trec"', "grid = 1e-4", 'self_match = "drop"'])
    def test_how_rankings_are_cut_together_with_the_margin(self, failed: Project, line: str) -> None:
        """A new depth makes new outputs, and no new start."""
        found = self.again(failed, rules=WIDE, more=f"[ranking]\n{line}\n")
        assert (found.decision.outcome, found.decision.exploratory, found.exit_code) == (Outcome.PASS, True, 3)
        assert found.reading == 2

    def test_how_rankings_are_cut_alone(self, failed: Project) -> None:
        """It is a choice like any other."""
        assert self.again(failed, more="[ranking]\ndepth = 50\n").decision.exploratory

    def test_a_data_file_together_with_the_margin(self, failed: Project) -> None:
        """One more judgement does not make the rules first ones."""
        found = self.again(failed, "q0 d7 1", rules=WIDE)
        assert (found.decision.exploratory, found.reading) == (True, 2)

    def test_a_data_file_alone(self, failed: Project) -> None:
        """Judging what was unjudged is how a suite grows: counted, not exploratory."""
        found = self.again(failed, "q0 d7 1")
        assert (found.decision.exploratory, found.reading) == (False, 2)

    def test_a_ledger_that_was_taken_away(self, failed: Project) -> None:
        """The store remembers, and writes it again."""
        ledger = failed.root / "suites/s/exposures.jsonl"
        ledger.unlink()
        found = self.again(failed, rules=WIDE)
        assert (found.decision.exploratory, found.reading) == (True, 2)
        assert len(ledger.read_text().splitlines()) == 2

    def test_the_same_outcomes_under_another_name(self, failed: Project) -> None:
        """A renamed copy with another revision is no other candidate."""
        folder = failed.recorded("renamed", lambda i: 3 if i % 3 else 1)
        with (folder / "release.toml").open("a") as stream:
            stream.write('revision = "2"\n')
        failed.suite(rules=WIDE)
        harness.freeze("s")
        assert harness.run("s", candidate="renamed", parent="old").decision.exploratory


class TestLackingOutcomes:
    @pytest.mark.parametrize("cases", ["", 'missing = "zero"'])
    def test_a_case_that_failed_on_the_parents_side_is_undecided(self, project: Project, cases: str) -> None:
        """The candidate cannot be shown no worse where the parent has no value."""
        project.suite(cases=cases)
        folder = project.recorded("broken", lambda i: 1 + i % 2)
        text = (folder / "run.trec").read_text()
        (folder / "run.trec").write_text(text.replace("q7 Q0 d2 3 7 tag", "q7 Q0 d2 3 nan tag"))
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="broken")
        assert (found.decision.outcome, found.exit_code) == (Outcome.UNDECIDED, 3)
        assert rule(found, "always:missing").reason == "1 case failed on the parent's"

    def test_a_guard_that_is_shown_worse_fails_in_spite_of_missing_cases(self, project: Project) -> None:
        """Leaving out a case does not turn a FAIL into UNDECIDED."""
        harness.freeze("s")
        project.recorded("gaps", lambda i: 3 if i else 0)
        found = harness.run("s", candidate="gaps", parent="old")
        assert found.exit_code == 1
        assert rule(found, "guard:typo:RR@10").outcome is Outcome.FAIL
        assert rule(found, "headline").outcome is Outcome.UNDECIDED


class TestJudgingQueue:
    @pytest.fixture
    def unread(self, project: Project) -> Project:
        """The parent's documents d0 and d1 are judged; the candidate puts three that nobody read before d0."""
        project.suite(rules=HEADLINE, more="[ranking]\nmax_judged_gap = 0.2\n")
        project.judge(*(f"q{i} d1 0" for i in range(60)))
        project.recorded("unread", lambda i: 4, others=("d4", "d5", "d6"))
        harness.freeze("s")
        return project

    def test_it_is_written_beside_the_report(self, unread: Project) -> None:
        """Judged@10 fell from .5 to .25: UNDECIDED, and what to read next, first places first."""
        found = harness.run("s", candidate="unread", parent="old")
        assert (found.exit_code, rule(found, "headline").awaits_judging) == (3, True)
        lines = Path("reports", found.run, "judging-queue.jsonl").read_text().splitlines()
        queue = [json.loads(line) for line in lines]
        assert len(queue) == 180
        assert queue[0] == {
            "case_id": "q0", "text": "question 0", "position": 1, "document_id": "d4", "head": "article 4",
        }  # fmt: skip
        assert [each["document_id"] for each in queue[::60]] == ["d4", "d5", "d6"]

    def test_it_goes_when_nothing_awaits_it(self, unread: Project) -> None:
        """Judged as irrelevant, the documents excuse nothing: the same candidate now fails."""
        harness.run("s", candidate="unread", parent="old")
        unread.judge(*(f"q{i} d{document} 0" for i in range(60) for document in (4, 5, 6)))
        harness.freeze("s")
        found = harness.run("s", candidate="unread", parent="old")
        assert (found.exit_code, found.decision.exploratory) == (1, False)
        assert not Path("reports", found.run, "judging-queue.jsonl").exists()

    def test_no_queue_for_other_undecided_rules(self, project: Project) -> None:
        """A missing case is not waiting for a judge."""
        harness.freeze("s")
        project.recorded("gaps", lambda i: 1 if i else 0)
        found = harness.run("s", candidate="gaps", parent="old")
        assert found.exit_code == 3
        assert not Path("reports", found.run, "judging-queue.jsonl").exists()


def waive(project: Project, *answers: object, expires: str = "2999-01-01T00:00:00Z") -> None:
    """A waiver for every FAIL of some runs."""
    tables = [
        f'[[waivers]]\nrule = "{each.id}"\nslice = "{each.slice}"\nreason = "known"\napprover = "search team"\n'
        f'expires = {expires}\nfinding = "{each.finding}"\n'
        for answer in answers
        for each in answer.decision.rules
        if each.finding
    ]
    (project.root / "suites/s/waivers.toml").write_text('schema = "harness.waivers.v1"\n' + "\n".join(tables))


class TestWaivers:
    def test_one_for_another_candidate_is_no_error(self, project: Project) -> None:
        """A suite judges many; each waiver is held against all that was found."""
        harness.freeze("s")
        failed = harness.run("s", candidate="worse", parent="old")
        waive(project, failed)
        found = harness.run("s", candidate="better", parent="old")
        assert found.exit_code == 0
        assert not any(each.outcome is Outcome.WAIVED for each in found.decision.rules)
        assert harness.decide(failed.run).exit_code == 0
        assert harness.decide(failed.run).exit_code == 0

    def test_a_waived_run_can_be_bundled(self, project: Project) -> None:
        """With the waived rule and its reason in the bundle."""
        harness.freeze("s")
        failed = harness.run("s", candidate="worse", parent="old")
        waive(project, failed)
        harness.decide(failed.run)
        found = harness.bundle(failed.run)
        assert found.bundle and harness.verify(found.bundle).ok
        decision = json.loads(Path(found.bundle, "decision.json").read_bytes())
        waived = [each for each in decision["rules"] if each["outcome"] == "WAIVED"]
        assert (decision["decision"], len(waived)) == ("PASS", sum(1 for each in failed.decision.rules if each.finding))
        assert all("search team" in each["reason"] for each in waived)
        assert project.states("worse") == ["RECONCILED", "EVALUATED", "CANDIDATE"]

    @pytest.mark.parametrize("change", ["gone", "expired", "for another finding"])
    def test_a_bundle_needs_the_waiver_that_the_decision_rests_on(self, project: Project, change: str) -> None:
        """Between decision and bundle it was taken out, ran out, or was exchanged."""
        harness.freeze("s")
        failed = harness.run("s", candidate="worse", parent="old")
        waive(project, failed)
        harness.decide(failed.run)
        path = project.root / "suites/s/waivers.toml"
        if change == "gone":
            path.unlink()
        elif change == "expired":
            waive(project, failed, expires="2020-01-01T00:00:00Z")
        else:
            path.write_text(re.sub('finding = "....', 'finding = "0000', path.read_text()))
        with pytest.raises(Misconfigured):
            harness.bundle(failed.run)
        assert project.states("worse") == ["RECONCILED", "EVALUATED"]
