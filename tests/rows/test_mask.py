"""What the masks say."""

import numpy as np
import pytest

from harness.errors import EmptySlice, Misconfigured
from harness.rows.mask import (
    Counting,
    Masks,
    as_mask,
    content_positions,
    counted,
    kept,
    physical_positions,
)


def bools(text):
    """One character for each row: 1 counts, anything else doesn't."""
    return np.array([character == "1" for character in text], dtype=bool)


EVERYTHING = Counting(special=True, prompt=True, expansion=None)


class TestPolarity:
    def test_one_counts(self):
        """The tokenizer's 1 becomes True."""
        assert as_mask([[1, 1, 0]]).tolist() == [[True, True, False]]

    def test_an_additive_mask_is_refused(self):
        """0 and minus infinity say the opposite of 1 and 0, so they are not guessed at."""
        with pytest.raises(Misconfigured, match="1 counts"):
            as_mask([0.0, -np.inf])

    @pytest.mark.parametrize("mask", [np.array([1, 1, 0]), bools("11")])
    def test_masks_are_boolean_and_as_long_as_the_rows(self, mask):
        """Integers and other lengths are refused."""
        with pytest.raises(Misconfigured, match="special"):
            Masks(bools("111"), special=mask)


class TestWhichRowsCount:
    """Left-padded: pad, [CLS], two rows of a prompt, two of the text, [SEP]."""

    MASKS = Masks(bools("0111111"), special=bools("1100001"), prompt_length=3, skipped=bools("0000010"))

    @pytest.mark.parametrize(
        ("counting", "wanted"),
        [
            (Counting(special=True, prompt=True, expansion=None), "0111101"),
            (Counting(special=False, prompt=True, expansion=None), "0011100"),
            (Counting(special=True, prompt=False, expansion=None), "0000101"),
            (Counting(special=False, prompt=False, expansion=None), "0000100"),
        ],
    )
    def test_by_kind(self, counting, wanted):
        """Special and prompt rows by policy; skipped and padded ones never count."""
        assert counted(self.MASKS, counting).tolist() == bools(wanted).tolist()

    def test_right_padding_gives_the_same_rows(self):
        """A prompt is counted from the first attended row."""
        masks = Masks(bools("1111110"), prompt_length=3)
        without_prompt = Counting(special=True, prompt=False, expansion=None)
        assert counted(masks, without_prompt).tolist() == bools("0001110").tolist()

    @pytest.mark.parametrize(("expansion", "wanted"), [(True, "1011"), (False, "1000")])
    @pytest.mark.parametrize("attended", ["1111", "1000"])
    def test_expansion_rows_count_by_policy_whether_attended_or_not(self, expansion, wanted, attended):
        """They are mask tokens, special ones, so leaving out special tokens spares them."""
        masks = Masks(bools(attended), special=bools("0111"), expansion=bools("0011"))
        counting = Counting(special=False, prompt=True, expansion=expansion)
        assert counted(masks, counting).tolist() == bools(wanted).tolist()

    def test_expansion_rows_that_do_not_count_are_left_out_though_attended(self):
        """Also where other special tokens count."""
        masks = Masks(bools("1111"), expansion=bools("0011"))
        assert counted(masks, Counting(special=True, prompt=True, expansion=False)).tolist() == bools("1100").tolist()

    @pytest.mark.parametrize(
        "counting",
        [
            Counting(special=False, prompt=True, expansion=None),
            Counting(special=True, prompt=False, expansion=None),
            Counting(special=True, prompt=True, expansion=True),
        ],
    )
    def test_a_kind_without_a_source_is_refused(self, counting):
        """Which rows are special, the prompt's or an expansion is never guessed."""
        with pytest.raises(Misconfigured, match="mask sources"):
            counted(Masks(bools("111")), counting)

    def test_none_may_count(self):
        """An empty row set is for the readout to refuse."""
        assert not counted(Masks(bools("000")), EVERYTHING).any()


class TestPositions:
    def test_content_positions_do_not_move_with_padding(self):
        """They count from the first attended row, by column, so a hole keeps its place."""
        assert content_positions(bools("001101")).tolist() == [0, 0, 1, 2, 3, 4]
        assert content_positions(bools("110100")).tolist() == [1, 2, 3, 4, 5, 6]
        assert content_positions(bools("000")).tolist() == [0, 0, 0]

    def test_physical_positions_count_padding(self):
        """From 1 at the first column."""
        assert physical_positions(3).tolist() == [1, 2, 3]


class TestKept:
    def test_none_is_refused(self):
        """Nothing stands for the rows of a text of which none counts."""
        with pytest.raises(EmptySlice):
            kept(np.zeros((3, 2)), bools("000"))

    def test_rows_are_left_out_not_multiplied(self):
        """NaN in a masked row never shows, and half precision becomes float64."""
        rows = np.array([[1], [np.nan], [3]], dtype=np.float16)
        taken = kept(rows, bools("101"))
        assert taken.tolist() == [[1], [3]]
        assert taken.dtype == np.float64

    def test_a_batch_is_refused(self):
        """One text at a time."""
        with pytest.raises(Misconfigured, match="rows and mask"):
            kept(np.zeros((2, 3, 4)), np.ones((2, 3), dtype=bool))

    def test_an_integer_mask_is_refused(self):
        """0 and 1 as integers would pick rows 0 and 1."""
        with pytest.raises(Misconfigured, match="rows and mask"):
            kept(np.zeros((3, 4)), np.array([1, 0, 1]))
