"""The tables that stand beside the metrics, both sides of each name together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.output.companion import Cell, Companion
from harness.report import number, text

SIDES = ("candidate", "parent")


@dataclass(frozen=True, slots=True)
class Beside:
    """One table of each side that has it, by side, the candidate's first; never of none."""

    name: str
    sides: Mapping[str, Companion]

    @property
    def title(self) -> str:
        return next(iter(self.sides.values())).title

    @property
    def columns(self) -> tuple[str, ...]:
        """Those of every side, each once, as they first stand."""
        return tuple(dict.fromkeys(column for each in self.sides.values() for column in each.columns))

    @property
    def one_row(self) -> bool:
        """Whether each side has a single row of the same columns, which reads best turned upright."""
        return all(len(each.rows) == 1 and each.columns == self.columns for each in self.sides.values())

    def cells(self, column: str) -> list[Cell]:
        """What stands in a column on every side that has it."""
        return [
            row[each.columns.index(column)]
            for each in self.sides.values()
            if column in each.columns
            for row in each.rows
        ]

    def numeric(self, column: str) -> bool:
        """Whether a column has numbers and nothing else."""
        said = [cell for cell in self.cells(column) if cell is not None]
        return bool(said) and not any(isinstance(cell, str) for cell in said)

    @property
    def words(self) -> int:
        """How many columns have words, which need more room than numbers."""
        return sum(not self.numeric(column) for column in self.columns)

    def digits(self, column: str) -> int:
        """Decimals of a column, on both sides."""
        return number.decimals(cell for cell in self.cells(column) if isinstance(cell, float))

    def shown(self, column: str, cell: Cell) -> str:
        """A cell as one reads it: a count, a number with its column's decimals, or words; a dash where it is silent."""
        if cell is None or isinstance(cell, float):
            return number.value(cell, self.digits(column))
        return text.clipped(cell, text.LONGEST_NAME) if isinstance(cell, str) else number.count(cell)


@dataclass(frozen=True, slots=True)
class Row:
    """One row of both sides under the words that it begins with; a side's cells are None where it has no such row."""

    key: tuple[Cell, ...]
    candidate: tuple[Cell, ...] | None
    parent: tuple[Cell, ...] | None


def paired(companions: Mapping[str, Sequence[Companion]]) -> tuple[Beside, ...]:
    """Tables by name, in the candidate's order, then those that the parent alone has."""
    names = dict.fromkeys(each.name for side in SIDES for each in companions.get(side, ()))
    found = {side: {each.name: each for each in companions.get(side, ())} for side in SIDES}
    return tuple(
        Beside(name, {side: tables[name] for side, tables in found.items() if name in tables}) for name in names
    )


def is_matrix(table: Companion) -> bool:
    """Whether rows and columns are of the same names in the same order, so that a diagonal means agreement."""
    return len(table.rows) > 1 and table.columns[1:] == tuple(row[0] for row in table.rows)


def joined(beside: Beside) -> tuple[Row, ...]:
    """Rows of both sides joined by the words that they begin with (where there are none, by their first cell): the
    candidate's, then those that the parent alone has. A row that stands twice is joined in order.
    """
    width = _key_width(beside)
    by_side = {side: _by_key(table, width) for side, table in beside.sides.items()}
    keys = dict.fromkeys(key for side in SIDES for key in by_side.get(side, {}))
    candidate, parent = (by_side.get(side, {}) for side in SIDES)
    return tuple(Row(key[:-1], candidate.get(key), parent.get(key)) for key in keys)


def _key_width(beside: Beside) -> int:
    width = 0
    while width < len(beside.columns) and not beside.numeric(beside.columns[width]):
        width += 1
    return min(max(width, 1), max(1, len(beside.columns) - 1))


def _by_key(table: Companion, width: int) -> dict[tuple[Cell, ...], tuple[Cell, ...]]:
    """Cells behind the key, by the key and how often it stood before."""
    found: dict[tuple[Cell, ...], tuple[Cell, ...]] = {}
    for row in table.rows:
        nth = 0
        while (*row[:width], nth) in found:
            nth += 1
        found[(*row[:width], nth)] = row[width:]
    return found
