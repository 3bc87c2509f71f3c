"""The rows of a head, one a label, each by its own digest: what tells a permuted head from another one."""

import hashlib

from harness.release.describe.split import is_of
from harness.release.open import Release
from harness.release.weights import tensors


def row_digests(release: Release) -> tuple[str, ...] | None:
    """SHA-256 of each row of the head with its bias, in the order of the labels; None where there is no such head."""
    labels = release.manifest.meaning.output.labels
    if not labels or release.model_folder is None:
        return None
    for tower in release.manifest.meaning.towers.values():
        for key in tower.artifact.head:
            file, _, group = key.partition("#")
            found = _rows(release, file, group, len(labels))
            if found:
                return found
    return None


def _rows(release: Release, file: str, group: str, n_labels: int) -> tuple[str, ...] | None:
    path = (release.model_folder or release.folder) / file
    every = tensors(path) if path.suffix == ".safetensors" else None
    named = sorted((name, each) for name, each in (every or {}).items() if not group or is_of(group, name))
    of_labels = [each for _, each in named if each.shape and each.shape[0] == n_labels]
    if not any(len(each.shape) == 2 for each in of_labels):
        return None
    running = [hashlib.sha256() for _ in range(n_labels)]
    with path.open("rb") as stream:
        for each in of_labels:
            width = (each.end - each.start) // n_labels
            stream.seek(each.start)
            for row in running:
                row.update(stream.read(width))
    return tuple(row.hexdigest() for row in running)
