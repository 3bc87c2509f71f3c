"""A namespace that another runtime wrote, from the demand of a parity run to its proof."""

import json

import harness

from .conftest import Project


class TestParity:
    def test_a_run_as_it_was_demanded_makes_the_namespace_reusable(self, project: Project) -> None:
        """One with a larger difference, or of another key, proves nothing."""
        for name, threshold in (("before", 0.1), ("after", 0.2)):
            folder = project.recorded(name, lambda i: 1)
            (folder / "release.toml").write_text(
                (folder / "release.toml").read_text() + f"[score]\nthreshold = {threshold}\n"
            )
        (project.root / "releases/before/namespaces.toml").write_text(
            '[[namespaces]]\nname = "scores"\nkind = "pair-score"\ncount = 40\nruntime = { engine = "old" }\n'
        )
        first = harness.diff("before", "after").as_record()["namespaces"][0]
        assert first["state"] == "unproven"
        demand = first["parity"]
        runs = project.root / "releases/after/parity.jsonl"
        made = {name: demand[name] for name in ("namespace", "key", "items", "runtime")}
        for change, state in (
            ({"largest": 1.0}, "unproven"),
            ({"largest": 0.0, "key": "0" * 64}, "unproven"),
            ({"largest": 0.0}, "reusable"),
        ):
            runs.write_text(json.dumps({**made, **change}) + "\n")
            assert harness.diff("before", "after").as_record()["namespaces"][0]["state"] == state
