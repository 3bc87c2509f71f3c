"""`harness report`: a stored run as a page, a note for a pull request, and a test result for CI."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, replace
from pathlib import Path

from harness.file.whole import new_folder
from harness.identity import Json
from harness.output.answer import Answer
from harness.output.companion import Cell, Companion
from harness.release.difference import Stated, difference
from harness.release.manifest import Meaning, Runtime
from harness.report.content import Content, MeaningChange, SliceInfo
from harness.report.duration import FILE as TIME
from harness.report.duration import duration
from harness.report.junit import junit
from harness.report.markdown import markdown
from harness.report.page import html
from harness.store import account, read, read_task
from harness.store.cause import cause_counts
from harness.store.diagnostic import diagnostics
from harness.suite.lock import Lock
from harness.verb.answer import answer, stored_lock
from harness.verb.duration import durations
from harness.verb.measure import metric_names
from harness.verb.place import Place, find_place
from harness.verb.task.calibration import ENOUGH, SLICE_RELIABILITY

# Cases shown on each side of the ledger; the store has them all.
SHOWN = 20
CONDITIONAL = {
    True: "Intervals and p-values are conditional on these weights, this corpus and these judgements: they speak of "
    "other questions like these, not of other corpora or other judges.",
    False: "Intervals and p-values are conditional on these weights and on what the data say holds: they speak of "
    "other cases like these, not of other kinds of text or of others' labels.",
}
"""By whether documents of a corpus are ranked."""
LIMITS = (
    "Groups of cases that depend on one another are drawn whole; n is the number of groups.",
    "A rule that passes says not worse than its margin here; it does not say better, and it decides no promotion.",
)


def report(run: str, *, store: str | None = None) -> Answer:
    """Writes reports/RUN again: index.html, report.md, junit.xml, time.md.

    Raises NotFound for a run that isn't there.
    """
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
        # Beside the others, for it follows a clock and they do not.
        (part / TIME).write_text(duration(durations(place, found)), encoding="utf-8", newline="\n")
        queue = _judging_queue(place, found)
        if queue:
            (part / "judging-queue.jsonl").write_text(queue, encoding="utf-8", newline="\n")


def content(place: Place, found: Answer) -> Content:
    """Everything a report says about a decided run, from the store alone."""
    with place.store.reading() as connection:
        record = read.find_run(connection, found.run)
        lock = stored_lock(connection, record.suite_digest)
        primary = lock.definition.metrics.primary
        transitions = account.transitions(connection, found.run)
        changes = account.case_changes(connection, found.run, found.followed) if found.followed else ()
        sign = -1 if found.followed in found.losses else 1
        moves = [sign * (each.candidate_value - each.parent_value) for each in changes]
        releases = read.releases(connection, found.run)
        return Content(
            # As the project names its places, so that the bytes don't depend on where the command was given.
            answer=replace(
                found,
                store=place.kept(place.store.path),
                report=None,
                bundle=place.kept(Path(found.bundle)) if found.bundle else None,
            ),
            primary=primary,
            metrics=metric_names(lock),
            slices=_slices(lock, {**lock.slices, **read.run_slices(connection, found.run)}),
            criterion=transitions.criterion,
            transitions=transitions.counts,
            regressions=tuple(each for each, move in zip(changes, moves, strict=True) if move < 0)[:SHOWN],
            improvements=tuple(each for each, move in zip(changes, moves, strict=True) if move > 0)[: -SHOWN - 1 : -1],
            changes=_meaning_changes(releases),
            case_deltas=account.case_deltas(connection, found.run, found.followed) if found.followed else (),
            method=lock.definition.uncertainty.method,
            draws=lock.definition.uncertainty.draws,
            level=lock.definition.uncertainty.level,
            limits=(CONDITIONAL[found.ranks], *LIMITS),
            companions={
                side: tuple(shown for each in tables if (shown := _worth_showing(each)).rows or not each.rows)
                for side, tables in read_task.companions(connection, found.run).items()
            },
            diagnostics=diagnostics(connection, found.run),
            causes=cause_counts(connection, found.run),
        )


def _worth_showing(table: Companion) -> Companion:
    """Reliability without empty bins; by slice without `all`, which stands above, and slices of too few forecasts."""
    if table.name not in ("reliability", SLICE_RELIABILITY):
        return table
    at = table.columns.index("forecasts")
    if table.name == "reliability":
        return replace(table, rows=tuple(row for row in table.rows if row[at]))
    held: Counter[Cell] = Counter()
    for row in table.rows:
        held[row[0]] += int(row[at] or 0)
    return replace(table, rows=tuple(row for row in table.rows if held[row[0]] >= ENOUGH and row[0] != "all"))


def _slices(lock: Lock, members: Mapping[str, Collection[str]]) -> tuple[SliceInfo, ...]:
    """`all` first. Cases and groups are those of the promotion role."""
    promoted = {
        case: group
        for case, role, group in zip(lock.case_ids, lock.roles, lock.groups, strict=True)
        if role == "promotion"
    }
    declared = [SliceInfo("all", "every promotion case", True, len(promoted), len(set(promoted.values())))]
    for each in lock.declared:
        groups = [promoted[case] for case in members[each.name] if case in promoted]
        declared.append(SliceInfo(each.name, each.definition, each.critical, len(groups), len(set(groups))))
    return tuple(declared)


def _meaning_changes(releases: dict[str, read.ReleaseRecord]) -> tuple[MeaningChange, ...]:
    """As `harness diff` tells them, of what the store has of both."""
    if "parent" not in releases:
        return ()
    parent, candidate = (_stated(releases[side]) for side in ("parent", "candidate"))
    return tuple(MeaningChange(each.field, _said(each.old), _said(each.new)) for each in difference(parent, candidate))


def _stated(release: read.ReleaseRecord) -> Stated:
    parts = {role: Meaning.model_validate_json(json.dumps(part)) for role, part in json.loads(release.parts).items()}
    runtime = Runtime(declared={}, observed=json.loads(release.runtime))
    return Stated(Meaning.model_validate_json(release.meaning), runtime, parts)


def _said(value: Json) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _judging_queue(place: Place, found: Answer) -> str:
    """What to judge first, one JSON object a line, where a rule waits for judgements; else nothing."""
    if not any(rule.awaits_judging for rule in found.decision.rules):
        return ""
    with place.store.reading() as connection:
        queue = account.judging_queue(connection, found.run)
    return "".join(json.dumps(asdict(each), ensure_ascii=False) + "\n" for each in queue)
