"""Weights in safetensors files: names, shapes and digests of tensors, read without loading a model."""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from harness.identity import BLOCK, Json

LONGEST_HEADER = 100_000_000


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor's bytes are in its file, from `start` to before `end`."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def tensors(path: Path) -> Mapping[str, Tensor] | None:
    """The tensors of a file by name; None where its header cannot be read.

    Source: the safetensors format, eight bytes of header length, little-endian, then the header as JSON.
    """
    about = path.stat()
    return _tensors(path.resolve(), about.st_size, about.st_mtime_ns)


def tensor_records(path: Path) -> Mapping[str, Json] | None:
    """By name, a tensor's name, type, shape and SHA-256 over its bytes; None where the header cannot be read."""
    about = path.stat()
    return _tensor_records(path.resolve(), about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=256)
def _tensors(path: Path, size: int, changed: int) -> Mapping[str, Tensor] | None:
    with path.open("rb") as stream:
        first = stream.read(8)
        if len(first) < 8:
            return None
        (length,) = struct.unpack("<Q", first)
        if length > min(size - 8, LONGEST_HEADER):
            return None
        try:
            header = json.loads(stream.read(length).decode("utf-8"))
            found = {
                name: Tensor(
                    str(about["dtype"]),
                    tuple(int(side) for side in about["shape"]),
                    8 + length + int(about["data_offsets"][0]),
                    8 + length + int(about["data_offsets"][1]),
                )
                for name, about in header.items()
                if name != "__metadata__"
            }
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, RecursionError):
            return None
    return found if all(8 + length <= each.start <= each.end <= size for each in found.values()) else None


@lru_cache(maxsize=256)
def _tensor_records(path: Path, size: int, changed: int) -> Mapping[str, Json] | None:
    known = _tensors(path, size, changed)
    if known is None:
        return None
    found: dict[str, Json] = {}
    with path.open("rb") as stream:
        for name, tensor in sorted(known.items(), key=lambda item: item[1].start):
            running = hashlib.sha256()
            stream.seek(tensor.start)
            left = tensor.end - tensor.start
            while left and (block := stream.read(min(BLOCK, left))):
                running.update(block)
                left -= len(block)
            found[name] = [name, tensor.dtype, list(tensor.shape), running.hexdigest()]
    return found


# Bits of the exponent, all set in a number that isn't finite, by safetensors' name of the type.
EXPONENT = {
    "F64": ("<u8", 0x7FF << 52),
    "F32": ("<u4", 0xFF << 23),
    "F16": ("<u2", 0x1F << 10),
    "BF16": ("<u2", 0xFF << 7),
}


def non_finite(path: Path) -> tuple[str, ...]:
    """The tensors of a file that hold NaN or an infinity, sorted."""
    about = path.stat()
    return _non_finite(path.resolve(), about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=256)
def _non_finite(path: Path, size: int, changed: int) -> tuple[str, ...]:
    import numpy as np

    found = []
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    for name, each in sorted((_tensors(path, size, changed) or {}).items()):
        if each.dtype in EXPONENT and each.end > each.start:
            kind, mask = EXPONENT[each.dtype]
            bits = np.frombuffer(whole[each.start : each.end], dtype=kind)
            if (bits & np.array(mask, dtype=kind) == mask).any():
                found.append(name)
    return tuple(found)
