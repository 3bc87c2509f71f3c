"""Fitted maps, each optimum against another's."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.calibration import _sigmoid_calibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from harness.calibration.fit import (
    fit_beta,
    fit_histogram,
    fit_isotonic,
    fit_platt,
    fit_temperature,
    sigmoid,
    softmax,
)
from harness.calibration.scaling import fit_matrix, fit_vector
from harness.errors import Misconfigured

RNG = np.random.default_rng(7)
GOLD = RNG.integers(0, 3, 400)
LOGITS = RNG.normal(size=(400, 3)) * 2 + 3 * np.eye(3)[GOLD]
BINARY = RNG.integers(0, 2, 300)
SCORES = RNG.normal(size=300) + BINARY


def nll(chances, gold):
    return float(-np.log(chances[np.arange(len(gold)), gold]).sum())


class TestTemperature:
    def test_no_other_temperature_has_less_loss(self):
        found = fit_temperature(LOGITS, GOLD)
        best = nll(found.probabilities(LOGITS), GOLD)
        for other in np.linspace(0.2, 5, 400):
            assert nll(softmax(LOGITS / other), GOLD) >= best - 1e-9

    def test_the_unit_of_the_logits_is_its_unit(self):
        assert fit_temperature(LOGITS * 10, GOLD).temperature == pytest.approx(
            10 * fit_temperature(LOGITS, GOLD).temperature, rel=1e-6
        )

    def test_a_model_without_an_error_has_none(self):
        with pytest.raises(Misconfigured, match="still falls"):
            fit_temperature(10 * np.eye(3)[GOLD], GOLD)


class TestScaling:
    def test_matrix_scaling_is_multinomial_regression(self):
        """Its probabilities are those of scikit-learn without a penalty."""
        referee = LogisticRegression(C=np.inf, tol=1e-10, max_iter=10_000).fit(LOGITS, GOLD)
        np.testing.assert_allclose(
            fit_matrix(LOGITS, GOLD).probabilities(LOGITS), referee.predict_proba(LOGITS), atol=1e-5
        )

    def test_vector_scaling_reaches_scipys_optimum(self):
        found = fit_vector(LOGITS, GOLD)
        start = np.r_[np.ones(3), np.zeros(3)]
        referee = minimize(
            lambda x: nll(softmax(LOGITS * x[:3] + x[3:]), GOLD), start, method="Powell",
            options={"xtol": 1e-10, "ftol": 1e-14},
        )  # fmt: skip
        assert nll(found.probabilities(LOGITS), GOLD) <= referee.fun + 1e-6
        assert (found.weights == np.diag(np.diagonal(found.weights))).all()

    def test_each_family_holds_the_smaller_one(self):
        """A matrix does no worse than a vector, and that no worse than a temperature."""
        losses = [
            nll(fit(LOGITS, GOLD).probabilities(LOGITS), GOLD) for fit in (fit_matrix, fit_vector, fit_temperature)
        ]
        assert losses == sorted(losses)

    def test_more_numbers_than_cases_are_refused(self):
        with pytest.raises(Misconfigured, match="more cases"):
            fit_matrix(LOGITS[:11], GOLD[:11])


class TestPlatt:
    def test_it_is_scikit_learns(self):
        """Whose slope and intercept have the other sign."""
        a, b = _sigmoid_calibration(SCORES, BINARY)
        found = fit_platt(SCORES, BINARY)
        assert (found.slope, found.intercept) == pytest.approx((-a, -b), abs=1e-5)

    def test_the_prior_correction_keeps_separable_scores_finite(self):
        found = fit_platt(np.array([-1.0, -1, 1, 1]), np.array([0, 0, 1, 1]))
        assert found.probabilities(np.array([1.0])) == pytest.approx(3 / 4, abs=1e-6)

    def test_a_score_that_is_turned_round_is_refused(self):
        with pytest.raises(Misconfigured, match="likelier"):
            fit_platt(-SCORES, BINARY)


class TestBeta:
    CHANCES = sigmoid(2 * SCORES)

    def test_it_reaches_scipys_optimum_within_its_bounds(self):
        found = fit_beta(self.CHANCES, BINARY)
        parts = np.c_[np.log(self.CHANCES), -np.log1p(-self.CHANCES), np.ones(300)]

        def loss(x):
            return float(np.logaddexp(0, parts @ x).sum() - (BINARY * (parts @ x)).sum())

        referee = minimize(
            loss, [1, 1, 0], method="SLSQP", bounds=[(0, None), (0, None), (None, None)], options={"ftol": 1e-14}
        )
        assert loss(np.array([found.a, found.b, found.c])) <= referee.fun + 1e-6
        assert min(found.a, found.b) >= 0

    def test_calibrated_chances_stay_as_they_are(self):
        """a = b = 1 and c = 0 is no change."""
        chances = np.linspace(0.01, 0.99, 99)
        assert type(fit_beta(self.CHANCES, BINARY))(1.0, 1.0, 0.0).probabilities(chances) == pytest.approx(chances)

    def test_zero_and_one_are_no_error(self):
        found = fit_beta(np.r_[self.CHANCES, 0.0, 1.0], np.r_[BINARY, 0, 1])
        assert np.isfinite(found.probabilities(np.array([0.0, 1.0]))).all()


class TestSteps:
    @settings(max_examples=60, deadline=None)
    @given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 1)), min_size=2, max_size=40))
    def test_isotonic_is_scikit_learns_ties_and_all(self, rows):
        scores, gold = np.array(rows, dtype=float).T
        if len(np.unique(gold)) < 2 or len(np.unique(scores)) < 2:
            return
        at = np.linspace(-1, 7, 33)
        referee = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, gold)
        if not np.ptp(referee.predict(scores)):
            with pytest.raises(Misconfigured, match="rises"):
                fit_isotonic(scores, gold.astype(int))
            return
        found = fit_isotonic(scores, gold.astype(int))
        np.testing.assert_allclose(found.probabilities(at), referee.predict(at), atol=1e-12)
        assert (np.diff(found.probabilities(np.sort(scores))) >= 0).all()

    def test_what_it_is_certain_of_is_counted(self):
        found = fit_isotonic(np.array([1.0, 2, 3, 4, 5]), np.array([0, 0, 1, 0, 1]))
        assert found.probabilities(np.array([0.0, 2.0, 3.5, 9.0])).tolist() == [0, 0, 0.5, 1]
        assert found.n_certain == 3

    def test_a_histogram_never_cuts_a_tied_group(self):
        """Ten cases in two bins, of which eight tie: they are in one bin."""
        scores = np.array([1.0, *[2.0] * 8, 3.0])
        gold = np.array([0, 1, 1, 0, 0, 0, 0, 0, 0, 1])
        found = fit_histogram(scores, gold, bins=2)
        assert found.probabilities(np.array([1.0, 2.0, 2.5, 3.0])).tolist() == [2 / 9, 2 / 9, 1, 1]


class TestEveryFit:
    @pytest.mark.parametrize("fit", [fit_platt, fit_beta, fit_isotonic, fit_histogram])
    def test_one_class_alone_is_refused(self, fit):
        with pytest.raises(Misconfigured, match="both kinds"):
            fit(np.array([0.1, 0.2]), np.array([1, 1]))

    @pytest.mark.parametrize("fit", [fit_temperature, fit_vector, fit_matrix])
    def test_the_order_of_cases_changes_no_probability(self, fit):
        turned = RNG.permutation(len(GOLD))
        np.testing.assert_allclose(
            fit(LOGITS[turned], GOLD[turned]).probabilities(LOGITS), fit(LOGITS, GOLD).probabilities(LOGITS), atol=1e-6
        )


class TestWhatSaysNothingOfACase:
    """A fit of it would be numbers out of nothing, so it is refused by name."""

    @pytest.mark.parametrize("fit", [fit_platt, fit_beta, fit_isotonic, fit_histogram])
    def test_one_score_of_all(self, fit):
        with pytest.raises(Misconfigured, match=r"one score, 0\.3, of all 4"):
            fit(np.full(4, 0.3), np.array([0, 1, 1, 0]))

    @pytest.mark.parametrize("fit", [fit_temperature, fit_vector, fit_matrix])
    @pytest.mark.parametrize("row", [[1.0, 2.0], [3.0, 3.0]])
    def test_the_same_scores_of_the_classes_in_every_case(self, fit, row):
        """Also where whole cases are shifted, which changes no probability."""
        logits = np.array(row) + np.arange(8)[:, None]
        with pytest.raises(Misconfigured, match="same scores"):
            fit(logits, np.arange(8) % 2)

    @pytest.mark.parametrize("fit", [fit_beta, fit_isotonic])
    def test_a_score_that_is_turned_round(self, fit):
        with pytest.raises(Misconfigured, match="likelier"):
            fit(np.array([0.1, 0.2, 0.3, 0.6, 0.8, 0.9]), np.array([1, 1, 0, 1, 0, 0]))


class TestWhereNoLossIsTheLeast:
    """The optimum lies at infinity, and where a search happens to stop is no fit."""

    @pytest.mark.parametrize("fit", [fit_vector, fit_matrix])
    def test_a_class_without_a_case(self, fit):
        with pytest.raises(Misconfigured, match=r"no calibration case of 2 of 3 classes \(columns 1, 3\)"):
            fit(LOGITS, np.ones(400, dtype=int))

    @pytest.mark.parametrize("fit", [fit_vector, fit_matrix])
    def test_one_class_that_is_told_apart_though_others_are_not(self, fit):
        with pytest.raises(Misconfigured, match="falls for ever"):
            fit(LOGITS + 40 * np.eye(3)[0] * (GOLD == 0)[:, None], GOLD)

    def test_a_cut_between_the_probabilities(self):
        with pytest.raises(Misconfigured, match="falls for ever"):
            fit_beta(np.array([0.1, 0.2, 0.2, 0.8]), np.array([0, 0, 1, 1]))

    @pytest.mark.parametrize(("n", "k"), [(1500, 77), (2000, 12)])
    def test_many_classes_reach_theirs(self, n, k):
        """At the optimum the gradient is 0: of a shift, what is said of each class in all is how often it is gold; of a
        scale, what is said weighs each class's logits as gold does.
        """
        gold = np.r_[np.arange(k), RNG.integers(0, k, n - k)]
        logits = 4 * (RNG.normal(size=(n, k)) + np.eye(k)[gold])
        error = fit_vector(logits, gold).probabilities(logits) - np.eye(k)[gold]
        assert np.abs(error.sum(axis=0)).max() < 1e-6
        assert np.abs((error * logits).sum(axis=0)).max() < 1e-5
        if n > k * (k + 1):
            error = fit_matrix(logits, gold).probabilities(logits) - np.eye(k)[gold]
            assert np.abs(logits.T @ error).max() < 1e-5

    @pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
    def test_the_unit_of_the_logits_decides_nothing(self, unit):
        for fit in (fit_vector, fit_matrix):
            np.testing.assert_allclose(
                fit(LOGITS * unit, GOLD).probabilities(LOGITS * unit),
                fit(LOGITS, GOLD).probabilities(LOGITS),
                atol=1e-7,
            )


class TestScoresBeyondAllBounds:
    @pytest.mark.parametrize("family", [fit_vector, fit_matrix])
    def test_are_refused_without_a_warning(self, family):
        """Numbers near the largest that a float holds overflow in every product with a weight."""
        logits = np.array([[1e307, -1e307, 0.0], [-1e307, 1e307, 3.0], [1.0, 2.0, 1e307], [1e307, 1.0, 0.0]] * 4)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(Misconfigured, match="falls for ever"):
                family(logits, np.array([0, 1, 2, 1] * 4))
