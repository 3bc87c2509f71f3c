"""Reading one side's rankings and what its last stage was given, as arrays in suite order."""

from dataclasses import dataclass

import duckdb
import numpy as np
from numpy.typing import NDArray

from harness.store.read import objects


@dataclass(frozen=True, slots=True)
class RankingRows:
    """One side's rankings and the judgements they are held against, in suite order.

    Shapes: case_ids, status, truncated, non_finite, crossing [n]; offsets [n+1] into scores [r], falling within a case;
    judged_offsets [n+1] into judged_grade, judged_score (NaN when not retrieved) and judged_position
    (0-based, -1 when not retrieved) [j].
    """

    case_ids: NDArray[np.object_]
    status: NDArray[np.object_]
    truncated: NDArray[np.bool_]
    non_finite: NDArray[np.bool_]
    crossing: NDArray[np.int64]
    offsets: NDArray[np.int64]
    scores: NDArray[np.float64]
    judged_offsets: NDArray[np.int64]
    judged_grade: NDArray[np.int64]
    judged_score: NDArray[np.float64]
    judged_position: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """What one side's last stage was given: the digest of every case's document IDs in order, cases and pairs."""

    digest: str
    cases: int
    pairs: int


@dataclass(frozen=True, slots=True)
class CandidateRows:
    """How many documents a last stage was given for each case [n], and of every judgement [j], in the order of
    `RankingRows`, whether its document was among them.
    """

    counts: NDArray[np.int64]
    given: NDArray[np.bool_]


def rankings(connection: duckdb.DuckDBPyConnection, run: str, side: str) -> RankingRows:
    """One side's stored rankings as arrays."""
    outputs = connection.execute(
        """SELECT o.case_id, o.status, coalesce(o.tokens_lost, 0) > 0 AS truncated, o.non_finite, o.crossing,
                  o.retrieved,
                  (SELECT count(*) FROM judgements j
                   WHERE j.suite_digest = k.suite_digest AND j.case_id = k.case_id) AS judged
           FROM outputs o JOIN runs r ON r.run = o.run
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = o.case_id
           WHERE o.run = ? AND o.side = ? ORDER BY k.position""",
        [run, side],
    ).fetchnumpy()
    scores = connection.execute(
        """SELECT g.score FROM rankings g JOIN runs r ON r.run = g.run
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = g.case_id
           WHERE g.run = ? AND g.side = ? ORDER BY k.position, g.position""",
        [run, side],
    ).fetchnumpy()
    judged = connection.execute(
        """SELECT j.grade, coalesce(g.score, 'nan'::DOUBLE) AS score, coalesce(g.position, 0) - 1 AS position
           FROM runs r JOIN cases k ON k.suite_digest = r.suite_digest
           JOIN judgements j ON j.suite_digest = k.suite_digest AND j.case_id = k.case_id
           JOIN outputs o ON o.run = r.run AND o.side = ? AND o.case_id = k.case_id
           LEFT JOIN rankings g ON g.run = r.run AND g.side = o.side AND g.case_id = k.case_id
                                AND g.document_id = j.document_id
           WHERE r.run = ? ORDER BY k.position, j.document_id""",
        [side, run],
    ).fetchnumpy()
    return RankingRows(
        case_ids=objects(outputs["case_id"]),
        status=objects(outputs["status"]),
        truncated=np.asarray(outputs["truncated"], dtype=bool),
        non_finite=np.asarray(outputs["non_finite"], dtype=bool),
        crossing=np.asarray(outputs["crossing"], dtype=np.int64),
        offsets=_offsets(outputs["retrieved"]),
        scores=np.asarray(scores["score"], dtype=np.float64),
        judged_offsets=_offsets(outputs["judged"]),
        judged_grade=np.asarray(judged["grade"], dtype=np.int64),
        judged_score=np.asarray(judged["score"], dtype=np.float64),
        judged_position=np.asarray(judged["position"], dtype=np.int64),
    )


def candidate_sets(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, CandidateSet]:
    """By side; a side whose releases have no last stage of their own has none."""
    rows = connection.execute(
        "SELECT side, digest, cases, pairs FROM candidate_sets WHERE run = ? ORDER BY side", [run]
    ).fetchall()
    return {side: CandidateSet(*row) for side, *row in rows}


def candidates(connection: duckdb.DuckDBPyConnection, run: str, side: str) -> CandidateRows | None:
    """One side's candidates in suite order; None for a side that was given none."""
    if side not in candidate_sets(connection, run):
        return None
    counts = connection.execute(
        """SELECT count(c.document_id) AS count FROM runs r JOIN cases k ON k.suite_digest = r.suite_digest
           LEFT JOIN candidates c ON c.run = r.run AND c.side = ? AND c.case_id = k.case_id
           WHERE r.run = ? GROUP BY k.position ORDER BY k.position""",
        [side, run],
    ).fetchnumpy()
    given = connection.execute(
        """SELECT c.document_id IS NOT NULL AS given
           FROM runs r JOIN cases k ON k.suite_digest = r.suite_digest
           JOIN judgements j ON j.suite_digest = k.suite_digest AND j.case_id = k.case_id
           LEFT JOIN candidates c ON c.run = r.run AND c.side = ? AND c.case_id = k.case_id
                                  AND c.document_id = j.document_id
           WHERE r.run = ? ORDER BY k.position, j.document_id""",
        [side, run],
    ).fetchnumpy()
    return CandidateRows(np.asarray(counts["count"], dtype=np.int64), np.asarray(given["given"], dtype=bool))


def first_documents(connection: duckdb.DuckDBPyConnection, run: str) -> dict[tuple[str, str], str]:
    """What each side put first, by (side, case ID); a side that ranked nothing has no entry."""
    rows = connection.execute("SELECT side, case_id, document_id FROM rankings WHERE run = ? AND position = 1", [run])
    return {(side, case_id): document_id for side, case_id, document_id in rows.fetchall()}


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)
