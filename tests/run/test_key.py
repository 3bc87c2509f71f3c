"""Everything that changes an output is inside its key; what only changes the decision is not."""

from pathlib import Path
from typing import Any

import pytest

from harness.release.field import HEAD_STEPS, STEPS, Kind
from harness.release.open import Release
from harness.run import key as room
from harness.run.key import output_key, run_id, scores_key
from tests.lifecycle.example import FIXED, changed, complete, manifest, meaning, sha, single_changes

INPUTS: dict[str, Any] = {
    "data": "d",
    "scores": "c",
    "prompts": {"query": "q: ", "document": ""},
    "runtime": {"torch": "2.9", "dtype": "float32", "device": "cpu"},
}


class TestOutputKey:
    def test_equal_inputs_give_an_equal_key(self) -> None:
        """64 hexadecimal digits; the order in which a mapping was built is no input."""
        turned = {**INPUTS, "runtime": dict(reversed(INPUTS["runtime"].items()))}
        assert output_key(**INPUTS) == output_key(**turned)
        assert len(output_key(**INPUTS)) == 64

    @pytest.mark.parametrize(
        "change",
        [
            {"data": "e"}, {"scores": "d"}, {"prompts": None}, {"prompts": {"query": "q:", "document": ""}},
            {"prompts": {"query": "", "document": "q: "}}, {"runtime": {}},
            *({"runtime": {**INPUTS["runtime"], name: "other"}} for name in INPUTS["runtime"]),
        ],
    )  # fmt: skip
    def test_each_input_changes_it(self, change: dict[str, object]) -> None:
        """Data, scores, prompts of either side, and every fact of what ran it."""
        assert output_key(**{**INPUTS, **change}) != output_key(**INPUTS)

    def test_inputs_do_not_run_into_one_another(self) -> None:
        """`ab` and `c` are not `a` and `bc`."""
        assert output_key(**{**INPUTS, "data": "ab", "scores": "c"}) != output_key(
            **{**INPUTS, "data": "a", "scores": "bc"}
        )

    def test_the_version_of_search_and_cut_changes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Outputs that another version made of the same scores are other outputs."""
        before = output_key(**INPUTS)
        monkeypatch.setattr(room, "OUTPUTS", "next")
        assert output_key(**INPUTS) != before


def scores(meant: dict[str, Any], parts: dict[str, dict[str, Any]] | None = None) -> str:
    """The key of a release that is made by hand."""
    members = {role: Release(role, Path(), None, {}, manifest(part)) for role, part in (parts or {}).items()}
    for role, member in members.items():
        meant["interaction"]["releases"][role] = member.content_id
    return scores_key(Release("made", Path(), None, {}, manifest(meant), members=members))


class TestScoresKey:
    @pytest.mark.parametrize("kind", ["tied", "untied", "late", "cross", "head", "span", "recorded"])
    def test_every_field_up_to_the_raw_score_changes_it_and_no_later_one(self, kind: str) -> None:
        """All of the map, one by one; what makes an output of scores, as a decoder does, is none of the later ones."""
        whole = complete(kind)
        before, steps = scores(whole), HEAD_STEPS if whole["interaction"]["kind"] == "head" else STEPS
        later = {Kind.CALIBRATED, Kind.DECISION, None}
        made = ("interaction.depth", "output.decoder", "output.pieces", "output.longest")
        moved = {pattern: scores(each) != before for pattern, each in single_changes(whole)}
        expected = {pattern: steps[pattern] not in later or pattern in made for pattern in moved}
        assert moved == {**expected, "interaction.releases.*": False}
        assert kind == "recorded" or moved.keys() == STEPS.keys() - FIXED

    def test_a_members_threshold_leaves_it_as_it_was(self) -> None:
        """Its weights don't; nor does the depth to which the first stage is read."""
        parts = {"retriever": meaning("tied"), "reranker": meaning("cross")}
        before = scores(meaning("two-stage"), parts)
        decides = changed(parts["retriever"], score__threshold=0.5)
        assert scores(meaning("two-stage"), {**parts, "retriever": decides}) == before
        other = changed(parts["reranker"], towers__pair__artifact__backbone=sha("other"))
        assert scores(meaning("two-stage"), {**parts, "reranker": other}) != before
        assert scores(changed(meaning("two-stage"), interaction__depth=50), parts) != before

    def test_the_depth_of_a_members_stages_changes_it(self) -> None:
        """Two stages within a fusion: what they rank is none of its raw scores by name, and all of its outputs."""
        stages = meaning("two-stage")
        deeper = changed(stages, interaction__depth=50)
        found = [scores(meaning("fusion"), {"dense": each, "rows": meaning("late")}) for each in (stages, deeper)]
        assert found[0] != found[1]


class TestRunId:
    SIDES = {"candidate": ("new", "c1", "k1"), "parent": ("old", "c2", "k2")}  # noqa: RUF012

    @pytest.mark.parametrize(
        "change",
        [
            {"suite": "t"}, {"sides": {"candidate": SIDES["candidate"]}},
            {"sides": {**SIDES, "candidate": ("new", "c1", "k3")}},
            {"sides": {**SIDES, "candidate": ("new", "c3", "k1")}},
            {"sides": {**SIDES, "candidate": ("renamed", "c1", "k1")}},
            {"sides": dict(zip(SIDES, reversed(SIDES.values()), strict=True))},
        ],
    )  # fmt: skip
    def test_each_input_changes_it(self, change: dict[str, Any]) -> None:
        """The lock, a side's key, content or name, which side is which, and whether there is a parent."""
        given: dict[str, Any] = {"suite": "s", "sides": self.SIDES}
        assert run_id(**given) == run_id(**given)
        assert run_id(**{**given, **change}) != run_id(**given)

    def test_the_packages_version_changes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another version may decide otherwise, so its runs are others."""
        before = run_id(suite="s", sides=self.SIDES)
        monkeypatch.setattr(room, "__version__", "next")
        assert run_id(suite="s", sides=self.SIDES) != before
