"""p is the share of exchanges of whole groups that look at least as bad."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy import stats

from harness.compare.draw import SignFlips
from harness.compare.randomisation import label_swap, mcnemar_exact, sign_flip, worse_p
from harness.compare.statistic import Finish, Grouped, Mean, Paired, WeightedRank
from harness.errors import Misconfigured

Sides = Callable[[int, np.random.Generator], Paired]


class TestSignFlip:
    def test_it_is_the_share_of_all_flips(self) -> None:
        """Against all 2**8 flips of groups of unequal size, studentised one by one."""
        rng = np.random.default_rng(1)
        sizes = np.array([1, 2, 3, 1, 5, 2, 1, 4])
        groups = np.repeat(np.arange(8), sizes)
        deltas = rng.integers(-3, 2, len(groups)) / 4
        sums = np.bincount(groups, deltas)

        def t(signed: np.ndarray) -> float:
            mean = signed.sum() / sizes.sum()
            return float(mean / np.sqrt(((signed - mean * sizes) ** 2).sum()))

        observed = t(sums)
        share = np.mean([t(np.array(signs) * sums) <= observed + 1e-12 for signs in product([-1, 1], repeat=8)])
        found = sign_flip(deltas, groups, flips=SignFlips(8, 40_000, seed=2))
        assert found == pytest.approx(share, abs=5 * np.sqrt(share / 40_000))

    def test_it_agrees_with_students_t_on_many_cases(self) -> None:
        """Normal deltas, each its own group, and a margin."""
        deltas = np.random.default_rng(3).normal(-0.25, 1, 200)
        expected = stats.ttest_1samp(deltas, -0.1, alternative="less").pvalue
        found = sign_flip(deltas, np.arange(200), flips=SignFlips(200, 20_000, seed=4), margin=0.1)
        assert found == pytest.approx(expected, abs=0.01)

    @pytest.mark.parametrize("delta", [-0.5, -0.1, -1 / 3, -0.7])
    def test_the_labels_as_they_are_count_once(self, delta: float) -> None:
        """Every case worse by the same: no flip is as bad, and p is 1/(draws + 1), never 0."""
        groups = np.repeat(np.arange(60), np.arange(60) % 4 + 1)
        assert sign_flip(np.full(len(groups), delta), groups, flips=SignFlips(60, 999, seed=5)) == 1 / 1000

    def test_nothing_changed_is_no_evidence(self) -> None:
        """All deltas zero: p = 1."""
        assert sign_flip(np.zeros(60), np.arange(60), flips=SignFlips(60, 999, seed=6)) == 1.0

    def test_groups_that_did_not_change_carry_no_sign(self) -> None:
        """Three changed groups, all worse: one flip of eight is as bad."""
        deltas = np.zeros(60)
        deltas[:3] = -0.5
        assert sign_flip(deltas, np.arange(60), flips=SignFlips(60, 20_000, seed=7)) == pytest.approx(1 / 8, abs=0.01)

    def test_a_margin_forgives(self) -> None:
        """A drop of .05 in every group is beyond .02 and within .08."""
        deltas = np.random.default_rng(8).normal(-0.05, 0.03, 80)
        flips = SignFlips(80, 999, seed=9)
        assert sign_flip(deltas, np.arange(80), flips=flips, margin=0.02) == 1 / 1000
        assert sign_flip(deltas, np.arange(80), flips=flips, margin=0.08) > 0.99

    def test_a_loss_is_worse_when_it_rises(self) -> None:
        """Direction turns the deltas around, and not the margin."""
        deltas = np.random.default_rng(30).normal(-0.05, 0.3, 80)
        flips = SignFlips(80, 999, seed=11)
        expected = sign_flip(deltas, np.arange(80), flips=flips, margin=0.02)
        as_loss = sign_flip(-deltas, np.arange(80), flips=flips, margin=0.02, higher_is_better=False)
        assert 0.01 < expected < 0.99
        assert as_loss == expected

    @pytest.mark.parametrize("step", [7, 10, 0.3])
    def test_flips_that_tie_count_as_bad(self, step: float) -> None:
        """Sevenths of one sum tie, whatever their rounding: p is that of whole numbers, which round nothing."""
        for seed in range(20):
            whole = np.random.default_rng(seed).integers(-5, 4, 12)
            flips = SignFlips(12, 2000, seed=12)
            exact = sign_flip(whole.astype(float), np.arange(12), flips=flips)
            assert sign_flip(whole / step, np.arange(12), flips=flips) == exact

    def test_p_is_uniform_when_nothing_changed(self) -> None:
        """Rejections at α are α of 2,000 families of clustered deltas, within four standard errors."""
        rng = np.random.default_rng(13)
        groups = np.arange(150) // 5
        drawn = rng.normal(size=(2000, 30)).repeat(5, axis=1) + rng.normal(size=(2000, 150))
        members = [Grouped(Paired(Mean(row), Mean(np.zeros(150))), groups) for row in drawn]
        p = worse_p(members, flips=SignFlips(30, 999, seed=14), higher_is_better=[True] * 2000)
        for alpha in (0.01, 0.05, 0.25, 0.5, 0.9):
            assert np.mean(p <= alpha) == pytest.approx(alpha, abs=4 * np.sqrt(alpha * (1 - alpha) / 2000))


class TestLabelSwap:
    def test_it_is_the_share_of_all_swaps(self, sides: Sides) -> None:
        """Against the statistic asked anew under all 2**8 exchanges of groups."""
        paired, groups = sides(24, np.random.default_rng(15)), np.arange(24) // 3
        masks = np.array(list(product([False, True], repeat=8)))[:, groups]
        share = np.mean(paired.swapped(masks) <= paired.value() + 1e-9)
        found = label_swap(paired, groups, flips=SignFlips(8, 40_000, seed=16))
        assert found == pytest.approx(share, abs=0.015)

    def test_a_lost_ranking_is_shown(self) -> None:
        """A candidate whose scores say nothing any more, against a parent that was right."""
        rng = np.random.default_rng(17)
        true = rng.normal(size=80)
        parent, candidate = true + rng.normal(0, 0.3, 80), rng.normal(size=80)
        sides = Paired(WeightedRank(candidate, true, "spearman"), WeightedRank(parent, true, "spearman"))
        assert label_swap(sides, np.arange(80), flips=SignFlips(80, 499, seed=18)) == 1 / 500

    def test_a_margin_forgives(self, sides: Sides) -> None:
        """A margin beyond every possible loss leaves nothing to show."""
        paired, flips = sides(40, np.random.default_rng(19)), SignFlips(40, 499, seed=20)
        assert label_swap(paired, np.arange(40), flips=flips, margin=5.0) == 1.0

    def test_direction_turns_the_tail(self, sides: Sides) -> None:
        """Better and worse share all exchanges; those that tie are in both."""
        paired, flips = sides(40, np.random.default_rng(21)), SignFlips(40, 999, seed=22)
        p = [label_swap(paired, np.arange(40), flips=flips, higher_is_better=higher) for higher in (True, False)]
        assert 1.0 <= sum(p) < 1.2

    def test_an_undefined_delta_has_no_p(self) -> None:
        """A constant candidate has no correlation; the family will count it as 1."""
        true = np.arange(20.0)
        paired = Paired(WeightedRank(np.ones(20), true, "spearman"), WeightedRank(true, true, "spearman"))
        assert np.isnan(label_swap(paired, np.arange(20), flips=SignFlips(20, 99, seed=23)))

    def test_an_undefined_exchange_counts_as_bad(self) -> None:
        """Each side's denominator is in one group: of four exchanges one is as bad, two are undefined, one is good."""

        def ratio(sums: np.ndarray) -> np.ndarray:
            with np.errstate(invalid="ignore"):
                return sums[:, 0] / sums[:, 1]

        paired = Paired(Finish(np.array([[0.0, 1], [0, 0]]), ratio), Finish(np.array([[0.0, 0], [1, 1]]), ratio))
        p = label_swap(paired, np.arange(2), flips=SignFlips(2, 20_000, seed=24))
        assert p == pytest.approx(3 / 4, abs=0.02)


