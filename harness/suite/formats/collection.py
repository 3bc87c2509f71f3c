"""What every retrieval format comes to: documents, queries and judgements, each with its place."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.file.lines import (
    Entry,
    JsonObject,
    Line,
    Place,
    checked_id,
    read_lines,
    read_objects,
    refuse,
    shown,
    text_of,
)
from harness.suite.case import Document

_GRADE = re.compile(r"[+-]?[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class DataFiles:
    """The files of one collection; judgements may stand in several, and candidates in one of their own."""

    corpus: Path
    queries: Path
    qrels: tuple[Path, ...]
    candidates: Path | None = None

    @property
    def all(self) -> tuple[Path, ...]:
        """Every file, each once."""
        candidates = () if self.candidates is None else (self.candidates,)
        return tuple(dict.fromkeys((self.corpus, self.queries, *self.qrels, *candidates)))


@dataclass(frozen=True, slots=True)
class QueryRow:
    """A query as it was read; `further` are its keys beyond the format's own."""

    id: str
    text: str
    further: JsonObject
    place: Place


@dataclass(frozen=True, slots=True)
class JudgementRow:
    """A judgement as it was read."""

    case_id: str
    document_id: str
    grade: int
    place: Place


@dataclass(frozen=True, slots=True)
class CandidateRow:
    """A document that is to be ranked for a query, as it was read."""

    case_id: str
    document_id: str
    place: Place
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Collection:
    """Everything a format's files say, in file order. `revision`: of the data, where their format pins one.
    `candidates`: the documents to rank by query, where it has lists of them.
    """

    documents: tuple[Document, ...]
    queries: tuple[QueryRow, ...]
    judgements: tuple[JudgementRow, ...]
    revision: str | None = None
    candidates: tuple[CandidateRow, ...] | None = None


def read_documents(path: Path, id_keys: Sequence[str]) -> tuple[Document, ...]:
    """Documents of a JSON Lines or tab-separated file; the text is title, space, text, stripped.

    Raises Misconfigured for an ID that stands twice, and as the line readers do.
    """
    documents: list[Document] = []
    lines: dict[str, int] = {}
    for entry in _entries(path, id_keys):
        identifier = text_of(entry, "_id")
        once(identifier, "document", entry.place, lines)
        title = "" if entry.keys.get("title") is None else text_of(entry, "title")
        documents.append(Document(identifier, f"{title} {text_of(entry, 'text')}".strip()))
    return tuple(documents)


def read_queries(path: Path, id_keys: Sequence[str]) -> tuple[QueryRow, ...]:
    """Queries of a JSON Lines or tab-separated file. Raises as `read_documents`."""
    queries: list[QueryRow] = []
    lines: dict[str, int] = {}
    for entry in _entries(path, id_keys):
        identifier = text_of(entry, "_id")
        once(identifier, "case", entry.place, lines)
        further = {key: value for key, value in entry.keys.items() if key not in ("_id", "text")}
        queries.append(QueryRow(identifier, text_of(entry, "text"), further, entry.place))
    return tuple(queries)


def read_judgements(paths: Sequence[Path], rows: Callable[[Path], Iterator[JudgementRow]]) -> tuple[JudgementRow, ...]:
    """Judgements of every file. Raises Misconfigured where one pair is judged twice, even alike."""
    judgements: list[JudgementRow] = []
    seen: dict[tuple[str, str], Place] = {}
    for path in paths:
        for row in rows(path):
            pair = (row.case_id, row.document_id)
            first = seen.setdefault(pair, row.place)
            if first is not row.place:
                refuse(
                    row.place, f"query {shown(row.case_id)} and document {shown(row.document_id)} are judged twice "
                    f"(first at {f'line {first.line}' if first.path == path else first})",
                    "one judgement a pair", "Remove one of the two lines.",
                )  # fmt: skip
            judgements.append(row)
    return tuple(judgements)


def judgement(query: str, document: str, grade: str, where: Place) -> JudgementRow:
    """A judgement from its columns. Raises Misconfigured for a blank ID or a grade that isn't a whole number."""
    if not _GRADE.fullmatch(grade):
        refuse(
            where, f"grade {shown(grade)}", "a whole number of at most nine digits",
            "Write 1 for relevant, 0 for not relevant, or higher grades; a header may only be the first line.",
        )  # fmt: skip
    return JudgementRow(checked_id(query, where), checked_id(document, where), int(grade), where)


def _entries(path: Path, id_keys: Sequence[str]) -> Iterator[Entry]:
    if path.suffix.lower() not in (".jsonl", ".ndjson", ".json"):
        yield from (_two_columns(line) for line in read_lines(path))
        return
    for entry in read_objects(path):
        named = [key for key in id_keys if key in entry.keys]
        if len(named) != 1:
            refuse(
                entry.place, f"both {' and '.join(f'`{key}`' for key in named)}" if named else f"no `{id_keys[0]}`",
                f"an ID under {' or '.join(f'`{key}`' for key in id_keys)}",
                f"Write the ID as text under `{id_keys[0]}`.",
            )  # fmt: skip
        keys = entry.keys
        if named[0] != "_id":
            text_of(entry, named[0])
            keys = {"_id" if key == named[0] else key: value for key, value in keys.items()}
        yield Entry(entry.place, keys)


def _two_columns(line: Line) -> Entry:
    columns = line.text.split("\t")
    if len(columns) != 2:
        refuse(
            line.place, f"{len(columns)} tab-separated columns", "two: ID and text",
            "Separate ID and text by one tab, or give the file as JSON Lines with a name that ends in .jsonl.",
        )  # fmt: skip
    return Entry(line.place, {"_id": columns[0], "text": columns[1]})


def once(identifier: str, what: str, where: Place, lines: dict[str, int]) -> None:
    """Raises Misconfigured for an ID that is blank or among `lines`, else puts it there with its line."""
    checked_id(identifier, where)
    if identifier in lines:
        refuse(
            where, f"{what} ID {shown(identifier)} appears twice (first at line {lines[identifier]})",
            f"{what} IDs that are unique", f"Give each {what} its own ID.",
        )  # fmt: skip
    lines[identifier] = where.line
