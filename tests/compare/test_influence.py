"""What single cases do to a rank statistic, against small steps of the statistic itself."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from harness.compare.draw import Resample, SignFlips
from harness.compare.evidence import standard_error
from harness.compare.influence import agreements
from harness.compare.interval import bootstrap
from harness.compare.ordering import RANKS, RankMean, WeightedRank
from harness.compare.randomisation import label_swap, worse_p
from harness.compare.statistic import Grouped, Paired
from harness.output.contribution import RankKind

KINDS: tuple[RankKind, ...] = ("pearson", "spearman", "kendall", "auroc", "average_precision")
GRADED = ("pearson", "spearman", "kendall")


def case(kind: RankKind, n: int, seed: int, values: int = 7) -> WeightedRank:
    """Predictions with many ties, and what holds."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4 if kind in GRADED else 2, n).astype(float)
    y[:2] = 0, 1
    return WeightedRank(np.round(rng.integers(0, values, n) + y, 2), y, kind)


class TestInfluence:
    @pytest.mark.parametrize("kind", KINDS)
    def test_it_is_the_slope(self, kind: RankKind) -> None:
        """n times the change of the statistic as one case's weight moves from 1 by a millionth."""
        one = case(kind, 40, 1)
        step = 1e-6
        weights = np.ones((80, 40)) + np.concatenate([np.eye(40), -np.eye(40)]) * step
        moved = one.of(weights)
        slope = 40 * (moved[:40] - moved[40:]) / (2 * step)
        np.testing.assert_allclose(one.influence(), slope, atol=1e-5)

    @pytest.mark.parametrize("kind", KINDS)
    def test_they_sum_to_nothing(self, kind: RankKind) -> None:
        """All cases twice are the same statistic."""
        assert abs(case(kind, 500, 2).influence().sum()) < 1e-8

    @pytest.mark.parametrize("kind", KINDS)
    def test_an_undefined_statistic_has_none(self, kind: RankKind) -> None:
        """A constant truth orders nothing; average precision is undefined without a positive."""
        assert np.isnan(WeightedRank(np.arange(5.0), np.zeros(5), kind).influence()).all()

    def test_a_mean_over_classes(self) -> None:
        """The mean over those classes that are defined."""
        good, other = case("auroc", 30, 3), case("auroc", 30, 4)
        absent = WeightedRank(np.arange(30.0), np.zeros(30), "auroc")
        found = RankMean((good, absent, other)).influence()
        np.testing.assert_allclose(found, (good.influence() + other.influence()) / 2, atol=1e-12)

    def test_the_variance_of_auroc_is_delongs(self) -> None:
        """Of two positives at 3 and 1, two negatives at 2 and 0: components 1, ½ and ½, 1, so ⅛/2 + ⅛/2 about 3/4."""
        one = WeightedRank(np.array([3.0, 1.0, 2.0, 0.0]), np.array([1.0, 1.0, 0.0, 0.0]), "auroc")
        np.testing.assert_allclose(one.influence(), [0.5, -0.5, -0.5, 0.5])


class TestAgreements:
    @pytest.mark.parametrize("values", [1, 2, 5, 1000])
    def test_every_pair_by_hand(self, values: int) -> None:
        """The sum of the products of signs, whatever the ties."""
        rng = np.random.default_rng(values)
        for n in (1, 2, 3, 17, 64, 101):
            x, y = rng.integers(0, values, (2, n))
            by_hand = (np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum(axis=1)
            np.testing.assert_array_equal(agreements(x, y), by_hand)


class TestLarge:
    """A hundred thousand cases: the values are the referees', and come in seconds."""

    N = 100_000

    def test_values(self) -> None:
        rng = np.random.default_rng(1)
        y = rng.integers(0, 2, self.N).astype(float)
        graded = rng.integers(0, 30, self.N).astype(float)
        x = np.round(rng.normal(size=self.N) + y + graded / 10, 2)
        referees = {
            "kendall": stats.kendalltau(x, graded).statistic,
            "spearman": stats.spearmanr(x, graded).statistic,
            "pearson": stats.pearsonr(x, graded).statistic,
        }
        for kind, expected in referees.items():
            assert WeightedRank(x, graded, kind).value() == pytest.approx(expected, abs=1e-10)
        assert WeightedRank(x, y, "auroc").value() == pytest.approx(sk.roc_auc_score(y, x), abs=1e-12)
        expected = sk.average_precision_score(y, x)
        assert WeightedRank(x, y, "average_precision").value() == pytest.approx(expected, abs=1e-12)


class TestTheTwoWays:
    def test_kendall_by_sorting_is_kendall_by_pairs(self) -> None:
        """To the last bit."""
        one = case("kendall", 2500, 5, values=900)
        assert one.value() == float(RANKS["kendall"].weighted(one.x, one.y, np.ones((1, 2500)))[0])

    @pytest.mark.parametrize("kind", KINDS)
    def test_the_expansion_gives_the_interval_of_the_statistic(
        self, kind: RankKind, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Of a pair of 600 cases in 200 groups: ends within a twentieth of its width, and it says what it is."""
        pair = Paired(case(kind, 600, 6, values=40), case(kind, 600, 7, values=40))
        pair = Paired(pair.candidate, WeightedRank(pair.parent.x, pair.candidate.y, kind))
        groups, resample = np.arange(600) // 3, Resample(200, 4000, 8)
        exact = bootstrap(pair, groups, resample=resample)
        p = label_swap(pair, groups, flips=SignFlips(200, 4000, 9))
        monkeypatch.setitem(RANKS, kind, RANKS[kind]._replace(most=500))
        found = bootstrap(pair, groups, resample=resample)
        assert (exact.method, found.method) == ("bca", "bca, to first order")
        width = exact.high - exact.low
        assert found.low == pytest.approx(exact.low, abs=width / 20)
        assert found.high == pytest.approx(exact.high, abs=width / 20)
        member = Grouped(pair, groups)
        assert worse_p([member], flips=SignFlips(200, 4000, 9), higher_is_better=[True])[0] == pytest.approx(
            p, abs=0.05
        )
        assert standard_error(pair, groups) == pytest.approx(width / 3.92, rel=0.1)

    def test_an_undefined_side_stays_undefined(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """No expansion of what has no value."""
        monkeypatch.setitem(RANKS, "auroc", RANKS["auroc"]._replace(most=10))
        flat = WeightedRank(np.arange(40.0), np.zeros(40), "auroc")
        assert np.isnan(bootstrap(flat, np.arange(40), resample=Resample(40, 100, 1)).low)
