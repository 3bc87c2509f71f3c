"""Bi-encoders in every layout of Sentence Transformers, from their files alone."""

import pytest

from harness.errors import Misconfigured, NotAdmitted
from harness.release.difference import changes
from harness.release.graph import graph

from ..conftest import LIBRARY, MODULES, safetensors
from .conftest import described, source, tower

SETTINGS = "model/config_sentence_transformers.json"


def refused(folder, words: str) -> None:
    with pytest.raises(NotAdmitted, match=words):
        described(folder)


class TestModules:
    @pytest.mark.parametrize("prefix", ["models", "sentence_transformer.modules", "base.modules.transformer"])
    def test_old_and_new_names_are_one_module(self, bi, prefix):
        """The class is the last part, whatever package the library kept it in."""
        types = [{**entry, "type": f"{LIBRARY}.{prefix}.{entry['type'].rpartition('.')[2]}"} for entry in MODULES]
        other = bi("other").write("model/modules.json", types)
        assert described(other).identity.content_id == described(bi()).identity.content_id

    def test_a_module_folder_that_is_a_file_is_read_as_its_configuration(self, bi):
        """As a broken upload has it; whether it can be loaded is another question."""
        folder = bi().remove("model/1_Pooling/config.json")
        (folder.path / "model" / "1_Pooling").rmdir()
        folder.write("model/1_Pooling", {"word_embedding_dimension": 8, "pooling_mode_cls_token": True})
        assert tower(folder).readout.modes == ["cls"]
        assert source(folder, "towers.both.readout.modes") == "1_Pooling#/pooling_mode_cls_token"

    def test_a_module_of_someone_elses_is_refused(self, bi):
        """Only the library's own modules are run."""
        modules = [{"path": "", "type": "custom_st.Transformer"}]
        refused(bi().write("model/modules.json", modules), "custom_st.Transformer, which asks for remote code")

    @pytest.mark.parametrize("kind", ["BoW", "CLIPModel", "StaticEmbedding", "LSTM"])
    def test_a_module_that_is_not_supported_is_refused_by_name(self, bi, kind):
        """Its readout isn't one that the manifest can say."""
        refused(bi().write("model/modules.json", [{"path": "", "type": f"{LIBRARY}.models.{kind}"}]), kind)

    @pytest.mark.parametrize("content", ["{", "[]", "null", '[{"path": 1}]', "[1]"])
    def test_a_modules_file_that_is_broken_is_named(self, bi, content):
        """No JSON, or not a list of modules."""
        refused(bi().write("model/modules.json", content), r"modules\.json")

    @pytest.mark.parametrize("file", ["modules.json", "config.json", "1_Pooling/config.json"])
    def test_a_file_that_is_absent_is_named(self, bi, file):
        """Without modules.json the library would guess the pooling."""
        refused(bi().remove(f"model/{file}"), file)

    @pytest.mark.parametrize("place", ["../1_Pooling", "/etc"])
    def test_a_module_outside_the_folder_is_refused(self, bi, place):
        """A path cannot leave the model."""
        modules = [MODULES[0], {"path": place, "type": f"{LIBRARY}.models.Pooling"}]
        refused(bi().write("model/modules.json", modules), "inside the model folder")

    def test_a_folder_without_pooling_is_refused(self, bi):
        """Its vectors would have no stated meaning."""
        refused(bi().write("model/modules.json", MODULES[:1]), "a Pooling")


