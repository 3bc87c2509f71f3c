"""The whole policy on data like those of retrieval suites: how often it fails a candidate that is no worse.

Twenty slices of sixty cases; five cases share a group and move together; values are reciprocal ranks, so deltas are
discrete and most are zero. Nothing changed on average.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from harness.compare.draw import Resample
from harness.compare.scoreboard import Population, scoreboard
from harness.gate.decide import conclude, judge
from harness.gate.policy import Flags, Policy
from harness.gate.rule import Guards, Rule, Uncertainty
from harness.output.decision import Outcome, RuleResult
from harness.output.value import CaseValues, Status

METRIC, SLICES, CASES, SHARE, DRAWS = "RR@10", 20, 60, 5, 1000
N = SLICES * CASES
IDS = np.array([f"q{i}" for i in range(N)], dtype=object)
NAMES = tuple(f"s{i}" for i in range(SLICES))
POPULATION = Population.of(
    IDS, np.array([f"g{i // SHARE}" for i in range(N)], dtype=object),
    {name: set(IDS[i * CASES : (i + 1) * CASES]) for i, name in enumerate(NAMES)},
)  # fmt: skip
COUNTS = ("missing", "failed", "non-finite", "truncated", "tied")
NONE = dict.fromkeys(COUNTS, np.zeros(N, dtype=bool))


def sides(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Both sides' reciprocal ranks [n]: a group is disturbed or not, its cases up or down together."""
    better, worse = np.sort(1 / rng.integers(1, 6, (2, N)), axis=0)[::-1]
    upward, disturbed = ((rng.random(N // SHARE) < share).repeat(SHARE) for share in (0.5, 0.6))
    return np.where(disturbed & ~upward, worse, better), np.where(disturbed & upward, worse, better)


def judged(candidate: np.ndarray, parent: np.ndarray, rng: np.random.Generator, margin: float) -> list[RuleResult]:
    policy = Policy(
        rules=(Rule(id="headline", kind="no-worse", metric=METRIC, margin=margin),), guards=Guards(metrics=[METRIC]),
        guarded=NAMES, uncertainty=Uncertainty(draws=DRAWS), critical=frozenset(), min_support={}, missing="undecided",
    )  # fmt: skip
    values = [{METRIC: CaseValues(METRIC, IDS, side, np.full(N, Status.SCORED))} for side in (candidate, parent)]
    resample = Resample.draw(N // SHARE, DRAWS, rng)
    cells = scoreboard(POPULATION, *values, resample=resample, method="bca", level=0.95)
    return judge(policy, POPULATION, cells, Flags(NONE, NONE), rng)


def unchanged(runs: int, seed: int) -> Iterator[list[RuleResult]]:
    """At margin 0, where a headline rule is most easily failed."""
    for rng in np.random.default_rng(seed).spawn(runs):
        yield judged(*sides(rng), rng, 0.0)


class TestNothingChanged:
    def test_the_whole_policy_fails_few_runs(self) -> None:
        """Headline at one-sided .025, all guards together 4 in 100 (Holm), the two never more than their sum."""
        runs = 150
        found = list(unchanged(runs, 1))
        failed = {kind: np.mean([_fails(each, kind) for each in found]) for kind in ("no-worse", "guard")}
        for kind, rate in (("no-worse", 0.025), ("guard", 0.04)):
            assert failed[kind] <= rate + 4 * np.sqrt(rate * (1 - rate) / runs), kind
        whole = np.mean([conclude(each) is Outcome.FAIL for each in found])
        assert whole <= min(sum(failed.values()), 0.065 + 4 * np.sqrt(0.065 * 0.935 / runs))

    def test_a_point_estimate_would_fail_most_of_them(self) -> None:
        """The same runs under "no slice may drop by .01": what the policy is for."""
        deltas = [
            candidate - parent for candidate, parent in (sides(rng) for rng in np.random.default_rng(1).spawn(150))
        ]
        lowest = np.array([each.reshape(SLICES, CASES).mean(axis=1).min() for each in deltas])
        assert np.mean(lowest < -0.01) > 0.9


class TestSomethingChanged:
    @pytest.mark.parametrize(("name", "kind"), [("s3", "guard"), ("all", "no-worse")])
    def test_a_planted_loss_is_found(self, name: str, kind: str) -> None:
        """A tenth lost on every case of a slice in which nothing else moved, or of the suite."""
        found = []
        for rng in np.random.default_rng(2).spawn(5):
            candidate, parent = sides(rng)
            members = POPULATION.slices[name]
            candidate[members] = parent[members] - rng.choice([0.05, 0.15], N)[members]
            found.append(_fails(judged(candidate, parent, rng, 0.0), kind))
        assert all(found)


def _fails(results: list[RuleResult], kind: str) -> bool:
    return any(result.outcome is Outcome.FAIL for result in results if result.kind == kind)
