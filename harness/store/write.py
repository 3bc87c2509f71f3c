"""Writing in bulk: the rows under a key are replaced as a whole, from Arrow."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Column: TypeAlias = "Sequence[object] | NDArray[np.generic] | pa.Array"


def replace(
    connection: duckdb.DuckDBPyConnection, table: str, key: Mapping[str, str], columns: Mapping[str, Column]
) -> None:
    """Puts the rows in the place of those that have this key; the key's columns are the same in every row.

    Rows go in as one Arrow table: inserted one by one they would take a thousand times as long.
    """
    remove(connection, table, key)
    append(connection, table, key, columns)


def append(
    connection: duckdb.DuckDBPyConnection, table: str, key: Mapping[str, str], columns: Mapping[str, Column]
) -> None:
    """Adds rows that share this key; `replace` without taking any out."""
    rows = {name: values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()}
    connection.register("incoming", pa.table(rows))
    names = ", ".join([*key, *columns])
    marks = ", ".join([*("?" for _ in key), *(f"incoming.{name}" for name in columns)])
    connection.execute(f"INSERT INTO {table} ({names}) SELECT {marks} FROM incoming", list(key.values()))
    # Not in a `finally`: after a failed statement this one fails too, and its error would hide the first.
    connection.unregister("incoming")


def remove(connection: duckdb.DuckDBPyConnection, table: str, key: Mapping[str, str]) -> None:
    """Takes out every row that has this key."""
    condition = " AND ".join(f"{name} = ?" for name in key)
    connection.execute(f"DELETE FROM {table} WHERE {condition}", list(key.values()))


def update(
    connection: duckdb.DuckDBPyConnection, table: str, key: Mapping[str, str], values: Mapping[str, object]
) -> None:
    """Sets these columns in every row that has this key."""
    changes = ", ".join(f"{name} = ?" for name in values)
    condition = " AND ".join(f"{name} = ?" for name in key)
    connection.execute(f"UPDATE {table} SET {changes} WHERE {condition}", [*values.values(), *key.values()])


def finish(connection: duckdb.DuckDBPyConnection, run: str, step: str, seconds: float) -> None:
    """Marks a step as done, in the same transaction as what it wrote."""
    replace(connection, "steps", {"run": run, "step": step}, {"seconds": [seconds]})


def finished(connection: duckdb.DuckDBPyConnection, run: str, step: str) -> bool:
    """True once the step's transaction is committed."""
    return bool(connection.execute("SELECT 1 FROM steps WHERE run = ? AND step = ?", [run, step]).fetchall())
