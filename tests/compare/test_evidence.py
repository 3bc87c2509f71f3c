"""A delta comes with its n, its error, and what it could have seen."""

import numpy as np
import pytest

from harness.compare.evidence import degenerate, delta_evidence, mde, standard_error
from harness.compare.interval import Interval
from harness.compare.statistic import Finish, Mean, Paired

INTERVAL = Interval(-0.1, 0.1, "bca", 1000)


def pair(deltas: np.ndarray) -> Paired:
    return Paired(Mean(0.5 + deltas), Mean(np.full(len(deltas), 0.5)))


class TestStandardError:
    def test_each_case_its_own_group(self) -> None:
        """The textbook error of a mean."""
        values = np.random.default_rng(1).normal(size=50)
        expected = values.std(ddof=1) / np.sqrt(50)
        assert standard_error(Mean(values), np.arange(50)) == pytest.approx(expected)

    def test_unequal_groups_by_hand(self) -> None:
        """Sums 1, 0, 3 over sizes 1, 2, 3: ratio 2/3, residuals 1/3, -4/3, 1; √(3/2 · 26/9) / 6."""
        values, groups = np.array([1.0, 0, 0, 1, 1, 1]), np.array([0, 1, 1, 2, 2, 2])
        assert standard_error(Mean(values), groups) == pytest.approx(np.sqrt(1.5 * 26 / 9) / 6)

    def test_the_jackknife_of_other_forms_is_close(self) -> None:
        """A mean told as a finish has nearly the same error."""
        values, groups = np.random.default_rng(2).normal(size=400), np.arange(400) // 4
        rows = np.stack([values, np.ones(400)], axis=1)
        as_finish = Finish(rows, lambda sums: sums[:, 0] / sums[:, 1])
        assert standard_error(as_finish, groups) == pytest.approx(standard_error(Mean(values), groups), rel=1e-6)

    def test_one_group_has_none(self) -> None:
        """n = 1 is not certain."""
        assert np.isnan(standard_error(Mean(np.ones(5)), np.zeros(5, dtype=int)))


class TestMde:
    def test_by_hand(self) -> None:
        """(1.95996 + 0.84162) × 0.01."""
        assert mde(0.01, 0.025) == pytest.approx(0.0280158, abs=1e-6)

    def test_it_is_not_made_of_the_effect(self) -> None:
        """Moving every delta by the same step leaves it."""
        deltas, groups = np.random.default_rng(3).normal(0, 0.1, 60), np.arange(60)
        found = [delta_evidence(pair(deltas + step), groups, interval=INTERVAL, alpha=0.025).mde for step in (0, 0.3)]
        assert found[0] == pytest.approx(found[1])


class TestDeltaEvidence:
    def test_by_hand(self) -> None:
        """Four cases in three groups, of which two changed."""
        paired = pair(np.array([0.5, -0.1, 0.0, 0.0]))
        found = delta_evidence(paired, np.array([4, 4, 7, 9]), interval=INTERVAL, alpha=0.025)
        assert (found.value, found.parent_value, found.delta) == pytest.approx((0.6, 0.5, 0.1))
        assert (found.n_cases, found.n_groups, found.n_changed_groups) == (4, 3, 1)
        assert found.interval is INTERVAL


class TestDegenerate:
    def test_ten_changed_groups_with_spread_can_be_resampled(self) -> None:
        """Ten of sixty cases better by .5 are not degenerate; nine are."""
        deltas = np.zeros(60)
        deltas[:10] = 0.5
        assert degenerate(pair(deltas), np.arange(60), margin=0.02, worst_loss=1) is None
        deltas[9:] = 0
        found = degenerate(pair(deltas), np.arange(60), margin=0.02, worst_loss=1)
        assert found is not None
        assert found.reason == "9 of 60 groups changed"

    def test_nothing_changed_bounds_the_loss(self) -> None:
        """0 of 60: at most 1 - .025^(1/60) = 5.96 % of groups change, times the largest loss."""
        found = degenerate(pair(np.zeros(60)), np.arange(60), margin=0.02, worst_loss=0.5)
        assert found is not None
        assert found.changed_share == pytest.approx(1 - 0.025 ** (1 / 60))
        assert found.largest_loss == pytest.approx(0.0298, abs=1e-4)
        assert not found.every_group_beyond

    def test_a_share_of_groups_is_a_larger_share_of_cases(self) -> None:
        """9 of 100 groups: at most 16.4 %. Here the nine hold 18 of 109 cases, so .164 · 100 · 2 / 109 of the cases."""
        sizes = np.repeat(np.arange(100), np.where(np.arange(100) < 9, 2, 1))
        deltas = np.where(sizes < 9, -0.5, 0.0)
        found = degenerate(pair(deltas), sizes, margin=0.2, worst_loss=1)
        assert found is not None
        assert found.changed_share == pytest.approx(0.16398 * 200 / 109, abs=1e-4)
        assert found.largest_loss == found.changed_share

    @pytest.mark.parametrize("size", [10, 100])
    def test_never_less_than_what_was_seen(self, size: int) -> None:
        """Nine groups of many cases lost .5 among 91 single ones: the bound is above the loss that is there."""
        groups = np.concatenate([np.repeat(np.arange(9), size), np.arange(9, 100)])
        deltas = np.where(groups < 9, -0.5, 0.0)
        found = degenerate(pair(deltas), groups, margin=0.2, worst_loss=1)
        assert found is not None
        assert found.largest_loss >= -deltas.mean() > 0.2

    def test_more_groups_tighten_the_bound(self) -> None:
        """0 of 200 stays within .02."""
        found = degenerate(pair(np.zeros(200)), np.arange(200), margin=0.02, worst_loss=1)
        assert found is not None
        assert found.largest_loss < 0.02

    @pytest.mark.parametrize(
        ("delta", "higher", "beyond"),
        [(-0.5, True, True), (0.5, True, False), (0.5, False, True), (-0.01, True, False)],
    )
    def test_every_group_lost_alike(self, delta: float, higher: bool, beyond: bool) -> None:
        """Without spread, every group beyond the margin in the wrong direction."""
        found = degenerate(pair(np.full(60, delta)), np.arange(60), margin=0.02, worst_loss=1, higher_is_better=higher)
        assert found is not None
        assert found.reason == "no spread between groups"
        assert found.every_group_beyond == beyond

    def test_groups_count_not_cases(self) -> None:
        """Forty changed cases in eight groups are eight."""
        deltas, groups = np.zeros(300), np.arange(300) // 5
        deltas[:40] = np.linspace(-1, 1, 40)
        found = degenerate(pair(deltas), groups, margin=0.02, worst_loss=1)
        assert found is not None
        assert found.reason == "8 of 60 groups changed"
