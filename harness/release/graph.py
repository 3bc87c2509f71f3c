"""A release as a small acyclic graph, in which everything that changes an output is in the key of the node it changes.

A field enters at the first node, from its own kind on, that the release has on that side: the pooling of a bi-encoder
enters its vector, that of a cross-encoder its raw score. So what is stored is spared by every change that comes later.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.identity import Json, digest
from harness.release.field import (
    COMPOSED,
    ORDER,
    RERANKER,
    RETRIEVER,
    SEARCHING,
    WHOLE,
    Field,
    Kind,
    Parts,
    fields,
    sides_of,
    stands_for,
)
from harness.release.manifest import Meaning, Side

VECTORS = ("pooled", "rows", "sparse")
CORPUS = "corpus"
AGGREGATION = tuple(f".input.window.{name}" for name in ("aggregation", "normalise", "owner"))
# What is aggregated where a window says how; every other way joins scores.
AGGREGATED: Mapping[str, Kind] = {"rows": Kind.CONTEXTUAL, "mean": Kind.VECTOR, "max": Kind.VECTOR}


@dataclass(frozen=True, slots=True)
class Node:
    """One step of a release.

    `key` is the digest of the kind, the fields that enter here and what enters by which port, never of a name.
    `ports`: sorted pairs of port and node name. `fields`: what enters here, sorted by path. `role`: of the part that it
    belongs to, in a release composed of others.
    """

    name: str
    kind: Kind
    side: str | None
    key: str
    ports: tuple[tuple[str, str], ...]
    fields: tuple[Field, ...]
    role: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """The nodes, each after all that it descends from; the last is the decision."""

    nodes: tuple[Node, ...]

    @property
    def keys(self) -> frozenset[str]:
        return frozenset(node.key for node in self.nodes)

    def find(self, name: str) -> Node | None:
        """The node of that name, if the release has it."""
        return next((node for node in self.nodes if node.name == name), None)

    def holding(self, key: str) -> Node | None:
        """The first node with that key, if the release has one."""
        return next((node for node in self.nodes if node.key == key), None)

    def lineage(self, node: Node) -> tuple[Node, ...]:
        """A node and all that it descends from, in the graph's order."""
        wanted = {node.name}
        for each in reversed(self.nodes):
            if each.name in wanted:
                wanted |= {name for _, name in each.ports}
        return tuple(each for each in self.nodes if each.name in wanted)

    def as_record(self) -> dict[str, Json]:
        """Key by name."""
        return {node.name: node.key for node in self.nodes}


def graph(meaning: Meaning, parts: Parts | None = None, corpus: str | None = None) -> Graph:
    """The nodes of a release with their keys.

    `parts`: the meanings of the releases that a two-stage or fused one is composed of; one that is not given stands as
    a single raw score under its content ID. `corpus`: the digest of the documents, for what depends on all of them.
    """
    parts = composing(meaning, parts)
    inner = {role: graph(part, corpus=corpus) for role, part in parts.items()}
    within = [_within(role, node) for role, part in inner.items() for node in part.nodes]
    nodes = {node.name: node for node in within}
    places = _places(meaning, inner)
    entering: dict[str, list[Field]] = {place.name: [] for place in places}
    for field in fields(meaning):
        for place in entered(field, places, meaning, parts):
            entering[place.name].append(field)
    for place in places:
        if place.name == f"source:{CORPUS}":
            entering[place.name] = [Field(CORPUS, CORPUS, corpus, Kind.SOURCE, (CORPUS,))]
        nodes[place.name] = _node(place, entering[place.name], nodes)
    return Graph(tuple(nodes.values()))


@dataclass(frozen=True, slots=True)
class Place:
    """A node before its key: which sides' fields may enter, and what it descends from.

    `joins`: the sides whose windows it makes one of; nothing but how it does that enters such a node.
    """

    name: str
    kind: Kind
    side: str | None
    serves: frozenset[str]
    ports: tuple[tuple[str, str], ...]
    joins: frozenset[str] = frozenset()


def places(meaning: Meaning, parts: Parts | None = None) -> tuple[Place, ...]:
    """The nodes of a release without those of its parts."""
    return tuple(_places(meaning, {role: graph(part) for role, part in composing(meaning, parts).items()}))


