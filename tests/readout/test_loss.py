"""What losses say, and that their gradients are those of finite differences."""

from functools import partial

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.readout import loss
from tests.readout.slope import slope

torch = pytest.importorskip("torch")
RNG = np.random.default_rng(5)
LOGITS = RNG.normal(size=(4, 3)) * 2
LABELS = np.array([0, 2, -100, 1])
TARGETS = RNG.uniform(size=(4, 3))
POSITIVES = np.array([[1, 1, 0, 0], [0, 0, 1, 0], [1, 0, 0, 1]], dtype=bool)
ADMITTED = np.array([[1, 1, 1, 0], [1, 0, 1, 1], [1, 1, 1, 1]], dtype=bool)
SCORES = RNG.normal(size=(3, 4))


class TestByHand:
    def test_cross_entropy(self):
        """Chances 1/4 and 1/2 at the labels: the mean of log 4 and log 2. The third row is ignored."""
        logits = np.array([[np.log(3), 0], [5, 5], [9, -9]])
        assert loss.cross_entropy(logits, np.array([1, 0, -100]), 1.0, -100) == pytest.approx(1.5 * np.log(2))

    def test_binary_cross_entropy(self):
        """A chance of 3/4 for a target of 1 and one of 1/2 for a target of 0."""
        found = loss.binary_cross_entropy(np.array([[np.log(3), 0]]), np.array([[1.0, 0]]))
        assert found == pytest.approx((np.log(4 / 3) + np.log(2)) / 2)

    def test_squared_error_and_huber(self):
        """Gaps 1 and 4: (1 + 16) / 2, and with delta 2 (1/2 + 2 · 3) / 2."""
        values, targets = np.array([3.0, 6]), np.array([2.0, 2])
        assert loss.squared_error(values, targets) == 8.5
        assert loss.huber(values, targets, 2.0) == 3.25

    def test_contrastive(self):
        """Two positives among three equal columns, one of them not admitted: chance 1/2 for each positive."""
        positives, admitted = np.array([[True, True, False]]), np.array([[True, True, False]])
        assert loss.contrastive(np.zeros((1, 3)), positives, admitted, 1.0) == pytest.approx(np.log(2))

    def test_weighted_tasks(self):
        """Losses 4 over 2 rows and 4 over 4, at weights 1 and .5: 2 + .5."""
        assert loss.weighted_tasks(np.array([4.0, 4]), np.array([2, 4]), np.array([1, 0.5])) == 2.5


class TestReferee:
    """torch's own losses."""

    @pytest.mark.parametrize("temperature", [1.0, 0.5, 3.0])
    def test_cross_entropy(self, temperature):
        """Ignored rows are in neither sum nor count."""
        wanted = torch.nn.functional.cross_entropy(torch.tensor(LOGITS) / temperature, torch.tensor(LABELS))
        assert loss.cross_entropy(LOGITS, LABELS, temperature, -100) == pytest.approx(float(wanted))

    def test_binary_cross_entropy(self):
        """Soft targets."""
        wanted = torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor(LOGITS), torch.tensor(TARGETS))
        assert loss.binary_cross_entropy(LOGITS, TARGETS) == pytest.approx(float(wanted))

    def test_squared_error_and_huber(self):
        """Both sides of delta."""
        a, b = torch.tensor(LOGITS), torch.tensor(TARGETS)
        assert loss.squared_error(LOGITS, TARGETS) == pytest.approx(float(torch.nn.functional.mse_loss(a, b)))
        assert loss.huber(LOGITS, TARGETS, 0.7) == pytest.approx(float(torch.nn.functional.huber_loss(a, b, delta=0.7)))


