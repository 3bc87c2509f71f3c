"""`harness calibrate`: fit a map from a stored run's raw scores to probabilities, on the calibration role alone."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import scipy

from harness import __version__
from harness.calibration.record import (
    OBJECTIVES,
    TOGETHER,
    CalibratorRecord,
    Family,
    FittedOn,
    Of,
    Point,
    applied_to_score,
    fitted,
    inputs,
    parameters,
    worth_telling,
)
from harness.errors import Misconfigured
from harness.file.whole import write_bytes
from harness.identity import Json
from harness.lifecycle.invalidation import score_key
from harness.release.open import Release, open_release
from harness.store import read
from harness.store.read import CaseMarks
from harness.suite.lock import Lock
from harness.verb.answer import stored_lock
from harness.verb.calibration_cases import Asked, Evidence, evidence
from harness.verb.place import Place, find_place, require_folder, shown
from harness.verb.plan import as_tuple

DRAWS = 200
"""Refits for the intervals of a curve."""
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
APART: tuple[Family, ...] = ("platt", "isotonic", "beta", "histogram")


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The fitted calibrator, and where it was saved."""

    calibrator: CalibratorRecord
    path: str | None

    def as_record(self) -> dict[str, Json]:
        record: Json = self.calibrator.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"calibrator": record, "path": self.path}


def calibrate(
    run: str,
    *,
    family: Family,
    side: Literal["candidate", "parent"] = "candidate",
    of: Asked | None = None,
    save: str | Path | None = None,
    store: str | None = None,
) -> Calibrated:
    """Fits on the scored calibration cases of one side of a run; no other case is read.

    `temperature`, `vector` and `matrix` are of classes that exclude one another, `temperature` of choices too; `platt`,
    `isotonic`, `beta` and `histogram` of one score at a time: of sets of labels one map a label, of answers the gap
    between score and null score, of rankings the score of a judged document (`of` relevance) or the top score (`of`
    answerability). What is saved names the scores that it belongs to, and is refused under others.
    Raises NotFound for a run that isn't there, or a folder to save in that isn't, Misconfigured for a task,
    a family or cases that allow no fit.
    """
    place = find_place(store=store)
    path = None if save is None else Path(save)
    if path is not None:
        require_folder(path)
    fitting = cases_to_fit_on(place, run, side, of)
    found, lock = fitting.evidence, fitting.lock
    _require_family(lock, found, family)
    record = CalibratorRecord(
        of=found.of,
        family=family,
        objective=OBJECTIVES[family],
        maps=[parameters(each) for each in fitted(family, _inputs(found, family), found.gold, found.labels)],
        labels=list(found.labels),
        score_type=found.score_type,
        fitted_under=score_key(as_tuple(fitting.release).graph),
        release=fitting.release.name,
        corpus=found.corpus,
        fitted_on=fitting.fitted_on,
        valid_for=found.valid_for,
        reported=worth_telling(family, found.labels, found.scores, found.gold),
        aggregation=aggregation_of(fitting.release),
        software={"harness": __version__, "numpy": np.__version__, "scipy": scipy.__version__},
    )
    if len(record.maps) == 1 and not found.exclusive:
        record = record.model_copy(update=dict(_curve(record, found, lock)))
    record = record.sealed()
    if path is None:
        return Calibrated(record, None)
    write_bytes(path, record.as_bytes())
    return Calibrated(record, shown(path))


@dataclass(frozen=True, slots=True, eq=False)
class Fitting:
    """What is fitted on, of which release, and how that is put on record."""

    evidence: Evidence
    lock: Lock
    release: Release
    fitted_on: FittedOn


def cases_to_fit_on(place: Place, run: str, side: str, of: Asked | None) -> Fitting:
    """The calibration cases of one side, without those that a promotion case repeats."""
    with place.store.reading() as connection:
        record = read.find_run(connection, run)
        lock = stored_lock(connection, record.suite_digest)
        releases = read.releases(connection, record.run)
        if side not in releases:
            raise Misconfigured(
                f"run {record.run[:12]}", found=f"no {side}", expected="a side of the run", mend="Name the other side.",
            )  # fmt: skip
        release = open_release(place.root / releases[side].place)
        if release.content_id != releases[side].content_id:
            raise Misconfigured(
                f"release {release.name!r}", found="another content than the run's", expected="the release as it ran",
                mend="Run it again first.",
            )  # fmt: skip
        found = evidence(connection, record.run, side, lock, record.suite_digest, release.score_type, of)
        marks = read.case_marks(connection, record.suite_digest)
    roles = np.array(lock.roles, dtype=object)
    promoted = {marks.inputs[i] for i in np.flatnonzero(roles == "promotion")}
    repeated = np.array([each in promoted for each in marks.inputs], dtype=bool)
    mine = roles[found.case] == "calibration"
    kept = found.taken(mine & ~repeated[found.case])
    if not len(kept.case):
        raise Misconfigured(
            f"run {record.run[:12]}", found="no scored case of the calibration role",
            expected="cases to fit on, apart from those that are judged", mend="Give some cases the role calibration.",
        )  # fmt: skip
    n_repeated = len(np.unique(found.case[mine & repeated[found.case]]))
    return Fitting(kept, lock, release, _fitted_on(lock, kept, marks, n_repeated))


