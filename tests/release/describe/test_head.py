"""Plain heads of transformers: what is read, and what has to be declared."""

import json

import pytest

from harness.errors import Misconfigured, NotAdmitted, NotFound
from harness.file.sealed import own_digest

from ..conftest import classifier, safetensors
from .conftest import described, source, tower


@pytest.fixture
def head(sequence):
    """A BERT with another architecture's head."""

    def make(architecture="BertForTokenClassification", labels=3, extra="", group="classifier"):
        folder = sequence("head", labels, extra=extra).change("model/config.json", architectures=[architecture])
        shapes = {"bert.embeddings.word_embeddings.weight": [41, 8], **classifier(labels, group)}
        return folder.write("model/model.safetensors", safetensors(shapes))

    return make


class TestSequence:
    def test_what_its_numbers_are_is_never_inferred(self, sequence):
        """Neither from their count nor from the labels' type: problem_type says it, or release.toml."""
        with pytest.raises(Misconfigured, match='kind = "classes"'):
            described(sequence("head", 3))
        meaning = described(sequence("head", 3, extra='[output]\nkind = "classes"\n')).meaning
        assert (meaning.output.kind, meaning.output.decoder, meaning.score.type) == ("classes", "argmax", "logit")

    def test_problem_type_is_read(self, sequence):
        """And a declaration beside it stands over it, with both on record."""
        folder = sequence("head", 3).change("model/config.json", problem_type="single_label_classification")
        assert source(folder, "output.kind") == "config.json#/problem_type"
        manifest = described(folder.say('[output]\nkind = "multilabel"\n[score]\nthreshold = 0.5\n'))
        assert manifest.meaning.output.kind == "multilabel" and manifest.evidence.overridden == {
            "output.kind": "classes"
        }

    def test_a_threshold_is_asked_for_where_labels_stand_apart(self, sequence):
        """Nobody can say otherwise when a label counts."""
        with pytest.raises(Misconfigured, match=r"`threshold`"):
            described(sequence("head", 3, extra='[output]\nkind = "multilabel"\n'))

    def test_the_units_of_a_value_are_asked_for(self, sequence):
        """With the scale and shift that lead back to them."""
        folder = sequence("head", 1, extra='[output]\nkind = "value"\n')
        with pytest.raises(Misconfigured, match=r"\[output.regression\]"):
            described(folder)
        meaning = described(folder.say('[output.regression]\nunits = "stars"\nscale = 2.0\nshift = 1.0\n')).meaning
        assert (meaning.output.regression.units, meaning.score.type, meaning.output.labels) == ("stars", "value", None)

    def test_probabilities_are_softmax_of_classes_and_sigmoid_of_labels(self, sequence):
        """Where release.toml says that its numbers are probabilities."""
        classes = described(sequence("head", 3, extra='[output]\nkind = "classes"\n[score]\ntype = "probability"\n'))
        assert (classes.meaning.score.activation, classes.meaning.score.sums_to) == ("softmax", 1.0)
        several = '[output]\nkind = "multilabel"\n[score]\ntype = "probability"\nthreshold = 0.5\n'
        score = described(sequence("head", 3, name="b", extra=several)).meaning.score
        assert (score.activation, score.sums_to, score.probability) == ("sigmoid", None, True)


class TestLabels:
    def test_their_order_is_that_of_the_rows(self, head):
        """Not that of the file's keys."""
        folder = head().change("model/config.json", id2label={"2": "PER", "0": "O", "1": "LOC"})
        assert described(folder).meaning.output.labels == ["O", "LOC", "PER"]

    def test_a_configuration_without_any_has_the_librarys_two(self, head):
        """Their names say nothing, and release.toml can give better ones."""
        folder = head(labels=2).without("model/config.json", "id2label", "label2id")
        output = described(folder).meaning.output
        assert (output.labels, output.generic_labels) == (["LABEL_0", "LABEL_1"], True)
        assert source(folder, "output.labels") == "library"
        manifest = described(folder.say('[output]\nlabels = ["O", "PER"]\n'))
        assert (manifest.meaning.output.labels, manifest.meaning.output.generic_labels) == (["O", "PER"], False)
        assert manifest.evidence.overridden == {"output.labels": ["LABEL_0", "LABEL_1"]}

    @pytest.mark.parametrize("names", [{"0": "a", "2": "b"}, {"x": "a"}, {"1": "a", "2": "b"}])
    def test_rows_that_give_no_order_are_refused(self, head, names):
        """One is missing, or isn't a number."""
        with pytest.raises(NotAdmitted, match="id2label"):
            described(head().change("model/config.json", id2label=names))


