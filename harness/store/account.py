"""Reading back what people are told: which cases moved, where documents stood, what to judge next."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

from harness.identity import Json
from harness.output.change import CaseChange, FirstAnswer, TransitionCount, Transitions
from harness.output.judgement import Judgement
from harness.store.case import predicted
from harness.store.connection import Connection

ALL = "all"


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in one line; `decision` is `unfinished` until it was decided."""

    run: str
    suite: str
    candidate: str
    parent: str | None
    decision: str
    exploratory: bool
    updated_at: str

    def as_record(self) -> dict[str, Json]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ran:
    """A live release that some run ran; meaning, runtime and the meanings of its members by role are JSON texts."""

    release: str
    meaning: str
    runtime: str
    parts: str


@dataclass(frozen=True, slots=True)
class Loss:
    """A promotion case on which the candidate lost; `delta` is below 0, of a metric like a loss above it."""

    case_id: str
    delta: float
    text: str


@dataclass(frozen=True, slots=True)
class Unjudged:
    """A document among the candidate's first ten that nobody judged; `head` None where none was kept."""

    case_id: str
    text: str
    position: int
    document_id: str
    head: str | None


def runs(connection: Connection) -> tuple[RunLine, ...]:
    """Every run, the one last run or decided first."""
    rows = connection.execute(
        """SELECT run, suite, candidate, parent, coalesce(decision, 'unfinished'), coalesce(exploratory, false),
                  strftime(updated_at, '%Y-%m-%dT%H:%M:%SZ')
           FROM runs ORDER BY updated_at DESC, run"""
    ).fetchall()
    return tuple(RunLine(*row) for row in rows)


def ran(connection: Connection) -> tuple[Ran, ...]:
    """Every live release under every meaning and runtime that it was run with, by name."""
    rows = connection.execute(
        "SELECT DISTINCT release, meaning, runtime, parts FROM releases WHERE interaction <> 'recorded' ORDER BY ALL"
    ).fetchall()
    return tuple(Ran(*row) for row in rows)


def transitions(connection: Connection, run: str) -> Transitions:
    """How many promotion cases of each slice went which way, slices in the suite's order."""
    rows = connection.execute(
        """SELECT t.criterion, t.slice, t.transition, t.cases, e.lost_groups, e.won_groups, e.p
           FROM transition_counts t JOIN runs r USING (run)
           LEFT JOIN transition_tests e ON e.run = t.run AND e.slice = t.slice
           LEFT JOIN slices s ON s.suite_digest = r.suite_digest AND s.slice = t.slice
           WHERE t.run = ? ORDER BY s.rowid NULLS FIRST""",
        [run],
    ).fetchall()
    counts: dict[str, dict[str, int]] = {}
    tests: dict[str, tuple[int | None, int | None, float | None]] = {}
    for _, name, transition, cases, *tested in rows:
        counts.setdefault(name, {})[transition.replace("-", "_")] = cases
        tests[name] = (tested[0], tested[1], tested[2])
    told = tuple(
        replace(TransitionCount(slice=name, **each), lost_groups=lost, won_groups=won, p=p)
        for (name, each), (lost, won, p) in zip(counts.items(), tests.values(), strict=True)
    )
    return Transitions(rows[0][0] if rows else "", told)


def case_changes(connection: Connection, run: str, metric: str) -> tuple[CaseChange, ...]:
    """Promotion cases whose value moved, the greatest loss first: of a metric like a loss, the greatest rise."""
    rows = connection.execute(
        """SELECT d.case_id, d.text, d.parent_value, d.candidate_value, p.document_id, p.head, p.grade,
                  c.document_id, c.head, c.grade,
                  (SELECT list(m.slice ORDER BY m.slice) FROM slice_cases m
                   WHERE m.run = d.run AND m.case_id = d.case_id)
           FROM case_deltas d JOIN metrics w ON w.run = d.run AND w.metric = d.metric
           LEFT JOIN first_answers p ON p.run = d.run AND p.side = 'parent' AND p.case_id = d.case_id
           LEFT JOIN first_answers c ON c.run = d.run AND c.side = 'candidate' AND c.case_id = d.case_id
           WHERE d.run = ? AND d.metric = ? AND d.role = 'promotion' AND d.delta <> 0
           ORDER BY CASE WHEN w.higher_is_better THEN d.delta ELSE -d.delta END, d.case_id""",
        [run, metric],
    ).fetchall()
    both = predicted(connection, run)
    return tuple(
        CaseChange(
            case_id=row[0], text=row[1], slices=tuple(row[10] or ()), parent_value=row[2], candidate_value=row[3],
            parent_first=_first(*row[4:7]), candidate_first=_first(*row[7:10]), predicted=both.get(row[0]),
        )
        for row in rows
    )  # fmt: skip


