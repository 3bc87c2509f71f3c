"""One label per case."""

import json
import warnings

import numpy as np
import pytest
from sklearn import metrics as sk

from harness.compare.form import statistic
from harness.compare.statistic import Paired
from harness.errors import Misconfigured
from harness.metric.classification import classified, clipped, confusion, contribution, costs, support
from harness.metric.form import Policy
from harness.metric.name import parse
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import LABELS, ids, ok

ABC = ("a", "b", "c")


def read(gold, probabilities, labels=ABC, columns=None, status=None, kind="probability", **rest):
    n = len(gold)
    scores = np.array(probabilities, dtype=float)
    columns = columns or labels
    return classified(ids(n), gold, labels, scores, columns, ok(n) if status is None else status, kind=kind, **rest)


def answers(gold, predicted, labels=ABC):
    """A model that is sure of each answer."""
    return read(list(gold), [[float(c == answer) for c in labels] for answer in predicted], labels)


def value(name, outputs, policy=None):
    return statistic(contribution(parse(name), outputs, policy)).value()


class TestByHand:
    def test_macro_is_over_classes_and_micro_over_cases(self):
        """Class F1s of 1, .5 and .5 give macro 2/3; 4 of 6 cases right give micro 4/6."""
        outputs = answers("aabbcc", "aabcbc")
        assert [value(f"f1[{c}]", outputs) for c in ABC] == [1, 0.5, 0.5]
        assert value("f1_macro", outputs) == pytest.approx(2 / 3, abs=1e-15)
        assert value("f1_micro", outputs) == 4 / 6
        assert value("accuracy", outputs) == 4 / 6

    def test_log_loss_and_both_briers(self):
        """P(gold) = .8: -ln .8; class sum .04 + .04; the binary form is half of it."""
        outputs = read(["a"], [[0.8, 0.2]], ("a", "b"))
        assert value("log_loss", outputs) == -np.log(0.8)
        assert value("brier_sum", outputs) == pytest.approx(0.08)
        assert value("brier_binary", outputs) == pytest.approx(0.04)

    def test_a_loss_has_a_named_bound(self):
        """A probability of 0 counts as 2**-52, from logits as from probabilities, and is counted."""
        for outputs in (
            read(["a", "b"], [[0, 1, 0], [0, 1, 0]]),
            read(["a", "b"], [[-5e3, 5e3, 0], [-5e3, 5e3, 0]], kind="logit"),
        ):
            assert value("log_loss", outputs) == 52 * np.log(2) / 2
            assert clipped(outputs).n_clipped == 1
            assert clipped(outputs).least == 2**-52

    def test_logits_are_a_softmax(self):
        outputs = read(["b"], [[0, np.log(3), 0]], kind="logit")
        assert outputs.probabilities[0] == pytest.approx([0.2, 0.6, 0.2])

    def test_the_binary_brier_is_of_two_classes(self):
        with pytest.raises(Misconfigured, match="brier_sum"):
            value("brier_binary", answers("ab", "ab"))


