"""One weight for each entry of the vocabulary, from rows, masks and a head."""

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.readout import gradient
from harness.readout.projection import Dense, LayerNorm
from harness.readout.sparse import SparseRecipe, keep_largest, pool, sparse_vector, weigh
from harness.rows.mask import Counting, Masks
from tests.readout.slope import slope

E = np.e
ALL = Counting(special=True, prompt=True, expansion=None)
# Of three entries: e − 1 and 0, then a negative one and e − 1, then what must not count.
LOGITS = np.array([[E - 1, 0.0, -3.0], [E**2 - 1, E - 1, -0.5], [np.nan, 9.0, 9.0]])
MASK = np.array([True, True, False])
IDENTITY = Dense(np.eye(3), None, "identity")


def recipe(**changes) -> SparseRecipe:
    usual = {"counting": ALL, "head": [IDENTITY], "activation": "log1p-relu", "mode": "max", "keep": None,
             "empty": "zero"}  # fmt: skip
    return SparseRecipe(**{**usual, **changes})


class TestWeigh:
    def test_once(self):
        """log(1 + (e − 1)) = 1, log(1 + (e² − 1)) = 2; nothing below 0 counts."""
        assert weigh(LOGITS[:2], "log1p-relu") == pytest.approx(np.array([[1, 0, 0], [2, 1, 0]]))

    def test_twice(self):
        """log(1 + 1) and log(1 + 2)."""
        found = weigh(LOGITS[:2], "log1p-log1p-relu")
        assert found == pytest.approx(np.log([[2, 1, 1], [3, 2, 1]]))

    def test_another_activation_is_refused(self):
        with pytest.raises(Misconfigured, match="log1p-relu"):
            weigh(LOGITS, "relu")


class TestPool:
    def test_the_largest_weight_or_all_of_them(self):
        """Of 1 and 2 the largest is 2, and the sum is 3; the row that does not count changes neither."""
        assert pool(LOGITS, MASK, "log1p-relu", "max") == pytest.approx([2, 1, 0])
        assert pool(LOGITS, MASK, "log1p-relu", "sum") == pytest.approx([3, 1, 0])


class TestSparseVector:
    def test_the_head_is_applied_to_each_row_in_its_order(self):
        """Doubled to 2 and 4 with a bias of 1, brought to ±1 by the norm, and the second entry falls away."""
        head = [Dense(2 * np.eye(2), np.array([1.0, 1.0]), "relu"), LayerNorm(np.ones(2), None, 0.0)]
        found = sparse_vector(np.array([[1.5, 0.5]]), Masks(np.array([True])), recipe(head=head))
        assert found == pytest.approx([np.log(2), 0])

    def test_a_special_token_counts_only_where_it_is_said_to(self):
        """Left out, its 2 and 1 fall away."""
        masks = Masks(MASK, special=np.array([False, True, False]))
        found = sparse_vector(LOGITS, masks, recipe(counting=Counting(special=False, prompt=True, expansion=None)))
        assert found == pytest.approx([1, 0, 0])

    def test_a_text_without_a_counted_row_follows_its_policy(self):
        """All zeros, or refused."""
        none = Masks(np.zeros(3, dtype=bool))
        assert sparse_vector(LOGITS, none, recipe()).tolist() == [0, 0, 0]
        with pytest.raises(EmptySlice):
            sparse_vector(LOGITS, none, recipe(empty="reject"))


class TestKeepLargest:
    def test_all_others_are_0_and_among_equals_the_first_stay(self):
        """Two of 3, 1, 2, 2 are 3 and the first 2; ten of four are all."""
        vector = np.array([3.0, 1.0, 2.0, 2.0])
        assert keep_largest(vector, 2).tolist() == [3, 0, 2, 0]
        assert keep_largest(vector, 10).tolist() == vector.tolist()


class TestGradient:
    @pytest.mark.parametrize("mode", ["max", "sum"])
    @pytest.mark.parametrize("activation", ["log1p-relu", "log1p-log1p-relu"])
    def test_is_that_of_finite_differences(self, mode, activation):
        """By every logit, those of the masked row among them."""
        rng = np.random.default_rng(4)
        logits, upstream = rng.normal(size=(4, 5)), rng.normal(size=5)
        mask = np.array([True, False, True, True])
        found = gradient.sparse_pool(logits, mask, activation, mode, upstream)
        wanted = slope(lambda each: float(upstream @ pool(each, mask, activation, mode)), logits)
        assert found == pytest.approx(wanted, abs=1e-8)
        assert not found[1].any()

    def test_a_weight_moves_by_the_inverse_of_one_plus_its_logit(self):
        """log(1 + 3) by a quarter, what is not above 0 not at all."""
        found = gradient.sparse_pool(np.array([[3.0, -1.0]]), np.array([True]), "log1p-relu", "sum", np.ones(2))
        assert found.tolist() == [[0.25, 0]]
