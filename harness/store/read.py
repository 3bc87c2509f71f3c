"""Reading back: arrays in suite order for the mathematics, typed records for the rest."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from harness.errors import Misconfigured, NotFound
from harness.identity import digest, text_digest
from harness.output.answer import Counts, DeltaSummary, Summary
from harness.output.decision import Outcome, RuleResult

SIDES = ("parent", "candidate")
RULE_COLUMNS = tuple(RuleResult.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One row of `runs`."""

    run: str
    suite: str
    suite_digest: str
    suite_place: str
    candidate: str
    parent: str | None
    decision: str | None
    exploratory: bool | None
    reading: int | None
    remarks: tuple[str, ...]
    policy_digest: str | None


@dataclass(frozen=True, slots=True)
class MetricRecord:
    """One row of `metrics`; `form` is mean, finish or rank. Cases are told to have got worse by the one `followed`."""

    metric: str
    form: str
    higher_is_better: bool
    followed: bool


@dataclass(frozen=True, slots=True)
class ReleaseRecord:
    """One row of `releases`; meaning, parts, runtime, calibrator and threshold are JSON texts."""

    side: str
    release: str
    place: str
    content_id: str
    output_key: str
    interaction: str
    meaning: str
    parts: str
    runtime: str
    calibrator: str | None = None
    threshold: str | None = None


@dataclass(frozen=True, slots=True)
class ExposureRecord:
    """One row of `exposures`."""

    run: str
    data: str
    policy: str
    candidate: str
    parent: str | None
    outcomes: str
    parameters: str | None = None


@dataclass(frozen=True, slots=True)
class CaseRows:
    """The cases of a run's suite in suite order. Shapes: each [n]."""

    case_ids: NDArray[np.object_]
    roles: NDArray[np.object_]
    groups: NDArray[np.object_]


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


def find_run(connection: duckdb.DuckDBPyConnection, name: str) -> RunRecord:
    """The run with this ID, this unique prefix, or the latest one.

    Raises NotFound for none, Misconfigured for more than one.
    """
    columns = ", ".join(RunRecord.__dataclass_fields__)
    if name == "latest":
        rows = connection.execute(f"SELECT {columns} FROM runs ORDER BY updated_at DESC, run LIMIT 1").fetchall()
    else:
        rows = connection.execute(
            f"SELECT {columns} FROM runs WHERE starts_with(run, ?) ORDER BY run LIMIT 5", [name]
        ).fetchall()
    if not rows:
        raise NotFound(
            f"run {name!r}", found="no such run in the store", expected="a run ID, a unique prefix, or `latest`",
            mend="`harness runs` lists what the store holds.",
        )  # fmt: skip
    if len(rows) > 1:
        raise Misconfigured(
            f"run {name!r}", found=f"several runs begin so: {', '.join(row[0][:16] for row in rows)}",
            expected="a prefix that only one run has", mend="Give more digits.",
        )  # fmt: skip
    row = dict(zip(RunRecord.__dataclass_fields__, rows[0], strict=True))
    return RunRecord(**{**row, "remarks": tuple(row["remarks"] or ())})


def has_run(connection: duckdb.DuckDBPyConnection, run: str) -> bool:
    """Whether a run was entered."""
    return bool(connection.execute("SELECT 1 FROM runs WHERE run = ?", [run]).fetchall())


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


def outcomes_digest(connection: duckdb.DuckDBPyConnection, run: str) -> str:
    """Digest of the candidate's rankings, or of what it said, over the promotion cases: equal where two releases answer
    alike.
    """
    digests = [
        str(connection.execute(
            f"""SELECT sha256(coalesce(string_agg({said}, chr(30) ORDER BY k.position, {place}), ''))
                FROM {table} g JOIN runs r USING (run)
                JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = g.case_id AND k.role = 'promotion'
                WHERE g.run = ? AND g.side = 'candidate'""",
            [run],
        ).fetchall()[0][0])
        for table, said, place in (
            ("rankings", "concat_ws(chr(31), g.case_id, g.position, g.document_id)", "g.position"),
            ("task_outputs", "to_json(row(g.case_id, g.scores, g.value, g.tags, g.answer, g.null_score))", "g.case_id"),
        )
    ]  # fmt: skip
    # Either is empty; the digest of nothing is left out, so that one of rankings is what it was.
    ranked, said = digests
    return ranked if said == text_digest("") else said


