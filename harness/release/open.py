"""From a release's folder to the release: its definition, the files it depends on, its manifest and content ID."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from harness.errors import HarnessError, Misconfigured, NotAdmitted, NotFound, Stopped
from harness.file.toml import nearest, read_toml
from harness.identity import Json, file_digest
from harness.release.admit import Check, findings, folder_findings, not_admitted, refused
from harness.release.definition import Model, Recorded, ReleaseDefinition
from harness.release.describe import describe, describe_composed, describe_recorded
from harness.release.describe.beside import Beside, read_beside, with_threshold
from harness.release.field import COMPOSED
from harness.release.folder import read_folder
from harness.release.manifest import Manifest
from harness.release.prompts import Prompts, prompts_of
from harness.release.source import find_model
from harness.release.window import unjoined

DEFINITION = "release.toml"
Identity: TypeAlias = "tuple[str, str | None, tuple[Identity, ...]]"
# Whether weights can be read, and how many special tokens a tokenizer adds, is for the libraries to say when they load
# the model: theirs is the reason that helps.
LEFT_TO_THE_LOADER = ("weights-readable", "content-rows")
# Interactions that run here.
RUNNABLE = ("bi", "late", "sparse", "cross", "head", *COMPOSED)
# Outputs of a head that a temperature is part of.
TEMPERED = ("classes", "multilabel", "choice")


@dataclass(frozen=True, slots=True)
class Release:
    """An opened release. `files`: relative path to SHA-256, of the model folder's or the recorded file.

    `content_id` is the digest of `meaning` alone: names, folders and parents have no part in it. `model_folder` is
    None for a release without a model of its own, `outputs` for a live one. `members`: the releases that it is made
    of, by role.
    """

    name: str
    folder: Path
    definition: ReleaseDefinition
    files: Mapping[str, str]
    manifest: Manifest
    model_folder: Path | None = None
    outputs: Path | None = None
    members: Mapping[str, "Release"] = field(default_factory=dict)

    @property
    def meaning(self) -> Mapping[str, Json]:
        return self.manifest.meaning.as_json()

    @property
    def content_id(self) -> str:
        return self.manifest.identity.content_id

    @property
    def recorded(self) -> Recorded | None:
        return self.definition.recorded

    @property
    def score_type(self) -> str:
        return self.manifest.meaning.score.type

    @property
    def training_files(self) -> Mapping[str, Path]:
        """The files that it says it was trained on, its members' among them, by name."""
        said = [] if self.definition.training is None else self.definition.training.files
        own = {name: self.folder / name for name in said}
        within = {
            f"{role}/{name}": path for role, each in self.members.items() for name, path in each.training_files.items()
        }
        return {**own, **within}

    @property
    def cannot_run(self) -> str | None:
        """Why this version can describe and compare the release, but not run it; None where it can."""
        if self.recorded is not None:
            return None
        kind = self.definition.interaction
        for role, member in self.members.items() if self.is_composed else ():
            if reason := member.cannot_run:
                return f"{reason} as its {role}"
        if kind not in RUNNABLE:
            return f"a {kind} release"
        if reason := unjoined(self.manifest.meaning):
            return reason
        output = self.manifest.meaning.output
        if output.decoder == "crf":
            return "a release whose tags are decoded by a CRF"
        tempered = self.definition.score.temperature is not None and output.kind not in TEMPERED
        return "a release whose scores have a temperature" if tempered else None

    @property
    def backend(self) -> Literal["onnx", "openvino"] | None:
        """What runs its model in place of torch; None for torch. Members say it for themselves."""
        backend = self.definition.runtime.backend
        return None if backend == "torch" else backend

    @property
    def on_torch(self) -> bool:
        """Whether torch runs all of it, its members included."""
        return self.backend is None and all(member.on_torch for member in self.members.values())

    @property
    def identity(self) -> Identity:
        """What it is and what runs it, its members included: two releases of one identity give the same outputs."""
        return self.content_id, self.backend, tuple(member.identity for _, member in sorted(self.members.items()))

    @property
    def quantised(self) -> Literal["int8"] | None:
        """How its weights are rounded; None for float32."""
        return None if self.definition.model is None else self.definition.model.quantised

    @property
    def is_composed(self) -> bool:
        """Whether other releases are run in its place, and its ranking is made of theirs."""
        return self.manifest.meaning.interaction.kind in COMPOSED

    @property
    def unranked(self) -> str | None:
        """Why its numbers, or those of a member, rank no documents; None where they do."""
        for role, member in self.members.items() if self.is_composed else ():
            if reason := member.unranked:
                return f"{reason}, as its {role}"
        output, score = self.manifest.meaning.output, self.manifest.meaning.score
        if self.definition.interaction == "cross" and output.dimension > 1 and score.label is None:
            return f"a head of the classes {', '.join(output.labels or ())}, none of them named as the score"
        return None

    def encoder_of(self, side: Literal["query", "document"]) -> "Release":
        """The release whose own model encodes a side: this one, or of a pair the member that it names."""
        return self.members[side].encoder_of(side) if side in self.members else self

    def prompts_for(self, suite_name: str | None = None) -> Prompts | None:
        """The prompts on one suite; None where its texts aren't queries and documents, or it has none of its own."""
        return prompts_of(self.manifest.meaning, suite_name)

    def prompts(self, suite_name: str) -> Json:
        """The prompts on one suite as they enter an output key, its members' among them."""
        if self.members:
            return {role: member.prompts(suite_name) for role, member in self.members.items()}
        prompts = self.prompts_for(suite_name)
        return None if prompts is None else prompts.as_json()