def aggregation_of(release: Release) -> Literal["none", "windows", "stages", "members"]:
    """Behind what the scores stand that a calibrator or threshold is of."""
    kind = release.manifest.meaning.interaction.kind
    if kind in ("two-stage", "fusion"):
        return "stages" if kind == "two-stage" else "members"
    windows = any(port == "window" for node in as_tuple(release).graph.nodes for port, _ in node.ports)
    return "windows" if windows else "none"


def _fitted_on(lock: Lock, found: Evidence, marks: CaseMarks, left_out: int) -> FittedOn:
    cases = np.unique(found.case).tolist()
    return FittedOn(
        suite=lock.definition.name,
        data=lock.data_digest,
        included=found.included,
        n=len(found.case),
        n_cases=len(cases),
        n_groups=len({lock.groups[i] for i in cases}),
        left_out=left_out,
        case_digests=sorted(lock.case_digests[i] for i in cases),
        case_ids=sorted(marks.ids[i] for i in cases),
        case_inputs=sorted({marks.inputs[i] for i in cases}),
    )


def _inputs(found: Evidence, family: Family) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Choices were made ready before a case's were filled up to the longest's."""
    return found.scores if found.of == "choices" else inputs(found.scores, found.score_type, family)


def _require_family(lock: Lock, found: Evidence, family: Family) -> None:
    by_object: dict[Of, tuple[Family, ...]] = {"labels": TOGETHER, "choices": ("temperature",)}
    fits = by_object[found.of] if found.exclusive else APART
    task = lock.definition.task
    if family not in fits:
        raise Misconfigured(
            f"--family {family}", found=f"a suite of {task}", expected=f"one of {', '.join(fits)}",
            mend="Name a family that the task allows.",
        )  # fmt: skip
    lacking = [name for i, name in enumerate(found.labels) if found.exclusive and i not in found.gold]
    if family in ("vector", "matrix") and lacking:
        raise Misconfigured(
            f"--family {family}",
            found=f"no calibration case of {', '.join(lacking[:5])}{', …' if lacking[5:] else ''}",
            expected="cases of every label: the loss falls for ever as one without any gets less likely",
            mend="Give the calibration role cases of each, or fit a temperature, which has no number of one label.",
        )  # fmt: skip
    if family == "beta" and found.score_type not in ("logit", "probability"):
        raise Misconfigured(
            "--family beta", found=f"scores of type {found.score_type}", expected="probabilities, or logits",
            mend="Fit platt or isotonic, which take any score of which more is likelier.",
        )  # fmt: skip


def _curve(record: CalibratorRecord, found: Evidence, lock: Lock) -> dict[str, list[Point] | int]:
    """What quantiles of the scores come to, whole groups of cases drawn and the map fitted anew each time."""
    score, gold = found.scores[:, 0], found.gold[:, :1]
    at = np.quantile(score, QUANTILES)
    told = applied_to_score(record, at)
    _, codes = np.unique([lock.groups[i] for i in found.case], return_inverse=True)
    members = [np.flatnonzero(codes == code) for code in range(int(codes.max()) + 1)]
    generator = np.random.default_rng(lock.definition.uncertainty.seed)
    drawn = []
    for _ in range(DRAWS):
        rows = np.concatenate([members[i] for i in generator.integers(0, len(members), len(members))])
        try:
            [refit] = fitted(record.family, inputs(score[rows, None], record.score_type, record.family), gold[rows])
        except Misconfigured:
            continue  # one outcome alone, or a slope turned round: such draws are counted by `curve_draws`
        again = record.model_copy(update={"maps": [parameters(refit)]})
        drawn.append(applied_to_score(again, at))
    if len(drawn) <= DRAWS / 2:
        return {"curve": [], "curve_draws": len(drawn)}
    tail = (1 - lock.definition.uncertainty.level) / 2
    low, high = np.quantile(np.stack(drawn), [tail, 1 - tail], axis=0)
    curve = [
        Point(score=float(x), probability=float(p), low=float(a), high=float(b))
        for x, p, a, b in zip(at, told, low, high, strict=True)
    ]
    return {"curve": curve, "curve_draws": len(drawn)}
