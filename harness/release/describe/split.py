"""One weights file as two: the tensors of a head by group, and all others."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from harness.release.folder import ModelFolder
from harness.release.weights import Tensor, group_digest, tensors


@dataclass(frozen=True, slots=True)
class Split:
    """Digests as FILE#GROUP; of a whole file where it has no tensor of any group, or cannot be read."""

    backbone: Mapping[str, str]
    head: Mapping[str, str]


def split(folder: ModelFolder, place: PurePosixPath, groups: Sequence[str]) -> Split:
    """The weights in one place. A group is the name of a module, at whatever depth its tensors are; a tensor is the
    first one's that it belongs to.
    """
    backbone, head = {}, {}
    for file, whole in weight_files(folder, place).items():
        path, rest = folder.path / file, set(read(folder, file))
        whole_file = True
        for group in groups:
            names = {name for name in rest if is_of(group, name)}
            if names:
                head[f"{file}#{group}"] = group_digest(path, names)
                rest -= names
                whole_file = False
        if whole_file:
            backbone[file] = whole
        elif rest:
            backbone[f"{file}#backbone"] = group_digest(path, rest)
    return Split(backbone, head)


def weight_files(folder: ModelFolder, place: PurePosixPath) -> Mapping[str, str]:
    """Digests of the weights right in a place, adapters' left out."""
    every = folder.digests(place, "*.safetensors", "*.bin")
    return {file: found for file, found in every.items() if not PurePosixPath(file).name.startswith("adapter_")}


def read(folder: ModelFolder, file: str) -> Mapping[str, Tensor]:
    """The tensors of a weights file; none where it isn't one that can be read."""
    return (tensors(folder.path / file) if file.endswith(".safetensors") else None) or {}


def all_tensors(folder: ModelFolder, place: PurePosixPath) -> Mapping[str, Tensor]:
    """The tensors of every weights file in a place."""
    return {name: each for file in weight_files(folder, place) for name, each in read(folder, file).items()}


def is_of(group: str, tensor: str) -> bool:
    """Whether a tensor belongs to a module of that name: `classifier` has `classifier.out_proj.weight`."""
    return re.search(rf"(^|\.){re.escape(group)}\.", tensor) is not None
