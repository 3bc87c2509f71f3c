"""From `[[slices]]` to slices: their names, and the cases of each, fixed by case ID."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from harness.errors import Misconfigured
from harness.file.lines import listed, read_lines, shown
from harness.file.toml import Key, nearest, place
from harness.suite.case import Case, Suite, as_text
from harness.suite.definition import FROM_PARENT, Slice, SuiteDefinition
from harness.suite.mechanism import AT_RUN, check_mechanism, of_inputs, order_of

MOST_VALUES = 200
"""Slices that one entry may come to: an attribute with more values is no kind of case, but a name for each."""

Members: TypeAlias = Callable[[Sequence[Case], str], list[str]]
"""IDs of the cases for which an SQL condition over their attributes holds."""


@dataclass(frozen=True, slots=True)
class DeclaredSlice:
    """A slice by name. `position`: of its entry in suite.toml. `definition`: what picks its cases, in words.
    `from_parent`: only a run fixes its cases, by what the parent did.
    """

    name: str
    position: int
    definition: str
    critical: bool
    min_support: int
    from_parent: bool = False


@dataclass(frozen=True, slots=True)
class Resolved:
    """The slices in the order of suite.toml, and the cases of each in suite order; none yet of one `from_parent`."""

    declared: tuple[DeclaredSlice, ...]
    members: dict[str, tuple[str, ...]]


def resolve(suite: Suite, members: Members) -> Resolved:
    """Every slice that suite.toml declares, also those that one entry comes to by values or bins.

    Values and bins that no promotion case has are no slices. Raises Misconfigured, with file and line, for a condition
    that isn't one, cases and attributes that aren't there, names that stand twice, and more than `MOST_VALUES`.
    """
    declared: list[DeclaredSlice] = []
    found: dict[str, tuple[str, ...]] = {}
    for position, entry in enumerate(suite.definition.slices):
        parts = _parts(suite, members, position, entry)
        for name, ids in parts.items():
            if name in found:
                raise Misconfigured(
                    _at(suite, position, entry), found=f"slice {name!r}, which another entry declares",
                    expected="names that are unique", mend="Take one of the two out.",
                )  # fmt: skip
            held = set(ids)
            found[name] = tuple(case.id for case in suite.cases if case.id in held)
            declared.append(declare(name, position, entry))
    return Resolved(tuple(declared), found)


def slice_warnings(suite: Suite) -> list[str]:
    """Promotion cases that lack the attribute by which slices are made, and so stand in none of these."""
    warnings = []
    for names in [each.crossed for each in suite.definition.slices if each.by is not None]:
        lacking = [
            case.id
            for case in suite.cases
            if case.role == "promotion" and any(name not in case.attributes for name in names)
        ]
        if lacking:
            warnings.append(
                f"{len(lacking)} promotion cases lack {' or '.join(names)} and stand in no slice by it: "
                f"{listed(lacking)}"
            )
    return warnings


def declare(name: str, position: int, entry: Slice) -> DeclaredSlice:
    """A slice that an entry comes to."""
    return DeclaredSlice(
        name, position, told(entry, name), entry.critical, entry.min_support, entry.mechanism in FROM_PARENT
    )


def told(entry: Slice, name: str) -> str:
    """What picks a slice's cases, as one reads it."""
    if entry.where is not None:
        return entry.where
    if entry.cases is not None:
        return f"{len(entry.cases)} cases by ID"
    if entry.file is not None:
        return f"the cases in {entry.file}"
    if entry.mechanism in FROM_PARENT:
        return f"{name}, by what the parent did"
    return name


def static_names(definition: SuiteDefinition) -> list[str]:
    """Names that suite.toml says itself."""
    return [each.name for each in definition.slices if each.name is not None]


def has_own_names(definition: SuiteDefinition) -> bool:
    """Whether every slice is named in suite.toml, and none by what the data hold."""
    return all(each.name is not None for each in definition.slices)


def nearest_slice(name: str, known: Sequence[str]) -> str | None:
    """The slice that was meant: the same crossing in another order, else the nearest spelling."""
    crossed = {frozenset(each.split(CROSSED)): each for each in known}
    return crossed.get(frozenset(name.split(CROSSED))) or nearest(name, known)


CROSSED = " & "


