"""`harness explain`: why a run was decided as it was, in words."""

from collections.abc import Iterator

from harness.errors import NotFound
from harness.output.answer import Answer
from harness.output.decision import Outcome, RuleResult
from harness.report.text import clipped
from harness.store import read
from harness.verb.answer import answer
from harness.verb.place import Place, find_place

WORST_FIRST = (Outcome.FAIL, Outcome.UNDECIDED, Outcome.WAIVED, Outcome.PASS)
SHOWN = 5
SHOWN_CHARACTERS = 100
MEMBERS = "SELECT m.case_id FROM slice_members m JOIN runs r USING (suite_digest) WHERE r.run = ? AND m.slice = ?"


def explain(run: str, *, rule: str | None = None, case: str | None = None, store: str | None = None) -> str:
    """Why, in words: of the decision, of one rule, or of one case. Raises NotFound for what the run doesn't have."""
    place = find_place(store=store)
    found = answer(place, run)
    if case is not None:
        return "\n".join(_case(place, found, case))
    if rule is not None:
        results = [result for result in found.decision.rules if result.id == rule]
        if not results:
            raise NotFound(
                f"rule {rule!r}", found="no such rule in this run", expected="a rule's ID",
                mend=f"There is: {', '.join(result.id for result in found.decision.rules[:20])}.",
            )  # fmt: skip
        return "\n".join(line for result in results for line in _rule(place, found, result))
    return "\n".join(_decision(found))


def _decision(found: Answer) -> Iterator[str]:
    against = f"against {found.parent.name}" if found.parent else "without a parent"
    yield f"{found.decision.outcome}: {found.candidate.name} {against} on {found.suite} (run {found.run[:12]})."
    yield from found.decision.remarks
    for outcome in WORST_FIRST:
        results = [result for result in found.decision.rules if result.outcome is outcome]
        if not results:
            continue
        yield ""
        yield f"{outcome} ({len(results)})"
        for result in results if outcome is not Outcome.PASS else results[:SHOWN]:
            yield f"  {result.id}: {result.metric} on {result.slice}: {result.reason}"
        if outcome is Outcome.PASS and len(results) > SHOWN:
            yield f"  and {len(results) - SHOWN} more"


def _rule(place: Place, found: Answer, result: RuleResult) -> Iterator[str]:
    yield f"{result.id} ({result.kind}{', critical' if result.critical else ''}): {result.outcome}"
    yield f"  {result.metric} on {result.slice}: {result.reason}"
    yield f"  {result.n_cases} cases in {result.n_groups} groups"
    if result.mde is not None:
        yield f"  the smallest true change it would see four times in five: {result.mde:.4f}"
    if result.method:
        yield f"  interval by {result.method}"
    if result.finding:
        yield f"  finding {result.finding}"
    if result.delta is None:
        return
    members = "" if result.slice == "all" else f"AND case_id IN ({MEMBERS})"
    with place.store.reading() as connection:
        rows = connection.execute(
            f"""SELECT case_id, delta, text FROM worst_regressions WHERE run = ? AND metric = ? {members}
                ORDER BY delta, case_id LIMIT {SHOWN}""",
            [found.run, result.metric, *([found.run, result.slice] if members else [])],
        ).fetchall()
    if rows:
        yield "  lost most:"
    for case_id, delta, text in rows:
        yield f"    {case_id} {delta:+.4f}  {clipped(text, SHOWN_CHARACTERS)}"


def _case(place: Place, found: Answer, case: str) -> Iterator[str]:
    with place.store.reading() as connection:
        suite = read.find_run(connection, found.run).suite_digest
        about = connection.execute(
            "SELECT role, case_group, text FROM cases WHERE suite_digest = ? AND case_id = ?", [suite, case]
        ).fetchall()
        if not about:
            raise NotFound(
                f"case {case!r}", found="no such case in this run's suite", expected="a case ID",
                mend='`harness sql "SELECT case_id, text FROM cases"` lists them.',
            )  # fmt: skip
        slices = [
            row[0] for row in connection.execute(
                "SELECT slice FROM slice_members WHERE suite_digest = ? AND case_id = ? ORDER BY rowid", [suite, case]
            ).fetchall()
        ]  # fmt: skip
        outputs = connection.execute(
            """SELECT side, release, status, reason, tokens_kept, tokens_lost FROM outputs
               WHERE run = ? AND case_id = ? ORDER BY side DESC""",
            [found.run, case],
        ).fetchall()
        rankings = connection.execute(
            """SELECT g.side, g.position, g.document_id, g.score, j.grade, d.head FROM rankings g
               LEFT JOIN judgements j ON j.suite_digest = $suite AND j.case_id = g.case_id
                                      AND j.document_id = g.document_id
               LEFT JOIN documents d ON d.suite_digest = $suite AND d.document_id = g.document_id
               WHERE g.run = $run AND g.case_id = $case AND g.position <= $shown ORDER BY g.side DESC, g.position""",
            {"suite": suite, "run": found.run, "case": case, "shown": SHOWN},
        ).fetchall()
        values = connection.execute(
            """SELECT metric, parent_value, candidate_value, delta, candidate_status FROM case_deltas
               WHERE run = ? AND case_id = ? ORDER BY metric""",
            [found.run, case],
        ).fetchall()
    role, group, text = about[0]
    yield f"{case} ({role}, group {group}): {clipped(text, SHOWN_CHARACTERS)}"
    yield f"  slices: {', '.join(slices) or 'none besides all'}"
    for side, release, status, reason, kept, lost in outputs:
        cut = f", {lost} of {kept + lost} tokens cut" if lost else ""
        yield f"  {side} {release}: {status}{cut}{f' ({reason})' if reason else ''}"
        for _, position, document, score, grade, head in [row for row in rankings if row[0] == side]:
            judged = "not judged" if grade is None else f"grade {grade}"
            yield f"    {position}. {document} {score:.6g} ({judged})  {clipped(head or '', SHOWN_CHARACTERS)}"
    for metric, parent, candidate, delta, status in values:
        if status != "scored":
            yield f"  {metric}: {status}"
        elif parent is None:
            yield f"  {metric}: {candidate:.4f}"
        else:
            yield f"  {metric}: {parent:.4f} to {candidate:.4f} ({delta:+.4f})"
