"""From a suite's folder to a suite in memory."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import cast

from harness.errors import Misconfigured, NotFound
from harness.file.lines import listed, refuse, shown
from harness.file.toml import place, read_toml
from harness.identity import file_digest
from harness.output.judgement import Judgement
from harness.suite.attribute import ANSWERABLE, read_attributes
from harness.suite.candidates import Candidates, chosen, read_candidates
from harness.suite.case import Case, Counts, Document, Suite
from harness.suite.definition import RANKED, SuiteDefinition
from harness.suite.examples import assembled
from harness.suite.formats import beir, conll, jsonl, mteb, mteb_collection, squad, table, trec
from harness.suite.formats.collection import Collection, DataFiles, JudgementRow, QueryRow
from harness.suite.formats.example import CaseTask, ExampleFiles
from harness.suite.identifier import near_equal, near_equal_warnings
from harness.suite.policy import check
from harness.suite.role import assign_groups, assign_roles, check_groups, check_windows, group_warnings, places

DEFINITION = "suite.toml"
# Of a corpus with queries, and of cases by themselves.
COLLECTIONS: Mapping[str, ModuleType] = {"beir": beir, "trec": trec, "mteb": mteb_collection}
EXAMPLES: Mapping[str, ModuleType] = {"jsonl": jsonl, "table": table, "conll": conll, "squad": squad, "mteb": mteb}

# Formats of one task alone.
OF_TASK = {"squad": "answer", "conll": "entity"}


def load(folder: Path) -> Suite:
    """The suite, whole.

    Raises NotFound for a missing file, Leaked for a case or group in two roles, Misconfigured with file and line
    for everything else that `suite.toml` or the data may have wrong.
    """
    definition = read_definition(folder)
    files = data_files(folder, definition)
    digests = file_digests(folder, files)
    task, format = definition.task, definition.source.format
    if isinstance(files, DataFiles):
        return _assembled(folder, definition, files, COLLECTIONS[format].read(files), digests)
    own = cast(CaseTask, task)
    return assembled(folder, definition, own, EXAMPLES[format].read(files, definition.source, own), digests)


def read_definition(folder: Path) -> SuiteDefinition:
    """`suite.toml`, checked. Raises NotFound where it isn't there, Misconfigured for what is wrong in it."""
    path = folder / DEFINITION
    if not path.is_file():
        raise NotFound(
            str(folder), found=f"no {DEFINITION}" if folder.is_dir() else "no such folder",
            expected="a suite's folder, or the name of one under ./suites", mend="Check the path.",
        )  # fmt: skip
    definition = read_toml(path, SuiteDefinition)
    fit = [each for each in EXAMPLES if OF_TASK.get(each, definition.task) == definition.task]
    formats = list(COLLECTIONS) if definition.task in RANKED else fit
    if definition.source.format not in formats:
        raise Misconfigured(
            place(path, "source"), found=f"{definition.source.format!r} for a suite of {definition.task}",
            expected=f"one of {', '.join(formats)}", mend="Name another format, or mend `task`.",
        )  # fmt: skip
    check(definition, path)
    return definition


def data_files(folder: Path, definition: SuiteDefinition) -> DataFiles | ExampleFiles:
    """Where the data lie. Raises Misconfigured for a path that isn't relative, and as the format does."""
    source, role = definition.source, definition.cases.role
    mapped = list(role) if isinstance(role, dict) else []
    given = None if definition.candidates is None else definition.candidates.path
    named = [source.path, source.corpus, source.queries, source.qrels, *mapped, given]
    unfit = next((path for path in named if path and (Path(path).is_absolute() or "\0" in path)), None)
    if unfit:
        raise Misconfigured(
            place(folder / DEFINITION, "candidates" if unfit == given else "source"),
            found=f"the path {shown(unfit)}, which is absolute or holds NUL",
            expected="a path from the suite's folder, so that the suite can be moved", mend="Write it relative.",
        )  # fmt: skip
    if mapped and source.qrels:
        raise Misconfigured(
            place(folder / DEFINITION, "source"), found=f"qrels = {shown(source.qrels)} beside a role for every file",
            expected="judgement files named in one place", mend="Take `qrels` out of `source`.",
        )  # fmt: skip
    if definition.task not in RANKED:
        examples: ExampleFiles = EXAMPLES[source.format].locate(folder / source.path, source, mapped)
        return examples
    files: DataFiles = COLLECTIONS[source.format].locate(folder / source.path, source, mapped)
    return replace(files, candidates=None if given is None else folder / given)


