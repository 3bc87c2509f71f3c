"""The total orders in which rankings are stored."""

import numpy as np
import pytest

from harness.output.order import expected_order, trec_order


def ordered(order, documents, scores):
    return [documents[i] for i in order(np.array(documents, dtype=object), np.array(scores))]


class TestTrecOrder:
    def test_equal_scores_stand_by_falling_id(self):
        assert ordered(trec_order, ["a", "c", "b", "top"], [1.0, 1.0, 1.0, 2.0]) == ["top", "c", "b", "a"]

    def test_scores_that_differ_beyond_float32_are_equal(self):
        """1 and 1 + 1e-9 are one float32."""
        assert ordered(trec_order, ["a", "b"], [1 + 1e-9, 1.0]) == ["b", "a"]

    def test_ids_compare_by_utf8_bytes(self):
        """U+1F600 is above U+FF5E in UTF-8, and below it in UTF-16."""
        assert ordered(trec_order, ["\uff5e", "\U0001f600", "Z", "a"], [0.0] * 4) == ["\U0001f600", "\uff5e", "a", "Z"]


class TestExpectedOrder:
    def test_scores_count_in_full(self):
        assert ordered(expected_order, ["b", "a"], [1 + 1e-9, 1.0]) == ["b", "a"]

    def test_equal_scores_stand_by_rising_id(self):
        assert ordered(expected_order, ["d10", "d9", "d1", "x"], [1.0, 1.0, 1.0, 3.0]) == ["x", "d1", "d10", "d9"]


@pytest.mark.parametrize("order", [trec_order, expected_order])
class TestBoth:
    def test_the_order_given_plays_no_part(self, order):
        rng = np.random.default_rng(3)
        documents, scores = [f"d{i}" for i in range(50)], rng.integers(5, size=50).astype(float)
        shuffled = rng.permutation(50)
        again = ordered(order, [documents[i] for i in shuffled], scores[shuffled])
        assert again == ordered(order, documents, scores)

    def test_no_documents_have_an_empty_order(self, order):
        assert ordered(order, [], np.zeros(0)) == []
