"""`harness run`: the main job, from two releases and a frozen suite to a decision, a report and, on PASS, a bundle."""

import json
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from harness import __version__
from harness.candidate.passes import listening
from harness.errors import Misconfigured
from harness.identity import canonical_json
from harness.metric.label import explained, match_labels
from harness.output.answer import Answer
from harness.release.open import DEFINITION, Release, calibrator_text, open_release, threshold_text
from harness.run.cache import Cache
from harness.run.execute import execute, runtime_of
from harness.run.fit import require_fit
from harness.run.key import output_key, run_id, scores_key
from harness.run.output import Executed
from harness.run.record import (
    copy_outputs,
    record_heads,
    record_outputs,
    record_prompts,
    record_suite,
    record_trained,
)
from harness.store import read, write
from harness.store.diagnostic import record_vector_diagnostics
from harness.suite.freeze import FrozenSuite, check_members, open_frozen
from harness.suite.trained import Trained, refuse_trained, trained
from harness.verb.admit import require_admitted
from harness.verb.cache import open_cache
from harness.verb.decide import conclude_run, decide_run
from harness.verb.duration import keep_passes, keep_plan
from harness.verb.freeze import members
from harness.verb.place import Place, find_place
from harness.verb.progress import doing
from harness.verb.space import of_vectors

NO_PARENT = "none"


def run(
    suite: str | Path,
    *,
    candidate: str | Path,
    parent: str | Path | None = None,
    store: str | None = None,
    cache: bool = True,
) -> Answer:
    """Runs candidate and parent over a frozen suite, measures, decides, reports, and bundles on PASS.

    `parent`: a release, or "none" for floors and invariants alone; by default the one that the candidate's
    release.toml names. What an earlier run of the same inputs finished is not done again. `cache`: take vectors that
    were computed before, also for other suites and releases, and keep those that are computed now.
    Raises Misconfigured or NotFound (exit 2), Tampered or NotAdmitted (4), Stopped (5); a FAIL is no error.
    """
    named = None if parent is None else str(parent)
    return run_in(find_place(store=store), str(suite), str(candidate), named, cached=cache)


def run_in(place: Place, suite: str, candidate: str, parent: str | None, *, cached: bool = True) -> Answer:
    """`run` in a given project."""
    kept = open_cache(place) if cached else None
    frozen_at = place.suite(suite)
    sides = _sides(place, candidate, parent)
    with doing("holding the suite against its lock"):
        frozen = open_frozen(frozen_at)
        check_members(frozen, members)
    require_fit(sides, frozen.lock.definition)
    for release in sides.values():
        require_admitted(release)
    seen = _trained(frozen, sides)
    run = _begin(place, frozen, sides)
    _outputs(place, run, sides, frozen, kept)
    with place.store.writing() as connection:
        record_heads(connection, frozen, run)
        for side, found in seen.items():
            record_trained(connection, run, side, found)
    lock = frozen.lock
    # What follows is read from the store: of a large suite, the texts would only take room beside it.
    del frozen
    with doing("measuring and deciding"):
        decide_run(place, run, frozen_at, lock)
    if "parent" in sides:
        keep_plan(place, run, sides["parent"], sides["candidate"])
    return conclude_run(place, run, bundling=True)


def _sides(place: Place, candidate: str, parent: str | None) -> dict[str, Release]:
    """The releases by side, opened. Raises Misconfigured where the two are one, or the parent is another one."""
    mine = open_release(place.release(candidate))
    declared = mine.definition.parent
    parent = parent or declared
    if parent is None:
        raise Misconfigured(
            f"release {mine.name!r}",
            found="no parent given and none in its release.toml",
            expected="a rollback parent",
            mend="Add --parent NAME, or --parent none to judge floors and invariants alone.",
        )
    if parent == NO_PARENT:
        return {"candidate": mine}
    other = open_release(place.release(parent))
    if declared is not None and other.name != declared:
        raise Misconfigured(
            f"--parent {parent}",
            found=f"release {other.name!r}",
            expected=f"{declared!r}, the parent in {mine.folder / DEFINITION}",
            mend=f"Give --parent {declared}, or change `parent` in release.toml.",
        )
    if other.name == mine.name:
        raise Misconfigured(
            f"candidate {mine.folder} and parent {other.folder}",
            found=f"one name, {mine.name!r}",
            expected="two names",
            mend="Rename one of them in its release.toml.",
        )
    if other.identity == mine.identity:
        raise Misconfigured(
            f"candidate {mine.name!r} and parent {other.name!r}",
            found=f"one content, {mine.content_id[:16]}",
            expected="two releases that differ",
            mend="There is nothing to decide: release.toml and files say the same.",
        )
    return {"candidate": mine, "parent": other}


