"""A metric is a statistic of weighted cases; a case of weight 3 counts as three cases."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau, pearsonr, rankdata, spearmanr
from sklearn.metrics import average_precision_score, f1_score, r2_score, roc_auc_score

from harness.compare.group import grid_sums, group_sums, on_grid
from harness.compare.ordering import RankMean, WeightedRank
from harness.compare.statistic import Finish, Mean, Paired, as_mean
from harness.errors import EmptySlice, HarnessError, Misconfigured, Unpairable


def f1(sums: np.ndarray) -> np.ndarray:
    """Sums of true positives, false positives, false negatives."""
    with np.errstate(invalid="ignore"):
        return 2 * sums[:, 0] / (2 * sums[:, 0] + sums[:, 1] + sums[:, 2])


def f1_rows(predicted: np.ndarray, gold: np.ndarray) -> np.ndarray:
    return np.stack([predicted & gold, predicted & ~gold, ~predicted & gold], axis=1).astype(float)


def r2(sums: np.ndarray) -> np.ndarray:
    """Sums of 1, y, y², (y - prediction)²."""
    return 1 - sums[:, 3] / (sums[:, 2] - sums[:, 1] ** 2 / sums[:, 0])


def exchanged_by_hand(candidate: WeightedRank, parent: WeightedRank, mask: np.ndarray) -> Paired:
    """Ranks take the place of values; for Pearson, standard scores do."""
    scaled = rankdata if candidate.kind != "pearson" else lambda x: (x - x.mean()) / x.std()
    own = scaled(candidate.x), scaled(parent.x)
    mixed = np.where(mask, own[1], own[0]), np.where(mask, own[0], own[1])
    return Paired(*(WeightedRank(x, candidate.y, candidate.kind) for x in mixed))


Sides = Callable[[int, np.random.Generator], Paired]


class TestReferees:
    def test_a_mean_is_numpy_s_weighted_average(self) -> None:
        """(1·0.2 + 3·0.6) / 4 = 0.5."""
        statistic = Mean(np.array([0.2, 0.6]))
        assert statistic.of(np.array([[1.0, 3.0]])) == pytest.approx([0.5])
        assert statistic.value() == pytest.approx(0.4)

    def test_a_finish_is_scikit_learn_s_f1(self) -> None:
        """Under sample weights, whole or not."""
        rng = np.random.default_rng(1)
        predicted, gold = rng.random((2, 40)) < 0.5
        weights = np.stack([rng.integers(0, 4, 40), rng.random(40)])
        expected = [f1_score(gold, predicted, sample_weight=row) for row in weights]
        assert Finish(f1_rows(predicted, gold), f1).of(weights) == pytest.approx(expected, abs=1e-12)

    def test_a_finish_is_scikit_learn_s_r2(self) -> None:
        """R² of weighted cases from four sums."""
        rng = np.random.default_rng(2)
        y, prediction, weights = rng.normal(size=30), rng.normal(size=30), rng.integers(0, 3, (5, 30)).astype(float)
        statistic = Finish(np.stack([np.ones(30), y, y**2, (y - prediction) ** 2], axis=1), r2)
        expected = [r2_score(y, prediction, sample_weight=row) for row in weights]
        assert statistic.of(weights) == pytest.approx(expected, abs=1e-12)

    @settings(max_examples=50, deadline=None)
    @given(st.integers(0, 10**6))
    def test_spearman_is_scipy_s_on_repeated_cases(self, seed: int) -> None:
        """Weights are repetitions, with midranks for the ties they make; of few cases one side is often constant."""
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 13))
        x, y, counts = rng.integers(0, 5, n) / 4, rng.integers(0, 4, n) / 3, rng.integers(0, 4, n)
        x_many, y_many = np.repeat(x, counts), np.repeat(y, counts)
        found = WeightedRank(x, y, "spearman").of(counts[None].astype(float))[0]
        if len(set(x_many)) < 2 or len(set(y_many)) < 2:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(spearmanr(x_many, y_many).statistic, abs=1e-12)

    @settings(max_examples=50, deadline=None)
    @given(st.integers(0, 10**6))
    def test_auroc_is_scikit_learn_s_on_repeated_cases(self, seed: int) -> None:
        """Weights are repetitions; equal predictions count half; of few cases there is often one class alone."""
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 13))
        x, y, counts = rng.integers(0, 5, n) / 4, rng.integers(0, 2, n), rng.integers(0, 4, n)
        x_many, y_many = np.repeat(x, counts), np.repeat(y, counts)
        found = WeightedRank(x, y.astype(float), "auroc").of(counts[None].astype(float))[0]
        if len(set(y_many)) < 2:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(roc_auc_score(y_many, x_many), abs=1e-12)

    @pytest.mark.parametrize(("kind", "ask"), [("pearson", pearsonr), ("kendall", kendalltau)])
    def test_pearson_and_kendall_are_scipy_s_on_repeated_cases(self, kind, ask) -> None:
        """Ties on both sides, and cases of weight 0."""
        rng = np.random.default_rng(12)
        x, y, counts = rng.integers(0, 7, 40) / 3, rng.integers(0, 5, 40) * 1.0, rng.integers(0, 4, (20, 40))
        found = WeightedRank(x, y, kind).of(counts.astype(float))
        expected = [ask(np.repeat(x, row), np.repeat(y, row)).statistic for row in counts]
        assert found == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("repeated", [True, False])
    def test_average_precision_is_scikit_learn_s(self, repeated: bool) -> None:
        """Under whole weights and real ones, with tied scores."""
        rng = np.random.default_rng(13)
        x, y = rng.integers(0, 9, 50) / 8, rng.integers(0, 2, 50) * 1.0
        weights = rng.integers(0, 4, (20, 50)) * 1.0 if repeated else rng.random((20, 50))
        expected = [average_precision_score(y, x, sample_weight=row) for row in weights]
        assert WeightedRank(x, y, "average_precision").of(weights) == pytest.approx(expected, abs=1e-12)

    def test_the_mean_over_classes_is_scikit_learn_s(self) -> None:
        """Each class against the rest, with weights."""
        rng = np.random.default_rng(14)
        scores, gold, weights = rng.dirichlet(np.ones(3), 60), rng.integers(0, 3, 60), rng.random((5, 60))
        columns = (WeightedRank(scores[:, c], (gold == c).astype(float), "auroc") for c in range(3))
        expected = [
            np.mean([roc_auc_score(gold == c, scores[:, c], sample_weight=row) for c in range(3)]) for row in weights
        ]
        assert RankMean(tuple(columns)).of(weights) == pytest.approx(expected, abs=1e-12)

    def test_auroc_takes_real_weights(self) -> None:
        """scikit-learn's sample_weight."""
        rng = np.random.default_rng(3)
        x, y, weights = rng.integers(0, 9, 50) / 8, rng.integers(0, 2, 50).astype(float), rng.random((1, 50))
        expected = roc_auc_score(y, x, sample_weight=weights[0])
        assert WeightedRank(x, y, "auroc").of(weights) == pytest.approx([expected], abs=1e-12)


