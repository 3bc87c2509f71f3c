"""What pooling says."""

from functools import partial

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.readout import pooling
from harness.readout.pooling import Attention
from harness.readout.projection import Dense
from harness.rows.mask import content_positions

ROWS = np.array([[9.0, 9], [1, -4], [2, -1], [6, -7], [9, 9]])
MASK = np.array([False, True, True, True, False])
TANH = Dense(np.array([[0.1, 0.2], [0.3, -0.1]]), np.array([0.0, 0.5]), "tanh")
HOPS = Attention(np.array([[0.3, -0.2], [0.1, 0.4], [-0.5, 0.2]]), np.array([0.1, 0.0, -0.1]), np.ones((2, 3)))

ONE_HOP = Attention(HOPS.inner, HOPS.bias, HOPS.outer[:1])


def by_content(rows, mask):
    return pooling.weighted_by_content(rows, mask, content_positions(mask))


MODES = {
    "first": pooling.first,
    "last": pooling.last,
    "boundary": pooling.boundary,
    "mean": pooling.mean,
    "mean_sqrt": pooling.mean_sqrt,
    "maximum": pooling.maximum,
    "weighted_by_content": by_content,
    "attention": partial(pooling.attention, by=ONE_HOP),
    "multi_hop": partial(pooling.multi_hop, by=HOPS),
}
PHYSICAL = {
    "physical_first": pooling.physical_first,
    "weighted_by_column": pooling.weighted_by_column,
    "bert_pooler": partial(pooling.bert_pooler, by=TANH),
}


class TestByHand:
    """The counted rows are (1, -4), (2, -1) and (6, -7); the others are padding."""

    @pytest.mark.parametrize(
        ("mode", "wanted"),
        [
            ("first", [1, -4]),
            ("last", [6, -7]),
            ("boundary", [1, -4, 6, -7]),
            ("mean", [3, -4]),
            ("mean_sqrt", [9 / 3**0.5, -12 / 3**0.5]),
            ("maximum", [6, -1]),
            ("weighted_by_content", [(1 + 4 + 18) / 6, -(4 + 2 + 21) / 6]),
        ],
    )
    def test_modes(self, mode, wanted):
        """Max stays negative where all are; weights are 1, 2, 3."""
        assert MODES[mode](ROWS, MASK) == pytest.approx(wanted)

    def test_weights_by_column(self):
        """Columns 2, 3 and 4 weigh 2, 3 and 4, for a row of padding stands before them."""
        assert pooling.weighted_by_column(ROWS, MASK) == pytest.approx([(2 + 6 + 24) / 9, -(8 + 3 + 28) / 9])

    def test_a_prompt_left_out_leaves_the_others_their_weights(self):
        """Of three content rows the first is the prompt's: the other two still weigh 2 and 3."""
        without_prompt = MASK & (np.arange(5) > 1)
        found = pooling.weighted_by_content(ROWS, without_prompt, content_positions(MASK))
        assert found == pytest.approx([(4 + 18) / 5, -(2 + 21) / 5])

    def test_bert_pooler(self):
        """tanh(W h₀ + b) of the first column: tanh(.9 + 1.8) and tanh(2.7 - .9 + .5)."""
        assert pooling.bert_pooler(ROWS, MASK, TANH) == pytest.approx(np.tanh([2.7, 2.3]))

    def test_attention(self):
        """Scores tanh(0) = 0 and tanh(x) = ½ log 3 weigh rows (0, 1) and (x, 5) by 1 to √3."""
        x = np.arctanh(np.log(3) / 2)
        by = Attention(np.array([[1.0, 0]]), None, np.array([[1.0]]))
        share = 3**0.5 / (1 + 3**0.5)
        rows = np.array([[0, 1], [x, 5]])
        assert pooling.attention(rows, np.ones(2, dtype=bool), by) == pytest.approx([share * x, 1 - share + 5 * share])

    def test_hops_are_joined_in_order(self):
        """Two hops with the weights of one hop each."""
        by = Attention(HOPS.inner, HOPS.bias, np.array([[1.0, 2, 3], [-1, 0, 1]]))
        each = [pooling.attention(ROWS, MASK, Attention(by.inner, by.bias, outer[None])) for outer in by.outer]
        assert pooling.multi_hop(ROWS, MASK, by) == pytest.approx(pooling.concatenate(each))

    def test_half_precision_is_summed_in_float64(self):
        """4097 rows of 1 and one of 4096 have a sum that float16 cannot hold."""
        rows = np.ones((4098, 1), dtype=np.float16)
        rows[0] = 4096
        assert pooling.mean(rows, np.ones(4098, dtype=bool)) == pytest.approx((4096 + 4097) / 4098, rel=1e-15)


class TestMaskedRowsNeverMatter:
    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
    def test_whatever_they_hold(self, mode, value):
        """They are left out before the reduction, not multiplied by 0."""
        changed = np.where(MASK[:, None], ROWS, value)
        assert MODES[mode](changed, MASK).tolist() == MODES[mode](ROWS, MASK).tolist()

    @pytest.mark.parametrize("mode", MODES)
    @pytest.mark.parametrize(("before", "after"), [(0, 0), (3, 0), (0, 3), (2, 2)])
    def test_wherever_they_stand(self, mode, before, after):
        """Left and right padding give the same vector."""
        rows = np.pad(ROWS[MASK], ((before, after), (0, 0)), constant_values=7)
        mask = np.pad(np.ones(3, dtype=bool), (before, after))
        assert MODES[mode](rows, mask).tolist() == MODES[mode](ROWS, MASK).tolist()

    @pytest.mark.parametrize("mode", PHYSICAL)
    def test_but_for_policies_that_are_physical_by_name(self, mode):
        """Left padding moves their vector, and that is what their name is for."""
        alone = np.ones(3, dtype=bool)
        assert PHYSICAL[mode](ROWS, MASK) != pytest.approx(PHYSICAL[mode](ROWS[MASK], alone))


class TestRefusals:
    @pytest.mark.parametrize("mode", [*MODES, *PHYSICAL])
    def test_no_row_counts(self, mode):
        """An empty row set is an error, not a zero vector."""
        with pytest.raises(EmptySlice):
            (MODES | PHYSICAL)[mode](ROWS, np.zeros(5, dtype=bool))

    @pytest.mark.parametrize("weights", [[1, 1, -1, 1, 1], [1, 0, 0, 0, 1], [1, 1, np.nan, 1, 1]])
    def test_weights_without_mass_or_below_zero(self, weights):
        """The weights of rows that don't count are not asked."""
        with pytest.raises(Misconfigured, match="pooling weights"):
            pooling.weighted_mean(ROWS, MASK, np.array(weights))

    def test_weights_of_masked_rows_are_not_asked(self):
        """A negative weight on padding is nobody's."""
        assert pooling.weighted_mean(ROWS, MASK, np.array([-1, 1, 1, 1, np.nan])) == pytest.approx([3, -4])

    def test_one_hop_is_asked_of_attention(self):
        """Two would give a vector of twice the width."""
        with pytest.raises(Misconfigured, match="2 hops"):
            pooling.attention(ROWS, MASK, HOPS)

    def test_bert_pooler_is_tanh(self):
        """Another activation is another head."""
        with pytest.raises(Misconfigured, match="tanh"):
            pooling.bert_pooler(ROWS, MASK, Dense(TANH.weight, TANH.bias, "relu"))

    def test_nothing_to_join(self):
        """A vector of no modes has no width."""
        with pytest.raises(EmptySlice, match="modes"):
            pooling.concatenate([])
