"""From stored outputs to stored per-case values: what a metric says is read from the store, never from memory."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.metric import chance
from harness.metric.calibration import NEVER
from harness.metric.chance import Stated
from harness.metric.name import parse
from harness.metric.place import JudgedPlaces, place, tied_cases
from harness.metric.ranking import case_values
from harness.output.case import OutputStatus
from harness.output.companion import Companion
from harness.output.contribution import Contribution
from harness.output.value import CaseValues, Status
from harness.store import write
from harness.store.connection import Connection
from harness.store.read import answerable, case_marks, find_run, releases
from harness.store.read_ranking import CandidateRows, RankingRows, candidates, rankings
from harness.suite.definition import RANKED
from harness.suite.lock import Lock
from harness.verb.parameter import calibrator_of
from harness.verb.task.calibration import abstained
from harness.verb.task.rankings import GROUND, abstention, stated_rankings

# The one metric that looks at what a last stage was given, and not at what it made of it.
CEILING = "recall_ceiling"
RIGHT_RANKING = "Success@1"
"""By which a ranking is right where the suite does not say."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One side as it was measured. Shapes: arrays [n], cases in suite order; `flags` by the name of the count.
    `ceiling`: the recall that a last stage's candidates allow, None where the side has none. `stated`: what a release
    that ranks says of whether questions are answerable, where somebody asks. `abstained` [n]: of which cases a release
    with a rule of abstention says nothing; None without one.
    """

    case_ids: NDArray[np.object_]
    values: dict[str, Contribution]
    flags: dict[str, NDArray[np.bool_]]
    ceiling: CaseValues | None = None
    stated: Stated | None = None
    abstained: NDArray[np.bool_] | None = None


def measure(connection: Connection, run: str, side: str, release: str, lock: Lock) -> Measured:
    """Measures one side and stores the values; besides, where a last stage was given candidates, how far they reach."""
    found = measured(connection, run, side, lock)
    kept = found.values if found.ceiling is None else {**found.values, CEILING: found.ceiling}
    keep_values(connection, {"run": run, "side": side, "release": release}, found.case_ids, kept)
    return found


def measured(connection: Connection, run: str, side: str, lock: Lock) -> Measured:
    """Reads one side's rankings and computes every metric that the suite names; nothing is written."""
    rows = rankings(connection, run, side)
    places = _places(rows, lock.definition.ranking.ties)
    given = _given(rows, candidates(connection, run, side))
    names = {name: parse(name) for name in metric_names(lock)}
    stated = _stated(connection, run, side, lock, rows, places)
    values: dict[str, Contribution] = {
        name: _values(rows, places, given, name, lock)
        if stated is None or metric.task_metric is None
        else replace(chance.contribution(metric, stated), metric=name)
        for name, metric in names.items()
    }
    ceiling = None if given is None else _values(rows, places, given, CEILING, lock)
    silent = None if stated is None else abstained(chance.forecasts(stated)).get("abstained")
    return Measured(rows.case_ids, values, _flags(rows, lock), ceiling, stated, silent)


def _stated(
    connection: Connection, run: str, side: str, lock: Lock, rows: RankingRows, places: JudgedPlaces
) -> Stated | None:
    """None where neither suite nor release asks whether questions are answerable."""
    suite = find_run(connection, run).suite_digest
    release = releases(connection, run)[side]
    calibrator = calibrator_of(release, lock, case_marks(connection, suite))
    abstain = abstention(json.loads(release.meaning)["score"].get("decision"), calibrator, release.release)
    asked = any(parse(name).task_metric for name in metric_names(lock))
    if not asked and abstain is NEVER and (calibrator is None or calibrator.of != GROUND):
        return None
    criterion = lock.definition.metrics.right or RIGHT_RANKING
    criterion = RIGHT_RANKING if parse(criterion).task_metric else criterion
    right = case_values(
        parse(criterion), places, case_ids=rows.case_ids, output_status=rows.status,
        depth=lock.definition.ranking.depth, top_grade=lock.top_grade, no_relevant="not-applicable",
    )  # fmt: skip
    return stated_rankings(rows, right, answerable(connection, suite), calibrator, abstain)