class TestGradients:
    """Analytic, in loss.py, against central differences."""

    @pytest.mark.parametrize("temperature", [1.0, 0.4])
    def test_cross_entropy(self, temperature):
        """By the logits; an ignored row does not move it."""
        found = loss.cross_entropy_gradient(LOGITS, LABELS, temperature, -100)
        wanted = slope(lambda x: loss.cross_entropy(x, LABELS, temperature, -100), LOGITS)
        assert found == pytest.approx(wanted, abs=1e-8)
        assert not found[2].any()

    @pytest.mark.parametrize("temperature", [1.0, 0.4])
    def test_temperature(self, temperature):
        """By the temperature itself."""
        found = loss.cross_entropy_temperature_gradient(LOGITS, LABELS, temperature, -100)
        wanted = slope(lambda t: loss.cross_entropy(LOGITS, LABELS, float(t[0]), -100), [temperature])
        assert [found] == pytest.approx(wanted, abs=1e-7)

    @pytest.mark.parametrize(
        ("value", "gradient"),
        [
            (loss.binary_cross_entropy, loss.binary_cross_entropy_gradient),
            (loss.squared_error, loss.squared_error_gradient),
            (partial(loss.huber, delta=0.7), partial(loss.huber_gradient, delta=0.7)),
        ],
        ids=["binary cross-entropy", "squared error", "huber"],
    )
    def test_by_the_prediction(self, value, gradient):
        """Logits or values; Huber has gaps on both sides of delta here."""
        assert gradient(LOGITS, TARGETS) == pytest.approx(slope(lambda x: value(x, TARGETS), LOGITS), abs=1e-8)

    @pytest.mark.parametrize("temperature", [1.0, 0.2])
    def test_contrastive(self, temperature):
        """Several positives; a column that isn't admitted does not move it."""
        found = loss.contrastive_gradient(SCORES, POSITIVES, ADMITTED, temperature)
        wanted = slope(lambda x: loss.contrastive(x, POSITIVES, ADMITTED, temperature), SCORES)
        assert found == pytest.approx(wanted, abs=1e-8)
        assert not found[~ADMITTED].any()


class TestContrastive:
    def test_with_one_positive_it_is_cross_entropy(self):
        """Each anchor's own column, all admitted."""
        square = SCORES[:, :3]
        found = loss.contrastive(square, np.eye(3, dtype=bool), np.ones((3, 3), dtype=bool), 0.5)
        assert found == pytest.approx(loss.cross_entropy(square, np.arange(3), 0.5, None))

    def test_what_is_not_admitted_does_not_matter(self):
        """A false negative that is masked out may score as high as it likes."""
        changed = np.where(ADMITTED, SCORES, 1e6)
        assert loss.contrastive(changed, POSITIVES, ADMITTED, 1.0) == loss.contrastive(SCORES, POSITIVES, ADMITTED, 1.0)

    def test_an_anchor_without_a_positive_is_refused(self):
        """Its mean over positives would be of nothing."""
        with pytest.raises(EmptySlice, match="positive"):
            loss.contrastive(SCORES, POSITIVES & (np.arange(4) > 2), ADMITTED, 1.0)

    def test_a_positive_that_is_not_admitted_is_refused(self):
        """Its chance would be 0."""
        with pytest.raises(Misconfigured, match="admitted"):
            loss.contrastive(SCORES, POSITIVES, ADMITTED & ~POSITIVES, 1.0)


class TestRefusals:
    def test_no_labelled_row(self):
        """Every row is ignored; torch gives NaN."""
        with pytest.raises(EmptySlice):
            loss.cross_entropy(LOGITS, np.full(4, -100), 1.0, -100)

    @pytest.mark.parametrize("value", [loss.binary_cross_entropy, loss.squared_error, partial(loss.huber, delta=1.0)])
    def test_no_value(self, value):
        """The mean of nothing."""
        with pytest.raises(EmptySlice):
            value(np.zeros(0), np.zeros(0))

    def test_a_task_without_rows_or_weights_below_zero(self):
        """A mean over no rows, and a task that is to get worse."""
        with pytest.raises(EmptySlice, match="tasks"):
            loss.weighted_tasks(np.array([4.0, 0]), np.array([2, 0]), np.array([1, 0.5]))
        with pytest.raises(Misconfigured, match="task weights"):
            loss.weighted_tasks(np.array([4.0, 4]), np.array([2, 4]), np.array([1, -0.5]))
