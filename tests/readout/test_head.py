"""What heads say."""

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.readout import head
from harness.readout.head import Span, SpanLogits
from harness.readout.probability import log_softmax, sigmoid, softmax
from harness.readout.projection import Dense

HEAD = Dense(np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([0.0, 0, -1]), "identity")
ROWS = np.array([[1.0, 2], [3, 0], [5, 5], [0, 1]])
MASK = np.array([True, True, False, True])


class TestProbabilities:
    def test_softmax_and_temperature(self):
        """Logits 0 and log 9 at temperature 2 are 0 and log 3: 1/4 and 3/4."""
        assert softmax(np.array([0, np.log(9)]), 2.0) == pytest.approx([0.25, 0.75])

    def test_sigmoid_and_temperature(self):
        """log 9 at temperature 2 is 3/4."""
        assert sigmoid(np.array([np.log(9)]), 2.0) == pytest.approx([0.75])

    def test_neither_overflows(self):
        """A logit of 1e4 is certain; its logarithm at the other label is -1e4."""
        assert softmax(np.array([0, 1e4]), 1.0).tolist() == [0, 1]
        assert log_softmax(np.array([0, 1e4]), 1.0).tolist() == [-1e4, 0]
        assert sigmoid(np.array([-1e4, 1e4]), 1.0).tolist() == [0, 1]

    @pytest.mark.parametrize("temperature", [0.0, -1.0, np.nan, np.inf])
    @pytest.mark.parametrize("map_", [softmax, log_softmax, sigmoid])
    def test_a_temperature_is_above_zero(self, map_, temperature):
        """A negative one would turn the order round."""
        with pytest.raises(Misconfigured, match="temperature"):
            map_(np.zeros(2), temperature)


class TestClassification:
    def test_by_hand(self):
        """(1, 2) gives 1, 2 and 1 + 2 - 1."""
        assert head.classification(ROWS[0], HEAD).tolist() == [1, 2, 2]

    def test_rows_of_the_head_and_labels_move_together_or_not_at_all(self):
        """Permuting both keeps each label's logit; permuting one gives it to another label."""
        labels, order = np.array(["A", "B", "C"]), np.array([2, 0, 1])
        moved = head.classification(ROWS[1], Dense(HEAD.weight[order], HEAD.bias[order], "identity"))
        was = head.classification(ROWS[1], HEAD)
        assert dict(zip(labels[order], moved, strict=True)) == dict(zip(labels, was, strict=True))
        assert dict(zip(labels, moved, strict=True)) != dict(zip(labels, was, strict=True))


class TestRegression:
    def test_comes_back_in_the_targets_own_units(self):
        """The output 3 of a target that was reduced by 10 and divided by 4 is 22."""
        by = Dense(np.array([[1.0, 1]]), None, "identity")
        assert head.regression(ROWS[0], by, scale=4.0, shift=10.0).tolist() == [22]

    def test_a_scale_of_zero_is_refused(self):
        """All values would be one."""
        with pytest.raises(Misconfigured, match="inverse"):
            head.regression(ROWS[0], HEAD, scale=0.0, shift=0.0)


class TestMultilabel:
    def test_each_label_has_its_own_threshold(self):
        """Probabilities .5, .75 and .25: a threshold is reached at equality, and none need be."""
        logits = np.array([0, np.log(3), -np.log(3)])
        assert head.multilabel(logits, np.array([0.5, 0.8, 0.2]), 1.0).tolist() == [True, False, True]
        assert not head.multilabel(logits, np.full(3, 0.9), 1.0).any()

    def test_a_threshold_for_each_label(self):
        """One for all would be broadcast in silence."""
        with pytest.raises(Misconfigured, match="thresholds"):
            head.multilabel(np.zeros(3), np.zeros(1), 1.0)


class TestMultipleChoice:
    def test_one_logit_for_each_choice(self):
        """The same row of weights on every choice."""
        by = Dense(np.array([[1.0, -1]]), np.array([0.5]), "identity")
        assert head.multiple_choice(ROWS, by).tolist() == [-0.5, 3.5, 0.5, -0.5]

    def test_a_head_of_labels_and_no_choices_are_refused(self):
        """Three logits for a choice rank nothing."""
        with pytest.raises(Misconfigured, match="one"):
            head.multiple_choice(ROWS, HEAD)
        with pytest.raises(EmptySlice, match="choices"):
            head.multiple_choice(ROWS[:0], Dense(np.ones((1, 2)), None, "identity"))


class TestTokens:
    def test_only_counted_rows_have_logits(self):
        """The third row is masked, and nothing stands in its place."""
        assert head.tokens(ROWS, MASK, HEAD).tolist() == [[1, 2, 2], [3, 0, 2], [0, 1, 0]]

    def test_no_counted_row_is_refused(self):
        """There is nothing to tag."""
        with pytest.raises(EmptySlice):
            head.tokens(ROWS, np.zeros(4, dtype=bool), HEAD)


