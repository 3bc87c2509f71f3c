"""How metrics are written."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Misconfigured
from harness.metric.name import ALIASES, METRICS, MetricName, parse
from harness.metric.task import TASK_METRICS


@st.composite
def names(draw):
    base = draw(st.sampled_from(sorted(METRICS)))
    grammar = METRICS[base]
    given_params = []
    for key, parameter in sorted(grammar.params.items()):
        match parameter.kind:
            case "grade":
                value = draw(st.integers(1, 9))
            case "probability":
                value = draw(st.floats(0, 1, exclude_min=True, exclude_max=True))
            case "word":
                value = draw(st.sampled_from(parameter.words))
        if parameter.shown or value != parameter.default:
            given_params.append((key, value))
    cutoff = draw(st.integers(1, 10**6))
    if grammar.cutoff == "refused" or (grammar.cutoff == "allowed" and draw(st.booleans())):
        cutoff = None
    return MetricName(base, cutoff, tuple(given_params))


class TestSpelling:
    @given(names())
    def test_what_is_printed_reads_back_as_itself(self, name):
        """`parse(str(name)) == name` for every name there is."""
        assert parse(str(name)) == name

    @pytest.mark.parametrize(
        "text",
        [
            "nDCG@10",
            "nDCG(dcg='exp-log2')@10",
            "RR@10",
            "AP(rel=2)@100",
            "R@100",
            "P@5",
            "Success@1",
            "Rprec",
            "Rprec(rel=2)",
            "Bpref",
            "ERR@10",
            "RBP(p=0.8)",
            "RBP(p=0.8,rel=2)@10",
            "Judged@10",
            "recall_ceiling",
            "recall_ceiling(rel=2)",
        ],
    )
    def test_the_canonical_spelling_stays_as_it_is(self, text):
        assert str(parse(text)) == text

    @pytest.mark.parametrize("base", sorted(TASK_METRICS))
    @given(label=st.text(min_size=1))
    def test_a_metric_of_labels_or_numbers_reads_back_as_itself(self, base, label):
        """With any label in its brackets, brackets and blanks included, where it is of one class."""
        inside = ",".join(
            f"{each.default!r}" if each.bare else f"{key}={each.default!r}"
            for key, each in TASK_METRICS[base].params.items() if each.shown
        )  # fmt: skip
        shown = f"{base}({inside})" if inside else base
        text = f"{shown}[{label}]" if TASK_METRICS[base].label else shown
        assert str(parse(text)) == text
        assert (parse(text).base, parse(text).label) == (base, label if TASK_METRICS[base].label else None)
        if TASK_METRICS[base].label is not True:
            assert parse(base).label is None

    @pytest.mark.parametrize(
        "text",
        [
            "accuracy", "balanced_accuracy", "f1_macro", "f1_micro", "f1_weighted", "f1_samples", "f1[REFUND]",
            "precision_macro", "precision[REFUND]", "recall_macro", "recall[REFUND]", "matthews_corrcoef", "log_loss",
            "brier_binary", "brier_sum", "roc_auc_ovr", "average_precision_macro",
            "roc_auc_ovr[REFUND]", "average_precision[REFUND]",
            "label_ranking_average_precision", "hamming_loss", "subset_accuracy", "mae", "mse", "rmse", "r2", "pearson",
            "spearman", "kendall", "choice_accuracy", "exact_match", "exact_match[answerable]",
            "exact_match[unanswerable]", "answer_f1", "answer_f1[answerable]", "answer_f1[unanswerable]",
            "best_exact_match", "best_answer_f1",
            "entity_f1", "entity_precision", "entity_recall", "entity_f1[PER]", "entity_f1_macro", "entity_partial_f1",
            "sequence_accuracy", "token_accuracy", "illegal_sequences",
            "ece_top_label", "ece_positive", "ece_positive[REFUND]", "ece_classwise", "mce", "calibration_slope",
            "calibration_intercept", "brier_reliability", "brier_resolution", "brier_uncertainty", "aurc",
            "risk_at_coverage(0.8)", "ece_top_label(by='mass')", "ece_positive(bins=10)[REFUND]",
            "ece_classwise(bins=10,by='mass')", "aurc(ground='margin')", "risk_at_coverage(0.8,ground='entropy')",
        ],
    )  # fmt: skip
    def test_every_name_of_the_contract_is_one(self, text):
        """docs/design.md, Metric names."""
        assert str(parse(text)) == text

    @pytest.mark.parametrize(
        ("text", "canonical"),
        [
            ("RBP(p=0.8,rel=1)@10", "RBP(p=0.8)@10"),
            ("RBP(rel=2, p=.5)", "RBP(p=0.5,rel=2)"),
            ("RBP@10", "RBP(p=0.8)@10"),
            ("AP(rel=1)", "AP"),
            ('nDCG(dcg="log2")@010', "nDCG@10"),
            ("ece_top_label(bins=15,by='width')", "ece_top_label"),
            ("risk_at_coverage(coverage=0.8)", "risk_at_coverage(0.8)"),
            ("risk_at_coverage", "risk_at_coverage(0.8)"),
            ("risk_at_coverage(1)", "risk_at_coverage(1.0)"),
        ],
    )
    def test_one_meaning_has_one_spelling(self, text, canonical):
        """Parameters stand by key, and one at its default is left out; RBP always says its p."""
        assert str(parse(text)) == canonical
        assert parse(text) == parse(canonical)

    @pytest.mark.parametrize(
        ("alias", "canonical"),
        [
            ("ndcg", "nDCG"),
            ("ndcg_cut_10", "nDCG@10"),
            ("ndcg_cut.10", "nDCG@10"),
            ("map", "AP"),
            ("map_cut_100", "AP@100"),
            ("recip_rank", "RR"),
            ("P_10", "P@10"),
            ("P.10", "P@10"),
            ("recall_100", "R@100"),
            ("success_1", "Success@1"),
            ("bpref", "Bpref"),
            ("ndcg_at_10", "nDCG@10"),
            ("map_at_100", "AP@100"),
            ("mrr_at_10", "RR@10"),
            ("recall_at_100", "R@100"),
            ("precision_at_5", "P@5"),
            ("hit_rate_at_1", "Success@1"),
            ("ndcg@10", "nDCG@10"),
            ("ndcg_burges@10", "nDCG(dcg='exp-log2')@10"),
            ("map@100", "AP@100"),
            ("mrr@10", "RR@10"),
            ("recall@100", "R@100"),
            ("precision@5", "P@5"),
            ("hit_rate@1", "Success@1"),
            ("r-precision", "Rprec"),
            ("rbp.80", "RBP(p=0.8)"),
            ("rbp.95", "RBP(p=0.95)"),
            ("rbp", "RBP(p=0.9)"),
        ],
    )
    def test_other_tools_spellings_are_understood(self, alias, canonical):
        """trec_eval's, MTEB's and ranx's."""
        assert str(parse(alias)) == canonical

    @pytest.mark.parametrize("alias", sorted(ALIASES))
    def test_every_alias_leads_to_a_metric(self, alias):
        cutoff = "" if METRICS[ALIASES[alias].partition("(")[0]].cutoff == "refused" else "@3"
        assert parse(alias + cutoff).base in METRICS


