"""The invalidation plan: what becomes of every namespace of the parent, in an order in which nothing can be lost.

Build beside, prove, switch both sides together, and drop only when the deployment has retired the rollback target.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from harness.identity import Json, digest
from harness.lifecycle.compatibility import SAMPLE, NamespaceState, Reuse, counterpart
from harness.lifecycle.items import Items
from harness.lifecycle.namespace import NODE_KIND
from harness.lifecycle.permutation import Permutation
from harness.release.field import ORDER, Kind
from harness.release.graph import CORPUS, Graph, Node
from harness.release.semantic import SemanticTuple


class Act(StrEnum):
    """What is done, in the order in which it is done; all but the last before the switch."""

    KEEP = "keep"
    DUAL_WRITE = "dual-write"
    ADD_ITEMS = "add-items"
    BUILD = "build"
    RE_ENCODE = "re-encode"
    REBUILD_INDEX = "rebuild-index"
    PROVE_PARITY = "prove-parity"
    REFIT_CALIBRATOR = "refit-calibrator"
    RE_DERIVE_THRESHOLD = "re-derive-threshold"
    DROP = "drop"


ACTS = tuple(Act)


@dataclass(frozen=True, slots=True)
class Action:
    """One step. `namespace` is None for what belongs to the release itself.

    `items` of the namespace's `of` are worked on, `bytes` is their share of what lies there, `tokens` what the model
    reads for them; None where it is not known.
    """

    action: Act
    namespace: str | None
    node: str | None
    old_key: str | None
    new_key: str | None
    items: int | None
    of: int | None
    bytes: int | None
    reason: str
    tokens: int | None = None

    def as_record(self) -> dict[str, Json]:
        return {
            "action": str(self.action), "namespace": self.namespace, "node": self.node, "old_key": self.old_key,
            "new_key": self.new_key, "items": self.items, "of": self.of, "bytes": self.bytes, "tokens": self.tokens,
            "reason": self.reason,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Plan:
    """Actions in order. `switched`: namespaces whose successors go live in one step, both sides together, once every
    action but `drop` is done. `pinned`: the rollback target's, kept until that is retired.
    """

    rollback_target: str
    actions: tuple[Action, ...]
    switched: tuple[str, ...]
    pinned: tuple[str, ...]

    def ready(self, done: Collection[Action], *, switched: bool, retired: bool) -> tuple[Action, ...]:
        """What may be done now. A drop may not before all else is done, both sides are switched, and the rollback
        target is retired.
        """
        pending = [action for action in self.actions if action not in done]
        first = next((action.action for action in pending), None)
        if first is None or (first is Act.DROP and not (switched and retired)):
            return ()
        return tuple(action for action in pending if action.action is first)

    def rows(self) -> list[dict[str, Json]]:
        """As `diff` prints it."""
        return [
            {
                "action": str(each.action), "namespace": each.namespace, "items": each.items, "of": each.of,
                "reason": each.reason,
            }
            for each in self.actions
        ]  # fmt: skip

    def as_record(self) -> dict[str, Json]:
        return {
            "rollback_target": self.rollback_target, "actions": [each.as_record() for each in self.actions],
            "switched": list(self.switched), "pinned": list(self.pinned),
        }  # fmt: skip


def invalidation_plan(
    states: Sequence[NamespaceState],
    parent: SemanticTuple,
    candidate: SemanticTuple,
    *,
    items: Mapping[str, Items] | None = None,
    labels: Permutation | None = None,
) -> Plan:
    """What the graph demands, and no more.

    `items`: by namespace, what is known of its single items. `labels`: how head rows and labels moved together.
    """
    items = items or {}
    found: list[Action] = []
    for state in states:
        if state.state is Reuse.REUSABLE:
            found.append(_on(state, Act.KEEP, state.reason, items=state.namespace.count))
        elif state.state is Reuse.UNPROVEN:
            sample = state.parity.items if state.parity else state.namespace.count
            found.append(_on(state, Act.PROVE_PARITY, state.reason, items=sample))
        else:
            found += _replaced(state, states, parent, items.get(state.namespace.name), labels)
        if state.behind is not None:
            found.append(_on(state, Act.ADD_ITEMS, state.behind.reason, items=state.behind.items, of=state.behind.of))
    found += _built(parent, candidate)
    found += _release(states, parent, candidate)
    succeeded = [each.namespace.name for each in states if each.state is Reuse.INVALID and each.new_key is not None]
    return Plan(
        rollback_target=parent.content_id,
        actions=tuple(sorted(found, key=lambda action: _rank(action, states))),
        switched=tuple(sorted(succeeded)),
        pinned=tuple(sorted(state.namespace.name for state in states)),
    )


def calibration_key(graph: Graph) -> str | None:
    """The key under which a calibrator is fitted: that of the scores which enter it; None where there is none."""
    calibrated = graph.find("calibrated")
    return None if calibrated is None else _entering(graph, calibrated)


def score_key(graph: Graph) -> str:
    """The key of the scores that a calibrator is, or would be, fitted under."""
    return calibration_key(graph) or decision_key(graph)


def decision_key(graph: Graph) -> str:
    """The key of what a threshold is of: the calibrated scores, where there are such, else the raw ones."""
    return _entering(graph, graph.nodes[-1])


def _entering(graph: Graph, node: Node) -> str:
    keys = {each.name: each.key for each in graph.nodes}
    ports = [(port, keys[name]) for port, name in node.ports if port != CORPUS]
    return ports[0][1] if len(ports) == 1 else digest(ports)


def _rank(action: Action, states: Sequence[NamespaceState]) -> tuple[int, int, str]:
    """By act, then from the source on, so that nothing is built of what is not there yet."""
    kinds = {state.namespace.name: _kind(state) for state in states}
    kind = kinds.get(action.namespace or "", Kind.DECISION)
    if action.action is Act.BUILD:
        kind = Kind.INDEX if (action.node or "").startswith(Kind.INDEX) else Kind.VECTOR
    return ACTS.index(action.action), ORDER.index(kind), action.namespace or ""


def _kind(state: NamespaceState) -> Kind:
    return NODE_KIND.get(state.namespace.kind, Kind.DECISION)


def _replaced(
    state: NamespaceState,
    states: Sequence[NamespaceState],
    parent: SemanticTuple,
    items: Items | None,
    labels: Permutation | None,
) -> Iterator[Action]:
    """What an invalid namespace asks for: its successor beside it, proof of that, and at the end its own removal."""
    kind, count = state.namespace.kind, state.namespace.count
    permuted = labels is not None and kind == "pair-score" and _only_permuted(state)
    if state.new_key is not None and kind in ("contextual", "vector", "token-vector"):
        yield from _re_encoded(state, states, items)
    elif state.new_key is not None and kind == "index":
        yield _on(state, Act.DUAL_WRITE, "what arrives meanwhile goes into both", items=0)
        yield _on(state, Act.REBUILD_INDEX, f"{state.reason}; built beside, {_from(state, states)}", items=count)
        yield _on(state, Act.PROVE_PARITY, "the new index answers as the release that was judged", items=_sample(count))
    elif permuted and labels is not None:
        order = ", ".join(str(at) for at in labels.order)
        known = "the head's rows are the parent's in that order" if labels.proven else "the head's rows are not known"
        yield _on(state, Act.DUAL_WRITE, f"a joint permutation: written beside with columns [{order}]", items=count)
        yield _on(state, Act.PROVE_PARITY, f"labels and head moved together; {known}", items=_sample(count))
    again = (
        ". Nothing of a document is kept: pairs are scored again as they are asked for" if _joint(state, parent) else ""
    )
    yield _on(
        state, Act.DROP,
        f"{state.reason}{again}. Pinned until the deployment retires the rollback target {parent.name}",
        items=count,
    )  # fmt: skip


def _joint(state: NamespaceState, parent: SemanticTuple) -> bool:
    """Whether these are scores of texts that are read together, which no stored vector could give again."""
    node = parent.graph.find(state.node or "")
    if node is None or state.namespace.kind != "pair-score":
        return False
    kinds = {each.kind for each in parent.graph.lineage(node)}
    return Kind.SOURCE in kinds and Kind.VECTOR not in kinds


def _re_encoded(state: NamespaceState, states: Sequence[NamespaceState], items: Items | None) -> Iterator[Action]:
    count = state.namespace.count
    if state.namespace.side != "query":
        yield _on(state, Act.DUAL_WRITE, "what arrives meanwhile goes into both", items=0)
    source = _from(state, states)
    if items is None or not items.hold_under(state.moved):
        yield _on(state, Act.RE_ENCODE, f"{state.reason}; written beside, {source}", items=count)
    else:
        of = max(items.of, count or 0)
        # Items of which nothing is known are made again.
        work = items.changed + of - items.of
        reason = f"{state.reason}; {of - work} of {of} items read the same and are taken over under the new key"
        yield _on(state, Act.RE_ENCODE, reason, items=work, of=of, tokens=items.tokens if of == items.of else None)
    yield _on(
        state, Act.PROVE_PARITY, "a sample made again equals what was written under the new key", items=_sample(count)
    )


def made_from(state: NamespaceState, states: Sequence[NamespaceState]) -> NamespaceState | None:
    """The deployed namespace out of which another's successor is made; None where it is made of the texts."""
    before = ORDER.index(_kind(state)) - 1
    for other in states:
        upstream = ORDER.index(_kind(other)) == before and other.namespace.kind != "baseline"
        if upstream and other.namespace.side == state.namespace.side:
            return other
    return None


