"""Writing a bundle: canonical JSON and Parquet, whole or not at all, the same bytes for the same run."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

from harness.bundle.verify import SUMS
from harness.file.whole import new_folder
from harness.identity import Json, canonical_json, file_digest, text_digest


def write(folder: Path, records: Mapping[str, Json], tables: Mapping[str, pa.Table], texts: Mapping[str, str]) -> str:
    """Puts a bundle in place and gives its digest, that of SHA256SUMS.

    `records` become NAME.json, `tables` evidence/NAME.parquet, `texts` files of that name. Raises Stopped when the
    folder can't be written; what stood there before is replaced whole.
    """
    with new_folder(folder) as part:
        for name, record in records.items():
            (part / f"{name}.json").write_bytes(canonical_json(record) + b"\n")
        if tables:
            (part / "evidence").mkdir()
        for name, table in tables.items():
            # No statistics of the writer's host or time stand in Parquet; compression and version are fixed here.
            # Pages would follow the chunks in which a table happens to lie in memory.
            whole = table.combine_chunks()
            parquet.write_table(whole, part / "evidence" / f"{name}.parquet", compression="zstd", version="2.6")
        for name, text in texts.items():
            (part / name).write_text(text, encoding="utf-8", newline="\n")
        listed = sorted(path.relative_to(part).as_posix() for path in part.rglob("*") if path.is_file())
        sums = "".join(f"{file_digest(part / name)}  {name}\n" for name in listed)
        (part / SUMS).write_text(sums, encoding="utf-8", newline="\n")
    return text_digest(sums)