class TestPooling:
    @pytest.mark.parametrize(
        ("config", "modes"),
        [
            ({}, ["mean"]),
            ({"pooling_mode_lasttoken": True}, ["lasttoken"]),
            ({"pooling_mode": "cls"}, ["cls"]),
            ({"pooling_mode": ["max", "cls"]}, ["max", "cls"]),
            ({"pooling_mode_max_tokens": True, "pooling_mode_cls_token": True}, ["cls", "max"]),
        ],
    )
    def test_boolean_and_string_keys_are_read(self, bi, config, modes):
        """One name, several side by side in the library's order, or none, which is mean."""
        folder = bi().write("model/1_Pooling/config.json", {"embedding_dimension": 8} | config)
        assert tower(folder).readout.modes == modes
        assert described(folder).meaning.output.dimension == 8 * len(modes)

    @pytest.mark.parametrize(
        ("mode", "denominator", "weights", "empty"),
        [
            ("mean", "counted rows", "none", "zero"),
            ("mean_sqrt_len_tokens", "square root of counted rows", "none", "zero"),
            ("weightedmean", "sum of weights", "content-relative", "zero"),
            ("max", "none", "none", "reject"),
            ("cls", "none", "none", "fallback-row"),
            ("lasttoken", "none", "none", "zero"),
        ],
    )
    def test_each_mode_has_the_librarys_denominator_weights_and_policy(self, bi, mode, denominator, weights, empty):
        """As Pooling of 6.2 computes it."""
        folder = bi().write("model/1_Pooling/config.json", {"embedding_dimension": 8, "pooling_mode": mode})
        readout = tower(folder).readout
        assert (readout.denominator, readout.weights, readout.empty) == (denominator, weights, empty)

    def test_a_mode_that_does_not_exist_is_refused(self, bi):
        """Nothing is put in its place."""
        refused(
            bi().write("model/1_Pooling/config.json", {"embedding_dimension": 8, "pooling_mode": "median"}), "median"
        )

    def test_no_word_of_a_mode_is_the_librarys_own(self, bi):
        """And said to be."""
        folder = bi().write("model/1_Pooling/config.json", {"embedding_dimension": 8})
        assert source(folder, "towers.both.readout.modes") == "library"

    @pytest.mark.parametrize(
        "config",
        [{"pooling_mode_mean_tokens": False}, {"pooling_mode_cls_token": False, "pooling_mode_max_tokens": False},
         {"pooling_mode": None}, {"pooling_mode": []}],
    )  # fmt: skip
    def test_modes_of_which_none_is_used_are_refused(self, bi, config):
        """The library would take the mean that the file denies, or pool nothing."""
        refused(bi().write("model/1_Pooling/config.json", {"embedding_dimension": 8} | config), "pooling mode")

    def test_a_prompt_that_the_pooling_leaves_out_is_said(self, bi):
        """include_prompt, true where the file is silent."""
        assert tower(bi()).rows.prompt is True
        assert tower(bi("other").change("model/1_Pooling/config.json", include_prompt=False)).rows.prompt is False

    def test_an_override_stands_beside_the_folders_own_value(self, bi):
        """The release's counts, the folder's is evidence."""
        manifest = described(bi(extra='[override.readout]\npooling = "max"\n'))
        assert manifest.meaning.towers["both"].readout.modes == ["max"]
        assert manifest.evidence.overridden == {"towers.both.readout.modes": ["mean"]}
        assert manifest.evidence.sources["towers.both.readout.modes"] == "declared"


