"""Which releases a suite's task is for, and which two can be compared in it."""

from typing import Any

import pytest

from harness.errors import Misconfigured
from harness.run.fit import require_fit
from harness.suite.definition import SuiteDefinition

from .test_fuse import text
from .test_stage import two


def suite(task: str = "retrieval", **ranking: Any) -> SuiteDefinition:
    return SuiteDefinition.model_validate({
        "schema": "harness.suite.v1", "name": "small", "task": task, "source": {"format": "beir"},
        "metrics": {"primary": "RR@10"}, "ranking": ranking,
    })  # fmt: skip


@pytest.fixture
def every(releases, recorded):
    """One release of each kind, by name."""
    made = {name: releases(name) for name in ("bi", "other", "cross", "third")}
    made["old"] = recorded("old", "q0 d00 1")
    made["both"] = releases("both", two())
    made["fused"] = releases("fused", text(bi=1.0, old=1.0))
    return made


class TestTask:
    def test_retrieval_is_for_what_searches(self, every) -> None:
        for name in ("bi", "old", "both", "fused"):
            require_fit({"candidate": every[name]}, suite())

    def test_a_cross_encoder_alone_needs_a_first_stage(self, every) -> None:
        """The refusal names both ways out."""
        with pytest.raises(Misconfigured, match="reads pairs and searches no corpus") as refused:
            require_fit({"candidate": every["cross"]}, suite())
        assert "two-stage" in refused.value.mend and 'task = "reranking"' in refused.value.mend

    def test_a_cross_encoder_in_a_fusion_searches_no_better(self, every, releases) -> None:
        mixed = releases("mixed", text(bi=1.0, cross=1.0))
        with pytest.raises(Misconfigured, match="a cross release as its cross"):
            require_fit({"candidate": mixed}, suite())
        require_fit({"candidate": mixed}, suite("reranking"))

    def test_reranking_is_for_what_ranks_given_documents(self, every) -> None:
        for name in ("bi", "cross", "old", "fused"):
            require_fit({"candidate": every[name]}, suite("reranking"))

    def test_two_stages_bring_their_own_candidates(self, every) -> None:
        """The mend names the reranker."""
        with pytest.raises(Misconfigured, match="finds its own candidates") as refused:
            require_fit({"candidate": every["both"]}, suite("reranking"))
        assert "'cross'" in refused.value.mend

    def test_what_cannot_be_run_is_named_with_its_role(self, every, releases) -> None:
        releases("cross", extra="[score]\ntemperature = 2.0\n")
        with pytest.raises(Misconfigured, match="a release whose scores have a temperature as its reranker"):
            require_fit({"candidate": releases("both", two())}, suite())


class TestShared:
    def sides(self, releases, candidate: str, parent: str):
        return {"candidate": releases("new", candidate), "parent": releases("was", parent)}

    def test_one_retriever_at_one_depth_gives_the_same_candidates(self, every, releases) -> None:
        """Whatever it is called."""
        releases("renamed", model="bi")
        require_fit(self.sides(releases, two("renamed", "third"), two("bi", "cross")), suite())

    @pytest.mark.parametrize("candidate", [two("other", "cross"), two("bi", "third", depth=5)])
    def test_other_candidates_are_refused_unless_the_suite_says_own(self, every, releases, candidate: str) -> None:
        """Another retriever, or another depth."""
        sides = self.sides(releases, candidate, two())
        with pytest.raises(Misconfigured, match="at depth 4") as refused:
            require_fit(sides, suite())
        assert 'candidates = "own"' in refused.value.mend
        require_fit(sides, suite(candidates="own"))

    def test_a_release_without_a_last_stage_shares_none(self, every) -> None:
        """What two stages add to one is seen from end to end."""
        require_fit({"candidate": every["both"], "parent": every["bi"]}, suite())
