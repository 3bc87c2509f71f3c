"""Batches in which a text's result depends on that text alone.

A text is padded to a width that follows from its own length, a batch holds one width, and every batch is computed by
one thread, several batches at a time. So neither company, order, batch size nor the number of threads changes a bit
on a CPU. (Splitting one product among threads would: the split, and with it the order of summation, follows the
number of rows.)
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.candidate.runtime import device, one_thread_each, said

Item = TypeVar("Item")
Result = TypeVar("Result")

BATCHES = "1"
"""Version of how texts are padded and put together: raised when the same model gives other bits by it."""

# A feature beside the tokenizer's: of a window, 1 where a row is to be kept; every other token is another window's.
OWNED = "owned_positions"

MULTIPLE = 8
# Below sixteen rows of tokens, matrix products take another path with other rounding.
NARROWEST = 16
PADDED_TOKENS = {"cpu": 2048, "cuda": 32768}


@dataclass(frozen=True, slots=True)
class Share:
    """Of one text among several that are read together, the tokens kept and those that truncation took away."""

    kept: int
    lost: int


@dataclass(frozen=True, slots=True, eq=False)
class Windows:
    """Where the windows of a text lie. Shapes: spans [w, 2] over its own tokens, characters [w, 2] over its characters,
    ends exclusive.

    `head` and `tail`: tokens before and behind them that every window has. `uncovered`: characters of the text that
    aren't blank and stand in no token. `words`: that of each of its own tokens, where the text came in words.
    """

    head: int
    tail: int
    spans: NDArray[np.int64]
    characters: NDArray[np.int64]
    uncovered: int
    words: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class Tokens:
    """One text as a model is given it: each feature a list, one value for each token, before any padding.

    `lost`: tokens that truncation took away. `excluded`: tokens at the start that the pooling leaves out. `shares`: of
    texts that are read together, what each has of the tokens that aren't special. `filled`: how many are not the
    text's, but fill it up to a width. `windows`: of a whole text that is read in several; None of one, or of a window.
    """

    features: Mapping[str, Sequence[int]]
    lost: int = 0
    excluded: int = 0
    shares: tuple[Share, ...] = ()
    filled: int = 0
    windows: Windows | None = None

    def __len__(self) -> int:
        return len(self.features["input_ids"])

    @property
    def kept(self) -> int:
        """Tokens of the text itself, special ones included."""
        return len(self) - self.filled

    def digest(self) -> str:
        """SHA-256 of all features: token IDs, masks, segments and whatever else the model reads."""
        told = hashlib.sha256()
        for name in sorted(self.features):
            told.update(name.encode() + b"\0")
            told.update(np.asarray(self.features[name], dtype="<i8").tobytes())
        return told.hexdigest()


@dataclass(frozen=True, slots=True)
class Tried(Generic[Result]):
    """What came of each item by position: a result, or the reason why there is none."""

    results: dict[int, Result]
    reasons: dict[int, str]


def each(compute: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item]) -> Tried[Result]:
    """All items at once, or where that raises, one by one."""
    try:
        return Tried(dict(enumerate(compute(items))), {})
    except Exception as error:
        if len(items) == 1:
            return Tried({}, {0: said(error)})
    alone = [each(compute, [item]) for item in items]
    return Tried(
        {position: tried.results[0] for position, tried in enumerate(alone) if tried.results},
        {position: tried.reasons[0] for position, tried in enumerate(alone) if tried.reasons},
    )


def in_portions(
    compute: Callable[[Sequence[Item]], Sequence[Result]], items: Sequence[Item], sizes: Sequence[int], most: int
) -> Tried[Result]:
    """As `each`, of so many items at a time as are of at most `most` by their sizes together, or of a single one."""
    results: dict[int, Result] = {}
    reasons: dict[int, str] = {}
    start, held = 0, 0
    for row, size in enumerate([*sizes, most + 1]):
        if row > start and held + size > most:
            tried = each(compute, items[start:row])
            results |= {start + position: result for position, result in tried.results.items()}
            reasons |= {start + position: reason for position, reason in tried.reasons.items()}
            start, held = row, 0
        held += size
    return Tried(results, reasons)


def width_of(length: int, widest: int) -> int:
    """Columns of a padded text of so many tokens, where a batch may have at most `widest`."""
    rounded = max(NARROWEST, -(-length // MULTIPLE) * MULTIPLE)
    return max(length, min(rounded, widest))


def batched(
    compute: Callable[[Sequence[Item]], Sequence[Result]],
    items: Sequence[Item],
    widths: Sequence[tuple[str, int]],
    most: Mapping[str, int] | None = None,
) -> Tried[Result]:
    """Every item's result, computed in batches side by side and given by the item's position.

    `widths`: for each item what it may share a batch with, and its padded width. `most`: padded tokens in a batch of
    those kinds that may not have the usual number. An item that raises fails alone.
    """
    batches = _batches(widths, most or {})

    def one(batch: Sequence[int]) -> Tried[Result]:
        return each(compute, [items[row] for row in batch])

    results: dict[int, Result] = {}
    reasons: dict[int, str] = {}
    with one_thread_each() as threads, ThreadPoolExecutor(threads if device() == "cpu" else 1) as pool:
        for batch, tried in zip(batches, pool.map(one, batches), strict=True):
            results |= {batch[position]: result for position, result in tried.results.items()}
            reasons |= {batch[position]: reason for position, reason in tried.reasons.items()}
    return Tried(results, reasons)


def _batches(widths: Sequence[tuple[str, int]], most: Mapping[str, int]) -> list[list[int]]:
    """Positions by kind and width, the widest first, each batch of about a fixed number of padded tokens."""
    alike: dict[tuple[str, int], list[int]] = {}
    for row, (kind, width) in enumerate(widths):
        alike.setdefault((kind, width), []).append(row)
    batches = []
    for kind, width in sorted(alike, key=lambda each: (-each[1], each[0])):
        tokens = min(PADDED_TOKENS[device()], most.get(kind, PADDED_TOKENS[device()]))
        rows, size = alike[kind, width], max(1, tokens // width)
        batches += [rows[start : start + size] for start in range(0, len(rows), size)]
    return batches