class TestRefusal:
    @pytest.mark.parametrize(
        ("text", "right"),
        [
            ("NDGC@10", "nDCG@10"),
            ("nDCG@0", "nDCG@10"),
            ("nDCG@-5", "nDCG@10"),
            ("nDCG@ten", "nDCG@10"),
            ("ndcg_at_0", "nDCG@10"),
            ("nDCG@", "nDCG@10"),
            ("ap@100", "AP@100"),
            ("ndcg_cut", "nDCG"),
            ("Recal@100", "R@100"),
            ("R", "R@10"),
            ("P(rel=2)", "P(rel=2)@10"),
            ("success", "Success@10"),
            ("Rprec@10", "Rprec"),
            ("Bpref@10", "Bpref"),
            ("r-precision@10", "Rprec"),
            ("RBP(p=1.0)", "RBP(p=0.8)"),
            ("RBP(p=0)@5", "RBP(p=0.8)@5"),
            ("rbp.00", "RBP(p=0.8)"),
            ("AP(rel=0)@10", "AP(rel=1)@10"),
            ("AP(rel=1.5)", "AP(rel=1)"),
            ("AP(rel=True)", "AP(rel=1)"),
            ("AP(rel=)", "AP(rel=1)"),
            ("AP(rel=1,rel=2)", "AP(rel=1)"),
            ("AP(level=2)@10", "AP(rel=1)@10"),
            ("AP()", "AP(rel=1)"),
            ("nDCG(dcg='log3')@10", "nDCG(dcg='log2')@10"),
            ("nDCG(rel=2)@10", "nDCG(dcg='log2')@10"),
            ("ERR(rel=2)@10", "ERR@10"),
        ],
    )
    def test_a_wrong_name_is_refused_with_the_nearest_right_one(self, text, right):
        with pytest.raises(Misconfigured) as refusal:
            parse(text)
        assert refusal.value.mend == f"Write {right}."
        assert repr(text) in refusal.value.subject
        parse(right)

    @pytest.mark.parametrize(
        ("text", "right"),
        [
            ("f1", "f1_macro"),
            ("f1[]", "f1_macro"),
            ("precision[]", "precision_macro"),
            ("accuracy[REFUND]", "accuracy"),
            ("accuracy@5", "accuracy"),
            ("neg_log_loss", "log_loss"),
            ("R2", "r2"),
            ("MAE", "mae"),
            ("macro_f1", "f1_macro"),
            ("f1_marco", "f1_macro"),
            ("roc_auc", "roc_auc_ovr"),
            ("brier", "brier_sum"),
            ("exact_match[]", "exact_match"),
            ("exact_match[REFUND]", "exact_match"),
            ("answer_f1[unanswerble]", "answer_f1[unanswerable]"),
            ("best_f1", "best_answer_f1"),
            ("entity_f1[]", "entity_f1"),
            ("entity_f1_macro[PER]", "entity_f1_macro"),
            ("entity_f1_micro", "entity_f1_macro"),
            ("entity_f1@5", "entity_f1"),
        ],
    )
    def test_so_is_one_of_labels_or_numbers(self, text, right):
        """scikit-learn's scorers with `neg_` are losses here, and the direction is known."""
        with pytest.raises(Misconfigured) as refusal:
            parse(text)
        assert refusal.value.mend == f"Write {right}."

    @pytest.mark.parametrize("text", ["", "zzz", "nDCG@10 ", "nDCG@10@5", "nDCG((dcg='log2'))"])
    def test_what_resembles_nothing_is_refused_all_the_same(self, text):
        with pytest.raises(Misconfigured):
            parse(text)


