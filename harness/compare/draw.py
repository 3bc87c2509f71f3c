"""Draws over whole groups: with replacement, or a sign for each.

Draws are a seed, not an array: every pass makes the same blocks again, so a suite of any size needs the memory of
one block. They belong to the groups alone, so one pass serves all slices and metrics at once. A slice's groups are
some of the suite's: in one draw its number of groups varies, as the ratio estimator lets it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, Self

import numpy as np
from scipy import sparse

from harness.compare.group import CELLS, Additive, ByGroup, Floats

DENSE = 8
"""One in how many numbers must not be 0 for all of them to be multiplied."""
DRAWN = 1 << 24
"""Drawn values held at once: 128 MB."""


class Draws(Protocol):
    """Blocks [b, n_groups] that together hold `draws` rows."""

    @property
    def n_groups(self) -> int: ...

    @property
    def draws(self) -> int: ...

    def blocks(self, rows: int) -> Iterator[Floats]: ...


@dataclass(frozen=True, slots=True)
class Resample:
    """How often each of n_groups is drawn in a sample of n_groups with replacement."""

    n_groups: int
    draws: int
    seed: int

    @classmethod
    def draw(cls, n_groups: int, draws: int, rng: np.random.Generator) -> Self:
        return cls(n_groups, draws, int(rng.integers(2**63)))

    def blocks(self, rows: int) -> Iterator[Floats]:
        """Counts [b, g], whole numbers that sum to g; b ≤ rows. The size of blocks never changes a count."""
        rng = np.random.Generator(np.random.PCG64(self.seed))
        for size in _sizes(self.draws, rows):
            picked = rng.integers(self.n_groups, size=(size, self.n_groups))
            picked += np.arange(size)[:, None] * self.n_groups
            counts = np.bincount(picked.ravel(), minlength=size * self.n_groups)
            yield counts.astype(np.float64).reshape(size, self.n_groups)


@dataclass(frozen=True, slots=True)
class SignFlips:
    """A fair sign for each of n_groups."""

    n_groups: int
    draws: int
    seed: int

    @classmethod
    def draw(cls, n_groups: int, draws: int, rng: np.random.Generator) -> Self:
        return cls(n_groups, draws, int(rng.integers(2**63)))

    def blocks(self, rows: int) -> Iterator[Floats]:
        """Signs [b, g], each -1 or 1; b ≤ rows. The size of blocks never changes a sign."""
        rng = np.random.Generator(np.random.PCG64(self.seed))
        words = -(-self.n_groups // 64)
        for size in _sizes(self.draws, rows):
            bits = rng.integers(2**64, size=(size, words), dtype=np.uint64).astype("<u8").view(np.uint8)
            yield np.unpackbits(bits, axis=1, count=self.n_groups).astype(np.float64) * 2 - 1


def over_draws(statistics: Sequence[ByGroup], draws: Draws) -> Floats:
    """Every statistic in every draw: [k, draws]. One matrix product per block for all that add up.

    Counts of many classes are nearly all 0, and only what isn't is multiplied: columns lie on grids, so sums are exact
    and the same bytes whichever numbers are left out.
    """
    columns = _Columns()
    places = [columns.add(statistic.columns) if isinstance(statistic, Additive) else [] for statistic in statistics]
    matrix = columns.matrix(draws.n_groups)
    result = np.empty((len(statistics), draws.draws))
    done = 0
    for block in draws.blocks(max(1, CELLS // max(draws.n_groups, *matrix.shape))):
        here = slice(done, done + len(block))
        sums = matrix @ block.T
        for row, statistic, place in zip(result, statistics, places, strict=True):
            if isinstance(statistic, Additive):
                # One memory layout for `finish`, however many statistics share the block.
                row[here] = statistic.finish(np.ascontiguousarray(sums[place].T))
            else:
                row[here] = statistic.of(block)
        done += len(block)
    return result


class _Columns:
    """Columns to be multiplied, each once: the metrics of one slice share the sizes of its groups."""

    def __init__(self) -> None:
        # By digest: of many groups the columns themselves would be held twice.
        self._place: dict[bytes, int] = {}
        self._columns: list[Floats] = []

    def add(self, columns: Floats) -> list[int]:
        places = []
        for column in columns.T:
            digest = blake2b(column.tobytes(), digest_size=32).digest()
            place = self._place.setdefault(digest, len(self._columns))
            if place == len(self._columns):
                self._columns.append(column)
            places.append(place)
        return places

    def matrix(self, n_groups: int) -> "Floats | sparse.csr_array":
        """[columns, g], each column a row; without its zeros where they are most of it."""
        filled = [np.flatnonzero(column) for column in self._columns]
        n_filled = sum(map(len, filled))
        if n_filled * DENSE > n_groups * len(filled) or not filled:
            return np.stack(self._columns) if self._columns else np.empty((0, n_groups))
        values = np.concatenate([column[at] for column, at in zip(self._columns, filled, strict=True)])
        ends = np.cumsum([0, *map(len, filled)])
        return sparse.csr_array((values, np.concatenate(filled), ends), shape=(len(filled), n_groups))


def _sizes(draws: int, rows: int) -> Iterator[int]:
    for start in range(0, draws, rows):
        yield min(rows, draws - start)
