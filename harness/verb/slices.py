"""Slices that only a run fixes: from the parent's stored outputs, and from nothing of the candidate's."""

import pyarrow as pa

from harness.store import read, write
from harness.store.connection import Connection
from harness.store.parent import parent_cases
from harness.suite.lock import Lock
from harness.suite.mechanism import of_parent


def fix_slices(connection: Connection, run: str, lock: Lock) -> dict[str, tuple[str, ...]]:
    """Every slice's cases, in the order of suite.toml; those that the parent's outputs fix are stored with the run.

    Without a parent these hold no case.
    """
    found = {each.name: lock.slices[each.name] for each in lock.declared}
    at_run = [each for each in lock.declared if each.from_parent]
    if at_run:
        cases = parent_cases(connection, run)
        for position in dict.fromkeys(each.position for each in at_run):
            mechanism = lock.definition.slices[position].mechanism
            if mechanism is None:
                continue
            bins = of_parent(mechanism, cases) if cases else {}
            for each in at_run:
                if each.position == position:
                    own = each.name.removeprefix(f"{mechanism}=")
                    found[each.name] = tuple(case for case in lock.case_ids if own in bins.get(case, ()))
    kept = [(each.name, case) for each in at_run for case in found[each.name]]
    write.replace(connection, "run_slice_members", {"run": run}, {
        "slice": pa.array([name for name, _ in kept], pa.string()),
        "case_id": pa.array([case for _, case in kept], pa.string()),
    })  # fmt: skip
    return found


def members_of(connection: Connection, run: str, lock: Lock) -> dict[str, tuple[str, ...]]:
    """Every slice's cases as they are stored, in the order of suite.toml."""
    fixed = read.run_slices(connection, run)
    return {each.name: fixed.get(each.name, lock.slices[each.name]) for each in lock.declared}
