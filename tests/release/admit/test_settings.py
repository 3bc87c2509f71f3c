"""Settings of another type than theirs are named, and not passed over."""

import pytest

from ..conftest import LIBRARY, MODULES, broken, checks

SETTINGS = "config_sentence_transformers.json"


class TestPrompts:
    @pytest.mark.parametrize("prompts", [["query: "], "query: ", {"query": 5}, {"query": None}, {"query": ["a"]}, 0])
    def test_they_are_a_table_of_texts(self, bi, prompts):
        """Else a side would be read without its prompt."""
        folder = bi().write(f"model/{SETTINGS}", {"prompts": prompts})
        assert broken(folder) == ["prompts-text"]
        assert f"{SETTINGS}#/prompts" in checks(folder)["prompts-text"].found

    @pytest.mark.parametrize("prompts", [None, {}, {"query": "", "document": "d: "}])
    def test_none_or_empty_ones_are_sound(self, bi, prompts):
        assert broken(bi().write(f"model/{SETTINGS}", {"prompts": prompts})) == []


class TestTypes:
    @pytest.mark.parametrize(
        ("file", "key", "value"),
        [
            (SETTINGS, "truncate_dim", "4"),
            (SETTINGS, "truncate_dim", True),
            (SETTINGS, "default_prompt_name", 1),
            ("sentence_bert_config.json", "max_seq_length", "64"),
            ("sentence_bert_config.json", "max_seq_length", 0),
            ("sentence_bert_config.json", "do_lower_case", "no"),
        ],
    )
    def test_a_setting_of_another_type_is_named_with_its_file(self, bi, file, key, value):
        """The library would raise, or take it for something else."""
        folder = bi().write(f"model/{SETTINGS}", {})
        folder.change(f"model/{file}", **{key: value})
        assert f"{file}#/{key} is {value!r}" in checks(folder)["settings-types"].found

    @pytest.mark.parametrize(
        ("place", "key", "value"),
        [
            ("1_Pooling", "pooling_mode_mean_tokens", "yes"),
            ("1_Pooling", "word_embedding_dimension", "8"),
            ("1_Pooling", "include_prompt", 0),
            ("1_Pooling", "pooling_mode", {"mean": True}),
            ("2_Dense", "in_features", "8"),
            ("2_Dense", "bias", "true"),
            ("2_Dense", "use_residual", 1),
            ("2_Dense", "activation_function", ["torch.nn.Tanh"]),
        ],
    )
    def test_so_is_a_modules(self, dense, place, key, value):
        """Also where nothing can be described for it."""
        folder = dense().change(f"model/{place}/config.json", **{key: value})
        assert f"{place}/config.json#/{key} is" in checks(folder)["module-types"].found

    def test_null_says_as_much_as_absent(self, dense):
        folder = dense().write(f"model/{SETTINGS}", {"truncate_dim": None, "default_prompt_name": None})
        assert broken(folder.change("model/2_Dense/config.json", module_input_name=None)) == []

    def test_every_module_that_is_known_is_looked_at(self, bi):
        """A norm whose width is text."""
        folder = bi().write("model/modules.json", [*MODULES, {"path": "3", "type": f"{LIBRARY}.models.LayerNorm"}])
        assert "module-types" in broken(folder.write("model/3/config.json", {"dimension": "8"}))


class TestVocabulary:
    @pytest.mark.parametrize("model", [{}, {"type": "WordPiece"}, {"vocab": {}}, {"vocab": []}, {"vocab": "x"}])
    def test_a_tokenizer_without_one_is_refused(self, bi, model):
        """Its added tokens are none."""
        folder = bi().change("model/tokenizer.json", model=model)
        assert broken(folder) == ["tokenizer-vocabulary"]
