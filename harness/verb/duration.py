"""How long the invalidation plan takes: what a run measures for it, what it keeps, and what is told of both.

All of it is clocks: it goes to the store and into a file of its own, and nothing that is digested depends on it.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from harness.errors import HarnessError
from harness.lifecycle.invalidation import Act, made_from
from harness.output.answer import Answer
from harness.output.duration import Encoding, Pace
from harness.release.field import Kind, sides_of
from harness.release.graph import Node
from harness.release.open import Release
from harness.report.duration import Durations, Timed
from harness.store import duration as stored
from harness.verb.place import Place
from harness.verb.plan import Prepared, as_tuple, prepare

if TYPE_CHECKING:
    from harness.candidate.passes import Pass

# What a model reads texts for, and for which namespaces.
ENCODES = (Act.RE_ENCODE, Act.ADD_ITEMS, Act.PROVE_PARITY)
OF_TEXTS = ("contextual", "vector", "token-vector")

log = logging.getLogger(__name__)


def keep_passes(place: Place, run: str, heard: "Sequence[Pass]", releases: Mapping[str, Release]) -> None:
    """What the models of a run took for what was not in the cache."""
    if not heard:
        return
    from harness.candidate.open import pass_key, runs_on
    from harness.candidate.passes import joined
    from harness.candidate.runtime import machine

    backends: dict[str, str] = {}
    for release in releases.values():
        for each in _models(release):
            runtime = {**runs_on(each), "backend": each.backend or "torch"}
            library = {"torch": "torch", "onnx": "onnxruntime", "openvino": "openvino"}[str(runtime["backend"])]
            words = f"{library} {runtime[library]}, {runtime['dtype']}, {runtime['device']} ({runtime['unit']})"
            backends |= {pass_key(each, side): words for side in sides_of(each.manifest.meaning)}
    now, here = datetime.now(UTC).replace(tzinfo=None), machine()
    records = [
        Pace(
            run, each.key, each.side, now, each.texts, each.tokens, each.seconds, each.threads,
            backends.get(each.key, "unknown"), here,
        )
        for each in joined(heard)
    ]  # fmt: skip
    with place.store.writing() as connection:
        stored.record_passes(connection, run, records)


def keep_plan(place: Place, run: str, parent: Release, candidate: Release) -> None:
    """Those actions of the plan that encode. Where there is no plan, a line in the log says why."""
    try:
        prepared = prepare(place, parent, candidate)
    except HarnessError as refusal:
        log.warning("No plan is kept of this run: %s", refusal)
        return
    with place.store.writing() as connection:
        stored.record_plan(connection, run, list(_encodings(prepared, candidate)))


def _encodings(prepared: Prepared, candidate: Release) -> Iterator[Encoding]:
    states = {state.namespace.name: state for state in prepared.states}
    graph = as_tuple(candidate).graph
    for position, action in enumerate(prepared.plan.actions, start=1):
        if action.action is Act.BUILD and (node := graph.find(action.node or "")) is not None:
            if node.kind is Kind.VECTOR:
                key, side = _pass(candidate, node, node.side)
                yield Encoding(
                    position, str(action.action), node.name, None, key, side, action.items, action.of, action.tokens
                )
            continue
        state = states.get(action.namespace or "")
        if state is None or action.action not in ENCODES or state.namespace.kind not in OF_TEXTS:
            continue
        of_rows = None if action.action is Act.PROVE_PARITY else made_from(state, prepared.states)
        above = of_rows.namespace.name if of_rows is not None and of_rows.namespace.kind in OF_TEXTS else None
        node = graph.holding(state.new_key) if state.new_key else None
        key, side = (None, None) if above else _pass(candidate, node, state.namespace.side)
        yield Encoding(
            position, str(action.action), state.namespace.name, above, key, side, action.items, action.of,
            action.tokens,
        )  # fmt: skip


def _pass(candidate: Release, node: Node | None, side: str | None) -> tuple[str | None, str | None]:
    """The pass that makes what a node of the candidate keeps: its own, or that of the member whose node it is."""
    if node is None or node.kind not in (Kind.CONTEXTUAL, Kind.VECTOR):
        return None, None
    release = candidate
    for name in node.name.partition(":")[2].split("/"):
        release = release.members[name] if release.is_composed and name in release.members else release
    side = side or node.side
    if release.is_composed or release.recorded is not None or release.cannot_run or side is None:
        return None, side
    from harness.candidate.open import pass_key

    own = (each for each in sides_of(release.manifest.meaning) if each == side)
    return next((pass_key(release, each) for each in own), None), side


def _models(release: Release) -> Iterator[Release]:
    """The releases that load a model of their own."""
    if release.is_composed:
        for member in release.members.values():
            yield from _models(member)
    elif release.recorded is None:
        yield release


def durations(place: Place, found: Answer) -> Durations:
    """What the store knows of how long a run's plan takes."""
    with place.store.reading() as connection:
        planned = stored.plan(connection, found.run)
        encodings = [
            Timed(each, stored.measured(connection, found.run, each.pass_key, each.side) if each.pass_key else None)
            for each in planned or ()
        ]
    return Durations(
        run=found.run,
        candidate=found.candidate.name,
        parent=None if found.parent is None else found.parent.name,
        encodings=None if planned is None else tuple(encodings),
    )
