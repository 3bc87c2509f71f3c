"""What a model folder is for, by what its files say."""

import pytest

from harness.errors import NotAdmitted
from harness.release.describe import interaction_of
from harness.release.folder import read_folder


def of(folder):
    return interaction_of(read_folder(folder.path / "model"))


class TestInteraction:
    def test_modules_make_a_bi_encoder(self, bi):
        """Where no model type is saved."""
        assert of(bi()) == "bi"

    @pytest.mark.parametrize(
        ("model_type", "kind"),
        [("CrossEncoder", "cross"), ("SparseEncoder", "sparse"), ("MultiVectorEncoder", "late"), ("ColBERT", "late")],
    )
    def test_a_saved_model_type_counts_first(self, bi, model_type, kind):
        """As the library itself reads it."""
        assert of(bi().write("model/config_sentence_transformers.json", {"model_type": model_type})) == kind

    @pytest.mark.parametrize(
        ("architecture", "kind"),
        [("BertForTokenClassification", "head"), ("BertForQuestionAnswering", "head"),
         ("BertForMultipleChoice", "head"), ("HF_ColBERT", "late")],
    )  # fmt: skip
    def test_else_the_architecture_does(self, sequence, architecture, kind):
        """By its head."""
        assert of(sequence().change("model/config.json", architectures=[architecture])) == kind

    def test_one_label_or_an_activation_makes_a_cross_encoder(self, sequence):
        """And several without one a classifier."""
        assert (of(sequence()), of(sequence(labels=3, name="three"))) == ("cross", "head")
        activated = sequence(labels=3, name="nli").change("model/config.json", sentence_transformers={})
        assert of(activated) == "cross"

    def test_a_problem_type_makes_one_label_a_regression(self, sequence):
        """A reranker's score is of no problem that transformers knows."""
        assert of(sequence().change("model/config.json", problem_type="regression")) == "head"

    def test_a_plain_language_model_is_not_taken_for_a_sparse_encoder(self, sequence):
        """Nothing in the folder says what its logits are for; release.toml may."""
        with pytest.raises(NotAdmitted, match="BertForMaskedLM") as refusal:
            of(sequence().change("model/config.json", architectures=["BertForMaskedLM"]))
        assert 'interaction = "sparse"' in refusal.value.mend

    def test_a_plain_encoder_has_no_stated_readout(self, sequence):
        """Its pooling would be guessed."""
        with pytest.raises(NotAdmitted, match="BertModel"):
            of(sequence().change("model/config.json", architectures=["BertModel"]))
