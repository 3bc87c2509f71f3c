"""The rollback record: the whole of what a deployment goes back to. It is refused where any part of it is missing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from harness.errors import NotAdmitted, Tampered
from harness.identity import Json, digest, file_digest
from harness.lifecycle.namespace import Namespace
from harness.lifecycle.state import State
from harness.release.field import COMPOSED
from harness.release.manifest import Manifest

SCHEMA = "harness.rollback.v1"


class Standing(StrEnum):
    """Whether a namespace is still what was declared. An address elsewhere is for the deployment to check."""

    UNMODIFIED = "unmodified"
    MODIFIED = "modified"
    MISSING = "missing"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class Kept:
    """A namespace of the rollback target, whether it still stands, and what tells that."""

    namespace: Namespace
    standing: Standing
    detail: str

    def as_record(self) -> dict[str, Json]:
        return {**self.namespace.as_record(), "standing": str(self.standing), "detail": self.detail}


@dataclass(frozen=True, slots=True)
class Rollback:
    """Where to go back to. `known_as`: CANDIDATE where it passed here itself, else `declared`."""

    manifest: Manifest
    parts: Mapping[str, Manifest]
    namespaces: tuple[Kept, ...]
    evidence: Mapping[str, Json]
    known_as: str

    def as_record(self) -> dict[str, Json]:
        return {
            "schema": SCHEMA,
            "target": self.manifest.as_record(),
            "parts": {role: part.as_record() for role, part in self.parts.items()},
            "namespaces": [each.as_record() for each in self.namespaces],
            "evidence": dict(self.evidence),
            "known_as": self.known_as,
        }


def rollback(
    manifest: Manifest | None,
    *,
    folder: Path,
    namespaces: Sequence[Namespace] | None,
    evidence: Mapping[str, Json] | None,
    state: State | None,
    parts: Mapping[str, Manifest] | None = None,
) -> Rollback:
    """The record for a parent whose release folder is `folder`.

    `namespaces`: what it has deployed, which may be nothing. `evidence`: how it was judged, at least its `run` and its
    `suite`'s digest. `parts`: by role, the releases that a two-stage or fused one is composed of.
    Raises NotAdmitted where a part is missing, or a namespace is gone or no longer what was declared; Tampered where a
    manifest does not say what its content ID says.
    """
    if manifest is None:
        raise _missing(folder, "no manifest of the rollback target", "the parent's whole manifest", "describe")
    parts = parts or {}
    for each in (manifest, *parts.values()):
        _refuse_other_content(each)
    said = manifest.meaning.interaction
    absent = sorted(
        role
        for role, content in (said.releases if said.kind in COMPOSED else {}).items()
        if role not in parts or parts[role].identity.content_id != content
    )
    if absent:
        raise _missing(folder, f"no manifest of its {' and '.join(absent)}", "the manifest of every part", "describe")
    if namespaces is None:
        raise _missing(folder, "nothing said of its namespaces", "what is deployed, or that nothing is", "diff")
    lacking = [name for name in ("run", "suite") if not (evidence or {}).get(name)]
    if evidence is None or lacking:
        raise _missing(folder, f"no evidence of its {' and '.join(lacking)}", "a run that judged it", "run")
    if state is None:
        raise _missing(folder, "nothing said of how well it is known", "its state, DRAFT if none was reached", "run")
    kept = tuple(standing(each, folder) for each in namespaces)
    gone = [each for each in kept if each.standing in (Standing.MISSING, Standing.MODIFIED)]
    if gone:
        raise NotAdmitted(
            f"namespace {gone[0].namespace.name!r} of {manifest.identity.name}",
            found=f"it is {gone[0].standing}: {gone[0].detail}" + (f" (and {len(gone) - 1} more)" if gone[1:] else ""),
            expected="every namespace of the rollback target as it was declared",
            mend="Restore it, or declare it in namespaces.toml as it is now.",
        )
    return Rollback(manifest, parts, kept, evidence, str(state) if state is State.CANDIDATE else "declared")


def standing(namespace: Namespace, folder: Path) -> Kept:
    """Whether a namespace is still what was declared; a path counts from the release's folder."""
    location = namespace.location
    if location is None or "://" in location:
        return Kept(namespace, Standing.NOT_CHECKED, "no path on this machine" if location else "no location declared")
    path = folder / location
    if not path.exists():
        return Kept(namespace, Standing.MISSING, f"nothing at {location}")
    files = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
    size = sum(each.stat().st_size for each in files)
    if namespace.bytes is not None and size != namespace.bytes:
        return Kept(namespace, Standing.MODIFIED, f"{size} bytes, declared as {namespace.bytes}")
    if namespace.digest is not None:
        found = location_digest(path)
        if found != namespace.digest:
            return Kept(namespace, Standing.MODIFIED, f"SHA-256 {found[:16]}…, declared as {namespace.digest[:16]}…")
        return Kept(namespace, Standing.UNMODIFIED, "its digest is the declared one")
    if namespace.bytes is not None:
        return Kept(namespace, Standing.UNMODIFIED, "its size is the declared one; no digest was declared")
    return Kept(namespace, Standing.NOT_CHECKED, "neither size nor digest was declared")


def location_digest(path: Path) -> str:
    """SHA-256 of a file, or over the canonical JSON of a folder's files' digests by relative path."""
    if path.is_dir():
        files = (each for each in sorted(path.rglob("*")) if each.is_file())
        return digest({each.relative_to(path).as_posix(): file_digest(each) for each in files})
    return file_digest(path)


def _refuse_other_content(manifest: Manifest) -> None:
    found = digest(manifest.meaning.as_json())
    if found != manifest.identity.content_id:
        raise Tampered(
            f"the manifest of {manifest.identity.name}", found=f"a meaning with content {found[:16]}",
            expected=f"content {manifest.identity.content_id[:16]}, as it says", mend="Describe the release again.",
        )  # fmt: skip


def _missing(folder: Path, found: str, expected: str, verb: str) -> NotAdmitted:
    return NotAdmitted(
        f"the rollback record of {folder.name}", found=found, expected=expected,
        mend=f"Run `harness {verb}` on it again; without it there is no way back.",
    )  # fmt: skip
