"""A family's size is what was declared."""

import numpy as np
import pytest
from scipy.stats import false_discovery_control

from harness.compare.family import benjamini_hochberg, holm


class TestHolm:
    def test_by_hand(self) -> None:
        """.01 × 4, then .02 × 3, then .03 × 2 no lower than before, and .5 × 1."""
        assert holm(np.array([0.03, 0.01, 0.5, 0.02])) == pytest.approx([0.06, 0.04, 0.5, 0.06])

    def test_never_above_one(self) -> None:
        """.6 × 2 is 1."""
        assert holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]


class TestBenjaminiHochberg:
    def test_against_scipy(self) -> None:
        """scipy.stats.false_discovery_control."""
        p = np.random.default_rng(1).random(50) ** 3
        assert benjamini_hochberg(p) == pytest.approx(false_discovery_control(p))

    def test_by_hand(self) -> None:
        """.04 × 4/4 holds down .03 × 4/3 (= .04) and leaves .01 × 4/1 and .015 × 4/2 (= .03)."""
        assert benjamini_hochberg(np.array([0.04, 0.03, 0.01, 0.015])) == pytest.approx([0.04, 0.04, 0.03, 0.03])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
class TestUndefinedMembers:
    def test_they_count_as_one(self, adjust: object) -> None:
        """They stay in the family, and are never rejected."""
        assert callable(adjust)
        found = adjust(np.array([0.01, np.nan, np.nan]))
        assert found == pytest.approx([0.03, 1.0, 1.0])


class TestDraws:
    def test_enough_draws_can_reject(self) -> None:
        """The smallest p, times the members, is below α; with a quarter of the draws it is not."""
        assert holm(np.array([1 / 801] + [1.0] * 19))[0] <= 0.05
        assert holm(np.array([1 / 201] + [1.0] * 19))[0] > 0.05
