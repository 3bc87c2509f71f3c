"""Any number of labels per case."""

import numpy as np
import pytest
from sklearn import metrics as sk

from harness.compare.form import statistic
from harness.errors import Misconfigured
from harness.metric.form import Policy
from harness.metric.multilabel import contribution, label_table, labels_per_case, multilabelled
from harness.metric.name import parse
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import LABELS, ids, ok

ABC = ("a", "b", "c")


def read(gold, probabilities, labels=ABC, columns=None, status=None, kind="probability", **rest):
    n = len(gold)
    scores = np.array(probabilities, dtype=float)
    columns = columns or labels
    return multilabelled(ids(n), gold, labels, scores, columns, ok(n) if status is None else status, kind=kind, **rest)


def value(name, outputs, policy=None):
    return statistic(contribution(parse(name), outputs, policy)).value()


class TestByHand:
    def test_sets(self):
        """Gold ab against bc: one of three labels agrees, F1 is 2·1/(2+2)."""
        outputs = read(["ab"], [[0.1, 0.9, 0.8]])
        assert outputs.predicted.tolist() == [[False, True, True]]
        assert value("subset_accuracy", outputs) == 0
        assert value("hamming_loss", outputs) == 2 / 3
        assert value("f1_samples", outputs) == 0.5

    @pytest.mark.parametrize(("word", "expected"), [("one", 1.0), ("zero", 0.0)])
    def test_nothing_for_nothing_is_right_unless_said_otherwise(self, word, expected):
        """An empty gold set with an empty prediction."""
        outputs = read(["", "a"], [[0.1, 0.2, 0.3], [0.9, 0.9, 0.1]])
        found = contribution(parse("f1_samples"), outputs, Policy(empty=word)).values
        assert found.tolist() == [expected, 2 / 3]
        assert value("f1_samples", outputs) == (1 + 2 / 3) / 2
        assert value("subset_accuracy", outputs) == 0.5

    def test_left_out_is_undefined_not_zero(self):
        outputs = read(["", "a"], [[0.1, 0.2, 0.3], [0.9, 0.1, 0.1]])
        found = contribution(parse("f1_samples"), outputs, Policy(empty="leave-out"))
        assert list(found.status) == [Status.UNDEFINED, Status.SCORED]
        assert statistic(found).value() == 1

    def test_the_threshold_is_reached_and_by_label(self):
        """A probability at its threshold counts."""
        outputs = read(["ab"], [[0.3, 0.3, 0.3]], columns=("c", "b", "a"), thresholds={"a": 0.3, "b": 0.31, "c": 0})
        assert outputs.predicted.tolist() == [[True, False, True]]

    def test_logits_are_a_sigmoid_each(self):
        outputs = read(["ab"], [[0, np.log(3), -800]], kind="logit")
        assert outputs.probabilities[0] == pytest.approx([0.5, 0.75, 0])


