"""From one release to another: what changed, what holds of what is deployed, and what is to be done about the rest."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.lifecycle.compatibility import NamespaceState, Scoring, compatibility
from harness.lifecycle.invalidation import Plan, invalidation_plan
from harness.lifecycle.items import Items
from harness.lifecycle.migration import Migration, migration
from harness.lifecycle.namespace import NODE_KIND, Namespace
from harness.lifecycle.namespace import read as read_namespaces
from harness.lifecycle.permutation import HeadRows, permutation
from harness.release.difference import Change, changes
from harness.release.graph import Graph
from harness.release.head import row_digests
from harness.release.manifest import Side
from harness.release.open import Release
from harness.release.semantic import SemanticTuple, semantic_tuple
from harness.store import read
from harness.verb.place import Place

# A vector node may keep one vector or rows; what it is called matters to nobody but a reader.
SIDES: Mapping[str, Side] = {"query": "query", "document": "document", "pair": "pair", "text": "text"}
KINDS = {kind: name for name, kind in NODE_KIND.items() if name != "token-vector"}


@dataclass(frozen=True, slots=True)
class Prepared:
    """Everything a deployment must know to go from parent to candidate."""

    changes: tuple[Change, ...]
    namespaces: tuple[Namespace, ...]
    states: tuple[NamespaceState, ...]
    plan: Plan
    migration: Migration


def prepare(place: Place, parent: Release, candidate: Release, scorings: tuple[Scoring, ...] | None = None) -> Prepared:
    """Derives it all from the two manifests, the parent's namespaces.toml, and what stored runs know of single texts.

    Without a namespaces.toml the parent is taken to keep one namespace for each node of its graph.
    Raises NotAdmitted where labels moved without the head's rows, or the other way round.
    """
    old, new = as_tuple(parent), as_tuple(candidate)
    rows = [row_digests(each) for each in (parent, candidate)]
    known_rows = HeadRows(rows[0], rows[1]) if rows[0] and rows[1] else None
    labels = permutation(old.meaning, new.meaning, known_rows)
    known = _cut_items(place, parent, candidate)
    namespaces = read_namespaces(parent.folder) or _of_every_node(old.graph, known)
    states = compatibility(namespaces, old, new, scorings=scorings)
    items = {
        each.name: known for each in namespaces if known and each.side == "document" and each.count in (None, known.of)
    }
    plan = invalidation_plan(states, old, new, items=items, labels=labels)
    return Prepared(
        changes=changes(
            parent.manifest, candidate.manifest, parent_parts=old.parts, candidate_parts=new.parts
        ),
        namespaces=namespaces,
        states=states,
        plan=plan,
        migration=migration(old, new, states, plan, labels=labels),
    )  # fmt: skip


def as_tuple(release: Release) -> SemanticTuple:
    """A release with its graph, and those of the releases that it is made of."""
    return semantic_tuple(release.manifest, {role: each.manifest for role, each in release.members.items()})


def _of_every_node(graph: Graph, known: Items | None) -> tuple[Namespace, ...]:
    count = known.of if known else None
    return tuple(
        Namespace(
            name=node.name,
            kind=KINDS[node.kind],
            side=SIDES.get(node.side or ""),
            node=node.name,
            count=count if node.side == "document" else None,
        )
        for node in graph.nodes
        if node.kind in KINDS
    )


def _cut_items(place: Place, parent: Release, candidate: Release) -> Items | None:
    """How many documents were cut otherwise, by a stored run of these two contents; None without one."""
    if not place.store.path.exists():
        return None
    with place.store.reading() as connection:
        cut = read.cut_documents(connection, parent.content_id, candidate.content_id)
    if cut is None:
        return None
    ids = cut.parent.keys() | cut.candidate.keys()
    changed = [each for each in ids if cut.parent.get(each) != cut.candidate.get(each)]
    return Items(cut.documents, len(changed), None, "cut")