class TestProjections:
    def test_a_dense_says_its_widths_bias_activation_and_weights(self, dense):
        """From 8 to 4 by tanh, then normalised."""
        folder = dense()
        (step,), output = tower(folder).readout.projections, described(folder).meaning.output
        assert (step.kind, step.width_in, step.width_out, step.bias, step.activation) == ("dense", 8, 4, True, "tanh")
        assert source(dense("b"), "towers.both.readout.projections[0].weights") == "2_Dense/model.safetensors"
        assert output.dimension == 4
        assert tower(folder).readout.normalisation.stage == "after-projection"

    def test_what_a_dense_leaves_out_is_the_librarys_own(self, dense):
        """A bias, tanh, and nothing added to what comes out."""
        folder = dense().write("model/2_Dense/config.json", {"in_features": 8, "out_features": 4})
        (step,) = tower(folder).readout.projections
        assert (step.bias, step.activation, step.residual) == (True, "tanh", False)
        place = "towers.both.readout.projections[0]"
        assert [source(folder, f"{place}.{key}") for key in ("bias", "activation")] == ["library", "library"]

    def test_normalisation_before_a_projection_is_another_stage(self, dense):
        """And such vectors have any length."""
        folder = dense().write("model/modules.json", [
            *MODULES, {"path": "2_Dense", "type": f"{LIBRARY}.base.modules.dense.Dense"},
        ])  # fmt: skip
        assert tower(folder).readout.normalisation.stage == "after-pooling"

    def test_a_layer_norm_and_a_dropout_are_read(self, bi):
        """The norm is a map, the dropout is off."""
        folder = bi().write("model/modules.json", [
            *MODULES[:2],
            {"path": "2_LayerNorm", "type": f"{LIBRARY}.models.LayerNorm"},
            {"path": "3_Dropout", "type": f"{LIBRARY}.models.Dropout"},
        ])  # fmt: skip
        folder.write("model/2_LayerNorm/config.json", {"dimension": 8})
        folder.write("model/2_LayerNorm/model.safetensors", safetensors({"norm.weight": [8], "norm.bias": [8]}))
        readout = tower(folder).readout
        assert [step.kind for step in readout.projections] == ["layer-norm"] and readout.dropout == "off"
        assert readout.normalisation.kind == "none"

    @pytest.mark.parametrize(
        "path", ["custom.Gelu", "torch.nn.functional.gelu", "torch.nn.modules.activation.Nothing", "os.system", 7]
    )
    def test_an_activation_that_is_a_path_to_code_needs_a_known_name(self, dense, path):
        """Also one within torch, which would be imported and called."""
        refused(dense().change("model/2_Dense/config.json", activation_function=path), "a path to code")

    def test_a_map_of_rows_is_refused_here(self, dense):
        """A sentence vector is what a bi-encoder's Dense takes."""
        refused(dense().change("model/2_Dense/config.json", module_input_name="token_embeddings"), "module_input_name")


class TestSettings:
    def test_truncation_is_the_last_step_and_does_not_renormalise(self, bi):
        """Of 8 dimensions 4 are kept; a cut beyond the width cuts nothing."""
        folder = bi().write(SETTINGS, {"truncate_dim": 4})
        readout = tower(folder).readout
        assert (readout.truncate_dim, readout.renormalised) == (4, False)
        assert described(folder).meaning.output.dimension == 4
        assert described(bi("other").write(SETTINGS, {"truncate_dim": 16})).meaning.output.dimension == 8

    def test_the_similarity_sets_type_and_range_of_the_score(self, bi):
        """Cosine always has bounds, dot where vectors have unit length, and nothing else is supported."""
        score = described(bi().write(SETTINGS, {"similarity_fn_name": "dot"})).meaning.score
        assert (score.type, score.low, score.high) == ("dot", -1.0, 1.0)
        folder = bi("other").write(SETTINGS, {"similarity_fn_name": "dot"}).write("model/modules.json", MODULES[:2])
        assert described(folder).meaning.score.high is None
        refused(folder.write(SETTINGS, {"similarity_fn_name": "euclidean"}), "euclidean")

    def test_a_declared_similarity_departs_from_the_folders(self, bi):
        """With both on record."""
        manifest = described(bi(extra='[override.score]\ntype = "dot"\n'))
        assert manifest.meaning.score.type == "dot" and manifest.evidence.overridden == {"score.type": "cosine"}

    @pytest.mark.parametrize(
        ("keys", "words"),
        [
            ({"query_length": 32}, "query_length"),
            ({"processing_kwargs": {"text": {"padding": False}}}, "processing_kwargs"),
            ({"model_args": {"output_hidden_states": True}}, "model_args"),
            ({"transformer_task": "fill-mask"}, "fill-mask"),
            ({"modality_config": {"text": {}, "message": {}}}, "text, message"),
        ],
    )
    def test_settings_that_render_texts_otherwise_are_refused(self, bi, keys, words):
        """Each would be passed over in silence by tokenizer and forward pass alone."""
        refused(bi().change("model/sentence_bert_config.json", **keys), words)


