"""Measures of calibration as metrics, against hand vectors and other libraries."""

import json

import numpy as np
import pytest
from sklearn import metrics as sk
from sklearn.linear_model import LogisticRegression

from harness.calibration import reliability
from harness.calibration.decision import risk_coverage
from harness.calibration.fit import sigmoid
from harness.compare.form import statistic
from harness.compare.statistic import Paired
from harness.errors import Misconfigured
from harness.metric import choice, classification, multilabel
from harness.metric.name import parse

from .outputs import ids, ok

RNG = np.random.default_rng(11)
N = 400
ODDS = RNG.normal(size=N) * 2
GOLD = (RNG.random(N) < sigmoid(0.6 * ODDS - 0.2)).astype(np.int64)
CHANCES = sigmoid(ODDS)
WEIGHTS = RNG.integers(0, 4, N)


def binary(name, chances=CHANCES, gold=GOLD, classes=("no", "yes")):
    """Statistic of two classes, of which the second by name is the positive one."""
    names = np.array(["no", "yes"])[gold]
    scores = np.stack([1 - chances, chances], axis=1)
    read = classification.classified(
        ids(len(gold)), list(names), classes, scores, ("no", "yes"), ok(len(gold)), kind="probability"
    )
    return statistic(classification.contribution(parse(name), read))


def many(name, chances, gold):
    labels = [f"l{c:02}" for c in range(chances.shape[1])]
    read = classification.classified(
        ids(len(gold)), [labels[g] for g in gold], labels, chances, labels, ok(len(gold)), kind="probability"
    )
    return statistic(classification.contribution(parse(name), read))


def sets(name, chances, gold):
    labels = [f"l{c}" for c in range(chances.shape[1])]
    held = [{label for label, has in zip(labels, row, strict=True) if has} for row in gold]
    read = multilabel.multilabelled(ids(len(gold)), held, labels, chances, labels, ok(len(gold)), kind="probability")
    return statistic(multilabel.contribution(parse(name), read))


def soft(k, n=N, seed=3):
    rng = np.random.default_rng(seed)
    gold = rng.integers(0, k, n)
    logits = 2 * (rng.normal(size=(n, k)) + 1.5 * np.eye(k)[gold])
    grown = np.exp(logits)
    return grown / grown.sum(axis=1, keepdims=True), gold


