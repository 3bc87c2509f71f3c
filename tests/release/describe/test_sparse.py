"""Sparse encoders: a masked language model and its pooling."""

import pytest

from harness.errors import NotAdmitted

from ..conftest import BERT, BODY, LIBRARY, VOCABULARY, Folder, safetensors, toml
from .conftest import described, source, tower

HEAD = {"cls.predictions.transform.dense.weight": [8, 8], "cls.predictions.bias": [len(VOCABULARY)]}


@pytest.fixture
def sparse(tmp_path):
    def make(name="sparse", kind="Transformer", plain=False, **pooling):
        folder = Folder(tmp_path / name, toml("sparse")).tokenizer()
        folder.write("model/config.json", BERT | {"architectures": ["BertForMaskedLM"]})
        folder.write(
            "model/model.safetensors", safetensors({f"bert.{key}": shape for key, shape in BODY.items()} | HEAD)
        )
        if plain:
            return folder
        folder.write("model/modules.json", [
            {"path": "", "type": f"{LIBRARY}.sparse_encoder.models.{kind}"},
            {"path": "1_SpladePooling", "type": f"{LIBRARY}.sparse_encoder.models.SpladePooling"},
        ])  # fmt: skip
        return folder.write("model/1_SpladePooling/config.json", {"pooling_strategy": "max"} | pooling)

    return make


class TestSparse:
    def test_a_text_has_one_weight_for_each_token_of_the_vocabulary(self, sparse):
        """The language model's logits through log(1 + relu), the largest of each; scored by dot."""
        meaning = described(sparse()).meaning
        readout = meaning.towers["both"].readout
        (step,) = readout.projections
        assert (step.kind, step.width_out, step.activation) == ("mlm", len(VOCABULARY), "log1p-relu")
        assert step.weights is not None
        assert (readout.family, readout.modes) == ("sparse", ["max"])
        assert (meaning.output.kind, meaning.output.dimension) == ("sparse-vector", len(VOCABULARY))
        assert (meaning.score.type, meaning.score.low) == ("dot", 0.0)

    def test_old_module_and_plain_language_model_mean_the_same(self, sparse):
        """MLMTransformer, or no modules.json at all."""
        ids = {described(folder).identity.content_id for folder in (
            sparse(), sparse("old", "MLMTransformer"), sparse("plain", plain=True),
        )}  # fmt: skip
        assert len(ids) == 1
        plain = sparse("again", plain=True)
        for path in ("interaction.tied", "towers.both.readout.modes", "towers.both.readout.projections[0].activation"):
            assert source(plain, path) == "library"

    def test_pooling_and_activation_are_read(self, sparse):
        """Sum, and the logarithm twice."""
        readout = tower(sparse(pooling_strategy="sum", activation_function="log1p_relu")).readout
        assert (readout.modes, readout.projections[0].activation) == (["sum"], "log1p-log1p-relu")

    def test_a_cap_on_what_is_kept_is_part_of_the_vector(self, sparse):
        """max_active_dims."""
        folder = sparse().write("model/config_sentence_transformers.json", {"max_active_dims": 64})
        assert tower(folder).readout.max_active_dims == 64

    @pytest.mark.parametrize("pooling", [{"pooling_strategy": "mean"}, {"activation_function": "gelu"}])
    def test_what_the_module_does_not_have_is_refused(self, sparse, pooling):
        """Another strategy, another activation."""
        with pytest.raises(NotAdmitted, match="max or sum"):
            described(sparse(**pooling))

    def test_a_model_without_a_language_model_is_refused(self, sparse):
        """The library would make one of random numbers."""
        with pytest.raises(NotAdmitted, match="BertModel"):
            described(sparse(plain=True).change("model/config.json", architectures=["BertModel"]))
