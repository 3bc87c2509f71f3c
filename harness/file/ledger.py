"""Append-only JSON lines, each carrying the digest of the line before, so that none can be changed or taken out.

Nothing follows the last line, so each carries a digest of its own entry too. What a file by itself cannot show is that
its end was taken away, or written anew with all digests: that takes something outside of it to hold it against.
"""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

from harness.errors import Tampered
from harness.file.sealed import OWN, own_digest
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
            chained = isinstance(entry, dict) and entry.get("previous") == previous
            # A line written elsewhere, or by an earlier version, may lack the digest of its own.
            whole = not chained or own_digest(entry) == entry.pop(OWN, own_digest(entry))
        except (ValueError, RecursionError):
            chained, whole = False, False
        if not chained or not whole:
            lacks = "its own digest" if chained else "the digest of the line before"
            raise Tampered(
                f"{path} line {number}", found=f"a line that does not carry {lacks}",
                expected="an append-only ledger", mend="Restore the file from version control.",
            )  # fmt: skip
        del entry["previous"]
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
        chained = {**entry, "previous": previous}
        lines.append(canonical_json({**chained, OWN: own_digest(chained)}))
        write_bytes(path, b"\n".join(lines) + b"\n")
        return True
