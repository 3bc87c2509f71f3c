"""A namespace is reusable iff its key is the candidate's, unproven where another runtime wrote it, else invalid."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.lifecycle.compatibility import (
    SAMPLE,
    TOLERANCE,
    NamespaceState,
    ParityRun,
    Reuse,
    Scoring,
    compatibility,
    shown,
)
from harness.lifecycle.namespace import Namespace
from harness.release.semantic import SemanticTuple
from tests.lifecycle.example import CALIBRATOR, changed, meaning, sha, whole

REUSABLE, UNPROVEN, INVALID = Reuse
DEPLOYED = (
    Namespace(name="document rows", kind="contextual", side="document", count=1000),
    Namespace(name="documents", kind="vector", side="document", count=1000, bytes=1_536_000),
    Namespace(name="queries", kind="vector", side="query", count=50),
    Namespace(name="index", kind="index", side="document", count=1000),
    Namespace(name="scores", kind="pair-score"),
    Namespace(name="probabilities", kind="calibrated"),
    Namespace(name="answers", kind="decision"),
)
NODES = {
    "document rows": "contextual:document", "documents": "vector:document", "queries": "vector:query",
    "index": "index:document", "scores": "raw score", "probabilities": "calibrated", "answers": "decision",
}  # fmt: skip
TIED = changed(meaning("tied"), score__calibrator=CALIBRATOR)


def states(before: dict[str, Any], after: dict[str, Any], namespaces: Any = DEPLOYED) -> dict[str, NamespaceState]:
    found = compatibility(namespaces, whole(before), whole(after))
    return {each.namespace.name: each for each in found}


def invalid(**values: Any) -> set[str]:
    found = states(TIED, changed(TIED, **values))
    return {name for name, each in found.items() if each.state is INVALID}


ALL = {each.name for each in DEPLOYED}


class TestTheDesignsTable:
    """What is spared and what is not, change by change."""

    @pytest.mark.parametrize(
        ("path", "value", "expected"),
        [
            ("towers__both__input__tokenizer", {"tokenizer.json": sha("x")}, ALL),
            ("towers__both__input__max_length", 256, ALL),
            ("towers__both__artifact__backbone", sha("x"), ALL),
            ("towers__both__artifact__adapter", sha("x"), ALL),
            ("towers__both__state__layers", [11], ALL),
            ("towers__both__readout__modes", ["cls"], ALL - {"document rows"}),
            ("towers__both__readout__normalisation__kind", "none", ALL - {"document rows"}),
            ("towers__both__readout__stored", "int8", ALL - {"document rows"}),
            ("score__type", "dot", ALL - {"document rows", "documents", "queries"}),
            ("towers__both__input__prompts", {"query": "q: ", "document": ""},
             ALL - {"document rows", "documents", "index"}),
            ("score__calibrator", {**CALIBRATOR, "digest": sha("x")}, {"probabilities", "answers"}),
            ("score__threshold", 0.5, {"answers"}),
            ("score__ties", "trec", {"answers"}),
            ("towers__both__artifact__revision", "v2", set()),
        ],
    )  # fmt: skip
    def test_a_change_spares_what_does_not_descend_from_it(self, path: str, value: Any, expected: set[str]) -> None:
        """Bi-encoder with one shared encoder."""
        assert invalid(**{path: value}) == expected

    def test_head_weights_and_labels_spare_the_vector(self) -> None:
        """Where the head stands on one."""
        head = changed(meaning("head"), towers__text__readout__family="pooled")
        kept = (
            Namespace(name="vectors", kind="vector", side="text"),
            Namespace(name="logits", kind="pair-score"),
        )
        found = states(head, changed(head, towers__text__artifact__head=sha("x")), kept)
        assert [each.state for each in found.values()] == [REUSABLE, INVALID]
        found = states(head, changed(head, output__labels=["HOLD", "BUY", "SELL"]), kept)
        assert [each.state for each in found.values()] == [REUSABLE, INVALID]

    def test_a_pair_score_does_not_descend_from_the_retriever(self) -> None:
        """The decision does."""
        kept = (
            Namespace(name="pairs", kind="pair-score"),
            Namespace(name="index", kind="index"),
            Namespace(name="answers", kind="decision", node="decision"),
        )
        cross, retriever = meaning("cross"), meaning("tied")
        before = whole(meaning("two-stage"), {"retriever": retriever, "reranker": cross})
        other = changed(retriever, towers__both__readout__modes=["cls"])
        after = whole(meaning("two-stage"), {"retriever": other, "reranker": cross})
        found = compatibility(kept, before, after)
        assert [each.state for each in found] == [REUSABLE, INVALID, INVALID]
        assert found[1].reason.startswith("retriever.towers.both.readout.modes")


CHANGES: dict[str, Any] = {
    "towers__both__input__max_length": 256,
    "towers__both__input__prompts": {"query": "q: ", "document": ""},
    "towers__both__artifact__config": sha("x"),
    "towers__both__state__final_norm": True,
    "towers__both__readout__truncate_dim": 64,
    "towers__both__artifact__revision": "v2",
    "score__type": "dot",
    "score__temperature": 2.0,
    "score__calibrator": {**CALIBRATOR, "family": "platt"},
    "score__threshold": 0.5,
    "interaction__tied": None,
}


class TestNothingMoreThanDemanded:
    @given(st.sets(st.sampled_from(sorted(CHANGES))))
    @settings(max_examples=40, deadline=None)
    def test_invalid_iff_something_on_the_way_to_its_node_changed(self, paths: set[str]) -> None:
        """Over any subset of changes, and the reason is one of them."""
        before, after = whole(TIED), whole(changed(TIED, **{path: CHANGES[path] for path in paths}))
        for each in compatibility(DEPLOYED, before, after):
            node = NODES[each.namespace.name]
            values = [
                sorted((field.path, shown(field.value)) for step in graph.lineage(found) for field in step.fields)
                for graph in (before.graph, after.graph)
                for found in [graph.find(node)]
                if found
            ]
            assert (each.state is INVALID) == (values[0] != values[1])
            assert each.state is not UNPROVEN
            if each.state is INVALID:
                assert any(path.rpartition("__")[2] in each.reason for path in paths)


class TestTheReason:
    def test_the_first_changed_field_is_named(self) -> None:
        """From the source on, with both values."""
        found = states(TIED, changed(TIED, towers__both__readout__modes=["cls"], towers__both__input__max_length=256))
        assert found["documents"].reason == (
            "towers.both.input.max_length 128 → 256, which enters at the source (and 1 more)"
        )
        assert found["documents"].node == "vector:document"
        assert found["documents"].old_key != found["documents"].new_key

    def test_an_untied_encoder_is_held_against_the_shared_one(self) -> None:
        """A side that did not change keeps its vectors; the other's change is told as that side's."""
        query = changed(TIED["towers"]["both"], readout__modes=["cls"])
        apart = changed(TIED, towers={"query": query, "document": TIED["towers"]["both"]}, interaction__tied=False)
        found = states(TIED, apart)
        assert [found[name].state for name in ("documents", "index", "queries")] == [REUSABLE, REUSABLE, INVALID]
        assert found["queries"].reason == 'towers.query.readout.modes ["mean"] → ["cls"], which enters at the vector'

    def test_a_release_that_became_a_part(self) -> None:
        """Its stores are held against the part's nodes."""
        before = whole(meaning("tied"))
        retriever = changed(meaning("tied"), towers__both__readout__modes=["cls"])
        for part, expected in ((meaning("tied"), REUSABLE), (retriever, INVALID)):
            after = whole(meaning("two-stage"), {"retriever": part, "reranker": meaning("cross")})
            (found,) = compatibility(DEPLOYED[3:4], before, after)
            assert found.state is expected
        assert found.reason == 'retriever.towers.both.readout.modes ["mean"] → ["cls"], which enters at the vector'

    def test_two_parts_are_told_apart(self) -> None:
        """A field of one is not the other's."""

        def fused(first: dict[str, Any]) -> SemanticTuple:
            return whole(meaning("fusion"), {"dense": first, "rows": meaning("tied")})

        after = changed(meaning("tied"), towers__both__readout__modes=["cls"], score__temperature=2.0)
        (found,) = compatibility(DEPLOYED[6:], fused(meaning("tied")), fused(after))
        assert [moved.field.path for moved in found.moved] == [
            "dense.towers.both.readout.modes", "dense.score.temperature",
        ]  # fmt: skip

    def test_a_node_that_the_candidate_lacks(self) -> None:
        """It is named."""
        found = states(TIED, meaning("cross"))
        assert found["documents"].reason == "the candidate has no vector:document"
        assert found["documents"].new_key is None

    def test_a_key_that_neither_release_has(self) -> None:
        """Then nothing tells which field it was."""
        older = Namespace(name="older", kind="vector", side="document", key=sha("older"))
        found = states(TIED, TIED, (older,))["older"]
        assert (found.state, found.old_key) == (INVALID, sha("older"))
        assert "neither release" in found.reason

    def test_a_key_that_the_candidate_has(self) -> None:
        """Whoever wrote it."""
        key = str(whole(TIED).graph.as_record()["vector:document"])
        kept = Namespace(name="older", kind="vector", side="document", key=key)
        assert states(meaning("late"), TIED, (kept,))["older"].state is REUSABLE

    def test_as_diff_prints_it(self) -> None:
        """Name, kind, side, state and reason."""
        record = states(TIED, TIED)["documents"].as_record()
        assert record == {
            "name": "documents", "kind": "vector", "side": "document", "state": "reusable",
            "reason": "its key is the candidate's vector:document",
        }  # fmt: skip


