"""Cross-encoders: the head, and the activation in each of the places that record it."""

import pytest

from harness.errors import NotAdmitted

from ..conftest import LIBRARY, broken
from .conftest import described, source, tower

IDENTITY = "torch.nn.modules.linear.Identity"
OWN = "sentence_transformers"


class TestActivation:
    @pytest.mark.parametrize(
        ("file", "keys", "stated"),
        [
            ("config_sentence_transformers.json", {"activation_fn": IDENTITY},
             "config_sentence_transformers.json#/activation_fn"),
            ("config.json", {OWN: {"activation_fn": IDENTITY}}, f"config.json#/{OWN}/activation_fn"),
            ("config.json", {"sbert_ce_default_activation_function": IDENTITY},
             "config.json#/sbert_ce_default_activation_function"),
        ],
    )  # fmt: skip
    def test_each_of_the_three_places_is_read(self, sequence, file, keys, stated):
        """Identity, so the score is a logit without bounds."""
        folder = sequence()
        folder = (
            folder.change(f"model/{file}", **keys) if file == "config.json" else folder.write(f"model/{file}", keys)
        )
        score = described(folder).meaning.score
        assert (score.type, score.activation, score.low, score.high) == ("logit", "identity", None, None)
        assert source(folder, "score.activation") == stated

    def test_the_newest_place_counts_first(self, sequence):
        """As the library reads them."""
        folder = sequence().write("model/config_sentence_transformers.json", {"activation_fn": "torch.nn.Sigmoid"})
        folder.change("model/config.json", sentence_transformers={"activation_fn": IDENTITY})
        assert described(folder).meaning.score.activation == "sigmoid"

    def test_none_is_the_librarys_own(self, sequence):
        """Sigmoid of one label, identity of several."""
        score = described(sequence()).meaning.score
        assert (score.type, score.activation, score.low, score.high) == ("probability", "sigmoid", 0.0, 1.0)
        assert score.probability and source(sequence(), "score.activation") == "library"
        assert described(sequence(labels=3, name="three")).meaning.score.activation == "identity"

    @pytest.mark.parametrize("path", ["my_code.Activation", "torch.load", "torch.nn.Dropout", "torch.Softmax"])
    def test_a_dotted_path_is_code_and_needs_a_known_name(self, sequence, path):
        """Also where it begins as the library would trust it."""
        folder = sequence().change("model/config.json", sentence_transformers={"activation_fn": path})
        with pytest.raises(NotAdmitted, match="a path to code"):
            described(folder)

    @pytest.mark.parametrize(
        ("name", "score"),
        [("Softmax", ("probability", 0.0, 1.0, 1.0, True)), ("Sigmoid", ("probability", 0.0, 1.0, None, True)),
         ("Tanh", ("value", -1.0, 1.0, None, False)), ("Softplus", ("value", 0.0, None, None, False)),
         ("GELU", ("value", None, None, None, False))],
    )  # fmt: skip
    def test_each_says_what_the_numbers_are(self, sequence, name, score):
        """Type, range, sum, and whether they are probabilities."""
        path = f"torch.nn.modules.activation.{name}"
        folder = sequence(labels=3).change("model/config.json", sentence_transformers={"activation_fn": path})
        found = described(folder).meaning.score
        assert (found.type, found.low, found.high, found.sums_to, found.probability) == score
        assert broken(folder) == []

    def test_the_softmax_of_one_number_is_no_score(self, sequence):
        """It is always 1."""
        path = "torch.nn.modules.activation.Softmax"
        folder = sequence().change("model/config.json", sentence_transformers={"activation_fn": path})
        assert broken(folder) == ["score-fits"]

    def test_recording_it_elsewhere_is_no_other_backbone(self, sequence):
        """The same model saved by two versions of the library means the same."""
        old = sequence(name="old").change("model/config.json", sbert_ce_default_activation_function=IDENTITY)
        new = sequence(name="new").change("model/config.json", sentence_transformers={"activation_fn": IDENTITY})
        assert described(old).identity.content_id == described(new).identity.content_id


