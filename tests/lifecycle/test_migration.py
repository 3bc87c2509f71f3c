"""The migration record says what is transformed, under which conditions, with which proof."""

from typing import Any

from harness.identity import canonical_json
from harness.lifecycle.compatibility import ParityRun, compatibility
from harness.lifecycle.invalidation import invalidation_plan
from harness.lifecycle.migration import Migration, migration
from tests.lifecycle.example import changed, whole
from tests.lifecycle.test_compatibility import DEPLOYED, TIED


def record(*parity: ParityRun, **values: Any) -> Migration:
    parent, candidate = whole(TIED), whole(changed(TIED, **values))
    states = compatibility(DEPLOYED, parent, candidate)
    plan = invalidation_plan(states, parent, candidate)
    return migration(parent, candidate, states, plan, parity=parity)


class TestMigration:
    def test_source_target_and_the_way_back(self) -> None:
        """The rollback target is the source."""
        found = record(score__type="dot")
        assert found.source == found.rollback_target == whole(TIED).content_id
        assert found.target == whole(changed(TIED, score__type="dot")).content_id

    def test_what_is_transformed(self) -> None:
        """Each namespace that gets a successor, once, with both keys and the work."""
        found = record(score__type="dot")
        (index,) = found.transformed
        assert (index.namespace, index.items, index.of) == ("index", 1000, 1000)
        assert index.old_key == whole(TIED).graph.as_record()["index:document"] != index.new_key

    def test_conditions_before_and_after(self) -> None:
        """Before, everything is as declared; after, what was kept still is, and both sides were switched at once."""
        found = record(score__type="dot")
        assert "index is unmodified" in found.preconditions
        assert any("is a CANDIDATE" in each for each in found.preconditions)
        assert any(each.startswith("documents is as it was") for each in found.postconditions)
        assert any("one step" in each for each in found.postconditions)
        assert not any(each.startswith("index is as it was") for each in found.postconditions)

    def test_what_proof_is_outstanding(self) -> None:
        """A run for the successor's key settles it, one for the old key does not."""
        found = record(score__type="dot")
        assert found.outstanding == ("index",)
        (index,) = found.transformed
        assert record(ParityRun("index", str(index.new_key), 256, 0.0, {}), score__type="dot").outstanding == ()
        assert record(ParityRun("index", str(index.old_key), 256, 0.0, {}), score__type="dot").outstanding == ("index",)

    def test_nothing_changed(self) -> None:
        """Then nothing is transformed, and nothing outstanding."""
        found = record()
        assert (found.transformed, found.outstanding) == ((), ())

    def test_it_is_json(self) -> None:
        """With its schema."""
        found = record(score__type="dot").as_record()
        assert found["schema"] == "harness.migration.v1"
        assert canonical_json(found)
