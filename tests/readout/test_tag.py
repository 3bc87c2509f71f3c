"""From rows to one tag a word, by hand."""

from itertools import product

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.readout.tag import agreed, constrained, largest, word_chances

LABELS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
# A special row, a word of two pieces, one of one piece, and a special row; the word between them has no row.
WORDS = np.array([-1, 0, 0, 2, -1])


def rows(*codes: int) -> np.ndarray:
    """Logits [r, 5] in which each row is for one tag, by 3."""
    return 3.0 * np.eye(5)[list(codes)]


def tags(codes: np.ndarray) -> list[str]:
    return [LABELS[code] for code in codes]


class TestWhichPiecesSpeak:
    def test_the_first_piece_alone(self) -> None:
        """The second piece says I-LOC, and is not heard."""
        found = word_chances(rows(3, 1, 4, 3, 3), WORDS, 3, "first", 0)
        assert tags(largest(found)) == ["B-PER", "O", "B-LOC"]

    def test_the_mean_is_one_of_probabilities(self) -> None:
        """Of the probabilities (.6, .4) and (.1, .9) the mean is (.35, .65); the first alone would say the other."""
        logits = np.log(np.array([[0.6, 0.4], [0.1, 0.9]]))
        found = word_chances(logits, np.array([0, 0]), 1, "mean", 0)
        assert np.exp(found) == pytest.approx(np.array([[0.35, 0.65]]))
        assert np.exp(word_chances(logits, np.array([0, 0]), 1, "first", 0)) == pytest.approx(np.array([[0.6, 0.4]]))

    @pytest.mark.parametrize(("pieces", "tag"), [((1, 2), "B-PER"), ((2, 2), "I-PER"), ((1, 4), "O"), ((1, 0), "O")])
    def test_all_must_speak_of_one_thing(self, pieces: tuple[int, int], tag: str) -> None:
        """B-PER goes on as I-PER, and not as I-LOC or O."""
        assert tags(agreed(rows(0, *pieces, 3, 0), WORDS, 3, LABELS, 0)) == [tag, "O", "B-LOC"]

    def test_a_word_without_a_row_has_the_null_tag(self) -> None:
        assert np.exp(word_chances(rows(3, 1, 4, 3, 3), WORDS, 3, "mean", 0)[1]).tolist() == [1, 0, 0, 0, 0]

    def test_ties_go_to_the_earlier_label(self) -> None:
        assert largest(word_chances(np.zeros((1, 5)), np.array([0]), 1, "first", 0)).tolist() == [0]


class TestConstrained:
    def test_a_tag_that_nothing_began_is_not_given(self) -> None:
        """I-PER is likeliest in both words; B-PER then I-PER is the likeliest that is allowed."""
        logits = np.log(np.array([[0.1, 0.3, 0.6], [0.1, 0.2, 0.7]]))
        assert tags(largest(logits)) == ["I-PER", "I-PER"]
        assert tags(constrained(logits, LABELS[:3])) == ["B-PER", "I-PER"]

    def test_it_is_the_best_of_all_that_are_allowed(self) -> None:
        """Every sequence of five words over five tags is tried, and those with an I that nothing began are left out."""

        def allowed(sequence: tuple[int, ...]) -> bool:
            before = "O"
            for tag in tags(np.array(sequence)):
                if tag[0] == "I" and before[2:] != tag[2:]:
                    return False
                before = tag
            return True

        every = [each for each in product(range(5), repeat=5) if allowed(each)]
        for seed in range(20):
            logits = np.random.default_rng(seed).normal(scale=2, size=(5, 5))
            chances = word_chances(logits, np.arange(5), 5, "first", 0)
            best = max(every, key=lambda each: sum(chances[word, code] for word, code in enumerate(each)))
            assert tuple(constrained(chances, LABELS).tolist()) == best

    def test_what_follows_a_word_without_a_row_does_not_go_on(self) -> None:
        """The word between is O, so I-PER after it began nothing."""
        found = word_chances(rows(0, 1, 2, 2, 0), WORDS, 3, "first", 0)
        assert tags(largest(found)) == ["B-PER", "O", "I-PER"]
        assert tags(constrained(found, LABELS))[1:] != ["O", "I-PER"]

    @pytest.mark.parametrize("labels", [("O", "B-PER", "E-PER"), ("B-PER", "I-PER"), ("LABEL_0", "O")])
    def test_another_scheme_is_refused(self, labels: tuple[str, ...]) -> None:
        with pytest.raises(Misconfigured, match="constrained"):
            constrained(np.zeros((1, len(labels))), labels)

    def test_no_words_have_no_tags(self) -> None:
        assert constrained(np.empty((0, 5)), LABELS).tolist() == []
