"""One probability a case: that a pair is the same, that the corpus answers a question."""

import numpy as np
import pytest
from sklearn import metrics as sk

from harness.compare.form import statistic
from harness.metric import chance
from harness.metric.calibration import Abstain
from harness.metric.chance import Stated
from harness.metric.name import parse
from harness.output.value import Status

from .outputs import ids

RNG = np.random.default_rng(12)
N = 120
HELD = (RNG.random(N) < 0.4).astype(float)
CHANCE = np.clip(0.5 + 0.25 * RNG.normal(size=N) + 0.3 * (HELD - 0.5), 0.01, 0.99)
SURE = np.maximum(CHANCE, 1 - CHANCE)
LOSS = ((CHANCE >= 0.5) != HELD).astype(float)


def stated(given=CHANCE, sure=SURE, abstain=None, status=None):
    return Stated(
        ids(N), given, HELD, {"confidence": sure, "answerability": given}, LOSS,
        np.full(N, Status.SCORED, dtype=object) if status is None else status, abstain or Abstain(),
    )  # fmt: skip


def value(name, of):
    return statistic(chance.contribution(parse(name), of)).value()


class TestOfTheProbability:
    def test_losses_are_scikit_learns(self):
        assert value("log_loss", stated()) == pytest.approx(sk.log_loss(HELD, CHANCE))
        assert value("brier_binary", stated()) == pytest.approx(sk.brier_score_loss(HELD, CHANCE))

    @pytest.mark.parametrize(
        "name",
        [each for each in chance.MEASURED if each not in ("aurc", "risk_at_coverage", "coverage", "answered_accuracy")],
    )
    def test_where_nobody_gives_one_it_is_undefined(self, name):
        """A cosine is no probability, and no number of it is made up."""
        found = chance.contribution(parse(name), stated(np.full(N, np.nan)))
        assert not found.scored.any() and (found.status == Status.UNDEFINED).all()

    def test_a_case_without_one_is_left_out_and_told(self):
        half = np.where(np.arange(N) < 60, CHANCE, np.nan)
        found = chance.contribution(parse("log_loss"), stated(half))
        assert (found.status[60:] == Status.UNDEFINED).all()
        assert statistic(found, found.scored).value() == pytest.approx(sk.log_loss(HELD[:60], CHANCE[:60]))

    @pytest.mark.parametrize(("part", "right"), [("slope", 1.0), ("intercept", 0.0)])
    def test_the_error_of_a_slope_is_how_far_it_is_from_its_right_value(self, part, right):
        """And lower is better, whichever side of it the slope is on."""
        for given in (CHANCE, 1 / (1 + ((1 - CHANCE) / CHANCE) ** 4)):
            own = value(f"calibration_{part}", stated(given))
            assert value(f"calibration_{part}_error", stated(given)) == pytest.approx(abs(own - right))
        assert not parse(f"calibration_{part}_error").higher_is_better
        assert parse(f"calibration_{part}").target == right


class TestOfWhatIsAnswered:
    def test_by_hand(self):
        """Four questions, the surest first: right, wrong, right, wrong. Two of them are answered."""
        of = Stated(
            ids(4), np.array([0.9, 0.8, 0.4, 0.3]), np.array([1.0, 1, 1, 0]),
            {"confidence": np.array([9.0, 8, 4, 3]), "answerability": np.array([0.9, 0.8, 0.4, 0.3])},
            np.array([0.0, 1, 0, 1]), np.full(4, Status.SCORED, dtype=object), Abstain("answerability", 0.5),
        )  # fmt: skip
        assert value("coverage", of) == 0.5
        assert value("answered_accuracy", of) == 0.5
        assert value("aurc", of) == pytest.approx((0 + 1 / 2 + 1 / 3 + 2 / 4) / 4)
        assert value("risk_at_coverage(0.75)", of) == pytest.approx(1 / 3)

    def test_it_hangs_on_the_order_alone(self):
        """So it needs no probability, and a rising map changes nothing."""
        for name in ("aurc", "risk_at_coverage(0.7)"):
            assert value(name, stated(np.full(N, np.nan))) == value(name, stated(sure=np.exp(9 * SURE)))

    def test_where_nothing_is_said_nothing_is_answered(self):
        """An empty ranking is less sure than any other, and no coverage."""
        silent = np.where(np.arange(N) % 4 == 0, np.nan, SURE)
        assert value("coverage", stated(sure=silent)) == 0.75
        answered = np.arange(N) % 4 > 0
        assert value("risk_at_coverage(0.75)", stated(sure=silent)) == pytest.approx(LOSS[answered].mean())

    def test_what_failed_is_in_none(self):
        status = np.where(np.arange(N) < 30, Status.FAILED, Status.SCORED).astype(object)
        for name in ("aurc", "coverage", "log_loss", "ece_positive"):
            assert (chance.contribution(parse(name), stated(status=status)).status[:30] == Status.FAILED).all()