class TestSpans:
    BY = Dense(np.array([[1.0, 0], [0, 1]]), None, "identity")

    def test_first_output_is_the_start_and_second_the_end(self):
        """Of the counted rows, each with the row that it stands in."""
        found = head.spans(ROWS, MASK, self.BY)
        assert found.rows.tolist() == [0, 1, 3]
        assert (found.start.tolist(), found.end.tolist()) == ([1, 3, 0], [2, 0, 1])

    def test_the_sentinel_is_the_padded_length(self):
        """A target beyond the text is ignored; a negative one becomes row 0, and is not."""
        assert [head.span_target(row, 4) for row in (-1, 0, 3, 4, 99)] == [0, 0, 3, 4, 4]

    def test_best_span_runs_forward(self):
        """Start 1 and end 0 would sum to 5; of those that run forward, rows 1 to 3 give 4."""
        assert head.best_span(head.spans(ROWS, MASK, self.BY), 4) == Span(1, 3, 4.0)

    def test_best_span_is_no_longer_than_allowed(self):
        """Rows 1 to 3 are three rows; of at most two, row 0 alone and row 1 alone give 3, and the earlier stands."""
        assert head.best_span(head.spans(ROWS, MASK, self.BY), 2) == Span(0, 0, 3.0)

    def test_ties_go_to_the_shorter_then_the_earlier(self):
        """All spans are equal; then 2 to 3 and 3 alone are, and the one that begins earlier is the longer."""
        even = SpanLogits(np.array([2, 3]), np.zeros(2), np.zeros(2))
        assert head.best_span(even, 9) == Span(2, 2, 0.0)
        longer = SpanLogits(np.array([2, 3]), np.zeros(2), np.array([0.0, 1]))
        assert head.best_span(longer, 9) == Span(3, 3, 1.0)

    def test_no_rows_are_refused(self):
        """A context of which nothing was read has no answer in it."""
        with pytest.raises(EmptySlice, match="rows"):
            head.best_span(SpanLogits(np.empty(0, dtype=int), np.empty(0), np.empty(0)), 9)

    def test_a_head_of_labels_and_a_length_of_zero_are_refused(self):
        """Three outputs are no start and end."""
        with pytest.raises(Misconfigured, match="span head"):
            head.spans(ROWS, MASK, HEAD)
        with pytest.raises(Misconfigured, match="longest"):
            head.best_span(head.spans(ROWS, MASK, self.BY), 0)


class TestWindows:
    """Two windows' logits, (4, 0) and (0, 0)."""

    LOGITS = np.array([[4.0, 0], [0, 0]])

    def test_mean_of_logits_is_not_mean_of_probabilities(self):
        """softmax(2, 0) is .8808; the mean of .9820 and .5 is .7410."""
        assert head.windows_by_mean_logits(self.LOGITS, 1.0)[0] == pytest.approx(0.8808, abs=5e-5)
        assert head.windows_by_mean_probabilities(self.LOGITS, 1.0)[0] == pytest.approx(0.7410, abs=5e-5)

    @pytest.mark.parametrize("together", [head.windows_by_mean_logits, head.windows_by_mean_probabilities])
    def test_no_windows_are_refused(self, together):
        """A text has at least one."""
        with pytest.raises(EmptySlice, match="windows"):
            together(self.LOGITS[:0], 1.0)


@pytest.fixture
def config():
    from transformers import BertConfig

    return BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8, num_labels=3
    )


class TestReferee:
    """transformers' own BERT heads over the same rows; right padding, two texts of 5 and 3 tokens."""

    def test_sequence_head_is_pooler_then_classifier(self, config):
        """First row, dense, tanh; then dense. Dropout is off."""
        torch = pytest.importorskip("torch")
        from transformers import BertForSequenceClassification

        from harness.readout.pooling import bert_pooler

        model = BertForSequenceClassification(config).eval()
        rows, mask, out = _run(model, torch)
        for text in range(2):
            pooled = bert_pooler(rows[text], mask[text], _dense(model.bert.pooler.dense, "tanh"))
            found = head.classification(pooled, _dense(model.classifier))
            assert found == pytest.approx(out.logits[text].numpy(), abs=1e-6)

    def test_token_head_has_no_pooler(self, config):
        """One dense map on each row."""
        torch = pytest.importorskip("torch")
        from transformers import BertForTokenClassification

        model = BertForTokenClassification(config).eval()
        rows, mask, out = _run(model, torch)
        found = head.tokens(rows[1], mask[1], _dense(model.classifier))
        assert found == pytest.approx(out.logits[1, :3].numpy(), abs=1e-6)

    def test_span_head_splits_in_two(self, config):
        """And its loss ignores a start at the padded length, as the sentinel says."""
        torch = pytest.importorskip("torch")
        from transformers import BertForQuestionAnswering

        from harness.readout.loss import cross_entropy

        config.num_labels = 2
        model = BertForQuestionAnswering(config).eval()
        starts, ends = torch.tensor([1, 99]), torch.tensor([2, 99])
        rows, mask, out = _run(model, torch, start_positions=starts, end_positions=ends)
        found = head.spans(rows[1], mask[1], _dense(model.qa_outputs))
        assert found.start == pytest.approx(out.start_logits[1, :3].numpy(), abs=1e-6)
        assert found.end == pytest.approx(out.end_logits[1, :3].numpy(), abs=1e-6)
        length = rows.shape[1]
        losses = [
            cross_entropy(logits.numpy(), np.array([head.span_target(int(t), length) for t in targets]), 1.0, length)
            for logits, targets in ((out.start_logits, starts), (out.end_logits, ends))
        ]
        assert np.mean(losses) == pytest.approx(float(out.loss), abs=1e-6)


def _dense(module, activation="identity"):
    return Dense(module.weight.detach().numpy(), module.bias.detach().numpy(), activation)


def _run(model, torch, **targets):
    ids = torch.tensor([[2, 5, 6, 7, 3], [2, 8, 3, 0, 0]])
    attended = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]])
    with torch.no_grad():
        out = model(input_ids=ids, attention_mask=attended, output_hidden_states=True, **targets)
    return out.hidden_states[-1].numpy(), attended.numpy().astype(bool), out
