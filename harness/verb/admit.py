"""`harness admit`: derive, check, prove. Fail-closed: every broken invariant at once, each with its mend."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from harness.errors import Stopped
from harness.identity import Json
from harness.lifecycle.invalidation import calibration_key, decision_key
from harness.lifecycle.requirement import proven_scores, proven_state
from harness.lifecycle.state import State, advance
from harness.release.admit import Check, in_words, not_admitted
from harness.release.manifest import Manifest
from harness.release.open import Release, calibrator_text, inspect_release, open_release
from harness.release.threshold import read_threshold
from harness.run.key import scores_key
from harness.verb.place import find_place
from harness.verb.plan import as_tuple
from harness.verb.progress import doing
from harness.verb.proof import proofs_of

# What these say of the weights is all that can be said of them.
UNSAFE_TO_LOAD = (
    "files-there", "files-whole", "weights-there", "weights-safe", "weights-readable", "no-remote-code",
    "adapter-merged",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Admission:
    """What was checked, and the state that follows. `nodes`: the graph's keys by name, none for a refused release."""

    release: str
    state: State
    content_id: str | None
    nodes: Mapping[str, str]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    def as_record(self) -> dict[str, Json]:
        return {
            "release": self.release,
            "state": str(self.state),
            "content_id": self.content_id,
            "nodes": dict(self.nodes),
            "checks": [asdict(check) for check in self.checks],
        }


def admit(release: str | Path, *, download: bool = False) -> Admission:
    """Checks a release's manifest, proves it against the reference, and records RECONCILED where all of it holds.

    `download`: fetch a model on the hub that the local cache lacks.
    Raises NotFound or Misconfigured for a release that cannot be read; what is broken otherwise is a failed check.
    """
    folder = find_place().release(str(release))
    inspection = inspect_release(folder, download=download)
    checks = inspection.checks
    if not all(check.ok for check in checks):
        checks = (*checks, *_complete(inspection.model_folder, inspection.manifest, checks))
        return Admission(inspection.definition.name, State.DRAFT, None, {}, checks)
    try:
        opened = open_release(folder, download=download)
        proofs = _proven_now(opened, checks)
    except Stopped as refusal:
        # It was seen to be whole, and the library still does not take it.
        found = f"{refusal.subject}: {refusal.found}"
        checks = (*checks, Check("loads", False, found, refusal.expected, refusal.mend))
        return Admission(inspection.definition.name, State.DRAFT, None, {}, checks)
    return admit_release(opened, checks, proofs)


def admit_release(opened: Release, checks: tuple[Check, ...] = (), proofs: Iterable[Check] | None = None) -> Admission:
    """Proves an opened release, one step of the lifecycle: DRAFT to RECONCILED. `proofs`: in place of running it."""
    checks = (
        *checks,
        *_calibrated(opened),
        *_decided(opened),
        *(_proven_now(opened, checks) if proofs is None else proofs),
    )
    if all(check.ok for check in checks):
        evidence: dict[str, Json] = {
            "files": dict(opened.files),
            "checks": {check.name: True for check in checks},
            "scores": scores_key(opened),
        }
        advance(opened.folder, opened.content_id, State.RECONCILED, evidence)
    return Admission(
        opened.name,
        proven_state(opened.folder, opened.content_id),
        opened.content_id,
        {node.name: node.key for node in as_tuple(opened).graph.nodes},
        checks,
    )


def _proven_now(opened: Release, checks: tuple[Check, ...]) -> tuple[Check, ...]:
    with doing(f"proving {opened.name} against the reference"):
        return tuple(_proven(opened, checks))


def require_admitted(opened: Release) -> None:
    """Admits what is still DRAFT. A release that only decides otherwise than an earlier content of its folder is
    admitted on the proofs of that one's scores. Raises NotAdmitted with every check that failed.
    """
    if proven_state(opened.folder, opened.content_id) is not State.DRAFT:
        return
    earlier = proven_scores(opened.folder, scores_key(opened))
    proofs = None if earlier is None else (
        Check("scores", True, f"those of content {earlier[:16]}, which are proven", "proven scores", ""),
    )  # fmt: skip
    failed = [check for check in admit_release(opened, proofs=proofs).checks if not check.ok]
    if failed:
        raise not_admitted(f"release {opened.name!r}", failed, failed[0].mend)


