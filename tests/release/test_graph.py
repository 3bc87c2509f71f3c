"""A release is a graph whose keys hold everything that changes an output, and nothing else."""

import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from harness.identity import digest
from harness.lifecycle.invalidation import calibration_key
from harness.release.difference import changes
from harness.release.field import HEAD_STEPS, STEPS, Kind, fields, join
from harness.release.graph import Graph, graph, places
from harness.release.manifest import Meaning
from tests.lifecycle.example import CALIBRATOR, changed, manifest, meaning, sha, whole

KINDS = ("tied", "untied", "late", "cross", "head", "span", "two-stage", "fusion", "recorded")


def of(kind: str, **values: Any) -> Graph:
    return graph(Meaning.model_validate(changed(meaning(kind), **values)))


def moved(before: Graph, after: Graph) -> set[str]:
    """Names of the nodes that have another key, or that only one of the two has."""
    old, new = before.as_record(), after.as_record()
    return {name for name in {**old, **new} if old.get(name) != new.get(name)}


def leaves(annotation: Any, path: str) -> Iterator[str]:
    """Every path of the schema that leads to a plain value."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        yield from leaves(inner[0], path)
    elif origin in (Union, types.UnionType):
        for each in inner:
            if each is not type(None):
                yield from leaves(each, path)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield from leaves(field.annotation, f"{path}.{name}".lstrip("."))
    elif origin is dict:
        yield from leaves(inner[1], f"{path}.*")
    elif origin is list and isinstance(inner[0], type) and issubclass(inner[0], BaseModel):
        yield from leaves(inner[0], f"{path}.*")
    else:
        yield path


class TestTheMap:
    def test_every_field_of_the_schema_has_its_node(self) -> None:
        """A field that is in the schema and not in the map, or in the map alone, is named here."""
        schema = set(leaves(Meaning, "")) | {"towers.*.input.normaliser"}
        assert {path for path in schema if path not in STEPS} - {"towers.*.input.normaliser.*"} == set()
        assert set(STEPS) - schema == set()
        assert set(HEAD_STEPS) == set(STEPS)

    def test_an_unmapped_field_is_an_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is never passed over."""
        monkeypatch.setattr("harness.release.field.STEPS", {k: v for k, v in STEPS.items() if k != "score.ties"})
        with pytest.raises(KeyError, match=r"score\.ties"):
            fields(Meaning.model_validate(meaning("tied")))

    def test_a_null_where_a_record_may_stand_is_no_field(self) -> None:
        """A calibrator that is not there has no digest."""
        stated = {field.path for field in fields(Meaning.model_validate(meaning("tied")))}
        assert not {path for path in stated if path.startswith(("score.calibrator", "training", "recording"))}
        assert "score.threshold" in stated

    def test_paths_in_writing(self) -> None:
        """A key that is no name stands in brackets."""
        assert join(("towers", "both", "input", "tokenizer", "a/b.json")) == "towers.both.input.tokenizer[a/b.json]"


