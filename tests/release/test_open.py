"""From a folder to a release with its meaning and content ID."""

import hashlib

import pytest

from harness.errors import Misconfigured, NotAdmitted, NotFound
from harness.release.open import open_release


def opened(folder):
    return open_release(folder.path)


class TestMeaning:
    def test_a_bi_encoder_is_described_from_its_files(self, bi):
        """Length, pooling, normalisation, width and score type, each from the file that says it."""
        release = opened(bi())
        assert release.bi.max_length.as_json() == {
            "value": 64, "folder": 64, "source": "sentence_bert_config.json#/max_seq_length",
        }  # fmt: skip
        assert release.bi.pooling.value == "mean"
        assert (release.bi.normalised, release.bi.width, release.score_type) == (True, 8, "cosine")
        assert release.meaning["similarity"] == {"value": "cosine", "folder": None, "source": "default"}
        assert release.meaning["interaction"] == "bi"

    def test_names_folders_and_parents_have_no_part_in_it(self, bi):
        """The same model under another name, in another folder, with a parent, has the same content ID."""
        other = bi("elsewhere")
        other.toml((other.path / "release.toml").read_text().replace('name = "tiny"', 'name = "b"\nparent = "c"'))
        assert opened(bi()).content_id == opened(other).content_id

    @pytest.mark.parametrize(
        ("file", "keys"),
        [
            ("model/1_Pooling/config.json", {"pooling_mode_mean_tokens": False, "pooling_mode_cls_token": True}),
            ("model/sentence_bert_config.json", {"max_seq_length": 32}),
            ("model/tokenizer.json", {"version": "1.0"}),
            ("model/config.json", {"layer_norm_eps": 1e-5}),
        ],
    )
    def test_any_file_that_is_read_changes_it(self, bi, file, keys):
        """One key in one file, another content ID."""
        assert opened(bi()).content_id != opened(bi("other").change(file, **keys)).content_id

    @pytest.mark.parametrize(
        "extra",
        ["[input]\nmax_length = 32\n", '[prompts]\nquery = "q: "\n', '[prompts]\ndocument = "d: "\n',
         '[prompts.help]\nquery = "q: "\n', '[override.readout]\npooling = "cls"\n'],
    )  # fmt: skip
    def test_whatever_release_toml_changes_changes_it(self, bi, extra):
        """Length, prompts, also those of one suite, and pooling."""
        assert opened(bi()).content_id != opened(bi("other", extra)).content_id

    @pytest.mark.parametrize(
        "extra",
        ["[input]\nmax_length = 64\n", "[input]\nmax_length = 4096\n", '[prompts]\nquery = ""\n',
         '[prompts.help]\nquery = ""\n', '[override.readout]\npooling = "mean"\n'],
    )  # fmt: skip
    def test_saying_what_the_folder_says_changes_nothing(self, bi, extra):
        """A value that is the folder's own, or a length beyond it, is no other meaning."""
        assert opened(bi()).content_id == opened(bi("other", extra)).content_id

    def test_an_override_stands_beside_the_folders_own_value(self, bi):
        """Both are on record, and which of them counts."""
        pooling = opened(bi(extra='[override.readout]\npooling = "max"\n')).bi.pooling
        assert pooling.as_json() == {"value": "max", "folder": "mean", "source": "declared"}

    def test_an_opened_release_holds_what_a_run_needs_of_a_recording(self, recorded):
        """The tuple is declared, and the file's digest, format, score type and revision are its meaning."""
        content = "q1 Q0 d1 1 1.5 x\n"
        release = opened(recorded(content=content))
        assert release.meaning == {
            "interaction": "recorded", "tuple": "declared", "format": "trec-run", "score_type": "dot",
            "revision": None, "outputs": hashlib.sha256(content.encode()).hexdigest(),
        }  # fmt: skip
        assert release.outputs == release.folder / "run.trec"
        assert release.bi is None and release.prompts_for("any") is None and release.prompts("any") is None

    def test_a_revision_is_part_of_a_recordings_meaning(self, recorded):
        """The same file under another revision is another release."""
        other = recorded("other")
        other.toml((other.path / "release.toml").read_text() + 'revision = "2"\n')
        assert opened(recorded()).content_id != opened(other).content_id


