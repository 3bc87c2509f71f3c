"""Opening the store: one writer or many readers, and one transaction for each finished step."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import duckdb

from harness.errors import Misconfigured, NotFound, Stopped
from harness.identity import text_digest

Connection: TypeAlias = duckdb.DuckDBPyConnection

# Replacement scans would let SQL read Python variables; the others keep SQL inside the store.
QUIET: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": "false",
    "autoinstall_known_extensions": "false",
}
SEALED: dict[str, str | bool | int | float | list[str]] = {**QUIET, "enable_external_access": "false"}


@dataclass(frozen=True, slots=True)
class Store:
    """A store file. Connections are opened for a step and closed after it, so that readers get their turn."""

    path: Path

    @contextmanager
    def writing(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """One transaction: all of it is kept, or none.

        Raises Stopped when another process holds the store or the disk is full, Misconfigured for what is no store
        of this version.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as refusal:
            raise Stopped(
                str(self.path),
                found=refusal.strerror or str(refusal),
                expected="a folder that can be written",
                mend="Mend the path or its permissions, or name another store with --store.",
            ) from refusal
        connection = self._connect(read_only=False)
        try:
            connection.begin()
            if not self._is_laid_out(connection):
                connection.execute(_script("schema.sql"))
                connection.execute("INSERT INTO layout VALUES (?, '')", [_digest("schema.sql")])
            if connection.execute("SELECT views FROM layout").fetchall() != [(_digest("views.sql"),)]:
                connection.execute(_script("views.sql"))
                connection.execute("UPDATE layout SET views = ?", [_digest("views.sql")])
            yield connection
            connection.commit()
        except (duckdb.IOException, duckdb.OutOfMemoryException, duckdb.TransactionException) as stop:
            raise Stopped(
                str(self.path),
                found=_first_line(stop),
                expected="a store that can be written",
                mend="What is finished is kept. Free some space or memory and give the same command again.",
            ) from stop
        finally:
            connection.close()

    @contextmanager
    def reading(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A read-only connection whose SQL can reach nothing but the store.

        Raises NotFound when there is no store yet, Stopped when another process is writing, Misconfigured for what is
        no store of this version.
        """
        if not self.path.exists():
            raise self._nothing("no store here")
        connection = self._connect(read_only=True)
        try:
            # A run that stopped in its first step leaves a file without tables.
            if not self._is_laid_out(connection):
                raise self._nothing("a store without a finished step")
            yield connection
        except duckdb.Error as damage:
            raise Misconfigured(
                str(self.path), found=_first_line(damage), expected="a store that can be read",
                mend="If the file is damaged, move it away: a run writes a new one.",
            ) from damage  # fmt: skip
        finally:
            connection.close()

    def _nothing(self, found: str) -> NotFound:
        return NotFound(
            str(self.path),
            found=found,
            expected="a store that `harness run` wrote",
            mend="Run `harness run SUITE --candidate R --parent R` first, or name another one with --store.",
        )

    def _is_laid_out(self, connection: Connection) -> bool:
        """False for a store without tables. Raises Misconfigured for one with other tables."""
        tables = {name for (name,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        if not tables:
            return False
        digests = connection.execute("SELECT digest FROM layout").fetchall() if "layout" in tables else []
        if digests != [(_digest("schema.sql"),)]:
            raise Misconfigured(
                str(self.path), found="a store that another version of harness wrote", expected="this version's tables",
                mend="Move the file away (a run writes a new one), or name another store with --store.",
            )  # fmt: skip
        return True

    def _connect(self, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        try:
            return connect(str(self.path), read_only=read_only, sealed=read_only)
        except duckdb.Error as refusal:
            if "Could not set lock" in str(refusal) or isinstance(refusal, duckdb.ConnectionException):
                raise Stopped(
                    str(self.path),
                    found="another process holds the store, or another part of this one",
                    expected="one writer at a time, and no reader beside it",
                    mend="Wait until it has finished, or name another store with --store.",
                ) from refusal
            if self.path.exists() and not os.access(self.path, os.R_OK if read_only else os.R_OK | os.W_OK):
                raise Stopped(
                    str(self.path), found="Permission denied", expected="a file that can be read and written",
                    mend="Mend its permissions, or name another store with --store.",
                ) from refusal  # fmt: skip
            raise Misconfigured(
                str(self.path),
                found=_first_line(refusal),
                expected="a DuckDB file that this version can open",
                mend="Move the file away (a run writes a new one), or name another store with --store.",
            ) from refusal


def connect(path: str = ":memory:", *, read_only: bool = False, sealed: bool) -> Connection:
    """A connection that draws no progress bars on stderr; a `sealed` one reaches nothing but the store."""
    connection = duckdb.connect(path, read_only=read_only, config=SEALED if sealed else QUIET)
    # A second reader in one process finds the configuration locked by the first, as it is to be.
    if connection.execute("SELECT current_setting('lock_configuration')").fetchall() == [(True,)]:
        return connection
    connection.execute("SET enable_progress_bar = false")
    if sealed:
        connection.execute("SET lock_configuration = true")
    return connection


def _script(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")


def _digest(name: str) -> str:
    """Of what a script does: its comments and blanks are no part of it."""
    return text_digest(" ".join(re.sub("--[^\n]*", "", _script(name)).split()))


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]
