"""Reading back: arrays in suite order for the mathematics, typed records for the rest."""

import json
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured, NotFound
from harness.identity import digest, text_digest
from harness.output.answer import Counts, DeltaSummary, Summary
from harness.output.decision import Outcome, RuleResult
from harness.output.exposure import Exposure

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
class CaseRows:
    """The cases of a run's suite in suite order. Shapes: each [n]."""

    case_ids: NDArray[np.object_]
    roles: NDArray[np.object_]
    groups: NDArray[np.object_]


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
    # One of the two is empty, and the digest of nothing is left out.
    ranked, said = digests
    return ranked if said == text_digest("") else said


def exposures(connection: duckdb.DuckDBPyConnection, data: str) -> tuple[Exposure, ...]:
    """Who read the promotion outcomes of these data, first first."""
    columns = ", ".join(Exposure.__dataclass_fields__)
    rows = connection.execute(f"SELECT {columns} FROM exposures WHERE data = ? ORDER BY rowid", [data]).fetchall()
    return tuple(Exposure(*row) for row in rows)


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


def rule_results(connection: duckdb.DuckDBPyConnection, run: str) -> tuple[RuleResult, ...]:
    """The stored outcome of every rule, in the order of the suite."""
    rows = connection.execute(
        f"SELECT {', '.join(RULE_COLUMNS)} FROM rules WHERE run = ? ORDER BY position", [run]
    ).fetchall()
    found = [dict(zip(RULE_COLUMNS, row, strict=True)) for row in rows]
    return tuple(RuleResult(**{**row, "outcome": Outcome(row["outcome"])}) for row in found)


def objects(column: NDArray[np.object_] | list[Any]) -> NDArray[np.object_]:
    """DuckDB gives text as object arrays, masked where a NULL could stand; none of these columns holds one."""
    return np.asarray(column, dtype=object)
