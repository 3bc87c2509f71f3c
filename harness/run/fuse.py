"""Fusion: several members' rankings of one query as one, by reciprocal ranks or by scaled scores."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.output.case import Candidates, CaseOutput, OutputStatus, Ranking
from harness.release.definition import Fusion, Scale
from harness.run.given import Given
from harness.run.output import Executed
from harness.run.ranking import Cut, cut_ranking
from harness.run.stage import most_cut, told_by
from harness.run.windowed import of_member

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Voice:
    """What one member says of a query: its first documents, best first, its weight, and how its scores are scaled."""

    ranking: Ranking
    weight: float
    scale: Scale


def fused(voices: Sequence[Voice], *, rank_constant: float, ties: str) -> Ranking:
    """Every document of any member with the weighted sum of its scaled scores, documents by name.

    A document that a member has not among its own adds what that member's scale gives least: 0 by reciprocal rank, else
    the lowest scaled score that the member has, and 0 where it has none. Sums are rounded once, so neither the order of
    members nor that of documents changes one. Source of reciprocal rank fusion: Cormack, Clarke and Büttcher,
    Reciprocal rank fusion outperforms Condorcet and individual rank learning methods, SIGIR 2009.
    """
    added = [_added(voice, rank_constant, ties) for voice in voices]
    documents = sorted({document for each in added for document in each.of})
    sums = [
        math.fsum(voice.weight * each.of.get(document, each.absent) for voice, each in zip(voices, added, strict=True))
        for document in documents
    ]
    return Ranking(np.array(documents, dtype=object), np.array(sums, dtype=np.float64))


def scaled(scores: Floats, scale: Scale, *, rank_constant: float = 60.0, ties: str = "expected") -> Floats:
    """A member's scores [d], best first, on the scale by which they are added up.

    `reciprocal-rank`: 1 / (rank_constant + rank), where tied documents share the mean of their ranks, unless `ties` is
    "trec", by which nothing is tied. `min-max`: from 0 to 1. `z-score`: in standard deviations from the mean. Both are
    0 where all scores are equal.
    """
    match scale:
        case "none":
            return scores
        case "reciprocal-rank":
            return 1 / (rank_constant + (np.arange(1.0, len(scores) + 1) if ties == "trec" else mean_ranks(scores)))
        case "min-max":
            low, high = scores.min(initial=np.inf), scores.max(initial=-np.inf)
            return (scores - low) / (high - low) if high > low else np.zeros(len(scores))
        case "z-score":
            if not len(scores) or scores.min() == scores.max():
                return np.zeros(len(scores))
            mean = math.fsum(scores) / len(scores)
            spread = math.sqrt(math.fsum((scores - mean) ** 2) / len(scores))
            return (scores - mean) / spread


def mean_ranks(scores: Floats) -> Floats:
    """[d], the place from 1 of each of some falling scores; equal ones share the mean of theirs."""
    above = np.searchsorted(-scores, -scores, side="left")
    end = np.searchsorted(-scores, -scores, side="right")
    return (above + 1 + end) / 2


@dataclass(frozen=True, slots=True)
class _Added:
    """What a member adds to each of its documents, before its weight, and to all others."""

    of: Mapping[str, float]
    absent: float


def _added(voice: Voice, rank_constant: float, ties: str) -> _Added:
    scores = scaled(voice.ranking.scores, voice.scale, rank_constant=rank_constant, ties=ties)
    least = 0.0 if voice.scale == "reciprocal-rank" or not len(scores) else float(scores.min())
    return _Added(dict(zip(voice.ranking.documents.tolist(), scores.tolist(), strict=True)), least)


def fuse(
    said: Fusion,
    members: Mapping[str, Executed],
    cut: Cut,
    judged: Mapping[str, set[str]],
    given: Mapping[str, Given] | None = None,
) -> Executed:
    """The outputs of a fused release. A case that a member has no ranking of has none, for that member's reason.

    `given`: what a reranking suite gives by case.
    """
    rows = zip(*(each.outputs for each in members.values()), strict=True)
    outputs = tuple(_output(said, dict(zip(members, row, strict=True)), cut, judged, given) for row in rows)
    remarks = tuple(remark for role, each in members.items() for remark in told_by(role, each.remarks))
    cut_documents = most_cut(document for each in members.values() for document in each.cut_documents)
    several = tuple(one for role, each in members.items() for one in of_member(role, each.windowed))
    return Executed(outputs, remarks, cut_documents, windowed=several)


def _output(
    said: Fusion,
    members: Mapping[str, CaseOutput],
    cut: Cut,
    judged: Mapping[str, set[str]],
    given: Mapping[str, Given] | None,
) -> CaseOutput:
    [case_id] = {each.case_id for each in members.values()}
    most = max(members.values(), key=lambda each: each.tokens_lost or 0)
    told = CaseOutput(case_id, OutputStatus.OK, tokens_kept=most.tokens_kept, tokens_lost=most.tokens_lost)
    voices = []
    for role, each in members.items():
        if each.ranking is None:
            told = replace(told, status=each.status, reason=f"{role}: {each.reason}", non_finite=each.non_finite)
            return told if given is None else replace(told, candidates=_candidates(given[case_id], None))
        voices.append(Voice(_whole(each.ranking), said.weights[role], said.scales[role]))
    ranking = fused(voices, rank_constant=said.k, ties=cut.ties)
    documents, mine = np.asarray(ranking.documents, dtype=object), judged.get(case_id, set())
    told = replace(told, ranking=cut_ranking(case_id, documents, ranking.scores, cut, judged=mine))
    return told if given is None else replace(told, candidates=_candidates(given[case_id], ranking))


def _whole(ranking: Ranking) -> Ranking:
    """Without a last tied group of which only some documents are here: those that were judged, which says nothing of
    the member.
    """
    kept = ranking.scores > ranking.scores[-1] if ranking.crossing else np.ones(len(ranking.scores), dtype=bool)
    return Ranking(ranking.documents[kept], ranking.scores[kept])


def _candidates(given: Given, ranking: Ranking | None) -> Candidates:
    known = {} if ranking is None else dict(zip(ranking.documents.tolist(), ranking.scores.tolist(), strict=True))
    return Candidates(given.documents, given.scores, np.array([known.get(each, np.nan) for each in given.documents]))
