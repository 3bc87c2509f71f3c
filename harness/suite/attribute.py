"""A query's further keys as case attributes: one type a name, so that SQL means one thing."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.file.lines import JsonObject, JsonValue, Place, refuse, shown
from harness.suite.case import Attribute
from harness.suite.role import Row

ANSWERABLE = "answerable"
LARGEST = 2**53 - 1


@dataclass(frozen=True, slots=True)
class Attributes:
    """Attributes by query, in the queries' order. `left_out` says which names held lists or objects."""

    by_query: tuple[dict[str, Attribute], ...]
    left_out: tuple[str, ...]


class Further(Row, Protocol):
    """A case with its keys beyond the format's own."""

    @property
    def further(self) -> JsonObject: ...


@dataclass(slots=True)
class _Name:
    kind: str
    place: Place
    floats: bool = field(default=False)


def read_attributes(queries: Sequence[Further]) -> Attributes:
    """Every further key; null and empty lists or objects count as absent, others of these are left out.

    Whole and broken numbers mix, as broken ones. Raises Misconfigured for any other mixture of types under one
    name, names that SQL cannot tell apart, a whole number beyond 2**53 and an `answerable` that isn't true or false.
    """
    names: dict[str, _Name] = {}
    nested: dict[str, list[Place]] = {}
    result: list[dict[str, Attribute]] = []
    for query in queries:
        kept: dict[str, Attribute] = {}
        for name, value in query.further.items():
            if isinstance(value, list | dict):
                if value:
                    nested.setdefault(name, []).append(query.place)
            elif value is not None:
                _learn(names, name, value, query.place)
                kept[name] = value
        result.append(kept)
    _check_names(names)
    broken = {name for name, each in names.items() if each.floats}
    for kept in result:
        for name in broken & kept.keys():
            kept[name] = float(kept[name])
    return Attributes(
        tuple(result),
        tuple(
            f"attribute {shown(name)} holds lists or objects in {len(places)} queries (first: {places[0]}); left out"
            for name, places in nested.items()
        ),
    )


def _learn(names: dict[str, _Name], name: str, value: JsonValue, where: Place) -> None:
    kind = "text" if isinstance(value, str) else "true or false" if isinstance(value, bool) else "a number"
    if name == ANSWERABLE and kind != "true or false":
        refuse(where, f"`answerable` is {kind}", "true or false", "Write it without quotes.")
    if isinstance(value, int) and abs(value) > LARGEST:
        refuse(where, f"{shown(name)} is {value}", "whole numbers within 2**53", "Write it as text.")
    known = names.setdefault(name, _Name(kind, where))
    if known.kind != kind:
        refuse(
            where, f"attribute {shown(name)} is {kind} here and {known.kind} at line {known.place.line}",
            "one type for an attribute", "Write every value of it alike.",
        )  # fmt: skip
    known.floats = known.floats or isinstance(value, float)


def _check_names(names: dict[str, _Name]) -> None:
    lower: dict[str, str] = {}
    for name, each in names.items():
        if not name.strip():
            refuse(each.place, f"an attribute called {shown(name)}", "names that SQL can say", "Name the attribute.")
        other = lower.setdefault(name.lower(), name)
        if other != name:
            refuse(
                each.place, f"attributes {shown(other)} and {shown(name)}",
                "names that differ by more than case, for SQL takes them as one", "Rename one of them.",
            )  # fmt: skip