class TestHead:
    def test_a_pair_is_read_at_once_and_its_first_row_scored(self, sequence):
        """Pooler with tanh, then the classifier; one number, without a name."""
        found = tower(sequence(), "pair")
        assert [(step.kind, step.activation, step.width_out) for step in found.readout.projections] == [
            ("pooler", "tanh", 8), ("dense", "identity", 1),
        ]  # fmt: skip
        assert (found.input.template, found.input.truncated_first, found.readout.modes) == ("pair", "longest", ["cls"])
        output = described(sequence()).meaning.output
        assert (output.kind, output.dimension, output.labels) == ("score", 1, None)

    def test_head_and_backbone_have_digests_of_their_own(self, sequence):
        """Though one file holds both."""
        artifact = tower(sequence(), "pair").artifact
        assert artifact.backbone and artifact.head and artifact.backbone != artifact.head

    def test_several_labels_are_classes(self, sequence):
        """In the order of the rows, and without names that mean anything."""
        output = described(sequence(labels=3)).meaning.output
        assert (output.kind, output.labels, output.generic_labels) == (
            "classes",
            ["LABEL_0", "LABEL_1", "LABEL_2"],
            True,
        )

    @pytest.mark.parametrize(
        ("model_type", "steps", "modes"),
        [
            ("roberta", [("dense", "tanh"), ("dense", "identity")], ["cls"]),
            ("distilbert", [("dense", "relu"), ("dense", "identity")], ["cls"]),
            ("deberta-v2", [("pooler", "gelu"), ("dense", "identity")], ["cls"]),
            ("modernbert", [("dense", "gelu"), ("layer-norm", "identity"), ("dense", "identity")], ["mean"]),
            ("qwen3", [("dense", "identity")], ["lasttoken"]),
        ],
    )
    def test_each_architecture_has_its_own_head(self, sequence, model_type, steps, modes):
        """As the installed library has it, and as the configuration says."""
        folder = sequence().change("model/config.json", model_type=model_type, classifier_pooling="mean")
        readout = tower(folder, "pair").readout
        assert [(step.kind, step.activation) for step in readout.projections] == steps
        assert readout.modes == modes

    def test_a_head_that_is_not_known_is_refused(self, sequence):
        """By its architecture."""
        with pytest.raises(NotAdmitted, match="'xlnet', which is not known"):
            described(sequence().change("model/config.json", model_type="xlnet"))


class TestModules:
    def test_a_modules_file_with_one_transformer_is_the_same(self, sequence):
        """As version 5.4 and later save it."""
        folder = sequence(name="new").write("model/modules.json", [
            {"path": "", "type": f"{LIBRARY}.base.modules.transformer.Transformer"},
        ])  # fmt: skip
        folder.write("model/sentence_bert_config.json", {"transformer_task": "sequence-classification"})
        assert described(folder).identity.content_id == described(sequence()).identity.content_id

    @pytest.mark.parametrize("task", ["text-generation", "feature-extraction"])
    def test_another_task_is_refused(self, sequence, task):
        """A language model's answer is rendered by a template."""
        folder = sequence().write("model/modules.json", [{"path": "", "type": f"{LIBRARY}.models.Transformer"}])
        folder.write("model/sentence_bert_config.json", {"transformer_task": task})
        with pytest.raises(NotAdmitted, match=task):
            described(folder)

    def test_the_default_prompt_stands_before_the_first_text(self, sequence):
        """The library's only way to use one."""
        folder = sequence().write("model/config_sentence_transformers.json", {
            "prompts": {"x": "Judge: "}, "default_prompt_name": "x",
        })  # fmt: skip
        assert tower(folder, "pair").input.prompts == {"pair": "Judge: "}
