"""What a thing is called by its content: canonical JSON and SHA-256 digests.

A digest is 64 lower-case hexadecimal digits.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None

BLOCK = 1 << 20


def canonical_json(value: Json) -> bytes:
    """The one byte form of a JSON value.

    Raises ValueError for what JSON cannot say: NaN, an infinity, an integer of 2**53 or more.
    Source: RFC 8785.
    """
    import rfc8785

    return rfc8785.dumps(value)


def digest(value: Json) -> str:
    """SHA-256 over the canonical JSON of a value."""
    return hashlib.sha256(canonical_json(value)).hexdigest()


def text_digest(text: str) -> str:
    """SHA-256 over the UTF-8 bytes of a text."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 over the bytes of a file, read in blocks."""
    running = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            running.update(block)
    return running.hexdigest()