class TestReferee:
    NAMES = (
        "accuracy", "balanced_accuracy", "matthews_corrcoef", "log_loss", "brier_sum", "roc_auc_ovr",
        "average_precision_macro",
        *(f"{base}_{how}" for base in ("f1", "precision", "recall") for how in ("macro", "micro", "weighted")),
        *(f"{base}[{c}]" for base in ("f1", "precision", "recall", "roc_auc_ovr", "average_precision") for c in LABELS),
    )  # fmt: skip

    @staticmethod
    def expected(name, gold, predicted, chances, weight):
        one_hot = np.array([[c == g for c in LABELS] for g in gold])
        order = np.argsort(LABELS)  # scikit-learn wants columns by rising label
        match name:
            case "log_loss":
                return sk.log_loss(gold, chances[:, order], sample_weight=weight, labels=sorted(LABELS))
            case "brier_sum":
                return np.average(((chances - one_hot) ** 2).sum(axis=1), weights=weight)
            case "roc_auc_ovr":
                return np.mean([
                    sk.roc_auc_score(one_hot[:, c], chances[:, c], sample_weight=weight) for c in range(len(LABELS))
                ])  # fmt: skip
            case "average_precision_macro":
                return sk.average_precision_score(one_hot, chances, sample_weight=weight)
        base, _, how = name.partition("_")
        if base in ("f1", "precision", "recall"):
            return getattr(sk, f"{base}_score")(gold, predicted, average=how, sample_weight=weight, zero_division=0)
        if "[" in name:
            base, label = name[:-1].split("[")
            if base in ("roc_auc_ovr", "average_precision"):
                c = LABELS.index(label)
                score = getattr(sk, f"{base.removesuffix('_ovr')}_score")
                return score(one_hot[:, c], chances[:, c], sample_weight=weight)
            score = getattr(sk, f"{base}_score")
            return score(gold, predicted, labels=[label], average="macro", sample_weight=weight)
        suffix = "" if name == "matthews_corrcoef" else "_score"
        return getattr(sk, name + suffix)(gold, predicted, sample_weight=weight)

    @pytest.mark.parametrize("name", NAMES)
    def test_scikit_learn_s_number_also_of_weighted_cases(self, name):
        rng = np.random.default_rng(7)
        chances = rng.dirichlet(np.full(4, 0.6), 80)
        gold = [LABELS[i] for i in rng.integers(0, 4, 80)]
        outputs = read(gold, chances, LABELS)
        predicted = [LABELS[i] for i in chances.argmax(axis=1)]
        found = statistic(contribution(parse(name), outputs))
        weights = np.stack([np.ones(80), rng.integers(1, 4, 80), rng.random(80) + 0.1])
        expected = [self.expected(name, gold, predicted, chances, row) for row in weights]
        assert found.of(weights) == pytest.approx(expected, abs=1e-9)
        assert found.value() == pytest.approx(expected[0], abs=1e-9)

    def test_two_classes_as_scikit_learn_s_binary_forms(self):
        rng = np.random.default_rng(8)
        chance, gold = rng.random(50), rng.integers(0, 2, 50)
        outputs = read([str(g) for g in gold], np.stack([1 - chance, chance], axis=1), ("0", "1"))
        assert value("brier_binary", outputs) == pytest.approx(sk.brier_score_loss(gold, chance), abs=1e-12)
        assert value("roc_auc_ovr", outputs) == pytest.approx(sk.roc_auc_score(gold, chance), abs=1e-12)

    @pytest.mark.parametrize("how", ["macro", "weighted"])
    @pytest.mark.parametrize("base", ["f1", "precision", "recall"])
    @pytest.mark.parametrize(("word", "number"), [("zero", 0.0), ("one", 1.0), ("leave-out", np.nan)])
    def test_policies_are_scikit_learn_s_zero_division(self, base, how, word, number):
        """`never` is neither gold nor predicted, `lost` is gold alone, `extra` predicted alone."""
        labels = ("a", "b", "lost", "extra", "never")
        gold, predicted = ["a", "a", "b", "b", "lost"], ["a", "b", "b", "extra", "a"]
        found = value(f"{base}_{how}", answers(gold, predicted, labels), Policy(absent=word, division=word))
        score = getattr(sk, f"{base}_score")
        expected = score(gold, predicted, labels=labels, average=how, zero_division=number)
        assert found == pytest.approx(expected, abs=1e-12)

    def test_the_default_is_scikit_learn_s(self):
        """Classes that nobody has are in no mean; a class that is only answered, or only gold, is."""
        labels = ("a", "b", "lost", "extra", "never")
        gold, predicted = ["a", "a", "b", "b", "lost"], ["a", "b", "b", "extra", "a"]
        outputs = answers(gold, predicted, labels)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for base in ("f1", "precision", "recall"):
                expected = getattr(sk, f"{base}_score")(gold, predicted, average="macro")
                assert value(f"{base}_macro", outputs) == pytest.approx(expected, abs=1e-12)
            expected = sk.balanced_accuracy_score(gold, predicted)
        assert value("balanced_accuracy", outputs) == pytest.approx(expected, abs=1e-12)

    def test_public_probabilities(self, shared_data):
        """500 questions of six kinds: reference figures by scikit-learn; its loss was of rows scaled to sum to 1."""
        folder = shared_data("trec6")
        expected = json.loads((folder / "cls_trec6_expected.json").read_text())
        rows = [json.loads(line) for line in (folder / "cls_trec6_probs.jsonl").read_text().splitlines()]
        outputs = read([row["gold"] for row in rows], [row["probs"] for row in rows], tuple(expected["labels"]))
        assert (outputs.status == Status.SCORED).all()
        for name, key in (
            ("accuracy", "accuracy"), ("f1_macro", "macro_f1"), ("f1_weighted", "weighted_f1"),
            ("balanced_accuracy", "balanced_accuracy"), ("matthews_corrcoef", "mcc"),
        ):  # fmt: skip
            assert value(name, outputs) == pytest.approx(expected[key], abs=1e-12)
        assert value("log_loss", outputs) == pytest.approx(expected["log_loss_renormalised"], abs=1e-9)
        assert value("brier_sum", outputs) == pytest.approx(expected["brier_multiclass_sum"], abs=1e-9)
        assert confusion(outputs).counts.tolist() == expected["confusion_matrix"]
        for row in support(outputs).rows:
            figures = expected["per_class"][row.name]
            assert (row.precision, row.recall, row.f1, row.support) == pytest.approx(
                [figures[key] for key in ("precision", "recall", "f1-score", "support")], abs=1e-12
            )


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        """What the data decide comes first; of probabilities only what is rounding is mended."""
        status = ok(8)
        status[[1, 2, 3]] = OutputStatus.MISSING, OutputStatus.FAILED, OutputStatus.MISSING
        even = [0.25, 0.5, 0.25]
        outputs = read(
            ["a", "a", "a", None, "a", "a", "a", "a"],
            [even, even, even, even, [0.5, 0.6, 0.1], [0.5, np.nan, 0.5], [1.2, -0.2, 0], [0.5, 0.50005, 0]],
            status=status,
        )
        assert list(outputs.status) == [
            Status.SCORED, Status.MISSING, Status.FAILED, Status.NOT_APPLICABLE, Status.FAILED, Status.FAILED,
            Status.FAILED, Status.SCORED,
        ]  # fmt: skip
        assert outputs.probabilities[7].tolist() == pytest.approx([0.5 / 1.00005, 0.50005 / 1.00005, 0], abs=1e-15)
        found = contribution(parse("accuracy"), outputs)
        assert np.isnan(found.values).tolist() == [False, *[True] * 6, False]
        assert confusion(outputs).n_left_out == 6

    def test_an_infinite_logit_has_failed(self):
        outputs = read(["a", "a"], [[np.inf, 0, 0], [1, 0, 0]], kind="logit")
        assert list(outputs.status) == [Status.FAILED, Status.SCORED]

    def test_a_gold_label_that_is_not_declared(self):
        with pytest.raises(Misconfigured, match="labels 'd'"):
            read(["d"], [[1, 0, 0]])

    @pytest.mark.parametrize("name", ["f1[c]", "precision[c]", "recall[c]"])
    def test_a_class_that_nobody_has_is_undefined(self, name):
        """Unless a policy says what it is."""
        outputs = answers("ab", "ba")
        assert set(contribution(parse(name), outputs).status) == {Status.UNDEFINED}
        assert value(name, outputs, Policy(absent="one")) == 1

    def test_one_class_alone_has_no_auroc_and_no_correlation(self):
        for name in ("roc_auc_ovr", "matthews_corrcoef"):
            assert set(contribution(parse(name), answers("aa", "aa")).status) == {Status.UNDEFINED}
        assert value("f1_macro", answers("aa", "aa")) == 1

    def test_no_such_class(self):
        with pytest.raises(Misconfigured, match=r"metric 'f1\[d\]'"):
            contribution(parse("f1[d]"), answers("ab", "ab"))


