"""Reading what the sides of a task without a corpus said, and what holds, as arrays in suite order."""

import json
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

import duckdb
import numpy as np
from numpy.typing import NDArray

from harness.output.companion import Companion
from harness.store.read import objects

Objects = NDArray[np.object_]
Rows = TypeVar("Rows", "GoldRows", "SaidRows")


@dataclass(frozen=True, slots=True)
class GoldRows:
    """What holds of every case [n] that has inputs; None (or NaN) where nobody knows. `starts` by answer, None unknown.

    `inputs` by name.
    """

    case_ids: Objects
    inputs: list[dict[str, str | list[str]]]
    label: list[str | None]
    labels: list[list[str] | None]
    value: NDArray[np.float64]
    tags: list[list[str] | None]
    answers: list[list[str] | None]
    starts: list[list[int | None] | None]
    choice: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class SaidRows:
    """What one side said of every case [n]. `status` as stored; a case without an output has None (or NaN).

    `labels` are the columns of `scores` as the data call them. `read` [w, 2]: characters of the context by window.
    """

    case_ids: Objects
    status: Objects
    non_finite: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    labels: tuple[str, ...]
    scores: list[NDArray[np.float64] | None]
    value: NDArray[np.float64]
    tags: list[list[str] | None]
    answer: list[str | None]
    span_start: list[int | None]
    span_end: list[int | None]
    score: NDArray[np.float64]
    null_score: NDArray[np.float64]
    read: list[NDArray[np.int64] | None]

    def matrix(self, width: int) -> NDArray[np.float64]:
        """Scores [n, width], NaN where there is no output."""
        none = np.full(width, np.nan)
        return np.stack([none if each is None else each for each in self.scores]) if self.scores else none[None][:0]


def taken(rows: Rows, index: NDArray[np.int64]) -> Rows:
    """The same rows of some cases."""
    picked: dict[str, Any] = {}
    for each in fields(rows):
        value = getattr(rows, each.name)
        if isinstance(value, np.ndarray):
            picked[each.name] = value[index]
        elif isinstance(value, list):
            picked[each.name] = [value[i] for i in index]
    return replace(rows, **picked)


OUTPUTS = """FROM outputs o JOIN runs r ON r.run = o.run
    JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = o.case_id
    LEFT JOIN task_outputs t ON t.run = o.run AND t.side = o.side AND t.case_id = o.case_id
    WHERE o.run = ? AND o.side = ? ORDER BY k.position"""
"""What a side said, in suite order."""


def golds(connection: duckdb.DuckDBPyConnection, suite_digest: str) -> GoldRows:
    """What holds of every case, in suite order."""
    rows = connection.execute(
        """SELECT k.case_id, g.inputs, g.label, g.labels, g.value, g.tags, g.answers, g.starts, g.choice
           FROM cases k JOIN golds g USING (suite_digest, case_id) WHERE k.suite_digest = ? ORDER BY k.position""",
        [suite_digest],
    ).fetchall()
    case_ids, inputs, label, labels, value, tags, answers, starts, choice = _columns(rows, 9)
    return GoldRows(
        case_ids=objects(case_ids),
        inputs=[json.loads(str(each)) for each in inputs],
        label=label,
        labels=labels,
        value=_numbers(value),
        tags=tags,
        answers=answers,
        starts=starts,
        choice=np.array([-1 if each is None else each for each in choice], dtype=np.int64),
    )


def said(connection: duckdb.DuckDBPyConnection, run: str, side: str) -> SaidRows:
    """One side's stored outputs, in suite order."""
    labels = connection.execute(
        "SELECT label FROM output_labels WHERE run = ? AND side = ? ORDER BY position", [run, side]
    ).fetchall()
    rows = connection.execute(
        f"""SELECT o.case_id, o.status, o.non_finite, coalesce(o.tokens_lost, 0) > 0, t.value, t.tags,
                   t.answer, t.span_start, t.span_end, t.score, t.null_score, t.read_start, t.read_end {OUTPUTS}""",
        [run, side],
    ).fetchall()
    case_ids, status, broken, cut, value, tags, answer, start, end, score, null_score, *read = _columns(rows, 13)
    return SaidRows(
        case_ids=objects(case_ids),
        status=objects(status),
        non_finite=np.array(broken, dtype=bool),
        truncated=np.array(cut, dtype=bool),
        labels=tuple(name for (name,) in labels),
        scores=_scores(connection, run, side),
        value=_numbers(value),
        tags=tags,
        answer=answer,
        span_start=start,
        span_end=end,
        score=_numbers(score),
        null_score=_numbers(null_score),
        read=[
            None if starts is None else np.array([starts, ends], dtype=np.int64).T
            for starts, ends in zip(*read, strict=True)
        ],
    )


def _scores(connection: duckdb.DuckDBPyConnection, run: str, side: str) -> list[NDArray[np.float64] | None]:
    """By case, views of one array: as numbers of Python those of many classes would take several times the room."""
    table = connection.sql(f"SELECT t.scores {OUTPUTS}", params=[run, side]).to_arrow_table()
    found: list[NDArray[np.float64] | None] = []
    for chunk in table.column(0).chunks:
        values, ends = chunk.values.to_numpy(zero_copy_only=False), chunk.offsets.to_numpy()
        there = chunk.is_valid().to_numpy(zero_copy_only=False)
        found += [
            values[start:end] if is_there else None
            for is_there, start, end in zip(there, ends[:-1], ends[1:], strict=True)
        ]
    return found


def companions(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, tuple[Companion, ...]]:
    """By side, what stands beside its metrics."""
    found: dict[str, list[Companion]] = {}
    rows = connection.execute(
        "SELECT side, name, content FROM companions WHERE run = ? ORDER BY side, position", [run]
    ).fetchall()
    for side, name, content in rows:
        found.setdefault(side, []).append(Companion.from_record(name, json.loads(content)))
    return {side: tuple(each) for side, each in found.items()}


def predictions(connection: duckdb.DuckDBPyConnection, run: str) -> dict[tuple[str, str], str | None]:
    """What each side's output comes to, by (side, case ID)."""
    rows = connection.execute("SELECT side, case_id, prediction FROM predictions WHERE run = ?", [run]).fetchall()
    return {(side, case_id): prediction for side, case_id, prediction in rows}


def _columns(rows: list[tuple[object, ...]], n: int) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in range(n)]


def _numbers(column: list[float | None]) -> NDArray[np.float64]:
    return np.array([np.nan if each is None else each for each in column], dtype=np.float64)
