"""The embedded suite's policy under simulation: `OMP_NUM_THREADS=1 python benchmarks/bench_policy.py [--runs N]`.

Its groups, slices, rules, guards and draws, as `suites/help-center` has them frozen; made-up sides. A question is as
hard as its article and as itself, and each side answers it by itself: nothing is changed, and no draw is used twice.
Then the candidate ranks nothing relevant in a share of articles, the share by which the headline's metric loses its
margin and 2.80 of the standard deviations that the deltas of such runs have: what it should see four times in five.
"""

import argparse
from pathlib import Path

import numpy as np

from harness.compare.draw import Resample, SignFlips
from harness.compare.interval import wilson
from harness.compare.scoreboard import Population
from harness.compare.trial import Manner, Sides, boards
from harness.gate.decide import conclude, judge_many
from harness.gate.policy import Flags, Policy
from harness.gate.selftest import wanted_of
from harness.output.decision import Outcome, RuleResult
from harness.output.value import CaseValues, Status
from harness.suite.lock import read_lock
from harness.verb.decide import policy_of

SUITE = Path(__file__).parents[1] / "suites" / "help-center"
AT_ONCE = 50


class Synthetic:
    """Pairs of sides over the promotion cases of a frozen suite; values are in [0, 1], as a gain of ranks is."""

    def __init__(self, suite: Path) -> None:
        lock = read_lock(suite)
        self.policy: Policy = policy_of(lock)
        promotion = np.array(lock.roles, dtype=object) == "promotion"
        self.population = Population.of(
            np.array(lock.case_ids, dtype=object)[promotion],
            np.array(lock.groups, dtype=object)[promotion],
            {each.name: set(lock.slices[each.name]) for each in lock.definition.slices},
        )
        self.n, self.n_groups = int(promotion.sum()), int(self.population.groups.max()) + 1
        self.metrics = sorted({metric for _, metric in wanted_of(self.policy).keys})

    def pair(self, rng: np.random.Generator, share: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Candidate and parent [n]: reciprocal ranks, of a rank that is geometric with the question's own chance."""
        hard = rng.normal(1.0, 1.0, self.n_groups)[self.population.groups] + rng.normal(0, 1.0, self.n)
        ranks = rng.geometric(1 / (1 + np.exp(-hard)), (2, self.n))
        candidate, parent = np.where(ranks <= 10, 1 / ranks, 0.0)
        return np.where(rng.random(self.n_groups)[self.population.groups] < share, 0.0, candidate), parent

    def decided(self, runs: int, share: float, rng: np.random.Generator) -> list[list[RuleResult]]:
        """Each run under draws of its own."""
        none = dict.fromkeys(("missing", "failed", "non-finite"), np.zeros(self.n, dtype=bool))
        found = []
        for _ in range(-(-runs // AT_ONCE)):
            pairs = [self.pair(rng, share) for _ in range(AT_ONCE)]
            sides = [
                Sides(*({name: self._values(name, each) for name in self.metrics} for each in pair)) for pair in pairs
            ]
            draws = self.policy.uncertainty.draws
            manner = Manner(
                Resample.draw(self.n_groups, draws, rng), self.policy.uncertainty.method,
                self.policy.uncertainty.level, {},
            )  # fmt: skip
            cells = boards(self.population, sides, wanted_of(self.policy), manner)
            flips = SignFlips.draw(self.n_groups, draws, rng)
            found += judge_many(self.policy, self.population, cells, [Flags(none, none)] * AT_ONCE, flips)
        return found[:runs]

    def share_for(self, rule: str, power_z: float, rng: np.random.Generator) -> tuple[float, float]:
        """The share of articles, and the loss, at which a no-worse rule should fail with its stated power."""
        asked = next(each for each in self.policy.rules if each.id == rule)
        members = self.population.slices[asked.slice]
        for share in np.arange(0.02, 1.0, 0.02):
            deltas = np.array([np.subtract(*self.pair(rng, share))[members].mean() for _ in range(300)])
            if -deltas.mean() >= float(asked.margin or 0) + power_z * deltas.std():
                return float(share), -float(deltas.mean())
        return 1.0, float("nan")

    def _values(self, metric: str, numbers: np.ndarray) -> CaseValues:
        return CaseValues(metric, self.population.case_ids, numbers, np.full(self.n, Status.SCORED))


def shown(count: int, runs: int) -> str:
    interval = wilson(count, runs)
    return f"{count / runs:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--suite", type=Path, default=SUITE)
    asked = parser.parse_args()
    rng = np.random.default_rng(20261202)
    made = Synthetic(asked.suite)
    unchanged = made.decided(asked.runs, 0.0, rng)
    outcomes = [conclude(each) for each in unchanged]
    print(f"{made.n} cases, {made.n_groups} groups, {len(made.policy.members)} guards; {asked.runs} unchanged runs")
    for outcome in (Outcome.FAIL, Outcome.UNDECIDED):
        print(f"  {outcome:<10}{shown(sum(each is outcome for each in outcomes), asked.runs)}")
    for rule in made.policy.rules:
        if rule.kind != "no-worse":
            continue
        share, loss = made.share_for(rule.id, 1.959964 + 0.841621, rng)
        found = made.decided(max(AT_ONCE, asked.runs // 4), share, rng)
        own = sum(each.outcome is Outcome.FAIL for results in found for each in results if each.id == rule.id)
        whole = sum(conclude(each) is Outcome.FAIL for each in found)
        print(f"  {rule.id}: a loss of {loss:.3f} in {share:.0%} of groups: by the rule {shown(own, len(found))}, "
              f"by the gate {shown(whole, len(found))}")  # fmt: skip


if __name__ == "__main__":
    main()