def keep_values(
    connection: Connection, key: dict[str, str], case_ids: NDArray[np.object_], kept: Mapping[str, Contribution]
) -> None:
    """Every metric of every case with its status; a value where the metric is a mean of such."""
    n = len(case_ids)
    none = np.full(n, np.nan)
    numbers = np.concatenate([each.values if isinstance(each, CaseValues) else none for each in kept.values()])
    write.replace(connection, "case_metrics", key, {
        "metric": pa.array(np.repeat(np.array(list(kept), dtype=object), n), pa.string()),
        "case_id": pa.array(np.tile(case_ids, len(kept)), pa.string()),
        "value": pa.array(numbers, pa.float64(), mask=np.isnan(numbers)),
        "status": pa.array([str(status) for each in kept.values() for status in each.status], pa.string()),
    })  # fmt: skip


def keep_companions(connection: Connection, run: str, side: str, told: Sequence[Companion]) -> None:
    """The tables that stand beside one side's metrics."""
    write.replace(connection, "companions", {"run": run, "side": side}, {
        "position": np.arange(1, len(told) + 1),
        "name": pa.array([each.name for each in told], pa.string()),
        "content": pa.array([json.dumps(each.as_record(), ensure_ascii=False) for each in told], pa.string()),
    })  # fmt: skip


def metric_names(lock: Lock) -> tuple[str, ...]:
    """Every metric of a run: those the suite names, as written, Judged@k for every depth they see, the criterion."""
    named = lock.definition.metric_names
    judged = [judged_name(name, lock) for name in named] if lock.definition.task in RANKED else []
    right = lock.definition.metrics.right
    # What is right among the answered says nothing without how many these are.
    beside = ["coverage"] if any(parse(name).base == "answered_accuracy" for name in named) else []
    return tuple(dict.fromkeys([*named, *judged, *beside, *([] if right is None else [right])]))


def judged_name(metric: str, lock: Lock) -> str:
    """The Judged@k that stands beside a ranking metric."""
    if parse(metric).task_metric is not None:
        return "Judged@1"  # what is answered is the first document
    return f"Judged@{parse(metric).cutoff or lock.definition.ranking.depth}"


def _values(rows: RankingRows, places: JudgedPlaces, given: JudgedPlaces | None, name: str, lock: Lock) -> CaseValues:
    """`given`: where the last stage's candidates, taken as one tied group, have the judged documents. What reaches no
    further than its own ranking is given just that, down to the suite's depth.
    """
    ranking, metric, depth = lock.definition.ranking, parse(name), lock.definition.ranking.depth
    if metric.base == CEILING and given is not None:
        places, depth = given, max(1, int(given.retrieved.max(initial=0)))
    found = case_values(
        metric,
        places,
        case_ids=rows.case_ids,
        output_status=rows.status,
        depth=depth,
        top_grade=lock.top_grade,
        no_relevant=ranking.no_relevant,
    )
    found = zero_for_missing(found) if lock.definition.cases.missing == "zero" else found
    return replace(found, metric=name)


def zero_for_missing(found: CaseValues) -> CaseValues:
    """A case without an output has 0, and not none."""
    lacking = found.status == Status.MISSING
    return replace(
        found,
        values=np.where(lacking, 0.0, found.values),
        status=np.where(lacking, Status.SCORED, found.status).astype(object),
    )


def _given(rows: RankingRows, found: CandidateRows | None) -> JudgedPlaces | None:
    if found is None:
        return None
    offsets = np.concatenate([[0], np.cumsum(found.counts)]).astype(np.int64)
    return place(
        offsets,
        np.zeros(offsets[-1]),
        rows.judged_offsets,
        rows.judged_grade,
        np.where(found.given, 0.0, np.nan),
        np.where(found.given, 0, -1),
        np.zeros_like(rows.crossing),
        ties="expected",
    )


def _flags(rows: RankingRows, lock: Lock) -> dict[str, NDArray[np.bool_]]:
    metrics = [parse(name) for name in lock.definition.metric_names]
    cutoffs = [each.cutoff or (1 if each.task_metric else lock.definition.ranking.depth) for each in metrics]
    return {
        "missing": rows.status == OutputStatus.MISSING,
        "failed": rows.status == OutputStatus.FAILED,
        "non-finite": rows.non_finite,
        "truncated": rows.truncated,
        "tied": tied_cases(_places(rows, "expected"), depth=max(cutoffs)),
        "illegal": np.zeros(len(rows.case_ids), dtype=bool),
    }


def _places(rows: RankingRows, ties: Literal["expected", "trec"]) -> JudgedPlaces:
    return place(
        rows.offsets,
        rows.scores,
        rows.judged_offsets,
        rows.judged_grade,
        rows.judged_score,
        rows.judged_position,
        rows.crossing,
        ties=ties,
    )
