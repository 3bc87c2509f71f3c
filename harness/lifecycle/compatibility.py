"""Which namespaces of a parent still hold under a candidate.

One is reusable if and only if its key is a node of the candidate's graph; unproven where it is and what computes
differs, until a parity run within the tolerance; otherwise invalid.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.identity import Json
from harness.lifecycle.namespace import Namespace, node_of
from harness.release.difference import same
from harness.release.field import ORDER, WHOLE, Field, Kind
from harness.release.graph import Graph, Node
from harness.release.semantic import SemanticTuple

# The largest difference of a value, where a namespace states none.
TOLERANCE = 1e-5
# How many items a parity run draws, where there are as many.
SAMPLE = 256


class Reuse(StrEnum):
    """Whether a namespace may be used under the candidate: unproven until a parity run within its tolerance."""

    REUSABLE = "reusable"
    UNPROVEN = "unproven"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class ParityDemand:
    """The run that would prove a namespace: so many of its items made again under `runtime`, held value by value."""

    namespace: str
    key: str
    items: int
    tolerance: float
    runtime: Mapping[str, Json]

    def as_record(self) -> dict[str, Json]:
        return {
            "namespace": self.namespace, "key": self.key, "items": self.items, "tolerance": self.tolerance,
            "runtime": dict(self.runtime),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class ParityRun:
    """A parity run that was made. `largest`: the largest difference of a value that it found."""

    namespace: str
    key: str
    items: int
    largest: float
    runtime: Mapping[str, Json]

    def proves(self, demand: ParityDemand) -> bool:
        """Whether it is the run that was demanded, and within the tolerance."""
        return (
            (self.namespace, self.key) == (demand.namespace, demand.key)
            and self.items >= demand.items
            and self.largest <= demand.tolerance
            and same(dict(self.runtime), dict(demand.runtime))
        )

    def as_record(self) -> dict[str, Json]:
        return {
            "namespace": self.namespace, "key": self.key, "items": self.items, "largest": self.largest,
            "runtime": dict(self.runtime),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Scoring:
    """What a stored run was measured under: the digest of the suite's lock, and the scorers' versions."""

    suite_lock: str
    scorers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Moved:
    """A field on the way to a node that is another in the candidate; None where it is not stated."""

    field: Field
    kind: Kind
    old: Json
    new: Json

    def __str__(self) -> str:
        return f"{self.field.path} {shown(self.old)} → {shown(self.new)}, which enters at the {self.kind}"


@dataclass(frozen=True, slots=True)
class Behind:
    """Items that a namespace lacks of the texts as they are now, of so many; None where it is not known."""

    items: int | None
    of: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class NamespaceState:
    """A namespace under the candidate, with the reason in words.

    `node` and `old_key` are the parent's, None for a baseline or where the parent has no such node; `new_key` is what
    the candidate has in its place. `moved`: the fields for which it does not hold. `parity`: what would prove it.
    `behind`: what it lacks of the texts that came since, where it holds.
    """

    namespace: Namespace
    state: Reuse
    reason: str
    node: str | None
    old_key: str | None
    new_key: str | None
    moved: tuple[Moved, ...] = ()
    parity: ParityDemand | None = None
    behind: Behind | None = None

    def as_record(self) -> dict[str, Json]:
        """As `diff` prints it; with the run that would prove it, where one is demanded."""
        return {
            "name": self.namespace.name, "kind": self.namespace.kind, "side": self.namespace.side,
            "state": str(self.state), "reason": self.reason,
            **({} if self.parity is None else {"parity": self.parity.as_record()}),
        }  # fmt: skip


def compatibility(
    namespaces: Sequence[Namespace],
    parent: SemanticTuple,
    candidate: SemanticTuple,
    *,
    proven: Iterable[ParityRun] = (),
    scorings: Iterable[Scoring] | None = None,
) -> tuple[NamespaceState, ...]:
    """The state of every namespace of the parent's deployment, in the order in which they are declared.

    `scorings`: the locks and scorers of the suites as they are now, by which baselines are held.
    Raises Misconfigured for a namespace that keeps no node of the parent and states no key.
    """
    runs, now = tuple(proven), None if scorings is None else tuple(scorings)
    return tuple(
        _baseline(each, now) if each.kind == "baseline" else _state(each, parent, candidate, runs)
        for each in namespaces
    )


def moved_fields(parent: Graph, was: Node, candidate: Graph, now: Node) -> tuple[Moved, ...]:
    """The fields that enter a node or what it descends from and differ, those that enter first standing first."""
    old, new = _lineage(parent, was), _lineage(candidate, now)
    found = []
    for place in {**new, **old}:
        before, after = old.get(place), new.get(place)
        kind, field = new.get(place) or old[place]
        values = [None if each is None else each[1].value for each in (before, after)]
        if not same(*values):
            found.append(Moved(field, kind, values[0], values[1]))
    # What a shared encoder says enters on both sides and is one field.
    once = {(each.field.path, each.kind): each for each in found}
    return tuple(sorted(once.values(), key=lambda each: (ORDER.index(each.kind), each.field.path)))


def counterpart(node: Node, graph: Graph) -> Node | None:
    """What another release has in a node's place: by name, else the only one of its kind and side."""
    named = graph.find(node.name)
    alike = [each for each in graph.nodes if (each.kind, each.side) == (node.kind, node.side)]
    return named or (alike[0] if len(alike) == 1 else None)


