"""SQL that people write: read-only over the store, or a slice's condition over the cases' attributes."""

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import duckdb
import pyarrow as pa

from harness.errors import Misconfigured
from harness.store.connection import Connection, Store, connect

# Seconds after which a slice's condition is given up: a recursive one may never end.
LONGEST_CONDITION = 60.0


@dataclass(frozen=True, slots=True)
class Rows:
    """A query's result, row by row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]


def query(store: Store, text: str) -> Rows:
    """One SELECT over the store.

    Raises Misconfigured for what isn't a single reading statement or what DuckDB refuses.
    """
    with store.reading() as connection:
        try:
            text.encode("utf-8")
            statements = connection.extract_statements(text)
            if len(statements) != 1 or statements[0].type not in (
                duckdb.StatementType.SELECT,
                duckdb.StatementType.EXPLAIN,
            ):
                raise Misconfigured(
                    "the SQL",
                    found=f"{len(statements)} statements" if len(statements) != 1 else "a statement that writes",
                    expected="one statement that reads (SELECT, WITH, FROM, DESCRIBE, SHOW)",
                    mend="The store is open for reading only; write results elsewhere with --format csv.",
                )
            result = connection.execute(statements[0])
            return Rows(tuple(column[0] for column in result.description or ()), tuple(result.fetchall()))
        except (duckdb.Error, UnicodeEncodeError) as refusal:
            raise Misconfigured(
                "the SQL", found=str(refusal).strip(), expected="SQL that DuckDB can run over the store alone",
                mend="`SHOW TABLES` lists tables and views, `DESCRIBE rankings` the columns of one.",
            ) from refusal  # fmt: skip


def select(case_ids: Sequence[str], attributes: Mapping[str, Sequence[object]], where: str, subject: str) -> list[str]:
    """The cases that a slice's condition holds for, in the order given.

    `attributes` are columns beside `case_ids`; NULL where a case lacks one, and then the condition does not hold.
    Raises Misconfigured (naming `subject`) for a condition that isn't one or names what isn't there.
    """
    position = "#" * (1 + max(map(len, attributes), default=0))  # a name that no attribute has
    columns: dict[str, Sequence[object]] = {position: range(len(case_ids)), **attributes}
    arrays = {name: pa.array(list(values)) for name, values in columns.items()}
    connection = _sealed().cursor()
    try:
        where.encode("utf-8")
        connection.register("cases", pa.table(arrays))
        # A text that closes the bracket it stands in and goes on behind it does not parse inside the other kind.
        connection.extract_statements(f"SELECT [{where}\n]")
        statements = connection.extract_statements(f'SELECT "{position}" FROM cases WHERE ({where}\n) ORDER BY 1')
        if len(statements) != 1:
            raise duckdb.ParserException("more than one statement")
        timer = threading.Timer(LONGEST_CONDITION, connection.interrupt)
        timer.start()
        try:
            first, again = (connection.execute(statements[0]).fetchall() for _ in range(2))
        finally:
            timer.cancel()
        if first != again:
            raise duckdb.InvalidInputException("the condition picks other cases each time, as random() does")
        return [case_ids[row[0]] for row in first]
    except (duckdb.Error, UnicodeEncodeError) as refusal:
        raise Misconfigured(
            subject,
            found=str(refusal).strip().splitlines()[0],
            expected=f"a condition over the cases' attributes: {', '.join(sorted(attributes)) or 'they have none'}",
            mend="Correct `where`; text stands in single quotes.",
        ) from refusal
    finally:
        connection.close()


@cache
def _sealed() -> Connection:
    """An empty database to judge conditions in. Opening one takes longer than judging; what a condition may be leaves
    nothing behind in it, and each is given a cursor of its own.
    """
    return connect(sealed=True)
