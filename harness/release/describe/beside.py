"""The files beside release.toml that it names, by digest."""

import re
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Misconfigured, NotFound
from harness.file.sealed import require_sealed
from harness.identity import file_digest
from harness.release.definition import ReleaseDefinition
from harness.release.manifest import Calibrator, Decided
from harness.release.threshold import ThresholdRecord, read_threshold

DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Beside:
    """What a release has besides its model: a calibrator, and the transitions of a CRF."""

    calibrator: Calibrator | None = None
    transitions: str | None = None
    decision: Decided | None = None


def read_beside(definition: ReleaseDefinition, release_folder: Path) -> Beside:
    """Raises NotFound for a file that isn't there, Misconfigured for a calibrator that doesn't say what it is,
    Tampered for one that was changed since it was fitted.
    """
    calibrator = None
    if definition.calibrator is not None:
        calibrator = _calibrator(_file(release_folder, "[calibrator] path", definition.calibrator.path))
    for name in [] if definition.training is None else definition.training.files:
        _file(release_folder, "[training] files", name)
    transitions = definition.output.transitions
    found = None if transitions is None else file_digest(_file(release_folder, "[output] transitions", transitions))
    return Beside(calibrator, found, _decided(definition, release_folder))


def with_threshold(definition: ReleaseDefinition, release_folder: Path) -> ReleaseDefinition:
    """The definition with the threshold of the file that [decision] names, as if it stood in [score]."""
    record = _threshold_record(definition, release_folder)
    if record is None or record.threshold is None:
        return definition
    return definition.model_copy(update={"score": definition.score.model_copy(update={"threshold": record.threshold})})


def _threshold_record(definition: ReleaseDefinition, folder: Path) -> ThresholdRecord | None:
    path = definition.decision.path
    return None if path is None else read_threshold(_file(folder, "[decision] path", path))


def _decided(definition: ReleaseDefinition, folder: Path) -> Decided | None:
    said = definition.decision
    record = _threshold_record(definition, folder)
    if record is not None and said.path is not None:
        return Decided(
            type=record.type, ground=record.ground, below=record.below, digest=file_digest(folder / said.path),
            fitted_under=record.fitted_under,
        )  # fmt: skip
    if said.type is None and said.abstain is None:
        return None
    ground, below = (said.abstain.ground, said.abstain.below) if said.abstain else (None, None)
    return Decided(type=said.type, ground=ground, below=below, digest=None, fitted_under=None)


def _file(folder: Path, key: str, place: str) -> Path:
    path = folder / place
    if not path.is_file():
        raise NotFound(
            f"{key} {place!r}", found=f"no file {path}", expected="a file beside release.toml",
            mend="Correct the path in release.toml; it counts from the release's folder.",
        )  # fmt: skip
    return path


def _calibrator(path: Path) -> Calibrator:
    read = require_sealed(
        str(path), path.read_bytes(), "Fit it again with `harness calibrate`; its numbers are never written by hand."
    )
    family, under = read.get("family"), read.get("fitted_under")
    if not isinstance(family, str) or not isinstance(under, str) or not DIGEST.fullmatch(under):
        raise Misconfigured(
            str(path), found="no `family` and `fitted_under`", expected="a calibrator as `harness calibrate` saves it",
            mend="Fit it again, or name another file in [calibrator].",
        )  # fmt: skip
    return Calibrator(family=family, digest=file_digest(path), fitted_under=under)
