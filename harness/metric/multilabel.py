"""Metrics of any number of labels per case, from logits or probabilities by label and a threshold for each."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.errors import Misconfigured
from harness.metric import calibration
from harness.metric.calibration import NEVER, Abstain, Forecasts, Sample
from harness.metric.form import (
    WORTH,
    Bools,
    Floats,
    Ints,
    Objects,
    Policy,
    Word,
    case_status,
    divided,
    mean_of,
    ordered_mean,
    scored,
)
from harness.metric.label import (
    ONE_AGAINST_REST,
    ClassTable,
    Membership,
    against_rest,
    class_scores,
    class_table,
    codes,
    from_counts,
    match_labels,
    one_class,
    refuse_task,
)
from harness.metric.name import MetricName
from harness.metric.probability import TOLERANCE, ScoreType, separate, surprise
from harness.output.contribution import Contribution


@dataclass(frozen=True, slots=True, eq=False)
class Multilabelled:
    """Gold and predicted sets of labels, columns in the order of `classes`: the data's labels, then the model's own.

    Shapes: case_ids and status [n]; gold and predicted [n, k]; probabilities [n, k], NaN unless scored; thresholds
    [k], which a label's probability must reach.
    """

    case_ids: Objects
    classes: tuple[str, ...]
    gold: Bools
    predicted: Bools
    probabilities: Floats
    thresholds: Floats
    status: Objects
    abstain: Abstain = NEVER


def multilabelled(
    case_ids: Objects,
    gold: Sequence[Collection[str] | None],
    labels: Sequence[str],
    scores: Floats,
    model_labels: Sequence[str],
    output_status: Objects,
    *,
    kind: ScoreType,
    thresholds: float | Mapping[str, float] = 0.5,
    label_map: Mapping[str, str] | None = None,
    tolerance: float = TOLERANCE,
) -> Multilabelled:
    """Reads scores [n, m], columns as in `model_labels`; thresholds are of probabilities, one or one for each class.

    No gold (None) is not-applicable; no gold label (an empty set) is a case like any other.
    Raises Misconfigured where labels don't match, and where a threshold is lacking, unknown or not within 0 and 1.
    """
    matched = match_labels(labels, model_labels, label_map)
    chances = separate(scores[:, matched.columns], kind, tolerance)
    applicable = np.array([each is not None for each in gold], dtype=bool)
    status = case_status(output_status, applicable=applicable, usable=chances.usable)
    counted = scored(status)[:, None]
    limits = _thresholds(matched.classes, thresholds)
    return Multilabelled(
        case_ids=case_ids,
        classes=matched.classes,
        gold=_sets(gold, matched.classes, len(labels)),
        predicted=counted & (np.where(counted, chances.probabilities, -1.0) >= limits),
        probabilities=np.where(counted, chances.probabilities, np.nan),
        thresholds=limits,
        status=status,
    )


def contribution(name: MetricName, outputs: Multilabelled, policy: Policy | None = None) -> Contribution:
    """What each case brings to a metric of sets of labels; for the default policies see `Policy` and `UNDEFINED`.

    Raises Misconfigured for a metric of another task and for a class that isn't there.
    """
    refuse_task(name, "multilabel")
    if name.base in calibration.MEASURED:
        column = None if name.label is None else one_class(outputs.classes, name.label, f"metric '{name}'")
        return calibration.contribution(name, forecasts(outputs), column)
    if name.form == "mean":
        values = _per_case(name.base, outputs, policy or Policy())
        return mean_of(str(name), outputs.case_ids, values, outputs.status)
    gold, predicted = outputs.gold.astype(np.float64), outputs.predicted.astype(np.float64)
    if name.base in ONE_AGAINST_REST:
        return against_rest(name, outputs.case_ids, outputs.classes, outputs.probabilities, gold, outputs.status)
    members = Membership(outputs.classes, predicted, gold)
    return from_counts(name, outputs.case_ids, members, outputs.status, policy)


def forecasts(outputs: Multilabelled) -> Forecasts:
    """What is said of every label. An answer is wrong where the set is another, and as sure as its least sure label."""
    chances = np.where(scored(outputs.status)[:, None], outputs.probabilities, 0.0)
    every = Sample(chances, outputs.gold.astype(np.float64))
    return Forecasts(
        case_ids=outputs.case_ids,
        likeliest=every,
        every=every,
        positive=None,
        exclusive=False,
        sure=calibration.set_sureness(chances),
        loss=(outputs.gold != outputs.predicted).any(axis=1).astype(np.float64),
        status=outputs.status,
        abstain=outputs.abstain,
    )


def _per_case(base: str, outputs: Multilabelled, policy: Policy) -> Floats:
    """A metric [n] of each case's two sets; NaN where the policy leaves it out."""
    if base == "subset_accuracy":
        return np.asarray((outputs.gold == outputs.predicted).all(axis=1), dtype=np.float64)
    if base == "hamming_loss":
        return np.asarray((outputs.gold != outputs.predicted).mean(axis=1))
    if base == "log_loss":
        held = np.where(outputs.gold, outputs.probabilities, 1 - outputs.probabilities)
        return ordered_mean(surprise(held))
    if base == "brier_binary":
        return ordered_mean((outputs.probabilities - outputs.gold) ** 2)
    if base == "label_ranking_average_precision":
        return _label_ranking(outputs, policy)
    right = (outputs.gold & outputs.predicted).sum(axis=1).astype(np.float64)
    predicted, gold = (each.sum(axis=1).astype(np.float64) for each in (outputs.predicted, outputs.gold))
    within = Policy(absent=policy.empty, division=policy.division)
    return class_scores(base.removesuffix("_samples"), right, predicted, gold, within)


