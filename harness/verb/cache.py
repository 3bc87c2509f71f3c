"""`harness cache`: what models made of texts and is kept between runs, shown and pruned."""

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from harness.candidate.open import keys_on
from harness.errors import HarnessError, Misconfigured
from harness.file.whole import cannot_write
from harness.identity import Json
from harness.release.field import COMPOSED, sides_of
from harness.release.manifest import Meaning
from harness.run import cache as kept
from harness.store import account
from harness.verb.place import Place, find_place

LIMIT = "HARNESS_CACHE_BYTES"
SIZE = re.compile(r"(\d+(?:\.\d+)?) ?([kmgt]?)(i?)b?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class User:
    """A side of a release whose vectors have an entry's key. A member of a composed one is named `release/role`."""

    release: str
    side: str


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """What is kept under one key. `last_used` in UTC; `used_by` as far as the store's runs tell."""

    key: str
    pieces: int
    files: int
    bytes: int
    last_used: str
    used_by: tuple[User, ...]

    def as_record(self) -> dict[str, Json]:
        return {**asdict(self), "used_by": [asdict(each) for each in self.used_by]}


def cache(
    *, prune: bool = False, limit: str | int | None = None, clear: bool = False, store: str | None = None
) -> tuple[CacheEntry, ...]:
    """What the cache beside the store holds, the last used first.

    `prune`: before that, remove what was used least recently, down to `limit`, such as "2GB" or a number of bytes; by
    default what runs keep to: HARNESS_CACHE_BYTES, else 2 GiB. `clear`: remove all of it.
    Raises Misconfigured for a limit that is no size, or one without `prune`; Stopped where nothing can be removed.
    """
    place = find_place(store=store)
    if (limit is not None and not prune) or (prune and clear):
        raise Misconfigured(
            "harness cache", found="--limit without --prune" if not prune else "--prune and --clear",
            expected="--prune, with or without --limit, or --clear", mend="`harness cache --prune --limit 500MB`.",
        )  # fmt: skip
    most = bytes_of(limit, "--limit") if limit is not None else default_limit()
    try:
        if clear:
            kept.clear(place.cache)
        elif prune:
            kept.prune(place.cache, most)
        found = kept.entries(place.cache)
    except OSError as refusal:
        raise cannot_write(place.cache, refusal) from refusal
    users = _users(place) if found else {}
    return tuple(
        CacheEntry(
            each.key, each.pieces, each.files, each.bytes,
            datetime.fromtimestamp(each.last_used, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), users.get(each.key, ()),
        )
        for each in found
    )  # fmt: skip


def open_cache(place: Place) -> kept.Cache:
    """A project's cache, as runs use it. Raises Misconfigured for a HARNESS_CACHE_BYTES that is no size."""
    return kept.Cache(place.cache, default_limit())


def default_limit() -> int:
    """Bytes that a cache may take: HARNESS_CACHE_BYTES, 0 to keep none, else 2 GiB."""
    said = os.environ.get(LIMIT, "")
    return bytes_of(said, LIMIT) if said else kept.LIMIT


def bytes_of(size: str | int, subject: str) -> int:
    """A size in words: bytes, or kB, MB, GB, TB of powers of ten, KiB, MiB, … of two. Raises Misconfigured."""
    found = SIZE.fullmatch(str(size).strip())
    if not found:
        raise Misconfigured(
            f"{subject} {size}", found="no size", expected="a number of bytes, or one with a unit",
            mend="Such as 500MB, 2GB or 2GiB.",
        )  # fmt: skip
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " kmgt".index(prefix.lower() or " "))


def _users(place: Place) -> dict[str, tuple[User, ...]]:
    """By key, the sides that the store knows of; none where it cannot be read now."""
    try:
        with place.store.reading() as connection:
            every = account.ran(connection)
    except HarnessError:
        return {}
    users: dict[str, list[User]] = {}
    for each in every:
        for key, user in _keys(
            each.release, json.loads(each.meaning), json.loads(each.runtime), json.loads(each.parts)
        ):
            users.setdefault(key, []).append(user)
    return {key: tuple(dict.fromkeys(found)) for key, found in users.items()}


def _keys(release: str, told: Json, runtime: dict[str, Json], parts: dict[str, Json]) -> Iterator[tuple[str, User]]:
    """Of each side of a release, and of the members that are run in its place, named by their roles."""
    try:
        meaning = Meaning.model_validate_json(json.dumps(told))
    except ValidationError:  # another version's
        return
    if meaning.interaction.kind in COMPOSED:
        for role, part in parts.items():
            on = runtime.get(role)
            if isinstance(on, dict) and on:
                yield from _keys(f"{release}/{role}", part, on, {})
        return
    # Of a pair, what a side runs on where its member says so, and for the others what stands beside that.
    usual = {name: value for name, value in runtime.items() if name not in sides_of(meaning)}
    for side in sides_of(meaning):
        on = runtime.get(side)
        yield keys_on(on if isinstance(on, dict) else usual, meaning, side, "").vector, User(release, side)
