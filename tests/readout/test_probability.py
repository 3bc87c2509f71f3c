"""Raw numbers that say what the mean of several probabilities is."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from harness.readout.probability import sigmoid_mean_logits, softmax_mean_logits


class TestMeanLogits:
    def test_their_probability_is_the_mean_and_not_that_of_the_mean(self) -> None:
        """Of 4 and 0 the probabilities are .9820 and .5, in the mean .7410, log odds 1.0512; 2 would have .8808."""
        [found] = sigmoid_mean_logits(np.array([[4.0], [0.0]]))
        assert found == pytest.approx(1.0512, abs=5e-5)
        assert expit(found) == pytest.approx(0.7410, abs=5e-5) and expit(2.0) == pytest.approx(0.8808, abs=5e-5)

    def test_of_classes_too(self) -> None:
        """softmax(4, 0) and softmax(0, 0) are .7410 and .2590 in the mean."""
        found = softmax_mean_logits(np.array([[4.0, 0.0], [0.0, 0.0]]))
        assert np.exp(found) == pytest.approx([0.7410, 0.2590], abs=5e-5)

    @pytest.mark.parametrize("seed", range(5))
    def test_scipy_agrees(self, seed: int) -> None:
        some = np.random.default_rng(seed).normal(0, 4, (seed + 1, 3))
        assert sigmoid_mean_logits(some) == pytest.approx(logit(expit(some).mean(axis=0)), rel=1e-9)
        assert softmax(softmax_mean_logits(some)) == pytest.approx(softmax(some, axis=1).mean(axis=0), rel=1e-12)

    def test_one_window_keeps_its_numbers(self) -> None:
        assert sigmoid_mean_logits(np.array([[3.0, -700.0]])) == pytest.approx([3.0, -700.0], rel=1e-12)

    def test_what_a_float_would_take_for_certain_is_told_apart(self) -> None:
        """Of 50 and 60 as of 50 and 50 the probability is 1 to the last bit; the doubt of the first pair is half."""
        first, second = (sigmoid_mean_logits(np.array([[50.0], [each]]))[0] for each in (60.0, 50.0))
        assert first - second == pytest.approx(np.log(2), abs=1e-4) and expit(first) == expit(second) == 1

    @pytest.mark.parametrize("joined", [sigmoid_mean_logits, softmax_mean_logits])
    def test_the_order_of_windows_changes_no_more_than_a_rounding(self, joined) -> None:
        some = np.random.default_rng(7).normal(0, 4, (6, 3))
        assert joined(some[::-1]) == pytest.approx(joined(some), rel=1e-12)
