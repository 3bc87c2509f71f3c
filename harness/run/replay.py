"""Outputs that were made elsewhere, read from a file and put under the suite's own case IDs."""

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.errors import Misconfigured
from harness.file.lines import Place, read_lines, read_objects, refuse, shown, split_columns
from harness.output.case import CaseOutput, OutputStatus
from harness.run.ranking import Cut, cut_ranking

RANKING_SCORES = ("logit", "probability", "cosine", "dot", "maxsim", "value")
# What Python's float() takes besides, such as 1_000, is no number in a run file.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|inf|infinity)", re.ASCII | re.IGNORECASE)
TREC_COLUMNS = "query ID, Q0, document ID, rank, score, tag"


@dataclass(slots=True)
class _Scored:
    """Documents and scores of one query, as they stand in the file. `line` is where the query first stands."""

    line: int
    documents: dict[str, int] = field(default_factory=dict)
    scores: list[float] = field(default_factory=list)

    def add(self, where: Place, document: str, score: float) -> None:
        if document in self.documents:
            refuse(
                where,
                f"document {shown(document)} stands twice for one query (first at line {self.documents[document]})",
                "each document once a query",
                "Keep one of the two; which one the ranking means cannot be guessed.",
            )
        self.documents[document] = where.line
        self.scores.append(score)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One output a case, in suite order. `remarks`: what the file holds besides, counted by kind with an example."""

    outputs: tuple[CaseOutput, ...]
    remarks: tuple["Remark", ...]


@dataclass(frozen=True, slots=True)
class Remark:
    kind: str
    count: int
    detail: str


def replay(
    path: Path,
    format: str,
    score_type: str,
    *,
    case_ids: tuple[str, ...],
    corpus: frozenset[str],
    judged: dict[str, set[str]],
    cut: Cut,
) -> Replayed:
    """Reads a TREC run or JSONL with `scores`. A case that the file lacks is missing, not zero.

    A NaN or infinite score fails its case by name. Raises Misconfigured, with the line, for what cannot be read, and
    for a score type by which a higher score isn't a better one.
    """
    if score_type not in RANKING_SCORES:
        raise Misconfigured(
            f"[recorded] score_type {score_type!r}", found="no score by which documents rank, the highest first",
            expected=f"one of {', '.join(RANKING_SCORES)}",
            mend='Record a distance as its negative, with score_type = "value".',
        )  # fmt: skip
    by_query: dict[str, _Scored] = {}
    readers = {"trec-run": _trec_run, "jsonl": _jsonl}
    readers[format](path, by_query)
    outputs = tuple(_output(case_id, by_query.get(case_id), judged.get(case_id, set()), cut) for case_id in case_ids)
    return Replayed(outputs, tuple(_remarks(by_query, frozenset(case_ids), corpus)))


def _trec_run(path: Path, by_query: dict[str, _Scored]) -> None:
    for line in read_lines(path):
        columns = split_columns(line)
        if len(columns) != 6:
            found = f"{len(columns)} columns"
            refuse(line.place, found, f"six: {TREC_COLUMNS}", "Write all six, with no blank in an ID.")
        query, _, document, _, score, _ = columns
        by_query.setdefault(query, _Scored(line.place.line)).add(line.place, document, _number(score, line.place))


def _number(score: str, where: Place) -> float:
    if not NUMBER.fullmatch(score):
        refuse(where, f"the score {shown(score)}", "a number", "Write the score in the fifth column.")
    return float(score)


def _as_float(score: int | float) -> float:
    try:
        return float(score)
    except OverflowError:
        return math.inf if score > 0 else -math.inf


def _jsonl(path: Path, by_query: dict[str, _Scored]) -> None:
    for entry in read_objects(path, constants=True):
        case_id, scores = entry.keys.get("id"), entry.keys.get("scores")
        if not isinstance(case_id, str) or not isinstance(scores, dict):
            refuse(
                entry.place,
                f"the keys {sorted(entry.keys)}",
                "`id` (text) and `scores` (an object: document ID to number)",
                'Write {"id": "q1", "scores": {"d1": 0.7}}; an empty `scores` is an empty ranking.',
            )
        if case_id in by_query:
            found = f"case ID {shown(case_id)} appears twice (first at line {by_query[case_id].line})"
            refuse(entry.place, found, "each case once", "Keep one of the two.")
        by_query[case_id] = scored = _Scored(entry.place.line)
        for document, score in scores.items():
            if isinstance(score, bool) or not isinstance(score, (int, float)):
                found = f"the score {score!r} of {shown(document)}"
                refuse(entry.place, found, "a number", "Write scores as JSON numbers.")
            scored.add(entry.place, document, _as_float(score))


def _output(case_id: str, scored: _Scored | None, judged: set[str], cut: Cut) -> CaseOutput:
    if scored is None:
        return CaseOutput(case_id, OutputStatus.MISSING, "the recorded outputs have no line for this case")
    for document, score in zip(scored.documents, scored.scores, strict=True):
        if not math.isfinite(score):
            return CaseOutput(
                case_id, OutputStatus.FAILED, f"the score of document {shown(document)} is {score}", non_finite=True
            )
    documents = np.array(list(scored.documents), dtype=object)
    ranking = cut_ranking(case_id, documents, np.array(scored.scores, dtype=np.float64), cut, judged=judged)
    return CaseOutput(case_id, OutputStatus.OK, ranking=ranking)


def _remarks(by_query: dict[str, _Scored], cases: frozenset[str], corpus: frozenset[str]) -> Iterator[Remark]:
    strangers = [query for query in by_query if query not in cases]
    if strangers:
        rows = sum(len(by_query[query].documents) for query in strangers)
        yield Remark(
            "not-a-case", rows, f"rows for {len(strangers)} queries that are no cases, the first {shown(strangers[0])}"
        )
    unknown = Counter(
        document for query, scored in by_query.items() if query in cases for document in scored.documents
        if document not in corpus
    )  # fmt: skip
    if unknown:
        yield Remark(
            "not-in-corpus",
            unknown.total(),
            f"rows with {len(unknown)} documents that are not in the corpus, the first {shown(next(iter(unknown)))}; "
            "they keep their place",
        )
