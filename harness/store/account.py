"""Reading back what people are told: which cases moved, where documents stood, what to judge next."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from harness.identity import Json
from harness.output.change import CaseChange, FirstAnswer, TransitionCount, Transitions
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
    """A live release that some run ran; meaning and runtime are JSON texts."""

    release: str
    meaning: str
    runtime: str


@dataclass(frozen=True, slots=True)
class Loss:
    """A promotion case on which the candidate lost; `delta` is below 0."""

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


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """One place of a ranking, from 1; `grade` None where nobody judged the document."""

    position: int
    document_id: str
    score: float
    grade: int | None
    head: str


@dataclass(frozen=True, slots=True)
class SideAccount:
    """What one side did on a case, with its first few documents. Tokens None where the release does not tell."""

    side: str
    release: str
    status: str
    reason: str
    tokens_kept: int | None
    tokens_lost: int | None
    documents: tuple[RankedDocument, ...]


@dataclass(frozen=True, slots=True)
class ValueAccount:
    """One metric of a case; a value is None where that side has none, `status` says why the candidate has none."""

    metric: str
    parent_value: float | None
    candidate_value: float | None
    delta: float | None
    status: str


@dataclass(frozen=True, slots=True)
class CaseAccount:
    """A case and what both sides did on it, the parent first."""

    role: str
    group: str
    text: str
    slices: tuple[str, ...]
    sides: tuple[SideAccount, ...]
    values: tuple[ValueAccount, ...]


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
        "SELECT DISTINCT release, meaning, runtime FROM releases WHERE interaction <> 'recorded' ORDER BY ALL"
    ).fetchall()
    return tuple(Ran(*row) for row in rows)


def transitions(connection: Connection, run: str) -> Transitions:
    """How many promotion cases of each slice went which way, slices in the suite's order."""
    rows = connection.execute(
        """SELECT t.criterion, t.slice, t.transition, t.cases FROM transition_counts t JOIN runs r USING (run)
           LEFT JOIN slices s ON s.suite_digest = r.suite_digest AND s.slice = t.slice
           WHERE t.run = ? ORDER BY s.rowid NULLS FIRST""",
        [run],
    ).fetchall()
    counts: dict[str, dict[str, int]] = {}
    for _, name, transition, cases in rows:
        counts.setdefault(name, {})[transition.replace("-", "_")] = cases
    told = tuple(TransitionCount(slice=name, **each) for name, each in counts.items())
    return Transitions(rows[0][0] if rows else "", told)


def case_changes(connection: Connection, run: str, metric: str) -> tuple[CaseChange, ...]:
    """Promotion cases whose value moved, the greatest loss first."""
    rows = connection.execute(
        """SELECT d.case_id, d.text, d.parent_value, d.candidate_value, p.document_id, p.head, p.grade,
                  c.document_id, c.head, c.grade,
                  (SELECT list(m.slice ORDER BY m.slice) FROM slice_members m JOIN runs r USING (suite_digest)
                   WHERE r.run = d.run AND m.case_id = d.case_id)
           FROM case_deltas d
           LEFT JOIN first_answers p ON p.run = d.run AND p.side = 'parent' AND p.case_id = d.case_id
           LEFT JOIN first_answers c ON c.run = d.run AND c.side = 'candidate' AND c.case_id = d.case_id
           WHERE d.run = ? AND d.metric = ? AND d.role = 'promotion' AND d.delta <> 0
           ORDER BY d.delta, d.case_id""",
        [run, metric],
    ).fetchall()
    return tuple(
        CaseChange(
            case_id=row[0], text=row[1], slices=tuple(row[10] or ()), parent_value=row[2], candidate_value=row[3],
            parent_first=_first(*row[4:7]), candidate_first=_first(*row[7:10]),
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
               SELECT m.case_id FROM slice_members m JOIN runs r USING (suite_digest)
               WHERE r.run = $run AND m.slice = $slice))
           ORDER BY delta, case_id LIMIT $most""",
        {"run": run, "metric": metric, "slice": name, "all": ALL, "most": most},
    ).fetchall()
    return tuple(Loss(*row) for row in rows)


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


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """One judgement."""

    case_id: str
    document_id: str
    grade: int


def judgements(connection: Connection, run: str) -> Iterator[JudgedRow]:
    """The judgements of a run's suite, cases in suite order."""
    rows = connection.execute(
        """SELECT j.case_id, j.document_id, j.grade FROM judgements j JOIN runs r USING (suite_digest)
           JOIN cases k USING (suite_digest, case_id) WHERE r.run = ? ORDER BY k.position, j.document_id""",
        [run],
    ).fetchall()
    return (JudgedRow(*row) for row in rows)


def case_account(connection: Connection, run: str, case_id: str, most: int) -> CaseAccount | None:
    """A case with at most so many documents of each side; None where the run's suite has no such case."""
    about = connection.execute(
        """SELECT k.role, k.case_group, k.text FROM cases k JOIN runs r USING (suite_digest)
           WHERE r.run = ? AND k.case_id = ?""",
        [run, case_id],
    ).fetchall()
    if not about:
        return None
    slices = connection.execute(
        """SELECT m.slice FROM slice_members m JOIN runs r USING (suite_digest)
           WHERE r.run = ? AND m.case_id = ? ORDER BY m.rowid""",
        [run, case_id],
    ).fetchall()
    outputs = connection.execute(
        """SELECT side, release, status, reason, tokens_kept, tokens_lost FROM outputs
           WHERE run = ? AND case_id = ? ORDER BY side DESC""",
        [run, case_id],
    ).fetchall()
    values = connection.execute(
        """SELECT metric, parent_value, candidate_value, delta, candidate_status FROM case_deltas
           WHERE run = ? AND case_id = ? ORDER BY metric""",
        [run, case_id],
    ).fetchall()
    documents = _documents(connection, run, case_id, most)
    role, group, text = about[0]
    return CaseAccount(
        role=role,
        group=group,
        text=text,
        slices=tuple(row[0] for row in slices),
        sides=tuple(
            SideAccount(side, release, status, reason, kept, lost, documents.get(side, ()))
            for side, release, status, reason, kept, lost in outputs
        ),
        values=tuple(ValueAccount(*row) for row in values),
    )


def _documents(connection: Connection, run: str, case_id: str, most: int) -> dict[str, tuple[RankedDocument, ...]]:
    """The first documents of a case, by side."""
    rows = connection.execute(
        """SELECT g.side, g.position, g.document_id, g.score, j.grade, coalesce(d.head, '') FROM rankings g
           JOIN runs r USING (run)
           LEFT JOIN judgements j ON j.suite_digest = r.suite_digest AND j.case_id = g.case_id
                                  AND j.document_id = g.document_id
           LEFT JOIN documents d ON d.suite_digest = r.suite_digest AND d.document_id = g.document_id
           WHERE g.run = ? AND g.case_id = ? AND g.position <= ? ORDER BY g.position""",
        [run, case_id, most],
    ).fetchall()
    sides = dict.fromkeys(row[0] for row in rows)
    return {side: tuple(RankedDocument(*row[1:]) for row in rows if row[0] == side) for side in sides}


def _first(document_id: str | None, head: str | None, grade: int | None) -> FirstAnswer | None:
    return None if document_id is None else FirstAnswer(document_id, head or "", grade)
