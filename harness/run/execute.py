"""Both sides of a run: their outputs on every case, from models or from recordings, in suite order."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from harness.identity import Json
from harness.release.open import Release
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.replay import replay
from harness.suite.freeze import FrozenSuite

if TYPE_CHECKING:
    from harness.candidate.encoder import Pieces


def execute(
    releases: Mapping[str, Release], frozen: FrozenSuite, kept: "Pieces | None" = None
) -> Mapping[str, Executed]:
    """Runs releases by name over every case of a suite. What they are given are texts; labels, roles and slices they
    never see. `kept`: what was computed in earlier runs.

    Raises Misconfigured for recorded outputs that cannot be read, Stopped where a model does not load.
    """
    suite, ranking = frozen.suite, frozen.lock.definition.ranking
    judged: dict[str, set[str]] = {}
    for row in suite.judgements:
        judged.setdefault(row.case_id, set()).add(row.document_id)
    cut = Cut(ranking.depth, ranking.ties, ranking.self_match == "drop")
    done = {
        name: _replayed(release, frozen, judged, cut)
        for name, release in releases.items()
        if release.recorded is not None
    }
    live = {name: release for name, release in releases.items() if name not in done}
    if live:
        from harness.run.retrieve import Retrieval, retrieve

        wanted = {name: Retrieval(release, cut) for name, release in live.items()}
        done |= retrieve(wanted, suite, judged, ranking.grid, kept)
    return {name: done[name] for name in releases}


def _replayed(release: Release, frozen: FrozenSuite, judged: dict[str, set[str]], cut: Cut) -> Executed:
    if release.recorded is None or release.outputs is None:
        raise TypeError(f"release {release.name} is not recorded")
    replayed = replay(
        release.outputs,
        release.recorded.format,
        release.recorded.score_type,
        case_ids=tuple(case.id for case in frozen.suite.cases),
        corpus=frozenset(each.id for each in frozen.suite.documents),
        judged=judged,
        cut=cut,
    )
    return Executed(replayed.outputs, replayed.remarks)


def runtime_of(release: Release) -> dict[str, Json]:
    """What a release runs on: part of what its outputs depend on, though not of its meaning."""
    if release.recorded is not None:
        return {}
    from harness.candidate.open import runs_on

    return dict(runs_on(release))
