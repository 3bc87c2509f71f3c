"""Candidates: the documents that every release of a reranking suite is given, query by query."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.file.lines import Line, Place, checked_id, listed, read_lines, refuse, shown, split_columns
from harness.suite.case import Candidate
from harness.suite.formats.cell import NUMBER
from harness.suite.formats.collection import CandidateRow, JudgementRow

HEADERS = (("query-id", "document-id"), ("query-id", "corpus-id"))


@dataclass(frozen=True, slots=True)
class Candidates:
    """By case, each in the order of their file. `dropped`: rows of queries or documents that aren't there."""

    by_case: Mapping[str, tuple[Candidate, ...]]
    dropped: int
    first_dropped: Place | None

    def warnings(self, judgements: Sequence[JudgementRow]) -> Iterator[str]:
        """What was dropped, and what no order of the candidates can find."""
        if self.dropped:
            yield f"{self.dropped} candidates of what isn't there dropped (first: {self.first_dropped})"
        given = {case_id: {each.document_id for each in some} for case_id, some in self.by_case.items()}
        relevant = [row for row in judgements if row.grade > 0 and row.case_id in given]
        beyond = [row for row in relevant if row.document_id not in given[row.case_id]]
        if beyond:
            cases = dict.fromkeys(row.case_id for row in beyond)
            yield (
                f"{len(beyond)} of {len(relevant)} relevant documents are no candidates, in {len(cases)} cases: "
                f"{listed(cases)}; recall_ceiling tells what can be reached"
            )


def read_candidates(
    path: Path,
    format: Literal["tsv", "trec-run"],
    *,
    case_ids: Sequence[str],
    queries: AbstractSet[str],
    documents: AbstractSet[str],
    dangling: Literal["refuse", "drop"],
) -> Candidates:
    """Reads `query, document[, score]` between tabs, with or without a header, or a TREC run whose ranks play no part.

    Raises Misconfigured with the line for what isn't so, and as `chosen`.
    """
    rows = _rows(path, format)
    return chosen(path, rows, case_ids=case_ids, queries=queries, documents=documents, dangling=dangling)


def chosen(
    path: Path,
    rows: Iterable[CandidateRow],
    *,
    case_ids: Sequence[str],
    queries: AbstractSet[str],
    documents: AbstractSet[str],
    dangling: Literal["refuse", "drop"],
) -> Candidates:
    """The rows of a file or folder by case. `queries`: those of the suite, of which `case_ids` are left; candidates of
    the others go with their query.

    Raises Misconfigured for a document twice in one query, for a query or document that isn't there unless `dangling`
    says drop, and for a case without any candidate.
    """
    seen: dict[tuple[str, str], Place] = {}
    found: dict[str, list[Candidate]] = {case_id: [] for case_id in case_ids}
    strangers: list[CandidateRow] = []
    for row in rows:
        pair = (row.case_id, row.document_id)
        first = seen.setdefault(pair, row.place)
        if first is not row.place:
            refuse(
                row.place, f"document {shown(pair[1])} stands twice for query {shown(pair[0])} (first at line "
                f"{first.line})", "each candidate once a query", "Remove one of the two lines.",
            )  # fmt: skip
        if row.case_id not in queries or row.document_id not in documents:
            strangers.append(row)
        elif row.case_id in found:
            found[row.case_id].append(Candidate(row.document_id, row.score))
    if strangers and dangling == "refuse":
        _refuse_strangers(strangers, queries)
    if without := [case_id for case_id, some in found.items() if not some]:
        refuse(
            path, f"{len(without)} queries without a candidate: {listed(without)}",
            "at least one document to rank for every case",
            "Add candidates, or take those queries out of the suite.",
        )  # fmt: skip
    return Candidates(
        {case_id: tuple(some) for case_id, some in found.items()},
        len(strangers),
        strangers[0].place if strangers else None,
    )


def _refuse_strangers(rows: Sequence[CandidateRow], queries: AbstractSet[str]) -> None:
    missing = (
        f"query {shown(row.case_id)}" if row.case_id not in queries else f"document {shown(row.document_id)}"
        for row in rows[:3]
    )
    refuse(
        rows[0].place, f"{len(rows)} candidates name what isn't there: {', '.join(missing)}"
        + (", …" if len(rows) > 3 else ""),
        "queries and documents that the suite has",
        'Correct the file, or write dangling = "drop" under [cases] in suite.toml.',
    )  # fmt: skip


def _rows(path: Path, format: Literal["tsv", "trec-run"]) -> Iterator[CandidateRow]:
    if format == "trec-run":
        for line in read_lines(path):
            columns = split_columns(line)
            if len(columns) != 6:
                refuse(
                    line.place, f"{len(columns)} columns", "six: query ID, Q0, document ID, rank, score, tag",
                    "Write all six, with no blank in an ID.",
                )  # fmt: skip
            yield _row(columns[0], columns[2], columns[4], line.place)
        return
    count = 0
    for position, line in enumerate(read_lines(path)):
        columns = _between_tabs(line)
        count = count or len(columns)
        if len(columns) != count:
            refuse(
                line.place, f"{len(columns)} columns, where those before have {count}",
                "a score on every line or on none",
                "Write the score on every line, or leave it out.",
            )  # fmt: skip
        if position == 0 and tuple(name.strip().lower().replace("_", "-") for name in columns[:2]) in HEADERS:
            continue
        yield _row(columns[0], columns[1], columns[2] if count == 3 else None, line.place)


def _between_tabs(line: Line) -> list[str]:
    columns = line.text.split("\t")
    if len(columns) not in (2, 3):
        refuse(
            line.place, f"{len(columns)} tab-separated columns", "query-id, document-id, and perhaps a score",
            'Separate them by tabs; six columns between blanks are read with format = "trec-run" under [candidates].',
        )  # fmt: skip
    return columns


def _row(query: str, document: str, score: str | None, where: Place) -> CandidateRow:
    number = None
    if score is not None:
        number = float(score) if NUMBER.fullmatch(score.strip()) else math.nan
        if not math.isfinite(number):
            refuse(where, f"the score {shown(score)}", "a finite number", "Correct it, or leave all scores out.")
    return CandidateRow(checked_id(query, where), checked_id(document, where), where, number)
