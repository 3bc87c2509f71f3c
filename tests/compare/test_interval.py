"""Intervals resample whole groups, say how they were found, and never depend on an order."""

from collections.abc import Callable

import numpy as np
import pytest
from scipy import special, stats

from harness.compare.draw import Resample
from harness.compare.forecast import WeightedForecast
from harness.compare.interval import (
    Side,
    bootstrap,
    bootstrap_many,
    clopper_pearson,
    largest_share,
    side_intervals,
    wilson,
)
from harness.compare.statistic import Finish, Grouped, Mean, Paired

Sides = Callable[[int, np.random.Generator], Paired]
RESAMPLE = Resample(20, 400, seed=20261201)


class TestBootstrap:
    def test_it_is_the_naive_loop(self, sides: Sides) -> None:
        """Repeat each case as often as its group was drawn, compute, and read the quantiles."""
        paired, groups = sides(60, np.random.default_rng(1)), np.arange(60) % 20
        counts = np.concatenate(list(RESAMPLE.blocks(400)))
        drawn = [paired.take(np.repeat(np.arange(60), row[groups].astype(int))).value() for row in counts]
        expected = np.quantile(drawn, [0.025, 0.975])
        found = bootstrap(paired, groups, resample=RESAMPLE, method="percentile")
        assert (found.low, found.high) == pytest.approx(tuple(expected), abs=1e-9)
        assert (found.method, found.draws) == ("percentile", 400)

    def test_bca_is_scipy_s_without_groups(self) -> None:
        """On skewed values, to a thirtieth of the width, where plain percentiles are three times as far off."""
        values = np.random.default_rng(2).lognormal(size=30)
        resample = Resample(30, 20_000, seed=3)
        found = bootstrap(Mean(values), np.arange(30), resample=resample)
        plain = bootstrap(Mean(values), np.arange(30), resample=resample, method="percentile")
        theirs = stats.bootstrap((values,), np.mean, n_resamples=20_000, method="BCa", rng=np.random.default_rng(4))
        low, high = theirs.confidence_interval
        width = high - low
        assert found.method == "bca"
        assert abs(found.low - low) < 0.03 * width
        assert abs(found.high - high) < 0.03 * width
        assert abs(plain.high - high) > 0.1 * width

    def test_ties_with_the_estimate_count_half(self) -> None:
        """Ten groups up and ten down: one draw in eight ties, and symmetric data need no correction."""
        deltas, resample = np.repeat([0.5, -0.5], 10), Resample(20, 20_000, seed=12)
        found = bootstrap(Mean(deltas), np.arange(20), resample=resample)
        assert found.method == "bca"
        assert found.low == -found.high

    def test_groups_widen_what_cases_would_narrow(self) -> None:
        """Five equal cases in a group are one piece of news: √5 as wide as by case."""
        values = np.repeat(np.random.default_rng(5).normal(size=40), 5)
        by_group = bootstrap(Mean(values), np.repeat(np.arange(40), 5), resample=Resample(40, 4000, seed=6))
        by_case = bootstrap(Mean(values), np.arange(200), resample=Resample(200, 4000, seed=6))
        ratio = (by_group.high - by_group.low) / (by_case.high - by_case.low)
        assert ratio == pytest.approx(np.sqrt(5), rel=0.1)

    def test_a_slice_may_hold_some_of_the_groups(self) -> None:
        """Groups without cases in the slice add nothing; width is that of the slice's own groups, within a tenth."""
        values = np.random.default_rng(7).normal(size=50)
        among_all = bootstrap(Mean(values), np.arange(50) * 4 + 1, resample=Resample(200, 8000, seed=8))
        alone = bootstrap(Mean(values), np.arange(50), resample=Resample(50, 8000, seed=8))
        assert among_all.high - among_all.low == pytest.approx(alone.high - alone.low, rel=0.1)


