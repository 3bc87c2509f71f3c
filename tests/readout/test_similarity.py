"""What normalisation, truncation and similarities say."""

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.readout.normalisation import l2, truncate
from harness.readout.similarity import cosine, cosine_of_squared_l2, dot, squared_l2, squared_l2_of_cosine

torch = pytest.importorskip("torch")


class TestNormalisation:
    def test_to_unit_length(self):
        """(3, 4) has length 5."""
        assert l2(np.array([3.0, 4]), 1e-12).tolist() == [0.6, 0.8]

    def test_below_epsilon_it_is_divided_by_epsilon(self):
        """So a zero vector stays zero, and (.03, .04) with epsilon .1 becomes (.3, .4)."""
        assert l2(np.array([[0.0, 0], [0.03, 0.04]]), 0.1) == pytest.approx(np.array([[0, 0], [0.3, 0.4]]))

    @pytest.mark.parametrize(("vector", "epsilon"), [([0.0, 0], 0.0), ([3.0, 4], -1e-12)])
    def test_a_zero_vector_without_epsilon_is_refused(self, vector, epsilon):
        """It has no direction."""
        with pytest.raises(Misconfigured, match="L2"):
            l2(np.array(vector), epsilon)

    def test_is_sentence_transformers_normalize(self):
        """Zero and tiny vectors too: its epsilon is 1e-12."""
        from sentence_transformers.base.modules import Normalize

        x = np.array([[3.0, 4, 1], [0, 0, 0], [1e-13, 0, 0]])
        wanted = Normalize()({"sentence_embedding": torch.tensor(x)})["sentence_embedding"].numpy()
        assert l2(x, 1e-12) == pytest.approx(wanted, abs=1e-15)

    def test_truncated_is_not_of_unit_length(self):
        """(.6, .8) cut to its first dimension is (.6)."""
        assert truncate(np.array([0.6, 0.8]), 1).tolist() == [0.6]

    @pytest.mark.parametrize("dimensions", [0, 3])
    def test_more_dimensions_than_there_are_is_refused(self, dimensions):
        """A slice would quietly give fewer."""
        with pytest.raises(Misconfigured, match="truncated"):
            truncate(np.array([0.6, 0.8]), dimensions)


class TestSimilarity:
    A, B = np.array([1.0, 2, 2]), np.array([2.0, 0, 1])

    def test_by_hand(self):
        """2 + 0 + 2; over 3 √5; 1 + 4 + 1."""
        assert dot(self.A, self.B) == 4
        assert cosine(self.A, self.B, 0.0) == pytest.approx(4 / (3 * 5**0.5))
        assert squared_l2(self.A, self.B) == 6

    def test_scale_moves_all_but_cosine(self):
        """Twice as long, the same direction."""
        assert dot(2 * self.A, self.B) == 8
        assert cosine(2 * self.A, self.B, 0.0) == pytest.approx(cosine(self.A, self.B, 0.0))

    def test_a_zero_vector_has_cosine_zero_only_by_a_declared_epsilon(self):
        """Without one it has none."""
        assert cosine(np.zeros(3), self.B, 1e-12) == 0
        with pytest.raises(Misconfigured):
            cosine(np.zeros(3), self.B, 0.0)

    def test_many_against_one(self):
        """Vectors [n, w] against one [w]."""
        assert dot(np.stack([self.A, self.B]), self.B).tolist() == [4, 5]

    def test_is_sentence_transformers_own(self):
        """Its cosine and dot, zero vector included."""
        from sentence_transformers.util import cos_sim, dot_score

        a, b = np.stack([self.A, np.zeros(3)]), np.stack([self.B, self.A])
        assert cosine(a[:, None], b[None], 1e-12) == pytest.approx(cos_sim(a, b).numpy(), abs=1e-7)
        assert dot(a[:, None], b[None]) == pytest.approx(dot_score(a, b).numpy(), abs=1e-6)


class TestConversions:
    def test_cosine_of_at_least_eight_tenths_is_squared_l2_of_at_most_four_tenths(self):
        """For unit vectors |a - b|² = 2 - 2 cos, so a floor becomes a ceiling."""
        assert squared_l2_of_cosine(0.8) == pytest.approx(0.4)
        assert cosine_of_squared_l2(0.4) == pytest.approx(0.8)
        pairs = l2(np.random.default_rng(7).normal(size=(2, 500, 3)), 0.0)
        near = cosine(*pairs, 0.0) >= 0.8
        assert near.any() and not near.all()
        assert (near == (squared_l2(*pairs) <= squared_l2_of_cosine(0.8))).all()

    @pytest.mark.parametrize("value", [-1.0, 0.0, 0.3, 1.0])
    def test_there_and_back(self, value):
        """The conversions undo each other."""
        assert cosine_of_squared_l2(squared_l2_of_cosine(value)) == pytest.approx(value)
