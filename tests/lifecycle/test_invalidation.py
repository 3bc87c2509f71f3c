"""The plan builds beside, proves, switches, and drops last; and it asks for no more than the graph does."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.lifecycle.compatibility import Reuse, compatibility
from harness.lifecycle.invalidation import Act, Action, Plan, calibration_key, invalidation_plan
from harness.lifecycle.items import Items
from harness.lifecycle.namespace import Namespace
from harness.lifecycle.permutation import permutation
from harness.release.manifest import Meaning
from tests.lifecycle.example import CALIBRATOR, changed, meaning, sha, whole
from tests.lifecycle.test_compatibility import CHANGES, DEPLOYED, TIED

VECTORS = (DEPLOYED[1], DEPLOYED[3])
LATER = [each for each in Act if each is not Act.DROP]


def plan(before: Any, after: Any, namespaces: Any = DEPLOYED, **known: Any) -> Plan:
    parent, candidate = whole(before), whole(after)
    return invalidation_plan(compatibility(namespaces, parent, candidate), parent, candidate, **known)


def acts(found: Plan, name: str | None) -> list[str]:
    return [str(each.action) for each in found.actions if each.namespace == name]


def only(found: Plan, act: Act, name: str) -> Action:
    (action,) = [each for each in found.actions if (each.action, each.namespace) == (act, name)]
    return action


def fitted(meant: dict[str, Any]) -> dict[str, Any]:
    """The same release with a calibrator that was fitted to its own scores."""
    key = calibration_key(whole(changed(meant, score__calibrator=CALIBRATOR)).graph)
    return changed(meant, score__calibrator={**CALIBRATOR, "fitted_under": key})


class TestWhatIsDone:
    def test_nothing_changed(self) -> None:
        """Everything is kept."""
        found = plan(fitted(meaning("tied")), fitted(meaning("tied")))
        assert {each.action for each in found.actions} == {Act.KEEP}
        assert len(found.actions) == len(DEPLOYED)
        assert found.switched == ()

    def test_pooling(self) -> None:
        """Vectors out of the kept rows, the index out of the vectors, scores forgotten."""
        found = plan(fitted(TIED), fitted(changed(TIED, towers__both__readout__modes=["cls"])))
        assert acts(found, "document rows") == ["keep"]
        assert acts(found, "documents") == ["dual-write", "re-encode", "prove-parity", "drop"]
        assert acts(found, "index") == ["dual-write", "rebuild-index", "prove-parity", "drop"]
        assert acts(found, "scores") == ["drop"]
        assert only(found, Act.RE_ENCODE, "documents").reason.endswith("from what is kept in document rows")
        assert only(found, Act.REBUILD_INDEX, "index").reason.endswith("from the successor of documents")

    def test_what_nothing_of_the_parents_becomes_is_built(self) -> None:
        """From recorded outputs to an encoder: the documents' vectors, then their index; queries keep
        nothing. The other way round there is nothing to build.
        """
        found = plan(meaning("recorded"), meaning("tied"), ())
        built = [(each.namespace, each.new_key) for each in found.actions if each.action is Act.BUILD]
        graph = whole(meaning("tied")).graph
        names = ("vector:document", "index:document")
        assert built == [(name, node.key) for name in names if (node := graph.find(name))] and len(built) == 2
        back = plan(meaning("tied"), meaning("recorded"), ())
        assert Act.BUILD not in {each.action for each in back.actions}

    def test_what_has_a_counterpart_is_not(self) -> None:
        """Other weights re-encode what is there."""
        found = plan(TIED, changed(TIED, towers__both__artifact__backbone=sha("other")))
        assert Act.BUILD not in {each.action for each in found.actions}

    def test_a_query_prompt(self) -> None:
        """Documents and their index are kept, and nothing arrives for queries meanwhile."""
        prompts = {"query": "q: ", "document": ""}
        found = plan(fitted(TIED), fitted(changed(TIED, towers__both__input__prompts=prompts)))
        assert acts(found, "documents") == acts(found, "index") == acts(found, "document rows") == ["keep"]
        assert acts(found, "queries") == ["re-encode", "prove-parity", "drop"]

    def test_dot_in_place_of_cosine(self) -> None:
        """Vectors are kept, the index is built again from them."""
        found = plan(fitted(TIED), fitted(changed(TIED, score__type="dot")))
        assert acts(found, "documents") == ["keep"]
        assert acts(found, "index") == ["dual-write", "rebuild-index", "prove-parity", "drop"]
        assert only(found, Act.REBUILD_INDEX, "index").reason.endswith("from what is kept in documents")

    def test_a_threshold(self) -> None:
        """Only what was decided by it; it stands on the same scores and needs no new derivation."""
        found = plan(fitted(TIED), changed(fitted(TIED), score__threshold=0.5))
        assert acts(found, "answers") == ["drop"]
        assert {each.action for each in found.actions} == {Act.KEEP, Act.DROP}

    def test_other_scores_under_the_old_calibrator_and_threshold(self) -> None:
        """Both are to be found again, the calibrator first."""
        before = changed(fitted(TIED), score__threshold=0.5)
        found = plan(before, changed(before, score__temperature=2.0))
        names = [(str(each.action), each.namespace) for each in found.actions if each.action is not Act.KEEP]
        assert names == [
            ("refit-calibrator", "probabilities"), ("re-derive-threshold", "answers"),
            ("drop", "scores"), ("drop", "probabilities"), ("drop", "answers"),
        ]  # fmt: skip

    def test_a_calibrator_fitted_to_the_candidates_scores_is_not_fitted_again(self) -> None:
        """But the threshold stands on its probabilities."""
        before = changed(fitted(TIED), score__threshold=0.5)
        found = plan(before, fitted(changed(before, score__temperature=2.0)))
        assert acts(found, "probabilities") == ["drop"]
        assert acts(found, "answers") == ["re-derive-threshold", "drop"]

    def test_a_threshold_on_a_stale_calibrator(self) -> None:
        """It is to be found again with it, also where nothing else changed."""
        stale = changed(TIED, score__threshold=0.5)
        assert acts(plan(stale, stale, ()), None) == ["refit-calibrator", "re-derive-threshold"]

    def test_what_a_calibrator_is_fitted_under(self) -> None:
        """The key of the scores, whatever the documents; of two stages, of both."""
        tied = whole(TIED).graph
        assert calibration_key(tied) == tied.as_record()["raw score"]
        assert calibration_key(whole(meaning("tied")).graph) is None
        two = changed(meaning("two-stage"), score__calibrator=CALIBRATOR)
        other = changed(two, interaction__depth=50)
        assert calibration_key(whole(two).graph) == calibration_key(whole(other).graph)

    def test_a_stale_calibrator_is_told_without_a_namespace(self) -> None:
        """It belongs to the release."""
        found = plan(TIED, TIED, ())
        assert acts(found, None) == ["refit-calibrator"]

    def test_what_the_candidate_has_no_node_for(self) -> None:
        """There is no successor; it goes at the end."""
        found = plan(meaning("tied"), meaning("cross"), DEPLOYED[:5])
        assert acts(found, "documents") == ["drop"]
        assert "documents" not in found.switched

    def test_another_runtime(self) -> None:
        """A parity run for each, and nothing is made again."""
        parent, candidate = whole(fitted(TIED), torch="2.6"), whole(fitted(TIED), torch="2.7")
        found = invalidation_plan(compatibility(DEPLOYED, parent, candidate), parent, candidate)
        assert {each.action for each in found.actions} == {Act.PROVE_PARITY}
        assert only(found, Act.PROVE_PARITY, "documents").items == 256
        assert only(found, Act.PROVE_PARITY, "queries").items == 50

    def test_labels_and_head_moved_together(self) -> None:
        """Stored logits are written beside in the new order, and proven."""
        before = meaning("head")
        after = changed(before, output__labels=["BUY", "ASK", "SELL"], towers__text__artifact__head=sha("x"))
        moved = permutation(Meaning.model_validate(before), Meaning.model_validate(after))
        kept = (Namespace(name="logits", kind="pair-score", count=9),)
        found = plan(before, after, kept, labels=moved)
        assert acts(found, "logits") == ["dual-write", "prove-parity", "drop"]
        assert "[1, 0, 2]" in only(found, Act.DUAL_WRITE, "logits").reason
        assert acts(plan(before, after, kept), "logits") == ["drop"]


class TestItems:
    LONGER = changed(TIED, towers__both__input__max_length=256)

    def test_only_texts_that_were_cut_are_encoded_again(self) -> None:
        """From 128 to 256 tokens, two of four; the tokens are what the candidate reads for those."""
        lost = Items(of=4, changed=2, tokens=456, told_by="cut")
        kept = (DEPLOYED[1].model_copy(update={"count": 4, "bytes": 400}),)
        found = only(plan(TIED, self.LONGER, kept, items={"documents": lost}), Act.RE_ENCODE, "documents")
        assert (found.items, found.of, found.bytes, found.tokens) == (2, 4, 200, 456)
        assert "2 of 4 items read the same" in found.reason

    def test_items_of_which_nothing_is_known_are_made_again(self) -> None:
        """996 of the thousand, and the one that was cut."""
        lost = Items(of=4, changed=1, tokens=9, told_by="cut")
        found = only(plan(TIED, self.LONGER, items={"documents": lost}), Act.RE_ENCODE, "documents")
        assert (found.items, found.of, found.tokens) == (997, 1000, None)

    @pytest.mark.parametrize(
        ("values", "cut", "inputs"),
        [
            ({"towers__both__input__max_length": 256}, True, True),
            ({"towers__both__input__tokenizer": {"tokenizer.json": sha("x")}}, False, True),
            ({"towers__both__input__max_length": 256, "towers__both__readout__modes": ["cls"]}, False, False),
            ({"towers__both__artifact__backbone": sha("x")}, False, False),
        ],
    )
    def test_what_tells_something_under_which_change(self, values: Any, cut: bool, inputs: bool) -> None:
        """Where the texts were cut tells nothing of another tokenizer, and neither anything of a later field."""
        after = changed(TIED, **values)
        for told_by, holds in (("cut", cut), ("inputs", inputs)):
            known = Items(1000, 3, None, told_by)
            found = only(plan(TIED, after, items={"documents": known}), Act.RE_ENCODE, "documents")
            assert found.items == (3 if holds else 1000)

    def test_nothing_to_encode_is_none_of_all(self) -> None:
        """Where every text reads the same."""
        found = plan(TIED, self.LONGER, items={"documents": Items(1000, 0, 0, "cut")})
        action = only(found, Act.RE_ENCODE, "documents")
        assert (action.items, action.of, action.bytes, action.tokens) == (0, 1000, 0, 0)


subsets = st.sets(st.sampled_from(sorted(CHANGES)))


class TestOrder:
    @given(subsets)
    @settings(max_examples=30, deadline=None)
    def test_the_plan_can_be_carried_out_from_first_to_last(self, paths: set[str]) -> None:
        """Nothing is dropped before all is built and proven, both sides are switched, and the target is retired."""
        found = plan(TIED, changed(TIED, **{path: CHANGES[path] for path in paths}))
        done: list[Action] = []
        while ready := found.ready(done, switched=False, retired=True):
            assert all(each.action is not Act.DROP for each in ready)
            done += ready
        assert {each.action for each in found.actions if each not in done} <= {Act.DROP}
        assert found.ready(done, switched=True, retired=False) == ()
        assert set(found.ready(done, switched=True, retired=True)) == set(found.actions) - set(done)
        order = [list(Act).index(each.action) for each in found.actions]
        assert order == sorted(order)

    @given(subsets)
    @settings(max_examples=30, deadline=None)
    def test_no_more_than_the_graph_demands(self, paths: set[str]) -> None:
        """A reusable namespace is kept and no more; an invalid one is dropped once, and its successor proven."""
        before, after = whole(TIED), whole(changed(TIED, **{path: CHANGES[path] for path in paths}))
        states = compatibility(DEPLOYED, before, after)
        found = invalidation_plan(states, before, after)
        for state in states:
            mine = [each.action for each in found.actions if each.namespace == state.namespace.name]
            of_store = [act for act in mine if act not in (Act.REFIT_CALIBRATOR, Act.RE_DERIVE_THRESHOLD)]
            if state.state is Reuse.REUSABLE:
                assert of_store == [Act.KEEP]
            else:
                assert of_store.count(Act.DROP) == 1 and Act.KEEP not in of_store
                if Act.RE_ENCODE in of_store or Act.REBUILD_INDEX in of_store:
                    assert Act.PROVE_PARITY in of_store and state.namespace.name in found.switched

    def test_contextual_rows_go_before_vectors_and_vectors_before_the_index(self) -> None:
        """Nothing is built of what is not there yet."""
        found = plan(TIED, changed(TIED, towers__both__input__max_length=256))
        built = [each.namespace for each in found.actions if each.action in (Act.RE_ENCODE, Act.REBUILD_INDEX)]
        assert built == ["document rows", "documents", "queries", "index"]

    def test_the_order_of_declaration_plays_no_part(self) -> None:
        """The same plan."""
        after = changed(TIED, towers__both__input__max_length=256)
        assert plan(TIED, after) == plan(TIED, after, tuple(reversed(DEPLOYED)))

    def test_the_rollback_targets_namespaces_are_pinned(self) -> None:
        """All of them, and every drop says so."""
        found = plan(TIED, changed(TIED, towers__both__input__max_length=256))
        assert set(found.pinned) == {each.name for each in DEPLOYED}
        assert found.rollback_target == whole(TIED).content_id
        for each in found.actions:
            assert each.action is not Act.DROP or "Pinned until" in each.reason

    def test_as_diff_prints_it(self) -> None:
        """Action, namespace, items, of, reason."""
        (row,) = plan(meaning("tied"), meaning("tied"), VECTORS[:1]).rows()
        assert set(row) == {"action", "namespace", "items", "of", "reason"}
        assert (row["action"], row["namespace"], row["items"], row["of"]) == ("keep", "documents", 1000, 1000)