def file_digests(folder: Path, files: DataFiles | ExampleFiles) -> dict[str, str]:
    """SHA-256 of every data file, by its path from the suite's folder. Raises NotFound, Misconfigured."""
    digests: dict[str, str] = {}
    for path in files.all:
        try:
            digests[Path(os.path.relpath(path, folder)).as_posix()] = file_digest(path)
        except FileNotFoundError:
            raise NotFound(
                str(path), found="no such file", expected="a data file of the suite",
                mend="Put it there, or correct what names it in suite.toml.",
            ) from None  # fmt: skip
        except OSError as error:
            refuse(path, error.strerror or str(error), "a file that can be read", "Check `source` in suite.toml.")
    return digests


def _assembled(
    folder: Path, definition: SuiteDefinition, files: DataFiles, read: Collection, digests: Mapping[str, str]
) -> Suite:
    if not read.documents:
        raise Misconfigured(
            str(folder), found="no document", expected="a corpus to search", mend="Add documents to the corpus."
        )
    policy = definition.cases
    attributes = read_attributes(read.queries)
    rows = dict(zip((query.id for query in read.queries), attributes.by_query, strict=True))
    judgements, dangling = _without_dangling(definition, read)
    answerable = {query.id for query in read.queries if rows[query.id].get(ANSWERABLE, True)}
    queries, unjudged = _without_unjudged(definition, read.queries, judgements, answerable)
    _check_unanswerable(judgements, answerable)
    if not queries:
        raise Misconfigured(
            str(folder), found="no case", expected="at least one query that counts", mend="Add queries."
        )
    kept = [rows[query.id] for query in queries]
    roles = assign_roles(queries, kept, judgements, policy, folder / definition.source.path)
    groups = assign_groups(queries, kept, policy)
    check_groups(queries, roles, groups)
    check_windows(queries, kept, policy)
    cases = tuple(
        Case(query.id, query.text, role, group, query.id in answerable, row)
        for query, role, group, row in zip(queries, roles, groups, kept, strict=True)
    )
    given = _given(definition, files, read, [case.id for case in cases])
    alike = [near_equal(case.id for case in cases), near_equal(document.id for document in read.documents)]
    shared = {case.id for case in cases} & {document.id for document in read.documents}
    counts = Counts(
        dangling_dropped=len(dangling),
        unjudged_dropped=len(unjudged),
        candidates_dropped=0 if given is None else given.dropped,
        empty_documents=sum(not document.text for document in read.documents),
        near_equal_ids=sum(each.count for each in alike),
        shared_ids=len(shared),
    )
    relevant = {row.case_id for row in judgements if row.grade > 0}
    warnings = [
        *_dropped_warnings(dangling, unjudged),
        *([] if given is None else given.warnings(judgements)),
        *attributes.left_out,
        *near_equal_warnings(alike[0], "case IDs"),
        *near_equal_warnings(alike[1], "document IDs"),
        *group_warnings(queries, kept, policy.group),
        *_text_warnings(cases, read.documents, relevant),
    ]
    if shared:
        warnings.append(
            f"{len(shared)} IDs name both a query and a document, as {shown(min(shared))}; "
            f'[ranking] self_match = "{definition.ranking.self_match}" decides whether a query may find itself'
        )
    return Suite(
        definition=definition,
        folder=folder,
        cases=cases,
        documents=read.documents,
        judgements=tuple(Judgement(row.case_id, row.document_id, row.grade) for row in judgements),
        files=digests,
        counts=counts,
        warnings=tuple(warnings),
        candidates=None if given is None else given.by_case,
        revision=read.revision,
        places=places(folder, queries),
    )


