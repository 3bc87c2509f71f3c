"""One number per case."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

from harness.compare.form import statistic
from harness.compare.statistic import Paired
from harness.errors import Misconfigured, Unpairable
from harness.metric.name import parse
from harness.metric.regression import Inverse, Range, contribution, regressed, residuals, target_summary
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import ids, ok


def read(target, output, status=None, **rest):
    n = len(target)
    return regressed(
        ids(n), np.array(target, float), np.array(output, float), ok(n) if status is None else status, **rest
    )


def value(name, outputs):
    return statistic(contribution(parse(name), outputs)).value()


class TestReferee:
    @pytest.mark.parametrize(
        ("name", "ask"),
        [
            ("mae", sk.mean_absolute_error),
            ("mse", sk.mean_squared_error),
            ("rmse", sk.root_mean_squared_error),
            ("r2", sk.r2_score),
        ],
    )
    @pytest.mark.parametrize("far", [0.0, 1e6])
    def test_scikit_learn_s_number_also_of_weighted_cases(self, name, ask, far):
        """Also where targets lie far from 0."""
        rng = np.random.default_rng(1)
        target = rng.normal(size=50) + far
        output = target + rng.normal(size=50)
        weights = np.stack([np.ones(50), rng.integers(0, 4, 50), rng.random(50)])
        expected = [ask(target, output, sample_weight=row) for row in weights]
        assert statistic(contribution(parse(name), read(target, output))).of(weights) == pytest.approx(
            expected, abs=1e-9
        )

    @pytest.mark.parametrize(
        ("name", "ask"), [("pearson", stats.pearsonr), ("spearman", stats.spearmanr), ("kendall", stats.kendalltau)]
    )
    def test_scipy_s_correlations_with_ties(self, name, ask):
        rng = np.random.default_rng(2)
        target, output = rng.integers(0, 9, 70) / 7, rng.integers(0, 5, 70) / 3
        assert value(name, read(target, output)) == pytest.approx(ask(target, output).statistic, abs=1e-9)


class TestR2:
    def test_it_is_over_all_cases(self):
        """Two halves that are each no better than their own mean are together nearly perfect."""
        target, output = [0, 2, 100, 102], [1, 1, 101, 101]
        halves = [value("r2", read(target[i : i + 2], output[i : i + 2])) for i in (0, 2)]
        assert halves == [0, 0]
        assert value("r2", read(target, output)) == pytest.approx(1 - 4 / 10004)

    def test_sides_with_other_holes_may_exchange_cases(self):
        """A case that one side lacks doesn't move what the other's targets are measured from."""
        target, status = np.array([1.0, 2.0, 4.0, 90.0]), ok(4)
        status[3] = OutputStatus.MISSING
        candidate = contribution(parse("r2"), read(target, [1.5, 2, 3, 80]))
        parent = contribution(parse("r2"), read(target, [1, 3, 4, 0], status))
        both = candidate.scored & parent.scored
        swapped = Paired(statistic(candidate, both), statistic(parent, both)).swapped(np.array([[True, False, False]]))
        expected = sk.r2_score(target[:3], [1, 2, 3]) - sk.r2_score(target[:3], [1.5, 3, 4])
        assert swapped == pytest.approx([expected], abs=1e-9)


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        """A target of NaN is none; an output that is no number has failed."""
        status = ok(5)
        status[1] = OutputStatus.MISSING
        outputs = read([1, 2, np.nan, 4, 5], [1, 2, 3, np.inf, np.nan], status)
        assert list(outputs.status) == [
            Status.SCORED, Status.MISSING, Status.NOT_APPLICABLE, Status.FAILED, Status.FAILED,
        ]  # fmt: skip

    @pytest.mark.parametrize("name", ["pearson", "spearman", "kendall"])
    def test_constant_predictions_have_no_correlation(self, name):
        """Nor have constant targets; both are a status, and no 0."""
        for outputs in (read([1, 2, 3], [0.1, 0.1, 0.1]), read([0.1, 0.1, 0.1], [1, 2, 3])):
            assert set(contribution(parse(name), outputs).status) == {Status.UNDEFINED}

    def test_constant_targets_have_no_r2(self):
        outputs = read([0.1, 0.1, 0.1], [0.1, 0.1, 0.2])
        assert set(contribution(parse("r2"), outputs).status) == {Status.UNDEFINED}
        assert value("mae", outputs) == pytest.approx(0.1 / 3)

    def test_an_infinite_target_is_refused(self):
        with pytest.raises(Misconfigured, match="beyond"):
            read([np.inf], [1])


class TestInverse:
    @pytest.mark.parametrize(
        ("inverse", "expected"),
        [
            (Inverse(), [0.0, 1.0]),
            (Inverse(scale=2, shift=3), [3.0, 5.0]),
            (Inverse(link="exp"), [1.0, np.e]),
            (Inverse(scale=2, shift=0, link="expm1"), [0.0, np.e**2 - 1]),
        ],
    )
    def test_errors_are_in_the_target_s_units(self, inverse, expected):
        outputs = read(expected, [0, 1], inverse=inverse)
        assert outputs.prediction == pytest.approx(expected)
        assert value("mae", outputs) == pytest.approx(0)

    def test_what_overflows_has_failed(self):
        assert list(read([1], [1e4], inverse=Inverse(link="exp")).status) == [Status.FAILED]

    @pytest.mark.parametrize("scale", [0.0, np.nan, np.inf])
    def test_a_scale_can_be_undone(self, scale):
        with pytest.raises(Misconfigured, match="inverse transform"):
            Inverse(scale=scale)


class TestCompanions:
    def test_ranges_and_counts(self):
        """Three scored, of which one was put on the edge and one lies beyond every target."""
        status = ok(6)
        status[4] = OutputStatus.FAILED
        outputs = read([1, 2, 3, np.nan, 5, 6], [-4, 2, 3.5, 1, 1, np.nan], status, clip=Range(1, 10))
        found = target_summary(outputs)
        assert (found.targets.low, found.targets.high) == (1, 3)
        assert (found.predictions.low, found.predictions.high) == (1, 3.5)
        assert (found.n_scored, found.n_without_target, found.n_missing, found.n_failed) == (3, 1, 0, 2)
        assert (found.n_clipped, found.n_beyond) == (1, 1)
        assert outputs.clipped.tolist() == [True, *[False] * 5]

    def test_residuals_by_slice(self):
        """Prediction minus target; an empty slice has no numbers."""
        outputs = read([1, 1, 1, 1], [1, 2, 4, np.nan])
        every, none = np.ones(4, bool), np.zeros(4, bool)
        found = residuals(outputs, {"all": every, "first": np.arange(4) < 1, "none": none})
        assert [(each.slice, each.n) for each in found] == [("all", 3), ("first", 1), ("none", 0)]
        assert (found[0].mean, found[0].median, found[0].largest) == (pytest.approx(4 / 3), 1, 3)
        assert found[1].spread == 0
        assert np.isnan(found[2].mean)
        with pytest.raises(Unpairable):
            residuals(outputs, {"short": every[:2]})

    def test_a_range_has_two_ends(self):
        with pytest.raises(Misconfigured, match="range"):
            Range(1, 1)