class TestShape:
    """Which nodes a release has, and what each descends from."""

    @pytest.mark.parametrize("kind", ["tied", "untied"])
    def test_bi_encoder(self, kind: str) -> None:
        """Two chains that meet in the raw score, the documents' through their index."""
        ports = {node.name: node.ports for node in of(kind).nodes}
        assert ports == {
            "source:query": (),
            "contextual:query": (("query", "source:query"),),
            "vector:query": (("query", "contextual:query"),),
            "source:document": (),
            "contextual:document": (("document", "source:document"),),
            "vector:document": (("document", "contextual:document"),),
            "index:document": (("document", "vector:document"),),
            "raw score": (("document", "index:document"), ("query", "vector:query")),
            "decision": (("pair", "raw score"),),
        }

    def test_two_encoders_made_of_two_releases(self) -> None:
        """Theirs are the encoders in its own meaning; it has no nodes of theirs."""
        meant = meaning("untied")
        parts = {"query": meaning("tied"), "document": meaning("tied")}
        assert whole(meant, parts).graph.as_record() == of("untied").as_record()
        other = {"query": changed(meaning("tied"), score__ties="trec"), "document": meaning("tied")}
        before, after = whole(meaning("untied"), parts), whole(meaning("untied"), other)
        found = changes(before.manifest, after.manifest, parent_parts=before.parts, candidate_parts=after.parts)
        assert [(change.field, change.node) for change in found] == [("interaction.releases.query", None)]

    @pytest.mark.parametrize(("kind", "side"), [("cross", "pair"), ("head", "text"), ("span", "pair")])
    def test_cross_encoder_and_heads_have_no_vector(self, kind: str, side: str) -> None:
        """Source, contextual rows, raw score, decision."""
        names = [node.name for node in of(kind).nodes]
        assert names == [f"source:{side}", f"contextual:{side}", "raw score", "decision"]

    def test_a_head_on_a_pooled_vector_has_one(self) -> None:
        """Its labels and weights leave it as it is."""
        names = [node.name for node in of("head", towers__text__readout__family="pooled").nodes]
        assert "vector:text" in names

    def test_late_interaction(self) -> None:
        """The vectors are the rows; MaxSim is in the raw score, and without an index there is no such node."""
        names = [node.name for node in of("late").nodes]
        assert names[-2:] == ["raw score", "decision"]
        assert {"vector:query", "vector:document"} < set(names)
        entered = {field.path for field in of("late").find("raw score").fields}
        assert {"interaction.maxsim", "interaction.maxsim_ties", "score.type"} <= entered

    def test_two_stages(self) -> None:
        """Pairs don't descend from the retriever; the decision does, and its calibrator."""
        meant = changed(meaning("two-stage"), score__calibrator=CALIBRATOR)
        two = whole(meant, {"retriever": meaning("tied"), "reranker": meaning("cross")}).graph
        pairs, calibrated = two.find("raw score:reranker"), two.find("calibrated")
        assert pairs is not None and calibrated is not None
        assert {node.name for node in two.lineage(pairs)} == {
            "source:reranker/pair", "contextual:reranker/pair", "raw score:reranker",
        }  # fmt: skip
        assert "vector:retriever/document" in {node.name for node in two.lineage(calibrated)}
        assert [port for port, _ in calibrated.ports] == ["corpus", "stage:reranker", "stage:retriever"]

    def test_two_stages_of_which_only_the_content_is_known(self) -> None:
        """Each stands as one raw score under its content ID."""
        assert [node.name for node in of("two-stage").nodes] == [
            "raw score:reranker", "raw score:retriever", "decision",
        ]  # fmt: skip

    def test_two_stages_told_by_their_encoders(self) -> None:
        """The pairs are scored by the encoder under `pair`, and spared by what the retriever's content ID says."""
        towers = {**meaning("tied")["towers"], **meaning("cross")["towers"]}
        before = of("two-stage", towers=towers)
        assert {"vector:document", "contextual:pair", "raw score:retriever", "raw score:reranker"} < set(
            before.as_record()
        )
        releases = {"retriever": sha("other"), "reranker": sha("renamed")}
        assert moved(before, of("two-stage", towers=towers, interaction__releases=releases)) == {"decision"}

    def test_the_retrievers_index_is_a_retrievers_also_in_two_stages(self) -> None:
        """Not the final score's."""
        towers = {**meaning("tied")["towers"], **meaning("cross")["towers"]}
        index = of("two-stage", towers=towers, score__index="flat").find("index:document")
        assert index is not None
        assert [field.path for field in index.fields] == ["score.index"]

    def test_fusion(self) -> None:
        """One raw score with a port for each space; its weights spare what each space scored."""
        parts = {"dense": meaning("tied"), "rows": meaning("late")}
        before = whole(meaning("fusion"), parts).graph
        fused = before.find("raw score")
        assert fused is not None
        assert fused.ports == (("space:dense", "raw score:dense"), ("space:rows", "raw score:rows"))
        after = whole(changed(meaning("fusion"), interaction__weights={"dense": 0.9, "rows": 0.1}), parts).graph
        assert moved(before, after) == {"raw score", "decision"}

    def test_a_fusion_of_two_stages_descends_from_what_they_rank(self) -> None:
        """From both stages and the depth between them."""
        stages = meaning("two-stage")
        parts = {"dense": stages, "rows": meaning("late")}
        before = whole(meaning("fusion"), parts).graph
        fused = before.find("raw score")
        assert fused is not None and fused.ports[0] == ("space:dense", "decision:dense")
        deeper = {**parts, "dense": changed(stages, interaction__depth=50)}
        assert {"raw score", "decision"} <= moved(before, whole(meaning("fusion"), deeper).graph)

    def test_windows_are_joined_in_a_second_node(self) -> None:
        """Split and stride are the source's; what is calibrated is the joined score."""
        window = {"size": 128, "stride": 64, "aggregation": "best", "normalise": None, "owner": None, "text": None}
        windowed = of("span", towers__pair__input__window=window, score__calibrator=CALIBRATOR)
        ports = {node.name: node.ports for node in windowed.nodes}
        assert ports["raw score:aggregated"] == (("window", "raw score"),)
        assert ports["calibrated"] == (("pair", "raw score:aggregated"),)

    def test_what_calibrates_a_window_calibrates_no_text(self) -> None:
        """A calibrator's key is that of the joined score, which no window's score has."""
        window = {
            "size": 128,
            "stride": 64,
            "aggregation": "mean-of-logits",
            "normalise": None,
            "owner": None,
            "text": None,
        }
        windowed = of("head", towers__text__input__window=window, score__calibrator=CALIBRATOR)
        key = calibration_key(windowed)
        assert key == windowed.as_record()["raw score:aggregated"] != windowed.as_record()["raw score"]
        other = of("head", towers__text__input__window={**window, "aggregation": "mean-of-probabilities"},
                   score__calibrator=CALIBRATOR)  # fmt: skip
        assert calibration_key(other) != key and other.as_record()["raw score"] == windowed.as_record()["raw score"]

    @pytest.mark.parametrize(
        ("kind", "tower", "one", "other", "hit"),
        [
            ("tied", "both", "mean", None, "vector"),
            ("tied", "both", "rows", None, "contextual"),
            ("tied", "both", "best", None, "raw score"),
            ("cross", "pair", "best", "mean-of-logits", "raw score"),
            ("head", "text", "mean-of-logits", "mean-of-probabilities", "raw score"),
        ],
    )
    def test_how_they_are_joined_enters_that_node_alone(
        self, kind: str, tower: str, one: str, other: str | None, hit: str
    ) -> None:
        """And not what each window gave; what is joined is of the kind that it is joined from."""
        window = {"size": 64, "stride": 32, "aggregation": one, "normalise": None, "owner": None, "text": None}
        before = changed(meaning(kind), **{f"towers__{tower}__input__window": window})
        found = graph(Meaning.model_validate(before))
        joined = [node for node in found.nodes if node.name.endswith(":aggregated")]
        assert {(str(node.kind), tuple(field.name for field in node.fields)) for node in joined} == {
            (hit, ("input.window.aggregation", "input.window.normalise", "input.window.owner"))
        }
        for node in joined:
            [(port, of)] = node.ports
            assert port == "window" and of == node.name.removesuffix(":aggregated")
        if other is not None:
            after = changed(before, **{f"towers__{tower}__input__window__aggregation": other})
            assert moved(found, graph(Meaning.model_validate(after))) == {"raw score:aggregated", "decision"}
            [change] = changes(manifest(before), manifest(after))
            assert (change.field, change.node) == (f"towers.{tower}.input.window.aggregation", hit)

    def test_a_vector_that_is_joined_is_what_is_indexed(self) -> None:
        """And split and stride stay the source's."""
        window = {"size": 64, "stride": 32, "aggregation": "mean", "normalise": None, "owner": None, "text": None}
        joined = of("tied", towers__both__input__window=window)
        index, source = joined.find("index:document"), joined.find("source:document")
        assert index is not None and index.ports == (("document", "vector:document:aggregated"),)
        assert source is not None
        names = {field.name for field in source.fields if "window" in field.name}
        assert names == {f"input.window.{name}" for name in ("size", "stride", "text")}

    def test_what_depends_on_the_corpus_has_a_port_for_it(self) -> None:
        """A retriever's probability moves with the documents, its vectors and scores don't."""
        meant = Meaning.model_validate(changed(meaning("tied"), score__calibrator=CALIBRATOR))
        old, new = graph(meant, corpus=sha("documents")), graph(meant, corpus=sha("other documents"))
        assert moved(old, new) == {"source:corpus", "calibrated", "decision"}
        assert of("cross", score__calibrator=CALIBRATOR).find("source:corpus") is None

    def test_a_recording_is_one_raw_score(self) -> None:
        """All that is declared of it enters there."""
        assert [node.name for node in of("recorded").nodes] == ["raw score", "decision"]
        other = of("recorded", recording__outputs=sha("other run"))
        assert moved(of("recorded"), other) == {"raw score", "decision"}

    @pytest.mark.parametrize("kind", KINDS)
    def test_nodes_stand_after_what_they_descend_from(self, kind: str) -> None:
        """The graph has no ring, and ends in the decision."""
        seen: set[str] = set()
        for node in of(kind, score__calibrator=CALIBRATOR).nodes:
            assert {name for _, name in node.ports} <= seen
            seen.add(node.name)
        assert node.name == "decision"
        assert len(seen) == len(of(kind, score__calibrator=CALIBRATOR).nodes)