def _calibrated(opened: Release) -> Iterator[Check]:
    """A calibrator belongs to the scores that it was fitted on, and to no others."""
    calibrator = opened.manifest.meaning.score.calibrator
    if calibrator is None:
        return
    key = calibration_key(as_tuple(opened).graph)
    fits = calibrator.fitted_under == key
    told = json.loads(calibrator_text(opened) or "{}").get("release")
    whose = f" (release {told!r})" if isinstance(told, str) else ""
    yield Check(
        "calibrator-key", fits, f"fitted under {calibrator.fitted_under}{whose}",
        f"the key of the scores of release {opened.name!r}, {key}",
        "" if fits else f"Fit it on a run of {opened.name!r}: harness calibrate RUN --family {calibrator.family}.",
    )  # fmt: skip


def _decided(opened: Release) -> Iterator[Check]:
    """A threshold belongs to the scores that it was fitted on, calibrated where they were."""
    decided = opened.manifest.meaning.score.decision
    if decided is None or decided.fitted_under is None or opened.definition.decision.path is None:
        return
    key = decision_key(as_tuple(opened).graph)
    whose = read_threshold(opened.folder / opened.definition.decision.path).release
    fits = decided.fitted_under == key
    yield Check(
        "threshold-key", fits, f"fitted under {decided.fitted_under} (release {whose!r})",
        f"the key of the scores of release {opened.name!r}, {key}",
        "" if fits else f"Fit it on a run of {opened.name!r}: harness calibrate RUN --threshold RULE.",
    )  # fmt: skip


def _all_complete(opened: Release, checks: tuple[Check, ...]) -> Iterator[Check]:
    """Of a pair, each member's weights by its name."""
    if not opened.members:
        yield from _complete(opened.model_folder, opened.manifest, checks)
        return
    members = opened.encoder_of("query"), opened.encoder_of("document")
    for name, member in {each.name: each for each in members}.items():
        for check in _complete(member.model_folder, member.manifest, checks):
            yield replace(check, name=f"{check.name}: {name}")


def _complete(folder: Path | None, manifest: Manifest | None, checks: tuple[Check, ...]) -> Iterator[Check]:
    """Whether the weights are all there, where the library may be given the folder at all."""
    if folder is None or manifest is None or any(check.name in UNSAFE_TO_LOAD and not check.ok for check in checks):
        return
    from harness.candidate.completeness import completeness

    yield completeness(folder, manifest)


def _composed(opened: Release) -> Iterator[Check]:
    """Members that are proven by themselves, and that what is made of their answers is what the manifest says."""
    from harness.verb.composition import composition

    members = list(_members(opened))
    yield from members
    if all(check.ok for check in members) and not (opened.cannot_run or opened.unranked):
        yield from composition(opened)


def _members(opened: Release) -> Iterator[Check]:
    """One that is still DRAFT is admitted by the way."""
    for role, member in opened.members.items():
        failed: list[Check] = []
        if proven_state(member.folder, member.content_id) is State.DRAFT:
            failed = [check for check in admit_release(member).checks if not check.ok]
        yield Check(
            f"member: {role}", not failed,
            f"{member.name}: {in_words(failed)}" if failed else f"{member.name} is proven",
            "a member that is proven by itself", failed[0].mend if failed else "",
        )  # fmt: skip


def _proven(opened: Release, checks: tuple[Check, ...]) -> Iterator[Check]:
    """A model with made-up weights proves nothing."""
    complete = tuple(_all_complete(opened, checks))
    yield from complete
    if all(check.ok for check in complete):
        yield from _composed(opened) if opened.is_composed else proofs_of(opened)
