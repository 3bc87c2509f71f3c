"""From one release to another: what changed, what holds of what is deployed, and what is to be done about the rest."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from harness.lifecycle.compatibility import NamespaceState, Scoring, compatibility
from harness.lifecycle.corpus import as_of
from harness.lifecycle.invalidation import Plan, invalidation_plan
from harness.lifecycle.items import Items
from harness.lifecycle.migration import Migration, migration
from harness.lifecycle.namespace import NODE_KIND, Namespace, corpus_now
from harness.lifecycle.namespace import read as read_namespaces
from harness.lifecycle.parity import read as read_parity
from harness.lifecycle.permutation import HeadRows, permutation
from harness.lifecycle.training import refuse_moved_backbone
from harness.release.difference import Change, changes
from harness.release.field import Kind
from harness.release.graph import Graph
from harness.release.head import row_digests
from harness.release.manifest import Runtime, Side
from harness.release.open import Release
from harness.release.semantic import SemanticTuple, semantic_tuple
from harness.store.pair import RunPair, run_of
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
    """Derives it all from the two manifests, the parent's namespaces.toml, the candidate's parity.jsonl, and what
    stored runs know of single texts.

    Without a namespaces.toml the parent is taken to keep one namespace for each node of its graph.
    Raises NotAdmitted where labels moved without the head's rows, or the other way round, and where more than the head
    moved in a training of the head alone.
    """
    stored = _stored(place, parent, candidate)
    runtimes = stored.runtimes if stored else {}
    old, new = as_tuple(parent, runtimes.get("parent")), as_tuple(candidate, runtimes.get("candidate"))
    refuse_moved_backbone(old.manifest, new.manifest)
    rows = [row_digests(each) for each in (parent, candidate)]
    labels = permutation(old.meaning, new.meaning, HeadRows(rows[0], rows[1]) if rows[0] and rows[1] else None)
    composed = parent.is_composed or candidate.is_composed
    # What was cut is stored by document, whichever member cut it.
    known = _items(stored) if stored and not composed else {}
    namespaces = read_namespaces(parent.folder) or _of_every_node(old.graph, known)
    proven = read_parity(candidate.folder)
    states = as_of(compatibility(namespaces, old, new, scorings=scorings, proven=proven), corpus_now(parent.folder))
    items = {
        each.name: known[each.side]
        for each in namespaces
        if each.side is not None and each.side in known and each.count in (None, known[each.side].of)
    }
    plan = invalidation_plan(states, old, new, items=items, labels=labels)
    return Prepared(
        changes=changes(old.manifest, new.manifest, parent_parts=old.parts, candidate_parts=new.parts),
        namespaces=namespaces,
        states=states,
        plan=plan,
        migration=migration(old, new, states, plan, parity=proven, labels=labels),
    )


def as_tuple(release: Release, runtime: str | None = None) -> SemanticTuple:
    """A release with its graph, and those of the releases that it is made of; `runtime` as a stored run observed it."""
    manifest = release.manifest
    if runtime:
        observed = Runtime(declared=manifest.runtime.declared, observed=json.loads(runtime))
        manifest = manifest.model_copy(update={"runtime": observed})
    return semantic_tuple(manifest, {role: each.manifest for role, each in release.members.items()})


def _of_every_node(graph: Graph, known: Mapping[str, Items]) -> tuple[Namespace, ...]:
    """Of pairs that are read together only scores are worth keeping: each pair is read for itself, and once."""
    return tuple(
        Namespace(
            name=node.name,
            kind=KINDS[node.kind],
            side=SIDES.get(node.side or ""),
            node=node.name,
            count=known[node.side].of if node.side is not None and node.side in known else None,
        )
        for node in graph.nodes
        if node.kind in KINDS and (node.kind, node.side) != (Kind.CONTEXTUAL, "pair")
    )


def _stored(place: Place, parent: Release, candidate: Release) -> RunPair | None:
    if not place.store.path.exists():
        return None
    with place.store.reading() as connection:
        return run_of(connection, parent.content_id, candidate.content_id)


def _items(stored: RunPair) -> dict[str, Items]:
    """By side, how many texts were cut otherwise by the two, and the tokens that the candidate reads of those."""
    found = {}
    for side, read_by, n in (
        ("document", stored.documents, stored.n_documents),
        ("query", stored.queries, stored.n_queries),
    ):
        old, new = read_by["parent"], read_by["candidate"]
        changed = [each for each in old.lost.keys() | new.lost.keys() if old.lost.get(each) != new.lost.get(each)]
        # A text that the candidate no longer cuts is read whole.
        tokens = sum(new.kept.get(each) or old.kept[each] + old.lost[each] for each in changed)
        found[side] = Items(n, len(changed), tokens, "cut")
    return found
