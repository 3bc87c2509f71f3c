"""Everything that changes an output is inside its key; what only changes the decision is not."""

from typing import Any

import pytest

from harness.run import key as room
from harness.run.key import output_key, run_id

INPUTS: dict[str, Any] = {
    "data": "d",
    "content_id": "c",
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
            {"data": "e"}, {"content_id": "d"}, {"prompts": None}, {"prompts": {"query": "q:", "document": ""}},
            {"prompts": {"query": "", "document": "q: "}}, {"runtime": {}},
            *({"runtime": {**INPUTS["runtime"], name: "other"}} for name in INPUTS["runtime"]),
        ],
    )  # fmt: skip
    def test_each_input_changes_it(self, change: dict[str, object]) -> None:
        """Data, contents, prompts of either side, and every fact of what ran it."""
        assert output_key(**{**INPUTS, **change}) != output_key(**INPUTS)

    def test_inputs_do_not_run_into_one_another(self) -> None:
        """`ab` and `c` are not `a` and `bc`."""
        assert output_key(**{**INPUTS, "data": "ab", "content_id": "c"}) != output_key(
            **{**INPUTS, "data": "a", "content_id": "bc"}
        )

    def test_the_version_of_search_and_cut_changes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Outputs that another version made of the same scores are other outputs."""
        before = output_key(**INPUTS)
        monkeypatch.setattr(room, "OUTPUTS", "next")
        assert output_key(**INPUTS) != before


class TestRunId:
    SIDES = {"candidate": ("new", "k1"), "parent": ("old", "k2")}  # noqa: RUF012

    @pytest.mark.parametrize(
        "change",
        [
            {"suite": "t"}, {"sides": {"candidate": ("new", "k1")}},
            {"sides": {"candidate": ("new", "k3"), "parent": ("old", "k2")}},
            {"sides": {"candidate": ("renamed", "k1"), "parent": ("old", "k2")}},
            {"sides": {"candidate": ("old", "k2"), "parent": ("new", "k1")}},
        ],
    )  # fmt: skip
    def test_each_input_changes_it(self, change: dict[str, Any]) -> None:
        """The lock, a side's key or name, which side is which, and whether there is a parent."""
        given: dict[str, Any] = {"suite": "s", "sides": self.SIDES}
        assert run_id(**given) == run_id(**given)
        assert run_id(**{**given, **change}) != run_id(**given)

    def test_the_packages_version_changes_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another version may decide otherwise, so its runs are others."""
        before = run_id(suite="s", sides=self.SIDES)
        monkeypatch.setattr(room, "__version__", "next")
        assert run_id(suite="s", sides=self.SIDES) != before
