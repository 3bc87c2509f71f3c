"""Reading back one case: what both sides did on it, what it was worth to every metric, and what they could reach."""

from dataclasses import dataclass

from harness.output.cause import Cause
from harness.output.change import Predicted, Prediction
from harness.store.cause import causes
from harness.store.connection import Connection


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """One place of a ranking, from 1; `grade` None where nobody judged the document."""

    position: int
    document_id: str
    score: float
    grade: int | None
    head: str


@dataclass(frozen=True, slots=True)
class Given:
    """What a side's last stage was given to rank for a case: how many documents, how many relevant ones among them,
    and the relevant ones that were not.
    """

    documents: int
    relevant: int
    out_of_reach: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SideAccount:
    """What one side did on a case, with its first few documents. Tokens None where the release does not tell, `given`
    None where no last stage was given anything.
    """

    side: str
    release: str
    status: str
    reason: str
    tokens_kept: int | None
    tokens_lost: int | None
    documents: tuple[RankedDocument, ...]
    given: Given | None = None


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
    """A case and what both sides did on it, the parent first; `predicted` in tasks without a corpus. `values` are those
    of metrics that have one by case; `causes` are what was seen where it got worse.
    """

    role: str
    group: str
    text: str
    slices: tuple[str, ...]
    sides: tuple[SideAccount, ...]
    values: tuple[ValueAccount, ...]
    predicted: Predicted | None = None
    causes: tuple[Cause, ...] = ()


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
        """SELECT m.slice FROM slice_cases m JOIN runs r USING (run)
           LEFT JOIN slices s ON s.suite_digest = r.suite_digest AND s.slice = m.slice
           WHERE m.run = ? AND m.case_id = ? ORDER BY s.rowid, m.slice""",
        [run, case_id],
    ).fetchall()
    outputs = connection.execute(
        """SELECT side, release, status, reason, tokens_kept, tokens_lost FROM outputs
           WHERE run = ? AND case_id = ? ORDER BY side DESC""",
        [run, case_id],
    ).fetchall()
    values = connection.execute(
        """SELECT d.metric, parent_value, candidate_value, delta, candidate_status FROM case_deltas d
           LEFT JOIN metrics m ON m.run = d.run AND m.metric = d.metric
           WHERE d.run = ? AND case_id = ? AND coalesce(m.form, 'mean') = 'mean' ORDER BY m.position, d.metric""",
        [run, case_id],
    ).fetchall()
    documents = _documents(connection, run, case_id, most)
    given = _given(connection, run, case_id)
    role, group, text = about[0]
    return CaseAccount(
        role=role,
        group=group,
        text=text,
        slices=tuple(row[0] for row in slices),
        sides=tuple(
            SideAccount(side, release, status, reason, kept, lost, documents.get(side, ()), given.get(side))
            for side, release, status, reason, kept, lost in outputs
        ),
        values=tuple(ValueAccount(*row) for row in values),
        predicted=predicted(connection, run, case_id).get(case_id),
        causes=causes(connection, run, case_id),
    )


def predicted(connection: Connection, run: str, case_id: str | None = None) -> dict[str, Predicted]:
    """Gold and predictions of one case or of all, by case ID; none where documents are ranked."""
    rows = connection.execute(
        """SELECT v.case_id, v.gold, r.parent IS NOT NULL, v.parent, v.parent_probability, v.parent_flags, v.candidate,
                  v.candidate_probability, v.candidate_flags
           FROM case_predictions v JOIN runs r USING (run)
           WHERE v.run = $run AND ($case_id IS NULL OR v.case_id = $case_id)""",
        {"run": run, "case_id": case_id},
    ).fetchall()
    return {
        row[0]: Predicted(
            gold=row[1],
            parent=Prediction(row[3], row[4], tuple(row[5] or ())) if row[2] else None,
            candidate=Prediction(row[6], row[7], tuple(row[8])),
        )
        for row in rows
    }


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


def _given(connection: Connection, run: str, case_id: str) -> dict[str, Given]:
    """What the last stages were given for a case, by side."""
    rows = connection.execute(
        """SELECT s.side, count(c.document_id), count(*) FILTER (j.grade > 0),
                  (SELECT list(o.document_id ORDER BY o.document_id) FROM out_of_reach o
                   WHERE o.run = s.run AND o.side = s.side AND o.case_id = $case_id)
           FROM candidate_sets s JOIN runs r USING (run)
           LEFT JOIN candidates c ON c.run = s.run AND c.side = s.side AND c.case_id = $case_id
           LEFT JOIN judgements j ON j.suite_digest = r.suite_digest AND j.case_id = c.case_id
                                  AND j.document_id = c.document_id
           WHERE s.run = $run GROUP BY s.run, s.side""",
        {"run": run, "case_id": case_id},
    ).fetchall()
    return {side: Given(documents, relevant, tuple(beyond or ())) for side, documents, relevant, beyond in rows}
