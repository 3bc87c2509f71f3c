"""Outputs that were made elsewhere, read from a file and put under the suite's own case IDs."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from harness.errors import Misconfigured
from harness.file.lines import Place, read_lines, read_objects, refuse, shown, split_columns
from harness.output.case import Candidates, CaseOutput, OutputStatus
from harness.release.open import Release
from harness.run.given import Given
from harness.run.output import Executed, Remark
from harness.run.ranking import Cut, cut_ranking
from harness.suite.case import Suite

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

    def keep(self, wanted: set[str]) -> None:
        """Takes out all other documents."""
        kept = [(each, line, score) for (each, line), score in zip(self.documents.items(), self.scores, strict=True)]
        self.documents = {each: line for each, line, _ in kept if each in wanted}
        self.scores = [score for each, _, score in kept if each in wanted]


def replay_release(
    release: Release, suite: Suite, judged: Mapping[str, set[str]], cut: Cut, given: Mapping[str, Given] | None = None
) -> Executed:
    """A recorded release's outputs over a suite, as `replay`."""
    if release.recorded is None or release.outputs is None:
        raise TypeError(f"release {release.name} is not recorded")
    return replay(
        release.outputs,
        release.recorded.format,
        release.recorded.score_type,
        case_ids=tuple(case.id for case in suite.cases),
        corpus=frozenset(each.id for each in suite.documents),
        judged=judged,
        cut=cut,
        given=given,
    )


def replay(
    path: Path,
    format: str,
    score_type: str,
    *,
    case_ids: tuple[str, ...],
    corpus: frozenset[str],
    judged: Mapping[str, set[str]],
    cut: Cut,
    given: Mapping[str, Given] | None = None,
) -> Executed:
    """Reads a TREC run or JSONL with `scores`. A case that the file lacks is missing, not zero. Where there are `given`
    documents by case, all others are left out, and so are cases without any such list.

    One output a case, in order; remarks tell what the file holds besides, counted by kind with an example.

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
    RANKINGS[format](path, by_query)
    remarks = list(_remarks(by_query, frozenset(case_ids), corpus if given is None else None))
    if given is not None:
        remarks += _restricted(by_query, given)
    outputs = tuple(
        _output(
            case_id,
            by_query.pop(case_id, None),
            judged.get(case_id, set()),
            cut,
            None if given is None else given[case_id],
        )
        for case_id in case_ids
        if given is None or case_id in given
    )
    return Executed(outputs, tuple(remarks))


def _trec_run(path: Path, by_query: dict[str, _Scored]) -> None:
    # A document stands in many rankings, and one text of its ID is enough.
    known: dict[str, str] = {}
    for line in read_lines(path):
        columns = split_columns(line)
        if len(columns) != 6:
            found = f"{len(columns)} columns"
            refuse(line.place, found, f"six: {TREC_COLUMNS}", "Write all six, with no blank in an ID.")
        query, _, document, _, score, _ = columns
        by_query.setdefault(query, _Scored(line.place.line)).add(
            line.place, known.setdefault(document, document), _number(score, line.place)
        )


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


RANKINGS: Mapping[str, Callable[[Path, dict[str, _Scored]], None]] = {"trec-run": _trec_run, "jsonl": _jsonl}


def _output(case_id: str, scored: _Scored | None, judged: set[str], cut: Cut, given: Given | None) -> CaseOutput:
    candidates = None if given is None else _candidates(given, scored)
    if scored is None:
        reason = "the recorded outputs have no line for this case"
        return CaseOutput(case_id, OutputStatus.MISSING, reason, candidates=candidates)
    for document, score in zip(scored.documents, scored.scores, strict=True):
        if not math.isfinite(score):
            reason = f"the score of document {shown(document)} is {score}"
            return CaseOutput(case_id, OutputStatus.FAILED, reason, non_finite=True, candidates=candidates)
    documents = np.array(list(scored.documents), dtype=object)
    ranking = cut_ranking(case_id, documents, np.array(scored.scores, dtype=np.float64), cut, judged=judged)
    return CaseOutput(case_id, OutputStatus.OK, ranking=ranking, candidates=candidates)


def _candidates(given: Given, scored: _Scored | None) -> Candidates:
    known = {} if scored is None else dict(zip(scored.documents, scored.scores, strict=True))
    scores = np.array([known.get(each, math.nan) for each in given.documents], dtype=np.float64)
    return Candidates(given.documents, given.scores, scores)


def _restricted(by_query: dict[str, _Scored], given: Mapping[str, Given]) -> Iterator[Remark]:
    """Takes out what is recorded of other documents than a case was given; tells of it, and of what isn't recorded."""
    beyond: list[tuple[str, str]] = []
    lacking: list[tuple[str, str]] = []
    for case_id, some in given.items():
        scored, wanted = by_query.get(case_id), set(some.documents)
        if scored is None:
            continue
        beyond += [(case_id, document) for document in scored.documents if document not in wanted]
        lacking += [(case_id, document) for document in some.documents if document not in scored.documents]
        scored.keep(wanted)
    for kind, pairs, what in (
        ("not-a-candidate", beyond, "rows with documents that are no candidates are left out"),
        ("candidate-not-recorded", lacking, "candidates are not recorded, and are ranked nowhere"),
    ):
        if pairs:
            query, document = pairs[0]
            yield Remark(kind, len(pairs), f"{len(pairs)} {what}, the first {shown(document)} of {shown(query)}")


def _remarks(by_query: dict[str, _Scored], cases: frozenset[str], corpus: frozenset[str] | None) -> Iterator[Remark]:
    strangers = [query for query in by_query if query not in cases]
    if strangers:
        rows = sum(len(by_query[query].documents) for query in strangers)
        yield Remark(
            "not-a-case", rows, f"rows for {len(strangers)} queries that are no cases, the first {shown(strangers[0])}"
        )
    if corpus is None:
        return
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
