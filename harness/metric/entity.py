"""Metrics of entities, from gold and predicted spans: finishes of counts that are summed over all cases.

Means over cases are illegal_sequences and sequence_accuracy, the share of cases with all gold spans and no others.
"""

from collections.abc import Callable

import numpy as np

from harness.errors import Misconfigured
from harness.metric.form import UNDEFINED, Floats, Policy, divided, finish_of, mean_of, scored
from harness.metric.label import average, class_scores, one_class, refuse_task
from harness.metric.name import MetricName
from harness.metric.span import aligned, overlapping, overlapping_alike, same_boundary
from harness.metric.tagged import Spans, Tagged
from harness.output.contribution import CaseRows, Contribution


def contribution(name: MetricName, outputs: Tagged, policy: Policy | None = None) -> Contribution:
    """What each case brings to a metric of entities; for the default policies see `Policy` and `UNDEFINED`.

    Where no case has a gold or a predicted span, F1, precision and recall are undefined.
    Raises Misconfigured for a metric of another task, for a type that nobody has, and for token_accuracy of spans.
    """
    refuse_task(name, "entity")

    def finished(rows: Floats, finish: Callable[[Floats], Floats]) -> CaseRows:
        return finish_of(str(name), outputs.case_ids, rows, finish, outputs.status)

    if name.base == "illegal_sequences":
        counts = np.array([len(each) for each in outputs.illegal], dtype=np.float64)
        return mean_of(str(name), outputs.case_ids, counts, outputs.status)
    if name.base == "sequence_accuracy":
        return mean_of(str(name), outputs.case_ids, outputs.right.astype(np.float64), outputs.status)
    if name.base == "token_accuracy":
        return finished(_token_rows(outputs), lambda sums: divided(sums[..., 0], sums[..., 1]))
    base, settled = name.base.removeprefix("entity_"), policy or Policy()
    if base in CREDITS:
        return finished(credit_rows(outputs, CREDITS[base]), lambda sums: _score("f1", sums, settled))
    metric, _, how = base.partition("_")
    if how:
        return finished(type_rows(outputs), lambda sums: average(metric, how, sums, settled))
    if name.label is None:
        return finished(credit_rows(outputs, exact), lambda sums: _score(metric, sums, settled))
    single, k = policy or UNDEFINED, len(outputs.types)
    c = one_class(outputs.types, name.label, f"metric '{name}'")
    return finished(type_rows(outputs)[:, [c, k + c, 2 * k + c]], lambda sums: _score(metric, sums, single))


def exact(gold: Spans, predicted: Spans) -> float:
    """Spans of right boundaries and right type."""
    return len(set(gold) & set(predicted))


def partial(gold: Spans, predicted: Spans) -> float:
    """Spans of right boundaries, and half of the further pairs that overlap; types don't matter.

    Source: nervaluate's README, schema `partial` (COR + 0.5 × PAR), after SemEval-2013 task 9.1. The numbers are
    nervaluate's where spans of one side don't overlap one another.
    """
    found = aligned(gold, predicted, same_boundary, overlapping)
    return len(found.right) + len(found.stages[0]) + 0.5 * len(found.stages[1])


def of_type(gold: Spans, predicted: Spans) -> float:
    """Pairs of spans that overlap and are of one type.

    Source: nervaluate's README, schema `type`, after SemEval-2013 task 9.1. Here there are as many pairs as there can
    be; nervaluate takes predictions one by one, and finds fewer where one overlaps several gold spans.
    """
    found = aligned(gold, predicted, overlapping_alike)
    return len(found.right) + len(found.stages[0])


def of_boundary(gold: Spans, predicted: Spans) -> float:
    """Spans of right boundaries, whatever their type; nervaluate's schema `exact`."""
    found = aligned(gold, predicted, same_boundary)
    return len(found.right) + len(found.stages[0])


CREDITS: dict[str, Callable[[Spans, Spans], float]] = {
    "partial_f1": partial,
    "type_f1": of_type,
    "boundary_f1": of_boundary,
}


def credit_rows(outputs: Tagged, credit: Callable[[Spans, Spans], float]) -> Floats:
    """[n, 3], what a case adds to what is right, to predicted and to gold spans; 0 for cases that aren't scored."""
    rows = [
        (credit(gold, found), len(found), len(gold)) if ok else (0, 0, 0)
        for gold, found, ok in zip(outputs.gold, outputs.predicted, scored(outputs.status), strict=True)
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 3)


def type_rows(outputs: Tagged) -> Floats:
    """[n, 3k], what a case adds to right, predicted and gold spans of each type; 0 for cases that aren't scored."""
    place = {name: i for i, name in enumerate(outputs.types)}
    rows = np.zeros((len(outputs.case_ids), 3, len(place)))
    for i in np.flatnonzero(scored(outputs.status)):
        gold, found = outputs.gold[i], outputs.predicted[i]
        for part, spans in enumerate((set(gold) & set(found), found, gold)):
            for span in spans:
                rows[i, part, place[span.type]] += 1
    return rows.reshape(len(rows), 3 * len(place))


def _token_rows(outputs: Tagged) -> Floats:
    if outputs.right_tokens is None:
        raise Misconfigured(
            "metric 'token_accuracy'",
            found="entities that were given as spans",
            expected="one tag per token",
            mend="Name entity_f1, or give tags.",
        )
    return np.stack([outputs.right_tokens, outputs.lengths], axis=1).astype(np.float64)


def _score(metric: str, sums: Floats, policy: Policy) -> Floats:
    return class_scores(metric, sums[..., 0], sums[..., 1], sums[..., 2], policy)
