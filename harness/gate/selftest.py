"""How often a gate blocks by chance, and how often it finds a loss: its own decision, made again on exchanged sides."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.compare.draw import DRAWN, SignFlips
from harness.compare.interval import Interval, wilson
from harness.compare.scoreboard import Population
from harness.compare.trial import Key, Manner, Sides, Wanted, boards
from harness.gate.decide import conclude, judge_many
from harness.gate.fault import Fault, Target, Triple, fault, planted, swapped, targets
from harness.gate.policy import Flags, Policy
from harness.output.decision import Outcome, RuleResult

CELLS_AT_ONCE = 1 << 24
"""Numbers of cases, over all cells of some trials, that are held at once."""


@dataclass(frozen=True, slots=True)
class RuleShare:
    """One rule over trials in which nothing had changed: the shares that it FAILed and left UNDECIDED. `exact`: it
    counts cases, and no chance is in it but whose they are.
    """

    rule: str
    exact: bool
    failed: float
    undecided: float


@dataclass(frozen=True, slots=True)
class Found:
    """A planted fault over all trials: the shares that the gate FAILed (`power`), that the rule itself did, and that
    were UNDECIDED. `fault` is None where the slice has no value of the metric to be worsened.
    """

    target: Target
    fault: Fault | None
    power: float
    by_rule: float
    undecided: float


@dataclass(frozen=True, slots=True)
class SelfTest:
    """`false_fail` and `undecided`: shares of trials in which nothing had changed. `power`: the lowest of all planted
    faults. Every share is of `trials` trials.
    """

    trials: int
    draws: int
    false_fail: float
    undecided: float
    power: float
    rules: tuple[RuleShare, ...]
    faults: tuple[Found, ...]
    n_groups: int

    def interval(self, share: float) -> Interval:
        """How far a share may be off because no more trials were made."""
        return wilson(round(share * self.trials), self.trials)


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A gate with the sides that it judged: what stays the same from trial to trial."""

    policy: Policy
    population: Population
    sides: Triple
    flags: Flags
    manner: Manner
    flips: SignFlips


def selftest(setting: Setting, *, trials: int, drop: float | None, rng: np.random.Generator) -> SelfTest:
    """Exchanges candidate and parent at random in whole groups, and decides anew, `trials` times; then the same with a
    fault planted for each headline and floor rule (without any, for each guard). See `fault` for what is planted;
    `drop` says how much is to be lost in place of what each rule should see: by the candidate against its parent, of
    a floor beyond its bound. The draws of intervals and p-values are the same in every trial, as a suite's seed has it.
    """
    streams = rng.spawn(3)
    n_groups = int(setting.population.groups.max()) + 1
    swaps = streams[0].random((trials, n_groups)) < 0.5
    null = list(_decided(setting, swaps, None, swaps))
    aims = targets(setting.policy, drop)
    faults = []
    for target, stream in zip(aims, streams[1].spawn(len(aims)), strict=True):
        found = fault(target, setting.population, setting.sides, stream)
        hits = stream.random((trials, n_groups)) < (found.share if found else 0.0)
        faults.append(_found(target, found, list(_decided(setting, swaps, found, hits)) if found else null))
    outcomes = [conclude(results) for results in null]
    return SelfTest(
        trials=trials,
        draws=setting.manner.resample.draws,
        false_fail=_share(outcomes, Outcome.FAIL),
        undecided=_share(outcomes, Outcome.UNDECIDED),
        power=min((each.power for each in faults), default=0.0),
        rules=_by_rule(null),
        faults=tuple(faults),
        n_groups=len(np.unique(setting.population.groups)),
    )


def _decided(
    setting: Setting, swaps: np.ndarray[tuple[int, int], np.dtype[np.bool_]], found: Fault | None,
    hits: np.ndarray[tuple[int, int], np.dtype[np.bool_]],
) -> Iterator[list[RuleResult]]:  # fmt: skip
    """One list of results a trial; so many trials at once as memory allows."""
    wanted = wanted_of(setting.policy)
    cases = len(setting.population.case_ids)
    at_once = max(1, min(DRAWN // setting.manner.resample.draws, CELLS_AT_ONCE // cases) // max(1, len(wanted.keys)))
    for start in range(0, len(swaps), at_once):
        sides, flags = [], []
        for swap, hit in zip(swaps[start : start + at_once], hits[start : start + at_once], strict=True):
            ours, theirs = swapped(setting.sides, setting.population, swap)
            if found is not None:
                ours = planted(ours, setting.sides, found, setting.population, hit)
            sides.append(Sides(ours, theirs))
            flags.append(_swapped_flags(setting, swap))
        cells = boards(setting.population, sides, wanted, setting.manner)
        yield from judge_many(setting.policy, setting.population, cells, flags, setting.flips)


def wanted_of(policy: Policy) -> Wanted:
    """The cells that a decision reads."""
    rules = [rule for rule in policy.rules if rule.kind != "invariant"]
    deltas = {(rule.slice, rule.metric) for rule in rules if rule.kind == "no-worse"}
    floors = {(rule.slice, rule.metric) for rule in rules if rule.kind != "no-worse"}
    keys: list[Key] = [*((rule.slice, rule.metric) for rule in rules), *policy.members]
    judged = [
        (name, policy.judged[metric])
        for name, metric in keys
        if policy.max_judged_gap is not None and metric in policy.judged
    ]
    return Wanted(tuple(dict.fromkeys([*keys, *judged])), frozenset(deltas), frozenset(floors))


def _swapped_flags(setting: Setting, swap: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Flags:
    mask = swap[setting.population.groups]
    ours, theirs = setting.flags.candidate, setting.flags.parent
    return Flags(
        {name: np.where(mask, theirs[name], flag) for name, flag in ours.items()},
        {name: np.where(mask, ours[name], flag) for name, flag in theirs.items()},
    )


def _found(target: Target, found: Fault | None, results: Sequence[Sequence[RuleResult]]) -> Found:
    outcomes = [conclude(each) for each in results]
    return Found(
        target=target,
        fault=found,
        power=_share(outcomes, Outcome.FAIL) if found else 0.0,
        by_rule=_rule_shares(results)[target.rule].failed if found else 0.0,
        undecided=_share(outcomes, Outcome.UNDECIDED),
    )


def _by_rule(results: Sequence[Sequence[RuleResult]]) -> tuple[RuleShare, ...]:
    return tuple(_rule_shares(results).values())


def _rule_shares(results: Sequence[Sequence[RuleResult]]) -> Mapping[str, RuleShare]:
    by_rule: dict[str, list[RuleResult]] = {}
    for trial in results:
        for result in trial:
            by_rule.setdefault(result.id, []).append(result)
    shares = {}
    for rule, each in by_rule.items():
        outcomes = [result.outcome for result in each]
        exact = each[0].kind == "invariant"
        shares[rule] = RuleShare(rule, exact, _share(outcomes, Outcome.FAIL), _share(outcomes, Outcome.UNDECIDED))
    return shares


def _share(outcomes: Sequence[Outcome], outcome: Outcome) -> float:
    return sum(each is outcome for each in outcomes) / len(outcomes)