def both(*kinds: str) -> set[str]:
    return {f"{kind}:{side}" for kind in kinds for side in ("query", "document")}


AFTER_VECTORS = {"index:document", "raw score", "decision"}
TIED = both("source", "contextual", "vector") | AFTER_VECTORS
DENSE = {
    "kind": "dense", "width_in": 384, "width_out": 64, "bias": True, "activation": "tanh", "residual": False,
    "weights": sha("dense"),
}  # fmt: skip
SKIP_NOTHING: dict[str, Any] = {}
PAIR = {"source:pair", "contextual:pair", "raw score", "decision"}
SCORES = {"raw score", "decision"}

# kind, what changes, to what, the kind of node that it hits first (None: none), every node whose key moves
TABLE: list[tuple[str, str, Any, str | None, set[str]]] = [
    # tokenizer, template, positions, windows: everything
    ("tied", "towers__both__input__tokenizer", {"tokenizer.json": sha("other")}, "source", TIED),
    ("tied", "towers__both__input__normaliser", {"type": "Lowercase"}, "source", TIED),
    ("tied", "towers__both__input__lower_case", False, "source", TIED),
    ("tied", "towers__both__input__max_length", 256, "source", TIED),
    ("tied", "towers__both__input__truncation_side", "left", "source", TIED),
    ("tied", "towers__both__input__padding_side", "left", "source", TIED),
    ("tied", "towers__both__input__special_tokens", {"cls": 101, "sep": 103}, "source", TIED),
    ("tied", "towers__both__input__window",
     {"size": 64, "stride": 32, "aggregation": "best", "normalise": None, "owner": None, "text": None}, "source",
     TIED | {"raw score:aggregated"}),
    ("tied", "towers__both__rows__segments", False, "source", TIED),
    # a prompt is its side's alone
    ("tied", "towers__both__input__prompts", {"query": "query: ", "document": ""}, "source",
     {"source:query", "contextual:query", "vector:query", *SCORES}),
    ("tied", "towers__both__input__prompts", {"query": "", "document": "passage: "}, "source",
     {"source:document", "contextual:document", "vector:document", *AFTER_VECTORS}),
    ("tied", "towers__both__input__suite_prompts", {"help": {"query": "ask: "}}, "source",
     {"source:query", "contextual:query", "vector:query", *SCORES}),
    # backbone or adapter
    ("tied", "towers__both__artifact__backbone", sha("other"), "contextual",
     TIED - both("source")),
    ("tied", "towers__both__artifact__adapter", sha("lora"), "contextual",
     TIED - both("source")),
    ("tied", "towers__both__artifact__visibility", "causal-made-bidirectional", "contextual", TIED - both("source")),
    ("untied", "towers__query__artifact__backbone", sha("other"), "contextual",
     {"contextual:query", "vector:query", *SCORES}),
    ("untied", "towers__document__artifact__backbone", sha("other"), "contextual",
     {"contextual:document", "vector:document", *AFTER_VECTORS}),
    # layer, pooling, projection, normalisation, stored form
    ("tied", "towers__both__state__layers", [11], "contextual", TIED - both("source")),
    ("tied", "towers__both__readout__modes", ["cls"], "vector", TIED - both("source", "contextual")),
    ("tied", "towers__both__readout__projections", [DENSE], "vector", TIED - both("source", "contextual")),
    ("tied", "towers__both__readout__normalisation__kind", "none", "vector", TIED - both("source", "contextual")),
    ("tied", "towers__both__readout__truncate_dim", 64, "vector", TIED - both("source", "contextual")),
    ("tied", "towers__both__readout__stored", "int8", "vector", TIED - both("source", "contextual")),
    ("tied", "towers__both__rows__prompt", False, "vector", TIED - both("source", "contextual")),
    ("untied", "towers__query__readout__modes", ["cls"], "vector", {"vector:query", *SCORES}),
    # index type and metric
    ("tied", "score__type", "dot", "index", AFTER_VECTORS),
    ("tied", "score__index", "none", "index", AFTER_VECTORS),
    ("tied", "score__temperature", 0.05, "raw score", SCORES),
    # calibrator, threshold, tie rule
    ("tied", "score__calibrator", CALIBRATOR, "calibrated", {"source:corpus", "calibrated", "decision"}),
    ("tied", "score__threshold", 0.5, "decision", {"decision"}),
    ("tied", "score__ties", "trec", "decision", {"decision"}),
    # what explains, and changes no output
    ("tied", "training", {"objectives": ["contrastive"], "seed": 7}, None, set()),
    ("tied", "towers__both__artifact__revision", "main@1", None, set()),
    ("tied", "towers__both__rows__offsets", False, None, set()),
    ("untied", "interaction__tied", None, None, set()),
    # late interaction: row policies by side, MaxSim in the raw score
    ("late", "towers__both__rows__skipped", SKIP_NOTHING, "vector", {"vector:document", *SCORES}),
    ("late", "towers__both__rows__expansion", {"query": 64}, "source",
     {"source:query", "contextual:query", "vector:query", *SCORES}),
    ("late", "towers__both__rows__expansion_token", "[PAD]", "source",
     {"source:query", "contextual:query", "vector:query", *SCORES}),
    ("late", "towers__both__rows__expansion_counts", False, "vector", {"vector:query", *SCORES}),
    ("late", "towers__both__readout__projections__0__weights", sha("other"), "vector",
     both("vector") | SCORES),
    ("late", "interaction__token_schema", "rows.v2", "vector", both("vector") | SCORES),
    ("late", "interaction__maxsim", "mean", "raw score", SCORES),
    ("late", "score__threshold", 9.5, "decision", {"decision"}),
    # cross-encoder
    ("cross", "towers__pair__input__truncation", "only_second", "source", PAIR),
    ("cross", "towers__pair__input__template", "pair", "source", PAIR),
    ("cross", "towers__pair__input__prompts", {"pair": "judge: "}, "source", PAIR),
    ("cross", "towers__pair__artifact__backbone", sha("other"), "contextual",
     PAIR - {"source:pair"}),
    ("cross", "towers__pair__artifact__head", sha("other"), "raw score", SCORES),
    ("cross", "towers__pair__readout__empty", "zero", "raw score", SCORES),
    ("cross", "score__activation", "sigmoid", "raw score", SCORES),
    ("cross", "score__threshold", 0.5, "decision", {"decision"}),
    # heads: weights, labels, alignment, decoding
    ("head", "towers__text__artifact__head", sha("other"), "raw score", SCORES),
    ("head", "output__labels", ["BUY", "ASK", "SELL"], "raw score", SCORES),
    ("head", "output__kind", "multilabel", "raw score", SCORES),
    ("head", "output__decoder", "sigmoid-threshold", "decision", {"decision"}),
    ("head", "score__threshold", [0.5, 0.4, 0.3], "decision", {"decision"}),
    ("head", "score__calibrator", CALIBRATOR, "calibrated", {"calibrated", "decision"}),
    ("head", "towers__text__rows__words", False, "raw score", SCORES),
    ("head", "towers__text__state__layers", [10], "contextual", {"contextual:text", *SCORES}),
    ("span", "output__null", "none of the rows", "raw score", SCORES),
    ("span", "output__decoder", "argmax", "decision", {"decision"}),
    # two stages
    ("two-stage", "interaction__releases", None, "raw score", {"raw score:retriever", "decision"}),
    ("two-stage", "interaction__depth", 50, "decision", {"decision"}),
    ("two-stage", "score__activation", "sigmoid", "raw score", {"raw score:reranker", "decision"}),
    ("two-stage", "score__threshold", 0.1, "decision", {"decision"}),
]  # fmt: skip


