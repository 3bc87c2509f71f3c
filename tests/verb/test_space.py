"""What a run tells of spaces and rankings besides its metrics, and that nothing is decided by it."""

from pathlib import Path

import pytest

import harness
from harness.errors import Misconfigured
from tests.verb.conftest import HEADLINE, Project

VECTORS = ("norm", "anisotropy", "uniformity", "alignment", "contrastive_nll(t=0.05)")


def told(table: str, side: str) -> dict[tuple[str, float | None], tuple[float | None, int, str | None]]:
    rows = harness.sql(f"SELECT name, quantile, value, n, absent FROM {table} WHERE side = '{side}'").rows
    return {(str(name), quantile): tuple(rest) for name, quantile, *rest in rows}


class TestRecorded:
    """`better` has d0 first, then d1 d2 d3; `old` has d0 and d1 the other way round in every second question."""

    @pytest.fixture
    def ran(self, project: Project) -> Project:
        harness.freeze("s")
        harness.run("s", candidate="better", parent="old")
        return project

    def test_rankings_are_told_of_what_is_stored(self, ran: Project) -> None:
        both = told("ranking_diagnostics", "pair")
        assert both["rank_overlap@10", None] == (1.0, 60, None)
        # Of every second question the agreements are 0 1 1 1: all but the first tenth.
        assert both["rbo(p=0.9)", None] == (pytest.approx((1 + 0.9) / 2), 60, None)

    def test_margins_are_of_scores(self, ran: Project) -> None:
        """Scores fall from 9 by one: d0 wins by one, or loses by one."""
        parent, candidate = (told("ranking_diagnostics", side) for side in ("parent", "candidate"))
        assert [parent["margin_relevant", at][0] for at in (0.05, 0.5, 0.95)] == [-1, 0, 1]
        assert candidate["margin_relevant", 0.5] == (1, 60, None)
        assert parent["margin_second", 0.05] == candidate["margin_second", 0.95] == (1, 60, None)

    def test_documents_that_nobody_met_count_0(self, ran: Project) -> None:
        """Four of eight documents answer everything, four nothing: no side of it is skew."""
        assert told("ranking_diagnostics", "candidate")["hubness@10", None] == (pytest.approx(0, abs=1e-12), 8, None)

    def test_what_has_no_meaning_is_absent_and_says_why(self, ran: Project) -> None:
        found = told("vector_diagnostics", "candidate")
        assert found == {(name, None): (None, 0, "recorded outputs have no vectors") for name in VECTORS}
        said = Path(harness.report("latest").report or "").with_name("report.md").read_text()
        assert "Of the candidate no norm, anisotropy, uniformity, alignment" in said.replace("&#95;", "_")

    def test_the_report_has_them_as_no_evidence_and_is_the_same_again(self, ran: Project) -> None:
        page = Path(harness.report("latest").report or "")
        before = page.read_bytes(), page.with_name("report.md").read_bytes()
        assert all(b"Diagnostics, no evidence" in each and b"rbo(p=0.9)" in each for each in before)
        harness.decide("latest")
        harness.report("latest")
        assert (page.read_bytes(), page.with_name("report.md").read_bytes()) == before

    def test_a_side_by_itself_has_no_overlap(self, project: Project) -> None:
        floor = '[[rules]]\nid = "f"\nkind = "at-least"\nmetric = "RR@10"\nvalue = 0.5\n'
        project.suite(rules=floor)
        harness.freeze("s")
        harness.run("s", candidate="better", parent="none")
        assert told("ranking_diagnostics", "pair") == {}
        assert ("hubness@10", None) in told("ranking_diagnostics", "candidate")


class TestRules:
    @pytest.mark.parametrize("name", ["rbo(p=0.9)", "rank_overlap@10", "hubness", "Uniformity", "margin_relevant"])
    def test_no_rule_guard_or_report_may_name_one(self, project: Project, name: str) -> None:
        for rules in (
            HEADLINE + HEADLINE.replace("headline", "other").replace("RR@10", name),
            HEADLINE + f'[guards]\nmetrics = ["{name}"]\nslices = "every"\n',
        ):
            project.suite(rules=rules)
            with pytest.raises(Misconfigured, match="a diagnostic of a space") as refusal:
                harness.freeze("s")
            assert "suite.toml line" in refusal.value.subject and "Hold RR@10 instead" in refusal.value.mend
