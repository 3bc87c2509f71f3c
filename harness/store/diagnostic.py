"""What the store has of spaces and of how rankings agree."""

from collections.abc import Sequence
from dataclasses import dataclass

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.output.diagnostic import Diagnostic
from harness.store.read import objects
from harness.store.write import replace

COLUMNS = ("name", "texts", "quantile", "value", "n", "absent")
TYPES = (pa.string(), pa.string(), pa.float64(), pa.float64(), pa.int64(), pa.string())


def record_vector_diagnostics(
    connection: duckdb.DuckDBPyConnection, run: str, side: str, release: str, told: Sequence[Diagnostic]
) -> None:
    """Of one side's vectors; they follow its outputs wherever these are taken."""
    _record(connection, "vector_diagnostics", {"run": run, "side": side, "release": release}, told)


def record_ranking_diagnostics(
    connection: duckdb.DuckDBPyConnection, run: str, side: str, told: Sequence[Diagnostic]
) -> None:
    """Of one side's stored rankings, or of both sides'."""
    _record(connection, "ranking_diagnostics", {"run": run, "side": side}, told)


def _record(connection: duckdb.DuckDBPyConnection, table: str, key: dict[str, str], told: Sequence[Diagnostic]) -> None:
    replace(connection, table, key, {
        "position": np.arange(1, len(told) + 1),
        **{
            name: pa.array([getattr(each, name) for each in told], kind)
            for name, kind in zip(COLUMNS, TYPES, strict=True)
        },
    })  # fmt: skip


def diagnostics(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[Diagnostic, ...]:
    """Of a run, vectors before rankings."""
    names = ", ".join(COLUMNS)
    rows = [
        row
        for table in ("vector_diagnostics", "ranking_diagnostics")
        for row in connection.execute(
            f"SELECT side, {names} FROM {table} WHERE run = ? ORDER BY side, position", [run]
        ).fetchall()
    ]
    # By the columns' names, for those of the record stand in another order.
    return tuple(Diagnostic(side=side, **dict(zip(COLUMNS, row, strict=True))) for side, *row in rows)


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """One case's documents and their scores [r], falling."""

    documents: NDArray[np.object_]
    scores: NDArray[np.float64]


def heads(connection: duckdb.DuckDBPyConnection, run: str, side: str, depth: int) -> dict[str, Ranked]:
    """By promotion case, one side's documents whose rank is within the depth, with all that tie there."""
    rows = connection.execute(
        """SELECT g.case_id, g.document_id, g.score
           FROM runs r JOIN cases k ON k.suite_digest = r.suite_digest AND k.role = 'promotion'
           JOIN rankings g ON g.run = r.run AND g.side = ? AND g.case_id = k.case_id
           WHERE r.run = ?
           QUALIFY rank() OVER (PARTITION BY g.case_id ORDER BY g.score DESC) <= ?
           ORDER BY k.position, g.score DESC, g.position""",
        [side, run, depth],
    ).fetchnumpy()
    cases, documents = objects(rows["case_id"]), objects(rows["document_id"])
    scores = np.asarray(rows["score"], dtype=np.float64)
    found: dict[str, Ranked] = {}
    if not len(cases):
        return found
    start = 0
    for end in (np.flatnonzero(np.concatenate([cases[1:] != cases[:-1], [True]])) + 1).tolist():
        found[str(cases[start])] = Ranked(documents[start:end], scores[start:end])
        start = end
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Margins:
    """Over one side's promotion cases: the first score minus the second [a], where there are two; the best of a
    relevant document minus the best of any other [b], where both were ranked.
    """

    second: NDArray[np.float64]
    relevant: NDArray[np.float64]


def margins(connection: duckdb.DuckDBPyConnection, run: str, side: str) -> Margins:
    """From the stored scores."""
    rows = connection.execute(
        """SELECT max(g.score) FILTER (g.position = 1) - max(g.score) FILTER (g.position = 2) AS second,
                  max(g.score) FILTER (coalesce(j.grade, 0) > 0) - max(g.score) FILTER (coalesce(j.grade, 0) <= 0)
                      AS relevant
           FROM runs r JOIN cases k ON k.suite_digest = r.suite_digest AND k.role = 'promotion'
           JOIN rankings g ON g.run = r.run AND g.side = ? AND g.case_id = k.case_id
           LEFT JOIN judgements j ON j.suite_digest = k.suite_digest AND j.case_id = k.case_id
                                  AND j.document_id = g.document_id
           WHERE r.run = ? GROUP BY k.position ORDER BY k.position""",
        [side, run],
    ).fetchall()
    return Margins(*(np.array([row[at] for row in rows if row[at] is not None], dtype=np.float64) for at in (0, 1)))
