"""A planted fault: a share of groups whose cases bring what a spoiled side brings, and how much a metric loses by it.

The pair is first exchanged at random by group, so that neither side is the better one; then, in every group that is
hit, the cases of the rule's slice bring what the spoiled side brings, in every metric. Every value is one that a
release can have: bounded metrics stay within their bounds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.compare.evidence import mde, standard_error
from harness.compare.exchange import exchanged
from harness.compare.form import statistic
from harness.compare.group import Bools, Floats
from harness.compare.scoreboard import Population
from harness.compare.statistic import Paired
from harness.gate.policy import Policy
from harness.output.contribution import CaseForecasts, CaseRanks, CaseRows, Contribution
from harness.output.value import CaseValues

PILOTS = 8
"""Plants from which the spread of a planted pair is taken."""
STEPS = 17
POWER = 0.8

Values = Mapping[str, Contribution]


@dataclass(frozen=True, slots=True)
class Target:
    """A rule that a fault is planted for. `bound`: what a floor holds the candidate to, None of a pair's delta.

    `worse` is -1 where a lower value fails the rule, 1 where a higher one does. `drop`: how much is to be lost, None
    for what the rule should see at its own one-sided `alpha`.
    """

    rule: str
    metric: str
    slice: str
    margin: float
    bound: float | None
    worse: float
    alpha: float
    drop: float | None


@dataclass(frozen=True, slots=True)
class Fault:
    """`drop`: how much the metric is to lose, in its own units; `share`: of groups that are hit for it. `reached`: what
    the share brings about on average, less than `drop` where even all groups together lose no more.
    """

    target: Target
    drop: float
    reached: float
    share: float

    @property
    def possible(self) -> bool:
        return self.reached >= self.drop - 1e-9 * max(1.0, abs(self.drop))


@dataclass(frozen=True, slots=True, eq=False)
class Triple:
    """Candidate, parent and the spoiled side: by metric, in the population's order, on one scale."""

    candidate: Values
    parent: Values
    spoiled: Values


def targets(policy: Policy, drop: float | None) -> tuple[Target, ...]:
    """The headline and floor rules; where there are none, the guards."""
    alpha = (1 - policy.uncertainty.level) / 2
    found = []
    for rule in policy.rules:
        if rule.kind == "invariant":
            continue
        falls = -1.0 if rule.metric not in policy.losses else 1.0
        worse = {"no-worse": falls, "at-least": -1.0, "at-most": 1.0}[rule.kind]
        bound = None if rule.kind == "no-worse" else float(rule.value or 0.0)
        found.append(Target(rule.id, rule.metric, rule.slice, float(rule.margin or 0.0), bound, worse, alpha, drop))
    if found:
        return tuple(found)
    margin = policy.guards.margin if policy.guards else 0.0
    alpha = (1 - policy.uncertainty.level) / max(1, len(policy.members))
    return tuple(
        Target(f"guard:{name}:{metric}", metric, name, margin, None,
               -1.0 if metric not in policy.losses else 1.0, alpha, drop)
        for name, metric in policy.members
    )  # fmt: skip


def fault(target: Target, population: Population, sides: Triple, rng: np.random.Generator) -> Fault | None:
    """The fault that makes the metric lose what the rule should see with a power of .8; None where the slice has no
    value of the metric on both sides.

    A no-worse rule and a guard should see a loss of their margin and the MDE more; a floor, a value that lies the MDE
    beyond its bound. The MDE is that of the pair with the fault in it, whose spread is larger than the pair's own: it
    is found from PILOTS plants, twice over. It never depends on the observed difference, which exchanging takes away.
    """
    lost = _losses(target, population, sides)
    if lost is None:
        return None
    start, lose = lost
    # Of a floor the fall begins at the value of the two sides mixed; of a pair, where both are alike.
    offset = target.margin if target.bound is None else (start - target.bound) * -target.worse
    if target.drop is not None:
        return _solved(target, target.drop if target.bound is None else offset + target.drop, lose)
    share = 0.0
    drop = offset
    for _ in range(3):
        error = _error(target, population, sides, share, rng)
        drop = offset + (mde(error, target.alpha, POWER) if np.isfinite(error) else 0.0)
        share = _solved(target, drop, lose).share
    return _solved(target, drop, lose)


def planted(
    exchanged_candidate: Values, sides: Triple, found: Fault, population: Population, hit: Bools
) -> dict[str, Contribution]:
    """The candidate [n cases] after its groups in hit [g] were spoiled, within the slice of the rule."""
    return exchanged(exchanged_candidate, sides.spoiled, _struck(found.target, population, sides, hit))


