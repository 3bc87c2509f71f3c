"""Regression and similarity."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from harness.calibration.record import applied_to_score
from harness.errors import Misconfigured
from harness.metric import chance, regression, similarity
from harness.metric.calibration import NEVER, sureness
from harness.metric.chance import Stated
from harness.metric.form import Floats, scored
from harness.metric.name import MetricName
from harness.metric.probability import ScoreType, separate
from harness.metric.regression import Inverse, Range, Regressed
from harness.metric.similarity import Scored, Threshold, fit_threshold
from harness.output.companion import Companion
from harness.output.contribution import Contribution
from harness.output.value import Status
from harness.verb.task.calibration import abstained, calibration_companions
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
    """Metrics of how much two texts are alike; a threshold that the release lacks is fitted on the calibration role.

    It is of the release's own score, which behind a calibrator is a probability. Orders are compared by the score.
    """
    pairs = _scored_pairs(asked)
    met = _met_by_threshold(asked, pairs)
    metrics = parsed(names)
    # In the order of the metrics: a set's would change from process to process, and the report's bytes with it.
    aims = [aim for aim in dict.fromkeys(_aim(each) for each in metrics.values()) if aim is not None]
    thresholds: dict[str | None, Threshold] = {aim: _threshold(asked, met, aim) for aim in aims}
    probable = any(each.base in chance.MEASURED for each in metrics.values()) or asked.calibrator is not None
    stated = _stated(asked, pairs) if probable or asked.abstain is not NEVER else None

    def brought(metric: MetricName) -> Contribution:
        if stated is not None and metric.base in chance.MEASURED:
            return chance.contribution(metric, stated)
        of = pairs if _aim(metric) is None else met
        return similarity.contribution(metric, of, _value(thresholds.get(_aim(metric))))

    return Judged(
        contributions={name: replace(brought(metric), metric=name) for name, metric in metrics.items()},
        prediction=_shown(pairs.score),
        gold=_shown(asked.gold.value),
        probability=_chances(asked, pairs),
        flags={} if stated is None else abstained(chance.forecasts(stated)),
        companions=tuple(_pair_companions(asked, list(thresholds.values()), probable)),
    )


def _scored_pairs(asked: Asked) -> Scored:
    return similarity.scored_pairs(asked.said.case_ids, asked.gold.value, asked.said.value, asked.said.status)


def _chances(asked: Asked, pairs: Scored) -> Floats:
    """How likely each pair is the same [n]; NaN where nobody says: a cosine is no probability."""
    if asked.calibrator is not None:
        return applied_to_score(asked.calibrator, pairs.score)
    if asked.kind in ("logit", "probability"):
        kind: ScoreType = "logit" if asked.kind == "logit" else "probability"
        return separate(pairs.score[:, None], kind).probabilities[:, 0]
    return np.full(len(pairs.score), np.nan)


def _met_by_threshold(asked: Asked, pairs: Scored) -> Scored:
    return pairs if asked.calibrator is None else replace(pairs, score=_chances(asked, pairs))


def _stated(asked: Asked, pairs: Scored) -> Stated:
    """That a pair is the same; it is called so from the threshold of the release on, else from one half.

    Raises Misconfigured for gold that is a degree of likeness.
    """
    similarity.refuse_graded(pairs.gold[scored(pairs.status)], "a probability that a pair is the same")
    said, chances = asked.of("score", "threshold"), _chances(asked, pairs)
    limit = float(cast(float, said)) if isinstance(said, int | float) else None
    unsaid = bool(np.isnan(chances).all())
    if unsaid and asked.abstain is not NEVER:
        raise Misconfigured(
            "[decision] abstain", found=f"the ground {asked.abstain.ground} of a {asked.kind}, which is no probability",
            expected="a calibrator of pairs, or scores that are probabilities",
            mend="Fit one with `harness calibrate`, or take the abstention out.",
        )  # fmt: skip
    own = pairs.score if asked.calibrator is None and limit is not None else chances
    called = own >= (0.5 if limit is None else limit)
    sure = sureness(np.stack([chances, 1 - chances], axis=1))
    undecided = scored(pairs.status) & unsaid & (limit is None)
    return Stated(
        case_ids=pairs.case_ids,
        chance=chances,
        held=np.where(pairs.gold == 1, 1.0, 0.0),
        # Who gives no probability is as sure of one pair as of another.
        sure={name: np.zeros(len(chances)) for name in sure} if unsaid else sure,
        loss=(called != (pairs.gold == 1)).astype(np.float64),
        status=np.where(undecided, Status.UNDEFINED, pairs.status).astype(object),
        abstain=asked.abstain,
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


def _pair_companions(asked: Asked, thresholds: list[Threshold], probable: bool) -> Iterator[Companion]:
    of = asked.promotion
    pairs = _scored_pairs(of)
    found = similarity.distribution(pairs)
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
    if probable and np.isfinite(_chances(of, pairs)).any():
        valid_for = None if of.calibrator is None else of.calibrator.valid_for
        yield from calibration_companions(chance.forecasts(_stated(of, pairs)), of.slices, valid_for)