class TestRuntime:
    def held(self, *proven: ParityRun, namespace: Namespace = DEPLOYED[1]) -> NamespaceState:
        before, after = whole(TIED, torch="2.6.0", device="cpu"), whole(TIED, torch="2.7.0", device="cpu")
        return compatibility([namespace], before, after, proven=proven)[0]

    def test_everything_is_unproven_under_another(self) -> None:
        """Every kind of store, with the run that would prove it."""
        before, after = whole(TIED, torch="2.6.0"), whole(TIED, torch="2.7.0")
        assert {each.state for each in compatibility(DEPLOYED, before, after)} == {UNPROVEN}
        found = self.held()
        assert "torch" in found.reason and "2.6.0" in found.reason and "device" not in found.reason
        assert f"{SAMPLE} of its items" in found.reason and "1e-05" in found.reason
        assert found.parity is not None and found.parity.tolerance == TOLERANCE

    def test_a_parts_store_is_held_against_what_that_part_runs_on(self) -> None:
        """A composed release says by role what computes; that it says so itself changes nothing of a part."""
        before = whole(TIED, torch="2.6.0", device="cpu")
        parts = {"retriever": meaning("tied"), "reranker": meaning("cross")}
        for torch, expected in (("2.6.0", REUSABLE), ("2.7.0", UNPROVEN)):
            runtimes = {"retriever": {"torch": torch, "device": "cpu"}, "reranker": {"torch": "2.7.0"}}
            after = whole(meaning("two-stage"), parts, **runtimes)
            (found,) = compatibility(DEPLOYED[1:2], before, after)
            assert found.state is expected
        assert 'torch "2.6.0" → "2.7.0"' in found.reason and "reranker" not in found.reason

    def test_a_changed_key_is_invalid_whatever_computes(self) -> None:
        """No parity run can prove another meaning."""
        before, after = whole(TIED, torch="2.6.0"), whole(changed(TIED, score__threshold=0.5), torch="2.7.0")
        found = {each.namespace.name: each.state for each in compatibility(DEPLOYED, before, after)}
        assert (found["answers"], found["documents"]) == (INVALID, UNPROVEN)

    def test_a_parity_run_within_the_tolerance_proves_it(self) -> None:
        """The same namespace, key and runtime, enough items, a small difference; anything less does not."""
        demand = self.held().parity
        assert demand is not None
        run = ParityRun("documents", demand.key, demand.items, 1e-6, demand.runtime)
        assert self.held(run).state is REUSABLE
        assert "parity run of 256 items" in self.held(run).reason
        for worse in (
            replace(run, largest=1e-3), replace(run, largest=float("nan")), replace(run, items=255),
            replace(run, key=sha("x")), replace(run, namespace="queries"), replace(run, runtime={"torch": "2.6.0"}),
        ):  # fmt: skip
            assert self.held(worse).state is UNPROVEN

    def test_a_namespaces_own_runtime_and_tolerance_go_first(self) -> None:
        """Of what it states, only that is compared."""
        ours = DEPLOYED[1].model_copy(update={"runtime": {"torch": "2.7.0"}, "tolerance": 0.01})
        assert self.held(namespace=ours).state is REUSABLE
        other = DEPLOYED[1].model_copy(update={"runtime": {"dtype": "float16"}, "tolerance": 0.01})
        found = self.held(namespace=other)
        assert found.parity is not None and found.parity.tolerance == 0.01
        assert 'dtype "float16" → null' in found.reason


class TestBaseline:
    RUN = Namespace(
        name="last", kind="baseline", run="r", suite_lock=sha("lock"), scorers={"ranking": "1"}
    )  # fmt: skip

    @pytest.mark.parametrize(
        ("now", "expected", "said"),
        [
            (None, UNPROVEN, "not held against"),
            ([], INVALID, "no suite has the lock"),
            ([Scoring(sha("lock"), {"ranking": "1"})], REUSABLE, "present ones"),
            ([Scoring(sha("lock"), {"ranking": "2"})], INVALID, "scorer ranking: 1 → 2"),
            ([Scoring(sha("lock"), {"ranking": "1", "answer": "1"})], INVALID, "scorer answer"),
        ],
    )
    def test_its_suite_and_scorers_tell_it(self, now: Any, expected: Reuse, said: str) -> None:
        """The candidate has no part in it."""
        for after in (TIED, meaning("cross")):
            (found,) = compatibility([self.RUN], whole(TIED), whole(after), scorings=now)
            assert found.state is expected
            assert said in found.reason
