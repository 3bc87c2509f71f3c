"""Rows of many texts without padding."""

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.rows.ragged import Ragged, runs

ROWS = Ragged(np.arange(12, dtype=np.float32).reshape(6, 2), np.array([0, 2, 2, 5, 6]))


class TestRagged:
    def test_each_text_has_the_rows_it_has(self):
        """Four texts of two, no, three rows and one."""
        assert len(ROWS) == 4 and ROWS.counts.tolist() == [2, 0, 3, 1]
        assert ROWS.rows(2).tolist() == [[4, 5], [6, 7], [8, 9]]
        assert ROWS.rows(1).shape == (0, 2)

    def test_put_together_and_taken_apart_again(self):
        """`of` is what `rows` undoes, also for no text at all and for numbers of another type."""
        again = Ragged.of([ROWS.rows(text).astype(np.float64) for text in range(4)], 2)
        assert again.values.tobytes() == ROWS.values.tobytes() and again.offsets.tolist() == ROWS.offsets.tolist()
        assert len(Ragged.of([], 2)) == 0 and Ragged.of([], 2).values.shape == (0, 2)

    def test_a_part_is_a_view(self):
        """Texts 1 and 2, without a copy."""
        part = ROWS.part(1, 3)
        assert part.counts.tolist() == [0, 3] and part.rows(1).tolist() == ROWS.rows(2).tolist()
        assert np.shares_memory(part.values, ROWS.values)

    @pytest.mark.parametrize("texts", [[], [1], [3, 0], [2, 2, 1, 0]])
    def test_any_texts_in_any_order(self, texts):
        """A text may stand more than once, or have no rows."""
        taken = ROWS.take(np.array(texts, dtype=np.int64))
        assert [taken.rows(i).tolist() for i in range(len(taken))] == [ROWS.rows(text).tolist() for text in texts]

    @pytest.mark.parametrize("offsets", [[], [0], [0, 5], [1, 6], [0, 4, 3, 6], [0, 7]])
    def test_offsets_that_do_not_rise_from_0_to_the_rows_are_refused(self, offsets):
        """Each of them would leave rows out or count some twice."""
        with pytest.raises(Misconfigured, match="ragged rows"):
            Ragged(ROWS.values, np.array(offsets, dtype=np.int64))

    def test_other_types_and_shapes_are_refused(self):
        """Values are float32 in two dimensions, offsets int64 in one."""
        for values, offsets in (
            (ROWS.values.astype(np.float64), ROWS.offsets), (ROWS.values.ravel(), ROWS.offsets),
            (ROWS.values, ROWS.offsets.astype(np.int32)), (ROWS.values, ROWS.offsets[:, None]),
        ):  # fmt: skip
            with pytest.raises(Misconfigured, match=r"offsets \w+ of shape"):
                Ragged(values, offsets)


class TestRuns:
    def test_whole_texts_up_to_a_number_of_rows(self):
        """Two, none and three rows make five; the fourth text begins anew."""
        assert list(runs(ROWS.offsets, 5)) == [slice(0, 3), slice(3, 4)]

    @pytest.mark.parametrize("rows", range(1, 8))
    def test_every_text_stands_in_one(self, rows):
        """In order, none empty, and above the limit only where one text is."""
        found = list(runs(ROWS.offsets, rows))
        assert [text for run in found for text in range(run.start, run.stop)] == [0, 1, 2, 3]
        for run in found:
            assert ROWS.counts[run].sum() <= rows or np.count_nonzero(ROWS.counts[run]) == 1

    def test_no_texts_make_none(self):
        assert list(runs(np.zeros(1, dtype=np.int64), 3)) == []
