"""Scored pairs."""

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from harness.compare.form import statistic
from harness.errors import Misconfigured
from harness.metric.name import parse
from harness.metric.similarity import contribution, distribution, fit_threshold, scored_pairs
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import ids, ok


def read(gold, score, status=None):
    n = len(gold)
    return scored_pairs(ids(n), np.array(gold, float), np.array(score, float), ok(n) if status is None else status)


def value(name, pairs, threshold=None):
    return statistic(contribution(parse(name), pairs, threshold)).value()


def roles(*named):
    return np.array(named, dtype=object)


class TestReferee:
    @pytest.mark.parametrize(
        ("name", "ask"),
        [
            ("pair_accuracy", lambda gold, score, w: sk.accuracy_score(gold, score >= 0.5, sample_weight=w)),
            ("pair_f1", lambda gold, score, w: sk.f1_score(gold, score >= 0.5, sample_weight=w)),
            ("pair_precision", lambda gold, score, w: sk.precision_score(gold, score >= 0.5, sample_weight=w)),
            ("pair_recall", lambda gold, score, w: sk.recall_score(gold, score >= 0.5, sample_weight=w)),
            ("pair_roc_auc", lambda gold, score, w: sk.roc_auc_score(gold, score, sample_weight=w)),
            ("pair_average_precision", lambda gold, score, w: sk.average_precision_score(gold, score, sample_weight=w)),
        ],
    )
    def test_scikit_learn_s_number_also_of_weighted_cases(self, name, ask):
        rng = np.random.default_rng(3)
        gold, score = rng.integers(0, 2, 60), rng.integers(0, 11, 60) / 10
        weights = np.stack([np.ones(60), rng.integers(1, 4, 60), rng.random(60)])
        expected = [ask(gold, score, row) for row in weights]
        found = statistic(contribution(parse(name), read(gold, score), 0.5))
        assert found.of(weights) == pytest.approx(expected, abs=1e-9)

    def test_public_pairs(self, shared_data):
        """1,500 pairs with 1,283 tied scores, against scipy's figures."""
        folder = shared_data("sts_dev")
        expected = json.loads((folder / "sts_stsb_dev_expected.json").read_text())
        with (folder / "sts_stsb_dev_pred.tsv").open() as lines:
            rows = list(csv.DictReader(lines, delimiter="\t"))
        pairs = read([float(row["gold"]) for row in rows], [float(row["pred"]) for row in rows])
        assert value("pearson", pairs) == pytest.approx(expected["pearson"], abs=1e-9)
        assert value("spearman", pairs) == pytest.approx(expected["spearman"], abs=1e-9)
        assert value("kendall", pairs) == pytest.approx(expected["kendall_tau_b"], abs=1e-9)


class TestSubsets:
    def test_they_are_pooled_not_averaged(self):
        """Each subset is in perfect order by itself; together the second's scores stand too high."""
        pairs = read([1, 2, 3, 1, 2, 3], [1, 2, 3, 11, 12, 13])
        found = contribution(parse("spearman"), pairs)
        first = np.arange(6) < 3
        assert [statistic(found, part).value() for part in (first, ~first)] == pytest.approx([1, 1])
        assert statistic(found).value() < 0.8


class TestThreshold:
    def test_it_is_fitted_on_the_calibration_role_alone(self):
        """What the promotion cases say doesn't move it."""
        role = roles("calibration", "calibration", "promotion", "promotion")
        found = fit_threshold(read([0, 1, 1, 0], [0.2, 0.6, 0.1, 0.9]), role)
        assert (found.value, found.reached, found.n, found.aim) == (0.4, 1.0, 2, "accuracy")
        assert fit_threshold(read([0, 1, 0, 1], [0.2, 0.6, 0.5, 0.3]), role) == found

    def test_no_calibration_case_no_threshold(self):
        with pytest.raises(Misconfigured, match="calibration role"):
            fit_threshold(read([0, 1], [0.2, 0.6]), roles("promotion", "development"))

    @pytest.mark.parametrize("aim", ["accuracy", "f1"])
    @settings(max_examples=40, deadline=None)
    @given(
        pairs=st.lists(
            st.tuples(st.integers(0, 1), st.sampled_from([-1.0, 0.1, np.nextafter(0.1, 1), 0.3, 2.0])), min_size=1
        )
    )
    def test_no_other_threshold_reaches_more(self, aim, pairs):
        """And it splits no tied group: as many pairs are called same as there are at or above one of the scores."""
        gold, score = np.array(pairs).T
        found = fit_threshold(read(gold, score), np.full(len(gold), "calibration", dtype=object), aim)

        def reach(threshold):
            called = score >= threshold
            return np.mean(called == gold) if aim == "accuracy" else sk.f1_score(gold, called, zero_division=0)

        candidates = [*np.unique(score), np.inf]
        assert found.reached == pytest.approx(max(reach(each) for each in candidates))
        assert reach(found.value) == pytest.approx(found.reached)
        same = [(score >= each).sum() for each in candidates if reach(each) == pytest.approx(found.reached)]
        assert (score >= found.value).sum() == min(same)

    @settings(max_examples=20, deadline=None)
    @given(seed=st.integers(0, 1000))
    def test_order_of_cases_never_moves_it(self, seed):
        rng = np.random.default_rng(seed)
        gold, score, order = rng.integers(0, 2, 20), rng.integers(0, 6, 20) / 7, rng.permutation(20)
        role = np.full(20, "calibration", dtype=object)
        assert fit_threshold(read(gold[order], score[order]), role) == fit_threshold(read(gold, score), role)

    def test_a_metric_that_needs_one_says_so(self):
        with pytest.raises(Misconfigured, match="no threshold"):
            contribution(parse("pair_f1"), read([0, 1], [0.1, 0.2]))


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        status = ok(4)
        status[1] = OutputStatus.MISSING
        pairs = read([1, 1, np.nan, 0], [0.3, 0.3, 0.3, np.nan], status)
        assert list(pairs.status) == [Status.SCORED, Status.MISSING, Status.NOT_APPLICABLE, Status.FAILED]

    @pytest.mark.parametrize("name", ["pair_average_precision", "pair_roc_auc", "pair_recall"])
    def test_no_positive_is_undefined(self, name):
        assert set(contribution(parse(name), read([0, 0], [0.9, 0.1]), 0.95).status) == {Status.UNDEFINED}

    def test_same_and_different_are_no_grades(self):
        with pytest.raises(Misconfigured, match="spearman"):
            contribution(parse("pair_roc_auc"), read([0.5, 1], [0.1, 0.2]))


class TestDistribution:
    def test_of_the_scored_pairs(self):
        found = distribution(read([1, 1, 0, 0, 1], [0.0, 0.5, 0.5, 1.0, np.nan]), bins=2)
        assert (found.n, found.n_tied, found.low, found.high, found.mean) == (4, 2, 0, 1, 0.5)
        assert found.counts.tolist() == [1, 3]
        assert found.edges.tolist() == [0, 0.5, 1]
        assert found.quantiles[2] == 0.5

    def test_of_none(self):
        found = distribution(read([1], [np.nan]), bins=2)
        assert found.n == 0
        assert np.isnan(found.mean)