class TestByHand:
    def test_an_edge_belongs_to_the_bin_below_and_0_to_the_first(self):
        """Two bins: 0, .5 below and .6 above. Gaps 0.5 · (0 hits) and .4: ECE = (.5 + .4) / 3, MCE = .4."""
        chances, gold = np.array([0.0, 0.5, 0.6]), np.array([0, 0, 1])
        assert binary("ece_positive(bins=2)", chances, gold).value() == pytest.approx((0.5 + 0.4) / 3)
        assert binary("mce(bins=2)[yes]", chances, gold).value() == pytest.approx(0.4)

    def test_top_label_positive_and_class_wise_are_three(self):
        """One bin. P(yes) .2 and .9, gold no and no. Positive: |.55 - 0|; top label: |.85 - .5|."""
        chances, gold = np.array([0.2, 0.9]), np.array([0, 0])
        assert binary("ece_positive(bins=1)", chances, gold).value() == pytest.approx(0.55)
        assert binary("ece_top_label(bins=1)", chances, gold).value() == pytest.approx(0.35)
        assert binary("ece_positive(bins=1)[no]", chances, gold).value() == pytest.approx(0.55)
        assert binary("ece_classwise(bins=1)", chances, gold).value() == pytest.approx(0.55)

    def test_equal_mass_never_cuts_a_tied_group(self):
        """Three of .2 (one holds) and one of .8 (holds) in two bins: |.6 - 1| + |.8 - 1|, over 4."""
        chances, gold = np.array([0.2, 0.2, 0.2, 0.8]), np.array([1, 0, 0, 1])
        assert binary("ece_positive(bins=2,by='mass')", chances, gold).value() == pytest.approx((0.4 + 0.2) / 4)

    def test_the_parts_of_brier(self):
        """.2, .2, .8 with 0, 1, 1: rates 1/2 and 1 about 2/3."""
        chances, gold = np.array([0.2, 0.2, 0.8]), np.array([0, 1, 1])
        wanted = {
            "reliability": (2 * 0.3**2 + 0.2**2) / 3,
            "resolution": (2 * (1 / 6) ** 2 + (1 / 3) ** 2) / 3,
            "uncertainty": 2 / 9,
        }
        for part, value in wanted.items():
            assert binary(f"brier_{part}", chances, gold).value() == pytest.approx(value)
        score = wanted["reliability"] - wanted["resolution"] + wanted["uncertainty"]
        assert binary("brier_binary", chances, gold).value() == pytest.approx(score)

    def test_risk_and_coverage(self):
        """The surest is right, the next wrong, the last right: risks 0, 1/2, 1/3."""
        chances, gold = np.array([0.9, 0.8, 0.7]), np.array([1, 0, 1])
        assert binary("aurc", chances, gold).value() == pytest.approx((0 + 1 / 2 + 1 / 3) / 3)
        assert binary("risk_at_coverage(0.5)", chances, gold).value() == pytest.approx(1 / 2)
        assert binary("risk_at_coverage(1.0)", chances, gold).value() == pytest.approx(1 / 3)

    def test_tied_cases_are_answered_together(self):
        chances, gold = np.array([0.9, 0.9, 0.7]), np.array([1, 0, 1])
        assert binary("aurc", chances, gold).value() == pytest.approx((1 / 2 + 1 / 2 + 1 / 3) / 3)
        assert binary("risk_at_coverage(0.1)", chances, gold).value() == pytest.approx(1 / 2)

    def test_of_choices_the_likeliest_is_read(self):
        """.6 of three wrong, .9 of two right; one bin: |.75 - .5|."""
        read = choice.chosen(
            ids(2), np.array([1, 0]), [np.array([0.6, 0.3, 0.1]), np.array([0.9, 0.1])], ok(2), kind="probability"
        )
        for name, value in (("ece_top_label(bins=1)", 0.25), ("mce(bins=1)", 0.25), ("aurc", (0 + 1 / 2) / 2)):
            assert statistic(choice.contribution(parse(name), read)).value() == pytest.approx(value)


class TestReferee:
    def test_a_public_model(self, shared_data):
        """500 questions of six kinds, whose figure another library stated."""
        folder = shared_data("trec6")
        expected = json.loads((folder / "cls_trec6_expected.json").read_text())
        rows = [json.loads(line) for line in (folder / "cls_trec6_probs.jsonl").read_text().splitlines()]
        chances = np.array([row["probs"] for row in rows])
        gold = np.array([expected["labels"].index(row["gold"]) for row in rows])
        found = many("ece_top_label", chances, gold).value()
        assert found == pytest.approx(expected["ece_15_equal_width_right_closed"], abs=1e-6)

    @pytest.mark.parametrize("bins", [5, 15])
    @pytest.mark.parametrize("mass", ["width", "mass"])
    def test_eces_are_those_of_plain_loops(self, bins, mass):
        chances, gold = soft(5)
        written = f"(bins={bins},by='{mass}')"
        top = reliability.top_label(chances, gold, bins, mass)
        assert many(f"ece_top_label{written}", chances, gold).value() == pytest.approx(top.ece, abs=1e-12)
        assert many(f"mce{written}", chances, gold).value() == pytest.approx(top.mce, abs=1e-12)
        wanted = reliability.classwise(chances, gold, bins, mass)
        assert many(f"ece_classwise{written}", chances, gold).value() == pytest.approx(wanted, abs=1e-12)

    def test_slope_is_logistic_regression_s_also_of_weighted_cases(self):
        for weights in (np.ones(N), WEIGHTS):
            referee = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000)
            referee.fit(ODDS[:, None], GOLD, sample_weight=weights)
            found = binary("calibration_slope").of(weights[None].astype(float))[0]
            assert found == pytest.approx(referee.coef_[0, 0], abs=1e-6)

    def test_the_intercept_makes_the_mean_forecast_the_rate(self):
        for weights in (np.ones(N), WEIGHTS):
            found = binary("calibration_intercept").of(weights[None].astype(float))[0]
            given = np.average(sigmoid(ODDS + found), weights=weights)
            assert given == pytest.approx(np.average(GOLD, weights=weights), abs=1e-10)

    def test_of_sets_the_losses_are_those_of_all_labels(self):
        rng = np.random.default_rng(4)
        chances, gold = rng.random((50, 3)), (rng.random((50, 3)) < 0.4).astype(int)
        flat, held = chances.ravel(), gold.ravel()
        assert sets("log_loss", chances, gold).value() == pytest.approx(sk.log_loss(held, flat))
        assert sets("brier_binary", chances, gold).value() == pytest.approx(sk.brier_score_loss(held, flat))
        pooled = reliability.positive(flat, held).ece
        assert sets("ece_positive", chances, gold).value() == pytest.approx(pooled)
        assert sets("mce", chances, gold).value() == pytest.approx(reliability.positive(flat, held).mce)
        one = reliability.positive(chances[:, 1], gold[:, 1]).ece
        assert sets("ece_positive[l1]", chances, gold).value() == pytest.approx(one)

    def test_the_parts_make_the_brier_score_of_every_class(self):
        """Forecasts that differ only between bins: the decomposition is exact, whatever the number of classes."""
        rng = np.random.default_rng(5)
        chances = np.array([[0.1, 0.3, 0.6], [0.3, 0.6, 0.1], [0.6, 0.1, 0.3]])[rng.integers(0, 3, 90)]
        gold = rng.integers(0, 3, 90)
        parts = {
            each: many(f"brier_{each}", chances, gold).value() for each in ("reliability", "resolution", "uncertainty")
        }
        made = parts["reliability"] - parts["resolution"] + parts["uncertainty"]
        assert many("brier_sum", chances, gold).value() == pytest.approx(made, abs=1e-12)

    def test_aurc_is_that_of_the_curve(self):
        found = risk_coverage(np.maximum(CHANCES, 1 - CHANCES), ((CHANCES > 0.5) != GOLD).astype(float))
        assert binary("aurc").value() == pytest.approx(found.aurc, abs=1e-12)
        assert binary("risk_at_coverage(0.8)").value() == pytest.approx(found.at(0.8), abs=1e-12)


