"""`harness decide`: measure and decide a stored run again; no model is loaded."""

import time
from dataclasses import asdict, astuple
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.compare.align import align
from harness.compare.draw import Resample
from harness.compare.scoreboard import Cell, Population, SideCell, scoreboard
from harness.compare.transition import transitions
from harness.errors import NotFound
from harness.gate import exposure, waiver
from harness.gate.decide import conclude, judge, name_findings
from harness.gate.policy import Flags, Policy, Subject
from harness.metric.name import parse
from harness.output.answer import Answer
from harness.output.decision import Decision, Outcome, RuleResult
from harness.output.value import Status
from harness.store import read, write
from harness.store.connection import Connection
from harness.suite.lock import LOCK, Lock, parse_lock, read_lock
from harness.verb.answer import answer
from harness.verb.measure import CRITERION, Measured, judged_name, measure
from harness.verb.place import Place, find_place

# A value of 1 but for rounding.
RIGHT = 1 - 1e-9
RULE_FIELDS = tuple(RuleResult.__dataclass_fields__)


def decide(run: str, *, store: str | None = None) -> Answer:
    """Measures a stored run and decides it under the suite's present lock.

    Where that lock has other rules, slices or margins than the one under which these outcomes were first read, the
    decision is exploratory. Raises NotFound for a run or a suite folder that isn't there.
    """
    place = find_place(store=store)
    with place.store.reading() as connection:
        record = read.find_run(connection, run)
        then = parse_lock(read.lock_text(connection, record.suite_digest).encode("utf-8"), f"the lock of run {run}")
    folder = place.root / record.suite_place
    if not (folder / LOCK).is_file():
        raise NotFound(
            str(folder),
            found="the suite's folder or its lock is gone",
            expected="the suite: its exposures and waivers bear on a decision",
            mend="Put it back where the run found it.",
        )
    now = read_lock(folder)
    decide_run(place, record.run, folder, now if now.data_digest == then.data_digest else then)
    return answer(place, record.run)


def decide_run(place: Place, run: str, suite_folder: Path, lock: Lock) -> Decision:
    """Measures both sides, judges every rule and stores it all in one transaction.

    The run is entered into the suite's exposures before any promotion outcome is read.
    """
    started = time.perf_counter()
    waivers = waiver.read(suite_folder, datetime.now(UTC))
    with place.store.reading() as connection:
        releases = read.releases(connection, run)
        cases = read.cases(connection, read.find_run(connection, run).suite_digest)
    subject = Subject(
        data=lock.data_digest,
        candidate=releases["candidate"].content_id,
        parent=releases["parent"].content_id if "parent" in releases else None,
    )
    reading = exposure.record(suite_folder, exposure.Exposure(run=run, policy=lock.policy_digest, **asdict(subject)))
    policy = _policy(lock)
    with place.store.writing() as connection:
        sides = {side: measure(connection, run, side, each.release, lock) for side, each in releases.items()}
        promotion = cases.roles == "promotion"
        population = Population.of(
            cases.case_ids[promotion],
            cases.groups[promotion],
            {each.name: set(lock.slices[each.name]) for each in lock.definition.slices},
        )
        seeds = np.random.default_rng(lock.definition.uncertainty.seed).spawn(2)
        cells = scoreboard(
            population,
            sides["candidate"].values,
            sides["parent"].values if "parent" in sides else None,
            resample=Resample.draw(population.n_groups(promotion[promotion]), policy.uncertainty.draws, seeds[0]),
            method=policy.uncertainty.method,
            level=policy.uncertainty.level,
        )
        flags = _flags(sides, promotion)
        results = name_findings(judge(policy, population, cells, flags, seeds[1]), subject)
        results = list(waiver.apply(results, waivers, str(suite_folder / waiver.FILE)))
        if policy.budget is not None and reading.ordinal > policy.budget:
            results.append(_over_budget(reading.ordinal, policy.budget))
        decision = Decision(
            conclude(results),
            reading.changed_policy,
            tuple(results),
            _remarks(lock, releases, reading, read.remarks(connection, run)),
        )
        _store_cells(connection, run, cells)
        for side, measured in sides.items():
            _store_counts(connection, run, side, measured, promotion, lock.definition.metrics.primary)
        _store_transitions(connection, run, CRITERION, sides, promotion)
        _store_decision(connection, run, decision, reading.ordinal, lock)
        write.finish(connection, run, "decided", time.perf_counter() - started)
    return decision


