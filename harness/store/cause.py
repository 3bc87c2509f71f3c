"""Reading back what was seen where cases got worse."""

from harness.output.cause import Cause, CauseCount
from harness.store.connection import Connection


def causes(connection: Connection, run: str, case_id: str) -> tuple[Cause, ...]:
    """All that hold of a case, the one it is counted under first; none where it did not get worse."""
    rows = connection.execute(
        "SELECT cause, seen FROM case_causes WHERE run = ? AND case_id = ? ORDER BY place", [run, case_id]
    ).fetchall()
    return tuple(Cause(*row) for row in rows)


def cause_counts(connection: Connection, run: str) -> tuple[CauseCount, ...]:
    """By slice, `all` first and the others in the suite's order, and by cause."""
    rows = connection.execute(
        """SELECT c.slice, c.cause, c.cases FROM cause_counts c JOIN runs r USING (run)
           LEFT JOIN slices s ON s.suite_digest = r.suite_digest AND s.slice = c.slice
           WHERE c.run = ? ORDER BY s.rowid NULLS FIRST, c.slice, c.cause""",
        [run],
    ).fetchall()
    return tuple(CauseCount(*row) for row in rows)
