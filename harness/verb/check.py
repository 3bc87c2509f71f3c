"""`harness check`: hold a suite against its lock."""

from pathlib import Path

from harness.suite.freeze import SuiteReport, check_leaks, check_members, open_frozen, report
from harness.verb.freeze import members
from harness.verb.place import find_place


def check(suite: str | Path) -> SuiteReport:
    """Reads a frozen suite and finds it as it was frozen.

    Raises NotFound (exit 2) without a lock, Tampered (exit 4) with the files and cases that changed.
    """
    frozen = open_frozen(find_place().suite(str(suite)))
    check_members(frozen, members)
    check_leaks(frozen)
    return report(frozen.suite, frozen.lock)