def _label_ranking(outputs: Multilabelled, policy: Policy) -> Floats:
    """The mean, over a case's gold labels, of the share of gold ones among those that score as high or higher.

    Without gold labels it is what `empty` says. Source: Tsoumakas, Katakis and Vlahavas, Mining multi-label data, 2010.
    """
    result = np.empty(len(outputs.gold))
    for i, (gold, scores) in enumerate(zip(outputs.gold, outputs.probabilities, strict=True)):
        own, every = np.sort(scores[gold]), np.sort(scores)
        among_own = len(own) - np.searchsorted(own, own)
        among_all = len(every) - np.searchsorted(every, own)
        result[i] = np.sum(among_own / among_all) / len(own) if len(own) else WORTH[policy.empty]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class LabelTable:
    """Labels of the scored cases. Shapes: prevalence and predicted_rate [k], shares of cases; thresholds [k].

    `classes` has support and scores of every label, also of those that no case has.
    """

    classes: ClassTable
    prevalence: Floats
    predicted_rate: Floats
    thresholds: Floats


def label_table(outputs: Multilabelled, policy: Policy | None = None) -> LabelTable:
    """Support, prevalence and threshold of every label."""
    counted = scored(outputs.status)
    gold, predicted = outputs.gold[counted], outputs.predicted[counted]
    right = (gold & predicted).sum(axis=0)
    given, held, n = predicted.sum(axis=0), gold.sum(axis=0), np.array(counted.sum())
    table = class_table(outputs.classes, right, given, held, policy or Policy())
    return LabelTable(table, divided(held, n), divided(given, n), outputs.thresholds)


@dataclass(frozen=True, slots=True, eq=False)
class LabelsPerCase:
    """How many labels the scored cases have: gold and predicted [k+1], cases by number of labels from 0 to k.

    `empty`: what a case without either is worth; `n_both_empty` are such.
    """

    gold: Ints
    predicted: Ints
    mean_gold: float
    mean_predicted: float
    n_both_empty: int
    empty: Word


def labels_per_case(outputs: Multilabelled, policy: Policy | None = None) -> LabelsPerCase:
    """How many labels cases have and are given."""
    counted = scored(outputs.status)
    gold, predicted = outputs.gold[counted].sum(axis=1), outputs.predicted[counted].sum(axis=1)
    k, n = len(outputs.classes), np.array(len(gold))
    return LabelsPerCase(
        gold=np.bincount(gold, minlength=k + 1),
        predicted=np.bincount(predicted, minlength=k + 1),
        mean_gold=float(divided(gold.sum(), n)),
        mean_predicted=float(divided(predicted.sum(), n)),
        n_both_empty=int(((gold == 0) & (predicted == 0)).sum()),
        empty=(policy or Policy()).empty,
    )


def _sets(gold: Sequence[Collection[str] | None], classes: Sequence[str], known: int) -> Bools:
    flat = [(i, name) for i, each in enumerate(gold) for name in (each or ())]
    held = np.zeros((len(gold), len(classes)), dtype=bool)
    held[[i for i, _ in flat], codes([name for _, name in flat], classes, known, "gold labels")] = True
    return held


def _thresholds(classes: Sequence[str], given: float | Mapping[str, float]) -> Floats:
    by_name = given if isinstance(given, Mapping) else dict.fromkeys(classes, given)
    values = np.array([by_name.get(name, np.nan) for name in classes], dtype=np.float64)
    if set(by_name) - set(classes) or not ((values >= 0) & (values <= 1)).all():
        raise Misconfigured(
            "thresholds",
            found=", ".join(f"{name!r}: {value}" for name, value in by_name.items()),
            expected=f"a probability for each of {', '.join(repr(name) for name in classes)}",
            mend="Give every label one threshold from 0 to 1.",
        )
    return values
