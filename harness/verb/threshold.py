"""`harness calibrate --threshold`: choose a threshold, or when to say nothing, on the calibration role alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

import numpy as np
import scipy

from harness import __version__
from harness.calibration.decision import (
    abstain_for_coverage,
    abstain_for_risk,
    best_f1_threshold,
    capacity_threshold,
    cost_threshold,
)
from harness.calibration.fit import sigmoid, softmax
from harness.calibration.record import applied, read_calibrator
from harness.errors import Misconfigured
from harness.file.whole import write_bytes
from harness.identity import Json
from harness.lifecycle.invalidation import decision_key
from harness.metric.calibration import set_sureness, sureness
from harness.metric.form import Floats, Ints
from harness.release.admit.meaning import own_type
from harness.release.open import calibrator_text
from harness.release.threshold import Rule, ThresholdFit, ThresholdRecord, Type, converted
from harness.store import read
from harness.suite.definition import RANKED
from harness.verb.answer import stored_lock
from harness.verb.calibrate import Fitting, aggregation_of, cases_to_fit_on
from harness.verb.place import Place, find_place, require_folder, shown
from harness.verb.plan import as_tuple
from harness.verb.threshold_ranking import of_rankings, stated_by
from harness.verb.threshold_rule import (
    OF_LABELS,
    OF_RANKINGS,
    Asked,
    Chosen,
    costs_of,
    needed,
    require_labels,
    require_read,
    told,
)


@dataclass(frozen=True, slots=True)
class FittedThreshold:
    """The threshold with its record, and where it was saved."""

    threshold: ThresholdRecord
    path: str | None

    def as_record(self) -> dict[str, Json]:
        record: Json = self.threshold.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"threshold": record, "path": self.path}


def threshold(
    run: str,
    *,
    rule: Rule,
    false_positive: float | None = None,
    false_negative: float | None = None,
    label_costs: Mapping[str, tuple[float, float]] | None = None,
    capacity: float | None = None,
    coverage: float | None = None,
    risk: float | None = None,
    ground: Literal["confidence", "margin", "entropy"] | None = None,
    side: Literal["candidate", "parent"] = "candidate",
    save: str | Path | None = None,
    store: str | None = None,
) -> FittedThreshold:
    """Of a run's scored calibration cases, under the release's calibrator where it has one; no other case is read.

    `costs`: the probability false_positive / (false_positive + false_negative), of a label by its own costs where there
    are such. `capacity`: the lowest score that lets at most that share pass, by label. `f1`: the best F1, by label.
    `coverage`, `risk`: below which confidence (or `ground`: margin, entropy) nothing is said, so that at least that
    share is answered, or the answered are wrong no more often. Of rankings behind a calibrator of answerability: below
    which probability nothing is said, by `coverage`, `risk`, or `costs` (of answering what nothing answers, of
    silence). What the rule does not read is refused.
    Raises NotFound for a run or a folder that isn't there, Misconfigured for a task or a rule that allow no threshold.
    """
    asked = Asked(false_positive, false_negative, label_costs, capacity, coverage, risk, ground)
    place = find_place(store=store)
    path = None if save is None else Path(save)
    if path is not None:
        require_folder(path)
    fitting = cases_to_fit_on(place, run, side, _about(place, run))
    _require_rule(fitting, rule)
    require_read(rule, asked, ranked=fitting.lock.definition.task in RANKED)
    kind, chosen = _chosen(place, run, side, fitting, rule, asked)
    record = ThresholdRecord(
        rule=rule,
        by=chosen.by,
        threshold=chosen.threshold,
        labels=list(chosen.labels),
        type=kind,
        ground=chosen.ground,
        below=chosen.below,
        reached=chosen.reached,
        fitted_under=decision_key(as_tuple(fitting.release).graph),
        release=fitting.release.name,
        fitted_on=ThresholdFit.model_validate(fitting.fitted_on.model_dump()),
        aggregation=aggregation_of(fitting.release),
        software={"harness": __version__, "numpy": np.__version__, "scipy": scipy.__version__},
    )
    record = record.sealed()
    if path is None:
        return FittedThreshold(record, None)
    write_bytes(path, record.as_bytes())
    return FittedThreshold(record, shown(path))


def _about(place: Place, run: str) -> Literal["answerability"] | None:
    """Of rankings a question is answered or not; all else follows from the task."""
    with place.store.reading() as connection:
        lock = stored_lock(connection, read.find_run(connection, run).suite_digest)
    return "answerability" if lock.definition.task in RANKED else None


def _chosen(
    place: Place, run: str, side: Literal["candidate", "parent"], fitting: Fitting, rule: Rule, asked: Asked
) -> tuple[Type, "Chosen"]:
    """The type of the score that is met, and what the rule gives."""
    if fitting.lock.definition.task in RANKED:
        return "probability", of_rankings(stated_by(place, run, side, fitting), rule, asked)
    found = _Scores.of(fitting)
    if rule in OF_LABELS:
        return found.type, _of_labels(fitting, found, rule, asked)
    return found.type, _abstention(fitting, found, rule, asked)


@dataclass(frozen=True, slots=True, eq=False)
class _Scores:
    """Calibration cases as the release's threshold meets them. Shapes: own, chances and gold [r, k]: of its own type,
    as probabilities (NaN where they are none), 1 where it holds.
    """

    type: Type
    own: Floats
    chances: Floats
    gold: Ints

    @classmethod
    def of(cls, fitting: Fitting) -> "_Scores":
        found = fitting.evidence
        kind = cast(Type, own_type(fitting.release.manifest.meaning))
        if found.of != "pairs":
            kind = "probability" if kind == "probability" else "logit"
        text = calibrator_text(fitting.release)
        calibrator = None if text is None else read_calibrator(f"calibrator of release {fitting.release.name!r}", text)
        if found.of == "choices":
            warmth = 1.0 if calibrator is None else calibrator.maps[0].temperature or 1.0
            chances = softmax(found.scores / warmth)
        elif calibrator is not None:
            chances = applied(calibrator, found.scores)
        elif found.score_type not in ("logit", "probability"):
            chances = np.full(found.scores.shape, np.nan)
        elif found.score_type == "logit":
            chances = softmax(found.scores) if found.exclusive else sigmoid(found.scores)
        else:
            total = found.scores.sum(axis=1, keepdims=True) if found.exclusive else 1.0
            chances = found.scores / total
        own = chances if kind == "probability" else found.scores
        gold = np.eye(chances.shape[1], dtype=np.int64)[found.gold] if found.exclusive else found.gold
        return cls(kind, own, chances, gold)


def _require_rule(fitting: Fitting, rule: Rule) -> None:
    found = fitting.evidence
    expected = None
    kind = own_type(fitting.release.manifest.meaning)
    if fitting.lock.definition.task in RANKED:
        expected = None if rule in OF_RANKINGS else "costs, coverage or risk: below which probability nothing is said"
    elif found.of not in ("labels", "choices", "pairs"):
        expected = "labels, choices, pairs or rankings: of answers the null threshold is fitted when they are measured"
    elif found.of == "pairs" and rule not in ("capacity", "f1") and kind not in ("logit", "probability"):
        expected = f"capacity or f1: a {kind} is no probability, which what errors cost and how sure one is are said in"
    elif rule in OF_LABELS and found.exclusive and not (found.of == "labels" and len(found.labels) == 2):
        expected = "coverage or risk: of more than two that exclude one another the likeliest is given"
    if expected is not None:
        raise Misconfigured(
            f"--threshold {rule}", found=f"a suite of {fitting.lock.definition.task}", expected=expected,
            mend="Name a rule that the task allows.",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Labels:
    """Labels that are given from a threshold on. Shapes: own and gold [r, k]."""

    labels: tuple[str, ...]
    own: Floats
    gold: Ints


def _of_labels(fitting: Fitting, found: _Scores, rule: Rule, asked: Asked) -> Chosen:
    """From which score on a label is given: each by itself, or of two classes the positive one, the last by name."""
    each = _Labels(fitting.evidence.labels, found.own, found.gold)
    if fitting.evidence.exclusive:
        at = each.labels.index(max(each.labels))
        values = each.own[:, at] if found.type == "probability" else each.own[:, at] - each.own[:, 1 - at]
        each = _Labels((each.labels[at],), values[:, None], each.gold[:, [at]])
    require_labels(asked, each.labels)
    limits = _limits(each, rule, asked, found.type)
    given = each.own >= limits
    right = given & (each.gold == 1)
    reached: dict[str, float] = {}
    for c, label in enumerate(each.labels):
        reached[f"given[{label}]"] = float(given[:, c].mean())
        reached[f"precision[{label}]"] = float(right[:, c].sum() / max(1, given[:, c].sum()))
        reached[f"recall[{label}]"] = float(right[:, c].sum() / max(1, each.gold[:, c].sum()))
    single = len(each.labels) == 1 or (rule == "costs" and not asked.label_costs)
    return Chosen(told(rule, asked), reached, float(limits[0]) if single else limits.tolist(), each.labels)


def _limits(found: "_Labels", rule: Rule, asked: Asked, kind: Type) -> Floats:
    """Thresholds [k]."""
    if rule == "costs":
        chances = [cost_threshold(*costs_of(label, asked)) for label in found.labels]
        own = [each if kind == "probability" else converted(each, "probability", kind, unit=False) for each in chances]
        return np.array(own, dtype=np.float64)
    if rule == "f1":
        return np.array([best_f1_threshold(*column) for column in zip(found.own.T, found.gold.T, strict=True)])
    share = needed("capacity", asked.capacity)
    limits = np.array([capacity_threshold(column, share) for column in found.own.T])
    for label, limit in zip(found.labels, limits, strict=True):
        if kind == "probability" and limit > 1:
            raise Misconfigured(
                f"--capacity {share}", found=f"more cases than that with the highest score of {label!r}, which is 1",
                expected="a capacity that they fit into", mend="Allow more, or calibrate by a family without steps.",
            )  # fmt: skip
    return limits


def _abstention(fitting: Fitting, found: _Scores, rule: Rule, asked: Asked) -> Chosen:
    """Below which sureness nothing is said."""
    if fitting.evidence.exclusive:
        sure = sureness(found.chances)
        loss = (found.chances.argmax(axis=1) != fitting.evidence.gold).astype(np.float64)
    else:
        sure = set_sureness(found.chances)
        loss = ((found.own >= _declared(fitting, found)) != (found.gold == 1)).any(axis=1).astype(np.float64)
    ground = asked.ground or "confidence"
    values = sure[ground]
    if rule == "coverage":
        reached = abstain_for_coverage(values, loss, needed("coverage", asked.coverage))
    else:
        reached = abstain_for_risk(values, loss, needed("risk", asked.risk))
    return Chosen(
        told(rule, asked),
        {"coverage": reached.coverage, "risk": reached.risk},
        ground=ground,
        below=reached.below,
    )


def _declared(fitting: Fitting, found: _Scores) -> Floats:
    """The thresholds that the release has, and halfway where it has none."""
    said = fitting.release.manifest.meaning.score.threshold
    halfway = 0.5 if found.type == "probability" else 0.0
    return np.asarray(halfway if said is None else said, dtype=np.float64)
