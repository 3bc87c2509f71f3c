"""What the gate's rules do when nothing changed, on the data that retrieval suites have.

Twenty slices of sixty cases; five cases share a group and move together; values are reciprocal ranks, so deltas are
discrete and most are zero.
"""

import numpy as np
import pytest

from harness.compare.draw import Resample, SignFlips
from harness.compare.family import holm
from harness.compare.interval import bootstrap_many
from harness.compare.randomisation import worse_p
from harness.compare.statistic import Grouped, Mean, Paired

SLICES, CASES, SHARE = 20, 60, 5


def unchanged(runs: int, cases: int, rng: np.random.Generator) -> np.ndarray:
    """Deltas of reciprocal rank [runs, cases]: a group is disturbed or not, its cases up or down together."""
    groups = cases // SHARE
    disturbed = rng.random((runs, groups)) < 0.6
    upward = (rng.random((runs, groups)) < 0.5).repeat(SHARE, axis=1)
    better, worse = np.sort(1 / rng.integers(1, 6, (2, runs, cases)), axis=0)[::-1]
    return np.where(upward, better - worse, worse - better) * disturbed.repeat(SHARE, axis=1)


def members(deltas: np.ndarray, groups: np.ndarray) -> list[Grouped]:
    return [Grouped(Paired(Mean(row), Mean(np.zeros(len(row)))), groups) for row in deltas]


class TestGuards:
    def test_a_family_blocks_few_unchanged_runs(self) -> None:
        """Holm at .05: at most 4 in 100 (and four standard errors). Raw p: over half; a point estimate: over .9."""
        runs = 300
        deltas = unchanged(runs * SLICES, CASES, np.random.default_rng(1))
        groups = np.arange(CASES) // SHARE
        flips = SignFlips(CASES // SHARE, 1000, seed=2)
        p = worse_p(members(deltas, groups), flips=flips, higher_is_better=[True] * len(deltas)).reshape(runs, SLICES)
        by_holm = np.mean([holm(row).min() <= 0.05 for row in p])
        by_raw_p = np.mean(p.min(axis=1) < 0.05)
        by_point = np.mean(deltas.mean(axis=1).reshape(runs, SLICES).min(axis=1) < -0.01)
        assert by_holm <= 0.04 + 4 * np.sqrt(0.04 * 0.96 / runs)
        assert by_raw_p > 0.5
        assert by_point > 0.9


class TestCoverage:
    def test_by_group_nominal_by_case_too_narrow(self) -> None:
        """The interval by group misses an unchanged zero about 5 times in 100; by case, more than 20."""
        runs, cases = 500, 200
        deltas = unchanged(runs, cases, np.random.default_rng(3))
        missed = []
        for groups in (np.arange(cases) // SHARE, np.arange(cases)):
            resample = Resample(int(groups.max()) + 1, 2000, seed=4)
            intervals = bootstrap_many(members(deltas, groups), resample=resample)
            missed.append(np.mean([not one.low <= 0 <= one.high for one in intervals]))
        slack = 4 * np.sqrt(0.05 * 0.95 / runs)
        assert missed[0] == pytest.approx(0.055, abs=slack)
        assert missed[1] > 0.2

    def test_a_small_slice_of_a_large_suite(self) -> None:
        """Twenty of two hundred groups, drawn with the suite's: still near nominal."""
        runs = 400
        deltas = unchanged(runs, 100, np.random.default_rng(5))
        groups = np.arange(100) // SHARE * 10
        intervals = bootstrap_many(members(deltas, groups), resample=Resample(200, 2000, seed=6))
        missed = np.mean([not one.low <= 0 <= one.high for one in intervals])
        assert missed < 0.065 + 4 * np.sqrt(0.065 * 0.935 / runs)
