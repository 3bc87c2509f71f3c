"""Given documents in a release's order, scattered back to case IDs.

A pair of a query and a document is scored by itself: what else was given changes its place, and never its score.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from harness.candidate.encoder import Pieces
from harness.candidate.load import load_cross_to_run
from harness.output.case import Candidates, CaseOutput, OutputStatus
from harness.release.open import Release
from harness.run.apart import require_scorer, score_apart
from harness.run.given import Given, Pairs, Scored
from harness.run.joint import score_joint
from harness.run.output import Executed, Remark, uncovered_remark
from harness.run.ranking import Cut, cut_ranking
from harness.run.retrieve import load_encoder
from harness.run.windowed import windowed_remarks
from harness.suite.case import Suite

# Releases whose model reads both texts together.
JOINT = ("cross",)


@dataclass(frozen=True, slots=True)
class Reranking:
    """A release that is to rank given documents, by case ID. A case without a list has no output."""

    release: Release
    given: Mapping[str, Given]
    cut: Cut


def rerank(
    wanted: Mapping[str, Reranking],
    suite: Suite,
    judged: Mapping[str, set[str]],
    grid: float,
    kept: Pieces | None = None,
) -> dict[str, Executed]:
    """By name, every given case's ranking of its documents, in suite order.

    `kept`: pieces of earlier runs. A pair that raises or gives no finite number fails its case. Raises Stopped where a
    model does not load, Misconfigured for a release that scores no pairs.
    """
    joint = {name for name, each in wanted.items() if each.release.definition.interaction in JOINT}
    releases = {name: each.release for name, each in wanted.items()}
    for name in releases.keys() - joint:
        require_scorer(releases[name])
    models = {name: load_cross_to_run(releases[name]) for name in wanted if name in joint}
    encoders = {name: load_encoder(releases[name], suite) for name in wanted if name not in joint}
    pairs = {name: Pairs.of(each.given, suite) for name, each in wanted.items()}
    scored = {
        **score_joint({name: pairs[name] for name in models}, models, suite, grid, kept),
        **score_apart({name: pairs[name] for name in encoders}, releases, encoders, suite, grid, kept),
    }
    return {name: _executed(each, pairs[name], scored[name], suite, judged) for name, each in wanted.items()}


def _executed(
    wanted: Reranking, pairs: Pairs, scored: Scored, suite: Suite, judged: Mapping[str, set[str]]
) -> Executed:
    outputs = tuple(
        _output(wanted, pairs, scored, at, suite.cases[row].id, judged.get(suite.cases[row].id, set()))
        for at, row in enumerate(pairs.cases)
    )
    remarks = (*_remarks(pairs, scored, suite), *windowed_remarks(scored.windowed))
    return Executed(outputs, remarks, tuple(scored.cut_documents), windowed=scored.windowed)


def _output(wanted: Reranking, pairs: Pairs, scored: Scored, at: int, case_id: str, judged: set[str]) -> CaseOutput:
    start, end = int(pairs.offsets[at]), int(pairs.offsets[at + 1])
    given, asked, scores = wanted.given[case_id], scored.asked[at], scored.scores[start:end]
    told = CaseOutput(
        case_id,
        OutputStatus.OK,
        input_digest=asked.digest,
        tokens_kept=asked.tokens_kept,
        tokens_lost=asked.tokens_lost,
        candidates=Candidates(
            given.documents,
            given.scores,
            scores,
            None if scored.logits is None else scored.logits[start:end],
            None if scored.shares is None else scored.shares[0, start:end],
            None if scored.shares is None else scored.shares[1, start:end],
        ),
    )
    bad = np.flatnonzero(~np.isfinite(scores))
    if not len(bad):
        return replace(told, ranking=cut_ranking(case_id, given.documents, scores, wanted.cut, judged=judged))
    first = int(bad[0])
    raised = asked.failed or scored.reasons.get(start + first)
    what = "the query" if asked.failed else f"document {given.documents[first]!r}"
    reason = f"{what}: {raised or 'its score is no finite number'}"
    return replace(told, status=OutputStatus.FAILED, reason=reason, non_finite=raised is None)


def _remarks(pairs: Pairs, scored: Scored, suite: Suite) -> Iterator[Remark]:
    empty = [row for row in np.unique(pairs.documents) if not suite.documents[row].text]
    if empty:
        yield Remark(
            "empty-candidate", len(empty),
            f"{len(empty)} documents to rank have no text, the first {suite.documents[empty[0]].id!r}",
        )  # fmt: skip
    if scored.cut_documents:
        count, name = len(scored.cut_documents), scored.cut_documents[0].document_id
        yield Remark("cut-document", count, f"{count} documents are longer than the model reads, the first {name!r}")
    for some, names, what in (
        (scored.uncovered_queries, [each.id for each in suite.cases], "query"),
        (scored.uncovered, [each.id for each in suite.documents], "document"),
    ):
        characters = np.zeros(len(names), dtype=np.int64)
        characters[list(some)] = list(some.values())
        yield from uncovered_remark(characters, names, what)
    if scored.shares is None:
        return
    cut = np.flatnonzero(scored.shares[1].any(axis=1))
    if len(cut):
        case, document = suite.cases[pairs.rows[cut[0]]], suite.documents[pairs.documents[cut[0]]]
        yield Remark(
            "cut-pair", len(cut),
            f"{len(cut)} pairs are longer than the model reads, the first {case.id!r} with {document.id!r}",
        )  # fmt: skip
