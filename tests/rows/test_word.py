"""What a row stands for."""

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.rows.word import all_pieces, characters, first_pieces, words_by_offsets

# "Dr. Müller kam": [CLS], dr, ., mü, ##ller, kam, [SEP]
TEXT = "Dr. Müller kam"
OFFSETS = np.array([[0, 0], [0, 2], [2, 3], [4, 6], [6, 10], [11, 14], [0, 0]])
SPANS = np.array([[0, 3], [4, 10], [11, 14]])
EVERY = np.ones(7, dtype=bool)


class TestWordsByOffsets:
    def test_a_piece_belongs_to_the_word_whose_characters_it_shares(self):
        """Special tokens have no characters, and so no word."""
        assert words_by_offsets(OFFSETS, SPANS, EVERY).tolist() == [-1, 0, 0, 1, 1, 2, -1]

    def test_a_leading_space_is_no_word_of_its_own(self):
        """Byte-level tokenizers may count the space before a word to its piece."""
        assert words_by_offsets(np.array([[3, 10], [10, 11]]), SPANS, EVERY[:2]).tolist() == [1, -1]

    def test_a_piece_without_characters_has_no_word(self):
        """Though it stands within one, at character 5."""
        assert words_by_offsets(np.array([[5, 5]]), SPANS, EVERY[:1]).tolist() == [-1]

    def test_masked_rows_have_no_word(self):
        """The rows of the other text have offsets too, into that text."""
        assert words_by_offsets(OFFSETS, SPANS, np.arange(7) > 2).tolist() == [-1, -1, -1, 1, 1, 2, -1]

    def test_a_piece_across_two_words_is_refused(self):
        """No label could be given to it."""
        with pytest.raises(Misconfigured, match="words 0, 1"):
            words_by_offsets(np.array([[2, 5]]), SPANS, EVERY[:1])

    @pytest.mark.parametrize("spans", [[[0, 3], [2, 5]], [[4, 6], [0, 3]], [[3, 3]]])
    def test_words_stand_in_order_and_apart(self, spans):
        """Anything else is no division of the text."""
        with pytest.raises(Misconfigured, match="word spans"):
            words_by_offsets(OFFSETS, np.array(spans), EVERY)

    def test_no_words_own_nothing(self):
        """A text of spaces."""
        assert words_by_offsets(OFFSETS, np.zeros((0, 2), dtype=int), EVERY).tolist() == [-1] * 7


class TestPieces:
    WORDS = np.array([-1, 0, 0, 1, 1, 2, -1])

    def test_first_and_all(self):
        """A word's first row, or all of its rows in order."""
        assert first_pieces(self.WORDS, 3).tolist() == [1, 3, 5]
        assert [rows.tolist() for rows in all_pieces(self.WORDS, 3)] == [[1, 2], [3, 4], [5]]

    def test_a_word_that_was_cut_off_keeps_its_place(self):
        """It has no row; the others keep their words."""
        assert first_pieces(self.WORDS[:4], 3).tolist() == [1, 3, -1]

    def test_the_ids_of_a_pair_are_refused(self):
        """They begin again with the second text, and would join two words into one."""
        with pytest.raises(Misconfigured, match="other sequence"):
            all_pieces(np.array([-1, 0, 1, -1, 0, 1, -1]), 2)

    @pytest.mark.parametrize("words", [[0, 3], [-2, 0]])
    def test_an_id_outside_the_words_is_refused(self, words):
        """There are three words, and -1 for none."""
        with pytest.raises(Misconfigured, match="word IDs"):
            first_pieces(np.array(words), 3)


class TestCharacters:
    def test_are_those_of_the_text_itself(self):
        """Two pieces give back the text's own letters, case and accent, which decoding would not."""
        found = characters(OFFSETS, 3, 4)
        assert TEXT[found.start : found.end] == "Müller"

    @pytest.mark.parametrize(("first", "last"), [(4, 3), (0, 3), (5, 6)])
    def test_of_rows_without_characters_or_out_of_order_are_refused(self, first, last):
        """[CLS] and [SEP] stand for nothing in the text."""
        with pytest.raises(Misconfigured):
            characters(OFFSETS, first, last)


class TestRealTokenizer:
    def test_offsets_give_the_tokenizers_own_words(self):
        """The fast tokenizer's word IDs and those from its offsets agree."""
        from tokenizers import Tokenizer
        from tokenizers.models import WordPiece
        from tokenizers.pre_tokenizers import WhitespaceSplit

        pieces = ["[UNK]", "Mü", "##ller", "kam", "spä", "##t", "##er"]
        tokenizer = Tokenizer(WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
        tokenizer.pre_tokenizer = WhitespaceSplit()
        encoded = tokenizer.encode("Müller kam später")
        offsets, spans = np.array(encoded.offsets), np.array([[0, 6], [7, 10], [11, 17]])
        found = words_by_offsets(offsets, spans, np.ones(len(offsets), dtype=bool))
        assert found.tolist() == encoded.word_ids == [0, 0, 1, 2, 2, 2]
