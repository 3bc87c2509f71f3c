"""`harness selftest`: how often a suite's gate would block by chance, and how often it would miss a loss."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.compare.draw import Resample, SignFlips
from harness.compare.exchange import on_one_scale
from harness.compare.scoreboard import ALL, Population, by_content, in_order
from harness.compare.trial import Manner
from harness.errors import Misconfigured
from harness.gate.decide import FEWEST_GROUPS
from harness.gate.fault import Triple, targets
from harness.gate.policy import Policy
from harness.gate.selftest import Found, SelfTest, Setting
from harness.gate.selftest import selftest as simulated
from harness.identity import Json
from harness.metric.name import parse
from harness.output.contribution import Contribution
from harness.report import number
from harness.report.text import visible
from harness.store import read
from harness.store.connection import Connection
from harness.suite.definition import RANKED, Task
from harness.suite.freeze import scorers
from harness.suite.lock import Lock
from harness.verb.answer import stored_lock
from harness.verb.decide import flags_of, policy_of, population_of
from harness.verb.measure import Measured, measured
from harness.verb.measure_task import asked_sides
from harness.verb.measure_task import measured as measured_task
from harness.verb.place import find_place
from harness.verb.slices import members_of
from harness.verb.spoil import judged_only, spoiled_outputs, spoiled_rankings

TRIALS = 300
MOST_TRIALS = 100_000
SEED = 1

SPOILED: dict[Task, str] = {
    "retrieval": "ranked no relevant document",
    "reranking": "ranked no relevant document",
    "classification": "scored each case's labels the other way round",
    "multilabel": "scored each case's labels the other way round",
    "multiple-choice": "scored each case's choices the other way round",
    "regression": "given the highest number where it gave the lowest, and so on",
    "similarity": "given the highest number where it gave the lowest, and so on",
    "entity": "found no entity",
    "answer": "given another question's answer",
}
"""What a planted fault is, by task."""


@dataclass(frozen=True, slots=True)
class Tested:
    """The self-test of one run's gate; `run` is its whole ID."""

    run: str
    suite: str
    task: Task
    found: SelfTest

    def as_record(self) -> dict[str, Json]:
        return {"false_fail": self.found.false_fail, "undecided": self.found.undecided, "power": self.found.power}

    @property
    def text(self) -> str:
        """The shares with what they are made of, for a reader."""
        return "\n".join(visible(line) for line in _lines(self))


def selftest(
    run: str, *, trials: int = TRIALS, drop: float | None = None, seed: int = SEED, store: str | None = None
) -> Tested:
    """Makes a decided run's decision again `trials` times with candidate and parent exchanged at random by group, and
    as often with a loss planted for each headline and floor rule. Reads the store alone, and writes nothing.

    `drop`: what the planted loss is to be, in the metric's units: of the candidate against its parent, of a floor
    beyond its bound. Left out, each rule's own: its margin and the smallest loss beyond it that it should see four
    times in five. Waivers, readings and what makes a decision exploratory are left aside.
    Raises NotFound for a run that isn't there, Misconfigured for one without a parent or decision, a policy that no
    loss can fail, and numbers out of range.
    """
    _check_numbers(trials, drop, seed)
    with find_place(store=store).store.reading() as connection:
        record = read.find_run(connection, run)
        lock = stored_lock(connection, record.suite_digest)
        policy = policy_of(lock)
        _check_run(record, lock, policy)
        cases = read.cases(connection, record.suite_digest)
        members = members_of(connection, record.run, lock)
        sides, spoiled = _sides(connection, record, lock, np.random.default_rng(seed))
    setting = _setting(lock, policy, population_of(cases, members), sides, spoiled, cases.roles == "promotion")
    rng = np.random.default_rng(seed)
    return Tested(record.run, record.suite, lock.definition.task, simulated(setting, trials=trials, drop=drop, rng=rng))


def _sides(
    connection: Connection, record: read.RunRecord, lock: Lock, rng: np.random.Generator
) -> tuple[dict[str, Measured], dict[str, Contribution]]:
    """Both sides as they are measured, and what the candidate would bring had it answered at random."""
    releases = read.releases(connection, record.run)
    if lock.definition.task in RANKED:
        sides = {side: measured(connection, record.run, side, lock) for side in releases}
        values = sides["candidate"].values
        ruled = frozenset(each.metric for each in targets(policy_of(lock), None))
        promotion = np.array([each == "promotion" for each in lock.roles], dtype=bool)
        return sides, spoiled_rankings(sides["candidate"], judged_only(values, ruled), promotion)
    asked = asked_sides(connection, record.run, record.suite_digest, releases, lock)
    sides = {side: measured_task(each, lock)[1] for side, each in asked.items()}
    worse = spoiled_outputs(asked["candidate"], lock.definition.task, rng)
    return sides, measured_task(worse, lock)[1].values