def composing(meaning: Meaning, parts: Parts | None) -> Parts:
    """Those parts that keep a graph of their own; what two encoders are made of is in the meaning itself."""
    if parts is None or meaning.interaction.kind not in COMPOSED:
        return {}
    return {role: parts[role] for role in sorted(parts) if role in meaning.interaction.releases}


def entered(field: Field, among: Sequence[Place], meaning: Meaning, parts: Parts) -> tuple[Place, ...]:
    """Where a field enters; nowhere if it changes no output."""
    if field.path.endswith(AGGREGATION):
        return tuple(place for place in among if place.joins & set(field.sides))
    step, scope = _aim(field, meaning, parts)
    if step is None:
        return ()
    for serving in (scope, frozenset({WHOLE})):
        later = [place for place in among if place.serves & serving and ORDER.index(place.kind) >= ORDER.index(step)]
        if later:
            first = min(later, key=lambda place: ORDER.index(place.kind)).kind
            return tuple(place for place in later if place.kind is first)
        if field.sides != (WHOLE,):
            return ()
    return ()


def _aim(field: Field, meaning: Meaning, parts: Parts) -> tuple[Kind | None, frozenset[str]]:
    """From which kind of node on, and on which sides, a field may enter."""
    kind = meaning.interaction.kind
    everywhere = frozenset({WHOLE, *sides_of(meaning)})
    if field.path.startswith("interaction.releases"):
        role = field.path.removeprefix("interaction.releases").strip(".[]")
        if kind not in COMPOSED or role in parts:
            return None, everywhere
        if kind == "two-stage" and stands_for(meaning, role):
            # The pairs are scored as its encoder says; of the retriever's similarity only its content ID tells.
            return (Kind.CALIBRATED if role == RETRIEVER else None), frozenset({WHOLE})
        return field.step, frozenset({role})
    if field.sides != (WHOLE,):
        return field.step, frozenset(field.sides)
    if kind != "two-stage":
        return field.step, everywhere
    retrieving = frozenset(side for side in sides_of(meaning) if side != "pair")
    if field.path in ("score.index", "interaction.token_schema"):
        return field.step, retrieving
    if field.path.startswith(("output.", "score.")):
        return field.step, frozenset({"pair"} if stands_for(meaning, RERANKER) else {RERANKER})
    return field.step, frozenset({WHOLE})


def _places(meaning: Meaning, inner: Mapping[str, Graph]) -> list[Place]:
    kind = meaning.interaction.kind
    found: list[Place] = []
    tips: list[tuple[str, str]] = []
    for side in sides_of(meaning):
        chain = list(_chain(meaning, side))
        found += chain
        tips.append((side, chain[-1].name))
    if kind == "two-stage":
        ends = _stages(meaning, inner, tips, found)
    else:
        spaces = [(f"space:{role}", _space(role, inner, found)) for role in sorted(_roles(meaning))]
        found += _scored(meaning, "raw score", [*tips, *spaces], frozenset({WHOLE, *sides_of(meaning)}))
        ends = [(tips[0][0] if kind == "head" and len(tips) == 1 else "pair", found[-1].name)]
    serves = frozenset({WHOLE, *sides_of(meaning), *_roles(meaning)})
    if meaning.score.calibrator is not None:
        if kind in SEARCHING:
            found.append(Place(f"source:{CORPUS}", Kind.SOURCE, CORPUS, frozenset({CORPUS}), ()))
            ends.append((CORPUS, found[-1].name))
        found.append(Place("calibrated", Kind.CALIBRATED, None, serves, tuple(sorted(ends))))
        ends = [("pair", "calibrated")]
    found.append(Place("decision", Kind.DECISION, None, serves, tuple(sorted(ends))))
    return found


def _roles(meaning: Meaning) -> tuple[str, ...]:
    return tuple(meaning.interaction.releases) if meaning.interaction.kind in COMPOSED else ()


