"""The jackknife beside the interval that decided: a remark where the two are far apart."""

import numpy as np
import pytest
from scipy import stats

from harness.compare.evidence import jackknife_error, standard_error
from harness.compare.statistic import Mean
from harness.gate.check import jackknife_remarks
from harness.gate.policy import Policy
from harness.gate.rule import Rule, Uncertainty

from .conftest import METRIC, Gate

RULE = Rule(id="headline", kind="no-worse", metric=METRIC, margin=0.05)


def policy(*rules: Rule) -> Policy:
    return Policy(
        rules=rules, guards=None, guarded=(), uncertainty=Uncertainty(draws=1000), critical=frozenset(), min_support={},
        missing="undecided",
    )  # fmt: skip


def remarks(gate: type[Gate], candidate: list[float], parent: list[float], *rules: Rule) -> list[str]:
    _, cells = gate().cells({METRIC: candidate}, {METRIC: parent})
    return list(jackknife_remarks(policy(*rules), cells))


class TestRemarks:
    def test_two_that_agree_say_nothing(self, gate: type[Gate]) -> None:
        """Of a mean of many cases they are all but the same."""
        rng = np.random.default_rng(1)
        assert remarks(gate, rng.random(60).tolist(), rng.random(60).tolist(), RULE) == []

    @pytest.mark.parametrize(("scale", "word"), [(4.0, "narrower"), (0.2, "wider")])
    def test_two_that_disagree(
        self, gate: type[Gate], monkeypatch: pytest.MonkeyPatch, scale: float, word: str
    ) -> None:
        """Which rule, the other interval, and how far they are apart."""
        rng = np.random.default_rng(1)
        monkeypatch.setattr("harness.gate.check.jackknife_error", lambda *given: jackknife_error(*given) / scale)
        [told] = remarks(gate, rng.random(60).tolist(), rng.random(60).tolist(), RULE)
        assert told.startswith("headline: the jackknife by group gives [")
        assert f"times {word} than the interval that decided" in told

    def test_where_no_interval_decides_none_is_held(self, gate: type[Gate], monkeypatch: pytest.MonkeyPatch) -> None:
        """Nineteen groups, or nine that changed; and floors have no delta."""
        monkeypatch.setattr("harness.gate.check.jackknife_error", lambda *given: jackknife_error(*given) * 9)
        rng = np.random.default_rng(1)
        assert remarks(gate, rng.random(19).tolist(), rng.random(19).tolist(), RULE) == []
        assert remarks(gate, [0.5] * 51 + rng.random(9).tolist(), [0.5] * 60, RULE) == []
        floor = Rule(id="floor", kind="at-least", metric=METRIC, value=0.1)
        assert remarks(gate, rng.random(60).tolist(), rng.random(60).tolist(), floor) == []


class TestJackknife:
    def test_of_a_mean_it_is_the_textbooks(self) -> None:
        """Each case its group: the standard error of the mean."""
        values = np.random.default_rng(2).random(30)
        assert jackknife_error(Mean(values), np.arange(30)) == pytest.approx(stats.sem(values))

    def test_by_hand(self) -> None:
        """Groups of 1, 2 and 3: leave-one-out means 2.5, 2, 1.5, so √(2/3 · (¼ + 0 + ¼))."""
        assert jackknife_error(Mean(np.array([1.0, 2.0, 3.0])), np.arange(3)) == pytest.approx(np.sqrt(1 / 3))

    def test_one_group_has_none(self) -> None:
        assert np.isnan(jackknife_error(Mean(np.ones(3)), np.zeros(3, dtype=np.intp)))
        assert np.isnan(standard_error(Mean(np.ones(3)), np.zeros(3, dtype=np.intp)))
