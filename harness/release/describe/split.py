"""The weights in one place of a model folder, as what they are: tensors by name, whatever files they lie in.

A digest is over each tensor's name, type, shape and bytes. So neither the names of the files, nor how many there are,
nor the order in a file, nor its metadata is part of it.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.identity import Json, canonical_json, digest
from harness.release.describe.told import DERIVED, Told
from harness.release.folder import ModelFolder
from harness.release.weights import Tensor, tensor_records, tensors

ONE = "model.safetensors"
INDEX = "model.safetensors.index.json"
ADAPTER = "adapter_"


@dataclass(frozen=True, slots=True)
class Split:
    """The digest of a head's tensors, and that of all others, with the files as their source; None where there are
    none.
    """

    backbone: Told
    head: Told


def split(folder: ModelFolder, place: PurePosixPath, groups: Sequence[str] = ()) -> Split:
    """The weights in one place; the head's are those of the modules named `groups`, at whatever depth they are."""
    files = weight_files(folder, place)
    head: list[Json] = []
    backbone: list[Json] = []
    for name, record in _records(folder, files):
        (head if any(is_of(group, name) for group in groups) else backbone).append(record)
    source = ", ".join(files)
    return Split(_told(backbone, source), _told(head, source))


def adapter(folder: ModelFolder, place: PurePosixPath) -> Told:
    """The digest of an adapter: its tensors and its configuration."""
    files = tuple(folder.digests(place, f"{ADAPTER}*"))
    return _told([record for _, record in _records(folder, files)], ", ".join(files))


def weight_files(folder: ModelFolder, place: PurePosixPath) -> tuple[str, ...]:
    """The files that the library takes the weights from: one of the usual name, else the shards of an index, else all.

    An adapter's are left out.
    """
    every = folder.digests(place, "*.safetensors", "*.bin")
    files = [file for file in every if not PurePosixPath(file).name.startswith(ADAPTER)]
    if str(place / ONE) in files:
        return (str(place / ONE),)
    named = [str(place / name) for name in shards(folder.readable(place / INDEX))]
    return tuple(file for file in files if not named or file in named)


def shards(index: Mapping[str, Json]) -> tuple[str, ...]:
    """The files that an index names, sorted."""
    named = index.get("weight_map")
    return tuple(sorted({str(name) for name in named.values()})) if isinstance(named, Mapping) else ()


def read(folder: ModelFolder, file: str) -> Mapping[str, Tensor]:
    """The tensors of a weights file; none where it isn't one that can be read."""
    return (tensors(folder.path / file) if file.endswith(".safetensors") else None) or {}


def all_tensors(folder: ModelFolder, place: PurePosixPath) -> Mapping[str, Tensor]:
    """The tensors of every weights file in a place."""
    return {name: each for file in weight_files(folder, place) for name, each in read(folder, file).items()}


def is_of(group: str, tensor: str) -> bool:
    """Whether a tensor belongs to a module of that name: `classifier` has `classifier.out_proj.weight`."""
    return re.search(rf"(^|\.){re.escape(group)}\.", tensor) is not None


def _records(folder: ModelFolder, files: Sequence[str]) -> Iterator[tuple[str, Json]]:
    """Names and records of all tensors; of a file that is not safetensors, its name and its own digest."""
    for file in files:
        known = tensor_records(folder.path / file) if file.endswith(".safetensors") else None
        if known is None:
            name = PurePosixPath(file).name
            yield name, [name, "file", [], folder.files[file]]
        else:
            yield from known.items()


def _told(records: list[Json], source: str) -> Told:
    return Told(digest(sorted(records, key=canonical_json)), source) if records else Told(None, DERIVED)
