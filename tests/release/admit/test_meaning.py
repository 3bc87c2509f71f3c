"""What a manifest keeps by itself, and what it must agree on with labels and prompts of its folder."""

import pytest

from harness.release.admit import findings
from harness.release.manifest import Manifest
from harness.release.open import inspect_release

from ..conftest import broken, checks

SETTINGS = "model/config_sentence_transformers.json"


def broken_by(folder, path: str, value: object) -> list[str]:
    """What no longer holds of a manifest in which someone has put another value."""
    return [check.name for check in findings(edited(folder, path, value), None) if not check.ok]


def edited(folder, path: str, value: object) -> Manifest:
    record = inspect_release(folder.path).manifest.model_dump(mode="json", by_alias=True)
    *above, last = path.split(".")
    inner = record["meaning"]
    for key in above:
        inner = inner[key]
    inner[last] = value
    return Manifest.model_validate(record)


def faults_of(folder, path: str, value: object) -> str:
    """What is found wrong with the score of such a manifest."""
    manifest = edited(folder, path, value)
    return next(check.found for check in findings(manifest, None) if check.name == "score-fits")


class TestWidths:
    def test_a_cut_beyond_the_width_is_named(self, bi):
        """It cuts nothing, so somebody meant another model."""
        found = checks(bi().write(SETTINGS, {"truncate_dim": 16}))["widths-chain"]
        assert not found.ok and "cut to 16 dimensions, of 8" in found.found
        assert broken(bi("whole").write(SETTINGS, {"truncate_dim": 8})) == []


class TestScore:
    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("score.high", 2.0), ("score.type", "probability"), ("score.probability", True), ("score.sums_to", 1.0),
            ("score.higher_is_better", False), ("score.type", "maxsim"),
        ],
    )  # fmt: skip
    def test_range_sum_direction_and_claim_fit_the_type(self, bi, path, value):
        """A cosine up to 2, that sums, that claims to be a probability, of which less is better."""
        assert broken_by(bi(), path, value) == ["score-fits"]

    def test_a_bounded_dot_product_needs_unit_vectors(self, bi):
        """Normalised, then cut and not normalised again."""
        folder = bi().write(SETTINGS, {"similarity_fn_name": "dot"})
        assert broken_by(folder, "towers.both.readout.normalisation.kind", "none") == ["score-fits"]

    def test_a_logit_has_no_activation(self, sequence):
        """Sigmoid makes it a probability."""
        assert "a logit by the activation sigmoid" in faults_of(sequence(), "score.type", "logit")

    @pytest.mark.parametrize("threshold", ["[0.5, 0.5]", "1.5", "[0.5, 0.5, -1.0]"])
    def test_thresholds_are_one_or_one_a_label_and_in_range(self, sequence, threshold):
        """Two for three labels, or beyond every probability."""
        extra = f'[output]\nkind = "multilabel"\n[score]\ntype = "probability"\nthreshold = {threshold}\n'
        assert broken(sequence("head", 3, "a", extra)) == ["threshold-per-label"]
        assert broken(sequence("head", 3, "b", extra.replace(threshold, "[0.1, 0.2, 0.3]"))) == []


class TestTowers:
    @pytest.mark.parametrize(
        ("path", "value", "name"),
        [
            ("towers", {}, "towers-agree"),
            ("interaction.tied", False, "towers-agree"),
            (
                "recording",
                {
                    "format": "x",
                    "outputs": "0" * 64,
                    "revision": None,
                    "label_map": {},
                    "column": None,
                    "null_scores": None,
                },
                "towers-agree",
            ),
            ("output.dimension", 7, "widths-chain"),
            ("towers.both.state.layers", [5, 6], "mixture-fits"),
            ("towers.both.input.prompts", {"query": ""}, "prompts-by-side"),
        ],
    )
    def test_its_parts_fit_together(self, bi, path, value, name):
        """Without an encoder, tied of two, a recording of a live one, other widths, layers, prompts."""
        assert broken_by(bi(), path, value) == [name]


