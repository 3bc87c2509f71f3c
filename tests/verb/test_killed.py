"""A run that is killed before anything of it becomes visible, or within a writer, and then given again."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import harness
from harness.store.connection import Connection, Store

from .conftest import Project
from .test_run import bytes_of

KILLED = 77
SEEN = ((Path, "replace"), (Path, "rename"), (shutil, "rmtree"))
PARTS = ((os, "fsync"), (Path, "write_text"), (Path, "write_bytes"))


class Countdown:
    """Ends the process, as SIGKILL would, in front of the statement at which the count runs out."""

    def __init__(self, left: int) -> None:
        self.left = left
        self._within = 0

    def tick_within(self) -> None:
        """Statements inside one transaction, or files of one folder, stand or fall together: some are enough."""
        self._within += 1
        if self._within % 15 == 0:
            self.tick()

    def tick(self) -> None:
        if self.left == 0:
            os._exit(KILLED)
        self.left -= 1

    def before(self, do: Callable[..., object], tick: Callable[[], None] | None = None) -> Callable[..., object]:
        def counted(*args: object, **options: object) -> object:
            (tick or self.tick)()
            return do(*args, **options)

        return counted


class Watched:
    """A writing connection whose statements are counted, every commit among them."""

    def __init__(self, connection: Connection, countdown: Countdown) -> None:
        self._connection, self._countdown = connection, countdown

    def __getattr__(self, name: str) -> object:
        attribute = getattr(self._connection, name)
        if name == "execute":
            return self._countdown.before(attribute, self._countdown.tick_within)
        return self._countdown.before(attribute) if name in ("commit", "close") else attribute


def killed_at(statement: int) -> bool:
    """Does the run in a process of its own that is killed before a statement; False if there weren't that many."""
    pid = os.fork()
    if pid == 0:
        countdown, connect = Countdown(statement), Store._connect

        def watched(store: Store, *, read_only: bool) -> object:
            connection = connect(store, read_only=read_only)
            return connection if read_only else Watched(connection, countdown)

        Store._connect = watched
        for owner, name in SEEN:
            setattr(owner, name, countdown.before(getattr(owner, name)))
        for owner, name in PARTS:
            setattr(owner, name, countdown.before(getattr(owner, name), countdown.tick_within))
        code = 1
        try:
            code = harness.run("s", candidate="better", parent="old").exit_code
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


def state_of(project: Project) -> dict[str, str]:
    """Everything a run leaves, but for clocks: files by digest, tables by their rows."""
    rooms = (project.root / "reports", project.root / "releases", project.root / "suites")
    files = {name: value for name, value in bytes_of(*rooms).items() if not name.endswith(".lock")}
    names = harness.sql("SELECT table_name FROM duckdb_tables() WHERE table_name NOT IN ('runs', 'steps')").rows
    sums = " UNION ALL ".join(
        f"SELECT '{name}', md5(string_agg(t::VARCHAR, '|' ORDER BY t::VARCHAR)) || count(*) FROM {name} t"
        for (name,) in names
    )
    return files | {str(name): str(rows) for name, rows in harness.sql(sums).rows}


def test_a_run_killed_before_any_statement_ends_as_if_it_had_not_been(
    project: Project, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, plain_page: None
) -> None:
    project.suite(more="", rules='[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.02\n')
    harness.freeze("s")
    fresh = tmp_path_factory.mktemp("fresh") / "project"
    shutil.copytree(project.root, fresh)
    harness.run("s", candidate="better", parent="old")
    expected = state_of(project)
    for statement in range(1000):
        here = tmp_path_factory.mktemp("killed") / "project"
        shutil.copytree(fresh, here)
        monkeypatch.chdir(here)
        killed = killed_at(statement)
        if not killed:
            break
        assert harness.run("s", candidate="better", parent="old").exit_code == 0
        assert state_of(Project(here)) == expected, f"killed before statement {statement}"
        shutil.rmtree(here)
    assert statement > 25
