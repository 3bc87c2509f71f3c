"""An encoder's numbers, held against each other and against the weights' own shapes."""

import pytest

from harness.errors import Misconfigured
from harness.release.open import open_release

from ..conftest import BODY, POOLER, VOCABULARY, broken, checks, classifier, safetensors

SIZE = len(VOCABULARY)


class TestTokenizer:
    def test_an_encoder_without_a_vocabulary_is_refused(self, bi):
        """Its texts would have no IDs."""
        assert "tokenizer-there" in broken(bi().remove("model/tokenizer.json"))

    def test_special_tokens_must_be_in_the_tokenizer(self, bi):
        """By role and text."""
        found = checks(bi().change("model/tokenizer_config.json", mask_token="<mask>"))["special-ids-exist"]
        assert not found.ok and "mask_token '<mask>'" in found.found

    def test_no_token_may_lie_behind_the_embeddings(self, bi):
        """One more token than rows."""
        folder = bi().write("model/added_tokens.json", {"<new>": SIZE})
        assert checks(folder)["embedding-rows"].found == f"{SIZE + 1} tokens, {SIZE} rows"

    def test_a_tokenizer_must_give_the_mask_that_the_rows_are_counted_by(self, bi):
        """model_input_names without attention_mask."""
        folder = bi().change("model/tokenizer_config.json", model_input_names=["input_ids"])
        assert broken(folder) == ["mask-source"]


class TestWidths:
    def test_the_weights_have_the_configurations_width_and_layers(self, bi):
        """A configuration of another model."""
        assert "embedding-width" in broken(bi().change("model/config.json", hidden_size=16))
        found = checks(bi("b").change("model/config.json", num_hidden_layers=3))["layers-there"]
        assert found.found == "2 layers in the weights, 3 in config.json"

    def test_a_pooling_of_another_models_width_is_refused(self, bi):
        """Pooling says 16, the model 8."""
        found = checks(bi().change("model/1_Pooling/config.json", word_embedding_dimension=16))["pooling-width"]
        assert found.found == "the width 16 in 1_Pooling/config.json, 8 in the model"

    def test_each_map_takes_what_it_is_given(self, dense):
        """Also after an override that joins no two modes any more."""
        found = checks(dense().change("model/2_Dense/config.json", in_features=16))["widths-chain"]
        assert "takes 16 dimensions and is given 8 dimensions" in found.found

    @pytest.mark.parametrize(
        ("tensors", "words"),
        [
            ({"linear.weight": [8, 4], "linear.bias": [4]}, "shape [8, 4], not [4, 8]"),
            ({"linear.weight": [4, 8]}, "no bias"),
            ({"other": [1]}, "shape None"),
        ],
    )
    def test_a_maps_weights_have_its_shape(self, dense, tensors, words):
        """Turned round, without a bias, or something else."""
        found = checks(dense().write("model/2_Dense/model.safetensors", safetensors(tensors)))["projection-shapes"]
        assert not found.ok and words in found.found


class TestHead:
    def test_a_head_without_weights_is_refused(self, sequence):
        """The library would make one of random numbers."""
        body = {f"bert.{name}": shape for name, shape in BODY.items()}
        folder = sequence().write("model/model.safetensors", safetensors(body | POOLER))
        assert checks(folder)["head-weights"].found == "no weights of classifier"

    def test_its_rows_are_as_many_as_its_labels(self, sequence):
        """Three labels, two rows."""
        body = {f"bert.{name}": shape for name, shape in BODY.items()}
        folder = sequence("cross", 3).write("model/model.safetensors", safetensors(body | POOLER | classifier(2)))
        assert checks(folder)["head-weights"].found == "2 rows in classifier.weight, 3 in the configuration"

    def test_a_head_on_the_last_row_needs_the_tokenizers_padding(self, sequence):
        """By it the last row is found."""
        folder = sequence().change("model/config.json", model_type="qwen3", pad_token_id=9)
        found = checks(folder)["padding-id"]
        assert not found.ok
        assert found.found == "pad_token_id 9 in config.json, 0 in the tokenizer, by which the last row is found"