def _from(state: NamespaceState, states: Sequence[NamespaceState]) -> str:
    other = made_from(state, states)
    if other is None:
        return "from the texts" if _kind(state) is not Kind.INDEX else "from the vectors"
    kept = other.state is Reuse.REUSABLE
    return f"from {'what is kept in' if kept else 'the successor of'} {other.namespace.name}"


def _built(parent: SemanticTuple, candidate: SemanticTuple) -> Iterator[Action]:
    """What the candidate keeps of documents and nothing of the parent's becomes, under the name of its node."""
    become = {found.key for node in parent.graph.nodes if (found := counterpart(node, candidate.graph)) is not None}
    become |= {node.key for node in parent.graph.nodes}
    for node in candidate.graph.nodes:
        if node.kind in (Kind.VECTOR, Kind.INDEX) and node.side != "query" and node.key not in become:
            source = "texts" if node.kind is Kind.VECTOR else "vectors"
            yield Action(
                Act.BUILD, node.name, node.name, None, node.key, None, None, None,
                f"new, for nothing of {parent.name} becomes it; from the {source} of all documents",
            )  # fmt: skip


def _release(states: Sequence[NamespaceState], parent: SemanticTuple, candidate: SemanticTuple) -> Iterator[Action]:
    """What the candidate's own calibrator and threshold were not fitted to."""
    calibrator = candidate.meaning.score.calibrator
    fitted = calibration_key(candidate.graph)
    stale = calibrator is not None and fitted != calibrator.fitted_under
    if calibrator is not None and stale:
        kept = next((each.namespace.name for each in states if each.namespace.kind == "calibrated"), None)
        yield Action(
            Act.REFIT_CALIBRATOR, kept, "calibrated", calibrator.fitted_under, fitted, None, None, None,
            f"the {calibrator.family} calibrator was fitted under scores {calibrator.fitted_under[:16]}…, "
            f"the candidate's are {str(fitted)[:16]}…",
        )  # fmt: skip
    old, new = _scores(parent.graph), _scores(candidate.graph)
    if candidate.meaning.score.threshold is not None and (old != new or stale):
        kept = next((each.namespace.name for each in states if each.namespace.kind == "decision"), None)
        yield Action(
            Act.RE_DERIVE_THRESHOLD, kept, "decision", old, new, None, None, None,
            "the threshold stands on a calibrator that is refitted" if stale else
            f"the threshold stands on other scores than the parent's: {new[:16]}…, not {old[:16]}…",
        )  # fmt: skip


def _scores(graph: Graph) -> str:
    """The digest of what a release's decision is made of."""
    keys = {node.name: node.key for node in graph.nodes}
    return digest([(port, keys[name]) for port, name in graph.nodes[-1].ports])


def _only_permuted(state: NamespaceState) -> bool:
    """Whether nothing but labels and the weights that they name has moved."""
    names = [each.field.name for each in state.moved]
    return all(name == "output.labels" or name.startswith("artifact.head") or ".weights" in name for name in names)


def _sample(count: int | None) -> int | None:
    return None if count is None else min(SAMPLE, count)


def _on(
    state: NamespaceState, act: Act, reason: str, *, items: int | None, of: int | None = None, tokens: int | None = None
) -> Action:
    of = state.namespace.count if of is None else of
    whole = state.namespace.bytes
    share = None if whole is None or items is None else whole * items // of if of else 0
    return Action(act, state.namespace.name, state.node, state.old_key, state.new_key, items, of, share, reason, tokens)
