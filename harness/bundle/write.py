"""Writing a bundle: canonical JSON and Parquet, whole or not at all, the same bytes for the same run."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa
from pyarrow import parquet

from harness.bundle.verify import SUMS
from harness.file.whole import new_folder
from harness.identity import Json, canonical_json, file_digest, text_digest

# Rows that are put into one chunk of memory and written together.
GROUP = 1 << 16


class Table(Protocol):
    """A table's name, and its rows as they come."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> pa.RecordBatchReader: ...


def write(folder: Path, records: Mapping[str, Json], tables: Iterable[Table], texts: Mapping[str, str]) -> str:
    """Puts a bundle in place and gives its digest, that of SHA256SUMS.

    `records` become NAME.json, `tables` evidence/NAME.parquet, `texts` files of that name. Raises Stopped when the
    folder can't be written; what stood there before is replaced whole.
    """
    with new_folder(folder) as part:
        for name, record in records.items():
            (part / f"{name}.json").write_bytes(canonical_json(record) + b"\n")
        for each in tables:
            (part / "evidence").mkdir(exist_ok=True)
            _write_table(each.rows, part / "evidence" / f"{each.name}.parquet")
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8", newline="\n")
        listed = sorted(path.relative_to(part).as_posix() for path in part.rglob("*") if path.is_file())
        sums = "".join(f"{file_digest(part / name)}  {name}\n" for name in listed)
        (part / SUMS).write_text(sums, encoding="utf-8", newline="\n")
    return text_digest(sums)


def _write_table(rows: pa.RecordBatchReader, file: Path) -> None:
    """No statistics of the writer's host or time stand in Parquet; compression and version are fixed here.

    Pages would follow the chunks in which rows happen to come, so each group of them is one chunk.
    """
    with parquet.ParquetWriter(file, rows.schema, compression="zstd", version="2.6") as writer:
        for group in _groups(rows):
            writer.write_table(group, row_group_size=GROUP)


def _groups(rows: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """GROUP rows each, but for the last; at least one, for a table without rows has columns all the same."""
    taken: list[pa.RecordBatch] = []
    count = 0
    for batch in rows:
        start = 0
        while start < batch.num_rows:
            part = batch.slice(start, GROUP - count)
            taken.append(part)
            start, count = start + part.num_rows, count + part.num_rows
            if count == GROUP:
                yield pa.Table.from_batches(taken, rows.schema).combine_chunks()
                taken, count = [], 0
    yield pa.Table.from_batches(taken, rows.schema).combine_chunks()
