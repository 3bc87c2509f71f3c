"""What a decision leaves in the store: values with their intervals, differences, transitions, rules."""

from collections.abc import Mapping
from dataclasses import astuple
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.compare.align import align
from harness.compare.scoreboard import ALL, Cell, SideCell
from harness.compare.transition import moved, transitions
from harness.metric.name import parse
from harness.output.decision import Decision
from harness.output.value import CaseValues, Status
from harness.store import read, read_ranking, write
from harness.store.connection import Connection
from harness.store.read_task import predictions
from harness.suite.definition import RANKED, Metrics
from harness.suite.lock import Lock
from harness.verb.measure import Measured
from harness.verb.slices import members_of

# A value of 1 but for rounding.
RIGHT = 1 - 1e-9


def keep_metrics(connection: Connection, run: str, named: Metrics, names: tuple[str, ...]) -> None:
    """What each metric is, whatever its values, and by which of them a case is told to have got worse or better."""
    metrics = [parse(name) for name in names]
    means = [name for name, metric in zip(names, metrics, strict=True) if metric.form == "mean"]
    followed = next((name for name in (named.primary, named.right, *means) if name in means), None)
    write.replace(connection, "metrics", {"run": run}, {
        "position": np.arange(1, len(names) + 1),
        "metric": list(names),
        "form": [metric.form for metric in metrics],
        "higher_is_better": [metric.higher_is_better for metric in metrics],
        "followed": [name == followed for name in names],
    })  # fmt: skip


def keep_cells(connection: Connection, run: str, cells: dict[tuple[str, str], Cell]) -> None:
    """Every slice and metric: both sides, and the difference where there is a pair."""
    for side in ("candidate", "parent"):
        found = [(cell, getattr(cell, side)) for cell in cells.values() if getattr(cell, side) is not None]
        write.replace(connection, "summaries", {"run": run, "side": side}, {
            "slice": pa.array([cell.slice for cell, _ in found], pa.string()),
            "metric": pa.array([cell.metric for cell, _ in found], pa.string()),
            "value": pa.array([own.value for _, own in found], pa.float64()),
            "low": pa.array([_end(own, "low") for _, own in found], pa.float64()),
            "high": pa.array([_end(own, "high") for _, own in found], pa.float64()),
            "n_scored": pa.array([own.n_scored for _, own in found], pa.int64()),
            "n_total": pa.array([own.n_total for _, own in found], pa.int64()),
            "n_groups": pa.array([own.n_groups for _, own in found], pa.int64()),
        })  # fmt: skip
    paired = [(cell, cell.evidence) for cell in cells.values() if cell.evidence is not None]
    write.replace(connection, "deltas", {"run": run}, {
        "slice": pa.array([cell.slice for cell, _ in paired], pa.string()),
        "metric": pa.array([cell.metric for cell, _ in paired], pa.string()),
        "delta": pa.array([evidence.delta for _, evidence in paired], pa.float64()),
        "low": pa.array([_finite(evidence.interval.low) for _, evidence in paired], pa.float64()),
        "high": pa.array([_finite(evidence.interval.high) for _, evidence in paired], pa.float64()),
        "mde": pa.array([_finite(evidence.mde) for _, evidence in paired], pa.float64()),
        "n_cases": pa.array([evidence.n_cases for _, evidence in paired], pa.int64()),
        "n_groups": pa.array([evidence.n_groups for _, evidence in paired], pa.int64()),
        "n_changed_groups": pa.array([evidence.n_changed_groups for _, evidence in paired], pa.int64()),
    })  # fmt: skip


def keep_counts(
    connection: Connection,
    run: str,
    side: str,
    measured: Measured,
    cases: NDArray[np.bool_],
    primary: str,
) -> None:
    """How many promotion cases of one side were what."""
    applicable = measured.values[primary].status != Status.NOT_APPLICABLE
    counts = {
        "cases": int(cases.sum()),
        **{name: int(flag[cases].sum()) for name, flag in measured.flags.items()},
        "not-applicable": int((~applicable)[cases].sum()),
    }
    key = {"run": run, "side": side}
    write.replace(connection, "counts", key, {"name": list(counts), "count": list(counts.values())})


