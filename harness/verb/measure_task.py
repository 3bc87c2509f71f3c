"""From a task's stored outputs to its stored values, predictions and companions."""

import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.output.case import OutputStatus
from harness.output.contribution import Contribution
from harness.output.value import CaseValues, Status
from harness.store import write
from harness.store.connection import Connection
from harness.store.read import ReleaseRecord, case_marks
from harness.store.read_task import golds, said
from harness.suite.lock import Lock
from harness.verb.measure import Measured, keep_companions, keep_values, metric_names, zero_for_missing
from harness.verb.parameter import calibrator_of, threshold_of
from harness.verb.slices import members_of
from harness.verb.task.answers import judge_answers
from harness.verb.task.choices import judge_choices
from harness.verb.task.entities import judge_entities, types_of
from harness.verb.task.labels import judge_classes, judge_sets
from harness.verb.task.numbers import judge_pairs, judge_values
from harness.verb.task.side import Asked, Judged

JUDGES: Mapping[str, Callable[[Asked, tuple[str, ...]], Judged]] = {
    "classification": judge_classes,
    "multilabel": judge_sets,
    "regression": judge_values,
    "similarity": judge_pairs,
    "multiple-choice": judge_choices,
    "answer": judge_answers,
    "entity": judge_entities,
}


def measure_task(
    connection: Connection,
    run: str,
    suite_digest: str,
    releases: Mapping[str, ReleaseRecord],
    lock: Lock,
) -> dict[str, Measured]:
    """Reads what every side said, computes every metric that the suite names, and stores it."""
    found = {}
    for side, asked in asked_sides(connection, run, suite_digest, releases, lock).items():
        judged, found[side] = measured(asked, lock)
        _keep(connection, run, side, releases[side].release, asked, judged, found[side].values)
    return found


def measured(asked: Asked, lock: Lock) -> tuple[Judged, Measured]:
    """One side's outputs as its task judges them, and every metric that the suite names; nothing is written."""
    judged = JUDGES[lock.definition.task](asked, metric_names(lock))
    values = {name: _settled(each, lock) for name, each in judged.contributions.items()}
    return judged, Measured(asked.gold.case_ids, values, _flags(asked, judged), abstained=judged.flags.get("abstained"))


def asked_sides(
    connection: Connection, run: str, suite_digest: str, releases: Mapping[str, ReleaseRecord], lock: Lock
) -> dict[str, Asked]:
    """What every side said. Sides are measured over the same classes, so that what one brings to a metric can be
    exchanged for what the other does.
    """
    gold, marks = golds(connection, suite_digest), case_marks(connection, suite_digest)
    for release in releases.values():
        threshold_of(release, lock, marks)
    outputs = {side: said(connection, run, side) for side in releases}
    labels = lock.label_schema or ()
    ids = gold.case_ids.tolist()
    within = {name: set(found) for name, found in members_of(connection, run, lock).items()}
    slices = {"all": np.ones(len(ids), dtype=bool)} | {
        name: np.array([case in found for case in ids], dtype=bool) for name, found in within.items()
    }
    every = {
        side: Asked(
            gold=gold,
            said=outputs[side],
            roles=np.array(lock.roles, dtype=object),
            slices=slices,
            policy=lock.definition.metrics.policy,
            meaning=json.loads(release.meaning),
            labels=labels,
            calibrator=calibrator_of(release, lock, marks),
        )
        for side, release in releases.items()
    }
    own = types_of if lock.definition.task == "entity" else _labels_of
    beyond = tuple(sorted({name for asked in every.values() for name in own(asked)} - set(labels)))
    return {side: replace(asked, beyond=beyond) for side, asked in every.items()}


def _labels_of(asked: Asked) -> set[str]:
    return set(asked.said.labels)


def _settled(found: Contribution, lock: Lock) -> Contribution:
    zero = lock.definition.cases.missing == "zero" and isinstance(found, CaseValues)
    return zero_for_missing(found) if zero and isinstance(found, CaseValues) else found


def _flags(asked: Asked, judged: Judged) -> dict[str, NDArray[np.bool_]]:
    none = np.zeros(len(judged.prediction), dtype=bool)
    return {
        "missing": asked.said.status == OutputStatus.MISSING,
        "failed": _failed(asked, judged),
        "non-finite": asked.said.non_finite,
        "truncated": asked.said.truncated,
        "tied": judged.flags.get("tied", none),
        "illegal": judged.flags.get("illegal", none),
    }


def _failed(asked: Asked, judged: Judged) -> NDArray[np.bool_]:
    """Cases whose output failed, or is none that a metric can read."""
    failed = np.asarray(asked.said.status == OutputStatus.FAILED, dtype=bool)
    for each in judged.contributions.values():
        failed = failed | (each.status == Status.FAILED)
    return failed


def _keep(
    connection: Connection,
    run: str,
    side: str,
    release: str,
    asked: Asked,
    judged: Judged,
    values: Mapping[str, Contribution],
) -> None:
    key = {"run": run, "side": side, "release": release}
    keep_values(connection, key, asked.said.case_ids, values)
    flags = [[name for name, held in judged.flags.items() if held[i]] for i in range(len(judged.prediction))]
    write.replace(connection, "predictions", key, {
        "case_id": pa.array(asked.said.case_ids, pa.string()),
        "gold": pa.array(judged.gold, pa.string()),
        "prediction": pa.array(judged.prediction, pa.string()),
        "probability": pa.array(judged.probability, pa.float64(), mask=np.isnan(judged.probability)),
        "flags": pa.array(flags, pa.list_(pa.string())),
    })  # fmt: skip
    keep_companions(connection, run, side, judged.companions)
