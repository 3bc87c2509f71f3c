"""`harness freeze`: fix a suite. The store evaluates the slices' SQL, so that the suite's room needs no database."""

from collections.abc import Sequence
from pathlib import Path

from harness.store.query import select
from harness.suite.case import Case
from harness.suite.freeze import SuiteReport, report
from harness.suite.freeze import freeze as fix
from harness.suite.load import load
from harness.suite.lock import write_lock
from harness.verb.place import find_place


def freeze(suite: str | Path) -> SuiteReport:
    """Reads a suite and writes its lock.

    Raises NotFound, Misconfigured (exit 2) or Leaked (exit 4) for a suite that may not be frozen.
    """
    loaded = load(find_place().suite(str(suite)))
    lock = fix(loaded, members)
    write_lock(lock, loaded.folder)
    return report(loaded, lock)


def members(cases: Sequence[Case], where: str) -> list[str]:
    """IDs of the cases for which an SQL condition over their attributes holds."""
    names = sorted({name for case in cases for name in case.attributes})
    columns = {name: [case.attributes.get(name) for case in cases] for name in names}
    return select([case.id for case in cases], columns, where, f"the slice condition {where!r}")