class TestTies:
    def test_equal_scores_go_to_the_first_name_and_are_counted(self):
        """In whatever order the labels are declared."""
        for labels in (("b", "a", "c"), ("c", "b", "a")):
            outputs = read(["b"], [[0.4 if c != "c" else 0.2 for c in labels]], labels)
            assert outputs.classes[outputs.predicted[0]] == "a"
            assert confusion(outputs).n_tied == 1


class TestCompanions:
    def test_a_label_without_a_case_stays(self):
        """With support 0, in table and matrix."""
        outputs = answers("aab", "abb", ("a", "b", "never"))
        table = support(outputs)
        assert [(row.name, row.support, row.predicted, row.right) for row in table.rows] == [
            ("a", 2, 1, 1), ("b", 1, 2, 1), ("never", 0, 0, 0),
        ]  # fmt: skip
        assert (table.n_absent, table.n_without_gold, table.n_never_predicted) == (1, 1, 1)
        assert confusion(outputs).counts.tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]

    def test_a_cost_table(self):
        """Two of a taken for b at 5, one of c for a at what is left out; right answers are free."""
        found = costs(answers("aaabc", "bbaba"), {("a", "b"): 5.0}, otherwise=2.0)
        assert found.total.tolist() == [[0, 10, 0], [0, 0, 0], [2, 0, 0]]
        assert statistic(found.per_case).value() == 12 / 5
        with pytest.raises(Misconfigured, match="no class 'd'"):
            costs(answers("a", "a"), {("a", "d"): 1.0})


class TestCompared:
    def test_exchanging_cases_exchanges_their_counts(self):
        """The F1 of two sides that have swapped a case, as of the sides read anew."""
        candidate, parent = answers("aabbcc", "aabcbc"), answers("aabbcc", "abbbca")
        mixed = answers("aabbcc", "abbcbc"), answers("aabbcc", "aabbca")
        sides = [statistic(contribution(parse("f1_macro"), each)) for each in (candidate, parent)]
        mask = np.array([[False, True, False, False, False, False]])
        expected = value("f1_macro", mixed[0]) - value("f1_macro", mixed[1])
        assert Paired(*sides).swapped(mask) == pytest.approx([expected], abs=1e-12)