class TestReferee:
    def sample(self):
        rng = np.random.default_rng(5)
        gold = rng.random((60, 4)) < 0.35
        gold[:3] = [[False] * 4, [True] * 4, [False] * 4]
        chances = rng.integers(0, 21, (60, 4)) / 20
        chances[0] = 0.1
        outputs = read([[c for c, has in zip(LABELS, row, strict=True) if has] for row in gold], chances, LABELS)
        return gold, chances, outputs, np.stack([np.ones(60), rng.integers(1, 4, 60), rng.random(60) + 0.1])

    @pytest.mark.parametrize("how", ["macro", "micro", "weighted", "samples"])
    @pytest.mark.parametrize("base", ["f1", "precision", "recall"])
    @pytest.mark.parametrize(("word", "number"), [("zero", 0.0), ("one", 1.0), ("leave-out", np.nan)])
    def test_averages_under_every_policy(self, base, how, word, number):
        gold, chances, outputs, weights = self.sample()
        found = contribution(parse(f"{base}_{how}"), outputs, Policy(absent=word, division=word, empty=word))
        score = getattr(sk, f"{base}_score")
        expected = [
            score(gold, chances >= 0.5, average=how, zero_division=number, sample_weight=row) for row in weights
        ]
        assert statistic(found).of(weights[:, found.scored]) == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize(
        ("name", "ask"),
        [
            ("hamming_loss", lambda gold, chances, w: sk.hamming_loss(gold, chances >= 0.5, sample_weight=w)),
            ("subset_accuracy", lambda gold, chances, w: sk.accuracy_score(gold, chances >= 0.5, sample_weight=w)),
            (
                "label_ranking_average_precision",
                lambda gold, chances, w: sk.label_ranking_average_precision_score(gold, chances, sample_weight=w),
            ),
            ("roc_auc_ovr", lambda gold, chances, w: sk.roc_auc_score(gold, chances, sample_weight=w)),
            (
                "average_precision_macro",
                lambda gold, chances, w: sk.average_precision_score(gold, chances, sample_weight=w),
            ),
        ],
    )
    def test_scikit_learn_s_number_also_of_weighted_cases(self, name, ask):
        gold, chances, outputs, weights = self.sample()
        expected = [ask(gold, chances, row) for row in weights]
        found = statistic(contribution(parse(name), outputs))
        assert found.of(weights) == pytest.approx(expected, abs=1e-9)

    @pytest.mark.parametrize("c", range(4))
    def test_one_label(self, c):
        gold, chances, outputs, weights = self.sample()
        for name, score, said in (
            ("f1", sk.f1_score, chances >= 0.5),
            ("roc_auc_ovr", sk.roc_auc_score, chances),
            ("average_precision", sk.average_precision_score, chances),
        ):
            expected = [score(gold[:, c], said[:, c], sample_weight=row) for row in weights]
            found = statistic(contribution(parse(f"{name}[{LABELS[c]}]"), outputs))
            assert found.of(weights) == pytest.approx(expected, abs=1e-9)


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        """No gold is not the same as no label; what is no probability has failed."""
        status = ok(5)
        status[1] = OutputStatus.MISSING
        outputs = read(["", "a", None, "a", "a"], [[0.1] * 3] * 3 + [[1.1, 0, 0], [np.nan, 0, 0]], status=status)
        assert list(outputs.status) == [
            Status.SCORED, Status.MISSING, Status.NOT_APPLICABLE, Status.FAILED, Status.FAILED,
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "name", ["average_precision_macro", "roc_auc_ovr", "roc_auc_ovr[a]", "average_precision[a]", "recall[a]"]
    )
    def test_no_positive_in_the_gold_is_undefined(self, name):
        assert set(contribution(parse(name), read(["", ""], [[0.9] * 3, [0.1] * 3])).status) == {Status.UNDEFINED}

    @pytest.mark.parametrize("thresholds", [{"a": 0.5}, {"a": 0.5, "b": 0.5, "c": 0.5, "d": 0.5}, 1.5, float("nan")])
    def test_thresholds_are_one_for_each_label(self, thresholds):
        with pytest.raises(Misconfigured, match="thresholds"):
            read(["a"], [[0.5] * 3], thresholds=thresholds)

    def test_a_gold_label_that_is_not_declared(self):
        with pytest.raises(Misconfigured, match="labels 'd'"):
            read(["ad"], [[0.5] * 3])


class TestCompanions:
    def outputs(self):
        return read(["ab", "a", "", None], [[0.9, 0.1, 0.1], [0.9, 0.9, 0.1], [0.1] * 3, [0.9] * 3])

    def test_labels_with_prevalence_and_threshold(self):
        """Of the three cases that have gold; c is nobody's, and stays."""
        found = label_table(self.outputs())
        assert [(row.name, row.support, row.predicted, row.right) for row in found.classes.rows] == [
            ("a", 2, 2, 2), ("b", 1, 1, 0), ("c", 0, 0, 0),
        ]  # fmt: skip
        assert found.prevalence.tolist() == [2 / 3, 1 / 3, 0]
        assert found.predicted_rate.tolist() == [2 / 3, 1 / 3, 0]
        assert found.thresholds.tolist() == [0.5, 0.5, 0.5]

    def test_labels_per_case(self):
        found = labels_per_case(self.outputs())
        assert found.gold.tolist() == [1, 1, 1, 0]
        assert found.predicted.tolist() == [1, 1, 1, 0]
        assert (found.mean_gold, found.mean_predicted, found.n_both_empty, found.empty) == (1, 1, 1, "one")
