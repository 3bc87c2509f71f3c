"""What a stored run knows of the way from one content to another: what was cut, and what computed it."""

from dataclasses import dataclass

import duckdb

from harness.store.read import SIDES


@dataclass(frozen=True, slots=True)
class Reading:
    """What one side's model read of the texts that it cut: tokens kept and lost, by document or case ID."""

    kept: dict[str, int]
    lost: dict[str, int]


@dataclass(frozen=True, slots=True)
class RunPair:
    """The latest decided run of two contents, both live: what each read, of how many texts, and what computed it."""

    documents: dict[str, Reading]
    queries: dict[str, Reading]
    n_documents: int
    n_queries: int
    runtimes: dict[str, str]


def run_of(connection: duckdb.DuckDBPyConnection, parent: str, candidate: str) -> RunPair | None:
    """What a stored run knows of the way from one content to another; None where there is no such run."""
    rows = connection.execute(
        """SELECT r.run, json_extract(s.lock, '$.documents')::BIGINT, p.runtime, c.runtime,
                  (SELECT count(*) FROM outputs o WHERE o.run = r.run AND o.side = 'candidate')
           FROM runs r JOIN suites s USING (suite_digest)
           JOIN releases p ON p.run = r.run AND p.side = 'parent' AND p.content_id = ? AND p.interaction <> 'recorded'
           JOIN releases c ON c.run = r.run AND c.side = 'candidate' AND c.content_id = ?
           WHERE r.decision IS NOT NULL ORDER BY r.updated_at DESC, r.run LIMIT 1""",
        [parent, candidate],
    ).fetchall()
    if not rows:
        return None
    run, n_documents, of_parent, of_candidate, n_queries = rows[0]
    return RunPair(
        documents={side: _reading(connection, "cut_documents", "document_id", run, side) for side in SIDES},
        queries={side: _reading(connection, "outputs", "case_id", run, side) for side in SIDES},
        n_documents=n_documents,
        n_queries=n_queries,
        runtimes={"parent": of_parent, "candidate": of_candidate},
    )


def _reading(connection: duckdb.DuckDBPyConnection, table: str, name: str, run: str, side: str) -> Reading:
    rows = connection.execute(
        f"SELECT {name}, tokens_kept, tokens_lost FROM {table} WHERE run = ? AND side = ? AND tokens_lost > 0",
        [run, side],
    ).fetchall()
    return Reading({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})
