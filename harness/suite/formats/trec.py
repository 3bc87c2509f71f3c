"""TREC: a corpus and queries, as JSON Lines or two tab-separated columns, and qrels of four columns."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import Misconfigured
from harness.file.lines import read_lines, refuse, split_columns
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


def locate(base: Path, source: Source, mapped: Sequence[str]) -> DataFiles:
    """The files that `source` names; `mapped` are the qrels files that `[cases] role` names, if it does.

    Raises Misconfigured where one isn't named.
    """
    qrels = tuple(mapped) or ((source.qrels,) if source.qrels else ())
    if not source.corpus or not source.queries or not qrels:
        named = {"corpus": source.corpus, "queries": source.queries, "qrels": qrels}
        raise Misconfigured(
            str(base), found=f"`source` names no {', no '.join(key for key, value in named.items() if not value)}",
            expected="the three files of a trec suite",
            mend='Write source = { format = "trec", corpus = "…", queries = "…", qrels = "…" } in suite.toml.',
        )  # fmt: skip
    return DataFiles(base / source.corpus, base / source.queries, tuple(base / name for name in qrels))


def read(files: DataFiles) -> Collection:
    """The whole collection. Raises Misconfigured with file and line for whatever isn't as the format says."""
    return Collection(
        read_documents(files.corpus, ("_id", "id")),
        read_queries(files.queries, ("_id", "id")),
        read_judgements(files.qrels, _rows),
    )


def _rows(path: Path) -> Iterator[JudgementRow]:
    for line in read_lines(path):
        columns = split_columns(line)
        if len(columns) != 4:
            refuse(
                line.place, f"{len(columns)} columns", "four: query, iteration (ignored), document, grade",
                'Separate them by blanks or tabs; three columns are read with `source = { format = "beir", … }`.',
            )  # fmt: skip
        yield judgement(columns[0], columns[2], columns[3], line.place)
