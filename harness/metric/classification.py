"""Metrics of one label per case, from logits or probabilities by label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.errors import Misconfigured
from harness.metric import calibration
from harness.metric.calibration import NEVER, Abstain, Forecasts, Sample
from harness.metric.form import (
    Bools,
    Floats,
    Ints,
    Objects,
    Policy,
    case_status,
    divided,
    finish_of,
    mean_of,
    ordered_mean,
    ordered_sum,
    scored,
)
from harness.metric.label import (
    ONE_AGAINST_REST,
    ClassTable,
    Membership,
    against_rest,
    class_table,
    codes,
    from_counts,
    match_labels,
    one_class,
    refuse_task,
    top_class,
)
from harness.metric.name import MetricName
from harness.metric.probability import TOLERANCE, ScoreType, exclusive, surprise
from harness.metric.task import CLIP
from harness.output.contribution import Contribution
from harness.output.value import CaseValues


@dataclass(frozen=True, slots=True, eq=False)
class Classified:
    """Gold and predicted classes, columns in the order of `classes`: the data's labels, then the model's own.

    Shapes: case_ids and status [n]; gold [n], -1 where the data have none; predicted [n], -1 unless scored;
    probabilities [n, k], NaN unless scored; tied [n], where several classes share the best score.
    """

    case_ids: Objects
    classes: tuple[str, ...]
    gold: Ints
    predicted: Ints
    probabilities: Floats
    tied: Bools
    status: Objects
    abstain: Abstain = NEVER


def classified(
    case_ids: Objects,
    gold: Sequence[str | None],
    labels: Sequence[str],
    scores: Floats,
    model_labels: Sequence[str],
    output_status: Objects,
    *,
    kind: ScoreType,
    label_map: Mapping[str, str] | None = None,
    tolerance: float = TOLERANCE,
) -> Classified:
    """Reads scores [n, m], columns as in `model_labels`; rows of cases without an output are not looked at.

    The prediction is the class of the best score, among equals the first by name. A case without gold is
    not-applicable; one whose scores aren't finite, or whose probabilities don't sum to 1, has failed.
    Raises Misconfigured where labels don't match.
    """
    matched = match_labels(labels, model_labels, label_map)
    places = codes(gold, matched.classes, len(labels), "gold labels")
    own = scores[:, matched.columns]
    chances = exclusive(own, kind, tolerance)
    status = case_status(output_status, applicable=places >= 0, usable=chances.usable)
    counted = scored(status)
    top = top_class(np.where(counted[:, None], own, 0.0), matched.classes)
    return Classified(
        case_ids=case_ids,
        classes=matched.classes,
        gold=places,
        predicted=np.where(counted, top.index, -1),
        probabilities=np.where(counted[:, None], chances.probabilities, np.nan),
        tied=counted & top.tied,
        status=status,
    )


def contribution(name: MetricName, outputs: Classified, policy: Policy | None = None) -> Contribution:
    """What each case brings to a metric of classification; for the default policies see `Policy` and `UNDEFINED`.

    Raises Misconfigured for a metric of another task, for a class that isn't there, and for brier_binary of other
    than two classes.
    """
    refuse_task(name, "classification")
    if name.base in calibration.MEASURED:
        column = None if name.label is None else one_class(outputs.classes, name.label, f"metric '{name}'")
        return calibration.contribution(name, forecasts(outputs), column)
    if name.base in PER_CASE:
        return mean_of(str(name), outputs.case_ids, PER_CASE[name.base](outputs), outputs.status)
    members = Membership(
        outputs.classes, _one_hot(outputs.predicted, outputs.classes), _one_hot(outputs.gold, outputs.classes)
    )
    if name.base in ONE_AGAINST_REST:
        chances = outputs.probabilities
        return against_rest(name, outputs.case_ids, outputs.classes, chances, members.gold, outputs.status)
    if name.base in FINISHES:
        return finish_of(str(name), outputs.case_ids, members.rows, FINISHES[name.base], outputs.status)
    return from_counts(name, outputs.case_ids, members, outputs.status, policy)


def forecasts(outputs: Classified) -> Forecasts:
    """What is said of the given class and of every one. Of two classes, the positive one is the last by name."""
    chances = np.where(scored(outputs.status)[:, None], outputs.probabilities, 0.0)
    right = _accuracy(outputs)
    given = np.take_along_axis(chances, np.maximum(outputs.predicted, 0)[:, None], axis=1)
    return Forecasts(
        case_ids=outputs.case_ids,
        likeliest=Sample(given, right[:, None]),
        every=Sample(chances, _one_hot(outputs.gold, outputs.classes)),
        positive=outputs.classes.index(max(outputs.classes)) if len(outputs.classes) == 2 else None,
        exclusive=True,
        sure=calibration.sureness(chances),
        loss=1 - right,
        status=outputs.status,
        abstain=outputs.abstain,
    )


def _accuracy(outputs: Classified) -> Floats:
    return np.asarray(outputs.predicted == outputs.gold, dtype=np.float64)


def _log_loss(outputs: Classified) -> Floats:
    """-ln of the gold class's probability, at most -ln 2**-52."""
    return surprise(_of_gold(outputs))


