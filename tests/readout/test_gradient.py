"""That analytic gradients, in gradient.py, are those of finite differences."""

import numpy as np
import pytest

from harness.readout import gradient, pooling
from harness.readout.interaction import maxsim, smooth_maxsim
from harness.readout.loss import squared_error, squared_error_gradient
from harness.readout.normalisation import l2
from harness.readout.pooling import Attention
from harness.readout.projection import Dense, dense
from tests.readout.slope import slope

RNG = np.random.default_rng(9)
ROWS = RNG.normal(size=(5, 3))
MASK = np.array([False, True, True, True, False])
QUERY, DOCUMENT = RNG.normal(size=(3, 4)), RNG.normal(size=(5, 4))


class TestChain:
    """x = 2, θ = 3, φ = .5, w = 4, y = 10: h = θx = 6, z = φh = 3, ŷ = wz = 12, L = ½ (ŷ - y)² = 2."""

    X, TARGET = np.array([2.0]), np.array([10.0])
    WEIGHTS = (3.0, 0.5, 4.0)

    def states(self, weights):
        """The inputs of the three maps, and the last one's output."""
        states = [self.X]
        for weight in weights:
            states.append(dense(states[-1], Dense(np.array([[weight]]), None, "identity")))
        return states

    def loss(self, weights):
        return squared_error(self.states(weights)[-1], self.TARGET) / 2

    def test_forward(self):
        """6, 3, 12, and a loss of 2."""
        assert [float(state[0]) for state in self.states(self.WEIGHTS)] == [2, 6, 3, 12]
        assert self.loss(self.WEIGHTS) == 2

    def test_backward(self):
        """By θ 8, by φ 48, by w 6."""
        states = self.states(self.WEIGHTS)
        upstream = squared_error_gradient(states[-1], self.TARGET) / 2
        found = []
        for weight, state in zip(reversed(self.WEIGHTS), reversed(states[:-1]), strict=True):
            step = gradient.linear(state, np.array([[weight]]), upstream)
            found.append(float(step.weight[0, 0]))
            upstream = step.x
        assert found == [6, 48, 8]
        assert slope(self.loss, self.WEIGHTS) == pytest.approx([8, 48, 6], abs=1e-6)


class TestLinear:
    def test_by_input_weight_and_bias(self):
        """Two outputs of three inputs."""
        x, weight, bias, upstream = RNG.normal(size=3), RNG.normal(size=(2, 3)), RNG.normal(size=2), np.array([1.0, -2])
        found = gradient.linear(x, weight, upstream)

        def value(x, weight, bias):
            return float(upstream @ dense(x, Dense(weight, bias, "identity")))

        assert found.x == pytest.approx(slope(lambda v: value(v, weight, bias), x), abs=1e-8)
        assert found.weight == pytest.approx(slope(lambda v: value(x, v, bias), weight), abs=1e-8)
        assert found.bias == pytest.approx(slope(lambda v: value(x, weight, v), bias), abs=1e-8)


class TestL2:
    @pytest.mark.parametrize("epsilon", [1e-12, 100.0])
    def test_by_the_vector(self, epsilon):
        """Longer and shorter than epsilon."""
        x, upstream = RNG.normal(size=4), RNG.normal(size=4)
        found = gradient.l2(x, epsilon, upstream)
        assert found == pytest.approx(slope(lambda v: float(upstream @ l2(v, epsilon)), x), abs=1e-8)

    def test_nothing_moves_along_the_vector_itself(self):
        """Its length is fixed."""
        x = RNG.normal(size=4)
        assert x @ gradient.l2(x, 1e-12, RNG.normal(size=4)) == pytest.approx(0, abs=1e-12)


class TestMaximum:
    def test_goes_to_the_row_that_won(self):
        """And to no masked one."""
        upstream = RNG.normal(size=3)
        found = gradient.maximum(ROWS, MASK, upstream)
        wanted = slope(lambda rows: float(upstream @ pooling.maximum(rows, MASK)), ROWS)
        assert found == pytest.approx(wanted, abs=1e-8)
        assert not found[~MASK].any()

    def test_among_equals_to_the_first(self):
        """Where finite differences have no one answer, the rule does."""
        assert gradient.maximum(np.ones((3, 1)), MASK[:3], np.array([2.0])).ravel().tolist() == [0, 2, 0]


class TestAttention:
    BY = Attention(RNG.normal(size=(2, 3)), RNG.normal(size=2), RNG.normal(size=(2, 2)))
    UPSTREAM = RNG.normal(size=6)

    def value(self, rows=ROWS, inner=BY.inner, bias=BY.bias, outer=BY.outer):
        return float(self.UPSTREAM @ pooling.multi_hop(rows, MASK, Attention(inner, bias, outer)))

    @pytest.mark.parametrize("part", ["rows", "inner", "bias", "outer"])
    def test_by_rows_and_by_every_weight(self, part):
        """Two hops."""
        at = ROWS if part == "rows" else getattr(self.BY, part)
        found = getattr(gradient.multi_hop(ROWS, MASK, self.BY, self.UPSTREAM), part)
        assert found == pytest.approx(slope(lambda v: self.value(**{part: v}), at), abs=1e-8)

    def test_masked_rows_have_none(self):
        """Whatever they hold."""
        assert not gradient.multi_hop(ROWS, MASK, self.BY, self.UPSTREAM).rows[~MASK].any()

    def test_one_hop_without_a_bias(self):
        """The pool with a single set of weights."""
        by = Attention(self.BY.inner, None, self.BY.outer[:1])
        found = gradient.multi_hop(ROWS, MASK, by, self.UPSTREAM[:3]).rows
        wanted = slope(lambda rows: float(self.UPSTREAM[:3] @ pooling.attention(rows, MASK, by)), ROWS)
        assert found == pytest.approx(wanted, abs=1e-8)


class TestMaxSim:
    def test_by_both_sides(self):
        """Each query row pulls on the document row that it chose."""
        found = gradient.of_maxsim(QUERY, DOCUMENT)
        assert found.query == pytest.approx(slope(lambda q: maxsim(q, DOCUMENT).score, QUERY), abs=1e-7)
        assert found.document == pytest.approx(slope(lambda d: maxsim(QUERY, d).score, DOCUMENT), abs=1e-7)

    @pytest.mark.parametrize("temperature", [1.0, 0.3])
    def test_smooth_by_both_sides(self, temperature):
        """Each query row pulls on all of them."""
        found = gradient.of_smooth_maxsim(QUERY, DOCUMENT, temperature)
        by_query = slope(lambda q: smooth_maxsim(q, DOCUMENT, temperature), QUERY)
        by_document = slope(lambda d: smooth_maxsim(QUERY, d, temperature), DOCUMENT)
        assert found.query == pytest.approx(by_query, abs=1e-7)
        assert found.document == pytest.approx(by_document, abs=1e-7)

    def test_among_equals_the_first_row_moves(self):
        """As the tie rule says; two query rows pull on it."""
        assert gradient.of_maxsim(np.ones((2, 1)), np.ones((3, 1))).document.ravel().tolist() == [2, 0, 0]
