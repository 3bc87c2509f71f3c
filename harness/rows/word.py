"""What of the text a row stands for: characters by offsets, words by IDs. Never rebuilt from decoded strings.

Rows are pieces: a word is one piece or several that stand together. A row outside any word has the ID -1.
"""

from dataclasses import dataclass

import numpy as np

from harness.errors import Misconfigured
from harness.rows.mask import Bools, Ints


@dataclass(frozen=True, slots=True)
class Characters:
    """A stretch of the original text, from `start` to before `end`."""

    start: int
    end: int


def words_by_offsets(offsets: Ints, spans: Ints, mask: Bools) -> Ints:
    """The word ID [r] of each piece, by the characters it shares with a word; -1 for masked rows and for no word.

    Shapes: offsets [r, 2] and spans [w, 2], both characters of one text, end exclusive; spans rise and don't overlap.
    Raises Misconfigured for a piece that shares characters with two words.
    """
    if (spans[:, 0] >= spans[:, 1]).any() or (spans[1:, 0] < spans[:-1, 1]).any():
        raise Misconfigured(
            "word spans",
            found="spans that are empty, overlap or fall back",
            expected="one stretch of characters for each word, in the order of the text",
            mend="Take the spans from the text itself, in order.",
        )
    shared = (offsets[:, None, 0] < spans[None, :, 1]) & (offsets[:, None, 1] > spans[None, :, 0])
    shared &= (offsets[:, 0] < offsets[:, 1])[:, None] & mask[:, None]
    many = np.flatnonzero(shared.sum(axis=1) > 1)
    if len(many):
        row = int(many[0])
        raise Misconfigured(
            f"row {row}",
            found=f"a piece of the words {', '.join(map(str, np.flatnonzero(shared[row])))}",
            expected="each piece within one word",
            mend="Split the text into words as this tokenizer does, or use a tokenizer that keeps to the words.",
        )
    return np.where(shared.any(axis=1), shared.argmax(axis=1), -1) if len(spans) else np.full(len(offsets), -1)


def first_pieces(words: Ints, n_words: int) -> Ints:
    """[n_words], the row of each word's first piece; -1 for a word without a row, such as one that was cut off.

    Shapes: words [r], the word ID of each row, -1 for none. Raises as `all_pieces`.
    """
    return np.array([rows[0] if len(rows) else -1 for rows in all_pieces(words, n_words)], dtype=np.int64)


def all_pieces(words: Ints, n_words: int) -> tuple[Ints, ...]:
    """The rows of each word, in order; none for a word without a row.

    Raises Misconfigured for an ID outside the words, and for IDs that fall back, as those of a pair do where its
    second text begins: the rows of one sequence are asked for.
    """
    inside = words[words >= 0]
    if (inside >= n_words).any() or (words < -1).any() or (np.diff(inside) < 0).any():
        raise Misconfigured(
            "word IDs",
            found=f"the IDs {', '.join(map(str, inside[:8]))}{' …' if len(inside) > 8 else ''}",
            expected=f"IDs from 0 to {n_words - 1} that never fall back, and -1 for rows outside any word",
            mend="Set the rows of the other sequence to -1 first, by sequence ID.",
        )
    return tuple(np.flatnonzero(words == word) for word in range(n_words))


def characters(offsets: Ints, first: int, last: int) -> Characters:
    """The characters from row `first` to row `last`, both included.

    Shapes: offsets [r, 2]. Raises Misconfigured when `last` stands before `first`, or a row has no characters.
    """
    start, end = int(offsets[first, 0]), int(offsets[last, 1])
    if last < first or (offsets[[first, last], 0] >= offsets[[first, last], 1]).any():
        raise Misconfigured(
            f"rows {first} to {last}",
            found="rows out of order, or a row that stands for no characters",
            expected="two rows of the text, the first no later than the last",
            mend="Choose among the counted content rows only.",
        )
    return Characters(start, end)
