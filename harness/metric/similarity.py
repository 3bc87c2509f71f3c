"""Metrics of scored pairs, against a graded similarity or against same and different.

Subsets are pooled: a metric is a statistic of all its cases, never the mean of the subsets' values.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.errors import Misconfigured
from harness.metric.correlation import CORRELATIONS, correlation
from harness.metric.form import (
    LARGEST,
    UNDEFINED,
    Floats,
    Ints,
    Objects,
    Policy,
    between,
    case_status,
    finish_of,
    mean_of,
    rank_of,
    scored,
)
from harness.metric.label import class_scores, refuse_task
from harness.metric.name import MetricName
from harness.output.contribution import Contribution, RankKind

Aim: TypeAlias = Literal["accuracy", "f1"]


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Pairs, their score and gold similarity: higher is more alike. Shapes: all [n]; score is NaN unless scored."""

    case_ids: Objects
    gold: Floats
    score: Floats
    status: Objects


def scored_pairs(case_ids: Objects, gold: Floats, score: Floats, output_status: Objects) -> Scored:
    """Reads scores [n]. Gold of NaN is not-applicable; a score that is not finite, or beyond LARGEST, has failed.

    Raises Misconfigured for such gold.
    """
    if (np.abs(gold) > LARGEST).any():
        raise Misconfigured(
            "gold similarities", found=f"one beyond {LARGEST:g}", expected="numbers, or none", mend="Mend the case."
        )
    status = case_status(output_status, applicable=~np.isnan(gold), usable=np.abs(score) <= LARGEST)
    return Scored(case_ids, gold, np.where(scored(status), score, np.nan), status)


@dataclass(frozen=True, slots=True)
class Threshold:
    """A pair whose score reaches `value` is called same. It was fitted on `n` calibration cases, of which it
    reached `reached` of its aim."""

    value: float
    aim: Aim
    reached: float
    n: int


def fit_threshold(pairs: Scored, roles: Objects, aim: Aim = "accuracy") -> Threshold:
    """The threshold with the most accuracy or F1 on the scored cases of the calibration role; no other is looked at.

    It lies halfway between two scores that differ, so never inside a tied group, or above or below all. Of equally
    good ones it is the highest: the fewest pairs are called same.
    Raises Misconfigured without a scored calibration case, or where gold is not 0 or 1.
    """
    fitted = scored(pairs.status) & np.asarray(roles == "calibration", dtype=bool)
    if not fitted.any():
        raise Misconfigured(
            "threshold",
            found="no scored case of the calibration role",
            expected="cases to fit it on, apart from those that are judged",
            mend="Give some cases the role calibration, or declare the threshold.",
        )
    refuse_graded(pairs.gold[fitted], "threshold")
    scores, code = np.unique(pairs.score[fitted], return_inverse=True)
    gold = pairs.gold[fitted]
    # By position: a threshold below score i calls it and all above it same; the last calls none.
    same = np.bincount(code, gold, minlength=len(scores))
    every = np.bincount(code, minlength=len(scores)).astype(np.float64)
    right = np.append(np.cumsum(same[::-1])[::-1], 0.0)
    called = np.append(np.cumsum(every[::-1])[::-1], 0.0)
    if aim == "accuracy":
        reached = (right + (len(gold) - called) - (gold.sum() - right)) / len(gold)
    else:
        reached = np.nan_to_num(class_scores("f1", right, called, np.full(len(called), gold.sum()), UNDEFINED))
    best = int(np.flatnonzero(reached == reached.max())[-1])
    return Threshold(between(scores, best), aim, float(reached[best]), len(gold))


def contribution(
    name: MetricName, pairs: Scored, threshold: float | None = None, policy: Policy = UNDEFINED
) -> Contribution:
    """What each pair brings to a metric of similarity; pair_accuracy, _f1, _precision and _recall need a threshold.

    Raises Misconfigured for a metric of another task, one that lacks its threshold, and gold that is not 0 or 1 where
    a metric is of same and different.
    """
    refuse_task(name, "similarity")
    if name.base in CORRELATIONS:
        return correlation(name, pairs.case_ids, pairs.score, pairs.gold, pairs.status)
    refuse_graded(pairs.gold[scored(pairs.status)], f"metric '{name}'")
    if name.base in RANKS:
        columns = pairs.score[:, None], pairs.gold[:, None]
        return rank_of(str(name), pairs.case_ids, *columns, RANKS[name.base], pairs.status)
    if threshold is None or not np.isfinite(threshold):
        raise Misconfigured(
            f"metric '{name}'",
            found="no threshold",
            expected="the score from which a pair is called same",
            mend="Declare it, or fit it on the calibration role.",
        )
    called = (pairs.score >= threshold).astype(np.float64)
    if name.base == "pair_accuracy":
        return mean_of(str(name), pairs.case_ids, (called == pairs.gold).astype(np.float64), pairs.status)
    base = name.base.removeprefix("pair_")
    rows = np.stack([called * pairs.gold, called, pairs.gold], axis=1)
    return finish_of(
        str(name),
        pairs.case_ids,
        rows,
        lambda sums: class_scores(base, sums[..., 0], sums[..., 1], sums[..., 2], policy),
        pairs.status,
    )


RANKS: dict[str, RankKind] = {"pair_roc_auc": "auroc", "pair_average_precision": "average_precision"}


@dataclass(frozen=True, slots=True, eq=False)
class Distribution:
    """Scores of the scored pairs: quantiles [5] at .05, .25, .5, .75 and .95; counts [bins] between edges [bins+1].

    `n_tied` pairs share their score with another. NaN where there are none; the last bin holds its right edge.
    """

    n: int
    n_tied: int
    low: float
    high: float
    mean: float
    quantiles: Floats
    edges: Floats
    counts: Ints


def distribution(pairs: Scored, bins: int = 20) -> Distribution:
    """How the scores lie, in bins of equal width from the lowest to the highest."""
    kept = np.sort(pairs.score[scored(pairs.status)])
    if not len(kept):
        nan = float("nan")
        none = np.full(bins + 1, np.nan)
        return Distribution(0, 0, nan, nan, nan, np.full(5, np.nan), none, np.zeros(bins, dtype=np.int64))
    _, sizes = np.unique(kept, return_counts=True)
    counts, edges = np.histogram(kept, bins)
    return Distribution(
        n=len(kept),
        n_tied=int(sizes[sizes > 1].sum()),
        low=float(kept[0]),
        high=float(kept[-1]),
        mean=float(kept.mean()),
        quantiles=np.quantile(kept, [0.05, 0.25, 0.5, 0.75, 0.95]),
        edges=edges,
        counts=counts.astype(np.int64),
    )


def refuse_graded(gold: Floats, subject: str) -> None:
    """Raises Misconfigured for gold that is a degree of likeness."""
    if not np.isin(gold, (0, 1)).all():
        raise Misconfigured(
            subject,
            found="gold besides 0 and 1",
            expected="1 for a pair that is the same, 0 for one that is different",
            mend="Use spearman, pearson or kendall for graded similarities.",
        )
