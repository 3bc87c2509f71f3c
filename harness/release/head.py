"""The rows of a head, one a label, each by its own digest: what tells a permuted head from another one."""

import hashlib
from pathlib import Path, PurePosixPath

from harness.release.describe.heads import groups_of
from harness.release.describe.split import is_of, read, weight_files
from harness.release.folder import read_folder
from harness.release.open import Release


def row_digests(release: Release) -> tuple[str, ...] | None:
    """SHA-256 of each row of the head with its bias, in the order of the labels; None where there is no such head."""
    labels = release.manifest.meaning.output.labels
    if not labels or release.model_folder is None:
        return None
    for name, tower in release.manifest.meaning.towers.items():
        found = _rows(release.model_folder, release.manifest.place(name), groups_of(tower), len(labels))
        if found:
            return found
    return None


def _rows(path: Path, place: PurePosixPath, groups: tuple[str, ...], n_labels: int) -> tuple[str, ...] | None:
    folder = read_folder(path)
    of_labels = sorted(
        (name, file, each)
        for file in weight_files(folder, place)
        for name, each in read(folder, file).items()
        if any(is_of(group, name) for group in groups) and each.shape[:1] == (n_labels,)
    )
    if not any(len(each.shape) == 2 for _, _, each in of_labels):
        return None
    running = [hashlib.sha256() for _ in range(n_labels)]
    for _, file, each in of_labels:
        width = (each.end - each.start) // n_labels
        with (path / file).open("rb") as stream:
            stream.seek(each.start)
            for row in running:
                row.update(stream.read(width))
    return tuple(row.hexdigest() for row in running)