class TestFamilyOfTests:
    def test_alone_or_together(self) -> None:
        """The same flips, so the same p for every form."""
        rng = np.random.default_rng(25)
        flips, groups = SignFlips(20, 499, seed=26), np.arange(60) % 20
        mean = Paired(Mean(rng.normal(size=60)), Mean(rng.normal(size=60)))
        rank = Paired(*(WeightedRank(rng.normal(size=60), np.arange(60.0), "spearman") for _ in range(2)))
        members = [Grouped(mean, groups), Grouped(rank, groups)]
        together = worse_p(members, flips=flips, higher_is_better=[True, False], margin=0.05)
        assert isinstance(mean.candidate, Mean)
        assert isinstance(mean.parent, Mean)
        deltas = mean.candidate.values - mean.parent.values
        assert together[0] == sign_flip(deltas, groups, flips=flips, margin=0.05)
        assert together[1] == label_swap(rank, groups, flips=flips, margin=0.05, higher_is_better=False)

    def test_in_any_order_of_cases(self, sides: Sides) -> None:
        """Cases and their groups shuffled alike give the same p."""
        rng = np.random.default_rng(27)
        paired, groups, order = sides(60, rng), np.arange(60) % 20, rng.permutation(60)
        flips = SignFlips(20, 499, seed=28)
        ask = [Grouped(paired, groups), Grouped(paired.take(order), groups[order])]
        first, second = worse_p(ask, flips=flips, higher_is_better=[True, True])
        assert first == second

    def test_one_side_alone_cannot_be_tested(self) -> None:
        """Being worse needs a parent."""
        with pytest.raises(Misconfigured):
            worse_p([Grouped(Mean(np.ones(3)), np.arange(3))], flips=SignFlips(3, 9, seed=1), higher_is_better=[True])


class TestExactCounts:
    @pytest.mark.parametrize(("lost", "won"), [(0, 0), (0, 5), (5, 0), (8, 3), (3, 8), (6, 6)])
    def test_against_the_binomial(self, lost: int, won: int) -> None:
        """scipy.stats.binomtest at one half."""
        expected = stats.binomtest(lost, lost + won, 0.5).pvalue if lost + won else 1.0
        assert mcnemar_exact(lost, won) == pytest.approx(expected)