class TestOtherHeads:
    def test_a_token_head_gives_every_row_tags(self, head):
        """Without a pooler, and decoded by the largest."""
        meaning = described(head()).meaning
        found = meaning.towers["text"]
        assert (found.readout.family, found.readout.modes, len(found.readout.projections)) == ("token-head", [], 1)
        assert (meaning.output.kind, meaning.output.decoder, meaning.score.type) == ("tags", "argmax", "tags")

    def test_a_crf_needs_its_transitions(self, head):
        """A file beside release.toml, by its digest."""
        folder = head(extra='[output]\ndecoder = "crf"\ntransitions = "crf.json"\n')
        with pytest.raises(NotFound, match=r"crf\.json"):
            described(folder)
        output = described(folder.write("crf.json", [[0.0]])).meaning.output
        assert output.decoder == "crf" and len(output.transitions) == 64

    def test_a_question_is_read_with_its_context_and_answered_by_two_numbers_a_row(self, head):
        """Start and end; the null answer is whatever release.toml says."""
        folder = head("BertForQuestionAnswering", 2, '[output]\nnull = "first row"\n', "qa_outputs")
        meaning = described(folder).meaning
        assert (meaning.output.kind, meaning.output.labels, meaning.output.null) == (
            "span",
            ["start", "end"],
            "first row",
        )
        assert meaning.towers["pair"].input.template == "pair"
        assert meaning.towers["pair"].artifact.head is not None

    def test_how_rows_become_tags_and_answers_is_said(self, head):
        """The first piece, and thirty tokens, unless release.toml says otherwise; neither of other heads."""
        manifest = described(head())
        assert (manifest.meaning.output.pieces, manifest.meaning.output.longest) == ("first", None)
        assert manifest.evidence.sources["output.pieces"] == "library"
        said = described(head(extra='[output]\npieces = "mean"\n'))
        assert said.meaning.output.pieces == "mean" and said.evidence.sources["output.pieces"] == "declared"
        span = described(head("BertForQuestionAnswering", 2, group="qa_outputs")).meaning.output
        assert (span.pieces, span.longest) == (None, 30)

    def test_a_choice_is_scored_by_one_number_each(self, head):
        """However many there are."""
        meaning = described(head("BertForMultipleChoice", 1)).meaning
        assert (meaning.output.kind, meaning.output.dimension) == ("choice", 1)
        assert meaning.towers["text"].input.template == "choices"

    def test_a_model_without_a_head_is_refused(self, head):
        """By its architecture."""
        with pytest.raises(NotAdmitted, match="BertModel"):
            described(head("BertModel"))

    def test_a_kind_that_the_head_does_not_have_is_refused(self, head):
        """Tags are not classes."""
        with pytest.raises(Misconfigured, match="'tags'"):
            described(head(extra='[output]\nkind = "classes"\n'))


class TestCalibrator:
    def test_it_is_known_by_its_file_and_what_it_was_fitted_under(self, head):
        """And a file that doesn't say that is refused."""
        said = {"family": "platt", "fitted_under": "0" * 64}
        folder = head(extra='[calibrator]\npath = "c.json"\n').write("c.json", {**said, "own_digest": own_digest(said)})
        calibrator = described(folder).meaning.score.calibrator
        assert (calibrator.family, calibrator.fitted_under) == ("platt", "0" * 64)
        for broken in ({"family": "platt"}, {"family": "platt", "fitted_under": "x" * 64}):
            with pytest.raises(Misconfigured, match=r"c\.json"):
                described(folder.write("c.json", json.dumps({**broken, "own_digest": own_digest(broken)})))


class TestHeadWeightsAlone:
    def test_other_head_weights_leave_the_backbone_as_it_is(self, sequence):
        """One file with both: only the classifier's digest changes."""
        extra = '[output]\nkind = "classes"\n'
        one = sequence("head", 3, "one", extra)
        path = one.path / "model/model.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        other = sequence("head", 3, "other", extra).write("model/model.safetensors", bytes(content))
        before, after = tower(one, "text").artifact, tower(other, "text").artifact
        assert before.backbone == after.backbone
        assert None not in (before.head, after.head) and before.head != after.head