@dataclass(frozen=True, slots=True)
class Inspection:
    """All that can be said of a release's folder without running it. `manifest` is None where it can't be described;
    why it can't is then among the checks. `model_folder` is None for a release without a model of its own.
    """

    definition: ReleaseDefinition
    manifest: Manifest | None
    checks: tuple[Check, ...]
    model_folder: Path | None = None


def open_release(folder: Path, *, download: bool = False) -> Release:
    """Reads release.toml and everything it names, and loads no model.

    `download`: fetch a model on the hub that the local cache lacks.
    Raises Misconfigured for a file that does not say a release that this version supports, NotFound for a folder,
    package or file that isn't there, NotAdmitted for a model that may not be run, Stopped for one that can't be read.
    """
    return _opened(folder, download, ())


def inspect_release(folder: Path, *, download: bool = False) -> Inspection:
    """A release with every invariant that it keeps or breaks, where `open_release` would refuse it.

    Raises Misconfigured, NotFound and Stopped as `open_release` does.
    """
    definition = with_threshold(read_toml(folder / DEFINITION, ReleaseDefinition), folder)
    if definition.model is None:
        opened = open_release(folder, download=download)
        return Inspection(definition, opened.manifest, findings(opened.manifest, None))
    with _reading(folder):
        model = read_folder(find_model(definition.model, folder, download=download))
        beside = read_beside(definition, folder)
        try:
            manifest = describe(definition, model, beside)
        except NotAdmitted as refusal:
            return Inspection(definition, None, (refused(refusal), *folder_findings(model)), model.path)
        return Inspection(definition, manifest, findings(manifest, model), model.path)


def _opened(folder: Path, download: bool, above: tuple[Path, ...]) -> Release:
    definition = with_threshold(read_toml(folder / DEFINITION, ReleaseDefinition), folder)
    if folder.resolve() in above:
        raise Misconfigured(
            f"release {definition.name}", found="a release made of itself", expected="members that are other releases",
            mend="Name other releases in release.toml.",
        )  # fmt: skip
    with _reading(folder):
        beside = read_beside(definition, folder)
        if definition.recorded is not None:
            return _recorded(folder, definition, definition.recorded, beside)
        if definition.model is not None:
            return _live(folder, definition, definition.model, beside, download)
        return _composed(folder, definition, beside, download, (*above, folder.resolve()))


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    """Raises Stopped for a file that can't be read."""
    try:
        yield
    except OSError as refusal:
        raise Stopped(
            str(refusal.filename or folder), found=refusal.strerror or str(refusal), expected="a file that can be read",
            mend="Mend the permissions, or fetch the file again.",
        ) from refusal  # fmt: skip


