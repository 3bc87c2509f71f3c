"""What models made of texts, kept on disk between runs.

A piece is found by what it depends on and by nothing else: the key of a vector (release/item.py, and what computes it)
and the digest of the model's input. So it may be lost at any time, and never be wrong: a file that is not what was
written is removed, and its pieces are computed again.

Below the cache's folder lies a folder for each key, and in it the files of shard.py. They appear whole, by renaming, so
several processes may read, write and prune at once; what two of them write of one batch is one file.
"""

import hashlib
import logging
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
from numpy.typing import NDArray

from harness.candidate.side import Piece
from harness.run import shard
from harness.run.shard import Damaged, Shard

LIMIT = 2 << 30
# A part that old is that of a process which was killed.
ABANDONED = 3600.0
KEY = re.compile(r"[0-9a-f]{64}")
FILE = re.compile(r"[0-9a-f]{32}\.safetensors")
PART = re.compile(r"\.[0-9a-f]{32}\..*\.part")

log = logging.getLogger(__name__)


class Cache:
    """Pieces below a folder, which grows to at most so many bytes: `Pieces` for whoever encodes.

    What was used least recently goes first, but nothing that this object has used. What cannot be read or written is
    as if it weren't there; a line in the log says so.
    """

    def __init__(self, folder: Path, limit: int = LIMIT) -> None:
        self._folder, self._limit, self._writes = folder, limit, limit > 0
        self._opened: dict[Path, Shard] = {}
        self._used: set[Path] = set()
        self._passed_over: set[Path] = set()

    def get(self, key: str, items: Sequence[str]) -> Mapping[str, Piece]:
        """Those pieces of a key that are there, by item; their numbers are memory-mapped."""
        names = list(dict.fromkeys(items))
        asked = shard.digests_of(names)
        heads = shard.heads_of(asked)
        found: dict[str, Piece] = {}
        lacking = np.arange(len(names))
        for path in self._paths(key):
            if not len(lacking):
                break
            opened = self._open(path, key)
            rows = opened.find(heads[lacking]) if opened else np.full(len(lacking), -1)
            here = lacking[rows >= 0]
            if opened and len(here):
                pieces = self._take(opened, rows[rows >= 0], asked[here])
                found |= {names[at]: piece for at, piece in zip(here.tolist(), pieces, strict=True) if piece}
                lacking = np.array([at for at in lacking.tolist() if names[at] not in found], dtype=np.int64)
        return found

    def put(self, key: str, pieces: Mapping[str, Piece]) -> None:
        """Keeps pieces under a key, if there is room."""
        if not pieces or not self._writes:
            return
        arrays = shard.arrays_of(key, pieces)
        path = self._folder / key / f"{hashlib.sha256(arrays['items'].tobytes()).hexdigest()[:32]}.safetensors"
        try:
            if not self._make_room(shard.size_of(arrays)):
                self._give_up(f"this run alone needs more than its {self._limit} bytes")
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, arrays)
        except FileNotFoundError:  # another process pruned the folder in between: this batch alone is lost
            return
        except OSError as refusal:
            self._give_up(refusal.strerror or str(refusal))
            return
        self._used.add(path)
        self._passed_over.discard(path)

    def _make_room(self, size: int) -> bool:
        mine = sum(each.size for each in _files(self._folder, FILE) if each.path in self._used)
        if mine + size <= self._limit:
            prune(self._folder, self._limit - size, spare=self._used)
        return mine + size <= self._limit

    def _give_up(self, why: str) -> None:
        self._writes = False
        log.warning("The cache in %s keeps nothing more of this run: %s.", self._folder, why)

    def _paths(self, key: str) -> list[Path]:
        try:
            return _inside(self._folder / key, FILE)
        except OSError:
            return []

    def _open(self, path: Path, key: str) -> Shard | None:
        if path not in self._opened and path not in self._passed_over:
            try:
                self._opened[path] = Shard.open(path, key)
            except (Damaged, OSError) as refusal:
                self._pass_over(path, refusal)
        return self._opened.get(path)

    def _take(self, opened: Shard, rows: NDArray[np.int64], items: shard.Digests) -> Sequence[Piece | None]:
        try:
            found = opened.take(rows, items)
        except (Damaged, OSError) as refusal:
            del self._opened[opened.path]
            self._pass_over(opened.path, refusal)
            return [None] * len(rows)
        if opened.path not in self._used:
            self._used.add(opened.path)
            with suppress(OSError):
                os.utime(opened.path)
        return found

    def _pass_over(self, path: Path, refusal: Damaged | OSError) -> None:
        if isinstance(refusal, FileNotFoundError):  # another process pruned it
            return
        self._passed_over.add(path)
        why = refusal.strerror if isinstance(refusal, OSError) else str(refusal)
        log.warning("%s is passed over, and its vectors are computed again: %s.", path, why)
        if isinstance(refusal, Damaged):
            with suppress(OSError):
                path.unlink()


@dataclass(frozen=True, slots=True)
class Entry:
    """What is kept under one key. `last_used` in seconds since 1970."""

    key: str
    pieces: int
    files: int
    bytes: int
    last_used: float


def entries(folder: Path) -> tuple[Entry, ...]:
    """What a cache holds, the last used first. What lies there besides is passed over."""
    by_key: dict[str, list[_File]] = {}
    for each in _files(folder, FILE):
        by_key.setdefault(each.path.parent.name, []).append(each)
    found = [
        Entry(
            key,
            pieces=sum(_count(each.path) for each in files),
            files=len(files),
            bytes=sum(each.size for each in files),
            last_used=max(each.used for each in files),
        )
        for key, files in by_key.items()
    ]
    return tuple(sorted(found, key=lambda entry: (-entry.last_used, entry.key)))


def prune(folder: Path, limit: int, *, spare: Collection[Path] = ()) -> int:
    """Removes what was used least recently until at most so many bytes are left; gives how many are.

    `spare`: files that stay, whatever is left. Parts that killed processes left behind go too. Raises OSError.
    """
    _sweep(folder, before=time.time() - ABANDONED)
    files = sorted(_files(folder, FILE), key=lambda each: (each.used, each.path))
    left = sum(each.size for each in files)
    for each in files:
        if left > limit and each.path not in spare:
            _remove(each.path)
            left -= each.size
    return left


def clear(folder: Path) -> None:
    """Removes every piece, and what is just being written. What is no part of a cache stays. Raises OSError."""
    _sweep(folder, before=float("inf"))
    prune(folder, 0)


def _sweep(folder: Path, *, before: float) -> None:
    for part in list(_files(folder, PART)):
        if part.used < before:
            _remove(part.path)


def _remove(path: Path) -> None:
    path.unlink(missing_ok=True)
    with suppress(OSError):  # other files stand beside it
        path.parent.rmdir()


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    size: int
    used: float


def _files(folder: Path, pattern: re.Pattern[str]) -> Iterator[_File]:
    """The files of a cache whose names are like this."""
    for place in _inside(folder, KEY):
        for path in _inside(place, pattern):
            with suppress(FileNotFoundError):  # another process prunes
                about = path.stat()
                yield _File(path, about.st_size, about.st_mtime)


def _inside(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if pattern.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return []


def _count(path: Path) -> int:
    try:
        return shard.count(path)
    except OSError:
        return 0


def _write(path: Path, arrays: shard.Arrays) -> None:
    with NamedTemporaryFile(dir=path.parent, prefix=f".{path.stem}.", suffix=".part", delete=False) as part:
        beside = Path(part.name)
    try:
        shard.write(beside, arrays)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
