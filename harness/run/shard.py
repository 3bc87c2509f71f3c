"""One file of pieces: what one batch left under one key. Nothing in it is trusted before its digest agrees.

A safetensors file. At its head stands the index: `items` [n, 32] uint8, the SHA-256 of the items' names, rising;
`checks` [n, 32], the SHA-256 of each one's numbers; `offsets` [n + 1] int64 into the rows; `digest` [32], over all of
these, the shape of the values and the key. Then `values` [rows, d] float32 and, of sparse vectors, `indices` [rows]
int32. The index is checked when a file is opened, a piece when it is taken; the others stay on disk.
"""

import hashlib
import json
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.candidate.side import Piece
from harness.release.weights import Tensor, tensors

DIGEST = 32
TYPES: Mapping[str, np.dtype[Any]] = {
    "U8": np.dtype("u1"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "I32": np.dtype("<i4"),
}
INDEX = ("items", "checks", "offsets")

Digests: TypeAlias = NDArray[np.uint8]
Arrays: TypeAlias = dict[str, NDArray[Any]]


class Damaged(Exception):
    """A file that is not what was written."""


def digests_of(items: Sequence[str]) -> Digests:
    """[n, 32], the SHA-256 of the items' names."""
    joined = b"".join(hashlib.sha256(item.encode()).digest() for item in items)
    return np.frombuffer(joined, dtype=np.uint8).reshape(-1, DIGEST)


def arrays_of(key: str, pieces: Mapping[str, Piece]) -> Arrays:
    """A file's arrays, in the order in which they stand in it. All pieces have one width, and all indices or none."""
    named = dict(zip((each.tobytes() for each in digests_of(list(pieces))), pieces.values(), strict=True))
    every = [named[item] for item in sorted(named)]
    index: Arrays = {
        "items": _joined(sorted(named)),
        "checks": _joined([_check(piece) for piece in every]),
        "offsets": np.cumsum([0, *(len(piece.values) for piece in every)], dtype="<i8"),
    }
    numbers: Arrays = {"values": np.concatenate([piece.values for piece in every]).astype("<f4", copy=False)}
    indices = [piece.indices for piece in every if piece.indices is not None]
    if indices:
        numbers["indices"] = np.concatenate(indices).astype("<i4", copy=False)
    digest = _digest(key, index, numbers["values"].shape, bool(indices))
    return {**index, "digest": np.frombuffer(digest, dtype=np.uint8), **numbers}


def size_of(arrays: Arrays) -> int:
    """Bytes of the file."""
    return len(_header(arrays)) + sum(each.nbytes for each in arrays.values())


def write(path: Path, arrays: Arrays) -> None:
    """The file, down to the disk. Raises OSError."""
    with path.open("wb") as stream:
        stream.write(_header(arrays))
        for each in arrays.values():
            stream.write(np.ascontiguousarray(each).data.cast("B") if each.size else b"")
        stream.flush()
        os.fsync(stream.fileno())


def count(path: Path) -> int:
    """Pieces in a file, by its header; 0 where that cannot be read. Raises OSError."""
    items = (tensors(path) or {}).get("items")
    return items.shape[0] if items is not None and items.shape else 0


@dataclass(frozen=True, slots=True)
class Shard:
    """An opened file. `heads` [n], the first eight bytes of each item's digest, rising."""

    path: Path
    heads: NDArray[np.uint64]

    @classmethod
    def open(cls, path: Path, key: str) -> "Shard":
        """Reads the index. Raises Damaged where it is not what was written under this key, OSError."""
        arrays = _mapped(path)
        index = {name: arrays[name] for name in INDEX}
        found = _digest(key, index, arrays["values"].shape, "indices" in arrays)
        if found != arrays["digest"].tobytes():
            raise Damaged("its index is not what was written")
        return cls(path, heads_of(index["items"]))

    def find(self, heads: NDArray[np.uint64]) -> NDArray[np.int64]:
        """[m], the row of the piece whose digest begins so, -1 where there is none."""
        rows = np.minimum(np.searchsorted(self.heads, heads), len(self.heads) - 1)
        return np.where(self.heads[rows] == heads, rows, -1)

    def take(self, rows: NDArray[np.int64], items: Digests) -> list[Piece | None]:
        """[m], the pieces in these rows; None where the row is another item's.

        Raises Damaged where a piece is not what was written, OSError.
        """
        arrays = _mapped(self.path)
        offsets, values, indices = arrays["offsets"], arrays["values"], arrays.get("indices")
        mine = (arrays["items"][rows] == items).all(axis=1)
        found: list[Piece | None] = []
        for row, ours in zip(rows.tolist(), mine.tolist(), strict=True):
            part = slice(offsets[row], offsets[row + 1])
            piece = Piece(values[part], None if indices is None else indices[part]) if ours else None
            if piece is not None and _check(piece) != arrays["checks"][row].tobytes():
                raise Damaged("a piece is not what was written")
            found.append(piece)
        return found


def heads_of(items: Digests) -> NDArray[np.uint64]:
    """[n], the first eight bytes of each digest as a number, in the digests' own order."""
    return np.ascontiguousarray(items[:, :8]).view(">u8")[:, 0].astype(np.uint64)


def _header(arrays: Arrays) -> bytes:
    names = {dtype: name for name, dtype in TYPES.items()}
    header, at = {}, 0
    for name, each in arrays.items():
        span = [at, at + each.nbytes]
        header[name] = {"dtype": names[each.dtype], "shape": list(each.shape), "data_offsets": span}
        at += each.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def _mapped(path: Path) -> Arrays:
    """A file's arrays, memory-mapped. Raises Damaged where they aren't all there, OSError."""
    found = tensors(path)
    if found is None or not {*INDEX, "digest", "values"} <= found.keys() or not len(found["values"].shape) == 2:
        raise Damaged("it is cut short, or no file of pieces")
    try:
        whole = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
        arrays = {name: _array(whole, each) for name, each in found.items()}
        n, rows = len(arrays["items"]), len(arrays["values"])
        sound = n and arrays["items"].shape == arrays["checks"].shape == (n, DIGEST)
        sound = sound and arrays["offsets"].shape == (n + 1,) and arrays["offsets"][-1] == rows
        sound = sound and len(arrays.get("indices", arrays["values"])) == rows
    except (ValueError, KeyError, IndexError) as error:
        raise Damaged("its arrays are not those of pieces") from error
    if not sound:
        raise Damaged("its arrays do not fit one another")
    return arrays


def _array(whole: NDArray[np.uint8], tensor: Tensor) -> NDArray[Any]:
    return np.frombuffer(whole[tensor.start : tensor.end], dtype=TYPES[tensor.dtype]).reshape(tensor.shape)


def _joined(digests: Sequence[bytes]) -> Digests:
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, DIGEST)


def _check(piece: Piece) -> bytes:
    running = hashlib.sha256(piece.values.astype("<f4", copy=False).tobytes())
    if piece.indices is not None:
        running.update(piece.indices.astype("<i4", copy=False).tobytes())
    return running.digest()


def _digest(key: str, index: Arrays, shape: tuple[int, ...], sparse: bool) -> bytes:
    running = hashlib.sha256(json.dumps([key, *map(int, shape), sparse]).encode())
    for name in INDEX:
        running.update(index[name].tobytes())
    return running.digest()