def _struck(target: Target, population: Population, sides: Triple, hit: Bools) -> Bools:
    usable = sides.spoiled[target.metric].scored
    return np.asarray(hit[population.groups] & population.slices[target.slice] & usable)


def _losses(target: Target, population: Population, sides: Triple) -> tuple[float, Callable[[Floats], Floats]] | None:
    """The metric of both sides mixed, and what it loses [b] when shares [b] of that mixture are spoiled."""
    candidate, parent, spoiled = (each[target.metric] for each in (sides.candidate, sides.parent, sides.spoiled))
    both = population.slices[target.slice] & candidate.scored & parent.scored
    if not both.any():
        return None
    there = both & spoiled.scored
    mixture = statistic(_stacked([(candidate, both), (parent, both), (spoiled, there)]))
    hittable = there[both].astype(np.float64)

    def value(shares: Floats) -> Floats:
        weights = []
        for share in shares:
            half = 0.5 * (1 - share * hittable)
            weights.append(np.concatenate([half, half, np.full(int(there.sum()), share)]))
        return mixture.of(np.array(weights))

    start = float(value(np.zeros(1))[0])
    if np.isnan(start):
        return None
    return start, lambda shares: (value(shares) - start) * target.worse


def _solved(target: Target, drop: float, lose: Callable[[Floats], Floats]) -> Fault:
    """The smallest share that loses the drop; where none does, the one that loses most."""
    if drop <= 0:
        return Fault(target, max(drop, 0.0), 0.0, 0.0)
    low, high = 0.0, 1.0
    for _ in range(3):
        shares = np.linspace(low, high, STEPS)
        lost = np.nan_to_num(lose(shares), nan=-np.inf)
        enough = np.flatnonzero(lost >= drop)
        if not len(enough):
            best = int(np.argmax(lost))
            return Fault(target, drop, max(0.0, float(lost[best])), float(shares[best]))
        low, high = shares[max(0, enough[0] - 1)], shares[enough[0]]
    return Fault(target, drop, float(lose(np.array([high]))[0]), float(high))


def _error(target: Target, population: Population, sides: Triple, share: float, rng: np.random.Generator) -> float:
    """The standard error that the rule would have with a share of groups hit: root mean square over PILOTS plants."""
    n_groups = int(population.groups.max()) + 1
    squares = []
    only = Triple(*({target.metric: each[target.metric]} for each in (sides.candidate, sides.parent, sides.spoiled)))
    for _ in range(PILOTS):
        swap, hit = rng.random(n_groups) < 0.5, rng.random(n_groups) < share
        ours, theirs = swapped(only, population, swap)
        ours = exchanged(ours, only.spoiled, _struck(target, population, only, hit))
        candidate, parent = ours[target.metric], theirs[target.metric]
        kept = population.slices[target.slice] & candidate.scored
        kept = kept & parent.scored if target.bound is None else kept
        if not kept.any():
            continue
        groups = population.groups[kept]
        own = statistic(candidate, kept)
        asked = own if target.bound is not None else Paired(own, statistic(parent, kept))
        squares.append(standard_error(asked, groups) ** 2)
    defined = [each for each in squares if np.isfinite(each)]
    return float(np.sqrt(np.mean(defined))) if defined else float("nan")


def swapped(
    sides: Triple, population: Population, swap: Bools
) -> tuple[dict[str, Contribution], dict[str, Contribution]]:
    """Candidate and parent after the groups in swap [g] exchanged what they bring."""
    mask = swap[population.groups]
    return exchanged(sides.candidate, sides.parent, mask), exchanged(sides.parent, sides.candidate, mask)


def _stacked(parts: list[tuple[Contribution, Bools]]) -> Contribution:
    """The scored cases of several sides in one, each as if it were a case of its own."""
    first = parts[0][0]
    status = np.concatenate([each.status[kept] for each, kept in parts])
    ids = np.concatenate([each.case_ids[kept] for each, kept in parts])
    if isinstance(first, CaseRows):
        rows = [each.rows[kept] for each, kept in parts if isinstance(each, CaseRows)]
        return replace(first, case_ids=ids, rows=np.concatenate(rows), status=status)
    if isinstance(first, CaseRanks | CaseForecasts):
        ranks = [(each.x[kept], each.y[kept]) for each, kept in parts if isinstance(each, CaseRanks | CaseForecasts)]
        x, y = (np.concatenate(each) for each in zip(*ranks, strict=True))
        return replace(first, case_ids=ids, x=x, y=y, status=status)
    values = [each.values[kept] for each, kept in parts if isinstance(each, CaseValues)]
    return replace(first, case_ids=ids, values=np.concatenate(values), status=status)
