"""Corpus, queries, judgements and lists to rank of MTEB's retrieval and reranking tasks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Misconfigured
from harness.file.lines import Entry, Place, checked_id, shown, text_of
from harness.suite.case import Document
from harness.suite.definition import Source
from harness.suite.formats.arrow import plain
from harness.suite.formats.collection import CandidateRow, Collection, DataFiles, JudgementRow, QueryRow, once
from harness.suite.formats.mteb_task import chosen_splits, data_files, loaded_task

KINDS = ("Retrieval", "Reranking", "InstructionRetrieval", "InstructionReranking")
INSTRUCTION = "instruction"
LISTS = "top_ranked"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFiles(DataFiles):
    """The folder of a task's data, which MTEB reads as a whole: `corpus`, `queries` and `qrels` are the folder."""

    paths: tuple[Path, ...]
    source: Source
    splits: tuple[str, ...]

    @property
    def all(self) -> tuple[Path, ...]:
        candidates = () if self.candidates is None else (self.candidates,)
        return (*self.paths, *candidates)


def locate(base: Path, source: Source, mapped: Sequence[str]) -> TaskFiles:
    """The folder `base` of a task's data; `qrels` of `source`, or `[cases] role`, names the split. Raises as
    `data_files`.
    """
    named = (source.qrels,) if source.qrels and not mapped else tuple(mapped)
    return TaskFiles(base, base, (base,), paths=data_files(base, source), source=source, splits=named)


def read(files: TaskFiles) -> Collection:
    """The collection of one split, after what the task itself makes of the data: only judged queries are there.

    Of documents, queries and judgements the line is their number, at the split's name in the folder. Raises
    Misconfigured for a task of another kind, several splits, IDs that stand twice or aren't text, and as `loaded_task`.
    """
    folder = files.corpus
    with loaded_task(folder, files.source) as task:
        if task.kind not in KINDS:
            raise _unfit(
                folder, f"{task.name}, a task of MTEB's kind {task.kind}", f"a task of kind {' or '.join(KINDS)}"
            )
        splits = chosen_splits(folder, task, files.splits)
        if len(splits) > 1:
            raise _unfit(folder, f"{len(splits)} splits, which bring a corpus each", "one split a suite")
        data, at = task.data[splits[0]], folder / splits[0]
        queries = tuple(_queries(data["queries"], at))
        lists = data.get(LISTS)
        return Collection(
            tuple(_documents(data["corpus"], at)),
            queries,
            tuple(_judgements(data["relevant_docs"], at)),
            task.revision,
            None if lists is None else tuple(_candidates(lists, queries, at / LISTS)),
        )


def with_instruction(text: str, instruction: str | None) -> str:
    """A query as MTEB's own loader hands it to a model: the text, a space, and its instruction where it has one."""
    return text if instruction is None else f"{text} {instruction}"


def _documents(rows: Any, at: Path) -> list[Document]:
    """Documents as of BEIR: title, space, text, stripped."""
    lines: dict[str, int] = {}
    documents = []
    for entry in _entries(rows, at):
        identifier = text_of(entry, "id")
        once(identifier, "document", entry.place, lines)
        title = "" if entry.keys.get("title") is None else text_of(entry, "title")
        documents.append(Document(identifier, f"{title} {text_of(entry, 'text')}".strip()))
    return documents


def _queries(rows: Any, at: Path) -> list[QueryRow]:
    lines: dict[str, int] = {}
    queries = []
    for entry in _entries(rows, at):
        identifier = text_of(entry, "id")
        once(identifier, "case", entry.place, lines)
        further = {key: value for key, value in entry.keys.items() if key not in ("id", "text")}
        own = None if entry.keys.get(INSTRUCTION) is None else text_of(entry, INSTRUCTION)
        queries.append(QueryRow(identifier, with_instruction(text_of(entry, "text"), own), further, entry.place))
    return queries


def _candidates(lists: Any, queries: Sequence[QueryRow], at: Path) -> Iterator[CandidateRow]:
    """By query in their order, each document once: MTEB ranks by ID. Lists of queries that nobody judged went with
    them.
    """
    for number, query in enumerate(queries, 1):
        for document in dict.fromkeys(lists.get(query.id) or ()):
            yield CandidateRow(query.id, checked_id(document, Place(at, number)), Place(at, number))


def _judgements(relevant: Any, at: Path) -> list[JudgementRow]:
    """By query and document ID: MTEB keeps no order of its judgements."""
    rows: list[JudgementRow] = []
    for query in sorted(relevant):
        for document, grade in sorted(relevant[query].items()):
            place = Place(at, len(rows) + 1)
            if int(grade) != grade:
                raise _unfit(at, f"grade {shown(str(grade))} of query {shown(query)}", "whole numbers")
            rows.append(JudgementRow(query, document, int(grade), place))
    return rows


def _entries(rows: Any, at: Path) -> list[Entry]:
    return [
        Entry(Place(at, number), {key: plain(value, Place(at, number)) for key, value in row.items()})
        for number, row in enumerate(rows, 1)
    ]


def _unfit(folder: Path, found: str, expected: str) -> Misconfigured:
    return Misconfigured(
        str(folder),
        found=found,
        expected=expected,
        mend="Name another task or split, or write the collection as BEIR's.",
    )
