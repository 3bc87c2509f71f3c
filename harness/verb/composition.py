"""Is a release made of others what its manifest says? Its answers on a few texts, held against the plain way.

The members' own answers are what they are proven for; here nothing but what is made of them is computed again.
"""

from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import numpy as np

from harness.output.case import Ranking
from harness.readout.fusion import Member, fusion
from harness.release.admit import Check
from harness.release.open import Release
from harness.run.compose import Task, carry_out, node_of
from harness.run.given import Given
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.rerank import Reranking, rerank
from harness.suite.case import Case, Counts, Document, Suite
from harness.suite.definition import SuiteDefinition

GRID = 1e-6
TOLERANCE = 1e-12
QUERIES = 3
# Documents at most; as a rule so many that a depth leaves two of them out.
DOCUMENTS = 24
WHOLE = Cut(DOCUMENTS, "expected", False, exact=True)


def composition(opened: Release) -> Iterator[Check]:
    """Of two stages: the retriever's first documents, and their order by the reranker's scores among all documents. Of
    a fusion: every sum. A recorded member has no answer to texts that it was not recorded on.
    """
    recorded = sorted({each.name for each in _leaves(opened) if each.recorded is not None})
    expected = f"what its members' answers come to by hand, within {TOLERANCE:g}, of their size above 1"
    if recorded:
        yield Check("composition", True, f"not computed again: {', '.join(recorded)} recorded", expected)
        return
    kinds = {each.definition.interaction for each in _parts(opened)}
    if opened.definition.fusion is not None and {"cross", "two-stage"} <= kinds and _reads_alone(opened):
        yield Check("composition", True, "not computed again: no suite is for all of its members", expected)
        return
    depth = opened.manifest.meaning.interaction.depth or opened.manifest.meaning.interaction.pool or 0
    suite = _suite(min(depth + 2, DOCUMENTS))
    task = Task(suite, {}, GRID, _every(suite) if _reads_alone(opened) else None)
    found = carry_out({"whole": node_of(opened, WHOLE)}, task)["whole"]
    wanted = _two_stages(opened, task) if opened.definition.stages is not None else _fusion(opened, task)
    largest = max(_difference(found, wanted), 0.0)
    mend = "" if largest <= TOLERANCE else "Run with the versions that are reviewed; this is a fault of the harness."
    yield Check("composition", largest <= TOLERANCE, f"largest difference {largest:.2g}", expected, mend)


def _two_stages(opened: Release, task: Task) -> Mapping[str, Mapping[str, float]]:
    """By case, the reranker's scores of the first documents, each scored among all."""
    depth, members = opened.manifest.meaning.interaction.depth, opened.members
    first = carry_out({"retriever": node_of(members["retriever"], WHOLE)}, task)["retriever"]
    every = Reranking(members["reranker"], _every(task.suite), WHOLE)
    scores = {case: _scores(each) for case, each in _rankings(rerank({"a": every}, task.suite, {}, GRID)["a"]).items()}
    return {
        case: {str(document): scores[case][str(document)] for document in ranking.documents[:depth]}
        for case, ranking in _rankings(first).items()
    }


def _fusion(opened: Release, task: Task) -> Mapping[str, Mapping[str, float]]:
    said = opened.manifest.meaning.interaction
    pool = Cut(said.pool or 1, "expected", False)
    done = carry_out({role: node_of(member, pool) for role, member in opened.members.items()}, task)
    rankings = {role: _rankings(each) for role, each in done.items()}
    return {
        case.id: fusion(
            [
                Member(_scores(rankings[role][case.id]), said.weights[role], said.scales[role])
                for role in opened.members
            ],
            said.rank_constant or 0.0,
        )
        for case in task.suite.cases
    }


def _difference(found: Executed, wanted: Mapping[str, Mapping[str, float]]) -> float:
    """The largest of all scores, of the score's size where that is above 1; infinite for other documents, another
    order, or no ranking at all.
    """
    largest = 0.0
    for case, ranking in _rankings(found).items():
        scores, plain = _scores(ranking), wanted[case]
        if scores.keys() != plain.keys() or (np.diff(ranking.scores) > 0).any():
            return float("inf")
        largest = max([largest, *(abs(scores[each] - plain[each]) / max(1.0, abs(plain[each])) for each in scores)])
    return largest if _rankings(found).keys() == wanted.keys() else float("inf")


def _rankings(executed: Executed) -> dict[str, Ranking]:
    return {each.case_id: each.ranking for each in executed.outputs if each.ranking is not None}


def _scores(ranking: Ranking) -> dict[str, float]:
    return dict(zip((str(each) for each in ranking.documents), ranking.scores.tolist(), strict=True))


def _parts(release: Release) -> Iterator[Release]:
    yield release
    for member in release.members.values() if release.is_composed else ():
        yield from _parts(member)


def _leaves(release: Release) -> Iterator[Release]:
    return (each for each in _parts(release) if not each.is_composed)


def _reads_alone(release: Release) -> bool:
    """Whether a cross-encoder is to rank by itself, which it can of given documents alone."""
    if release.definition.interaction == "cross":
        return True
    return release.definition.fusion is not None and any(_reads_alone(each) for each in release.members.values())


def _every(suite: Suite) -> dict[str, Given]:
    documents = np.array([each.id for each in suite.documents], dtype=object)
    return {case.id: Given(documents, np.full(len(documents), np.nan)) for case in suite.cases}


def _suite(count: int) -> Suite:
    """So many documents and a few queries, none of them judged."""
    texts = list(islice(_texts(), max(count, QUERIES)))
    definition = SuiteDefinition.model_validate({
        "schema": "harness.suite.v1", "name": "probe texts", "task": "retrieval", "source": {"format": "beir"},
        "metrics": {"primary": "RR@10"},
    })  # fmt: skip
    return Suite(
        definition=definition,
        folder=Path(),
        cases=tuple(Case(f"q{i}", text, "promotion", f"q{i}", True, {}) for i, text in enumerate(texts[:QUERIES])),
        documents=tuple(Document(f"d{i:02}", text) for i, text in enumerate(texts)),
        judgements=(),
        files={},
        counts=Counts(0, 0, 0, 0, 0, 0),
        warnings=(),
    )


def _texts() -> Iterator[str]:
    """The probe texts that say something, then again with a number behind each."""
    from harness.candidate.probe import PROBE_TEXTS

    some = [text for text in PROBE_TEXTS.values() if text.strip()]
    yield from some
    for number in range(2, 2 + DOCUMENTS):
        yield from (f"{text} {number}" for text in some)
