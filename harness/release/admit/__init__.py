"""Whether a release may be run, as far as that can be said without running it: every broken invariant at once."""

from harness.errors import NotAdmitted
from harness.release.admit.check import Check, in_words, not_admitted, refused
from harness.release.admit.files import folder_findings
from harness.release.admit.meaning import label_findings, meaning_findings, prompt_findings
from harness.release.admit.shape import shape_findings
from harness.release.admit.tower import see, tower_findings
from harness.release.admit.training import training_findings
from harness.release.admit.window import window_findings
from harness.release.folder import ModelFolder
from harness.release.manifest import Manifest

__all__ = ["Check", "findings", "folder_findings", "in_words", "not_admitted", "refused"]


def findings(manifest: Manifest, folder: ModelFolder | None) -> tuple[Check, ...]:
    """Every invariant of a release, held or broken; `folder` is None where it has no model of its own.

    No check is left out because another one is broken, and none is held that could not be looked at.
    """
    found = [*meaning_findings(manifest), *window_findings(manifest.meaning)]
    if folder is None:
        return tuple(found)
    found += folder_findings(folder)
    try:
        towers = see(manifest, folder)
        found += tower_findings(towers)
        found += shape_findings(towers)
        found += prompt_findings(manifest, folder)
    except NotAdmitted as refusal:
        return (*found, refused(refusal))
    for seen in towers[:1]:
        found += label_findings(seen.config)
    if manifest.meaning.training is not None:
        found += training_findings(manifest.meaning.training, towers)
    return tuple(found)
