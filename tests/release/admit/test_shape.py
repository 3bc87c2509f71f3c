"""What a configuration says of a model's sizes, by the shapes in its weights' headers."""

import pytest

from ..conftest import BERT, BODY, VOCABULARY, WIDTH, broken, checks, safetensors

SIZE = len(VOCABULARY)
WHOLE = BODY | {
    "embeddings.position_embeddings.weight": [512, WIDTH],
    "embeddings.token_type_embeddings.weight": [2, WIDTH],
    **{f"encoder.layer.{layer}.intermediate.dense.weight": [32, WIDTH] for layer in range(2)},
}


@pytest.fixture
def sized(bi):
    """A BERT whose every size is in its configuration and its weights, with other sizes in the configuration."""

    def make(**config):
        folder = bi().write("model/model.safetensors", safetensors(WHOLE))
        return folder.write("model/config.json", BERT | {"intermediate_size": 32, "num_attention_heads": 2} | config)

    return make


class TestSizes:
    def test_a_configuration_of_these_weights_breaks_nothing(self, sized):
        """Each of the tests below breaks one of these."""
        assert broken(sized()) == []

    @pytest.mark.parametrize(
        ("check", "key", "value", "words"),
        [
            ("vocabulary-size", "vocab_size", SIZE + 8, f"of the shape [{SIZE}, 8]"),
            ("position-rows", "max_position_embeddings", 1024, "of the shape [512, 8]"),
            ("segment-rows", "type_vocab_size", 3, "of the shape [2, 8]"),
            ("inner-width", "intermediate_size", 16, "encoder.layer.0.intermediate.dense.weight of the shape [32, 8]"),
            ("heads-divide", "num_attention_heads", 3, "3 heads in a width of 8"),
        ],
    )
    def test_a_size_of_another_model_is_named_with_the_shape(self, sized, check, key, value, words):
        """By itself: no other check is broken with it."""
        folder = sized(**{key: value})
        assert broken(folder) == [check]
        assert words in checks(folder)[check].found

    @pytest.mark.parametrize(
        ("check", "key"),
        [("vocabulary-size", "vocab_size"), ("position-rows", "max_position_embeddings"),
         ("segment-rows", "type_vocab_size"), ("inner-width", "intermediate_size"),
         ("heads-divide", "num_attention_heads")],
    )  # fmt: skip
    @pytest.mark.parametrize("value", ["8", -1, 2.5, None, True])
    def test_a_size_that_is_none_is_named(self, sized, check, key, value):
        """Text, a negative number, a fraction, nothing."""
        assert check in broken(sized(**{key: value}))

    def test_heads_with_a_width_of_their_own_need_not_divide_the_models(self, sized):
        """Three heads of width four in a model of width eight."""
        assert broken(sized(num_attention_heads=3, head_dim=4)) == []
