"""Which texts are nearly the same: pairs proposed by MinHash over word shingles, each held against its true Jaccard.

The likeness of two texts is that of their sets of shingles, |both| / |either|. A signature keeps the smallest of each
set under many hash functions; two texts that agree on all rows of some band are compared. So a pair that is reported
is one, and one at the threshold is overlooked with a probability of at most `MISS`.
Source: Broder 1997, On the resemblance and containment of documents; banding as in Leskovec, Rajaraman and Ullman,
Mining of Massive Datasets, 3.4.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FUNCTIONS = 256
MISS = 1e-3
SEED = 20261201
# Texts whose signatures are made together, in shingles, so that memory does not grow with the suite.
BLOCK = 1 << 16
CROWD = 1 << 14
"""Pairs of one bucket up to which all are compared; in a larger one each text meets its neighbours by signature."""
NEIGHBOURS = 32

Words = tuple[str, ...]
Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Near:
    """Two texts by their places, the first one's smaller, and how alike they are."""

    first: int
    second: int
    similarity: float


def shingles(fields: Sequence[Words], size: int) -> frozenset[Words]:
    """Every run of `size` words within a field; a shorter field is one shingle. Fields have no order."""
    return frozenset(
        field[start : start + size] for field in fields if field for start in range(max(1, len(field) - size + 1))
    )


def near(texts: Sequence[Sequence[Words]], sides: Sequence[int], *, size: int, threshold: float) -> tuple[Near, ...]:
    """Pairs of texts of different sides that are alike by at least `threshold`, but for texts with the same shingles.

    Shapes: texts [n], each some fields of words; sides [n]. The same texts give the same pairs in any process.
    """
    if len(set(sides)) < 2:
        return ()
    sets = [shingles(each, size) for each in texts]
    rows = _rows(threshold)
    signatures = _signatures(sets)
    found = []
    for first, second in _proposed(signatures, np.asarray(sides), rows).tolist():
        one, other = sets[first], sets[second]
        both = len(one & other)
        if both and both >= threshold * (len(one) + len(other) - both) - 1e-12:
            found.append(Near(first, second, both / (len(one) + len(other) - both)))
    return tuple(found)


def _rows(threshold: float) -> int:
    """The most rows a band may have for a pair at the threshold to be overlooked no more often than `MISS`."""
    fit = [rows for rows in range(1, 17) if (1 - threshold**rows) ** (FUNCTIONS // rows) <= MISS]
    return max(fit, default=1)


def _signatures(sets: Sequence[frozenset[Words]]) -> Hashes:
    """[n, FUNCTIONS]; a text without words has only the largest value."""
    random = np.random.default_rng(SEED)
    factors = random.integers(0, 2**63, FUNCTIONS, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = random.integers(0, 2**63, FUNCTIONS, dtype=np.uint64)
    result = np.full((len(sets), FUNCTIONS), np.iinfo(np.uint64).max, dtype=np.uint64)
    sizes = np.array([len(each) for each in sets], dtype=np.int64)
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sets):
        before = ends[start] - sizes[start]
        stop = max(start + 1, int(np.searchsorted(ends, before + BLOCK, side="right")))
        filled = np.flatnonzero(sizes[start:stop]) + start
        if len(filled):
            hashed = np.array([_hash(each) for place in filled.tolist() for each in sets[place]], dtype=np.uint64)
            offsets = np.cumsum(sizes[filled]) - sizes[filled]
            for function in range(FUNCTIONS):
                mixed = _mixed(hashed * factors[function] + shifts[function])
                result[filled, function] = np.minimum.reduceat(mixed, offsets)
        start = stop
    return result


def _mixed(values: Hashes) -> Hashes:
    """A product alone orders by its low bits; folding the high ones in makes an order that is as good as random."""
    values = values ^ (values >> np.uint64(33))
    values = values * np.uint64(0xFF51AFD7ED558CCD)
    return values ^ (values >> np.uint64(33))


def _hash(shingle: Words) -> int:
    return int.from_bytes(hashlib.blake2b("\0".join(shingle).encode("utf-8", "surrogatepass"), digest_size=8).digest())


def _proposed(signatures: Hashes, sides: NDArray[np.int_], rows: int) -> NDArray[np.int64]:
    """Pairs [p, 2] of different sides that agree on a band, each once, rising."""
    count = len(signatures)
    keys: list[NDArray[np.int64]] = []
    filled = np.flatnonzero(signatures[:, 0] != np.iinfo(np.uint64).max)
    for start in range(0, FUNCTIONS - rows + 1, rows):
        band = np.ascontiguousarray(signatures[filled, start : start + rows])
        order = np.lexsort(band.T[::-1])
        sorted_band = band[order]
        changes = np.flatnonzero((sorted_band[1:] != sorted_band[:-1]).any(axis=1)) + 1
        for members in np.split(filled[order], changes):
            if len(members) < 2 or len(set(sides[members].tolist())) < 2:
                continue
            members = np.sort(members)
            if len(members) * len(members) // 2 <= CROWD:
                first, second = np.triu_indices(len(members), 1)
            else:
                members = members[np.lexsort(signatures[members].T[::-1])]
                first, second = _neighbours(len(members))
            one, other = members[first], members[second]
            apart = sides[one] != sides[other]
            low, high = np.minimum(one, other)[apart], np.maximum(one, other)[apart]
            keys.append(low * count + high)
    if not keys:
        return np.empty((0, 2), dtype=np.int64)
    pairs = np.unique(np.concatenate(keys))
    return np.stack(np.divmod(pairs, count), axis=1)


def _neighbours(count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = np.repeat(np.arange(count), NEIGHBOURS)
    second = first + np.tile(np.arange(1, NEIGHBOURS + 1), count)
    return first[second < count], second[second < count]
