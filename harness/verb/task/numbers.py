"""Regression and similarity."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from harness.metric import regression, similarity
from harness.metric.name import MetricName
from harness.metric.regression import Inverse, Range, Regressed
from harness.metric.similarity import Scored, Threshold, fit_threshold
from harness.output.companion import Companion
from harness.verb.task.side import Asked, Judged, number, parsed

DECIDED = ("pair_accuracy", "pair_f1", "pair_precision", "pair_recall")


def judge_values(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of one number per case, in the target's own units."""
    outputs = _regressed(asked)
    return Judged(
        contributions={
            name: replace(regression.contribution(metric, outputs), metric=name)
            for name, metric in parsed(names).items()
        },
        prediction=_shown(outputs.prediction),
        gold=_shown(asked.gold.value),
        probability=np.full(len(outputs.case_ids), np.nan),
        flags={"clipped": outputs.clipped},
        companions=tuple(_value_companions(asked.promotion)),
    )


def judge_pairs(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of how much two texts are alike; a threshold that the release lacks is fitted on the calibration role."""
    pairs = similarity.scored_pairs(asked.said.case_ids, asked.gold.value, asked.said.value, asked.said.status)
    metrics = parsed(names)
    thresholds = {aim: _threshold(asked, pairs, aim) for aim in {_aim(each) for each in metrics.values()} - {None}}
    return Judged(
        contributions={
            name: replace(similarity.contribution(metric, pairs, _value(thresholds.get(_aim(metric)))), metric=name)
            for name, metric in metrics.items()
        },
        prediction=_shown(pairs.score),
        gold=_shown(asked.gold.value),
        probability=np.full(len(pairs.case_ids), np.nan),
        companions=tuple(_pair_companions(asked, list(thresholds.values()))),
    )


def _regressed(asked: Asked) -> Regressed:
    said = asked.of("output", "regression")
    inverse = None
    if isinstance(said, Mapping):
        inverse = Inverse(scale=float(cast(float, said["scale"])), shift=float(cast(float, said["shift"])))
    clip = asked.policy.clip
    return regression.regressed(
        asked.said.case_ids,
        asked.gold.value,
        asked.said.value,
        asked.said.status,
        inverse=inverse,
        clip=None if clip is None else Range(*clip),
    )


def _aim(metric: MetricName) -> str | None:
    """What a metric's threshold is fitted for; None for one that needs none."""
    if metric.base not in DECIDED:
        return None
    return "accuracy" if metric.base == "pair_accuracy" else "f1"


def _threshold(asked: Asked, pairs: Scored, aim: str | None) -> Threshold:
    declared = asked.of("score", "threshold")
    wanted: similarity.Aim = "accuracy" if aim == "accuracy" else "f1"
    if isinstance(declared, int | float):
        return Threshold(float(declared), wanted, float("nan"), 0)
    return fit_threshold(pairs, asked.roles, wanted)


def _value(threshold: Threshold | None) -> float | None:
    return None if threshold is None else threshold.value


def _shown(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str | None]:
    return [None if np.isnan(each) else f"{each:.6g}" for each in values]


def _value_companions(asked: Asked) -> Iterator[Companion]:
    outputs = _regressed(asked)
    found = regression.target_summary(outputs)
    units = asked.of("output", "regression")
    inverse = found.inverse
    note = f"Inverse transform: {inverse.link} of output · {inverse.scale:g} + {inverse.shift:g}" + (
        f", in {units['units']}." if isinstance(units, Mapping) else "."
    )
    yield Companion(
        "targets", "Targets and predictions", note,
        ("scored", "target low", "target high", "predicted low", "predicted high", "beyond the targets", "clipped",
         "without target", "missing", "failed"),
        ((found.n_scored, number(found.targets.low), number(found.targets.high), number(found.predictions.low),
          number(found.predictions.high), found.n_beyond, found.n_clipped, found.n_without_target, found.n_missing,
          found.n_failed),),
    )  # fmt: skip
    rows = tuple(
        (each.slice, each.n, number(each.mean), number(each.spread), number(each.low), number(each.median),
         number(each.high), number(each.largest))
        for each in regression.residuals(outputs, asked.slices)
    )  # fmt: skip
    yield Companion(
        "residuals", "Residuals by slice", "Prediction minus target; above 0 is too high. Quantiles .05, .5 and .95.",
        ("slice", "cases", "mean", "spread", "low", "median", "high", "largest"), rows,
    )  # fmt: skip


def _pair_companions(asked: Asked, thresholds: list[Threshold]) -> Iterator[Companion]:
    of = asked.promotion
    found = similarity.distribution(
        similarity.scored_pairs(of.said.case_ids, of.gold.value, of.said.value, of.said.status)
    )
    q = [number(each) for each in found.quantiles]
    yield Companion(
        "scores", "Scores", f"Score type {asked.kind}; {found.n_tied} of {found.n} pairs share a score with another.",
        ("pairs", "low", ".05", ".25", "median", ".75", ".95", "high", "mean"),
        ((found.n, number(found.low), *q, number(found.high), number(found.mean)),),
    )  # fmt: skip
    if thresholds:
        rows = tuple(
            (each.aim, each.value, each.n or None, number(each.reached))
            for each in sorted(thresholds, key=lambda t: t.aim)
        )
        yield Companion(
            "thresholds", "Thresholds", "From this score on a pair is called same; fitted on the calibration role, or "
            "declared by the release (no cases).", ("for the most", "threshold", "cases", "reached there"), rows,
        )  # fmt: skip
