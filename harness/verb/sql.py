"""`harness sql`: read-only SQL over the store."""

import csv
import json
import sys
from datetime import date, datetime
from decimal import Decimal

from harness.report.text import in_one_line
from harness.store.query import Rows, query
from harness.verb.place import find_place

# Columns of a table that no terminal limits.
WIDE = 10_000


def sql(text: str, *, store: str | None = None) -> Rows:
    """One statement that reads. Raises Misconfigured for any other, NotFound without a store, Stopped when held."""
    return query(find_place(store=store).store, text)


def print_rows(found: Rows, form: str) -> None:
    """Prints rows as a table for people, CSV, or one JSON object."""
    if form == "json":
        rows = [[_plain(value) for value in row] for row in found.rows]
        print(json.dumps({"columns": list(found.columns), "rows": rows}, ensure_ascii=True))
    elif form == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerow(found.columns)
        writer.writerows(found.rows)
    else:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text

        table = Table(show_edge=False)
        for name in found.columns:
            table.add_column(Text(in_one_line(name)), overflow="fold")
        for row in found.rows:
            table.add_row(*(Text(in_one_line(_shown(value))) for value in row))
        # Into a file or a pipe nothing is folded: a row is a line.
        console = Console()
        if not console.is_terminal:
            console = Console(width=WIDE)
        # Rich itself would leave with exit code 1 where a reader of the pipe has left.
        with console.capture() as printed:
            console.print(table, soft_wrap=not console.is_terminal)
        sys.stdout.write(printed.get())


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _plain(value: object) -> object:
    """A value that JSON has: an instant as text, a number that isn't finite as null."""
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else None
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (datetime, date)):
        return value.isoformat()
    return value if isinstance(value, (bool, int, str)) or value is None else str(value)