def case_deltas(connection: Connection, run: str, metric: str) -> tuple[float, ...]:
    """Candidate minus parent on every promotion case that both sides scored, in suite order."""
    rows = connection.execute(
        """SELECT delta FROM case_deltas d JOIN runs r USING (run)
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = d.case_id
           WHERE d.run = ? AND d.metric = ? AND d.role = 'promotion' AND delta IS NOT NULL ORDER BY k.position""",
        [run, metric],
    ).fetchall()
    return tuple(row[0] for row in rows)


def lost_most(connection: Connection, run: str, metric: str, name: str, most: int) -> tuple[Loss, ...]:
    """The promotion cases of a slice (or of `all`) on which the candidate lost most, worst first."""
    rows = connection.execute(
        """SELECT case_id, delta, text FROM worst_regressions
           WHERE run = $run AND metric = $metric AND ($slice = $all OR case_id IN (
               SELECT m.case_id FROM slice_cases m WHERE m.run = $run AND m.slice = $slice))
           ORDER BY abs(delta) DESC, case_id LIMIT $most""",
        {"run": run, "metric": metric, "slice": name, "all": ALL, "most": most},
    ).fetchall()
    return tuple(Loss(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class Counted:
    """A promotion case that an invariant counts."""

    case_id: str
    text: str


def counted(connection: Connection, run: str, count: str, name: str, most: int) -> tuple[Counted, ...]:
    """The promotion cases of a slice (or of `all`) that a count of the candidate's has, in suite order: by what became
    of the output, by tokens that were cut, or by a flag of the prediction.
    """
    rows = connection.execute(
        """SELECT o.case_id, k.text FROM outputs o
           JOIN runs r ON r.run = o.run
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = o.case_id
           LEFT JOIN predictions p ON p.run = o.run AND p.side = o.side AND p.case_id = o.case_id
           WHERE o.run = $run AND o.side = 'candidate' AND k.role = 'promotion'
             AND (o.status = $count OR o.non_finite AND $count = 'non-finite'
                  OR coalesce(o.tokens_lost, 0) > 0 AND $count = 'truncated' OR list_contains(p.flags, $count))
             AND ($slice = $all OR o.case_id IN (
                 SELECT m.case_id FROM slice_cases m WHERE m.run = $run AND m.slice = $slice))
           ORDER BY k.position LIMIT $most""",
        {"run": run, "count": count, "slice": name, "all": ALL, "most": most},
    ).fetchall()
    return tuple(Counted(*row) for row in rows)


def judging_queue(connection: Connection, run: str) -> tuple[Unjudged, ...]:
    """What a judge should read next, first places first."""
    rows = connection.execute(
        "SELECT case_id, text, position, document_id, head FROM judging_queue WHERE run = ?", [run]
    ).fetchall()
    return tuple(Unjudged(*row) for row in rows)


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One row of a stored ranking."""

    case_id: str
    document_id: str
    position: int
    score: float


def ranked_rows(connection: Connection, run: str, side: str) -> Iterator[RankedRow]:
    """A side's whole rankings, cases in suite order."""
    rows = connection.execute(
        """SELECT g.case_id, g.document_id, g.position, g.score FROM rankings g JOIN runs r USING (run)
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = g.case_id
           WHERE g.run = ? AND g.side = ? ORDER BY k.position, g.position""",
        [run, side],
    ).fetchall()
    return (RankedRow(*row) for row in rows)


def judgements(connection: Connection, run: str) -> Iterator[Judgement]:
    """The judgements of a run's suite, cases in suite order."""
    rows = connection.execute(
        """SELECT j.case_id, j.document_id, j.grade FROM judgements j JOIN runs r USING (suite_digest)
           JOIN cases k USING (suite_digest, case_id) WHERE r.run = ? ORDER BY k.position, j.document_id""",
        [run],
    ).fetchall()
    return (Judgement(*row) for row in rows)


def _first(document_id: str | None, head: str | None, grade: int | None) -> FirstAnswer | None:
    return None if document_id is None else FirstAnswer(document_id, head or "", grade)
