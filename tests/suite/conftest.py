"""A small suite to change: two documents, two queries of one kind each."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.suite.case import Case

HEAD = """schema = "harness.suite.v1"
name = "small"
task = "retrieval"
source = { format = "beir", path = "." }
"""
METRICS = """[metrics]
primary = "nDCG@10"
report = ["nDCG@10", "RR@10"]
"""
RULE = """[[rules]]
id = "headline"
kind = "no-worse"
metric = "nDCG@10"
margin = 0.02
"""
CORPUS = [{"_id": "d1", "title": "Refunds", "text": "how to"}, {"_id": "d2", "title": "", "text": "Shipping"}]
QUERIES = [{"_id": "q1", "text": "money back", "kind": "plain"}, {"_id": "q2", "text": "shiping", "kind": "typo"}]
QRELS = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq2\td2\t1\nq2\td1\t0\n"

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a suite's folder; what isn't given is the small suite's."""

    def write_suite(
        *,
        toml: str | None = None,
        head: str = HEAD,
        cases: str = "",
        rest: str = METRICS + RULE,
        corpus: Sequence[Any] | bytes = CORPUS,
        queries: Sequence[Any] | bytes = QUERIES,
        qrels: str | bytes | dict[str, str] = QRELS,
    ) -> Path:
        folder = tmp_path / "small"
        (folder / "qrels").mkdir(parents=True, exist_ok=True)
        (folder / "suite.toml").write_text(toml if toml is not None else head + cases + rest, encoding="utf-8")
        for name, rows in (("corpus", corpus), ("queries", queries)):
            data = rows if isinstance(rows, bytes) else b"".join(_line(row) for row in rows)
            (folder / f"{name}.jsonl").write_bytes(data)
        for name, text in qrels.items() if isinstance(qrels, dict) else [("test.tsv", qrels)]:
            (folder / "qrels" / name).write_bytes(text if isinstance(text, bytes) else text.encode())
        return folder

    return write_suite


@pytest.fixture
def members() -> Callable[[Sequence[Case], str], list[str]]:
    """Stands in for SQL: understands `NAME = 'VALUE'`."""

    def select(cases: Sequence[Case], where: str) -> list[str]:
        name, value = re.fullmatch(r"(\w+) = '(\w+)'", where).groups()
        return [case.id for case in reversed(cases) if case.attributes.get(name) == value]

    return select


def _line(row: object) -> bytes:
    return (row if isinstance(row, str) else json.dumps(row)).encode() + b"\n"
