"""What a run tells of spaces and rankings besides its metrics, and that nothing is decided by it."""

import math
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest

import harness
from harness.errors import Misconfigured
from harness.release.open import Release
from harness.run.output import Executed
from harness.run.sample import VectorSample
from harness.suite.lock import Lock
from harness.verb.space import of_vectors
from tests.verb.conftest import HEADLINE, Project

VECTORS = ("norm", "anisotropy", "uniformity", "alignment", "contrastive_nll(t=0.05)")


def told(table: str, side: str) -> dict[tuple[str, float | None], tuple[float | None, int, str | None]]:
    rows = harness.sql(f"SELECT name, quantile, value, n, absent FROM {table} WHERE side = '{side}'").rows
    return {(str(name), quantile): tuple(rest) for name, quantile, *rest in rows}


class TestOfPairs:
    """q1 lies on d1, d3 has d1's text, d2 and d4 stand at right angles; q1 asks for d3 and d4, q2 for nothing."""

    IDS = ("d1", "d2", "d3", "d4")
    PLACES = ((1, 0), (0, 1), (1, 0), (0, -1))
    TEXTS = ("jet", "wing", "jet", "lift")

    @pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 2, 0), (2, 3, 0, 1)])
    def test_the_loss_by_hand_in_any_order(self, order: tuple[int, ...]) -> None:
        """Cosines 1 (jet), 0 (wing) and 0 (lift) over .05: of jet -20 + log(e²⁰ + 2), of lift log(e²⁰ + 2). Were the
        copy of jet a wrong one, it would be log 2 more.
        """
        at = list(order)
        made = VectorSample(
            query_ids=np.array(["q1", "q2"], dtype=object),
            queries=np.array([[2, 0], [0, 3]], dtype=np.float32),
            document_ids=np.array(self.IDS, dtype=object)[at],
            documents=np.array(self.PLACES, dtype=np.float32)[at],
            texts=np.array(self.TEXTS, dtype=object)[at],
            by_chance=np.ones(4, dtype=bool),
            relevant=frozenset({("q1", "d3"), ("q1", "d4")}),
        )
        lock = cast(Lock, SimpleNamespace(definition=SimpleNamespace(task="retrieval")))
        found = {each.name: each for each in of_vectors(cast(Release, None), Executed((), (), sample=made), lock)}
        loss = found["contrastive_nll(t=0.05)"]
        log_sum = math.log(math.exp(20) + 2)
        assert loss.value == pytest.approx(((log_sum - 20) + log_sum) / 2, rel=1e-12)
        assert (loss.n, loss.texts) == (1, "queries against 3 documents")
        # d3 lies on q1, and d4 at a right angle.
        assert (found["alignment"].value, found["alignment"].n) == (pytest.approx((0 + 2) / 2), 2)


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

    @pytest.mark.parametrize("written", ['report = ["RR@10", "NAME"]', 'right = "NAME"', 'primary = "NAME"'])
    def test_nor_what_is_measured(self, project: Project, written: str) -> None:
        toml = project.suite() / "suite.toml"
        key = written.partition(" ")[0]
        kept = [line for line in toml.read_text().splitlines() if not line.startswith(f"{key} = ")]
        kept.insert(kept.index("[metrics]") + 1, written.replace("NAME", "hubness@10"))
        toml.write_text("\n".join(kept))
        with pytest.raises(Misconfigured, match="a diagnostic of a space"):
            harness.freeze("s")

    @pytest.mark.parametrize("name", ["hubness", "norm", "anisotropy"])
    def test_nor_is_one_a_count(self, project: Project, name: str) -> None:
        project.suite(rules=f'{HEADLINE}[[rules]]\nid = "n"\nkind = "invariant"\nmetric = "{name}"\nvalue = 0\n')
        with pytest.raises(Misconfigured, match=name):
            harness.freeze("s")