class TestLawsOfEveryForm:
    def test_weights_are_repetitions(self, sides: Sides) -> None:
        """Weighting equals taking each case as often as its weight says."""
        rng = np.random.default_rng(4)
        paired, counts = sides(25, rng), rng.integers(1, 4, 25)
        repeated = paired.take(np.repeat(np.arange(25), counts))
        assert paired.delta(counts[None].astype(float)) == pytest.approx([repeated.value()], abs=1e-12)

    def test_order_of_cases_never_changes_a_byte(self, sides: Sides) -> None:
        """Neither the value nor what the groups bring."""
        rng = np.random.default_rng(5)
        paired, groups, order = sides(60, rng), np.sort(rng.integers(0, 25, 60)), rng.permutation(60)
        shuffled = paired.take(order)
        counts = rng.integers(0, 4, (7, 25)).astype(float)
        assert shuffled.value() == paired.value()
        assert (
            shuffled.by_group(groups[order], 25).of(counts).tobytes()
            == paired.by_group(groups, 25).of(counts).tobytes()
        )
        assert shuffled.jackknife(groups[order]).tobytes() == paired.jackknife(groups).tobytes()

    def test_a_group_s_count_is_the_weight_of_its_cases(self, sides: Sides) -> None:
        """The fast way by group equals the plain way by case."""
        rng = np.random.default_rng(6)
        paired, groups, counts = sides(60, rng), rng.integers(0, 25, 60), rng.integers(0, 4, (7, 25)).astype(float)
        assert paired.by_group(groups, 25).of(counts) == pytest.approx(paired.delta(counts[:, groups]), abs=1e-9)

    def test_the_jackknife_leaves_out_whole_groups(self, sides: Sides) -> None:
        """One delta per group that occurs, in rising order of codes."""
        paired, groups = sides(30, np.random.default_rng(7)), np.arange(30) // 3 * 2
        expected = [paired.take(groups != code).value() for code in range(0, 20, 2)]
        assert paired.jackknife(groups) == pytest.approx(expected, abs=1e-9)

    def test_swapping_every_case_turns_the_delta_around(self, sides: Sides) -> None:
        """Swapping none leaves it, swapping all negates it."""
        paired = sides(40, np.random.default_rng(8))
        mask = np.array([[False] * 40, [True] * 40])
        assert paired.swapped(mask) == pytest.approx([paired.value(), -paired.value()], abs=1e-12)

    def test_a_swap_is_of_the_marked_cases_alone(self, sides: Sides) -> None:
        """Against the two sides put together by hand."""
        paired, mask = sides(40, np.random.default_rng(9)), np.arange(40) % 3 == 0
        candidate, parent = paired.candidate, paired.parent
        if isinstance(candidate, WeightedRank):
            assert isinstance(parent, WeightedRank)
            expected = exchanged_by_hand(candidate, parent, mask)
        elif isinstance(candidate, RankMean):
            assert isinstance(parent, RankMean)
            columns = [exchanged_by_hand(*each, mask) for each in zip(candidate.columns, parent.columns, strict=True)]
            expected = Paired(
                RankMean(tuple(each.candidate for each in columns)), RankMean(tuple(each.parent for each in columns))
            )
        elif isinstance(candidate, Mean):
            assert isinstance(parent, Mean)
            expected = Paired(
                Mean(np.where(mask, parent.values, candidate.values)),
                Mean(np.where(mask, candidate.values, parent.values)),
            )
        else:
            assert isinstance(parent, Finish)
            at = mask[:, None]
            expected = Paired(
                Finish(np.where(at, parent.rows, candidate.rows), candidate.finish),
                Finish(np.where(at, candidate.rows, parent.rows), candidate.finish),
            )
        assert paired.swapped(mask[None]) == pytest.approx([expected.value()], abs=1e-12)

    def test_what_differs_is_what_was_changed(self, sides: Sides) -> None:
        """A side against itself differs nowhere."""
        paired = sides(20, np.random.default_rng(10))
        assert not Paired(paired.parent, paired.parent).differs().any()
        assert paired.differs().any()

    def test_ranks_are_exchanged_not_values(self) -> None:
        """A candidate on another scale gives the same deltas under exchange."""
        rng = np.random.default_rng(11)
        candidate, parent, true = rng.normal(size=(3, 30))
        paired = Paired(WeightedRank(candidate, true, "spearman"), WeightedRank(parent, true, "spearman"))
        scaled = Paired(WeightedRank(100 * candidate - 7, true, "spearman"), paired.parent)
        mask = rng.random((5, 30)) < 0.5
        assert scaled.swapped(mask).tolist() == paired.swapped(mask).tolist()


