"""Rows of many texts one after another, without padding: each text has as many as it has."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.rows.mask import Ints

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Ragged:
    """The counted rows of n texts. Text i has the rows from `offsets[i]` to before `offsets[i + 1]`, maybe none.

    Shapes: values [r, d] float32, may be memory-mapped; offsets [n + 1] int64, from 0 to r, never falling.
    Raises Misconfigured for anything else.
    """

    values: Values
    offsets: Ints

    def __post_init__(self) -> None:
        values, offsets = self.values, self.offsets
        if values.dtype != np.float32 or values.ndim != 2 or offsets.dtype != np.int64 or offsets.ndim != 1:
            found = f"{values.dtype} of shape {values.shape}, offsets {offsets.dtype} of shape {offsets.shape}"
        elif not len(offsets) or offsets[0] != 0 or offsets[-1] != len(values) or (np.diff(offsets) < 0).any():
            found = f"offsets {np.array2string(offsets, threshold=8, edgeitems=3)} for {len(values)} rows"
        else:
            return
        raise Misconfigured(
            "ragged rows",
            found=found,
            expected="values [r, d] float32 and offsets [n + 1] int64 that rise from 0 to r",
            mend="Put the rows of the texts one after another, and count them with `Ragged.of`.",
        )

    @classmethod
    def of(cls, texts: Sequence[NDArray[np.floating]], width: int) -> "Ragged":
        """The rows of each text [r_i, width], one after another."""
        values = np.concatenate([np.empty((0, width), dtype=np.float32), *texts], dtype=np.float32)
        return cls(values, np.cumsum([0, *map(len, texts)], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def counts(self) -> Ints:
        """[n], how many rows each text has."""
        return np.diff(self.offsets)

    def rows(self, text: int | np.integer) -> Values:
        """[r_i, d], those of one text; a view."""
        return self.values[self.offsets[text] : self.offsets[text + 1]]

    def part(self, start: int, end: int) -> "Ragged":
        """The texts from `start` to before `end`; a view."""
        offsets = self.offsets[start : end + 1]
        return Ragged(self.values[offsets[0] : offsets[-1]], offsets - offsets[0])

    def take(self, texts: Ints) -> "Ragged":
        """The given texts in the given order; a copy."""
        offsets = np.concatenate([[0], np.cumsum(self.counts[texts])])
        return Ragged(self.values[self.positions(texts)], offsets)

    def positions(self, texts: Ints) -> Ints:
        """Where in `values` the rows of the given texts stand, one text after another."""
        counts = self.counts[texts]
        ends = np.cumsum(counts)
        return np.repeat(self.offsets[texts] - (ends - counts), counts) + np.arange(counts.sum())


@dataclass(frozen=True, slots=True)
class Meetings:
    """Pairs of rows [m, 2], those of a pair of texts one after another from its place in `starts` [p] on."""

    rows: Ints
    starts: Ints


def meetings(mine: Ints, theirs: Ints, pairs: Ints) -> Meetings:
    """Every row of one text with every row of the other, pair of texts after pair, each of which has a row.

    Shapes: mine and theirs, offsets of the rows of either side's texts, as in `Ragged`; pairs [p, 2] of texts.
    """
    some, others = np.diff(mine)[pairs[:, 0]], np.diff(theirs)[pairs[:, 1]]
    counts = some * others
    starts = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(starts, counts)
    width = np.repeat(others, counts)
    first = np.repeat(mine[pairs[:, 0]], counts) + within // np.maximum(width, 1)
    second = np.repeat(theirs[pairs[:, 1]], counts) + within % np.maximum(width, 1)
    return Meetings(np.stack([first, second], axis=1), starts)


def runs(offsets: Ints, rows: int) -> Iterator[slice]:
    """Stretches of whole texts of no more than `rows` rows together; a longer text is a stretch of its own.

    Shapes: offsets [n + 1], as in `Ragged`.
    """
    start = 0
    while start < len(offsets) - 1:
        fit = int(np.searchsorted(offsets, offsets[start] + rows, side="right")) - 1
        end = max(fit, start + 1)
        yield slice(start, end)
        start = end
