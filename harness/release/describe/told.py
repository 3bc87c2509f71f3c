"""A value with where it was read, and the tree of them that becomes a manifest's meaning."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harness.identity import Json
from harness.release.field import join

DECLARED = "declared"
DERIVED = "derived"
LIBRARY = "library"


@dataclass(frozen=True, slots=True)
class Told:
    """`source`: the file and JSON pointer, or one of the three words above.

    `folder` is what the model's own files say where release.toml departs from it, None where it does not.
    """

    value: Json
    source: str
    folder: Json = None


Tree: TypeAlias = "Told | Mapping[str, Tree] | tuple[Tree, ...]"


@dataclass(frozen=True, slots=True)
class Settled:
    """The plain values of a tree; by path as `field.join` writes it, each one's source and what it overrides."""

    plain: Json
    sources: Mapping[str, str]
    overridden: Mapping[str, Json]


def settle(tree: Tree, keys: tuple[str, ...] = ()) -> Settled:
    """Plain values, and by path the source of each."""
    if isinstance(tree, Told):
        at = join(keys)
        return Settled(tree.value, {at: tree.source}, {} if tree.folder is None else {at: tree.folder})
    if isinstance(tree, Mapping):
        under = {key: settle(each, (*keys, key)) for key, each in tree.items()}
        return _joined({key: each.plain for key, each in under.items()}, list(under.values()))
    items = [settle(each, (*keys, str(place))) for place, each in enumerate(tree)]
    return _joined([each.plain for each in items], items)


def library(**values: Json) -> Tree:
    """Fields that the installed library fixes, whatever the folder says."""
    return {name: Told(value, LIBRARY) for name, value in values.items()}


def declared(value: Json, folder: Json, source: str) -> Told:
    """What release.toml says where it says anything else than the folder, else what the folder says."""
    return Told(folder, source) if value is None or value == folder else Told(value, DECLARED, folder)


def each_from(values: Mapping[str, Json], source: str) -> Tree:
    """A mapping all of whose values have one source."""
    return {key: Told(value, source) for key, value in values.items()} if values else Told({}, source)


def _joined(plain: Json, parts: list[Settled]) -> Settled:
    return Settled(
        plain,
        {path: source for part in parts for path, source in part.sources.items()},
        {path: value for part in parts for path, value in part.overridden.items()},
    )
