"""One side of a run: its outputs on every case, from a model or from a recording, in suite order."""

from dataclasses import dataclass

from harness.identity import Json
from harness.output.case import CaseOutput
from harness.release.open import Release
from harness.run.ranking import Cut
from harness.run.replay import Remark, replay
from harness.suite.freeze import FrozenSuite


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document that the model did not see whole, in the model's own tokens."""

    document_id: str
    tokens_kept: int
    tokens_lost: int


@dataclass(frozen=True, slots=True)
class Executed:
    """Everything that is kept of one side. `remarks`: what was met besides, counted."""

    outputs: tuple[CaseOutput, ...]
    remarks: tuple[Remark, ...]
    cut_documents: tuple[CutDocument, ...] = ()


def execute(release: Release, frozen: FrozenSuite) -> Executed:
    """Runs a release over every case of a suite. What it is given are texts; labels, roles and slices it never sees.

    Raises Misconfigured for recorded outputs that cannot be read, Stopped where a model does not load.
    """
    suite, ranking = frozen.suite, frozen.lock.definition.ranking
    judged: dict[str, set[str]] = {}
    for row in suite.judgements:
        judged.setdefault(row.case_id, set()).add(row.document_id)
    cut = Cut(ranking.depth, ranking.ties, ranking.self_match == "drop")
    if release.recorded is not None and release.outputs is not None:
        replayed = replay(
            release.outputs,
            release.recorded.format,
            release.recorded.score_type,
            case_ids=tuple(case.id for case in suite.cases),
            corpus=frozenset(each.id for each in suite.documents),
            judged=judged,
            cut=cut,
        )
        return Executed(replayed.outputs, replayed.remarks)
    from harness.run.live import encode_and_search

    return encode_and_search(release, suite, judged, cut, ranking.grid)


def runtime_of(release: Release) -> dict[str, Json]:
    """What a release runs on: part of what its outputs depend on, though not of its meaning."""
    if release.recorded is not None:
        return {}
    from harness.candidate.bi import runtime

    return dict(runtime())