def _chain(meaning: Meaning, side: Side) -> Iterator[Place]:
    """From a side's text to the last node that is its own.

    The side is the port all along: where both sides read alike, a store of queries must still not pass for documents.
    """
    serves, name = frozenset({side}), f"source:{side}"
    yield Place(name, Kind.SOURCE, side, serves, ())
    kinds = [Kind.CONTEXTUAL]
    if sides_of(meaning)[side].readout.family in VECTORS and side != "pair":
        kinds.append(Kind.VECTOR)
    if side == "document" and Kind.VECTOR in kinds and meaning.score.index != "none":
        kinds.append(Kind.INDEX)
    for kind in kinds:
        place = Place(f"{kind}:{side}", kind, side, serves, ((side, name),))
        yield place
        name = place.name
        window = sides_of(meaning)[side].input.window
        if window is not None and AGGREGATED.get(window.aggregation) is kind:
            yield _aggregated(name, kind, side, serves)
            name = f"{name}:aggregated"


def _scored(meaning: Meaning, name: str, ports: Sequence[tuple[str, str]], serves: frozenset[str]) -> list[Place]:
    """A raw score, and behind it what joins those of several windows."""
    raw = Place(name, Kind.RAW_SCORE, None, serves, tuple(sorted(ports)))
    windows = {side: tower.input.window for side, tower in sides_of(meaning).items() if side in serves}
    joins = frozenset(side for side, each in windows.items() if each and each.aggregation not in AGGREGATED)
    return [raw, _aggregated(name, Kind.RAW_SCORE, None, joins)] if joins else [raw]


def _aggregated(name: str, kind: Kind, side: str | None, joins: frozenset[str]) -> Place:
    """One out of what several windows gave."""
    return Place(f"{name}:aggregated", kind, side, frozenset(), (("window", name),), joins)


def _space(role: str, inner: Mapping[str, Graph], found: list[Place]) -> str:
    """The node that a part's scores come from: its last raw score, or one that stands for the whole of it. What two
    stages rank follows from both, and is known with the decision alone.
    """
    if role in inner:
        last = inner[role].nodes[-1]
        if any(port.startswith("stage:") for port, _ in last.ports):
            return _within(role, last).name
        return [_within(role, node).name for node in inner[role].nodes if node.kind is Kind.RAW_SCORE][-1]
    found.append(Place(f"raw score:{role}", Kind.RAW_SCORE, role, frozenset({role}), ()))
    return found[-1].name


def _stages(
    meaning: Meaning, inner: Mapping[str, Graph], tips: Sequence[tuple[str, str]], found: list[Place]
) -> list[tuple[str, str]]:
    """What the last decision descends from. A pair's score does not descend from what found the pair."""
    ends = []
    for role in sorted({*_roles(meaning), *(role for role in (RETRIEVER, RERANKER) if stands_for(meaning, role))}):
        if role in inner:
            end = _within(role, inner[role].nodes[-1]).name
        elif stands_for(meaning, role):
            mine = [(side, name) for side, name in tips if (side == "pair") == (role == RERANKER)]
            found += _scored(meaning, f"raw score:{role}", mine, frozenset(side for side, _ in mine))
            end = found[-1].name
        else:
            end = _space(role, inner, found)
        ends.append((f"stage:{role}", end))
    return ends


def _node(place: Place, entering: Sequence[Field], before: Mapping[str, Node]) -> Node:
    # What is null is left out: a field that a later schema adds changes no key where it does not apply.
    values = {_hashed(field, place): field.value for field in entering if field.value is not None}
    ports = sorted((port, before[name].key) for port, name in place.ports)
    key = digest({"kind": str(place.kind), "fields": values, "ports": ports})
    return Node(
        place.name, place.kind, place.side, key, place.ports, tuple(sorted(entering, key=lambda field: field.path))
    )


def _hashed(field: Field, place: Place) -> str:
    """The name of a field in a key. Where two encoders' fields enter one node, they are told apart by side."""
    if field.sides == (WHOLE,) or len(field.sides) > 1 or len(place.serves - {WHOLE}) == 1:
        return field.name
    return f"{field.sides[0]}/{field.name}"


def _within(role: str, node: Node) -> Node:
    """A part's node under the name that it has in the whole: `vector:retriever/document`."""

    def name(inner: str) -> str:
        kind, _, side = inner.partition(":")
        return f"{kind}:{role}/{side}" if side else f"{kind}:{role}"

    return replace(
        node,
        name=name(node.name),
        ports=tuple((port, name(of)) for port, of in node.ports),
        fields=tuple(replace(field, path=f"{role}.{field.path}") for field in node.fields),
        role=role,
    )