class TestMaxLength:
    @pytest.mark.parametrize(
        ("file", "keys", "value", "source"),
        [
            ("tokenizer_config.json", {"model_max_length": 40}, 40, "tokenizer_config.json#/model_max_length"),
            ("config.json", {"max_position_embeddings": 50}, 50, "config.json#/max_position_embeddings"),
            ("tokenizer_config.json", {"model_max_length": 10**30}, 64, "sentence_bert_config.json#/max_seq_length"),
            ("config.json", {"max_position_embeddings": -1}, 64, "sentence_bert_config.json#/max_seq_length"),
        ],
    )
    def test_the_smallest_limit_counts(self, bi, file, keys, value, source):
        """Whichever file states it; a limit beyond all reason is none."""
        length = opened(bi().change(f"model/{file}", **keys)).bi.max_length
        assert (length.value, length.source) == (value, source)

    def test_a_declared_length_below_the_folders_counts(self, bi):
        """And the folder's own stays on record."""
        length = opened(bi(extra="[input]\nmax_length = 16\n")).bi.max_length
        assert length.as_json() == {"value": 16, "folder": 64, "source": "declared"}

    def test_positions_that_start_behind_the_padding_are_fewer(self, bi):
        """A RoBERTa with 514 position embeddings and padding ID 1 takes 512 tokens."""
        folder = bi().change("model/config.json", model_type="xlm-roberta", max_position_embeddings=514, pad_token_id=1)
        folder.change("model/sentence_bert_config.json", max_seq_length=None)
        folder.change("model/tokenizer_config.json", model_max_length=514)
        assert opened(folder).bi.max_length.value == 512

    def test_without_any_limit_one_has_to_be_declared(self, bi):
        """T5 states none; release.toml can."""
        folder = bi()
        for file, key in (("sentence_bert_config", "max_seq_length"), ("tokenizer_config", "model_max_length"),
                          ("config", "max_position_embeddings")):  # fmt: skip
            folder.change(f"model/{file}.json", **{key: None})
        with pytest.raises(Misconfigured, match="max_length"):
            opened(folder)
        folder.toml((folder.path / "release.toml").read_text() + "[input]\nmax_length = 99\n")
        assert opened(folder).bi.max_length.as_json() == {"value": 99, "folder": None, "source": "declared"}


class TestPrompts:
    def test_the_folders_prompts_count_where_release_toml_is_silent(self, bi):
        """By the names query and document, then passage, then the default one."""
        settings = {"prompts": {"query": "q: ", "passage": "p: ", "x": "x: "}, "default_prompt_name": "x"}
        release = opened(bi().write("model/config_sentence_transformers.json", settings))
        assert release.prompts_for("any").as_json() == {"query": "q: ", "document": "p: "}
        assert release.bi.document.source == "config_sentence_transformers.json#/prompts/passage"
        settings["prompts"] = {"x": "x: "}
        release = opened(bi("other").write("model/config_sentence_transformers.json", settings))
        assert release.prompts_for("any").as_json() == {"query": "x: ", "document": "x: "}

    def test_release_toml_counts_before_the_folder_and_a_suite_before_both(self, bi):
        """An empty prompt takes the folder's away; a suite's table fills in only its own side."""
        extra = '[prompts]\nquery = ""\n[prompts.help]\ndocument = "h: "\n'
        folder = bi(extra=extra).write("model/config_sentence_transformers.json", {"prompts": {"query": "q: "}})
        release = opened(folder)
        assert release.bi.query.as_json() == {"value": "", "folder": "q: ", "source": "declared"}
        assert release.prompts_for("other").as_json() == {"query": "", "document": ""}
        assert release.prompts("help") == {"query": "", "document": "h: "}


