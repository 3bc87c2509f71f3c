"""`harness admit`: derive, check, prove. Fail-closed: every broken invariant at once, each with its mend."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    from harness.candidate.graphed import Loaded
    from harness.candidate.parity import Parity
    from harness.candidate.probe import Probe

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
        yield from _composed(opened) if opened.is_composed else _proofs(opened)


def _proofs(opened: Release) -> Iterator[Check]:
    """What only running shows. A recording has nothing to run; what cannot be proven says so, and stays DRAFT."""
    if opened.recorded is not None:
        return
    from harness.candidate.head_parity import head_parity, provable
    from harness.candidate.head_window_parity import head_window_parity
    from harness.candidate.load import LOADERS, load_numbers
    from harness.candidate.probe import probe_texts
    from harness.candidate.prompt_room import head_prompt_room

    yield from _markers(opened)
    if opened.definition.interaction in LOADERS and not opened.cannot_run:
        yield from _encoder(opened)
    elif opened.model_folder is not None and provable(opened.manifest):
        [tower] = opened.manifest.meaning.towers.values()
        texts = probe_texts(tower.input.max_length)
        yield _parity(head_parity(opened.model_folder, opened.manifest, texts))
        if not (opened.cannot_run or opened.unranked):
            if opened.backend is not None:
                yield from _backend(opened, load_numbers(opened))
            joined = head_window_parity(opened, texts)
            if joined is not None:
                yield _parity(joined)
        yield head_prompt_room(opened.model_folder, tower)
    else:
        yield Check(
            "parity", False, f"not proven: this version has no reference for {opened.cannot_run or 'it'}",
            "vectors and scores proven against the reference",
            "It can be described and compared; to judge it, record its outputs as a TREC run.",
        )  # fmt: skip


def _markers(opened: Release) -> Iterator[Check]:
    from harness.candidate.marker import markers, relied_on

    symbols = relied_on(opened.manifest)
    for marker in markers():
        if marker.symbol in symbols:
            fatal = [finding.text for finding in marker.findings if finding.fatal]
            told = [finding.text for finding in marker.findings if not finding.fatal]
            yield Check(
                f"marker: {marker.symbol}", not fatal, "; ".join(fatal or told) or "behaves as relied on",
                "the reviewed behaviour", "Install the versions that were reviewed." if fatal else "",
            )  # fmt: skip


def _encoder(opened: Release) -> Iterator[Check]:
    from harness.candidate.backend import backed
    from harness.candidate.load import load
    from harness.candidate.parity import Parity
    from harness.candidate.prompt_room import prompt_room
    from harness.candidate.prove import proofs

    prompts = opened.prompts_for()
    if prompts is None:
        return
    encoder = load(opened, prompts)
    room = prompt_room(opened, encoder)
    yield room
    if not room.ok:
        return
    if not opened.on_torch:
        checks = list(_backend(opened, encoder))
        yield from checks
        if not all(check.ok for check in checks):
            return
        encoder = backed(opened, encoder)
    for shown in proofs(opened, encoder):
        yield _parity(shown) if isinstance(shown, Parity) else _probe(shown)


def _probe(shown: "Probe") -> Check:
    relied = "" if shown.ok or shown.fatal else " (not relied on)"
    found = f"largest difference {shown.largest_difference:.2g}" + (f": {shown.policy}" if shown.policy else "")
    return Check(
        f"probe: {shown.name}", shown.ok or not shown.fatal, found + relied, f"at most {shown.tolerance:g}",
        "" if shown.ok else "Serve texts only as they are arranged here.",
    )  # fmt: skip


def _backend(opened: Release, loaded: "Loaded") -> Iterator[Check]:
    """What another backend computes is what the library does, or what a model that means itself does."""
    from harness.candidate.backend import prove

    for part in prove(opened, loaded):
        record, fault = part.record, part.fault
        read = f"padding on the {' and '.join(record.padding_sides)}, at most {record.max_length} tokens"
        what = "rows" if record.kind == "rows" else "numbers"
        yield Check(
            f"backend: {record.backend}, {part.name}", fault is None,
            fault or f"largest difference {record.largest_difference:.2g}; {read}",
            f"{what} in eight bits" if record.quantised else f"{what} within {record.tolerance:g} of the library's",
            "" if fault is None else "Delete the export beside release.toml to have it made again, or run on torch.",
        )  # fmt: skip


def _parity(shown: "Parity") -> Check:
    mend = "" if shown.ok else "Say in release.toml what the folder does."
    found = f"largest difference {shown.largest_difference:.2g}: {shown.text}"
    return Check(shown.name, shown.ok, found, f"at most {shown.tolerance:g} from the reference", mend)