def keep_transitions(
    connection: Connection,
    run: str,
    lock: Lock,
    sides: dict[str, Measured],
    cases: NDArray[np.bool_],
) -> None:
    """A case is right where the criterion's metric is 1; two wrong answers are the same where both put one document
    first, or predict the same. Without a criterion there are no transitions.
    """
    write.remove(connection, "transitions", {"run": run})
    write.remove(connection, "transition_tests", {"run": run})
    criterion = lock.definition.metrics.right
    if "parent" not in sides or criterion is None:
        return
    candidate, parent = (sides[side].values[criterion] for side in ("candidate", "parent"))
    if not (isinstance(candidate, CaseValues) and isinstance(parent, CaseValues)):
        raise TypeError(f"{criterion} is no mean of cases")
    aligned = align(candidate, parent)
    asked = cases & (aligned.candidate_status != Status.NOT_APPLICABLE)
    first: Mapping[tuple[str, str], str | None] = (
        read_ranking.first_documents(connection, run)
        if lock.definition.task in RANKED
        else predictions(connection, run)
    )
    same = np.array(
        [first.get(("candidate", case)) == first.get(("parent", case)) for case in aligned.case_ids[asked]], dtype=bool
    )
    became = transitions(aligned.candidate[asked] > RIGHT, aligned.parent[asked] > RIGHT, same)
    write.append(connection, "transitions", {"run": run, "criterion": criterion}, {
        "case_id": pa.array(aligned.case_ids[asked], pa.string()),
        "transition": pa.array([str(each) for each in became], pa.string()),
    })  # fmt: skip
    _keep_tests(connection, run, lock, aligned.case_ids[asked], became)


def _keep_tests(
    connection: Connection, run: str, lock: Lock, case_ids: NDArray[np.object_], became: NDArray[np.object_]
) -> None:
    """Whether what moved in each slice fell to either side alike, by group."""
    named = dict(zip(lock.case_ids, lock.groups, strict=True))
    groups = np.unique([named[case] for case in case_ids], return_inverse=True)[1]
    within = {name: set(held) for name, held in members_of(connection, run, lock).items()}
    members = {ALL: np.ones(len(case_ids), dtype=bool)} | {
        name: np.array([case in held for case in case_ids], dtype=bool) for name, held in within.items()
    }
    found = {name: moved(became[held], groups[held]) for name, held in members.items() if held.any()}
    write.append(connection, "transition_tests", {"run": run}, {
        "slice": pa.array(list(found), pa.string()),
        "lost_groups": [each.lost for each in found.values()],
        "won_groups": [each.won for each in found.values()],
        "p": pa.array([each.p for each in found.values()], pa.float64()),
    })  # fmt: skip


def keep_decision(connection: Connection, run: str, decision: Decision, ordinal: int, policy: str) -> None:
    """Every rule with its evidence, and the decision they give under a policy."""
    rows = [astuple(result) for result in decision.rules]
    columns: dict[str, write.Column] = {
        name: pa.array([str(row[i]) if name == "outcome" else row[i] for row in rows])
        for i, name in enumerate(read.RULE_COLUMNS)
    }
    now = datetime.now(UTC).replace(tzinfo=None)
    write.replace(connection, "rules", {"run": run}, {"position": np.arange(1, len(rows) + 1), **columns})
    write.update(connection, "runs", {"run": run}, {
        "decision": str(decision.outcome),
        "exploratory": decision.exploratory,
        "reading": ordinal,
        "remarks": list(decision.remarks),
        "policy_digest": policy,
        "updated_at": now,
    })  # fmt: skip


def keep_remark(connection: Connection, run: str, remark: str) -> None:
    """One remark more on a decided run."""
    remarks = read.find_run(connection, run).remarks
    if remark not in remarks:
        write.update(connection, "runs", {"run": run}, {"remarks": [*remarks, remark]})


def _end(own: SideCell, name: str) -> float | None:
    return _finite(getattr(own.interval, name)) if own.interval else None


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
