"""Append-only JSON lines, each carrying the digest of the line before, so that none can be changed or taken out."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from harness.errors import Tampered
from harness.file.whole import alone, write_bytes
from harness.identity import Json, canonical_json

START = "0" * 64


def read(path: Path) -> list[dict[str, Json]]:
    """Every entry, first first; none where the file isn't there yet.

    Raises Tampered, with the line, where the chain does not hold.
    """
    if not path.exists():
        return []
    if not path.is_file():
        raise Tampered(
            str(path), found="no file", expected="an append-only ledger", mend="Restore the file from version control."
        )
    entries: list[dict[str, Json]] = []
    previous = START
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            entry = json.loads(line)
            chained = isinstance(entry, dict) and entry.pop("previous", None) == previous
        except (ValueError, RecursionError):
            chained = False
        if not chained:
            raise Tampered(
                f"{path} line {number}", found="a line that does not carry the digest of the line before",
                expected="an append-only ledger", mend="Restore the file from version control.",
            )  # fmt: skip
        entries.append(entry)
        previous = hashlib.sha256(line).hexdigest()
    return entries


def append(path: Path, entry: Mapping[str, Json]) -> bool:
    """Adds an entry; one that stands there already adds nothing and gives False.

    Raises Tampered as `read`, Stopped where the file can't be written.
    """
    with alone(path):
        entries = read(path)
        if json.loads(canonical_json(entry)) in entries:
            return False
        lines = path.read_bytes().splitlines() if entries else []
        previous = hashlib.sha256(lines[-1]).hexdigest() if lines else START
        lines.append(canonical_json({**entry, "previous": previous}))
        write_bytes(path, b"\n".join(lines) + b"\n")
        return True
