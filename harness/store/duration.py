"""What reading texts took, and what a plan asks to be read: the part of the store that holds clocks."""

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from harness.output.duration import Encoding, Pace
from harness.store import write

PLANNED = "planned"


def record_passes(connection: duckdb.DuckDBPyConnection, run: str, passes: Sequence[Pace]) -> None:
    """In the place of what this run measured of the same before."""
    for each in passes:
        key = {"run": run, "pass_key": each.pass_key, "side": each.side}
        columns = [name for name in Pace.__dataclass_fields__ if name not in key]
        write.replace(connection, "passes", key, {name: [getattr(each, name)] for name in columns})


def record_plan(connection: duckdb.DuckDBPyConnection, run: str, encodings: Sequence[Encoding]) -> None:
    """The actions that encode; a plan without any is one too."""
    types = {str: pa.string(), int: pa.int64()}
    whole = ("position", "items", "of_items", "tokens")
    write.replace(connection, "plans", {"run": run}, {
        name: pa.array([getattr(each, name) for each in encodings], types[int if name in whole else str])
        for name in Encoding.__dataclass_fields__
    })  # fmt: skip
    write.finish(connection, run, PLANNED, 0.0)


def plan(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[Encoding, ...] | None:
    """A run's actions that encode, in the plan's order; None where the run has no plan."""
    if not write.finished(connection, run, PLANNED):
        return None
    columns = ", ".join(Encoding.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM plans WHERE run = ? ORDER BY position", [run]).fetchall()
    return tuple(Encoding(*row) for row in rows)


def measured(connection: duckdb.DuckDBPyConnection, run: str, pass_key: str, side: str | None) -> Pace | None:
    """What tells best how long such a pass takes: of this run, else the latest of any; of the side's own texts, else of
    others. None where nothing was measured.
    """
    columns = ", ".join(Pace.__dataclass_fields__)
    rows = connection.execute(
        f"""SELECT {columns} FROM passes WHERE pass_key = ? AND tokens > 0 AND seconds > 0
            ORDER BY side IS DISTINCT FROM ?, run <> ?, measured_at DESC, run, side LIMIT 1""",
        [pass_key, side, run],
    ).fetchall()
    return Pace(*rows[0]) if rows else None
