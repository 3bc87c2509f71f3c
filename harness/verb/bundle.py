"""`harness bundle`: what leaves on PASS."""

import json
from dataclasses import replace
from datetime import UTC, datetime

from harness.bundle.write import write
from harness.errors import Misconfigured
from harness.gate import waiver
from harness.identity import Json
from harness.lifecycle import requirement
from harness.lifecycle.rollback import rollback
from harness.lifecycle.state import State, advance, evidence, refuse_changed
from harness.output.answer import Answer
from harness.output.decision import Outcome
from harness.release.open import DEFINITION, Release, open_release
from harness.report.markdown import markdown
from harness.store import evidence as stored
from harness.store import read
from harness.verb.answer import answer, stored_lock
from harness.verb.place import Place, find_place
from harness.verb.plan import as_tuple, prepare
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
    if lacking := unmet(place, found):
        raise Misconfigured(
            f"run {found.run[:12]}", found=f"not yet a CANDIDATE: it lacks {', and '.join(lacking)}",
            expected="what gate.toml asks for", mend="Run the candidate on the suites that are missing.",
        )  # fmt: skip
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


def unmet(place: Place, found: Answer) -> tuple[str, ...]:
    """What the project's gate.toml asks of a CANDIDATE and this run's does not have, in words."""
    with place.store.reading() as connection:
        releases = read.releases(connection, found.run)
    gate = requirement.read(place.root)
    known = {side: (place.root / each.place, each.content_id) for side, each in releases.items()}
    passed: dict[str, set[str]] = {}
    for each in evidence(*known["candidate"], State.EVALUATED):
        passed.setdefault(str(each.get("name")), set()).add(str(each.get("suite")))
    parent = releases.get("parent")
    return requirement.missing(
        gate,
        ran=found.suite,
        passed=passed,
        locks={lock.definition.name: lock.digest for lock in place.locks()} if gate.suites else {},
        parent=requirement.proven_state(*known["parent"]) if parent else None,
        parent_name=parent.release if parent else "its parent",
    )


def write_bundle(place: Place, found: Answer) -> None:
    """Puts the bundle in place, then records the step.

    Raises Tampered where a release's files are no longer those that were run, NotAdmitted where the rollback record
    lacks a part.
    """
    with place.store.reading() as connection:
        record = read.find_run(connection, found.run)
        releases = read.releases(connection, found.run)
        lock = stored_lock(connection, record.suite_digest)
    opened = {side: open_release(place.root / each.place) for side, each in releases.items()}
    for side, each in opened.items():
        refuse_changed(each.folder, then=releases[side].content_id, now=each.content_id)
    candidate, parent = opened["candidate"], opened["parent"]
    prepared = prepare(place, parent, candidate)
    back = rollback(
        parent.manifest,
        folder=parent.folder,
        namespaces=prepared.namespaces,
        evidence={"run": found.run, "suite": found.suite_digest},
        state=requirement.proven_state(parent.folder, parent.content_id),
        parts={role: each.manifest for role, each in parent.members.items()},
    )
    records: dict[str, Json] = {
        "decision": {**found.as_record(), "store": None, "report": None, "bundle": None},
        "candidate": _side(candidate, releases["candidate"]),
        "parent": _side(parent, releases["parent"]),
        "suite.lock": {**lock.as_record(), "digest": lock.digest},
        "changes": [change.as_record() for change in prepared.changes],
        "namespaces": [each.as_record() for each in prepared.states],
        "invalidation": prepared.plan.as_record(),
        "migration": prepared.migration.as_record(),
        "rollback": back.as_record(),
    }
    report = markdown(content(place, replace(found, bundle=None)))
    folder = place.bundle(candidate.folder, found.run)
    with place.store.reading() as connection:
        sums = write(folder, records, stored.evidence(connection, found.run), {"report.md": report})
    advance(candidate.folder, candidate.content_id, State.CANDIDATE, {"run": found.run, "bundle": sums})


def _side(release: Release, ran: read.ReleaseRecord) -> Json:
    """A release's whole manifest, what it ran on, and the file in which a person says what it is."""
    return {
        "manifest": release.manifest.as_record(),
        "nodes": as_tuple(release).graph.as_record(),
        "runtime": json.loads(ran.runtime),
        "exports": {file.name: json.loads(file.read_bytes()) for file in sorted(release.folder.glob("export/*.json"))},
        "definition": (release.folder / DEFINITION).read_text(encoding="utf-8"),
    }