class TestReadout:
    @pytest.mark.parametrize(
        ("config", "mode"),
        [
            ({"word_embedding_dimension": 8}, "mean"),
            ({"word_embedding_dimension": 8, "pooling_mode_lasttoken": True}, "lasttoken"),
            ({"embedding_dimension": 8, "pooling_mode": "cls"}, "cls"),
            ({"embedding_dimension": 8, "pooling_mode": ["max", "cls"]}, "max+cls"),
            (
                {"word_embedding_dimension": 8, "pooling_mode_max_tokens": True, "pooling_mode_cls_token": True},
                "cls+max",
            ),
        ],
    )
    def test_old_and_new_pooling_files_are_read(self, bi, config, mode):
        """Boolean keys, one name, or several, whose vectors stand side by side."""
        release = opened(bi().write("model/1_Pooling/config.json", config))
        assert release.bi.pooling.value == mode
        assert release.bi.width == 8 * len(mode.split("+"))

    def test_a_projection_sets_the_width_and_undoes_normalisation(self, bi):
        """Normalise, then Dense from 8 to 4: vectors of 4, of any length."""
        folder = bi().write("model/modules.json", [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"},
            {"path": "3_Dense", "type": "sentence_transformers.base.modules.dense.Dense"},
        ])  # fmt: skip
        folder.write("model/3_Dense/model.safetensors", "weights")
        folder.write("model/3_Dense/config.json", {"in_features": 8, "out_features": 4})
        assert (opened(folder).bi.width, opened(folder).bi.normalised) == (4, False)
        folder.change("model/3_Dense/config.json", in_features=16)
        with pytest.raises(NotAdmitted, match="8 dimensions"):
            opened(folder)

    def test_a_projection_with_code_of_its_own_is_refused(self, bi):
        """The library would put Tanh in its place, unseen."""
        folder = bi().write("model/modules.json", [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
        ])  # fmt: skip
        folder.write("model/2_Dense/model.safetensors", "weights")
        config = {"in_features": 8, "out_features": 4, "activation_function": "torch.nn.modules.linear.Identity"}
        folder.write("model/2_Dense/config.json", config)
        assert opened(folder).bi.width == 4
        folder.change("model/2_Dense/config.json", activation_function="custom.Gelu")
        with pytest.raises(NotAdmitted, match=r"custom\.Gelu"):
            opened(folder)

    def test_a_pooling_of_another_models_width_is_refused(self, bi):
        """Pooling says 8, the model 16."""
        with pytest.raises(NotAdmitted, match="width 8"):
            opened(bi().change("model/config.json", hidden_size=16))

    @pytest.mark.parametrize(
        ("keys", "words"),
        [
            ({"query_length": 32}, "query_length"),
            ({"processing_kwargs": {"text": {"padding": False}}}, "processing_kwargs"),
            ({"transformer_task": "fill-mask"}, "fill-mask"),
            ({"modality_config": {"text": {}, "message": {}}}, "text, message"),
        ],
    )
    def test_settings_that_render_texts_otherwise_are_refused(self, bi, keys, words):
        """Each would be passed over in silence by tokenizer and forward pass alone."""
        with pytest.raises(NotAdmitted, match=words):
            opened(bi().change("model/sentence_bert_config.json", **keys))

    def test_truncated_vectors_are_no_longer_of_unit_length(self, bi):
        """The library cuts after all modules, so also after normalisation."""
        release = opened(bi().write("model/config_sentence_transformers.json", {"truncate_dim": 4}))
        assert (release.bi.width, release.bi.truncate_dim, release.bi.normalised) == (4, 4, False)

    def test_the_similarity_sets_the_score_type(self, bi):
        """Dot is dot; a distance is refused."""
        folder = bi().write("model/config_sentence_transformers.json", {"similarity_fn_name": "dot"})
        assert opened(folder).score_type == "dot"
        folder.write("model/config_sentence_transformers.json", {"similarity_fn_name": "euclidean"})
        with pytest.raises(NotAdmitted, match="euclidean"):
            opened(folder)

    @pytest.mark.parametrize("name", ["bge-m3_ST55", "lodestone_minimal_pooling", "techarena_biencoder"])
    def test_published_pooling_files_are_read(self, bi, shared_data, name):
        """As three published models have them: CLS by name, mean by one key, mean among seven."""
        text = (shared_data("model_configs") / name / "1_Pooling" / "config.json").read_text()
        folder = bi().write("model/1_Pooling/config.json", text)
        width = {"bge-m3_ST55": 1024}.get(name, 768)
        folder.change("model/config.json", hidden_size=width)
        expected = "cls" if name == "bge-m3_ST55" else "mean"
        assert (opened(folder).bi.pooling.value, opened(folder).bi.width) == (expected, width)


class TestSources:
    def test_a_package_is_found_without_being_imported(self, bi, tmp_path, monkeypatch):
        """Its code would raise; its folder is read all the same."""
        folder = bi()
        package = tmp_path / "site" / "a_model_package"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("raise RuntimeError('imported')")
        (folder.path / "model").rename(package / "model")
        monkeypatch.syspath_prepend(tmp_path / "site")
        folder.toml((folder.path / "release.toml").read_text().replace("path:model", "package:a_model_package/model"))
        assert opened(folder).model_folder == package / "model"

    def test_a_missing_package_comes_with_the_command_that_installs_it(self, bi):
        """Underscores are hyphens there."""
        folder = bi()
        folder.toml((folder.path / "release.toml").read_text().replace("path:model", "package:no_such_model/model"))
        with pytest.raises(NotFound) as refusal:
            opened(folder)
        assert refusal.value.mend == "pip install no-such-model"

    @pytest.mark.parametrize("source", ["path:nowhere", "path:release.toml", "package:json/../..", "package:json//etc"])
    def test_a_folder_that_is_not_there_is_not_found(self, bi, source):
        """Nor is one outside of its package."""
        folder = bi()
        folder.toml((folder.path / "release.toml").read_text().replace("path:model", source))
        with pytest.raises(NotFound):
            opened(folder)

    def test_releases_may_share_a_model_folder_beside_them(self, bi, tmp_path):
        """A relative path may lead out of the release's folder."""
        folder = bi()
        (folder.path / "model").rename(tmp_path / "shared")
        folder.toml((folder.path / "release.toml").read_text().replace("path:model", "path:../shared"))
        assert opened(folder).bi.width == 8

    def test_a_model_on_the_hub_is_not_fetched(self, bi):
        """The form is right, the answer is how to do without."""
        folder = bi()
        source = "hf:org/name@" + "0" * 40
        folder.toml((folder.path / "release.toml").read_text().replace("path:model", source))
        with pytest.raises(Misconfigured, match="does not fetch"):
            opened(folder)

    def test_a_recording_that_is_not_there_is_not_found(self, recorded):
        """The path counts from the release's folder."""
        with pytest.raises(NotFound, match=r"run\.trec"):
            opened(recorded().remove("run.trec"))

    def test_a_folder_without_its_file_is_not_found(self, tmp_path):
        """No release.toml, no release."""
        with pytest.raises(NotFound, match=r"release\.toml"):
            open_release(tmp_path)
