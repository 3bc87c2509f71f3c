"""Metrics of answers to questions, of which some may have none.

A question is answerable where it has gold answers; where it has none, only an abstention is right. Of several golds
the best counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.errors import Misconfigured
from harness.metric.answer_text import TextRule, Tokens, compared, normalised, overlap
from harness.metric.form import (
    Bools,
    Floats,
    Ints,
    Objects,
    between,
    case_status,
    mean_of,
    ordered_mean,
    ordered_sum,
    scored,
)
from harness.metric.label import refuse_task
from harness.metric.name import MetricName
from harness.output.value import CaseValues, Status

Aim: TypeAlias = Literal["exact_match", "answer_f1"]

EQUAL = 1e-9
"""Means of calibration cases that lie no further apart are equally good."""


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """Answers beside their golds. Shapes: all [n]; exact and f1 are NaN unless scored.

    `difference`: null score minus score, NaN where either is not given; the higher, the rather there is no answer.
    `golds`: how many gold answers a question has, `empty_golds` of which nothing is left when articles and
    punctuation do not count.
    """

    case_ids: Objects
    answerable: Bools
    abstained: Bools
    exact: Floats
    f1: Floats
    difference: Floats
    golds: Ints
    empty_golds: Ints
    rule: TextRule
    status: Objects


def answered(
    case_ids: Objects,
    gold: Sequence[Sequence[str] | None],
    answers: Sequence[str | None],
    output_status: Objects,
    *,
    score: Floats | None = None,
    null_score: Floats | None = None,
    rule: TextRule | None = None,
) -> Answered:
    """Reads one answer a case: None, or nothing but whitespace, abstains. Gold of None is not-applicable, of () has
    no answer.

    `score` and `null_score` [n] are what the answer and no answer got, NaN where not given; an infinite one, or
    difference, has failed. Raises Misconfigured for a gold answer without text.
    """
    rule = rule or TextRule()
    held = [
        _hold(str(case_id), golds or (), answer, rule)
        for case_id, golds, answer in zip(case_ids, gold, answers, strict=True)
    ]
    none = np.full(len(held), np.nan)
    score, null_score = (none if each is None else each.astype(np.float64) for each in (score, null_score))
    with np.errstate(over="ignore", invalid="ignore"):
        difference = null_score - score
    usable = ~np.isinf(score) & ~np.isinf(null_score) & ~np.isinf(difference)
    applicable = np.array([golds is not None for golds in gold], dtype=bool)
    status = case_status(output_status, applicable=applicable, usable=usable)
    counted = scored(status)
    return Answered(
        case_ids=case_ids,
        answerable=np.array([bool(golds) for golds in gold], dtype=bool),
        abstained=np.array([each.abstained for each in held], dtype=bool) & counted,
        exact=np.where(counted, np.array([each.exact for each in held], dtype=np.float64), np.nan),
        f1=np.where(counted, np.array([each.f1 for each in held], dtype=np.float64), np.nan),
        difference=np.where(counted, difference, np.nan),
        golds=np.array([len(golds or ()) for golds in gold], dtype=np.int64),
        empty_golds=np.array([each.empty_golds for each in held], dtype=np.int64),
        rule=rule,
        status=status,
    )


@dataclass(frozen=True, slots=True)
class _Held:
    exact: float
    f1: float
    abstained: bool
    empty_golds: int


def _hold(case_id: str, golds: Sequence[str], answer: str | None, rule: TextRule) -> _Held:
    if any(not gold.strip() for gold in golds):
        raise Misconfigured(
            f"case {case_id!r}",
            found="a gold answer without text",
            expected="text, or no gold answer at all where the question has none",
            mend="Take it out of the case's answers.",
        )
    predicted = compared(answer or "", rule)
    # Under the official rule golds without tokens go, and where none is left no answer is the gold.
    wanted: list[Tokens] = [tokens for gold in golds if (tokens := compared(gold, rule))] or [()]
    return _Held(
        exact=float(predicted in wanted),
        f1=max(overlap(predicted, tokens) for tokens in wanted),
        abstained=not predicted,
        empty_golds=sum(not normalised(gold, rule) for gold in golds),
    )


@dataclass(frozen=True, slots=True)
class NullThreshold:
    """An answer whose difference lies above `value` becomes an abstention. It was fitted on `n` calibration cases,
    of which it reached `reached` of its aim."""

    value: float
    aim: Aim
    reached: float
    n: int


def fit_null_threshold(outputs: Answered, roles: Objects, aim: Aim = "answer_f1") -> NullThreshold:
    """The threshold with the best mean on the scored cases of the calibration role; no other is looked at.

    It lies halfway between the differences of two answers that differ, so never inside a tied group, or it keeps all
    answers or none. Of equally good ones it is the lowest: the fewest questions are answered. What the model
    abstained from stays so and counts; an answer that lacks a score is left out.
    Raises Misconfigured without a calibration case that is answered with both scores.
    """
    fitted = scored(outputs.status) & np.asarray(roles == "calibration", dtype=bool) & ~_undecided(outputs)
    open_ = fitted & ~outputs.abstained
    if not open_.any():
        raise Misconfigured(
            "null threshold",
            found="no scored case of the calibration role that is answered with score and null_score",
            expected="cases to fit it on, apart from those that are judged",
            mend="Give some cases the role calibration and record both scores, or declare the threshold.",
        )
    worth = outputs.exact if aim == "exact_match" else outputs.f1
    silent = (~outputs.answerable).astype(np.float64)
    differences, code = np.unique(outputs.difference[open_], return_inverse=True)
    gain = (worth - silent)[open_]
    in_order = np.lexsort((gain, code))  # sums do not hang on the order of cases
    by_difference = np.bincount(code[in_order], gain[in_order], minlength=len(differences))
    # By position: so many of the lowest differences keep their answers.
    kept = np.append(0.0, np.cumsum(by_difference))
    n = int(fitted.sum())
    reached = (ordered_sum(np.where(outputs.abstained, worth, silent)[fitted]) + kept) / n
    best = int(np.flatnonzero(reached >= reached.max() - EQUAL)[0])
    value = 0.0 - between(-differences[::-1], len(differences) - best)
    return NullThreshold(value, aim, float(reached[best]), n)


def contribution(name: MetricName, outputs: Answered, null_threshold: float | None = None) -> CaseValues:
    """What each case brings to a metric of answers; best_exact_match and best_answer_f1 need a threshold.

    In these an answer that lacks a score is undefined. In `[answerable]` and `[unanswerable]` the other questions
    are not-applicable. Raises Misconfigured for a metric of another task and for one that lacks its threshold.
    """
    refuse_task(name, "answer")
    values = outputs.exact if name.base.endswith("exact_match") else outputs.f1
    if name.base.startswith("best_"):
        if null_threshold is None or not np.isfinite(null_threshold):
            raise Misconfigured(
                f"metric '{name}'",
                found="no threshold",
                expected="the difference of null score and score above which there is no answer",
                mend="Declare it, or fit it on the calibration role.",
            )
        values = _under(values, outputs, null_threshold)
    part = ~outputs.answerable if name.label == "unanswerable" else outputs.answerable
    outside = ~part if name.label else np.zeros(len(part), dtype=bool)
    status = np.where(outside, Status.NOT_APPLICABLE, outputs.status).astype(object)
    return mean_of(str(name), outputs.case_ids, values, status)


@dataclass(frozen=True, slots=True)
class AnswerPart:
    """The scored questions of one kind: how many are abstained from, and both means. NaN where there are none."""

    n: int
    n_abstained: int
    exact_match: float
    answer_f1: float

    @property
    def abstained(self) -> float:
        return self.n_abstained / self.n if self.n else float("nan")


@dataclass(frozen=True, slots=True)
class AnswerTable:
    """Questions with and without an answer, each answered or abstained from.

    `null_threshold`: the difference above which an answer became an abstention; None where answers stand as given.
    `n_undecided` answers lack a score beside such a threshold and are in neither part. `n_golds` counts the gold
    answers of the scored questions, `n_empty_golds` those of articles and punctuation alone; `rule` says how they
    are compared.
    """

    answerable: AnswerPart
    unanswerable: AnswerPart
    null_threshold: float | None
    n_undecided: int
    n_golds: int
    n_empty_golds: int
    rule: TextRule


def answer_table(outputs: Answered, null_threshold: float | None = None) -> AnswerTable:
    """Both kinds of questions apart, with the answers as given or under a threshold."""
    counted = scored(outputs.status)
    exact, f1, abstained = outputs.exact, outputs.f1, outputs.abstained
    undecided = np.zeros(len(counted), dtype=bool)
    if null_threshold is not None:
        exact, f1 = _under(exact, outputs, null_threshold), _under(f1, outputs, null_threshold)
        undecided = counted & _undecided(outputs)
        abstained = abstained | (outputs.difference > null_threshold)

    def part(chosen: Bools) -> AnswerPart:
        means = (float(ordered_mean(each[chosen])) for each in (exact, f1))
        return AnswerPart(int(chosen.sum()), int(abstained[chosen].sum()), *means)

    shown = counted & ~undecided
    return AnswerTable(
        answerable=part(shown & outputs.answerable),
        unanswerable=part(shown & ~outputs.answerable),
        null_threshold=null_threshold,
        n_undecided=int(undecided.sum()),
        n_golds=int(outputs.golds[counted].sum()),
        n_empty_golds=int(outputs.empty_golds[counted].sum()),
        rule=outputs.rule,
    )


def _undecided(outputs: Answered) -> Bools:
    """[n], where an answer lacks a score, so that no threshold says whether it stands."""
    return ~outputs.abstained & np.isnan(outputs.difference)


def _under(values: Floats, outputs: Answered, null_threshold: float) -> Floats:
    """Values [n] when answers above the threshold are abstentions; NaN where none can be said."""
    turned = ~outputs.abstained & (outputs.difference > null_threshold)
    settled = np.where(turned, (~outputs.answerable).astype(np.float64), values)
    return np.where(_undecided(outputs), np.nan, settled)
