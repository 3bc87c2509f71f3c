"""Which fields of two releases differ, and at which node each enters."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harness.identity import Json, canonical_json
from harness.release.field import ORDER, Field, Kind, Parts, fields
from harness.release.graph import composing, entered, places
from harness.release.manifest import Manifest, Meaning, Runtime

RUNTIME = "runtime"
Manifests: TypeAlias = Mapping[str, Manifest]


@dataclass(frozen=True, slots=True)
class Change:
    """A field with another value; None where it is not stated.

    `node` is the kind of node at which it enters, `runtime` for what computes, None where it changes no output.
    `side` is a side, `both`, or None where the field is not an encoder's.
    """

    field: str
    old: Json
    new: Json
    node: str | None
    side: str | None

    def as_record(self) -> dict[str, Json]:
        return {"field": self.field, "old": self.old, "new": self.new, "node": self.node, "side": self.side}


@dataclass(frozen=True, slots=True)
class Stated:
    """What a release says of itself, its parts' meanings by role, and what computes it."""

    meaning: Meaning
    runtime: Runtime
    parts: Parts

    @classmethod
    def of(cls, manifest: Manifest, parts: Manifests | None = None) -> "Stated":
        return cls(manifest.meaning, manifest.runtime, {role: part.meaning for role, part in (parts or {}).items()})


def changes(
    parent: Manifest,
    candidate: Manifest,
    *,
    parent_parts: Manifests | None = None,
    candidate_parts: Manifests | None = None,
) -> tuple[Change, ...]:
    """`difference` of two manifests."""
    return difference(Stated.of(parent, parent_parts), Stated.of(candidate, candidate_parts))


def difference(parent: Stated, candidate: Stated) -> tuple[Change, ...]:
    """Every field in which two releases differ, sorted by path; a part's fields stand under its role.

    An encoder that only one of the two shares between its sides is held against each of the other's.
    """
    before = composing(parent.meaning, parent.parts)
    after = composing(candidate.meaning, candidate.parts)
    found = _meanings(parent.meaning, candidate.meaning, before, after, "")
    for role in before.keys() & after.keys():
        found += _meanings(before[role], after[role], {}, {}, f"{role}.")
    old, new = _runtime(parent.runtime), _runtime(candidate.runtime)
    found += [
        Change(path, old.get(path), new.get(path), RUNTIME, None)
        for path in old.keys() | new.keys()
        if not same(old.get(path), new.get(path))
    ]
    return tuple(sorted(found, key=lambda change: _natural(change.field)))


def same(old: Json, new: Json) -> bool:
    """Whether two values are one as JSON: 1 and 1.0 are, true and 1 are not."""
    return canonical_json(old) == canonical_json(new)


def _meanings(parent: Meaning, candidate: Meaning, before: Parts, after: Parts, prefix: str) -> list[Change]:
    apart = ("both" in parent.towers) != ("both" in candidate.towers)
    old = _by_path(parent, before, apart)
    new = _by_path(candidate, after, apart)
    found = []
    for path in old.keys() | new.keys():
        was, now = old.get(path), new.get(path)
        values = [None if each is None else each.field.value for each in (was, now)]
        if not same(*values):
            stated = [each for each in (now, was) if each is not None]
            kinds = sorted({each.kind for each in stated if each.kind}, key=ORDER.index)
            node = str(kinds[0]) if kinds else None
            found.append(Change(f"{prefix}{path}", values[0], values[1], node, stated[0].field.side))
    return found


@dataclass(frozen=True, slots=True)
class _Stated:
    field: Field
    kind: Kind | None


def _by_path(meaning: Meaning, parts: Parts, apart: bool) -> dict[str, _Stated]:
    where = places(meaning, parts)
    found = {}
    for field in fields(meaning, apart=apart):
        at = entered(field, where, meaning, parts)
        found[field.path] = _Stated(field, at[0].kind if at else None)
    return found


def _runtime(runtime: Runtime) -> dict[str, Json]:
    return {
        f"{RUNTIME}.{part}.{name}": value
        for part in ("declared", "observed")
        for name, value in getattr(runtime, part).items()
    }


def _natural(path: str) -> list[tuple[int, int | str]]:
    return [(0, int(piece)) if piece.isdecimal() else (1, piece) for piece in re.split(r"(\d+)", path)]
