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
    ScoreType,
    fitted,
    inputs,
    parameters,
)
from harness.errors import Misconfigured
from harness.file.whole import write_bytes
from harness.identity import Json, canonical_json
from harness.release.field import Kind
from harness.release.open import Release, open_release
from harness.store import read
from harness.store.read_task import golds, said
from harness.suite.lock import Lock
from harness.verb.answer import stored_lock
from harness.verb.place import find_place, shown
from harness.verb.plan import as_tuple

LABELLED = ("classification", "multilabel")


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
    save: str | Path | None = None,
    store: str | None = None,
) -> Calibrated:
    """Fits on the scored calibration cases of one side of a run; no other case is read.

    `temperature`, `vector` and `matrix` are of classes that exclude one another; `platt`, `isotonic`, `beta` and
    `histogram` of sets of labels, one map a label. What is saved names the scores that it belongs to, and is refused
    under others.
    Raises NotFound for a run that isn't there, Misconfigured for a task, a family or cases that allow no fit.
    """
    place = find_place(store=store)
    with place.store.reading() as connection:
        record = read.find_run(connection, run)
        lock = stored_lock(connection, record.suite_digest)
        releases = read.releases(connection, record.run)
        if side not in releases:
            raise Misconfigured(
                f"run {record.run[:12]}", found=f"no {side}", expected="a side of the run", mend="Name the other side.",
            )  # fmt: skip
        gold, outputs = golds(connection, record.suite_digest), said(connection, record.run, side)
    _require_family(lock, family)
    release = open_release(place.root / releases[side].place)
    if release.content_id != releases[side].content_id:
        raise Misconfigured(
            f"release {release.name!r}", found="another content than the run's", expected="the release as it ran",
            mend="Run it again first.",
        )  # fmt: skip
    own = outputs.labels
    scores = outputs.matrix(len(own))
    known = gold.label if lock.definition.task == "classification" else gold.labels
    there = np.array([each is not None for each in known], dtype=bool)
    fit_on = np.flatnonzero(
        (np.array(lock.roles, dtype=object) == "calibration") & there & np.isfinite(scores).all(axis=1)
    )
    if not len(fit_on):
        raise Misconfigured(
            f"run {record.run[:12]}", found="no scored case of the calibration role",
            expected="cases to fit on, apart from those that are judged", mend="Give some cases the role calibration.",
        )  # fmt: skip
    kind: ScoreType = "logit" if release.score_type == "logit" else "probability"
    if family in TOGETHER:
        truth = np.array([own.index(str(gold.label[i])) for i in fit_on], dtype=np.int64)
    else:
        truth = np.array([[name in (gold.labels[i] or ()) for name in own] for i in fit_on], dtype=np.int64)
    found = CalibratorRecord(
        family=family,
        objective=OBJECTIVES[family],
        maps=[parameters(each) for each in fitted(family, inputs(scores[fit_on], kind, family), truth)],
        labels=list(own),
        score_type=kind,
        fitted_under=_key(release),
        fitted_on=FittedOn(
            suite=lock.definition.name,
            data=lock.data_digest,
            n=len(fit_on),
            case_digests=sorted(lock.case_digests[i] for i in fit_on),
        ),
        software={"harness": __version__, "numpy": np.__version__, "scipy": scipy.__version__},
    )
    if save is None:
        return Calibrated(found, None)
    path = Path(save)
    write_bytes(path, canonical_json(found.model_dump(mode="json", by_alias=True, exclude_none=True)) + b"\n")
    return Calibrated(found, shown(path))


def _require_family(lock: Lock, family: Family) -> None:
    task = lock.definition.task
    fits = TOGETHER if task == "classification" else tuple(each for each in OBJECTIVES if each not in TOGETHER)
    if task not in LABELLED or family not in fits:
        raise Misconfigured(
            f"--family {family}", found=f"a suite of {task}",
            expected=f"one of {', '.join(fits)}" if task in LABELLED else f"a suite of {' or '.join(LABELLED)}",
            mend="Name a family that the task allows." if task in LABELLED else "Calibrate a head of labels.",
        )  # fmt: skip


def _key(release: Release) -> str:
    """The key of the raw scores, of a text in windows that of the joined ones: what `admit` holds a calibrator to."""
    nodes = [node for node in as_tuple(release).graph.nodes if node.kind is Kind.RAW_SCORE]
    joined = {name for node in nodes for port, name in node.ports if port == "window"}
    scores = [node.key for node in nodes if node.name not in joined]
    if len(scores) != 1:
        raise Misconfigured(
            f"release {release.name!r}", found=f"{len(scores)} nodes of raw scores", expected="one to be calibrated",
            mend="Calibrate the release that it is made of.",
        )  # fmt: skip
    return scores[0]
