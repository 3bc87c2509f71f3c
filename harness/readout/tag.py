"""From the logits of rows to one tag a word: which of a word's pieces speak for it, and which tag may follow which.

Ties go to the earlier label. A word without a row has the null tag.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.readout.probability import log_softmax
from harness.rows.mask import Bools, Floats, Ints
from harness.rows.word import all_pieces

Array = NDArray[np.floating]


def word_chances(logits: Array, words: Ints, n_words: int, pieces: Literal["first", "mean"], null: int) -> Floats:
    """Logarithms [n_words, l] of the probabilities of each word's tags: its first piece's, or the mean of all its own.

    Shapes: logits [r, l]; words [r], the word of each row, -1 for none. A word without a row is certain to be `null`.
    """
    every = log_softmax(logits, 1.0)
    found = np.full((n_words, logits.shape[1]), -np.inf)
    for word, rows in enumerate(all_pieces(words, n_words)):
        if not len(rows):
            found[word, null] = 0.0
        elif pieces == "first":
            found[word] = every[rows[0]]
        else:
            found[word] = np.logaddexp.reduce(every[rows], axis=0) - np.log(len(rows))
    return found


def largest(chances: Array) -> Ints:
    """[w], the likeliest tag of each word by itself. Shapes: chances [w, l]."""
    return np.asarray(np.argmax(chances, axis=1), dtype=np.int64)


def agreed(logits: Array, words: Ints, n_words: int, labels: Sequence[str], null: int) -> Ints:
    """[n_words], the tag of each word's first piece where all its pieces speak of the same; else `null`.

    Of a word that begins something, the later pieces may say that it begins or that it goes on (B-PER, then I-PER).
    Shapes as in `word_chances`.
    """
    every = np.argmax(logits, axis=1)
    found = np.full(n_words, null, dtype=np.int64)
    for word, rows in enumerate(all_pieces(words, n_words)):
        if len(rows) and len({_spoken_of(labels[code]) for code in every[rows]}) == 1:
            found[word] = every[rows[0]]
    return found


def constrained(chances: Array, labels: Sequence[str]) -> Ints:
    """[w], the likeliest sequence of tags in which I-X follows B-X or I-X alone (IOB2), by Viterbi.

    Shapes: chances [w, l], logarithms. Raises Misconfigured for labels of another scheme.
    """
    may = legal(labels)
    if not len(chances):
        return np.empty(0, dtype=np.int64)
    best = np.where(may.begin, chances[0], -np.inf)
    before = np.zeros(chances.shape, dtype=np.int64)
    for word in range(1, len(chances)):
        through = np.where(may.follow, best[:, None], -np.inf)
        before[word] = np.argmax(through, axis=0)
        best = through.max(axis=0) + chances[word]
    tags = np.empty(len(chances), dtype=np.int64)
    tags[-1] = np.argmax(best)
    for word in range(len(chances) - 1, 0, -1):
        tags[word - 1] = before[word, tags[word]]
    return tags


@dataclass(frozen=True, slots=True, eq=False)
class Legal:
    """Whether a tag may begin a text [l], and follow another [l before, l after]."""

    begin: Bools
    follow: Bools


def legal(labels: Sequence[str]) -> Legal:
    """What IOB2 allows. Raises Misconfigured for labels of another scheme."""
    strange = [label for label in labels if label != "O" and label[:2] not in ("B-", "I-")]
    if strange or "O" not in labels:
        raise Misconfigured(
            "tags of a constrained decoder", found=", ".join(strange) or "no tag O", expected="O, and B-X and I-X",
            mend='Name them so in `labels` of [output], or leave `decoder` out of release.toml.',
        )  # fmt: skip
    inside = np.array([label.startswith("I-") for label in labels])
    same = np.array([[a != "O" and a[2:] == b[2:] for b in labels] for a in labels])
    return Legal(~inside, ~inside[None, :] | same)


def _spoken_of(label: str) -> str:
    return label[2:] if label[:2] in ("B-", "I-") else label