class TestLabels:
    KIND = '[output]\nkind = "classes"\n'

    @pytest.mark.parametrize(
        ("maps", "words"),
        [
            ({"label2id": {"LABEL_0": 1, "LABEL_1": 0}}, "row 0 is 'LABEL_0', and 'LABEL_0' is row 1"),
            ({"label2id": {"LABEL_0": 0}}, "'LABEL_1' is row None"),
            ({"label2id": {"LABEL_0": 0, "LABEL_1": 1, "old": 1}}, "'old' is row 1"),
            ({"id2label": {"0": "a", "1": "a"}, "label2id": {"a": 0}}, "rows that share a name: a"),
        ],
    )
    def test_the_two_maps_are_each_others_inverse(self, sequence, maps, words):
        """Exchanged, incomplete, too many, or not one to one."""
        found = checks(sequence("head", 2, extra=self.KIND).change("model/config.json", **maps))["label-bijection"]
        assert not found.ok and words in found.found

    def test_generic_names_are_flagged_and_no_fault(self, sequence):
        """Two rows that nobody named."""
        found = checks(sequence("head", 2, extra=self.KIND))["label-names"]
        assert found.ok and found.found == "generic names: LABEL_0, LABEL_1" and "labels" in found.mend

    @pytest.mark.parametrize("labels", ['["a"]', '["a", "a"]', '["a", "b", "c"]'])
    def test_declared_labels_name_every_row_once(self, sequence, labels):
        """Too few, twice the same, too many."""
        assert "labels-count" in broken(sequence("head", 2, extra=self.KIND + f"labels = {labels}\n"))

    def test_a_null_label_is_one_of_them(self, sequence):
        """Of classes and tags."""
        assert broken(sequence("head", 2, extra=self.KIND + 'null = "O"\n')) == ["labels-count"]
        assert broken(sequence("head", 2, "b", self.KIND + 'null = "LABEL_0"\n')) == []


class TestRowsForTheTask:
    def test_tags_need_rows_that_lead_back_to_words(self, sequence):
        """A slow tokenizer gives no offsets, and none are rebuilt from decoded text."""
        folder = sequence("head", 3).change("model/config.json", architectures=["BertForTokenClassification"])
        assert broken_by(folder, "towers.text.rows.words", False) == ["decoder-fits"]

    def test_a_crf_is_nothing_without_its_transitions(self, sequence):
        """And they are nothing without it."""
        folder = sequence("head", 3).change("model/config.json", architectures=["BertForTokenClassification"])
        assert broken_by(folder, "output.decoder", "crf") == ["decoder-fits"]
        assert broken_by(folder, "output.transitions", "0" * 64) == ["decoder-fits"]


class TestPrompts:
    def test_a_default_prompt_must_exist(self, bi):
        """The library would not load it."""
        folder = bi().write(SETTINGS, {"prompts": {"query": "q: "}, "default_prompt_name": "other"})
        assert "'other'" in checks(folder)["prompt-names"].found

    def test_prompts_for_no_side_are_asked_about(self, bi):
        """Which of two a query is given, nobody can guess; an empty one can be declared."""
        folder = bi().write(SETTINGS, {"prompts": {"s2p_query": "a: ", "s2s_query": "b: "}})
        assert broken(folder) == ["prompt-names"]
        assert "s2p_query, s2s_query" in checks(folder)["prompt-names"].found
        assert broken(folder.say('[prompts]\nquery = "a: "\ndocument = ""\n')) == []


class TestTraining:
    @pytest.mark.parametrize(
        ("training", "names"),
        [
            ('trainable = ["encoder"]\nfrozen = ["embeddings"]', []),
            ('trainable = ["encoder"]\nfrozen = ["encoder.layer.0"]', ["training-disjoint", "training-whole"]),
            ('trainable = ["pooler"]', ["training-names"]),
            ('trainable = ["encoder.layer.0"]\nfrozen = ["embeddings"]', ["training-whole"]),
            ('trainable = ["encoder"]\nlast_trainable = "embeddings.word_embeddings.weight"', ["training-ends"]),
            ('trainable = ["encoder"]\nhead_only = true', ["head-only"]),
        ],
    )
    def test_names_are_held_against_the_weights(self, bi, training, names):
        """Apart, known, whole, from first to last, and the head's alone."""
        assert broken(bi(extra=f"[training]\n{training}\n")) == names

    def test_head_only_is_really_head_only(self, sequence):
        """Pooler and classifier are the head."""
        extra = '[training]\ntrainable = ["classifier", "bert.pooler"]\nhead_only = true\n'
        assert broken(sequence(extra=extra)) == []
        assert broken(sequence(name="b", extra=extra.replace('"bert.pooler"', '"bert.encoder"'))) == ["head-only"]
