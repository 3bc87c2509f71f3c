"""All that is known of one run, and none of it by the clock."""

import numpy as np

from harness.store import write
from harness.store.connection import Store
from harness.store.evidence import evidence

from .conftest import RUN, SUITE


def tables(connection):
    """All evidence of the run, by name."""
    return {each.name: each.rows.read_all() for each in evidence(connection, RUN)}


class TestEvidence:
    def test_the_same_rows_in_another_order_are_the_same_tables(self, empty: Store) -> None:
        """What is bundled depends on what happened, not on the order of writing."""
        rows = [("q1", "d1", 1), ("q1", "d2", -1), ("q0", "d1", 0)]
        found = []
        for order in (rows, rows[::-1]):
            with empty.writing() as connection:
                write.replace(connection, "runs", {"run": RUN, "suite_digest": SUITE}, {
                    "suite": ["s"], "suite_place": ["p"], "candidate": ["c"], "version": ["1"],
                    "updated_at": [np.datetime64("2026-01-01", "us")],
                })  # fmt: skip
                names = zip(("case_id", "document_id", "grade"), zip(*order, strict=True), strict=True)
                columns = {name: list(column) for name, column in names}
                write.replace(connection, "judgements", {"suite_digest": SUITE}, columns)
            with empty.reading() as connection:
                found.append(tables(connection))
        assert found[0] == found[1]
        assert found[0]["judgements"].num_rows == 3

    def test_it_is_of_one_run(self, small: Store) -> None:
        """Its own rankings, and the suite's cases."""
        with small.reading() as connection:
            found = tables(connection)
        assert found["rankings"].num_rows == 8
        assert set(found["rankings"]["run"].to_pylist()) == {RUN}
        assert found["cases"].num_rows == 4

    def test_clocks_stay_out(self, small: Store) -> None:
        """No table says when, or how long it took."""
        with small.reading() as connection:
            found = tables(connection)
        assert not {"runs", "steps"} & set(found)
        assert not {"updated_at", "seconds"} & {name for table in found.values() for name in table.column_names}