def _parts(suite: Suite, members: Members, position: int, entry: Slice) -> dict[str, Sequence[str]]:
    if entry.name is not None:
        ids = _picked(suite, members, position, entry)
        promoted = {case.id for case in suite.cases if case.role == "promotion"}
        if promoted.isdisjoint(ids):
            held = f"{len(ids)} cases of other roles only" if ids else "no case"
            raise Misconfigured(
                _at(suite, position, entry), found=f"slice {entry.name!r} holds {held}",
                expected="at least one promotion case", mend=f"Correct `{entry.kind}`, or take the slice out.",
            )  # fmt: skip
        return {entry.name: ids}
    if entry.mechanism is None:
        return _by_value(suite, position, entry)
    try:
        check_mechanism(entry.mechanism, suite.definition.task)
    except Misconfigured as refusal:
        raise Misconfigured(
            _at(suite, position, entry), found=refusal.found, expected=refusal.expected, mend=refusal.mend
        ) from refusal
    if entry.mechanism in FROM_PARENT:
        return {f"{entry.mechanism}={name}": () for name in AT_RUN[entry.mechanism]}
    bins = of_inputs(entry.mechanism, suite)
    by_name: dict[str, list[str]] = {}
    for case in suite.cases:
        for name in bins.get(case.id, ()):
            by_name.setdefault(name, []).append(case.id)
    kept = _promoted(suite, position, entry, by_name)
    return {f"{entry.mechanism}={_printed(name)}": kept[name] for name in order_of(entry.mechanism, list(kept))}


def _by_value(suite: Suite, position: int, entry: Slice) -> dict[str, Sequence[str]]:
    """One slice a value of an attribute, or a pair of values of two, which give one name in whatever order."""
    names = sorted(entry.crossed)
    for name in names:
        _check_attribute(suite, position, entry, name)
    by_name: dict[str, list[str]] = {}
    for case in suite.cases:
        if all(name in case.attributes for name in names):
            key = CROSSED.join(f"{name}={_printed(as_text(case.attributes[name]))}" for name in names)
            by_name.setdefault(key, []).append(case.id)
    kept = _promoted(suite, position, entry, by_name)
    return {name: kept[name] for name in sorted(kept)}


def _promoted(suite: Suite, position: int, entry: Slice, by_name: dict[str, list[str]]) -> dict[str, list[str]]:
    promoted = {case.id for case in suite.cases if case.role == "promotion"}
    kept = {name: ids for name, ids in by_name.items() if not promoted.isdisjoint(ids)}
    if not 0 < len(kept) <= MOST_VALUES:
        what = "no promotion case has a value of it" if not kept else f"{len(kept)} slices"
        raise Misconfigured(
            _at(suite, position, entry), found=what, expected=f"from 1 to {MOST_VALUES} slices of an entry",
            mend="Name another attribute, or pick the cases that matter with `where`.",
        )  # fmt: skip
    return kept


def _check_attribute(suite: Suite, position: int, entry: Slice, name: str) -> None:
    known = sorted({key for case in suite.cases for key in case.attributes})
    if name not in known:
        meant = nearest(name, known)
        raise Misconfigured(
            _at(suite, position, entry), found=f"the attribute {shown(name)}, which no case has",
            expected=f"an attribute of the cases: {', '.join(known) or 'they have none'}",
            mend=f"Did you mean {meant!r}?" if meant else "Correct `by`.",
        )  # fmt: skip


def _picked(suite: Suite, members: Members, position: int, entry: Slice) -> Sequence[str]:
    if entry.where is not None:
        try:
            return members(suite.cases, entry.where)
        except Misconfigured as refusal:
            raise Misconfigured(
                _at(suite, position, entry), found=refusal.found, expected=refusal.expected, mend=refusal.mend
            ) from refusal
    known = {case.id for case in suite.cases}
    if entry.cases is not None:
        left = set(known)
        for each in entry.cases:
            _take(_at(suite, position, entry), each, known, left)
        return entry.cases
    return _from_file(suite, position, entry, known)


def _from_file(suite: Suite, position: int, entry: Slice, known: set[str]) -> list[str]:
    if entry.file is None or Path(entry.file).is_absolute() or "\0" in entry.file:
        raise Misconfigured(
            _at(suite, position, entry), found=f"the path {shown(entry.file or '')}",
            expected="a path from the suite's folder", mend="Write it relative.",
        )  # fmt: skip
    ids: list[str] = []
    left = set(known)
    for line in read_lines(suite.folder / entry.file):
        _take(str(line.place), line.text.strip(" \t"), known, left)
        ids.append(line.text.strip(" \t"))
    return ids


def _take(subject: str, each: str, known: set[str], left: set[str]) -> None:
    """Takes an ID out of those that are `left`. Raises Misconfigured for one that is not among them."""
    if each in left:
        left.remove(each)
    else:
        meant = None if each in known else nearest(each, sorted(known))
        raise Misconfigured(
            subject, found=f"case ID {shown(each)}{' twice' if each in known else ', which no case has'}",
            expected="IDs of cases, each once", mend=f"Did you mean {meant!r}?" if meant else "Take it out.",
        )  # fmt: skip


def _at(suite: Suite, position: int, entry: Slice) -> str:
    keys: tuple[Key, ...] = ("slices", position, entry.kind)
    return place(suite.folder / "suite.toml", *keys)


def _printed(value: str) -> str:
    """A value as a name may hold it: quoted where it would hide, or be taken for more than a value."""
    plain = value.isprintable() and value == value.strip() and value and not set(value) & set('"&=')
    return value if plain else json.dumps(value, ensure_ascii=True)
