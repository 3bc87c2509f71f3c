"""Everything the store knows of a run and its suite, as the tables of a bundle."""

from collections.abc import Iterator
from typing import NamedTuple

import duckdb
import pyarrow as pa

EVIDENCE = (
    "outputs",
    "cut_documents",
    "texts_in_windows",
    "candidates",
    "candidate_sets",
    "remarks",
    "training_leaks",
    "run_slice_members",
    "rankings",
    "task_outputs",
    "output_labels",
    "predictions",
    "companions",
    "metrics",
    "case_metrics",
    "summaries",
    "counts",
    "deltas",
    "transitions",
    "transition_tests",
    "rules",
)
SUITE_EVIDENCE = ("cases", "case_attributes", "judgements", "golds", "slices", "slice_members")

# Rows that are read at a time.
PIECE = 1 << 16


class Evidence(NamedTuple):
    """One table of what the store knows, its rows to be read before the next table's."""

    name: str
    rows: pa.RecordBatchReader


def evidence(connection: duckdb.DuckDBPyConnection, run: str) -> Iterator[Evidence]:
    """Everything the store knows of a run and its suite, one table after the other, in an order of its own.

    Rows come in pieces, for all of them would take more memory than the run that made them. Clocks stay out: neither
    `runs` nor `steps` is among them.
    """
    for names, key, value in (
        (EVIDENCE, "run", "?"),
        (SUITE_EVIDENCE, "suite_digest", "(SELECT suite_digest FROM runs WHERE run = ?)"),
    ):
        for name in names:
            rows = connection.sql(f"SELECT * FROM {name} WHERE {key} = {value} ORDER BY ALL", params=[run])
            yield Evidence(name, rows.to_arrow_reader(PIECE))
