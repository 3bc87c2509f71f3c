"""Weights in safetensors files: names, shapes and digests of tensors, read without loading a model."""

import hashlib
import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.file.unchanged import kept_while_unchanged
from harness.identity import BLOCK, Json

LONGEST_HEADER = 100_000_000
# Bits of the exponent, all set in a number that isn't finite, by safetensors' name of the type.
EXPONENT = {
    "F64": ("<u8", 0x7FF << 52),
    "F32": ("<u4", 0xFF << 23),
    "F16": ("<u2", 0x1F << 10),
    "BF16": ("<u2", 0xFF << 7),
}


@dataclass(frozen=True, slots=True)
class Tensor:
    """Where a tensor's bytes are in its file, from `start` to before `end`."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


@kept_while_unchanged(256)
def tensors(path: Path) -> Mapping[str, Tensor] | None:
    """The tensors of a file by name; None where its header cannot be read.

    Source: the safetensors format, eight bytes of header length, little-endian, then the header as JSON.
    """
    size = path.stat().st_size
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


@kept_while_unchanged(256)
def tensor_records(path: Path) -> Mapping[str, Json] | None:
    """By name, a tensor's name, type, shape and SHA-256 over its bytes; None where the header cannot be read."""
    known = tensors(path)
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


@kept_while_unchanged(256)
def non_finite(path: Path) -> tuple[str, ...]:
    """The tensors of a file that hold NaN or an infinity, sorted."""
    import numpy as np

    found = []
    whole = np.memmap(path, dtype=np.uint8, mode="r")
    for name, each in sorted((tensors(path) or {}).items()):
        if each.dtype in EXPONENT and each.end > each.start:
            kind, mask = EXPONENT[each.dtype]
            bits = np.frombuffer(whole[each.start : each.end], dtype=kind)
            if (bits & np.array(mask, dtype=kind) == mask).any():
                found.append(name)
    return tuple(found)
