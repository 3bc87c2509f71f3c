"""The main job on recorded releases, from outside its rooms."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest

import harness
from harness.errors import Leaked, Misconfigured, NotFound, Tampered
from harness.output.decision import Outcome

from .conftest import GUARDS, HEADLINE, Project


def bytes_of(*folders: Path) -> dict[str, str]:
    """SHA-256 of every file below some folders."""
    return {
        str(path.relative_to(folder.parent)): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.mark.usefixtures("plain_page")
class TestDecision:
    def test_a_better_candidate_passes_and_leaves_a_bundle(self, project: Project) -> None:
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        assert (found.decision.outcome, found.exit_code) == (Outcome.PASS, 0)
        assert found.metrics["candidate"]["all"]["RR@10"].value == 1.0
        assert found.metrics["parent"]["all"]["RR@10"].value == 0.75
        assert found.bundle and harness.verify(found.bundle).ok
        states = [json.loads(line)["state"] for line in (project.root / "releases/better/lifecycle.jsonl").open()]
        assert states == ["RECONCILED", "EVALUATED", "CANDIDATE"]

    def test_a_worse_candidate_fails_and_leaves_none(self, project: Project) -> None:
        harness.freeze("s")
        found = harness.run("s", candidate="worse", parent="old")
        assert (found.decision.outcome, found.exit_code, found.bundle) == (Outcome.FAIL, 1, None)
        assert not (project.root / "releases/worse/bundles").exists()
        with pytest.raises(Misconfigured, match="FAIL"):
            harness.bundle("latest")

    def test_one_broken_slice_fails_where_the_mean_does_not(self, project: Project) -> None:
        """Typos fall from second to third place, the rest rises to first: the average hides it, a guard does not."""
        harness.freeze("s")
        project.recorded("before", lambda i: 2 if i % 2 else 4)
        project.recorded("after", lambda i: 3 if i % 2 else 1)
        found = harness.run("s", candidate="after", parent="before")
        by_id = {rule.id: rule for rule in found.decision.rules}
        assert by_id["headline"].outcome is Outcome.PASS
        assert by_id["guard:typo:RR@10"].outcome is Outcome.FAIL
        assert found.decision.outcome is Outcome.FAIL

    def test_missing_cases_are_undecided_or_zero_as_the_suite_says(self, project: Project) -> None:
        project.recorded("gaps", lambda i: 1 if i else 0)
        harness.freeze("s")
        found = harness.run("s", candidate="gaps", parent="old")
        assert (found.decision.outcome, found.exit_code, found.counts.missing) == (Outcome.UNDECIDED, 3, 1)
        project.suite("zero", cases='missing = "zero"')
        harness.freeze("zero")
        found = harness.run("zero", candidate="gaps", parent="old")
        assert (found.decision.outcome, found.counts.missing) == (Outcome.PASS, 1)
        assert found.metrics["candidate"]["all"]["RR@10"].value == pytest.approx(59 / 60)

    def test_a_score_that_is_no_number_fails_the_run(self, project: Project) -> None:
        harness.freeze("s")
        folder = project.recorded("nan", lambda i: 1)
        text = (folder / "run.trec").read_text()
        (folder / "run.trec").write_text(text.replace("q7 Q0 d2 3 7 tag", "q7 Q0 d2 3 nan tag"))
        found = harness.run("s", candidate="nan", parent="old")
        assert found.exit_code == 1
        assert {rule.id for rule in found.decision.rules if rule.outcome is Outcome.FAIL} == {
            "always:failed",
            "always:non-finite",
        }
        rows = harness.sql("SELECT case_id, reason FROM cases_without_output").rows
        assert rows == (("q7", "the score of document 'd2' is nan"),)

    def test_without_a_parent_only_floors_and_invariants_are_judged(self, project: Project) -> None:
        project.suite(rules='[[rules]]\nid = "floor"\nkind = "at-least"\nmetric = "RR@10"\nvalue = 0.9\n' + HEADLINE)
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="none")
        assert (found.decision.outcome, found.parent, found.bundle) == (Outcome.PASS, None, None)
        assert "headline" not in {rule.id for rule in found.decision.rules}
        assert any("not judged" in remark for remark in found.remarks)


@pytest.mark.usefixtures("plain_page")
class TestTransitions:
    @pytest.mark.parametrize(("right", "lost"), [("Success@1", 30), ("Success@3", 0)])
    def test_the_suite_declares_when_a_case_is_right(self, project: Project, right: str, lost: int) -> None:
        """Every other question falls from first to third: wrong by its first document, right by its first three."""
        folder = project.suite()
        text = (folder / "suite.toml").read_text()
        (folder / "suite.toml").write_text(text.replace("[metrics]\n", f'[metrics]\nright = "{right}"\n'))
        project.recorded("first", lambda i: 1)
        project.recorded("third", lambda i: 3 if i % 2 else 1)
        harness.freeze("s")
        harness.run("s", candidate="third", parent="first")
        rows = harness.sql(
            "SELECT criterion, count(*) FROM transitions WHERE transition = 'parent-only' GROUP BY ALL"
        ).rows
        assert rows == (((right, lost),) if lost else ())
        tested = harness.sql("SELECT lost_groups, won_groups, p FROM transition_tests WHERE slice = 'all'").rows
        assert tested == ((lost, 0, 2 * 0.5**30 if lost else 1.0),)


class TestRefusal:
    def test_a_suite_without_its_lock_names_freeze(self, project: Project) -> None:
        with pytest.raises(NotFound, match="harness freeze") as refused:
            harness.run("s", candidate="better", parent="old")
        assert refused.value.exit_code == 2

    def test_a_candidate_with_its_parents_content_is_refused(self, project: Project) -> None:
        harness.freeze("s")
        project.recorded("copy", lambda i: 1 + i % 2)
        with pytest.raises(Misconfigured, match="one content"):
            harness.run("s", candidate="copy", parent="old")

    def test_another_parent_than_the_declared_one_is_refused(self, project: Project) -> None:
        harness.freeze("s")
        project.recorded("child", lambda i: 1, parent="old")
        with pytest.raises(Misconfigured, match="'old'"):
            harness.run("s", candidate="child", parent="worse")
        assert harness.run("s", candidate="child").parent.name == "old"

    def test_a_changed_data_file_names_the_file_and_the_case(self, project: Project) -> None:
        harness.freeze("s")
        with (project.root / "suites/s/qrels/test.tsv").open("a") as stream:
            stream.write("q3\td1\t1\n")
        with pytest.raises(Tampered, match=r"(?s)test\.tsv.*q3") as refused:
            harness.run("s", candidate="better", parent="old")
        assert refused.value.exit_code == 4

    def test_a_group_in_two_roles_is_refused(self, project: Project) -> None:
        folder = project.suite("leak", cases='role = "role"\ngroup = "source"')
        rows = [json.loads(line) for line in (folder / "queries.jsonl").open()]
        rows = [{**row, "role": "promotion" if i else "calibration", "source": "x"} for i, row in enumerate(rows)]
        (folder / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        with pytest.raises(Leaked) as refused:
            harness.freeze("leak")
        assert refused.value.exit_code == 4

    def test_a_document_twice_for_one_query_names_both_lines(self, project: Project) -> None:
        harness.freeze("s")
        folder = project.recorded("twice", lambda i: 1)
        with (folder / "run.trec").open("a") as stream:
            stream.write("q0 Q0 d0 9 0.5 tag\n")
        with pytest.raises(Misconfigured, match=r"run\.trec line 241.*first at line 1"):
            harness.run("s", candidate="twice", parent="old")


class TestRepetition:
    def test_the_same_inputs_give_the_same_bytes(
        self, project: Project, tmp_path_factory: pytest.TempPathFactory
    ) -> None:
        """In every file of report and bundle, in another folder and another process with another hash seed."""
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        first = bytes_of(project.root / "reports", project.root / "releases/better/bundles")
        code = (
            "import os, shutil, sys, harness; shutil.copytree(sys.argv[1], sys.argv[2], "
            "ignore=shutil.ignore_patterns('.harness', 'reports', 'bundles', '*.jsonl')); "
            "shutil.copy(sys.argv[1] + '/suites/s/corpus.jsonl', sys.argv[2] + '/suites/s/'); "
            "shutil.copy(sys.argv[1] + '/suites/s/queries.jsonl', sys.argv[2] + '/suites/s/'); "
            "os.chdir(sys.argv[2]); print(harness.run('s', candidate='better', parent='old').run)"
        )
        other = tmp_path_factory.mktemp("elsewhere") / "project"
        env = {**os.environ, "PYTHONHASHSEED": "17"}
        done = subprocess.run(
            [sys.executable, "-c", code, str(project.root), str(other)], env=env, capture_output=True, text=True
        )
        assert done.stdout.strip() == found.run, done.stderr
        assert bytes_of(other / "reports", other / "releases/better/bundles") == first

    def test_a_second_run_runs_no_release_again(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        harness.freeze("s")
        first = harness.run("s", candidate="better", parent="old")
        monkeypatch.setattr("harness.verb.run.execute", lambda *_: pytest.fail("a release was run again"))
        assert harness.run("s", candidate="better", parent="old") == first

    def test_a_parent_is_taken_from_an_earlier_run(self, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
        harness.freeze("s")
        harness.run("s", candidate="better", parent="old")
        from harness.verb import run as verb

        ran = []
        execute = verb.execute
        monkeypatch.setattr(
            verb, "execute", lambda sides, *more: ran.extend(r.name for r in sides.values()) or execute(sides, *more)
        )
        found = harness.run("s", candidate="worse", parent="old")
        assert ran == ["worse"]
        assert found.metrics["parent"]["all"]["RR@10"].value == 0.75

    def test_scoring_again_in_a_fresh_process_gives_the_same_bytes(self, project: Project) -> None:
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        first = bytes_of(project.root / "reports", project.root / "releases/better/bundles")
        code = "import sys, harness; r = sys.argv[1]; harness.decide(r); harness.report(r); harness.bundle(r)"
        done = subprocess.run([sys.executable, "-c", code, found.run], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert bytes_of(project.root / "reports", project.root / "releases/better/bundles") == first

    def test_no_model_or_recording_is_read_to_decide_again(self, project: Project) -> None:
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        (project.root / "releases/better/run.trec").unlink()
        assert harness.decide(found.run).decision == found.decision


@pytest.mark.usefixtures("plain_page")
class TestExposure:
    def test_every_run_that_reads_promotion_is_counted_once(self, project: Project) -> None:
        harness.freeze("s")
        assert harness.run("s", candidate="better", parent="old").reading == 1
        assert harness.run("s", candidate="worse", parent="old").reading == 2
        assert harness.run("s", candidate="better", parent="old").reading == 1
        assert len((project.root / "suites/s/exposures.jsonl").read_text().splitlines()) == 2

    def test_a_budget_makes_further_readings_undecided(self, project: Project) -> None:
        project.suite(more="[budget]\npromotion_reads = 1\n")
        harness.freeze("s")
        assert harness.run("s", candidate="better", parent="old").exit_code == 0
        project.recorded("second", lambda i: 1 if i else 2)
        assert harness.run("s", candidate="second", parent="old").exit_code == 3

    def test_rules_changed_after_the_outcomes_were_read_are_exploratory(self, project: Project) -> None:
        harness.freeze("s")
        assert harness.run("s", candidate="worse", parent="old").exit_code == 1
        project.suite(rules=HEADLINE.replace("0.02", "0.9"))
        harness.freeze("s")
        again = harness.run("s", candidate="worse", parent="old")
        assert (again.decision.outcome, again.decision.exploratory) == (Outcome.PASS, True)
        assert (again.exit_code, again.bundle) == (3, None)
        with pytest.raises(Misconfigured, match="exploratory"):
            harness.bundle(again.run)

    def test_a_stored_run_decided_under_changed_rules_is_exploratory(self, project: Project) -> None:
        harness.freeze("s")
        found = harness.run("s", candidate="worse", parent="old")
        project.suite(rules=HEADLINE.replace("0.02", "0.9"))
        harness.freeze("s")
        assert harness.decide(found.run).exit_code == 3
        project.suite(rules=HEADLINE + GUARDS)
        harness.freeze("s")
        assert harness.decide(found.run).exit_code == 1

    def test_a_changed_ledger_is_tampering(self, project: Project) -> None:
        harness.freeze("s")
        harness.run("s", candidate="worse", parent="old")
        ledger = project.root / "suites/s/exposures.jsonl"
        ledger.write_text(ledger.read_text().replace('"previous":"0', '"previous":"1'))
        with pytest.raises(Tampered):
            harness.run("s", candidate="better", parent="old")


@pytest.mark.usefixtures("plain_page")
class TestWaiver:
    def write(self, project: Project, finding: str, expires: str = "2999-01-01T00:00:00Z") -> None:
        (project.root / "suites/s/waivers.toml").write_text(
            'schema = "harness.waivers.v1"\n[[waivers]]\nrule = "headline"\nslice = "all"\nreason = "known"\n'
            f'approver = "search team"\nexpires = {expires}\nfinding = "{finding}"\n'
        )

    def test_a_waived_finding_is_waived_and_nothing_else_is(self, project: Project) -> None:
        project.suite(rules=HEADLINE)
        harness.freeze("s")
        failed = harness.run("s", candidate="worse", parent="old")
        finding = next(rule.finding for rule in failed.decision.rules if rule.id == "headline")
        self.write(project, finding)
        waived = harness.run("s", candidate="worse", parent="old")
        assert waived.decision.outcome is Outcome.PASS
        assert next(rule for rule in waived.decision.rules if rule.id == "headline").outcome is Outcome.WAIVED

    @pytest.mark.parametrize(
        ("finding", "expires"), [("0" * 64, "2999-01-01T00:00:00Z"), (None, "2020-01-01T00:00:00Z")]
    )
    def test_an_unmatched_or_expired_waiver_is_an_error(
        self, project: Project, finding: str | None, expires: str
    ) -> None:
        harness.freeze("s")
        failed = harness.run("s", candidate="worse", parent="old")
        real = next(rule.finding for rule in failed.decision.rules if rule.id == "headline")
        self.write(project, finding or real, expires)
        with pytest.raises(Misconfigured, match="waiver"):
            harness.run("s", candidate="worse", parent="old")


@pytest.mark.usefixtures("plain_page")
class TestStore:
    def test_ids_stay_text(self, project: Project) -> None:
        folder = project.suite("ids")
        (folder / "queries.jsonl").write_text(
            "".join(
                json.dumps({"_id": each, "text": each, "kind": "typo"}) + "\n" for each in ("007", "7", "1e2", "100")
            )
        )
        (folder / "qrels/test.tsv").write_text("".join(f"{each}\td0\t1\n" for each in ("007", "7", "1e2", "100")))
        harness.freeze("ids")
        release = project.root / "releases/better/run.trec"
        release.write_text("".join(f"{each} Q0 d0 1 1 x\n" for each in ("007", "7", "1e2", "100")))
        (project.root / "releases/old/run.trec").write_text("007 Q0 d0 1 1 x\n")
        found = harness.run("ids", candidate="better", parent="old")
        assert found.counts.missing == 0
        rows = harness.sql("SELECT case_id FROM outputs WHERE side = 'parent' AND status = 'ok'").rows
        assert rows == (("007",),)

    def test_a_held_store_says_so_in_one_line(self, project: Project) -> None:
        harness.freeze("s")
        harness.run("s", candidate="better", parent="old")
        holder = duckdb.connect(".harness/store.duckdb")
        code = "from harness.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code, "runs"], capture_output=True, text=True)
        holder.close()
        assert done.returncode == 5
        assert "another process holds the store" in done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.usefixtures("plain_page")
class TestSlicesOfTheParent:
    SLICES = '[[slices]]\nmechanism = "candidate-rank"\n'

    def test_the_parent_fixes_them_and_not_the_candidate(self, project: Project) -> None:
        """The parent has the document first or second; whatever the candidate does, the slices are these."""
        project.suite(rules=HEADLINE.replace('"all"', '"candidate-rank=2-3"') + self.SLICES)
        harness.freeze("s")
        counts = []
        for candidate in ("better", "worse"):
            harness.run("s", candidate=candidate, parent="old")
            found = harness.decide("latest")
            counts.append(found.metrics["parent"]["candidate-rank=2-3"]["RR@10"].n_total)
            assert found.metrics["parent"]["candidate-rank=2-3"]["RR@10"].value == 0.5
            assert found.metrics["parent"]["candidate-rank=51+"]["RR@10"].n_total == 0
        assert counts == [30, 30]

    def test_without_a_parent_nothing_decides_over_them(self, project: Project) -> None:
        """A floor over no case is UNDECIDED, and the remarks say why."""
        floor = '[[rules]]\nid = "f"\nkind = "at-least"\nmetric = "RR@10"\nslice = "candidate-rank=1"\nvalue = 0.1\n'
        project.suite(rules=floor + self.SLICES)
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="none")
        assert found.decision.outcome is Outcome.UNDECIDED
        assert any("candidate-rank=1" in remark for remark in found.remarks)
