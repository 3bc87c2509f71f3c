"""Releases made of others, carried out from their innermost members on; equal rankings are made once.

All that both sides of a run want at one height is computed together, so a retriever that two releases share searches
once, and a pair that two rerankers share is read once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.candidate.encoder import Pieces
from harness.release.open import Identity, Release
from harness.run.fuse import fuse
from harness.run.given import Given
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.replay import replay_release
from harness.run.rerank import Reranking, rerank
from harness.run.retrieve import Retrieval, retrieve
from harness.run.stage import lists_of, staged
from harness.suite.case import Suite


@dataclass(frozen=True, slots=True)
class Task:
    """What a run is over. `given`: a reranking suite's lists by case; None where the corpus is searched."""

    suite: Suite
    judged: Mapping[str, set[str]]
    grid: float
    given: Mapping[str, Given] | None = None
    kept: Pieces | None = None


class Key(NamedTuple):
    """Equal keys, equal rankings: what a release and its members are and run on, and how the ranking is cut."""

    identity: Identity
    cut: Cut


@dataclass(frozen=True, slots=True)
class Node:
    """A ranking that is wanted, and by role those that it is made of."""

    release: Release
    cut: Cut
    members: Mapping[str, "Node"]

    @property
    def key(self) -> Key:
        return Key(self.release.identity, self.cut)

    @property
    def height(self) -> int:
        return 1 + max((member.height for member in self.members.values()), default=-1)


def node_of(release: Release, cut: Cut) -> Node:
    """The ranking of a release, with those of the members that it needs."""
    stages, fusion, members = release.definition.stages, release.definition.fusion, release.members
    if stages is not None:
        first = Cut(stages.depth, cut.ties, cut.drop_self, exact=True)
        return Node(release, cut, {"retriever": node_of(members["retriever"], first)})
    if fusion is not None:
        pool = Cut(fusion.depth, cut.ties, cut.drop_self)
        return Node(release, cut, {role: node_of(member, pool) for role, member in members.items()})
    return Node(release, cut, {})


def carry_out(wanted: Mapping[str, Node], task: Task) -> dict[str, Executed]:
    """By name, every case's output, in suite order. Raises as `retrieve`, `rerank` and `replay_release` do."""
    nodes: dict[Key, Node] = {}
    for node in wanted.values():
        _collect(node, nodes)
    done: dict[Key, Executed] = {}
    for height in range(1 + max(node.height for node in nodes.values())):
        done |= _level({key: node for key, node in nodes.items() if node.height == height}, done, task)
    return {name: done[node.key] for name, node in wanted.items()}


def _collect(node: Node, into: dict[Key, Node]) -> None:
    into.setdefault(node.key, node)
    for member in node.members.values():
        _collect(member, into)


def _level(nodes: Mapping[Key, Node], done: Mapping[Key, Executed], task: Task) -> dict[Key, Executed]:
    """Nodes of one height, whose members are all done."""
    found = {key: each for key, node in nodes.items() if (each := _without_model(node, done, task)) is not None}
    live = {str(at): key for at, key in enumerate(key for key in nodes if key not in found)}
    ranking = {name for name, key in live.items() if nodes[key].members or task.given is not None}
    options = (task.suite, task.judged, task.grid, task.kept)
    made = {
        **retrieve({name: _retrieval(nodes[key]) for name, key in live.items() if name not in ranking}, *options),
        **rerank({name: _reranking(nodes[key], done, task) for name, key in live.items() if name in ranking}, *options),
    }
    for name, key in live.items():
        first = nodes[key].members.get("retriever")
        found[key] = made[name] if first is None else staged(done[first.key], made[name])
    return found


def _without_model(node: Node, done: Mapping[Key, Executed], task: Task) -> Executed | None:
    """What only has to be read, or put together; None where a model has to be asked."""
    release = node.release
    if release.recorded is not None:
        return replay_release(release, task.suite, task.judged, node.cut, task.given)
    if release.definition.fusion is not None:
        members = {role: done[member.key] for role, member in node.members.items()}
        return fuse(release.definition.fusion, members, node.cut, task.judged, task.given)
    first = node.members.get("retriever")
    if first is None or release.members["reranker"].recorded is None:
        return None
    given = lists_of(done[first.key], task.suite)
    return staged(
        done[first.key], replay_release(release.members["reranker"], task.suite, task.judged, node.cut, given)
    )


def _retrieval(node: Node) -> Retrieval:
    return Retrieval(node.release, node.cut)


def _reranking(node: Node, done: Mapping[Key, Executed], task: Task) -> Reranking:
    """Of two stages, the reranker over what the retriever found; of any other release, itself over what is given."""
    if first := node.members.get("retriever"):
        return Reranking(node.release.members["reranker"], lists_of(done[first.key], task.suite), node.cut)
    return Reranking(node.release, task.given or {}, node.cut)