class TestRouter:
    @pytest.fixture
    def router(self, bi):
        def make(name="router"):
            folder = bi(name)
            for side in ("query", "document"):
                for file in ("config.json", "tokenizer.json", "tokenizer_config.json", "sentence_bert_config.json"):
                    folder.write(f"model/{side}_0/{file}", (folder.path / "model" / file).read_text())
                weights = (folder.path / "model/model.safetensors").read_bytes()
                folder.write(f"model/{side}_0/model.safetensors", weights)
            folder.write("model/query_1/config.json", {"embedding_dimension": 8, "pooling_mode": "cls"})
            folder.write("model/document_1/config.json", {"embedding_dimension": 8, "pooling_mode": "mean"})
            for file in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "config.json"):
                folder.remove(f"model/{file}")
            folder.write("model/router_config.json", {
                "types": {f"{side}_{step}": f"{LIBRARY}.models.{kind}" for side in ("query", "document")
                          for step, kind in enumerate(("Transformer", "Pooling"))},
                "structure": {side: [f"{side}_0", f"{side}_1"] for side in ("query", "document")},
                "parameters": {"default_route": "document"},
            })  # fmt: skip
            return folder.write("model/modules.json", [
                {"path": "", "type": f"{LIBRARY}.base.modules.router.Router"}, MODULES[2],
            ])  # fmt: skip

        return make

    def test_two_encoders_are_two_towers(self, router):
        """Each with its own weights, pooling and prompt; what follows the Router is both's."""
        folder = router()
        meaning = described(folder).meaning
        query, document = meaning.towers["query"], meaning.towers["document"]
        assert (query.readout.modes, document.readout.modes) == (["cls"], ["mean"])
        assert source(folder, "towers.query.artifact.backbone") == "query_0/model.safetensors"
        assert (query.input.prompts, document.input.prompts) == ({"query": ""}, {"document": ""})
        assert query.readout.normalisation.kind == document.readout.normalisation.kind == "l2"
        assert meaning.interaction.tied is False

    def test_one_encoder_saved_as_two_keeps_every_key(self, router, bi):
        """The same files on both sides: that they are two is all that changed."""
        two = router().write("model/document_1/config.json", {"embedding_dimension": 8, "pooling_mode": "mean"})
        two.write("model/query_1/config.json", {"embedding_dimension": 8, "pooling_mode": "mean"})
        before, after = described(bi("tied")), described(two)
        assert [change.field for change in changes(before, after)] == ["interaction.tied"]
        assert graph(before.meaning).as_record() == graph(after.meaning).as_record()

    def test_the_old_name_and_file_are_read(self, router):
        """Asym, with its routes in config.json."""
        folder, new = router(), described(router("new"))
        folder.write("model/config.json", (folder.path / "model/router_config.json").read_text())
        folder.remove("model/router_config.json")
        folder.write("model/modules.json", [{"path": "", "type": f"{LIBRARY}.models.Asym"}, MODULES[2]])
        assert described(folder).identity.content_id == new.identity.content_id

    @pytest.mark.parametrize(
        ("keys", "words"),
        [
            ({"structure": {"text": ["query_0"], "image": ["document_0"]}}, "image, text"),
            ({"structure": {"query": ["query_9"], "document": ["document_0"]}}, "query_9"),
            ({"parameters": {"route_mappings": {"(None, 'text')": "query"}}}, "route_mappings"),
            ({"types": None}, "types"),
        ],
    )
    def test_routes_that_are_not_those_of_queries_and_documents_are_refused(self, router, keys, words):
        """Images, steps that aren't there, or a mapping."""
        refused(router().change("model/router_config.json", **keys), words)