class TestKnownBeforehand:
    @pytest.mark.parametrize("base", sorted(METRICS))
    def test_only_the_judged_share_has_a_value_without_relevant_documents(self, base):
        assert MetricName(base).needs_relevant == (base != "Judged")
        assert MetricName(base).span == 1

    @pytest.mark.parametrize(
        ("name", "higher", "form", "span"),
        [
            ("nDCG@10", True, "mean", 1),
            ("f1[REFUND]", True, "finish", 1),
            ("matthews_corrcoef", True, "finish", 2),
            ("log_loss", False, "mean", pytest.approx(36.0436533891)),
            ("brier_sum", False, "mean", 2),
            ("hamming_loss", False, "mean", 1),
            ("roc_auc_ovr", True, "rank", 1),
            ("mae", False, "mean", float("inf")),
            ("r2", True, "finish", float("inf")),
            ("spearman", True, "rank", 2),
            ("entity_f1[PER]", True, "finish", 1),
            ("illegal_sequences", False, "mean", float("inf")),
        ],
    )
    def test_direction_form_and_how_far_it_can_fall(self, name, higher, form, span):
        metric = parse(name)
        assert (metric.higher_is_better, metric.form, metric.span) == (higher, form, span)
        assert metric.span == metric.highest - metric.lowest

    @pytest.mark.parametrize(
        ("name", "tasks"),
        [
            ("nDCG@10", ("retrieval", "reranking")),
            ("accuracy", ("classification",)),
            ("f1_macro", ("classification", "multilabel")),
            ("pearson", ("regression", "similarity")),
            ("choice_accuracy", ("multiple-choice",)),
            ("entity_f1", ("entity",)),
        ],
    )
    def test_a_name_knows_the_tasks_whose_outputs_it_reads(self, name, tasks):
        assert parse(name).tasks == tasks

    def test_reading_a_name_loads_no_mathematics(self):
        """The schema of suites imports this module, and NumPy would cost it a tenth of a second."""
        code = "import sys, harness.metric.name; sys.exit('numpy' in sys.modules)"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