class TestSameBytes:
    def test_alone_or_together(self) -> None:
        """One pass over the draws serves many statistics and changes none."""
        rng = np.random.default_rng(9)
        members = [Grouped(Mean(rng.normal(size=60)), rng.integers(0, 20, 60)) for _ in range(5)]
        together = bootstrap_many(members, resample=RESAMPLE)
        assert together == [bootstrap(one.statistic, one.groups, resample=RESAMPLE) for one in members]

    def test_in_any_order_of_cases(self, sides: Sides) -> None:
        """Cases and their groups shuffled alike give the same interval."""
        rng = np.random.default_rng(10)
        paired, groups, order = sides(60, rng), np.arange(60) % 20, rng.permutation(60)
        shuffled = bootstrap(paired.take(order), groups[order], resample=RESAMPLE)
        assert shuffled == bootstrap(paired, groups, resample=RESAMPLE)


class TestNamedFallbacks:
    def test_no_spread(self) -> None:
        """Every group alike."""
        found = bootstrap(Mean(np.full(40, 0.1)), np.arange(40) % 20, resample=RESAMPLE)
        assert found.method == "percentile (BCa undefined: no spread in the jackknife)"
        assert found.low == pytest.approx(0.1) == found.high

    def test_undefined_without_one_group(self) -> None:
        """A ratio whose denominator lives in one group; a third of the draws lack it, so there is no interval."""

        def ratio(sums: np.ndarray) -> np.ndarray:
            with np.errstate(invalid="ignore"):
                return sums[:, 0] / sums[:, 1]

        rows = np.stack([np.zeros(20), np.arange(20) == 0], axis=1).astype(float)
        assert bootstrap(Finish(rows, ratio), np.arange(20), resample=RESAMPLE).method.startswith("undefined; ")
        rows[:4, 1] = 1  # all four are missing in about one draw of a hundred
        rows[:4, 0] = [0, 0, 1, 1]
        found = bootstrap(Finish(rows, ratio), np.arange(20), resample=RESAMPLE)
        assert "draws undefined" in found.method
        assert np.isfinite([found.low, found.high]).all()

    def test_one_group_has_no_interval(self) -> None:
        """However many cases it has."""
        found = bootstrap(Mean(np.arange(9.0)), np.zeros(9, dtype=int), resample=RESAMPLE)
        assert found.method == "undefined: one group"
        assert np.isnan(found.low)

    def test_every_draw_on_one_side(self) -> None:
        """A statistic at its own maximum has no bias correction."""

        def same(sums: np.ndarray) -> np.ndarray:
            return -np.abs(sums[:, 0] - 190) - 1e-3 * (sums[:, 0] == 190) + 1.0 * (sums[:, 1] == 20)

        rows = np.stack([np.arange(20.0), 2.0 ** np.arange(20)], axis=1)
        top = Finish(rows, lambda sums: np.where(sums[:, 1] == 2**20 - 1, 1.0, same(sums)))
        found = bootstrap(top, np.arange(20), resample=RESAMPLE)
        assert found.method == "percentile (BCa undefined: every draw on one side of the estimate)"


class TestRates:
    @pytest.mark.parametrize(("successes", "n"), [(0, 30), (1, 30), (17, 30), (29, 30), (30, 30), (3, 4)])
    @pytest.mark.parametrize("level", [0.9, 0.95])
    def test_exact_and_score_intervals_are_scipy_s(self, successes: int, n: int, level: float) -> None:
        """Against scipy.stats.binomtest."""
        test = stats.binomtest(successes, n)
        for found, method in ((clopper_pearson, "exact"), (wilson, "wilson")):
            expected = test.proportion_ci(level, method=method)
            interval = found(successes, n, level)
            assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


class TestLargestShare:
    @pytest.mark.parametrize(
        ("of_groups", "sizes", "share"),
        [(0.25, [1, 1, 1, 1], 0.25), (0.25, [3, 1, 1, 1], 0.5), (0.5, [3, 1, 1, 1], 1.0), (0.0, [9, 1], 0.0)],
    )
    def test_by_hand(self, of_groups: float, sizes: list[int], share: float) -> None:
        """A quarter of four groups is one, and the largest holds 3 of 6 cases; never more than all."""
        assert largest_share(of_groups, np.repeat(np.arange(len(sizes)), sizes)) == share

    def test_codes_that_no_case_has(self) -> None:
        """A slice of a larger suite: the groups outside count for nothing."""
        assert largest_share(0.5, np.array([3, 3, 7])) == pytest.approx(0.5 * 2 * 2 / 3)