class TestUndefined:
    def test_a_constant_prediction_has_no_correlation(self) -> None:
        """NaN, not zero."""
        constant = WeightedRank(np.ones(5), np.arange(5.0), "spearman")
        assert np.isnan(constant.value())
        assert np.isnan(constant.of(np.random.default_rng(16).random((200, 5)))).all()

    @pytest.mark.parametrize("kind", ["pearson", "kendall"])
    def test_neither_have_the_others(self, kind) -> None:
        """Also where only a draw makes it constant, far from 0."""
        found = WeightedRank(np.array([1e6 + 0.1, 1e6 + 0.1, 7.0]), np.array([1.0, 2.0, 3.0]), kind)
        assert np.isnan(found.of(np.array([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]]))).tolist() == [True, False]

    def test_a_class_that_a_draw_lacks_is_left_out_of_its_mean(self) -> None:
        """And without any class there is no value."""
        x, y = np.array([0.9, 0.4, 0.2]), np.array([1.0, 0.0, 0.0])
        found = RankMean((WeightedRank(x, y, "auroc"), WeightedRank(-x, np.array([0.0, 1.0, 0.0]), "auroc")))
        drawn = found.of(np.array([[1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]))
        assert drawn[:2].tolist() == [0.75, 0.0]
        assert np.isnan(drawn[2])

    def test_no_positive_has_no_average_precision(self) -> None:
        found = WeightedRank(np.array([0.1, 0.2]), np.array([0.0, 1.0]), "average_precision")
        assert np.isnan(found.of(np.array([[1.0, 0.0]]))[0])

    def test_one_class_has_no_auroc(self) -> None:
        """Also where the other class has no weight in this draw."""
        statistic = WeightedRank(np.arange(3.0), np.array([0.0, 1.0, 1.0]), "auroc")
        assert np.isnan(statistic.of(np.array([[0.0, 1.0, 1.0]]))).all()

    def test_no_weight_has_no_mean(self) -> None:
        """0 / 0 is undefined."""
        assert np.isnan(Mean(np.ones(2)).of(np.zeros((1, 2)))).all()


class TestRefusals:
    def test_no_cases(self) -> None:
        """A slice without scored cases is an error, not a zero."""
        with pytest.raises(EmptySlice):
            Mean(np.ones(3)).take(np.zeros(3, dtype=bool))

    def test_a_value_of_an_unscored_case(self) -> None:
        """NaN never reaches a mean."""
        with pytest.raises(HarnessError, match="1 values that are not finite"):
            Mean(np.array([1.0, np.nan]))

    def test_two_forms_or_sizes_cannot_be_paired(self) -> None:
        """The error names both."""
        with pytest.raises(Unpairable, match="Mean of 3 cases and Mean of 2 cases"):
            Paired(Mean(np.ones(3)), Mean(np.ones(2)))
        with pytest.raises(Unpairable):
            Paired(Mean(np.ones(3)), Finish(np.ones((3, 3)), f1))

    def test_graded_truth_has_no_auroc(self) -> None:
        """Besides 0 and 1 nothing is positive or negative."""
        with pytest.raises(Misconfigured):
            WeightedRank(np.ones(3), np.array([0.0, 1.0, 2.0]), "auroc")

    @pytest.mark.parametrize("groups", [np.array([0, 1]), np.array([0, 1, 5]), np.array([0, -1, 1])])
    def test_groups_of_other_cases(self, groups: np.ndarray) -> None:
        """One code per case, below the number of groups."""
        with pytest.raises(Unpairable):
            Mean(np.ones(3)).by_group(groups, 3)


class TestFixedPoint:
    def test_sums_on_the_grid_have_no_order(self) -> None:
        """Plain sums of the same numbers do."""
        rng = np.random.default_rng(13)
        values = rng.normal(size=(1000, 1)) * 10.0 ** rng.integers(-3, 4, (1000, 1))
        orders = [rng.permutation(1000) for _ in range(20)]
        grid = on_grid(values, 1000)
        assert len({sum(values[order, 0].tolist()) for order in orders}) > 1
        assert len({sum(grid[order, 0].tolist()) for order in orders}) == 1

    def test_neither_groups_nor_a_finish_add_in_an_order(self) -> None:
        """A hundred cases a group, of very different sizes."""
        rng = np.random.default_rng(15)
        rows = rng.normal(size=(1000, 2)) * 10.0 ** rng.integers(-3, 4, (1000, 1))
        groups, order = rng.integers(0, 10, 1000), rng.permutation(1000)
        assert group_sums(rows[order], groups[order], 10).tobytes() == group_sums(rows, groups, 10).tobytes()
        orders = [rng.permutation(1000) for _ in range(20)]
        assert len({Finish(rows[order], lambda sums: sums[:, 0]).value() for order in orders}) == 1

    def test_sums_by_group_are_those_of_each_group_alone(self) -> None:
        """However many columns are taken at a time, also of groups without cases and of one case, where -0 is 0."""
        rng = np.random.default_rng(16)
        rows = np.where(rng.random((4000, 700)) < 0.1, rng.integers(-3, 4, (4000, 700)), -0.0)
        for groups in (rng.integers(0, 90, 4000) * 2, rng.permutation(4000)):
            sums = group_sums(rows, groups, 4000)
            assert not np.signbit(sums[sums == 0]).any()
            for group in (0, 1, 2, 3999):
                assert (sums[group] == rows[groups == group].sum(axis=0)).all()
            assert grid_sums(rows, groups, 4000).tobytes() == on_grid(sums, 4000).tobytes()

    @pytest.mark.parametrize("scale", [1e-250, 1e-5, 1.0, 1e9, 1e200])
    def test_the_grid_keeps_eleven_digits(self, scale: float) -> None:
        """Of the largest value, over ten thousand terms; zeros stay zeros."""
        values = np.random.default_rng(14).normal(size=(500, 1)) * scale
        assert np.abs(on_grid(values, 10_000) - values).max() <= 1e-11 * np.abs(values).max()
        assert not on_grid(np.zeros((3, 2)), 10).any()

    def test_the_delta_of_two_means_is_the_mean_of_deltas(self) -> None:
        """So cases that did not change bring exactly nothing."""
        mean = as_mean(Paired(Mean(np.array([0.1, 0.9])), Mean(np.array([0.1, 0.4]))))
        assert mean is not None
        assert mean.values.tolist() == [0.0, 0.5]
