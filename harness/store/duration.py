"""What reading texts took, and what a plan asks to be read: the part of the store that holds clocks."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import duckdb
import pyarrow as pa

from harness.store import write

PLANNED = "planned"


@dataclass(frozen=True, slots=True)
class PassRecord:
    """One row of `passes`."""

    run: str
    pass_key: str
    side: str
    measured_at: datetime
    texts: int
    tokens: int
    seconds: float
    threads: int
    backend: str
    machine: str


@dataclass(frozen=True, slots=True)
class EncodingRecord:
    """One row of `plans`, without its run."""

    position: int
    action: str
    namespace: str
    made_from: str | None
    pass_key: str | None
    side: str | None
    items: int | None
    of_items: int | None
    tokens: int | None


def record_passes(connection: duckdb.DuckDBPyConnection, run: str, passes: Sequence[PassRecord]) -> None:
    """In the place of what this run measured of the same before."""
    for each in passes:
        key = {"run": run, "pass_key": each.pass_key, "side": each.side}
        columns = [name for name in PassRecord.__dataclass_fields__ if name not in key]
        write.replace(connection, "passes", key, {name: [getattr(each, name)] for name in columns})


def record_plan(connection: duckdb.DuckDBPyConnection, run: str, encodings: Sequence[EncodingRecord]) -> None:
    """The actions that encode; a plan without any is one too."""
    types = {str: pa.string(), int: pa.int64()}
    whole = ("position", "items", "of_items", "tokens")
    write.replace(connection, "plans", {"run": run}, {
        name: pa.array([getattr(each, name) for each in encodings], types[int if name in whole else str])
        for name in EncodingRecord.__dataclass_fields__
    })  # fmt: skip
    write.finish(connection, run, PLANNED, 0.0)


def plan(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[EncodingRecord, ...] | None:
    """A run's actions that encode, in the plan's order; None where the run has no plan."""
    if not write.finished(connection, run, PLANNED):
        return None
    columns = ", ".join(EncodingRecord.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM plans WHERE run = ? ORDER BY position", [run]).fetchall()
    return tuple(EncodingRecord(*row) for row in rows)


def measured(connection: duckdb.DuckDBPyConnection, run: str, pass_key: str, side: str | None) -> PassRecord | None:
    """What tells best how long such a pass takes: of this run, else the latest of any; of the side's own texts, else of
    others. None where nothing was measured.
    """
    columns = ", ".join(PassRecord.__dataclass_fields__)
    rows = connection.execute(
        f"""SELECT {columns} FROM passes WHERE pass_key = ? AND tokens > 0 AND seconds > 0
            ORDER BY side IS DISTINCT FROM ?, run <> ?, measured_at DESC, run, side LIMIT 1""",
        [pass_key, side, run],
    ).fetchall()
    return PassRecord(*rows[0]) if rows else None