class TestSides:
    def test_a_rate_is_exact(self) -> None:
        """Sixty successes of sixty leave room for six failures in a hundred."""
        (found,) = side_intervals([Side(Mean(np.ones(60)), np.arange(60))], resample=Resample(60, 400, seed=1))
        assert found == clopper_pearson(60, 60)

    def test_errors_of_none_and_one_are_no_rate(self) -> None:
        """What may be any number is resampled; without spread, nothing bounds it from above."""
        for values, method in ((np.arange(60) % 2, "bca"), (np.zeros(60), "clopper-pearson over groups")):
            side = Side(Mean(values.astype(float)), np.arange(60), lowest=0.0, highest=np.inf)
            (found,) = side_intervals([side], resample=Resample(60, 400, seed=1))
            assert found.method.startswith(method)
        assert (found.low, found.high) == (0.0, np.inf)

    def test_a_rate_with_shared_groups_is_resampled(self) -> None:
        """Cases that depend on one another are not so many trials."""
        values = (np.arange(60) % 20 < 9).astype(float)
        (found,) = side_intervals([Side(Mean(values), np.arange(60) % 20)], resample=RESAMPLE)
        assert found.method == "bca"

    def test_without_spread_the_range_of_the_metric_bounds_it(self) -> None:
        """All 0.5 over 20 groups: at most 16.8 % of groups differ, each by at most 0.5 down or 1.5 up."""
        side = Side(Mean(np.full(40, 0.5)), np.arange(40) % 20, lowest=0.0, highest=2.0)
        (found,) = side_intervals([side], resample=RESAMPLE)
        assert found.method == "clopper-pearson over groups (no spread over 20)"
        assert found.low == pytest.approx(0.5 - 0.16843 * 0.5, abs=1e-5)
        assert found.high == pytest.approx(0.5 + 0.16843 * 1.5, abs=1e-5)

    def test_without_spread_the_largest_group_bounds_the_cases(self) -> None:
        """As above with 21 cases, two of them in one group: .16843 · 20 · 2 / 21 of the cases may differ."""
        side = Side(Mean(np.full(21, 0.5)), np.append(np.arange(20), 0))
        (found,) = side_intervals([side], resample=RESAMPLE)
        assert found.low == pytest.approx(0.5 - 0.16843 * 40 / 21 * 0.5, abs=1e-5)

    def test_each_side_keeps_its_place(self) -> None:
        """Exact and resampled intervals come back in the order asked."""
        rng = np.random.default_rng(11)
        drawn = Side(Mean(rng.random(20)), np.arange(20))
        sides = [drawn, Side(Mean(np.ones(20)), np.arange(20)), drawn]
        assert [one.method for one in side_intervals(sides, resample=RESAMPLE)] == ["bca", "clopper-pearson", "bca"]


class TestADistanceFromARightValue:
    """Draws on either side of the right value only make it larger; taken for a bias, that would shrink the interval."""

    def test_it_holds_the_distances_of_the_whole_interval_of_what_is_measured(self) -> None:
        """A slope of .985 with an interval from .6 to 1.3 may be .4 from 1, and its error may not be said to be .03."""
        rng = np.random.default_rng(4)
        odds = 1.5 * rng.normal(size=250)
        came = (rng.random(250) < special.expit(odds)).astype(float)
        own, error = (
            bootstrap(
                WeightedForecast(odds[:, None], came[:, None], kind),
                np.arange(250),
                resample=Resample(250, 2000, seed=1),
            )
            for kind in ("calibration_slope", "calibration_slope_error")
        )
        furthest = max(abs(own.low - 1), abs(own.high - 1))
        assert own.low < 1 < own.high and own.method == "bca"
        assert error.high >= 0.85 * furthest
        assert error.method == "percentile (BCa undefined: a distance from a right value)"
        slope = WeightedForecast(odds[:, None], came[:, None], "calibration_slope_error")
        paired = Paired(slope, WeightedForecast(1.01 * odds[:, None], came[:, None], "calibration_slope_error"))
        assert "distance" in bootstrap(paired, np.arange(250), resample=Resample(250, 200, seed=1)).method