class TestPadding:
    DEPARTS = "pad_token_id 9 in config.json, 0 in the tokenizer"

    def test_positions_that_are_counted_by_it_need_the_tokenizers(self, bi):
        """RoBERTa takes whatever has that ID for padding: a text with it would be read at other positions."""
        found = checks(bi().change("model/config.json", model_type="roberta", pad_token_id=9))["padding-id"]
        assert (found.ok, found.found) == (False, f"{self.DEPARTS}, by which positions are counted")

    def test_another_one_is_told_where_the_mask_alone_counts(self, bi):
        """BERT has it for training only."""
        found = checks(bi().change("model/config.json", pad_token_id=9))["padding-id"]
        assert (found.ok, found.found) == (True, f"{self.DEPARTS}; no output depends on it")

    def test_the_same_one_needs_no_word(self, bi):
        assert checks(bi())["padding-id"].found == "holds"


class TestLength:
    def test_a_text_must_have_room_beside_its_special_tokens(self, bi):
        """Two of two are special."""
        assert broken(bi(extra="[input]\nmax_length = 2\n")) == ["content-rows"]

    @pytest.mark.parametrize(
        ("aggregation", "fits"), [("rows", True), ("mean", True), ("best", True), ("mean-of-logits", False)]
    )
    def test_windows_are_joined_as_vectors_can_be(self, bi, aggregation, fits):
        """A vector has no logits."""
        text = f'[input.window]\nsize = 32\nstride = 16\naggregation = "{aggregation}"\n'
        said = 'normalise = "after"\n' if aggregation == "mean" else ""
        assert broken(bi(extra=text + said)) == ([] if fits else ["aggregation-fits"])

    @pytest.mark.parametrize(
        ("aggregation", "said", "fits"),
        [
            ("mean", "", False),
            ("mean", 'normalise = "before"', True),
            ("best", 'normalise = "before"', False),
            ("rows", 'owner = "first"', True),
            ("mean", 'normalise = "before"\nowner = "first"', False),
        ],
    )
    def test_what_a_way_of_joining_leaves_open_is_said_and_nothing_else(self, bi, aggregation, said, fits):
        """The mean of normalised vectors is another one than that which is normalised."""
        text = f'[input.window]\nsize = 32\nstride = 16\naggregation = "{aggregation}"\n{said}\n'
        assert broken(bi(extra=text)) == ([] if fits else ["aggregation-fits"])

    def test_a_token_has_an_owner_unless_another_is_said(self, bi):
        text = '[input.window]\nsize = 32\nstride = 16\naggregation = "rows"\n'
        [tower] = open_release(bi(extra=text).path).manifest.meaning.towers.values()
        assert tower.input.window.owner == "largest-context"

    def test_a_temperature_of_single_windows_is_refused(self, sequence):
        """It calibrates no text that is read in several."""
        text = '[score]\ntemperature = 2.0\n[input.window]\nsize = 32\nstride = 16\naggregation = "mean-of-logits"\n'
        assert broken(sequence("head", 3, "head", f'[output]\nkind = "classes"\n{text}')) == ["temperature-of-whole"]

    def test_windows_of_a_head_are_joined_as_numbers(self, sequence):
        """It keeps no vectors to take the mean of."""
        text = '[input.window]\nsize = 32\nstride = 16\naggregation = "{}"\n'
        assert broken(sequence(name="a", extra=text.format("mean"))) == ["aggregation-fits"]
        assert broken(sequence(name="b", extra=text.format("mean-of-probabilities"))) == []

    def test_how_windows_are_joined_must_be_said(self, bi):
        """Without it a text would have several vectors, and nobody knew which counts."""
        with pytest.raises(Misconfigured, match="aggregation"):
            checks(bi(extra="[input.window]\nsize = 32\nstride = 16\n"))

    def test_windows_fit_into_the_length(self, bi):
        """And a stride into its window."""
        assert "window-fits" in broken(bi("a", '[input.window]\nsize = 128\nstride = 64\naggregation = "best"\n'))
        assert "window-fits" in broken(bi("b", '[input.window]\nsize = 32\nstride = 33\naggregation = "best"\n'))
        assert broken(bi("c", '[input.window]\nsize = 32\nstride = 32\naggregation = "best"\n')) == []