def _live(folder: Path, definition: ReleaseDefinition, source: Model, beside: Beside, download: bool) -> Release:
    place = find_model(source, folder, download=download)
    model = read_folder(place)
    try:
        manifest = describe(definition, model, beside)
    except HarnessError as refusal:
        _admit(definition, folder_findings(model), refusal)
        raise
    _admit(definition, findings(manifest, model))
    return Release(definition.name, folder, definition, model.files, manifest, model_folder=place)


def _composed(
    folder: Path, definition: ReleaseDefinition, beside: Beside, download: bool, above: tuple[Path, ...]
) -> Release:
    """Members are found by name, in the folders beside this release's."""
    members = {
        role: _opened(_beside(folder, definition, role, name), download, above)
        for role, name in _members(definition).items()
    }
    manifest = describe_composed(definition, {role: each.manifest for role, each in members.items()}, beside)
    _admit(definition, findings(manifest, None))
    files = {f"{role}/{file}": found for role, each in members.items() for file, found in each.files.items()}
    return Release(definition.name, folder, definition, files, manifest, members=members)


def _beside(folder: Path, definition: ReleaseDefinition, role: str, name: str) -> Path:
    """Raises NotFound for a member that isn't there."""
    place = folder.parent / name
    if not (place / DEFINITION).is_file():
        there = sorted(each.parent.name for each in folder.parent.glob(f"*/{DEFINITION}") if each.parent != folder)
        meant = nearest(name, there)
        raise NotFound(
            f"release {definition.name}", found=f"no release {name!r}" + ("" if role == name else f", its {role}"),
            expected=f"a folder {name} with {DEFINITION} beside its own",
            mend=f"Did you mean {meant!r}?" if meant else f"There is: {', '.join(there) or 'no other release'}.",
        )  # fmt: skip
    return place


def _members(definition: ReleaseDefinition) -> Mapping[str, str]:
    if definition.stages is not None:
        return {"retriever": definition.stages.retriever, "reranker": definition.stages.reranker}
    if definition.pair is not None:
        return {"query": definition.pair.query, "document": definition.pair.document}
    return {} if definition.fusion is None else {name: name for name in definition.fusion.weights}


def _recorded(folder: Path, definition: ReleaseDefinition, recorded: Recorded, beside: Beside) -> Release:
    files = {}
    for key, path in (("path", recorded.path), ("null_scores", recorded.null_scores)):
        if path is not None:
            if not (folder / path).is_file():
                raise NotFound(
                    f"[recorded] {key} {path!r}", found=f"no file {folder / path}", expected="the recorded outputs",
                    mend="Correct the path in release.toml; it counts from the release's folder.",
                )  # fmt: skip
            files[path] = file_digest(folder / path)
    null_scores = None if recorded.null_scores is None else files[recorded.null_scores]
    manifest = describe_recorded(definition, files[recorded.path], beside, null_scores=null_scores)
    _admit(definition, findings(manifest, None))
    return Release(definition.name, folder, definition, files, manifest, outputs=folder / recorded.path)


def _admit(definition: ReleaseDefinition, checks: tuple[Check, ...], refusal: HarnessError | None = None) -> None:
    """Raises NotAdmitted with every broken invariant, after a refusal to describe the folder where there is one."""
    broken = [check for check in checks if not check.ok and check.name not in LEFT_TO_THE_LOADER]
    if not broken:
        return
    if refusal is not None:
        broken.insert(0, refused(refusal))
    raise not_admitted(f"release {definition.name}", broken, " ".join(dict.fromkeys(check.mend for check in broken)))


def calibrator_text(release: Release) -> str | None:
    """The calibrator beside a release, as it is written; None where it names none."""
    said = release.definition.calibrator
    return None if said is None else (release.folder / said.path).read_text(encoding="utf-8")


def threshold_text(release: Release) -> str | None:
    """The file that [decision] names, as it is written; None where it names none."""
    path = release.definition.decision.path
    return None if path is None else (release.folder / path).read_text(encoding="utf-8")
