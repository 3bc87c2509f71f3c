"""Reliability, against hand vectors and other libraries."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss

from harness.calibration.decision import (
    abstain_for_coverage,
    abstain_for_risk,
    capacity_threshold,
    cost_threshold,
    risk_coverage,
    sureness,
)
from harness.calibration.fit import sigmoid
from harness.calibration.reliability import binned, brier_parts, classwise, edges_of, positive, recalibration, top_label
from harness.errors import Misconfigured

RNG = np.random.default_rng(3)
ODDS = RNG.normal(size=500) * 1.5
GOLD = (RNG.random(500) < sigmoid(0.5 * ODDS + 0.3)).astype(np.int64)
CHANCES = sigmoid(ODDS)


class TestBins:
    def test_an_edge_belongs_to_the_bin_below_and_0_to_the_first(self):
        found = binned(np.array([0.0, 0.5, 0.5000001, 1.0]), np.zeros(4), np.array([0, 0.5, 1]))
        assert found.counts.tolist() == [2, 2]

    def test_ece_and_mce_by_hand(self):
        """Two of (.6, .8) hit once: gap .2; one of .1 hits: gap .9; weights 2/3 and 1/3."""
        found = binned(np.array([0.6, 0.8, 0.1]), np.array([1.0, 0.0, 1.0]), np.array([0, 0.5, 1.0]))
        assert found.ece == pytest.approx((2 * 0.2 + 0.9) / 3)
        assert found.mce == pytest.approx(0.9)

    def test_equal_mass_holds_as_many_in_each(self):
        assert np.ptp(positive(CHANCES, GOLD, 10, "mass").counts) <= 1

    def test_equal_forecasts_are_never_cut(self):
        chances = np.array([0.2] * 30 + [0.7] * 10)
        found = positive(chances, np.zeros(40, dtype=int), 10, "mass")
        assert sorted(each for each in found.counts.tolist() if each) == [10, 30]

    def test_the_diagram_is_scikit_learns(self):
        share, forecast = calibration_curve(GOLD, CHANCES, n_bins=10)
        found = positive(CHANCES, GOLD, 10)
        full = found.counts > 0
        np.testing.assert_allclose((found.hits / found.counts)[full], share)
        np.testing.assert_allclose((found.confidence / found.counts)[full], forecast)

    def test_a_public_model(self, shared_data):
        """500 questions of six kinds, 15 bins closed at the right."""
        folder = shared_data("trec6")
        expected = json.loads((folder / "cls_trec6_expected.json").read_text())
        rows = [json.loads(line) for line in (folder / "cls_trec6_probs.jsonl").read_text().splitlines()]
        chances = np.array([row["probs"] for row in rows])
        gold = np.array([expected["labels"].index(row["gold"]) for row in rows])
        assert top_label(chances, gold).ece == pytest.approx(expected["ece_15_equal_width_right_closed"], abs=1e-9)

    def test_top_label_and_class_wise_are_two(self):
        chances = np.array([[0.6, 0.4, 0.0], [0.2, 0.5, 0.3]])
        gold = np.array([0, 2])
        assert top_label(chances, gold, 1).ece == pytest.approx(abs(0.55 - 0.5))
        assert classwise(chances, gold, 1) == pytest.approx(np.mean([abs(0.4 - 0.5), abs(0.45 - 0), abs(0.15 - 0.5)]))

    def test_no_forecast_and_no_probability_are_refused(self):
        for wrong in (np.empty(0), np.array([1.2])):
            with pytest.raises(Misconfigured):
                binned(wrong, np.zeros(len(wrong)), edges_of(wrong))


class TestBrier:
    @given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1)), min_size=1, max_size=40))
    def test_its_parts_make_it(self, rows):
        chances, gold = np.array([each / 4 for each, _ in rows]), np.array([each for _, each in rows])
        found = brier_parts(chances, gold)
        assert found.score == pytest.approx(brier_score_loss(gold, chances, pos_label=1) if len(rows) else 0)
        assert found.score == pytest.approx(found.reliability - found.resolution + found.uncertainty, abs=1e-12)


class TestRecalibration:
    def test_slope_and_intercept_are_those_of_logistic_regression(self):
        referee = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000).fit(ODDS[:, None], GOLD)
        assert recalibration(CHANCES, GOLD).slope == pytest.approx(referee.coef_[0, 0], abs=1e-6)

    def test_the_intercept_is_where_the_mean_forecast_is_the_rate(self):
        found = recalibration(CHANCES, GOLD)
        assert sigmoid(ODDS + found.intercept).mean() == pytest.approx(GOLD.mean(), abs=1e-10)

    def test_without_both_classes_there_is_none(self):
        assert np.isnan(recalibration(CHANCES, np.ones(500, dtype=int)).slope)

    def test_separable_forecasts_have_no_slope(self):
        assert np.isnan(recalibration(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0, 0, 1, 1])).slope)


class TestDecision:
    def test_a_false_alarm_that_costs_four_misses_needs_certainty(self):
        assert cost_threshold(4, 1) == 0.8
        with pytest.raises(Misconfigured):
            cost_threshold(0, 1)

    def test_capacity_never_cuts_a_tied_group(self):
        scores = np.array([1.0, 2, 2, 3])
        assert [capacity_threshold(scores, share) for share in (1.0, 0.75, 0.5, 0.25)] == [1, 2, 3, 3]

    @pytest.mark.parametrize("no_share", [0.0, -0.1, 1.1, np.nan, np.inf])
    def test_no_share_is_no_demand(self, no_share):
        """Not of cases that are taken or answered; a risk of 0 is one, for the surest may all be right."""
        sure, loss = np.array([0.9, 0.8, 0.7]), np.array([0.0, 1.0, 0.0])
        for choose in (
            lambda: capacity_threshold(sure, no_share),
            lambda: abstain_for_coverage(sure, loss, no_share),
            lambda: abstain_for_risk(sure, loss, no_share or -1.0),
        ):
            with pytest.raises(Misconfigured, match="a share"):
                choose()
        assert abstain_for_risk(sure, loss, 0.0).below == 0.9

    def test_each_ground_by_hand(self):
        chances = np.array([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
        assert sureness(chances).tolist() == [0.5, 1.0]
        assert sureness(chances, "margin") == pytest.approx([0.2, 1.0])
        assert sureness(chances, "entropy") == pytest.approx(
            [(0.5 * np.log(0.5) + 0.3 * np.log(0.3) + 0.2 * np.log(0.2)), 0]
        )

    def test_risk_and_coverage_by_hand(self):
        """The surest is right, the next wrong, then right: risks 0, 1/2, 1/3."""
        found = risk_coverage(np.array([0.9, 0.5, 0.1]), np.array([0.0, 1.0, 0.0]))
        assert found.risk == pytest.approx([0, 1 / 2, 1 / 3])
        assert found.aurc == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
        assert found.at(0.5) == pytest.approx(1 / 2) and found.at(1.0) == pytest.approx(1 / 3)

    @given(st.permutations(range(6)))
    def test_the_order_of_tied_cases_never_matters(self, turned):
        sure, losses = np.array([0.9, 0.9, 0.9, 0.4, 0.4, 0.1]), np.array([1.0, 0, 0, 1, 0, 1])
        found, plain = risk_coverage(sure[list(turned)], losses[list(turned)]), risk_coverage(sure, losses)
        assert found.aurc == pytest.approx(plain.aurc) and found.risk == pytest.approx(plain.risk)
