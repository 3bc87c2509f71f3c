"""BEIR: corpus.jsonl, queries.jsonl and qrels/*.tsv with the columns query, document, grade."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import Misconfigured, NotFound
from harness.file.lines import read_lines, refuse
from harness.suite.definition import Source
from harness.suite.formats.collection import (
    Collection,
    DataFiles,
    JudgementRow,
    judgement,
    read_documents,
    read_judgements,
    read_queries,
)

HEADER = ("query-id", "corpus-id", "score")


def locate(base: Path, source: Source, mapped: Sequence[str]) -> DataFiles:
    """The collection's files under `base`; `mapped` are the qrels files that `[cases] role` names, if it does.

    Raises Misconfigured where several qrels files are there and none is named, NotFound where there is none.
    """
    corpus = base / (source.corpus or "corpus.jsonl")
    queries = base / (source.queries or "queries.jsonl")
    if mapped:
        return DataFiles(corpus, queries, tuple(base / name for name in mapped))
    if source.qrels:
        candidates = [base / source.qrels, base / "qrels" / source.qrels, base / "qrels" / f"{source.qrels}.tsv"]
        named = next((path for path in candidates if path.is_file()), candidates[0])
        return DataFiles(corpus, queries, (named,))
    found = sorted(path for path in (base / "qrels").glob("*.tsv") if not path.name.startswith("."))
    if not found:
        raise NotFound(
            str(base / "qrels"), found="no qrels/*.tsv", expected="a file of judgements",
            mend="Put qrels/test.tsv there, with the header query-id, corpus-id, score.",
        )  # fmt: skip
    if len(found) > 1:
        raise Misconfigured(
            str(base / "qrels"), found=f"{len(found)} files: {', '.join(path.name for path in found[:5])}",
            expected="one, or one that is named", mend=f'Add qrels = "{found[-1].stem}" to `source` in suite.toml.',
        )  # fmt: skip
    return DataFiles(corpus, queries, (found[0],))


def read(files: DataFiles) -> Collection:
    """The whole collection. Raises Misconfigured with file and line for whatever isn't as the format says."""
    return Collection(
        read_documents(files.corpus, ("_id",)),
        read_queries(files.queries, ("_id",)),
        read_judgements(files.qrels, _rows),
    )


def _rows(path: Path) -> Iterator[JudgementRow]:
    """Rows of a qrels file; the header may be left out, for then no judgement is lost."""
    for position, line in enumerate(read_lines(path)):
        columns = line.text.split("\t")
        if len(columns) != 3:
            refuse(
                line.place, f"{len(columns)} tab-separated columns", "three: query-id, corpus-id, score",
                'Separate them by tabs; a file of four columns is read with `source = { format = "trec", … }`.',
            )  # fmt: skip
        if position == 0 and tuple(name.strip().lower().replace("_", "-") for name in columns) == HEADER:
            continue
        yield judgement(columns[0], columns[1], columns[2].strip(), line.place)
