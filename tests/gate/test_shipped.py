"""The embedded suite's policy, which others copy: how rarely it fails what is unchanged, how often it sees a loss."""

import numpy as np

from benchmarks.bench_policy import SUITE, Synthetic
from harness.gate.decide import conclude
from harness.output.decision import Outcome


class TestShippedPolicy:
    def test_fewer_than_five_of_a_hundred_unchanged_runs_fail(self) -> None:
        """Both sides drawn by themselves, anew for every run."""
        found = Synthetic(SUITE).decided(300, 0.0, np.random.default_rng(1))
        assert np.mean([conclude(each) is Outcome.FAIL for each in found]) < 0.05

    def test_the_headline_finds_its_stated_drop_at_its_stated_power(self) -> None:
        """Margin and MDE, with the spread that such runs have: four times in five, less three standard errors."""
        rng = np.random.default_rng(2)
        made = Synthetic(SUITE)
        share, loss = made.share_for("headline", 1.959964 + 0.841621, rng)
        assert loss > float(made.policy.rules[0].margin or 0)
        found = made.decided(150, share, rng)
        failed = [each.outcome is Outcome.FAIL for results in found for each in results if each.id == "headline"]
        assert np.mean(failed) > 0.8 - 3 * np.sqrt(0.8 * 0.2 / 150)
