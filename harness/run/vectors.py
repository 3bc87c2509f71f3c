"""Vectors read in blocks, what float32 makes of them, and how far a score of theirs can be off."""

import math
import mmap
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Indices = NDArray[np.int64]
Scores = NDArray[np.float64]

# Documents read together, and scored together: few enough for what float32 makes of them to stay in a cache.
BLOCK = 1 << 13
TILE = 1 << 11

# The unit roundoff of float32, its least normal number, and well below its largest.
SINGLE = float(np.finfo(np.float32).eps) / 2
TINY = float(np.finfo(np.float32).tiny)
OVERFLOW = float(np.finfo(np.float32).max) / 16
# Between these no square that matters is lost, and no sum of squares overflows.
SAFE_LOW, SAFE_HIGH = 1e-20, 1e30


@dataclass(frozen=True, slots=True)
class Chunk:
    """Vectors [c, d] float32 of the documents `start`, `start` + 1, …; may be memory-mapped."""

    start: int
    vectors: Vectors


def blocks(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks in pieces of at most BLOCK documents, contiguous in memory."""
    for chunk in chunks:
        for start in range(0, len(chunk.vectors), BLOCK):
            part = np.ascontiguousarray(chunk.vectors[start : start + BLOCK], dtype=np.float32)
            yield Chunk(chunk.start + start, part)
            _release(chunk.vectors)


def tiles(chunks: Iterable[Chunk]) -> Iterator[Chunk]:
    """The chunks in pieces of at most TILE documents; the first of all is a whole block."""
    size = BLOCK
    for block in blocks(chunks):
        for start in range(0, len(block.vectors), size):
            yield Chunk(block.start + start, block.vectors[start : start + size])
        size = TILE


def _release(vectors: Vectors) -> None:
    """Lets go of a file's pages, which count as this process's memory once they were looked at.

    Not those of a private copy, which may hold what the file does not.
    """
    array: object = vectors
    while isinstance(array, np.ndarray):
        owner: object = array.base
        if isinstance(array, np.memmap) and isinstance(owner, mmap.mmap) and array.mode in ("r", "r+"):
            if hasattr(mmap, "MADV_DONTNEED"):
                owner.madvise(mmap.MADV_DONTNEED)
            return
        array = owner


@dataclass(frozen=True, slots=True)
class Queries:
    """Queries [q, d] in float64 and as float32 has them `seen`: of unit length for cosine.

    `divisors` [q] are what cosines are divided by. `bad` aren't finite, `zero` have no direction.
    """

    exact: Scores
    seen: Vectors
    lengths: Scores
    divisors: Scores
    bad: Indices
    zero: Indices
    cosine: bool

    @classmethod
    def of(cls, vectors: Vectors, cosine: bool) -> "Queries":
        exact = vectors.astype(np.float64)
        # No finite float32 has a square beyond float64, so the sum tells of every vector that isn't finite.
        squares = np.einsum("nd,nd->n", exact, exact)
        finite = np.isfinite(squares)
        lengths = np.sqrt(np.where(finite, squares, 0.0))
        divisors = direction_divisors(lengths)
        seen = (exact / divisors[:, None] if cosine else exact).astype(np.float32)
        zero = finite & (lengths == 0) & cosine
        return cls(exact, seen, lengths, divisors, np.flatnonzero(~finite), np.flatnonzero(zero), cosine)

    def error(self, longest: float) -> Scores:
        """[q]: how far float32 scores of documents no longer than `longest` can be off; infinite where they overflow.

        The sum of absolute products is at most the product of the lengths. For cosine these are 1, but for a document
        whose length float32 takes for 1, which may be off by twice the error of a sum.
        """
        width = self.seen.shape[1]
        lengths = np.full(len(self.seen), 3.5) if self.cosine else self.lengths * longest
        return np.where(lengths < OVERFLOW, sum_error(width) * lengths + width * TINY, np.inf)


@dataclass(frozen=True, slots=True)
class Block:
    """The documents `start`, `start` + 1, … as float32 has them `seen` [b, d], none longer than `longest`.

    For cosine their lengths are 1, give or take twice the error of a sum.
    """

    start: int
    seen: Vectors
    longest: float
    bad: Indices
    zero: Indices

    @classmethod
    def of(cls, chunk: Chunk, cosine: bool) -> "Block":
        vectors = seen = chunk.vectors
        rough = np.einsum("nd,nd->n", vectors, vectors)
        error = sum_error(vectors.shape[1])
        if cosine and np.abs(rough - 1).max() <= error:
            none = np.empty(0, dtype=np.int64)
            return cls(chunk.start, vectors, 1 + 2 * error, none, none)
        far = np.flatnonzero(~((rough > SAFE_LOW) & (rough < SAFE_HIGH)))
        exact = vectors[far].astype(np.float64)
        squares = rough.astype(np.float64)
        squares[far] = np.einsum("nd,nd->n", exact, exact)
        finite = np.isfinite(squares)
        longest = math.sqrt(squares[finite].max(initial=0.0)) * (1 + error)
        if cosine:
            lengths = direction_divisors(np.sqrt(np.where(finite, squares, 0.0)))
            scale = np.where(np.abs(squares - 1) <= error, 1.0, 1 / lengths)
            scale[far] = 1
            seen = vectors * scale.astype(np.float32)[:, None]
            seen[far] = exact / lengths[far, None]
        return cls(
            chunk.start, seen, longest,
            chunk.start + np.flatnonzero(~finite), chunk.start + np.flatnonzero(cosine & (squares == 0)),
        )  # fmt: skip


def direction_divisors(lengths: Scores) -> Scores:
    """What cosines are divided by: the lengths, and 1 for a vector without direction, whose products are all 0."""
    return np.where(lengths > 0, lengths, 1.0)


def sum_error(width: int) -> float:
    """How far a float32 sum of products can be from the exact one, as a share of the sum of absolute products.

    n·u / (1 − n·u) in whatever order; n is the width, and a little for the rounding of scaled vectors. Source:
    Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, section 3.1.
    """
    operations = (width + 4) * SINGLE
    return operations / (1 - operations)
