"""A model folder in the Sentence Transformers layout: which of its files count, and whether it may be run at all.

Files that count are those that the libraries may read when they run the model offline, in PyTorch, without remote
code. Left out: documentation and licences, hidden files, Python code, what other backends read, records of training,
and pickled weights where safetensors stand beside them.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path, PurePosixPath

from harness.errors import NotAdmitted
from harness.identity import Json, file_digest

NOT_READ = (
    "*.md", "*.py", "*.pyc", ".*", "LICENSE*", "NOTICE*",
    "*.onnx", "*.h5", "*.msgpack", "*.ot", "*.gguf", "*.mlmodel", "*.tflite",
    "data_config.json", "training_args.bin", "trainer_state.json", "optimizer.pt", "scheduler.pt", "rng_state*.pth",
)  # fmt: skip
FOLDERS_NOT_READ = ("__pycache__", "onnx", "openvino", "coreml", ".*")
PICKLED = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
LFS_POINTER = b"version https://git-lfs"

TRUSTED = "sentence_transformers."
MODULES = ("Transformer", "Pooling", "Dense", "LayerNorm", "Dropout", "Normalize")
# These have nothing to load, and old folders leave their place out.
WITHOUT_FOLDER = ("Normalize", "Dropout")
WITH_WEIGHTS = ("Transformer", "Dense", "LayerNorm")


@dataclass(frozen=True, slots=True)
class Module:
    """One step of modules.json: its class and where its files are, relative to the model folder."""

    kind: str
    place: PurePosixPath


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """An admitted folder. `files`: relative path to SHA-256, of every file that counts."""

    path: Path
    files: Mapping[str, str]
    modules: tuple[Module, ...]

    def json(self, place: PurePosixPath | str) -> Mapping[str, Json] | None:
        """The object in a JSON file; None where there is no such file. Raises NotAdmitted for anything else."""
        return read_object(self.path, PurePosixPath(place))


def open_model_folder(path: Path) -> ModelFolder:
    """Reads and admits a model folder; nothing is loaded.

    Raises NotAdmitted for weights that are missing, only pickled, or mere Git LFS pointers; for remote code; for a
    folder whose modules.json or config.json is absent or broken, or which has modules that are not supported.
    """
    modules = _modules(path)
    for module in modules:
        _admit(path, module)
    return ModelFolder(path, {name: _digest(path / name) for name in _counted(path)}, modules)


def read_object(folder: Path, place: PurePosixPath) -> Mapping[str, Json] | None:
    path = folder / place
    if not path.is_file():
        return None
    value = _json(path)
    if not isinstance(value, dict):
        raise NotAdmitted(
            str(path), found=f"JSON of type {type(value).__name__}", expected="a JSON object",
            mend="Restore the file from where the model came from.",
        )  # fmt: skip
    return value


def _json(path: Path) -> Json:
    try:
        value: Json = json.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise NotAdmitted(
            str(path), found=f"no JSON ({error})", expected="a JSON file",
            mend="Restore the file from where the model came from.",
        ) from error  # fmt: skip
    return value


def _modules(folder: Path) -> tuple[Module, ...]:
    path = folder / "modules.json"
    if not path.is_file():
        raise NotAdmitted(
            str(path), found="no such file", expected="the modules of a Sentence Transformers folder",
            mend="Without it the pooling would be guessed. Save the model once with SentenceTransformer(…).save(…).",
        )  # fmt: skip
    entries = _json(path)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise NotAdmitted(
            str(path), found="no list of modules", expected='a list of {"path": …, "type": …}',
            mend="Restore the file from where the model came from.",
        )  # fmt: skip
    modules = tuple(_module(path, entry) for entry in entries)
    kinds = [module.kind for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or "Transformer" in kinds[1:] or "Pooling" in kinds[2:]:
        raise NotAdmitted(
            str(path), found=f"the modules {', '.join(kinds)}",
            expected="a Transformer, a Pooling, then any of Dense, LayerNorm, Dropout, Normalize",
            mend="Other pipelines are not supported by this version; record their outputs instead.",
        )  # fmt: skip
    return modules


def _module(path: Path, entry: Mapping[str, Json]) -> Module:
    kind, place = entry.get("type"), entry.get("path")
    if not isinstance(kind, str) or not isinstance(place, str):
        raise NotAdmitted(
            str(path), found=f"the entry {entry!r}", expected="`path` and `type`, both text",
            mend="Restore the file from where the model came from.",
        )  # fmt: skip
    if not kind.startswith(TRUSTED):
        raise NotAdmitted(
            str(path), found=f"the module {kind}, which asks for remote code", expected=f"modules of {TRUSTED[:-1]}",
            mend="Code that comes with a model is never run. Use a model whose modules the library has.",
        )  # fmt: skip
    short = kind.rpartition(".")[2]
    if short not in MODULES:
        raise NotAdmitted(
            str(path), found=f"the module {kind}", expected=f"one of {', '.join(MODULES)}",
            mend="It is not supported by this version; record the model's outputs instead.",
        )  # fmt: skip
    inside = PurePosixPath(place)
    if inside.is_absolute() or ".." in inside.parts:
        raise NotAdmitted(
            str(path), found=f"the path {place!r}", expected="a path inside the model folder",
            mend="Restore the file from where the model came from.",
        )  # fmt: skip
    return Module(short, inside)


def _admit(folder: Path, module: Module) -> None:
    place = folder / module.place
    if module.kind not in WITHOUT_FOLDER and not (place / "config.json").is_file():
        raise NotAdmitted(
            str(place / "config.json"), found="no such file", expected=f"the configuration of {module.kind}",
            mend="The folder is incomplete: fetch all of it again.",
        )  # fmt: skip
    if module.kind == "Transformer":
        _refuse_remote_code(folder, module.place)
        if (place / "adapter_config.json").is_file():
            raise NotAdmitted(
                str(place / "adapter_config.json"), found="an adapter whose base model lies elsewhere",
                expected="all weights in the folder", mend="Merge the adapter into its base model and save the result.",
            )  # fmt: skip
    if module.kind in WITH_WEIGHTS:
        _admit_weights(folder, module.place)


def _refuse_remote_code(folder: Path, place: PurePosixPath) -> None:
    for name in ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json"):
        config = read_object(folder, place / name)
        if config and config.get("auto_map"):
            raise NotAdmitted(
                str(folder / place / name), found="`auto_map`, which asks for remote code",
                expected="a model that the library's own classes can run",
                mend="Code that comes with a model is never run. If the library has the class by now, save the model "
                "again with it, so that `auto_map` goes.",
            )  # fmt: skip


def _admit_weights(folder: Path, place: PurePosixPath) -> None:
    here = folder / place
    index = read_object(folder, place / "model.safetensors.index.json")
    if (here / "model.safetensors").is_file():
        return
    if index is not None:
        shards = index.get("weight_map")
        names = sorted({str(name) for name in shards.values()}) if isinstance(shards, dict) else []
        lost = [name for name in names if not (here / name).is_file()]
        if names and not lost:
            return
        raise NotAdmitted(
            str(here / "model.safetensors.index.json"), found=f"{len(lost)} of {len(names)} shards missing: {lost[:3]}",
            expected="every shard that the index names", mend="Fetch the missing shards.",
        )  # fmt: skip
    pickled = sorted(entry.name for entry in here.iterdir() if any(fnmatch(entry.name, like) for like in PICKLED))
    if pickled:
        raise NotAdmitted(
            str(here), found=f"only pickled weights ({', '.join(pickled)})", expected="model.safetensors",
            mend="A pickle can run code when it is opened. Where you trust it, convert it with safetensors: load the "
            "model and save it with SentenceTransformer(…).save(…, safe_serialization=True).",
        )  # fmt: skip
    raise NotAdmitted(
        str(here / "model.safetensors"), found="no such file", expected="the weights",
        mend="The folder is incomplete: fetch all of it again.",
    )  # fmt: skip


def _counted(folder: Path) -> Iterator[str]:
    """Relative paths of the files that count, sorted. Links are followed, also out of the folder."""
    found, seen = [], {os.path.realpath(folder)}
    for here, folders, names in os.walk(folder, followlinks=True):
        inside = sorted(name for name in folders if not any(fnmatch(name, like) for like in FOLDERS_NOT_READ))
        real = {name: os.path.realpath(Path(here) / name) for name in inside}
        folders[:] = [name for name in inside if real[name] not in seen]
        seen.update(real.values())
        safe = any(fnmatch(name, "*.safetensors") for name in names)
        skipped = NOT_READ + PICKLED if safe else NOT_READ
        found += [Path(here) / name for name in names if not any(fnmatch(name, like) for like in skipped)]
    yield from sorted(path.relative_to(folder).as_posix() for path in found)


def _digest(path: Path) -> str:
    if not path.exists():
        raise NotAdmitted(
            str(path), found="a link that leads nowhere", expected="a file", mend="Fetch the file it should lead to."
        )
    about = path.stat()
    if about.st_size < 1024 and path.read_bytes().startswith(LFS_POINTER):
        raise NotAdmitted(
            str(path), found="a Git LFS pointer, not the file it stands for", expected="the file itself",
            mend="Run `git lfs pull` where the folder was cloned.",
        )  # fmt: skip
    return _digest_once(path.resolve(), about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest_once(path: Path, size: int, changed: int) -> str:
    return file_digest(path)