class TestStatistic:
    EVERY = (
        "ece_top_label", "ece_positive", "ece_classwise", "mce", "ece_positive(by='mass')", "mce(by='mass')",
        "ece_classwise(by='mass')", "calibration_slope", "calibration_intercept", "brier_reliability", "aurc",
        "risk_at_coverage(0.8)",
    )  # fmt: skip

    @pytest.mark.parametrize("name", EVERY)
    def test_swapping_every_case_turns_the_delta_round(self, name):
        other = sigmoid(1.5 * ODDS + 0.4)
        pair = Paired(binary(name), binary(name, other))
        none, every = pair.swapped(np.array([[False] * N, [True] * N]))
        assert none == pytest.approx(pair.value(), abs=1e-9)
        assert every == pytest.approx(-pair.value(), abs=1e-9)
        assert abs(pair.value()) > 1e-6

    @pytest.mark.parametrize("name", EVERY)
    def test_swapping_some_is_measuring_the_mixture(self, name):
        other = sigmoid(1.5 * ODDS + 0.4)
        mask = np.random.default_rng(1).random(N) < 0.5
        wanted = (
            binary(name, np.where(mask, other, CHANCES)).value() - binary(name, np.where(mask, CHANCES, other)).value()
        )
        found = Paired(binary(name), binary(name, other)).swapped(mask[None])[0]
        assert found == pytest.approx(wanted, abs=1e-9)

    def test_one_outcome_alone_has_no_slope_and_what_a_cut_tells_apart_neither(self):
        ones = classification.classified(
            ids(3), ["yes"] * 3, ("no", "yes"), np.array([[0.2, 0.8]] * 3), ("no", "yes"), ok(3), kind="probability"
        )
        assert not classification.contribution(parse("calibration_intercept"), ones).scored.any()
        apart = classification.classified(
            ids(4), ["no", "no", "yes", "yes"], ("no", "yes"),
            np.array([[0.9, 0.1], [0.8, 0.2], [0.2, 0.8], [0.1, 0.9]]), ("no", "yes"), ok(4), kind="probability",
        )  # fmt: skip
        assert not classification.contribution(parse("calibration_slope"), apart).scored.any()
        assert classification.contribution(parse("calibration_intercept"), apart).scored.all()

    def test_more_classes_than_two_have_no_positive_one(self):
        with pytest.raises(Misconfigured, match="ece_classwise"):
            many("ece_positive", *soft(3))