def _setting(
    lock: Lock,
    policy: Policy,
    population: Population,
    sides: dict[str, Measured],
    spoiled: dict[str, Contribution],
    promotion: NDArray[np.bool_],
) -> Setting:
    """The gate as `decide` has it: the suite's own draws, groups in the order of what they hold."""
    names = list(spoiled)
    values = [
        in_order(population, each, names) for each in (sides["candidate"].values, sides["parent"].values, spoiled)
    ]
    population = replace(population, groups=by_content(population, values[:2]))
    seeds = np.random.default_rng(policy.uncertainty.seed).spawn(2)
    n_groups = population.n_groups(population.slices[ALL])
    return Setting(
        policy=policy,
        population=population,
        sides=Triple(*on_one_scale(values, like=(0, 1, 0))),
        flags=flags_of(sides, promotion),
        manner=Manner(
            resample=Resample.draw(n_groups, policy.uncertainty.draws, seeds[0]),
            method=policy.uncertainty.method,
            level=policy.uncertainty.level,
            bounds={name: (parse(name).lowest, parse(name).highest) for name in names},
        ),
        flips=SignFlips.draw(n_groups, policy.uncertainty.draws, seeds[1]),
    )


def _check_numbers(trials: int, drop: float | None, seed: int) -> None:
    if not 1 <= trials <= MOST_TRIALS:
        raise Misconfigured(
            "--trials", found=str(trials), expected=f"a whole number from 1 to {MOST_TRIALS}", mend="Correct it."
        )
    if drop is not None and not (np.isfinite(drop) and drop > 0):
        raise Misconfigured(
            "--drop", found=f"{drop}", expected="a loss above 0, in the metric's units",
            mend="Correct it, or leave it out for each rule's own.",
        )  # fmt: skip
    if seed < 0:
        raise Misconfigured("--seed", found=str(seed), expected="a whole number from 0", mend="Correct it.")


def _check_run(record: read.RunRecord, lock: Lock, policy: Policy) -> None:
    present = scorers(lock.definition.task)
    if record.decision is None:
        raise _refusal(record, "a run that was not finished", "a decided run", "Give the same `harness run` again.")
    if record.parent is None:
        raise _refusal(
            record, "no parent, so nothing to exchange the candidate with", "a run of two releases",
            "Run the candidate against its parent.",
        )  # fmt: skip
    if lock.scorers != present:
        raise _refusal(
            record, f"frozen under metrics of version {lock.scorers}", f"version {present}",
            "Freeze the suite again and run both releases under it.",
        )  # fmt: skip
    if not targets(policy, None):
        raise _refusal(
            record, "a policy of invariants alone, which no loss can fail", "a headline or floor rule, or guards",
            "Declare one, and freeze the suite again.",
        )  # fmt: skip
    if "promotion" not in lock.roles:
        raise _refusal(record, "no case of the promotion role", "cases to exchange", "Give cases that role.")


def _refusal(record: read.RunRecord, found: str, expected: str, mend: str) -> Misconfigured:
    return Misconfigured(f"run {record.run[:12]}", found=found, expected=expected, mend=mend)


def _lines(tested: Tested) -> Iterator[str]:
    found = tested.found
    yield (
        f"{tested.suite}, run {tested.run[:12]}: the decision made again {number.plural(found.trials, 'time')} with "
        f"candidate and parent exchanged at random in each of {number.plural(found.n_groups, 'group')}; "
        f"{number.count(found.draws)} draws each."
    )
    if found.n_groups < FEWEST_GROUPS:
        yield f"With fewer than {FEWEST_GROUPS} groups no headline or floor rule decides anything."
    yield ""
    yield f"nothing changed   FAIL {_shown(found, found.false_fail)}, UNDECIDED {_shown(found, found.undecided)}"
    for each in found.rules:
        if each.failed or each.undecided:
            yield f"  {each.rule}: FAIL {each.failed:.3f}, UNDECIDED {each.undecided:.3f}"
        if each.exact and each.failed:
            yield "    a count is no chance: what one side breaks stays broken, whichever it is called"
    yield ""
    yield f"a planted loss    FAIL {_shown(found, found.power)}{', the lowest of these' if found.faults[1:] else ''}"
    for one in found.faults:
        yield f"  {one.target.rule}: {_planted(one)}"
    yield ""
    yield (
        "Planted: in a random share of groups, the cases of the rule's slice bring, in every metric, what they would "
        f"had the candidate {SPOILED[tested.task]}; the observed difference has no part in it, for exchanging takes it "
        "away."
    )


def _planted(one: Found) -> str:
    target, fault = one.target, one.fault
    if fault is None:
        return f"{target.metric} has no value on {target.slice}, so nothing can be planted"
    if fault.share == 0:
        return (
            f"{target.metric} is beyond its bound without any loss; FAIL {one.power:.3f}, UNDECIDED {one.undecided:.3f}"
        )
    loss = f"{target.metric} on {target.slice} worse by {fault.drop:.4g}"
    if not fault.possible:
        loss += f" cannot be; by {fault.reached:.4g}"
    return (
        f"{loss} ({fault.share:.1%} of groups hit); FAIL {one.power:.3f}, by this rule {one.by_rule:.3f}, "
        f"UNDECIDED {one.undecided:.3f}"
    )


def _shown(found: SelfTest, share: float) -> str:
    interval = found.interval(share)
    return f"{share:.3f} [{interval.low:.3f}, {interval.high:.3f}]"
