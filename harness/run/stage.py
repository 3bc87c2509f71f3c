"""Two stages: what a retriever puts first, in a reranker's order."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from harness.output.case import CaseOutput, OutputStatus
from harness.run.given import Given
from harness.run.output import CutDocument, Executed, Remark
from harness.run.windowed import of_member
from harness.suite.case import Suite


def lists_of(retrieved: Executed, suite: Suite) -> dict[str, Given]:
    """The documents that a second stage is given, by case, in the first one's order; none for a case without a ranking.

    A recorded retriever's documents that are not in the corpus have no text, and are left out.
    """
    corpus = {each.id for each in suite.documents}
    found = {}
    for output in retrieved.outputs:
        if output.ranking is not None:
            there = np.array([each in corpus for each in output.ranking.documents], dtype=bool)
            found[output.case_id] = Given(
                np.asarray(output.ranking.documents, dtype=object)[there], output.ranking.scores[there]
            )
    return found


def staged(retrieved: Executed, reranked: Executed) -> Executed:
    """The outputs of both stages: the second one's rankings, and what either did not see whole.

    A case without a ranking by the first stage has none, for the first stage's reason.
    """
    second = {each.case_id: each for each in reranked.outputs}
    outputs = tuple(
        _output(first, second[first.case_id])
        if first.case_id in second
        else replace(first, reason=f"retriever: {first.reason}")
        for first in retrieved.outputs
    )
    remarks = (*told_by("retriever", retrieved.remarks), *told_by("reranker", reranked.remarks))
    cut = most_cut((*retrieved.cut_documents, *reranked.cut_documents))
    several = (*of_member("retriever", retrieved.windowed), *of_member("reranker", reranked.windowed))
    return Executed(outputs, remarks, cut, windowed=several)


def told_by(role: str, remarks: Iterable[Remark]) -> Iterator[Remark]:
    """A member's remarks, with who made them."""
    for each in remarks:
        yield replace(each, detail=f"{role}: {each.detail}")


def most_cut(documents: Iterable[CutDocument]) -> tuple[CutDocument, ...]:
    """Each document once, as the member that lost most of it read it."""
    found: dict[str, CutDocument] = {}
    for each in documents:
        before = found.get(each.document_id)
        if before is None or each.tokens_lost > before.tokens_lost:
            found[each.document_id] = each
    return tuple(found.values())


def _output(first: CaseOutput, second: CaseOutput) -> CaseOutput:
    """The second stage's output, with the tokens of the stage that lost more."""
    told = second if second.status is OutputStatus.OK else replace(second, reason=f"reranker: {second.reason}")
    if (first.tokens_lost or 0) <= (second.tokens_lost or 0):
        return told
    return replace(told, tokens_kept=first.tokens_kept, tokens_lost=first.tokens_lost)
