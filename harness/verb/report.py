"""`harness report`: a stored run as a page, a note for a pull request, and a test result for CI."""

import json
from dataclasses import replace
from pathlib import Path

from harness.file.whole import new_folder
from harness.identity import Json
from harness.output.answer import Answer
from harness.report.content import (
    CaseChange,
    Content,
    FirstAnswer,
    MeaningChange,
    SliceInfo,
    TransitionCount,
)
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.page import html
from harness.store import read
from harness.store.connection import Connection
from harness.suite.lock import Lock
from harness.verb.answer import answer, stored_lock
from harness.verb.measure import metric_names
from harness.verb.place import Place, find_place

# Cases shown on each side of the ledger; the store has them all.
SHOWN = 20
LIMITS = (
    "Intervals and p-values are conditional on these weights, this corpus and these judgements: they speak of other "
    "questions like these, not of other corpora or other judges.",
    "Groups of cases that depend on one another are drawn whole; n is the number of groups.",
    "A rule that passes says not worse than its margin here; it does not say better, and it decides no promotion.",
)


def report(run: str, *, store: str | None = None) -> Answer:
    """Writes reports/RUN again: index.html, report.md, junit.xml. Raises NotFound for a run that isn't there."""
    place = find_place(store=store)
    found = answer(place, run)
    write_report(place, found)
    return answer(place, found.run)


def write_report(place: Place, found: Answer) -> None:
    """Puts the report's folder in place, whole."""
    told = content(place, found)
    with new_folder(place.report(found.run)) as part:
        (part / "index.html").write_text(html(told), encoding="utf-8", newline="\n")
        (part / "report.md").write_text(markdown(told), encoding="utf-8", newline="\n")
        (part / "junit.xml").write_text(junit(told), encoding="utf-8", newline="\n")
        queue = _judging_queue(place, found)
        if queue:
            (part / "judging-queue.jsonl").write_text(queue, encoding="utf-8", newline="\n")


def content(place: Place, found: Answer) -> Content:
    """Everything a report says about a decided run, from the store alone."""
    with place.store.reading() as connection:
        record = read.find_run(connection, found.run)
        lock = stored_lock(connection, record.suite_digest)
        primary = lock.definition.metrics.primary
        transitions, criterion = _transitions(connection, found.run)
        changes = _case_changes(connection, found.run, primary)
        releases = read.releases(connection, found.run)
        return Content(
            # As the project names its places, so that the bytes don't depend on where the command was given.
            answer=replace(
                found,
                store=place.kept(place.store.path),
                report=None,
                bundle=place.kept(Path(found.bundle)) if found.bundle else None,
            ),
            task=lock.definition.task,
            primary=primary,
            metrics=metric_names(lock),
            slices=_slices(lock),
            criterion=criterion,
            transitions=transitions,
            regressions=tuple(each for each in changes if each.candidate_value < each.parent_value)[:SHOWN],
            improvements=tuple(each for each in reversed(changes) if each.candidate_value > each.parent_value)[:SHOWN],
            changes=_meaning_changes(releases),
            primary_deltas=_primary_deltas(connection, found.run, primary),
            method=lock.definition.uncertainty.method,
            draws=lock.definition.uncertainty.draws,
            level=lock.definition.uncertainty.level,
            limits=LIMITS,
        )


def _slices(lock: Lock) -> tuple[SliceInfo, ...]:
    """`all` first. Cases and groups are those of the promotion role."""
    promoted = {
        case: group
        for case, role, group in zip(lock.case_ids, lock.roles, lock.groups, strict=True)
        if role == "promotion"
    }
    declared = [SliceInfo("all", "every promotion case", True, len(promoted), len(set(promoted.values())))]
    for each in lock.definition.slices:
        groups = [promoted[case] for case in lock.slices[each.name] if case in promoted]
        declared.append(SliceInfo(each.name, each.where, each.critical, len(groups), len(set(groups))))
    return tuple(declared)


def _transitions(connection: Connection, run: str) -> tuple[tuple[TransitionCount, ...], str]:
    counts: dict[str, dict[str, int]] = {}
    criterion = ""
    rows = connection.execute(
        """SELECT t.criterion, t.slice, t.transition, t.cases FROM transition_counts t JOIN runs r USING (run)
           LEFT JOIN slices s ON s.suite_digest = r.suite_digest AND s.slice = t.slice
           WHERE t.run = ? ORDER BY s.rowid NULLS FIRST""",
        [run],
    )
    for criterion, name, transition, cases in rows.fetchall():  # noqa: B007  # every row has the same criterion
        counts.setdefault(name, {})[transition.replace("-", "_")] = cases
    none = dict.fromkeys(("both_right", "parent_only", "candidate_only", "both_wrong_same", "both_wrong_different"), 0)
    return tuple(TransitionCount(slice=name, **{**none, **each}) for name, each in counts.items()), criterion


def _case_changes(connection: Connection, run: str, metric: str) -> list[CaseChange]:
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
    )
    return [
        CaseChange(
            case_id=row[0], text=row[1], slices=tuple(row[10] or ()), parent_value=row[2], candidate_value=row[3],
            parent_first=_first(*row[4:7]), candidate_first=_first(*row[7:10]),
        )
        for row in rows.fetchall()
    ]  # fmt: skip


def _first(document_id: str | None, head: str | None, grade: int | None) -> FirstAnswer | None:
    return None if document_id is None else FirstAnswer(document_id, head or "", grade)


def _primary_deltas(connection: Connection, run: str, metric: str) -> tuple[float, ...]:
    rows = connection.execute(
        """SELECT delta FROM case_deltas d JOIN runs r USING (run)
           JOIN cases k ON k.suite_digest = r.suite_digest AND k.case_id = d.case_id
           WHERE d.run = ? AND d.metric = ? AND d.role = 'promotion' AND delta IS NOT NULL ORDER BY k.position""",
        [run, metric],
    )
    return tuple(row[0] for row in rows.fetchall())


def _meaning_changes(releases: dict[str, read.ReleaseRecord]) -> tuple[MeaningChange, ...]:
    if "parent" not in releases:
        return ()
    parent, candidate = (_flat(json.loads(releases[side].meaning)) for side in ("parent", "candidate"))
    return tuple(
        MeaningChange(field, parent.get(field), candidate.get(field))
        for field in sorted(parent.keys() | candidate.keys())
        if parent.get(field) != candidate.get(field)
    )


def _flat(value: Json, name: str = "") -> dict[str, str]:
    if isinstance(value, dict):
        return {
            path: text
            for key, each in value.items()
            for path, text in _flat(each, f"{name}.{key}" if name else key).items()
        }
    return {name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}


def _judging_queue(place: Place, found: Answer) -> str:
    """What to judge first, one JSON object a line, where a rule waits for judgements; else nothing."""
    if not any(rule.awaits_judging for rule in found.decision.rules):
        return ""
    with place.store.reading() as connection:
        rows = connection.execute(
            "SELECT case_id, text, position, document_id, head FROM judging_queue WHERE run = ?", [found.run]
        ).fetchall()
    names = ("case_id", "text", "position", "document_id", "head")
    return "".join(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False) + "\n" for row in rows)
