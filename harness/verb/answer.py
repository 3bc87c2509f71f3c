"""What every command that speaks of a run gives back, read from the store."""

from harness.errors import Misconfigured
from harness.metric.name import parse
from harness.output.answer import Answer, Named
from harness.output.decision import Decision, Outcome
from harness.store import read
from harness.store.connection import Connection
from harness.suite.definition import RANKED
from harness.suite.lock import Lock, parse_lock
from harness.verb.place import Place, shown


def stored_lock(connection: Connection, suite_digest: str) -> Lock:
    """A lock as a run left it in the store."""
    text = read.lock_text(connection, suite_digest)
    return parse_lock(text.encode("utf-8"), f"the stored lock {suite_digest[:12]}")


def answer(place: Place, run: str) -> Answer:
    """A decided run. Report and bundle are named where they are there. Raises Misconfigured for an undecided run."""
    with place.store.reading() as connection:
        record = read.find_run(connection, run)
        releases = read.releases(connection, record.run)
        rules = read.rule_results(connection, record.run)
        metrics = read.summaries(connection, record.run)
        deltas = read.deltas(connection, record.run)
        counts = read.counts(connection, record.run, "candidate")
        measured = read.metrics(connection, record.run)
        definition = stored_lock(connection, record.suite_digest).definition
    if record.decision is None:
        raise Misconfigured(
            f"run {record.run[:12]}", found="a run that was not finished", expected="a decided run",
            mend=f"Give the same `harness run` again, or `harness decide {record.run[:12]}`.",
        )  # fmt: skip
    outcome = Outcome(record.decision)
    report = place.report(record.run) / "index.html"
    bundle = place.bundle(place.root / releases["candidate"].place, record.run)
    kept = outcome is Outcome.PASS and not record.exploratory and bundle.is_dir()
    named = {side: Named(each.release, each.content_id) for side, each in releases.items()}
    return Answer(
        run=record.run,
        decision=Decision(outcome, bool(record.exploratory), rules, record.remarks),
        suite=record.suite,
        suite_digest=record.suite_digest,
        candidate=named["candidate"],
        parent=named.get("parent"),
        metrics=metrics,
        counts=counts,
        store=shown(place.store.path),
        report=shown(report) if report.is_file() else None,
        bundle=shown(bundle) if kept else None,
        reading=record.reading or 1,
        deltas=deltas,
        task=definition.task,
        ranks=definition.task in RANKED,
        losses=tuple(each.metric for each in measured if not each.higher_is_better),
        targets={each.metric: target for each in measured if (target := parse(each.metric).target) is not None},
        followed=next((each.metric for each in measured if each.followed), None),
    )