def _policy(lock: Lock) -> Policy:
    definition = lock.definition
    names = definition.metric_names
    return Policy(
        rules=tuple(definition.rules),
        guards=definition.guards,
        guarded=definition.guarded_slices,
        uncertainty=definition.uncertainty,
        critical=frozenset(each.name for each in definition.slices if each.critical),
        min_support={each.name: each.min_support for each in definition.slices},
        missing=definition.cases.missing,
        max_judged_gap=definition.ranking.max_judged_gap,
        budget=definition.budget.promotion_reads,
        judged={name: judged_name(name, lock) for name in names},
        span={name: parse(name).span for name in names},
    )


def _flags(sides: dict[str, Measured], promotion: NDArray[np.bool_]) -> Flags:
    candidate = {name: flag[promotion] for name, flag in sides["candidate"].flags.items()}
    none = np.zeros(int(promotion.sum()), dtype=bool)
    return Flags(candidate, sides["parent"].flags["missing"][promotion] if "parent" in sides else none)


def _over_budget(ordinal: int, budget: int) -> RuleResult:
    return RuleResult(
        id="always:budget", kind="invariant", metric="promotion_reads", slice="all", outcome=Outcome.UNDECIDED,
        reason=f"reading {ordinal} of these promotion outcomes; the suite allows {budget}", critical=True,
        value=float(ordinal), margin=float(budget),
    )  # fmt: skip


def _remarks(
    lock: Lock, releases: dict[str, read.ReleaseRecord], reading: exposure.Reading, met: tuple[str, ...]
) -> tuple[str, ...]:
    remarks = []
    if reading.changed_policy:
        remarks.append(
            "Exploratory: rules, slices, margins or metrics are not those under which this candidate's promotion "
            "outcomes were first read."
        )
    if "parent" not in releases:
        left = sum(rule.kind == "no-worse" for rule in lock.definition.rules)
        guards = len(lock.definition.guarded_slices) * len(
            lock.definition.guards.metrics if lock.definition.guards else []
        )
        remarks.append(f"No parent: {left} no-worse rules and {guards} guards were not judged, so there is no bundle.")
    if len({each.interaction == "recorded" for each in releases.values()}) > 1:
        remarks.append("One side is recorded: its tuple is declared, not observed, and the two are not parity-proven.")
    return (*remarks, *met)


def _store_cells(connection: Connection, run: str, cells: dict[tuple[str, str], Cell]) -> None:
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


def _store_counts(
    connection: Connection,
    run: str,
    side: str,
    measured: Measured,
    cases: NDArray[np.bool_],
    primary: str,
) -> None:
    applicable = measured.values[primary].status != Status.NOT_APPLICABLE
    counts = {
        "cases": int(cases.sum()),
        **{name: int(flag[cases].sum()) for name, flag in measured.flags.items()},
        "not-applicable": int((~applicable)[cases].sum()),
    }
    key = {"run": run, "side": side}
    write.replace(connection, "counts", key, {"name": list(counts), "count": list(counts.values())})


def _store_transitions(
    connection: Connection,
    run: str,
    criterion: str,
    sides: dict[str, Measured],
    cases: NDArray[np.bool_],
) -> None:
    """A case is right where the criterion's metric is 1; two wrong answers are the same where both put one first."""
    write.remove(connection, "transitions", {"run": run})
    if "parent" not in sides:
        return
    candidate, parent = (sides[side].values[criterion] for side in ("candidate", "parent"))
    aligned = align(candidate, parent)
    asked = cases & (aligned.candidate_status != Status.NOT_APPLICABLE)
    first = read.first_documents(connection, run)
    same = np.array(
        [first.get(("candidate", case)) == first.get(("parent", case)) for case in aligned.case_ids[asked]], dtype=bool
    )
    became = transitions(aligned.candidate[asked] > RIGHT, aligned.parent[asked] > RIGHT, same)
    write.append(connection, "transitions", {"run": run, "criterion": criterion}, {
        "case_id": pa.array(aligned.case_ids[asked], pa.string()),
        "transition": pa.array([str(each) for each in became], pa.string()),
    })  # fmt: skip


def _store_decision(connection: Connection, run: str, decision: Decision, ordinal: int, lock: Lock) -> None:
    rows = [astuple(result) for result in decision.rules]
    columns: dict[str, write.Column] = {
        name: pa.array([str(row[i]) if name == "outcome" else row[i] for row in rows])
        for i, name in enumerate(RULE_FIELDS)
    }
    write.replace(connection, "rules", {"run": run}, {"position": np.arange(1, len(rows) + 1), **columns})
    connection.execute(
        """UPDATE runs SET decision = ?, exploratory = ?, reading = ?, remarks = ?, policy_digest = ? WHERE run = ?""",
        [str(decision.outcome), decision.exploratory, ordinal, list(decision.remarks), lock.policy_digest, run],
    )


def _end(own: SideCell, name: str) -> float | None:
    return _finite(getattr(own.interval, name)) if own.interval else None


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
