"""A model folder: which of its files count, and what its JSON says.

Files that count are those that the libraries may read when they run the model offline, in PyTorch, without remote
code. Left out: documentation and licences, hidden files, Python code, what other backends read, records of training,
and pickled weights where safetensors stand beside them.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import NoReturn

from harness.errors import NotAdmitted
from harness.file.lines import strict_decoder
from harness.file.unchanged import kept_while_unchanged
from harness.identity import Json, file_digest

NOT_READ = (
    "*.md", "*.py", "*.pyc", ".*", "LICENSE*", "NOTICE*", "SOURCE.txt",
    "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf", "*.mlmodel", "*.tflite",
    "data_config.json", "training_args.bin", "trainer_state.json", "optimizer.pt", "scheduler.pt", "rng_state*.pth",
)  # fmt: skip
FOLDERS_NOT_READ = ("__pycache__", "onnx", "openvino", "coreml", ".*")
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
LONGEST_NUMBER = 300
LFS_POINTER = b"version https://git-lfs"
RESTORE = "Restore the file from where the model came from."
FETCH = "The folder is incomplete: fetch all of it again."


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder as it is read, sound or not. `files`: relative path to SHA-256, of every file that counts.

    `pointers` are files of `files` that only stand for others (Git LFS); `broken` are links that lead nowhere.
    """

    path: Path
    files: Mapping[str, str]
    pointers: tuple[str, ...]
    broken: tuple[str, ...]

    def json(self, place: PurePosixPath | str) -> Mapping[str, Json] | None:
        """The object in a JSON file; None where there is no such file. Raises NotAdmitted for anything else."""
        path = self.path / place
        if not path.is_file():
            return None
        value = read_json(path)
        if not isinstance(value, dict):
            raise damaged(path, f"JSON of type {type(value).__name__}", "a JSON object")
        return value

    def readable(self, place: PurePosixPath | str) -> Mapping[str, Json]:
        """The object in a JSON file; empty where there is none that can be read, which its description tells."""
        try:
            return self.json(place) or {}
        except NotAdmitted:
            return {}

    def digests(self, place: PurePosixPath, *likes: str) -> dict[str, str]:
        """Of the files right in one place whose names are like any of `likes`."""
        return {
            file: found
            for file, found in self.files.items()
            if PurePosixPath(file).parent == place and any(fnmatch(PurePosixPath(file).name, like) for like in likes)
        }


def read_folder(path: Path) -> ModelFolder:
    """Digests every file that counts; nothing is loaded, and nothing is judged."""
    names = list(_counted(path))
    there = [name for name in names if (path / name).is_file()]
    return ModelFolder(
        path,
        {name: _digest(path / name) for name in there},
        tuple(name for name in there if _is_pointer(path / name)),
        tuple(name for name in names if not (path / name).exists()),
    )


def read_json(path: Path) -> Json:
    """Raises NotAdmitted for a file of a model that isn't JSON, says a key twice, holds a number that isn't finite or
    text that isn't Unicode, or only stands for a file (Git LFS).
    """
    if _is_pointer(path):
        raise NotAdmitted(
            str(path), found="a Git LFS pointer and not the file", expected="a JSON file",
            mend="Run `git lfs pull` where the folder was cloned.",
        )  # fmt: skip
    try:
        text = path.read_text(encoding="utf-8")
        value: Json = _DECODER.decode(text)
        if _HALF.search(text):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"no JSON ({error})", "a JSON file") from error
    return value


def damaged(path: Path, found: str, expected: str) -> NotAdmitted:
    """Of a model's file that does not say what it has to."""
    return NotAdmitted(str(path), found=found, expected=expected, mend=RESTORE)


def incomplete(path: Path, expected: str, found: str = "no such file") -> NotAdmitted:
    """Of something that a model's folder lacks."""
    return NotAdmitted(str(path), found=found, expected=expected, mend=FETCH)


def _whole(text: str) -> int | float:
    """A number that no double holds exactly (tokenizers without a limit say 1e30) is one that none is counted by."""
    if len(text) > LONGEST_NUMBER:
        raise ValueError(f"a number of {len(text)} digits")
    value = int(text)
    return value if abs(value) < 2**53 else float(value)


_DECODER = strict_decoder(_whole)
# An escape of half a character: no UTF-8 says it.
_HALF = re.compile(r"\\u[dD][89a-fA-F]")


def _counted(folder: Path) -> Iterator[str]:
    """Relative paths of the files that count, sorted. Links are followed, also out of the folder."""
    found, seen = [], {os.path.realpath(folder)}
    for here, folders, names in os.walk(folder, onerror=_refused, followlinks=True):
        inside = sorted(name for name in folders if not any(fnmatch(name, like) for like in FOLDERS_NOT_READ))
        real = {name: os.path.realpath(Path(here) / name) for name in inside}
        folders[:] = [name for name in inside if real[name] not in seen]
        seen.update(real.values())
        safe = any(fnmatch(name, "*.safetensors") for name in names)
        skipped = NOT_READ + PICKLED if safe else NOT_READ
        found += [Path(here) / name for name in names if not any(fnmatch(name, like) for like in skipped)]
    yield from sorted(path.relative_to(folder).as_posix() for path in found)


def _refused(error: OSError) -> NoReturn:
    raise error


def _is_pointer(path: Path) -> bool:
    return path.stat().st_size < 1024 and path.read_bytes().startswith(LFS_POINTER)


_digest = kept_while_unchanged(4096)(file_digest)
