"""Averages that look alike and are not, in numbers worked by hand."""

import numpy as np
import pytest
from sklearn.metrics import f1_score


def class_f1(gold, predicted, label):
    """2 TP / (2 TP + FP + FN)."""
    hits = np.sum((gold == label) & (predicted == label))
    return 2 * hits / (np.sum(gold == label) + np.sum(predicted == label))


class TestMacroAndMicro:
    """Six cases: both of A right; one of B's two taken for C, and one of C's two for B."""

    GOLD = np.array(list("AABBCC"))
    PREDICTED = np.array(list("AABCCB"))

    def test_classes(self):
        """1, .5 and .5."""
        assert [class_f1(self.GOLD, self.PREDICTED, label) for label in "ABC"] == [1, 0.5, 0.5]

    def test_macro_is_the_mean_over_classes(self):
        """2/3."""
        found = np.mean([class_f1(self.GOLD, self.PREDICTED, label) for label in "ABC"])
        assert found == pytest.approx(2 / 3)
        assert found == pytest.approx(f1_score(self.GOLD, self.PREDICTED, average="macro"))

    def test_micro_pools_the_counts(self):
        """4 of 6 right, which here is the same number by another road."""
        found = np.mean(self.GOLD == self.PREDICTED)
        assert found == pytest.approx(4 / 6)
        assert found == pytest.approx(f1_score(self.GOLD, self.PREDICTED, average="micro"))