class TestMaxLength:
    @pytest.mark.parametrize(
        ("file", "keys", "value", "stated"),
        [
            ("config.json", {"max_position_embeddings": 50}, 50, "config.json#/max_position_embeddings"),
            ("tokenizer_config.json", {"model_max_length": 40}, 64, "sentence_bert_config.json#/max_seq_length"),
            ("tokenizer_config.json", {"model_max_length": 10**30}, 64, "sentence_bert_config.json#/max_seq_length"),
            ("config.json", {"max_position_embeddings": -1}, 64, "sentence_bert_config.json#/max_seq_length"),
        ],
    )
    def test_the_module_says_it_as_far_as_positions_go(self, bi, file, keys, value, stated):
        """What the module says the library gives its tokenizer, whose own says nothing then, also where it is less."""
        folder = bi().change(f"model/{file}", **keys)
        assert (tower(folder).input.max_length, source(folder, "towers.both.input.max_length")) == (value, stated)

    @pytest.mark.parametrize(("said", "value"), [(40, 40), (10**30, 512)])
    def test_a_tokenizers_own_counts_where_the_module_is_silent(self, bi, said, value):
        """One beyond all reason is none."""
        folder = bi().change("model/sentence_bert_config.json", max_seq_length=None)
        folder.change("model/tokenizer_config.json", model_max_length=said)
        assert tower(folder).input.max_length == value

    def test_a_declared_length_below_the_folders_counts(self, bi):
        """And the folder's own stays on record."""
        manifest = described(bi(extra="[input]\nmax_length = 16\n"))
        assert manifest.meaning.towers["both"].input.max_length == 16
        assert manifest.evidence.overridden == {"towers.both.input.max_length": 64}

    def test_positions_that_start_behind_the_padding_are_fewer(self, bi):
        """A RoBERTa with 514 position embeddings and padding ID 1 takes 512 tokens."""
        folder = bi().change("model/config.json", model_type="xlm-roberta", max_position_embeddings=514, pad_token_id=1)
        folder.change("model/sentence_bert_config.json", max_seq_length=None)
        folder.change("model/tokenizer_config.json", model_max_length=514)
        assert tower(folder).input.max_length == 512

    def test_without_any_limit_one_is_asked_for(self, bi):
        """T5 states none; release.toml can."""
        folder = bi()
        for file, key in (("sentence_bert_config", "max_seq_length"), ("tokenizer_config", "model_max_length"),
                          ("config", "max_position_embeddings")):  # fmt: skip
            folder.change(f"model/{file}.json", **{key: None})
        with pytest.raises(Misconfigured, match=r"`max_length` to \[input\]"):
            described(folder)
        assert tower(folder.say("[input]\nmax_length = 99\n")).input.max_length == 99


class TestPrompts:
    def test_the_folders_prompts_count_where_release_toml_is_silent(self, bi):
        """By the names query and document, then passage, then the default one."""
        settings = {"prompts": {"query": "q: ", "passage": "p: ", "x": "x: "}, "default_prompt_name": "x"}
        folder = bi().write(SETTINGS, settings)
        assert tower(folder).input.prompts == {"query": "q: ", "document": "p: "}
        prompt = "towers.both.input.prompts.document"
        assert source(folder, prompt) == "config_sentence_transformers.json#/prompts/passage"
        settings["prompts"] = {"x": "x: "}
        assert tower(bi("other").write(SETTINGS, settings)).input.prompts == {"query": "x: ", "document": "x: "}

    def test_release_toml_counts_before_the_folder_and_a_suite_before_both(self, bi):
        """An empty prompt takes the folder's away; a suite's table fills in only its own side."""
        folder = bi(extra='[prompts]\nquery = ""\n[prompts.help]\ndocument = "h: "\n')
        manifest = described(folder.write(SETTINGS, {"prompts": {"query": "q: "}}))
        input_ = manifest.meaning.towers["both"].input
        assert input_.prompts == {"query": "", "document": ""}
        assert input_.suite_prompts == {"help": {"document": "h: "}}
        assert manifest.evidence.overridden == {"towers.both.input.prompts.query": "q: "}


