"""`harness decide`: measure and decide a stored run again; no model is loaded."""

import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.compare.draw import Resample
from harness.compare.scoreboard import ALL, Population, scoreboard
from harness.errors import Misconfigured, NotFound
from harness.gate import exposure, waiver
from harness.gate.check import jackknife_remarks
from harness.gate.decide import conclude, judge, name_findings
from harness.gate.policy import Flags, Policy, Subject
from harness.identity import Json
from harness.lifecycle.state import State, advance
from harness.metric.name import parse
from harness.output.answer import Answer
from harness.output.decision import Decision, Outcome, RuleResult
from harness.output.exposure import Exposure
from harness.run.record import record_policy
from harness.store import read, read_ranking, write
from harness.store.connection import Connection
from harness.suite.definition import RANKED
from harness.suite.freeze import scorers
from harness.suite.lock import LOCK, Lock, read_lock
from harness.verb.abstention import abstention_remarks
from harness.verb.answer import answer, stored_lock
from harness.verb.bundle import unmet, write_bundle
from harness.verb.keep import keep_cells, keep_counts, keep_decision, keep_metrics, keep_remark, keep_transitions
from harness.verb.measure import Measured, judged_name, keep_companions, measure
from harness.verb.measure_task import measure_task
from harness.verb.parameter import calibrator_of, decision_parameters, threshold_of
from harness.verb.place import Place, find_place
from harness.verb.remark import (
    candidate_remarks,
    ceiling_remarks,
    parameter_remarks,
    parent_remark,
    reading_remarks,
    side_remarks,
)
from harness.verb.report import write_report
from harness.verb.slices import fix_slices
from harness.verb.space import keep_ranking_diagnostics
from harness.verb.task.calibration import ranked_companions

OTHER_DATA = "The suite's data changed since this run; it is decided under the lock that it was run under."


def decide(run: str, *, store: str | None = None) -> Answer:
    """Measures a stored run and decides it under the suite's present lock; the report follows the decision.

    Where that lock has other rules, slices or margins than the one under which these outcomes were first read, the
    decision is exploratory. Where its data are others, the run's own lock decides, and the decision says so.
    Raises NotFound for a run or a suite folder that isn't there, Misconfigured for a lock of other scorers.
    """
    place = find_place(store=store)
    with place.store.reading() as connection:
        record = read.find_run(connection, run)
        lock = stored_lock(connection, record.suite_digest)
    folder = place.root / record.suite_place
    if not (folder / LOCK).is_file():
        raise NotFound(
            str(folder), found="the suite's folder or its lock is gone",
            expected="the suite, whose exposures and waivers bear on a decision",
            mend="Put it back where the run found it.",
        )  # fmt: skip
    now = read_lock(folder)
    same_data = now.data_digest == lock.data_digest
    decide_run(place, record.run, folder, now if same_data else lock, () if same_data else (OTHER_DATA,))
    return conclude_run(place, record.run)


def conclude_run(place: Place, run: str, *, bundling: bool = False) -> Answer:
    """What follows from a decision: on PASS the state EVALUATED and, where asked, the bundle; always the report."""
    found = answer(place, run)
    if found.decision.outcome is Outcome.PASS and not found.decision.exploratory:
        with place.store.reading() as connection:
            candidate = read.releases(connection, run)["candidate"]
        shown: dict[str, Json] = {"run": run, "suite": found.suite_digest, "name": found.suite}
        advance(place.root / candidate.place, candidate.content_id, State.EVALUATED, shown)
        lacking = unmet(place, found) if found.parent else ()
        if lacking:
            with place.store.writing() as connection:
                keep_remark(connection, run, f"Not yet a CANDIDATE: it lacks {', and '.join(lacking)}.")
        try:
            if bundling and found.parent and not lacking:
                write_bundle(place, found)
        finally:
            write_report(place, answer(place, run))
    else:
        write_report(place, found)
    return answer(place, run)