def shown(value: Json) -> str:
    """A value in a sentence: JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 40 else f"{text[:39]}…"


def _lineage(graph: Graph, node: Node) -> dict[tuple[str, str | None, str], tuple[Kind, Field]]:
    """Every field on the way to a node, by what it has in common with the other release's: part, side, name."""
    found = {}
    for each in graph.lineage(node):
        for field in each.fields:
            # A part's node may stand for the release that it was before it became a part.
            path = field.path.removeprefix(f"{node.role}.") if node.role else field.path
            if field.sides == (WHOLE,):
                place: tuple[str, str | None, str] = ("", None, path)
            else:
                place = (path.partition("towers.")[0], each.side or field.side, field.name)
            found[place] = (each.kind, field)
    return found


def _state(
    namespace: Namespace, parent: SemanticTuple, candidate: SemanticTuple, proven: Sequence[ParityRun]
) -> NamespaceState:
    was = node_of(namespace, parent.graph)
    key = namespace.key or (was.key if was else None)
    now = None if was is None else counterpart(was, candidate.graph)
    name, new_key = was.name if was else None, now.key if now else None
    held = None if key is None else candidate.graph.holding(key)
    if held is not None:
        return _held(namespace, name, held, parent, candidate, proven)
    moved: tuple[Moved, ...] = ()
    if was is None:
        reason = f"its key {str(key)[:16]}… is a node of neither release, so nothing tells what it was made with"
    elif now is None:
        reason = f"the candidate has no {was.name}"
    else:
        moved = moved_fields(parent.graph, was, candidate.graph, now)
        more = f" (and {len(moved) - 1} more)" if len(moved) > 1 else ""
        reason = f"{moved[0]}{more}" if moved else f"{was.name} descends from other nodes"
    return NamespaceState(namespace, Reuse.INVALID, reason, name, key, new_key, moved)


def _held(
    namespace: Namespace,
    node: str | None,
    at: Node,
    parent: SemanticTuple,
    candidate: SemanticTuple,
    proven: Sequence[ParityRun],
) -> NamespaceState:
    """A namespace whose key is that of a node of the candidate: whether what computes is the same, or was proven so."""
    key, runs = at.key, _computing(candidate, at)
    wrote: Mapping[str, Json] = _computing(parent, parent.graph.find(node) if node else None)
    if namespace.runtime:  # of what it states itself, only that is compared
        wrote, runs = namespace.runtime, {name: runs.get(name) for name in namespace.runtime}
    differing = [name for name in sorted(wrote.keys() | runs.keys()) if not same(wrote.get(name), runs.get(name))]
    if not differing:
        reason = f"its key is the candidate's {at.name}"
        return NamespaceState(namespace, Reuse.REUSABLE, reason, node, key, key)
    demand = ParityDemand(
        namespace.name, key, SAMPLE if namespace.count is None else min(SAMPLE, namespace.count),
        namespace.tolerance or TOLERANCE, runs,
    )  # fmt: skip
    run = next((run for run in proven if run.proves(demand)), None)
    words = "; ".join(f"{name} {shown(wrote.get(name))} → {shown(runs.get(name))}" for name in differing)
    if run is not None:
        reason = f"its key is the candidate's {at.name}, and a parity run of {run.items} items held: {words}"
        return NamespaceState(namespace, Reuse.REUSABLE, reason, node, key, key)
    reason = (
        f"its key is the candidate's {at.name}, but another runtime wrote it: {words}. A parity run would prove it: "
        f"{demand.items} of its items made again by {candidate.name}, every value within {demand.tolerance:g}"
    )
    return NamespaceState(namespace, Reuse.UNPROVEN, reason, node, key, key, parity=demand)


def _computing(release: SemanticTuple, node: Node | None) -> Mapping[str, Json]:
    """What computes a node: of a part's node, what that part runs on, which a composed release says by role."""
    if node is None or not node.role:
        return release.runtime
    alone, here = release.parts[node.role].runtime, release.runtime.get(node.role)
    return {**alone.declared, **alone.observed, **(here if isinstance(here, Mapping) else {})}


def _baseline(namespace: Namespace, now: Sequence[Scoring] | None) -> NamespaceState:
    """A stored run holds while its suite and its scorers are what they were; the candidate has no part in it."""
    lock, scorers = namespace.suite_lock, namespace.scorers or {}
    if now is None:
        state, reason = (
            Reuse.UNPROVEN,
            f"its suite's lock {str(lock)[:16]}… was not held against the suite as it is now",
        )
    elif (scoring := next((each for each in now if each.suite_lock == lock), None)) is None:
        state, reason = Reuse.INVALID, f"no suite has the lock {str(lock)[:16]}… any more"
    elif other := sorted(
        name for name in scorers.keys() | scoring.scorers.keys() if scorers.get(name) != scoring.scorers.get(name)
    ):
        versions = f"{scorers.get(other[0])} → {scoring.scorers.get(other[0])}"
        state, reason = Reuse.INVALID, f"another version of the scorer {other[0]}: {versions}"
    else:
        state, reason = Reuse.REUSABLE, "its suite's lock and its scorers are the present ones"
    return NamespaceState(namespace, state, reason, None, None, None)