def _brier_sum(outputs: Classified) -> Floats:
    """The squared distance of the probabilities from 1 for the gold class and 0 for the others: 0 to 2.

    Source: Brier, Verification of forecasts expressed in terms of probability, 1950.
    """
    return ordered_sum((outputs.probabilities - _one_hot(outputs.gold, outputs.classes)) ** 2)


def _brier_binary(outputs: Classified) -> Floats:
    """The squared distance of one of two classes' probability from what holds: half the class sum."""
    if len(outputs.classes) != 2:
        raise Misconfigured(
            "metric 'brier_binary'",
            found=f"{len(outputs.classes)} classes",
            expected="two",
            mend="Write brier_sum, which is over all classes (and twice as large for two).",
        )
    return _brier_sum(outputs) / 2


PER_CASE: dict[str, Callable[[Classified], Floats]] = {
    "accuracy": _accuracy,
    "log_loss": _log_loss,
    "brier_sum": _brier_sum,
    "brier_binary": _brier_binary,
}


def _balanced(sums: Floats) -> Floats:
    """The mean recall of the classes that have gold."""
    right, _, gold = np.split(sums, 3, axis=-1)
    return ordered_mean(divided(right, gold))


def _matthews(sums: Floats) -> Floats:
    """The correlation of predicted and gold classes; undefined where either is of one class only.

    Source: Gorodkin, Comparing two K-category assignments by a K-category correlation coefficient, 2004.
    """
    right, predicted, gold = np.split(sums, 3, axis=-1)
    n = ordered_sum(gold)
    together = n * ordered_sum(right) - ordered_sum(predicted * gold)
    alone = (n**2 - ordered_sum(predicted**2)) * (n**2 - ordered_sum(gold**2))
    return divided(together, np.sqrt(np.where(alone > 1e-12 * n**4, alone, 0.0)))


FINISHES: dict[str, Callable[[Floats], Floats]] = {"balanced_accuracy": _balanced, "matthews_corrcoef": _matthews}


@dataclass(frozen=True, slots=True, eq=False)
class Confusion:
    """Scored cases by gold class (rows) and predicted class (columns): counts [k, k]. `n_tied`: by a tie."""

    classes: tuple[str, ...]
    counts: Ints
    n_scored: int
    n_left_out: int
    n_tied: int


def confusion(outputs: Classified) -> Confusion:
    """The confusion matrix; classes that nobody has keep their row and column."""
    counted = scored(outputs.status)
    k = len(outputs.classes)
    cells = np.bincount(outputs.gold[counted] * k + outputs.predicted[counted], minlength=k * k)
    n = int(counted.sum())
    return Confusion(outputs.classes, cells.reshape(k, k), n, len(counted) - n, int(outputs.tied.sum()))


def support(outputs: Classified, policy: Policy | None = None) -> ClassTable:
    """Every class with its support, also 0."""
    counts = confusion(outputs).counts
    return class_table(outputs.classes, np.diagonal(counts), counts.sum(axis=0), counts.sum(axis=1), policy or Policy())


@dataclass(frozen=True, slots=True, eq=False)
class Costs:
    """What the confusions cost. Shapes: each, counts and total [k, k] as in Confusion; `per_case` the mean's values."""

    classes: tuple[str, ...]
    each: Floats
    counts: Ints
    total: Floats
    per_case: CaseValues


def costs(outputs: Classified, table: Mapping[tuple[str, str], float], *, otherwise: float = 1.0) -> Costs:
    """The cost of every (gold, predicted) pair; one that the table leaves out costs `otherwise`, a right answer 0.

    Raises Misconfigured for a class that isn't there and a cost that is not finite.
    """
    each = np.full((len(outputs.classes), len(outputs.classes)), otherwise)
    np.fill_diagonal(each, 0.0)
    for (gold, predicted), cost in table.items():
        row, column = (one_class(outputs.classes, name, "cost") for name in (gold, predicted))
        each[row, column] = cost
    if not np.isfinite(each).all():
        raise Misconfigured(
            "cost table", found="a cost that is not finite", expected="numbers", mend="Write a number for each pair."
        )
    counts = confusion(outputs).counts
    values = each[outputs.gold, outputs.predicted]
    per_case = mean_of("cost", outputs.case_ids, values, outputs.status)
    return Costs(outputs.classes, each, counts, each * counts, per_case)


@dataclass(frozen=True, slots=True)
class ClippedLosses:
    """How many scored cases gave what holds less than `least`, and so cost exactly its surprise."""

    least: float
    n_clipped: int


def clipped(outputs: Classified) -> ClippedLosses:
    """What the bound of log_loss hides."""
    return ClippedLosses(CLIP, int((_of_gold(outputs) < CLIP).sum()))


def _of_gold(outputs: Classified) -> Floats:
    return np.take_along_axis(outputs.probabilities, np.maximum(outputs.gold, 0)[:, None], axis=1)[:, 0]


def _one_hot(index: Ints, classes: tuple[str, ...]) -> Floats:
    """[n, k], 1 at a case's class; no 1 where it has none."""
    return np.asarray(index[:, None] == np.arange(len(classes)), dtype=np.float64)