def _trained(frozen: FrozenSuite, sides: Mapping[str, Release]) -> dict[str, tuple[Trained, ...]]:
    """Cases that either side was trained on. Raises Leaked for promotion cases of the candidate's: that its parent saw
    them only holds it to more, and is told.
    """
    found = {side: trained(frozen.suite, release.name, release.training_files) for side, release in sides.items()}
    refuse_trained(frozen.suite, sides["candidate"].name, found["candidate"])
    return found


def _begin(place: Place, frozen: FrozenSuite, sides: Mapping[str, Release]) -> str:
    """Enters the run with its releases; the same inputs give the same run."""
    lock = frozen.lock
    runtimes = {side: runtime_of(release) for side, release in sides.items()}
    keys = {
        side: output_key(
            data=lock.data_digest, scores=scores_key(release), prompts=release.prompts(lock.definition.name),
            runtime=runtimes[side],
        )
        for side, release in sides.items()
    }  # fmt: skip
    run = run_id(
        suite=lock.digest,
        sides={side: (release.name, release.content_id, keys[side]) for side, release in sides.items()},
    )
    with place.store.writing() as connection:
        record_suite(connection, frozen)
        if not read.has_run(connection, run):
            write.append(connection, "runs", {"run": run}, {
                "suite": [lock.definition.name],
                "suite_digest": [lock.digest],
                "suite_place": [place.kept(frozen.suite.folder)],
                "candidate": [sides["candidate"].name],
                "parent": [sides["parent"].name if "parent" in sides else None],
                "updated_at": [datetime.now(UTC).replace(tzinfo=None)],
                "version": [__version__],
            })  # fmt: skip
        for side, release in sides.items():
            write.replace(connection, "releases", {"run": run, "side": side}, {
                "release": [release.name],
                "place": [place.kept(release.folder)],
                "content_id": [release.content_id],
                "output_key": [keys[side]],
                "interaction": [release.definition.interaction],
                "meaning": [canonical_json(release.meaning).decode("utf-8")],
                "parts": [json.dumps({role: dict(each.meaning) for role, each in release.members.items()})],
                "runtime": [json.dumps(runtimes[side], sort_keys=True)],
                "threshold": pa.array([threshold_text(release)], pa.string()),
                "calibrator": pa.array([calibrator_text(release)], pa.string()),
            })  # fmt: skip
            record_prompts(connection, run, side, release, lock.definition.name)
    return run


def _match_labels(release: Release, executed: Executed, frozen: FrozenSuite) -> None:
    """Before anything is kept: every label of the data must be among the model's. Raises Misconfigured with both."""
    labels, own = frozen.lock.label_schema, executed.labels
    tags = release.manifest.meaning.output.labels
    if frozen.lock.definition.task == "entity" and tags:
        own = tuple(dict.fromkeys(tag.partition("-")[2] for tag in tags if "-" in tag))
    if labels is None or not own:
        return
    # Whoever names a head's rows in release.toml says what they mean, also where the data use such names.
    declared = explained(labels, own) if release.definition.output.labels else {}
    try:
        match_labels(labels, own, {**declared, **executed.named})
    except Misconfigured as refusal:
        raise Misconfigured(
            f"{refusal.subject} of release {release.name!r}", found=refusal.found, expected=refusal.expected,
            mend=refusal.mend
            if release.recorded
            else "Write the data's names, in the order of the head's rows, as `labels` under [output] in release.toml.",
        ) from refusal  # fmt: skip


def _outputs(place: Place, run: str, sides: Mapping[str, Release], frozen: FrozenSuite, kept: Cache | None) -> None:
    """Outputs into the store: there already, taken from another run under the same key, or made now, together."""
    with place.store.reading() as connection:
        keys = {side: found.output_key for side, found in read.releases(connection, run).items()}
        lacking = [side for side in sides if not write.finished(connection, run, f"outputs:{side}")]
    with place.store.writing() as connection:
        lacking = [s for s in lacking if not copy_outputs(connection, run, s, sides[s].name, keys[s])]
    todo = {side: sides[side] for side in lacking}
    if not todo:
        return
    started = time.perf_counter()
    names = " and ".join(release.name for release in todo.values())
    with doing(f"{names}: {len(frozen.suite.cases)} cases of {frozen.lock.definition.name}"), listening() as heard:
        executed = dict(execute(todo, frozen, kept))
    for side, release in todo.items():
        _match_labels(release, executed[side], frozen)
    seconds = (time.perf_counter() - started) / len(todo)
    for side, release in todo.items():
        with place.store.writing() as connection:
            made = executed.pop(side)
            record_vector_diagnostics(connection, run, side, release.name, of_vectors(release, made, frozen.lock))
            record_outputs(connection, run, side, release.name, made, seconds)
    keep_passes(place, run, heard, todo)