def exposures(connection: duckdb.DuckDBPyConnection, data: str) -> tuple[ExposureRecord, ...]:
    """Who read the promotion outcomes of these data, first first."""
    columns = ", ".join(ExposureRecord.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM exposures WHERE data = ? ORDER BY rowid", [data]).fetchall()
    return tuple(ExposureRecord(*row) for row in rows)


def findings_besides(connection: duckdb.DuckDBPyConnection, run: str) -> frozenset[str]:
    """Every finding that the rules of any other stored run named."""
    rows = connection.execute(
        "SELECT DISTINCT finding FROM rules WHERE finding IS NOT NULL AND run <> ?", [run]
    ).fetchall()
    return frozenset(row[0] for row in rows)


def releases(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, ReleaseRecord]:
    """The run's releases by side."""
    columns = ", ".join(ReleaseRecord.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM releases WHERE run = ? ORDER BY side", [run]).fetchall()
    return {row[0]: ReleaseRecord(*row) for row in rows}


def lock_text(connection: duckdb.DuckDBPyConnection, suite_digest: str) -> str:
    """The lock as it was when the run was made."""
    rows = connection.execute("SELECT lock FROM suites WHERE suite_digest = ?", [suite_digest]).fetchall()
    return str(rows[0][0])


def cases(connection: duckdb.DuckDBPyConnection, suite_digest: str) -> CaseRows:
    """Every case of the suite, in suite order."""
    rows = connection.execute(
        "SELECT case_id, role, case_group FROM cases WHERE suite_digest = ? ORDER BY position", [suite_digest]
    ).fetchnumpy()
    return CaseRows(objects(rows["case_id"]), objects(rows["role"]), objects(rows["case_group"]))


def answerable(connection: duckdb.DuckDBPyConnection, suite_digest: str) -> NDArray[np.bool_]:
    """[n], in suite order, whether the suite says that the corpus answers the case."""
    rows = connection.execute(
        "SELECT answerable FROM cases WHERE suite_digest = ? ORDER BY position", [suite_digest]
    ).fetchnumpy()
    return np.asarray(rows["answerable"], dtype=bool)


@dataclass(frozen=True, slots=True)
class CaseMarks:
    """By what a case is known again, whatever its role and its suite: digests of its ID and of its inputs. Shapes: [n]
    in suite order.
    """

    ids: tuple[str, ...]
    inputs: tuple[str, ...]


def case_marks(connection: duckdb.DuckDBPyConnection, suite_digest: str) -> CaseMarks:
    """Of every case of a suite."""
    rows = connection.execute(
        """SELECT k.case_id, coalesce(g.inputs, to_json({'text': k.text})) FROM cases k
           LEFT JOIN golds g ON g.suite_digest = k.suite_digest AND g.case_id = k.case_id
           WHERE k.suite_digest = ? ORDER BY k.position""",
        [suite_digest],
    ).fetchall()
    return CaseMarks(
        tuple(text_digest(case)[:16] for case, _ in rows), tuple(digest(json.loads(said))[:16] for _, said in rows)
    )


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


@dataclass(frozen=True, slots=True)
class CandidateSet:
    """What one side's last stage was given: the digest of every case's document IDs in order, cases and pairs."""

    digest: str
    cases: int
    pairs: int


def candidate_sets(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, CandidateSet]:
    """By side; a side whose releases have no last stage of their own has none."""
    rows = connection.execute(
        "SELECT side, digest, cases, pairs FROM candidate_sets WHERE run = ? ORDER BY side", [run]
    ).fetchall()
    return {side: CandidateSet(*row) for side, *row in rows}


@dataclass(frozen=True, slots=True)
class CandidateRows:
    """How many documents a last stage was given for each case [n], and of every judgement [j], in the order of
    `RankingRows`, whether its document was among them.
    """

    counts: NDArray[np.int64]
    given: NDArray[np.bool_]


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


def metrics(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[MetricRecord, ...]:
    """Every metric that a run was decided with, in the suite's order."""
    rows = connection.execute(
        "SELECT metric, form, higher_is_better, followed FROM metrics WHERE run = ? ORDER BY position", [run]
    ).fetchall()
    return tuple(MetricRecord(*row) for row in rows)


def summaries(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, dict[str, dict[str, Summary]]]:
    """Every value with its interval, by side, slice and metric, in the order in which they were measured."""
    found: dict[str, dict[str, dict[str, Summary]]] = {}
    rows = connection.execute(
        """SELECT side, slice, metric, value, low, high, n_scored, n_total, n_groups FROM summaries
           WHERE run = ? ORDER BY side, rowid""",
        [run],
    )
    for side, name, metric, *figures in rows.fetchall():
        found.setdefault(side, {}).setdefault(name, {})[metric] = Summary(*figures)
    return found


def deltas(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, dict[str, DeltaSummary]]:
    """Every paired difference with its interval, by slice and metric, in the order in which they were measured."""
    found: dict[str, dict[str, DeltaSummary]] = {}
    rows = connection.execute(
        """SELECT slice, metric, delta, low, high, mde, n_cases, n_groups, n_changed_groups FROM deltas
           WHERE run = ? ORDER BY rowid""",
        [run],
    )
    for name, metric, *figures in rows.fetchall():
        found.setdefault(name, {})[metric] = DeltaSummary(*figures)
    return found


def counts(connection: duckdb.DuckDBPyConnection, run: str, side: str) -> Counts:
    """How many promotion cases of one side were what."""
    rows = connection.execute("SELECT name, count FROM counts WHERE run = ? AND side = ?", [run, side]).fetchall()
    return Counts(**{name.replace("-", "_"): count for name, count in rows if name not in ("non-finite", "illegal")})


def remarks(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[str, ...]:
    """What either side's outputs were found to hold besides, one sentence each."""
    rows = connection.execute("SELECT side, detail FROM remarks WHERE run = ? ORDER BY side, kind", [run])
    return tuple(f"{side.capitalize()}: {detail}." for side, detail in rows.fetchall())


def run_slices(connection: duckdb.DuckDBPyConnection, run: str) -> dict[str, tuple[str, ...]]:
    """The cases of slices that this run fixed, by what the parent did; none before they are."""
    rows = connection.execute(
        "SELECT slice, list(case_id ORDER BY rowid) FROM run_slice_members WHERE run = ? GROUP BY slice ORDER BY slice",
        [run],
    ).fetchall()
    return {name: tuple(ids) for name, ids in rows}


def training_remarks(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[str, ...]:
    """Which cases either side was trained on, one sentence a side and role."""
    rows = connection.execute(
        """SELECT side, role, count(*), count(waived), min_by(case_id || ' (' || file || ' line ' || line || ')', rowid)
           FROM training_leaks WHERE run = ? GROUP BY side, role ORDER BY side, role""",
        [run],
    ).fetchall()
    return tuple(
        f"{side.capitalize()}: its training files hold {count} {role} cases"
        f"{f', {waived} of them waived' if waived else ''}, as {first}."
        for side, role, count, waived, first in rows
    )


def first_documents(connection: duckdb.DuckDBPyConnection, run: str) -> dict[tuple[str, str], str]:
    """What each side put first, by (side, case ID); a side that ranked nothing has no entry."""
    rows = connection.execute("SELECT side, case_id, document_id FROM rankings WHERE run = ? AND position = 1", [run])
    return {(side, case_id): document_id for side, case_id, document_id in rows.fetchall()}


def rule_results(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[RuleResult, ...]:
    """The stored outcome of every rule, in the order of the suite."""
    rows = connection.execute(
        f"SELECT {', '.join(RULE_COLUMNS)} FROM rules WHERE run = ? ORDER BY position", [run]
    ).fetchall()
    found = [dict(zip(RULE_COLUMNS, row, strict=True)) for row in rows]
    return tuple(RuleResult(**{**row, "outcome": Outcome(row["outcome"])}) for row in found)


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def objects(column: NDArray[np.object_] | list[Any]) -> NDArray[np.object_]:
    """DuckDB gives text as object arrays, masked where a NULL could stand; none of these columns holds one."""
    return np.asarray(column, dtype=object)


EVIDENCE = (
    "outputs",
    "cut_documents",
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
