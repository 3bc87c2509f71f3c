"""`harness bundle`: what leaves on PASS."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from harness.bundle.write import write
from harness.errors import Misconfigured, Tampered
from harness.gate import waiver
from harness.identity import Json
from harness.lifecycle.state import State, advance, state
from harness.output.answer import Answer
from harness.output.decision import Outcome
from harness.release.open import Release, open_release
from harness.report.markdown import markdown
from harness.store import read
from harness.verb.answer import answer, stored_lock
from harness.verb.place import Place, find_place
from harness.verb.report import content


def bundle(run: str, *, store: str | None = None) -> Answer:
    """Writes the bundle of a stored run that passed against a parent, and takes its candidate to CANDIDATE.

    Raises Misconfigured for any other run, Tampered where a release's files are no longer those that were run.
    """
    place = find_place(store=store)
    found = answer(place, run)
    if found.decision.exploratory or found.decision.outcome is not Outcome.PASS or found.parent is None:
        raise Misconfigured(
            f"run {found.run[:12]}",
            found="an exploratory decision" if found.decision.exploratory else f"{found.decision.outcome}, "
            f"{'against a parent' if found.parent else 'without a parent'}",
            expected="a run that passed against its parent", mend=f"See why with `harness explain {found.run[:12]}`.",
        )  # fmt: skip
    _waivers_hold(place, found)
    write_bundle(place, found)
    return answer(place, found.run)


def _waivers_hold(place: Place, found: Answer) -> None:
    """A decision that rests on a waiver leaves only while the waiver stands and has not expired."""
    with place.store.reading() as connection:
        folder = place.root / read.find_run(connection, found.run).suite_place
    standing = {each.finding for each in waiver.read(folder, datetime.now(UTC))}
    for rule in found.decision.rules:
        if rule.outcome is Outcome.WAIVED and rule.finding not in standing:
            raise Misconfigured(
                f"run {found.run[:12]}", found=f"{rule.id} passed by a waiver that is no longer there",
                expected="the waivers that the decision rests on",
                mend=f"Decide again: `harness decide {found.run[:12]}`.",
            )  # fmt: skip


def write_bundle(place: Place, found: Answer) -> None:
    """Puts the bundle in place, then records the step."""
    with place.store.reading() as connection:
        record = read.find_run(connection, found.run)
        releases = read.releases(connection, found.run)
        lock = stored_lock(connection, record.suite_digest)
        tables = read.evidence(connection, found.run)
    opened = {side: _unchanged(open_release(place.root / each.place), each) for side, each in releases.items()}
    candidate, parent = opened["candidate"], opened["parent"]
    folder = place.bundle(candidate.folder, found.run)
    records: dict[str, Json] = {
        "decision": {**found.as_record(), "store": None, "report": None, "bundle": None},
        "candidate": _side(candidate, releases["candidate"]),
        "parent": _side(parent, releases["parent"]),
        "suite.lock": {**lock.as_record(), "digest": lock.digest},
        "rollback": _rollback(parent, releases["parent"], found),
    }
    sums = write(folder, records, tables, {"report.md": markdown(content(place, replace(found, bundle=None)))})
    advance(candidate.folder, candidate.content_id, State.CANDIDATE, {"run": found.run, "bundle": sums})


def _unchanged(release: Release, then: read.ReleaseRecord) -> Release:
    if release.content_id != then.content_id:
        raise Tampered(
            str(release.folder), found=f"content {release.content_id[:16]}, run as {then.content_id[:16]}",
            expected="the files that were run", mend="Restore them, or run the release again as it is now.",
        )  # fmt: skip
    return release


def _side(release: Release, ran: read.ReleaseRecord) -> Json:
    return {
        "name": release.name,
        "content_id": release.content_id,
        "meaning": release.meaning,
        "files": dict(release.files),
        "runtime": json.loads(ran.runtime),
        "definition": (release.folder / "release.toml").read_text(encoding="utf-8"),
    }


def _rollback(parent: Release, ran: read.ReleaseRecord, found: Answer) -> Json:
    """Where to go back to: the parent's whole meaning, not only its weights, and how well it is known here."""
    known = state(parent.folder, parent.content_id)
    return {
        "schema": "harness.rollback.v1",
        "target": _side(parent, ran),
        "known_as": str(known) if known is State.CANDIDATE else "declared",
        "judged_in": found.run,
        "suite": found.suite_digest,
    }