def decide_run(place: Place, run: str, suite_folder: Path, lock: Lock, remarks: tuple[str, ...] = ()) -> Decision:
    """Measures both sides, judges every rule and stores it all in one transaction.

    The run is entered into the suite's exposures before any promotion outcome is read.
    Raises Misconfigured for a lock frozen under metrics of another version.
    """
    present = scorers(lock.definition.task)
    if lock.scorers != present:
        raise Misconfigured(
            f"run {run[:12]}", found=f"frozen under metrics of version {lock.scorers}", expected=f"version {present}",
            mend="Freeze the suite again and run both releases under it.",
        )  # fmt: skip
    started = time.perf_counter()
    waivers = waiver.read(suite_folder, datetime.now(UTC))
    with place.store.reading() as connection:
        releases = read.releases(connection, run)
        cases = read.cases(connection, read.find_run(connection, run).suite_digest)
        outcomes = read.outcomes_digest(connection, run)
        remembered = read.exposures(connection, lock.data_digest)
    parameters = exposure.parameters_text(decision_parameters(releases["candidate"]))
    subject = Subject(
        data=lock.data_digest,
        candidate=releases["candidate"].content_id,
        parent=releases["parent"].content_id if "parent" in releases else None,
    )
    exposed = Exposure(run=run, policy=lock.policy_digest, outcomes=outcomes, parameters=parameters, **asdict(subject))
    reading = exposure.record(suite_folder, exposed, remembered)
    policy = policy_of(lock)
    with place.store.writing() as connection:
        record_policy(connection, run, lock)
        if exposed not in remembered:
            write.append(connection, "exposures", {}, {name: [value] for name, value in asdict(exposed).items()})
        members = fix_slices(connection, run, lock)
        sides = _measured(connection, run, releases, lock)
        promotion = cases.roles == "promotion"
        population = population_of(cases, members)
        seeds = np.random.default_rng(lock.definition.uncertainty.seed).spawn(2)
        cells = scoreboard(
            population,
            sides["candidate"].values,
            sides["parent"].values if "parent" in sides else None,
            resample=Resample.draw(population.n_groups(population.slices[ALL]), policy.uncertainty.draws, seeds[0]),
            method=policy.uncertainty.method,
            level=policy.uncertainty.level,
            bounds={name: (parse(name).lowest, parse(name).highest) for name in sides["candidate"].values},
        )
        flags = flags_of(sides, promotion)
        results = name_findings(judge(policy, population, cells, flags, seeds[1]), subject)
        results = list(
            waiver.apply(results, waivers, read.findings_besides(connection, run), waiver.places(suite_folder, waivers))
        )
        if policy.budget is not None and reading.ordinal > policy.budget:
            results.append(_over_budget(reading.ordinal, policy.budget))
        decision = Decision(
            conclude(results),
            reading.exploratory,
            tuple(results),
            (
                *remarks,
                *reading_remarks(reading),
                *side_remarks(releases, lock),
                *parent_remark(place, releases, lock),
                *parameter_remarks(connection, releases, lock),
                *abstention_remarks(lock, releases, sides, promotion),
                *candidate_remarks(read_ranking.candidate_sets(connection, run)),
                *ceiling_remarks(sides, promotion),
                *jackknife_remarks(policy, cells),
                *read.remarks(connection, run),
                *read.training_remarks(connection, run),
            ),
        )
        keep_ranking_diagnostics(connection, run, sides, lock)
        keep_metrics(connection, run, lock.definition.metrics, tuple(sides["candidate"].values))
        keep_cells(connection, run, cells)
        for side, measured in sides.items():
            keep_counts(connection, run, side, measured, promotion, lock.definition.metrics.primary)
        keep_transitions(connection, run, lock, sides, promotion)
        keep_decision(connection, run, decision, reading.ordinal, lock.policy_digest)
        write.finish(connection, run, "decided", time.perf_counter() - started)
    return decision


def _measured(
    connection: Connection, run: str, releases: dict[str, read.ReleaseRecord], lock: Lock
) -> dict[str, Measured]:
    suite = read.find_run(connection, run).suite_digest
    if lock.definition.task not in RANKED:
        return measure_task(connection, run, suite, releases, lock)
    marks = read.case_marks(connection, suite)
    sides = {}
    for side, each in releases.items():
        threshold_of(each, lock, marks)
        sides[side] = measure(connection, run, side, each.release, lock)
        calibrator = calibrator_of(each, lock, marks)
        told = ranked_companions(connection, run, side, lock, calibrator, sides[side].stated)
        keep_companions(connection, run, side, tuple(told))
    return sides


def policy_of(lock: Lock) -> Policy:
    """What a frozen suite demands, as the gate reads it."""
    definition = lock.definition
    names = definition.metric_names
    return Policy(
        rules=tuple(definition.rules),
        guards=definition.guards,
        guarded=lock.guarded,
        uncertainty=definition.uncertainty,
        critical=frozenset(each.name for each in lock.declared if each.critical),
        min_support={each.name: each.min_support for each in lock.declared},
        missing=definition.cases.missing,
        max_judged_gap=definition.ranking.max_judged_gap,
        budget=definition.budget.promotion_reads,
        judged={name: judged_name(name, lock) for name in names} if definition.task in RANKED else {},
        span={name: parse(name).span for name in names},
        losses=frozenset(name for name in names if not parse(name).higher_is_better),
    )


def population_of(cases: read.CaseRows, members: Mapping[str, Collection[str]]) -> Population:
    """The promotion cases with their groups and slices."""
    promotion = cases.roles == "promotion"
    return Population.of(
        cases.case_ids[promotion],
        cases.groups[promotion],
        {name: set(ids) for name, ids in members.items()},
    )


def flags_of(sides: Mapping[str, Measured], promotion: NDArray[np.bool_]) -> Flags:
    """What happened to each promotion case besides its values."""
    none = dict.fromkeys(sides["candidate"].flags, np.zeros(int(promotion.sum()), dtype=bool))
    found = {side: {name: flag[promotion] for name, flag in each.flags.items()} for side, each in sides.items()}
    return Flags(found["candidate"], found.get("parent", none))


def _over_budget(ordinal: int, budget: int) -> RuleResult:
    return RuleResult(
        id="always:budget", kind="invariant", metric="promotion_reads", slice="all", outcome=Outcome.UNDECIDED,
        reason=f"reading {ordinal} of these promotion outcomes; the suite allows {budget}", critical=True,
        value=float(ordinal), margin=float(budget),
    )  # fmt: skip
