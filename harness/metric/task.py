"""Names of the metrics of labels, numbers, choices, entities and answers, scikit-learn's where it has one, each with
what holds of it whatever the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf, log
from typing import Literal, TypeAlias

from harness.metric.parameter import Parameter

Form: TypeAlias = Literal["mean", "finish", "rank"]
Use: TypeAlias = Literal["rule", "bounds", "diagnostic"]

CLIP = 2.0**-52
"""The least probability that a log loss sees: a case costs at most -ln(2**-52), which is 36.04."""


@dataclass(frozen=True, slots=True)
class TaskMetric:
    """What is known of a metric beforehand.

    `tasks`: those whose outputs it reads. `form`: a mean of per-case values, a finish of summed rows, or a rank
    statistic. `lowest` and `highest` bound it. `label`: whether it is of one class, named in square brackets, or may be
    ("optional") and is of all without them. `parts`: the kinds of cases that it may be of alone, named there too.
    `params`: what it may be told in round brackets. `use`: whether any rule may be made of it, bounds alone (there is a
    right value, its `target`, and neither side of it is better), or none, for it is a diagnostic.
    """

    tasks: tuple[str, ...]
    form: Form
    higher_is_better: bool = True
    lowest: float = 0.0
    highest: float = 1.0
    label: bool | Literal["optional"] = False
    parts: tuple[str, ...] = ()
    params: Mapping[str, Parameter] = field(default_factory=dict)
    use: Use = "rule"
    target: float | None = None

    @property
    def span(self) -> float:
        return self.highest - self.lowest


CLASSES = ("classification",)
SETS = ("multilabel",)
LABELS = CLASSES + SETS
VALUES = ("regression",)
PAIRS = ("similarity",)
CHOICES = ("multiple-choice",)
ENTITIES = ("entity",)
ANSWERS = ("answer",)
QUESTIONS = ("answerable", "unanswerable")
RANKINGS = ("retrieval", "reranking")
SAID = LABELS + PAIRS + RANKINGS
"""Tasks of which something is said to hold with some probability: a label, that a pair is the same, that the corpus
answers a question. Of the last two a release says so where its scores are probabilities, or it has a calibrator."""
CHANCES = SAID + CHOICES
"""Tasks of which every output is a probability, or becomes one."""

BINS = Parameter(15, "count")
"""Bins of forecasts: 15, as in Guo et al., On calibration of modern neural networks, 2017."""
BY = Parameter("width", "word", words=("width", "mass"))
GROUND = Parameter("confidence", "word", words=("confidence", "margin", "entropy"))
COVERAGE = Parameter(0.8, "share", shown=True, bare=True)
BINNED = {"bins": BINS, "by": BY}

TASK_METRICS: Mapping[str, TaskMetric] = {
    "accuracy": TaskMetric(CLASSES, "mean"),
    "balanced_accuracy": TaskMetric(CLASSES, "finish"),
    **{
        f"{base}_{average}": TaskMetric(LABELS, "finish")
        for base in ("f1", "precision", "recall")
        for average in ("macro", "micro", "weighted")
    },
    **{f"{base}_samples": TaskMetric(SETS, "mean") for base in ("f1", "precision", "recall")},
    **{base: TaskMetric(LABELS, "finish", label=True) for base in ("f1", "precision", "recall")},
    "matthews_corrcoef": TaskMetric(CLASSES, "finish", lowest=-1.0),
    "log_loss": TaskMetric(SAID, "mean", higher_is_better=False, highest=-log(CLIP)),
    "brier_binary": TaskMetric(SAID, "mean", higher_is_better=False),
    "brier_sum": TaskMetric(CLASSES, "mean", higher_is_better=False, highest=2.0),
    "roc_auc_ovr": TaskMetric(LABELS, "rank", label="optional"),
    "average_precision": TaskMetric(LABELS, "rank", label=True),
    "average_precision_macro": TaskMetric(LABELS, "rank"),
    "label_ranking_average_precision": TaskMetric(SETS, "mean"),
    "hamming_loss": TaskMetric(SETS, "mean", higher_is_better=False),
    "subset_accuracy": TaskMetric(SETS, "mean"),
    "mae": TaskMetric(VALUES, "mean", higher_is_better=False, highest=inf),
    "mse": TaskMetric(VALUES, "mean", higher_is_better=False, highest=inf),
    "rmse": TaskMetric(VALUES, "finish", higher_is_better=False, highest=inf),
    "r2": TaskMetric(VALUES, "finish", lowest=-inf),
    "pearson": TaskMetric(VALUES + PAIRS, "rank", lowest=-1.0),
    "spearman": TaskMetric(VALUES + PAIRS, "rank", lowest=-1.0),
    "kendall": TaskMetric(VALUES + PAIRS, "rank", lowest=-1.0),
    "pair_accuracy": TaskMetric(PAIRS, "mean"),
    "pair_f1": TaskMetric(PAIRS, "finish"),
    "pair_precision": TaskMetric(PAIRS, "finish"),
    "pair_recall": TaskMetric(PAIRS, "finish"),
    "pair_roc_auc": TaskMetric(PAIRS, "rank"),
    "pair_average_precision": TaskMetric(PAIRS, "rank"),
    "choice_accuracy": TaskMetric(CHOICES, "mean"),
    "choice_log_loss": TaskMetric(CHOICES, "mean", higher_is_better=False, highest=-log(CLIP)),
    **{f"entity_{base}": TaskMetric(ENTITIES, "finish", label="optional") for base in ("f1", "precision", "recall")},
    **{
        f"entity_{base}_{average}": TaskMetric(ENTITIES, "finish")
        for base in ("f1", "precision", "recall")
        for average in ("macro", "weighted")
    },
    **{f"entity_{how}_f1": TaskMetric(ENTITIES, "finish") for how in ("partial", "type", "boundary")},
    "sequence_accuracy": TaskMetric(ENTITIES, "mean"),
    "token_accuracy": TaskMetric(ENTITIES, "finish"),
    "illegal_sequences": TaskMetric(ENTITIES, "mean", higher_is_better=False, highest=inf),
    **{
        base: TaskMetric(ANSWERS, "mean", parts=QUESTIONS)
        for base in ("exact_match", "answer_f1", "best_exact_match", "best_answer_f1")
    },
    "ece_top_label": TaskMetric(CLASSES + CHOICES, "finish", higher_is_better=False, params=BINNED, use="diagnostic"),
    "ece_positive": TaskMetric(
        SAID, "finish", higher_is_better=False, label="optional", params=BINNED, use="diagnostic"
    ),
    "ece_classwise": TaskMetric(LABELS, "finish", higher_is_better=False, params=BINNED, use="diagnostic"),
    "mce": TaskMetric(CHANCES, "finish", higher_is_better=False, label="optional", params=BINNED, use="diagnostic"),
    **{
        f"brier_{part}": TaskMetric(
            SAID,
            "finish",
            higher_is_better=part == "resolution",
            highest=2.0,
            label="optional",
            params={"bins": BINS},
            use="diagnostic",
        )
        for part in ("reliability", "resolution", "uncertainty")
    },
    **{
        f"calibration_{part}": TaskMetric(
            CHANCES, "rank", lowest=-inf, highest=inf, label="optional", use="bounds", target=target
        )
        for part, target in (("slope", 1.0), ("intercept", 0.0))
    },
    **{
        f"calibration_{part}_error": TaskMetric(CHANCES, "rank", higher_is_better=False, highest=inf, label="optional")
        for part in ("slope", "intercept")
    },
    "coverage": TaskMetric(CHANCES, "mean"),
    "answered_accuracy": TaskMetric(CHANCES, "finish"),
    "aurc": TaskMetric(CHANCES, "rank", higher_is_better=False, params={"ground": GROUND}),
    "risk_at_coverage": TaskMetric(
        CHANCES, "rank", higher_is_better=False, params={"coverage": COVERAGE, "ground": GROUND}
    ),
}