class TestArchitecture:
    @pytest.mark.parametrize(
        ("config", "visibility", "final_norm"),
        [
            ({"model_type": "bert"}, "bidirectional", False),
            ({"model_type": "bert", "is_decoder": True}, "causal", False),
            ({"model_type": "modernbert"}, "bidirectional", True),
            ({"model_type": "qwen2"}, "causal", True),
            ({"model_type": "qwen2", "is_causal": False}, "causal-made-bidirectional", True),
            ({"model_type": "gemma3_text", "use_bidirectional_attention": True}, "causal-made-bidirectional", True),
        ],
    )
    def test_visibility_and_final_norm_are_the_architectures(self, bi, config, visibility, final_norm):
        """As the installed library has it, where the configuration doesn't turn it round."""
        found = tower(bi().change("model/config.json", **config))
        assert (found.artifact.visibility, found.state.final_norm) == (visibility, final_norm)

    def test_an_unknown_architecture_is_asked_about(self, bi):
        """Each key by its name, and never guessed."""
        folder = bi().change("model/config.json", model_type="brand-new")
        with pytest.raises(Misconfigured, match=r"`visibility = …`"):
            described(folder)
        with pytest.raises(Misconfigured, match=r"`final_norm = …`"):
            described(folder.say('visibility = "causal"\n'))
        found = tower(folder.say("final_norm = true\n"))
        assert (found.artifact.visibility, found.state.final_norm) == ("causal", True)

    def test_names_and_versions_in_a_configuration_mean_nothing(self, bi):
        """Where it was saved, and by which release of the library."""
        other = bi("other").change("model/config.json", _name_or_path="elsewhere", transformers_version="9", dtype="x")
        assert described(other).identity.content_id == described(bi()).identity.content_id

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("hidden_dropout_prob", 0.3), ("attention_probs_dropout_prob", 0.2), ("classifier_dropout", 0.1),
            ("initializer_range", 0.5), ("gradient_checkpointing", True), ("use_cache", False),
        ],
    )  # fmt: skip
    def test_what_only_training_reads_enters_no_key(self, bi, key: str, value: object):
        """Dropout is off, and nothing is drawn anew: such a change spares every namespace."""
        other = bi("other").change("model/config.json", **{key: value})
        assert described(other).identity.content_id == described(bi()).identity.content_id

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("hidden_act", "relu"), ("layer_norm_eps", 1e-5), ("num_attention_heads", 4), ("rope_theta", 1e6),
            ("position_embedding_type", "relative_key"), ("sliding_window", 64), ("token_dropout", True),
            ("attn_implementation", "eager"), ("nobody_knows_this_dropout", 0.1),
        ],
    )  # fmt: skip
    def test_what_an_output_may_depend_on_stays_in_it(self, bi, key: str, value: object):
        """Every key but those of a list, whatever it is called; unknown is not harmless."""
        plain, other = described(bi()), described(bi("other").change("model/config.json", **{key: value}))
        keys = [{node.name: node.key for node in graph(each.meaning).nodes} for each in (plain, other)]
        assert {name for name in keys[0] if keys[0][name] == keys[1][name]} == {"source:query", "source:document"}

    def test_layers_that_a_configuration_leaves_out_are_the_librarys(self, bi):
        """Twelve in a BERT; a width is never guessed."""
        folder = bi().without("model/config.json", "num_hidden_layers")
        assert (tower(folder).state.layers, source(folder, "towers.both.state.layers")) == ([12], "library")
        refused(folder.without("model/config.json", "hidden_size"), "no width")