def _given(
    definition: SuiteDefinition, files: DataFiles, read: Collection, case_ids: Sequence[str]
) -> Candidates | None:
    """Those of a file of their own, or else those that the collection brings to a suite that ranks given documents."""
    queries, documents = {query.id for query in read.queries}, {document.id for document in read.documents}
    dangling = definition.cases.dangling
    if definition.candidates is not None and files.candidates is not None:
        return read_candidates(
            files.candidates, definition.candidates.format, case_ids=case_ids, queries=queries, documents=documents,
            dangling=dangling,
        )  # fmt: skip
    if definition.task != "reranking":
        return None
    if read.candidates is None:
        raise Misconfigured(
            str(files.corpus), found="a task without lists of documents to rank", expected="such a list, or a file of "
            "candidates", mend='Add [candidates] with path = "candidates.tsv", or write task = "retrieval".',
        )  # fmt: skip
    return chosen(
        files.corpus, read.candidates, case_ids=case_ids, queries=queries, documents=documents, dangling=dangling
    )


def _without_dangling(definition: SuiteDefinition, read: Collection) -> tuple[list[JudgementRow], list[JudgementRow]]:
    """Judgements whose query and document are there, and the others."""
    queries = {query.id for query in read.queries}
    documents = {document.id for document in read.documents}
    kept: list[JudgementRow] = []
    dangling: list[JudgementRow] = []
    for row in read.judgements:
        (kept if row.case_id in queries and row.document_id in documents else dangling).append(row)
    if dangling and definition.cases.dangling == "refuse":
        missing = (
            f"query {shown(row.case_id)}" if row.case_id not in queries else f"document {shown(row.document_id)}"
            for row in dangling[:3]
        )
        refuse(
            dangling[0].place, f"{len(dangling)} judgements name what isn't there: {', '.join(missing)}"
            + (", …" if len(dangling) > 3 else ""),
            "judgements of queries and documents that the suite has",
            'Correct the files, or write dangling = "drop" under [cases] in suite.toml.',
        )  # fmt: skip
    return kept, dangling


def _without_unjudged(
    definition: SuiteDefinition, queries: Sequence[QueryRow], judgements: Sequence[JudgementRow], answerable: set[str]
) -> tuple[list[QueryRow], list[QueryRow]]:
    """Queries that are judged or meant to have no answer, and the others."""
    judged = {row.case_id for row in judgements}
    kept: list[QueryRow] = []
    unjudged: list[QueryRow] = []
    for query in queries:
        (unjudged if query.id in answerable and query.id not in judged else kept).append(query)
    if unjudged and definition.cases.unjudged == "refuse":
        refuse(
            unjudged[0].place, f"{len(unjudged)} queries without a judgement: {listed(each.id for each in unjudged)}",
            'a judgement for every query, or "answerable": false on one that no document answers',
            'Judge them, or write unjudged = "drop" under [cases] in suite.toml.',
        )  # fmt: skip
    return kept, unjudged


def _check_unanswerable(judgements: Sequence[JudgementRow], answerable: set[str]) -> None:
    for row in judgements:
        if row.grade > 0 and row.case_id not in answerable:
            refuse(
                row.place, f"document {shown(row.document_id)} is relevant to {shown(row.case_id)}, which is not "
                "answerable",
                'no relevant document where a query says "answerable": false',
                "Correct the grade, or take `answerable` out of the query.",
            )  # fmt: skip


def _dropped_warnings(dangling: Sequence[JudgementRow], unjudged: Sequence[QueryRow]) -> list[str]:
    warnings = []
    if dangling:
        warnings.append(f"{len(dangling)} judgements of what isn't there dropped (first: {dangling[0].place})")
    if unjudged:
        warnings.append(f"{len(unjudged)} queries without a judgement dropped (first: {unjudged[0].place})")
    return warnings


def _text_warnings(cases: Sequence[Case], documents: Sequence[Document], relevant: set[str]) -> list[str]:
    blank = [case.id for case in cases if not case.text.strip()]
    empty = [document.id for document in documents if not document.text]
    vain = [case.id for case in cases if case.answerable and case.id not in relevant]
    return [
        f"{len(ids)} {what}: {listed(ids)}"
        for ids, what in (
            (blank, "cases have a blank text"),
            (empty, "documents have an empty text"),
            (vain, "cases are judged but have no relevant document"),
        )
        if ids
    ]
