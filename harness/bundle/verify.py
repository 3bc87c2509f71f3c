"""A bundle against its own checksums. `sha256sum --check SHA256SUMS` sees changed and missing files, not extra ones."""

import re
from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import NotFound
from harness.file import ledger
from harness.identity import Json, file_digest
from harness.lifecycle.state import LEDGER, State
from harness.release.open import DEFINITION

SUMS = "SHA256SUMS"
LINE = re.compile(r"([0-9a-f]{64})  (\S.*)")


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong with one file. `kind`: changed | missing | extra | unreadable."""

    path: str
    kind: str
    detail: str


@dataclass(frozen=True, slots=True)
class Verified:
    """`ok` where every file is there, unchanged, and no other."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        return not self.findings

    def as_record(self) -> dict[str, Json]:
        return {"ok": self.ok, "findings": [asdict(finding) for finding in self.findings]}


def verify(folder: Path) -> Verified:
    """Holds every file below a folder against SHA256SUMS.

    Raises NotFound where the folder or its SHA256SUMS is not there.
    """
    sums = folder / SUMS
    if not sums.is_file():
        raise NotFound(
            str(folder), found=f"no {SUMS} here" if folder.is_dir() else "no such folder", expected="a bundle's folder",
            mend="Give the path that `harness run` printed, like releases/NAME/bundles/RUN.",
        )  # fmt: skip
    known: dict[str, str] = {}
    findings = []
    if sums.is_symlink():
        findings.append(Finding(SUMS, "changed", "a link where a file was bundled"))
    for number, line in enumerate(sums.read_bytes().decode("utf-8", "replace").split("\n"), start=1):
        match = LINE.fullmatch(line)
        if match and match[2] in known:
            findings.append(Finding(SUMS, "unreadable", f"line {number} lists {match[2]} a second time"))
        elif match:
            known[match[2]] = match[1]
        elif line:
            findings.append(Finding(SUMS, "unreadable", f"line {number} is no checksum with a path"))
    present = {
        path.relative_to(folder).as_posix(): path
        for path in sorted(folder.rglob("*"))
        if path.is_symlink() or not path.is_dir()
    }
    del present[SUMS]
    for name, expected in known.items():
        path = present.pop(name, None)
        if path is None:
            findings.append(Finding(name, "missing", "listed, but not below this folder"))
        elif path.is_symlink() or not path.is_file():
            findings.append(Finding(name, "changed", "a link or a device where a file was bundled"))
        elif (found := file_digest(path)) != expected:
            findings.append(Finding(name, "changed", f"SHA-256 {found[:16]}…, bundled as {expected[:16]}…"))
    findings += [Finding(name, "extra", "not listed") for name in present]
    findings += [
        Finding(path.relative_to(folder).as_posix(), "extra", "an empty folder")
        for path in sorted(folder.rglob("*"))
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir())
    ]
    findings += _unrecorded(folder, file_digest(sums))
    if not known:
        findings.append(Finding(SUMS, "unreadable", "it lists no file"))
    return Verified(tuple(findings))


def _unrecorded(folder: Path, sums: str) -> list[Finding]:
    """What the release beside a bundle does not say of it; nothing away from its release.

    A ledger cannot show that its end was taken away; a bundle that no line of it records does.
    """
    home = folder.resolve()
    if home.parent.name != "bundles" or not any((home.parents[1] / name).exists() for name in (LEDGER, DEFINITION)):
        return []
    entries = ledger.read(home.parents[1] / LEDGER)
    shown = [entry["evidence"] for entry in entries if entry.get("state") == State.CANDIDATE]
    recorded = [each.get("bundle") for each in shown if isinstance(each, dict) and each.get("run") == home.name]
    if not recorded:
        return [Finding(f"../../{LEDGER}", "missing", "no line of it says that this bundle became a CANDIDATE")]
    return [] if sums in recorded else [Finding(SUMS, "changed", f"the release's {LEDGER} records another")]
