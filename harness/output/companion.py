"""A table that stands beside a metric, so that the metric is honest."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias, cast

from harness.identity import Json

Cell: TypeAlias = str | int | float | None


@dataclass(frozen=True, slots=True)
class Companion:
    """`columns` name the cells of every row; None is a cell that says nothing. `note` says how to read it."""

    name: str
    title: str
    note: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def as_record(self) -> dict[str, Json]:
        return {
            "title": self.title,
            "note": self.note,
            "columns": list(self.columns),
            "rows": [[None if isinstance(cell, float) and cell != cell else cell for cell in row] for row in self.rows],
        }

    @classmethod
    def from_record(cls, name: str, record: Mapping[str, Json]) -> "Companion":
        rows = cast(list[list[Cell]], record["rows"])
        columns = cast(list[str], record["columns"])
        return cls(name, str(record["title"]), str(record["note"]), tuple(columns), tuple(tuple(row) for row in rows))
