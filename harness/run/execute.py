"""Both sides of a run: their outputs on every case, from models or from recordings, in suite order."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.identity import Json
from harness.release.open import Release
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.replay_cases import replay_cases
from harness.suite.case import Suite
from harness.suite.definition import RANKED
from harness.suite.freeze import FrozenSuite

if TYPE_CHECKING:
    from harness.candidate.encoder import Pieces


def execute(
    releases: Mapping[str, Release], frozen: FrozenSuite, kept: "Pieces | None" = None
) -> Mapping[str, Executed]:
    """Runs releases by name over every case of a suite. What they are given are texts, and in a reranking suite its
    candidates; labels, roles and slices they never see. `kept`: what was computed in earlier runs.

    Raises Misconfigured for recorded outputs that cannot be read, Stopped where a model does not load.
    """
    if frozen.lock.definition.task not in RANKED:
        return _over_cases(releases, frozen.suite, kept)
    from harness.run.compose import Task, carry_out, node_of
    from harness.run.given import given_of

    suite, ranking = frozen.suite, frozen.lock.definition.ranking
    judged: dict[str, set[str]] = {}
    for row in suite.judgements:
        judged.setdefault(row.case_id, set()).add(row.document_id)
    cut = Cut(ranking.depth, ranking.ties, ranking.self_match == "drop")
    given = None if suite.candidates is None else given_of(suite.candidates, drop_self=cut.drop_self)
    task = Task(suite, judged, ranking.grid, given, kept)
    return carry_out({name: node_of(release, cut) for name, release in releases.items()}, task)


def _over_cases(releases: Mapping[str, Release], suite: Suite, kept: "Pieces | None") -> dict[str, Executed]:
    """Of a task without a corpus. No recorded release loads a library."""
    found = {name: replay_cases(each, suite) for name, each in releases.items() if each.recorded is not None}
    live = {name: each for name, each in releases.items() if name not in found}
    if not live:
        return found
    from harness.run.alike import run_alike
    from harness.run.heads import run_heads

    heads = {name: each for name, each in live.items() if each.definition.interaction == "head"}
    others = {name: each for name, each in live.items() if name not in heads}
    return {**found, **run_heads(heads, suite, kept), **run_alike(others, suite, kept)}


def runtime_of(release: Release) -> dict[str, Json]:
    """What a release runs on, and by role what its members do: part of what its outputs depend on, though not of its
    meaning.
    """
    if release.recorded is not None:
        return {}
    if release.is_composed:
        return {role: runtime_of(member) for role, member in release.members.items()}
    from harness.candidate.open import runs_on

    return dict(runs_on(release))