# Those of a tied bi-encoder that neither add a node nor remove one.
SAME_NODES = {
    path: value
    for kind, path, value, *_ in TABLE
    if kind == "tied" and path not in ("towers__both__input__window", "score__calibrator", "score__index")
}


def changed_row(kind: str, path: str, value: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    before = meaning(kind)
    if path == "interaction__releases":
        value = {**before["interaction"]["releases"], "retriever": sha("another retriever")}
    return before, changed(before, **{path: value})


class TestSingleChanges:
    """Some sixty single changes, each with the nodes that it hits; every other one is spared."""

    @pytest.mark.parametrize(
        ("kind", "path", "value", "hit", "names"), TABLE,
        ids=[f"{kind}-{path}-{at}" for at, (kind, path, *_) in enumerate(TABLE)],
    )  # fmt: skip
    def test_a_change_moves_the_nodes_it_enters_and_what_descends_from_them(
        self, kind: str, path: str, value: Any, hit: str | None, names: set[str]
    ) -> None:
        """And `changes` names the first of them."""
        before, after = changed_row(kind, path, value)
        graphs = [graph(Meaning.model_validate(each)) for each in (before, after)]
        assert moved(*graphs) == names
        found = changes(manifest(before), manifest(after))
        assert found
        nodes = {change.node for change in found}
        assert hit in nodes
        assert path in ("score__calibrator", "towers__both__input__window") or nodes == {hit}

    def test_what_is_not_said_of_a_training_is_no_change(self) -> None:
        """Of two fields that are, two: also a seed of 0, and no empty list beside them."""
        before, after = meaning("tied"), changed(meaning("tied"), training={"seed": 0, "objectives": ["contrastive"]})
        found = changes(manifest(before), manifest(after))
        assert [change.field for change in found] == ["training.objectives", "training.seed"]
        assert changes(manifest(before), manifest(changed(meaning("tied"), training={}))) == ()

    def test_the_table_is_long_enough(self) -> None:
        """Every kind of node is hit first by some change."""
        assert len(TABLE) >= 40
        assert {hit for *_, hit, _ in TABLE} == {*map(str, Kind), None}


class TestKeys:
    @pytest.mark.parametrize("kind", KINDS)
    def test_order_and_sources_play_no_part(self, kind: str) -> None:
        """Nor does the name: the same meaning written in another order has the same keys."""

        def reversed_keys(value: Any) -> Any:
            if isinstance(value, dict):
                return {key: reversed_keys(inner) for key, inner in reversed(value.items())}
            return value

        other = reversed_keys(meaning(kind))
        before, after = (graph(Meaning.model_validate(each)) for each in (meaning(kind), other))
        assert dict(before.as_record()) == dict(after.as_record())

    def test_a_store_of_one_side_never_passes_for_one_of_the_other(self) -> None:
        """Where both sides read alike, the port tells them apart; else a query's prompt could change unseen."""
        keys = of("tied").as_record()
        assert keys["vector:query"] != keys["vector:document"]
        assert keys["contextual:query"] != keys["contextual:document"]

    def test_two_heads_that_enter_one_node_are_told_apart(self) -> None:
        """Each is its side's: neither hides the other, and they cannot change places unseen."""
        one, two, three = (changed(meaning("head")["towers"]["text"], artifact__head=sha(name)) for name in "abc")
        before = of("head", towers={"query": one, "document": two})
        for towers in ((two, one), (three, two), (one, three)):
            after = of("head", towers=dict(zip(("query", "document"), towers, strict=True)))
            assert moved(before, after) == {"raw score", "decision"}

    def test_how_a_text_is_filled_up_says_nothing_where_none_is(self) -> None:
        """The token enters no side without an expansion."""
        values = {"towers__both__rows__expansion_token": "[MASK]", "towers__both__rows__expansion_attended": True}
        assert moved(of("tied"), of("tied", **values)) == set()
        found = changes(manifest(meaning("tied")), manifest(changed(meaning("tied"), **values)))
        assert {change.node for change in found} == {None}

    def test_untying_without_a_change_keeps_every_key(self) -> None:
        """Two copies of one encoder are what one was."""
        tied = meaning("tied")
        apart = changed(
            tied, towers=dict.fromkeys(("query", "document"), tied["towers"]["both"]), interaction__tied=False
        )
        assert moved(graph(Meaning.model_validate(tied)), graph(Meaning.model_validate(apart))) == set()

    def test_an_absent_prompt_is_an_empty_one(self) -> None:
        """As a side whose expansion is not stated has none."""
        assert moved(of("tied"), of("tied", towers__both__input__prompts={})) == set()

    def test_the_order_of_tokens_left_out_says_nothing(self) -> None:
        """They are a set."""
        assert moved(of("late"), of("late", towers__both__rows__skipped={"document": [",", "."]})) == set()

    def test_the_key_by_hand(self) -> None:
        """Kind, fields by name without those that are null, ports with the keys of what enters."""
        raw, decision = of("recorded").nodes
        assert decision.key == digest({
            "kind": "decision",
            "fields": {"output.decoder": "none", "score.ties": "expected"},
            "ports": [["pair", raw.key]],
        })  # fmt: skip

    def test_a_parts_key_is_that_of_the_release_itself(self) -> None:
        """So what a retriever deployed alone has stored holds in two stages."""
        two = whole(meaning("two-stage"), {"retriever": meaning("tied"), "reranker": meaning("cross")}).graph
        assert of("tied").as_record()["index:document"] == two.as_record()["index:retriever/document"]

    @given(st.sets(st.sampled_from(sorted(SAME_NODES)), max_size=5))
    @settings(max_examples=40, deadline=None)
    def test_a_key_moves_iff_a_field_on_the_way_to_it_did(self, paths: set[str]) -> None:
        """Over any subset of the table's changes, nothing more and nothing less."""
        values = {path: SAME_NODES[path] for path in paths}
        before, after = of("tied"), of("tied", **values)
        found = changes(manifest(meaning("tied")), manifest(changed(meaning("tied"), **values)))
        differing = {change.field for change in found}
        expected = {
            node.name
            for node in after.nodes
            for graph in (before, after)
            for each in graph.lineage(graph.find(node.name))
            if differing & {field.path for field in each.fields}
        }
        assert moved(before, after) == expected


class TestChanges:
    def test_field_values_node_and_side(self) -> None:
        """Sorted by path, as JSON."""
        before = manifest(meaning("tied"))
        after = manifest(changed(
            meaning("tied"), towers__both__input__prompts={"query": "query: ", "document": ""},
            towers__both__input__max_length=256, score__threshold=0.5,
        ))  # fmt: skip
        assert [change.as_record() for change in changes(before, after)] == [
            {"field": "score.threshold", "old": None, "new": 0.5, "node": "decision", "side": None},
            {"field": "towers.both.input.max_length", "old": 128, "new": 256, "node": "source", "side": "both"},
            {
                "field": "towers.both.input.prompts.query",
                "old": "",
                "new": "query: ",
                "node": "source",
                "side": "query",
            },
        ]

    def test_releases_that_mean_the_same(self) -> None:
        """A name is no change."""
        assert changes(manifest(meaning("tied")), manifest(meaning("tied"), name="other")) == ()

    def test_what_computes_is_listed_and_enters_no_node(self) -> None:
        """Declared and observed, as `runtime`."""
        before, after = manifest(meaning("tied"), torch="2.6.0"), manifest(meaning("tied"), torch="2.7.0")
        assert [(change.field, change.node) for change in changes(before, after)] == [
            ("runtime.observed.torch", "runtime")
        ]

    def test_a_shared_encoder_against_two(self) -> None:
        """Only what differs on a side is listed, under that side."""
        tied = meaning("tied")
        query = changed(tied["towers"]["both"], readout__modes=["cls"])
        apart = changed(tied, towers={"query": query, "document": tied["towers"]["both"]}, interaction__tied=False)
        assert [(change.field, change.side) for change in changes(manifest(tied), manifest(apart))] == [
            ("interaction.tied", None), ("towers.query.readout.modes", "query"),
        ]  # fmt: skip

    def test_the_file_that_was_swapped_is_named(self) -> None:
        """A digest under another path, or another digest under the same."""
        after = changed(
            meaning("tied"), towers__both__input__tokenizer={"tokenizer.json": sha("x"), "vocab.txt": sha("y")}
        )
        found = changes(manifest(meaning("tied")), manifest(after))
        assert [(change.field, change.old, change.new) for change in found] == [
            ("towers.both.input.tokenizer[tokenizer.json]", sha("tokenizer"), sha("x")),
            ("towers.both.input.tokenizer[vocab.txt]", None, sha("y")),
        ]

    def test_another_part_is_told_by_its_fields(self) -> None:
        """Under its role, at its own nodes."""
        before, after = (
            whole(meaning("two-stage"), {"retriever": meaning("tied"), "reranker": cross})
            for cross in (meaning("cross"), changed(meaning("cross"), score__activation="sigmoid"))
        )
        found = changes(
            before.manifest, after.manifest, parent_parts=before.parts, candidate_parts=after.parts
        )  # fmt: skip
        assert [(change.field, change.node) for change in found] == [
            ("interaction.releases.reranker", None), ("reranker.score.activation", "raw score"),
        ]  # fmt: skip

    @pytest.mark.parametrize("kind", KINDS)
    def test_every_field_that_enters_nothing_is_one_that_explains(self, kind: str) -> None:
        """A field with a step has a node in every kind of release."""
        meant = Meaning.model_validate(meaning(kind))
        entering = {field.path for node in graph(meant).nodes for field in node.fields}
        lost = {field.path for field in fields(meant) if field.step is not None} - entering
        assert lost == set()
        assert places(meant)


# Literal is what the schema's choices are made of; a leaf of it is a plain value.
assert list(leaves(Literal["a"], "x")) == ["x"]
