"""What a folder must be before anything in it is believed: whole, safe to open, and without code to run."""

from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import PurePosixPath

from harness.errors import NotAdmitted
from harness.release.admit.check import Check, listed
from harness.release.admit.settings import setting_findings
from harness.release.describe.modules import WITH_WEIGHTS, Module, read_towers
from harness.release.describe.split import INDEX, shards
from harness.release.folder import FETCH, PICKLED, ModelFolder
from harness.release.weights import non_finite, tensors

CODED = ("config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")
POOLING = ("embedding_dimension", "word_embedding_dimension", "pooling_mode", "include_prompt")
SPLADE = ("pooling_strategy", "activation_function", "embedding_dimension", "word_embedding_dimension")
ADAPTER = "adapter_config.json"


def folder_findings(folder: ModelFolder) -> tuple[Check, ...]:
    """The invariants of a model folder's files, before they are described. A file that cannot be read breaks one."""
    modules = _modules(folder)
    places = list(
        dict.fromkeys(module.place for module in modules if module.kind in WITH_WEIGHTS)
        if modules
        else [PurePosixPath()]
    )
    return (
        listed(
            "files-there", [f"{name}, a link that leads nowhere" for name in folder.broken],
            sound=f"{len(folder.files)} files", expected="every file that the folder lists",
            mend="Fetch the files that the links should lead to.",
        ),
        listed(
            "files-whole", [f"{name}, a Git LFS pointer and not the file" for name in folder.pointers],
            sound="the files themselves", expected="files, not pointers to them",
            mend="Run `git lfs pull` where the folder was cloned.",
        ),
        _weights(folder, places),
        listed(
            "weights-safe", _only_pickled(folder, places), sound="safetensors",
            expected="safetensors, for a pickle can run code when it is opened",
            mend="Where you trust it, convert it: load the model, and save it with safe_serialization=True.",
        ),
        listed(
            "weights-readable", _unreadable(folder), sound="every header reads",
            expected="safetensors with a header and all bytes", mend="Fetch the weights again.",
        ),
        listed(
            "weights-finite", _broken_numbers(folder), sound="every number is finite", expected="numbers",
            mend="The training diverged, or the file is damaged: take an earlier checkpoint or fetch it again.",
        ),
        listed(
            "no-remote-code", _coded(folder, places), sound="the library's own classes alone",
            expected="a model that the library's own classes can run",
            mend="Code that comes with a model is never run. If the library has the class by now, save the model again "
            "with it, so that `auto_map` goes.",
        ),
        listed(
            "adapter-merged",
            [f"{place / ADAPTER}" for place in places if (folder.path / place / ADAPTER).is_file()],
            sound="no adapter", expected="all weights in the folder, none in an adapter whose base lies elsewhere",
            mend="Merge the adapter into its base model and save the result.",
        ),
        listed(
            "module-folders",
            [f"{module.place}, a file" for module in modules if (folder.path / module.place).is_file()],
            sound="a folder for each module", expected="folders with a config.json, as the library reads them",
            mend="Make a folder of that name, and move the file into it as config.json.",
        ),
        listed(
            "module-settings", _strange(modules), sound="keys that the modules have",
            expected="no key that a module does not have", mend="Take the keys out, or restore the file.",
        ),
        *setting_findings(folder, modules),
    )  # fmt: skip


def _modules(folder: ModelFolder) -> tuple[Module, ...]:
    """Every module once; none where modules.json cannot be read, which its description says."""
    try:
        towers = read_towers(folder) if (folder.path / "modules.json").is_file() else {}
    except NotAdmitted:
        return ()
    every = {module.place: module for modules in towers.values() for module in modules}
    return tuple(every.values())


def _weights(folder: ModelFolder, places: list[PurePosixPath]) -> Check:
    faults = [fault for place in places for fault in _lost(folder, place)]
    there = sorted(name for name in folder.files if name.endswith(".safetensors"))
    return listed(
        "weights-there", faults, sound=", ".join(there),
        expected="weights for every module that has some, and every shard that an index names",
        mend=FETCH,
    )  # fmt: skip


def _lost(folder: ModelFolder, place: PurePosixPath) -> Iterator[str]:
    here = folder.path / place
    if not here.is_dir() or (here / "model.safetensors").is_file():
        return
    try:
        index = folder.json(place / INDEX)
    except NotAdmitted as refusal:
        yield f"{place / INDEX}: {refusal.found}"
        return
    if index is not None:
        names = shards(index)
        gone = [name for name in names if not (here / name).is_file()]
        if gone or not names:
            yield f"{len(gone)} of {len(names)} shards missing in {place / INDEX}: {', '.join(gone[:3])}"
    elif not _pickles(folder, place):
        yield f"no {place / 'model.safetensors'}"


def _pickles(folder: ModelFolder, place: PurePosixPath) -> list[str]:
    here = folder.path / place
    names = sorted(entry.name for entry in here.iterdir()) if here.is_dir() else []
    return [name for name in names if any(fnmatch(name, like) for like in PICKLED) and name != "training_args.bin"]


def _only_pickled(folder: ModelFolder, places: list[PurePosixPath]) -> Iterator[str]:
    for place in places:
        safe = list((folder.path / place).glob("*.safetensors")) if (folder.path / place).is_dir() else []
        if not safe and (pickled := _pickles(folder, place)):
            yield f"only pickled weights ({', '.join(str(place / name) for name in pickled)})"


def _unreadable(folder: ModelFolder) -> Iterator[str]:
    for name in folder.files:
        if name.endswith(".safetensors") and name not in folder.pointers and tensors(folder.path / name) is None:
            yield f"{name}, which has no header of safetensors"


def _broken_numbers(folder: ModelFolder) -> Iterator[str]:
    for name in folder.files:
        if name.endswith(".safetensors") and name not in folder.pointers and tensors(folder.path / name) is not None:
            yield from (f"NaN or an infinity in {tensor} of {name}" for tensor in non_finite(folder.path / name))


def _coded(folder: ModelFolder, places: list[PurePosixPath]) -> Iterator[str]:
    for place in dict.fromkeys((PurePosixPath(), *places)):
        for name in CODED:
            if folder.readable(place / name).get("auto_map"):
                yield f"`auto_map` in {place / name}, which asks for remote code"


def _strange(modules: tuple[Module, ...]) -> Iterator[str]:
    for module in modules:
        if module.kind in ("Pooling", "SpladePooling"):
            known = POOLING if module.kind == "Pooling" else SPLADE
            for key in module.config:
                if key not in known and not key.startswith("pooling_mode_"):
                    yield f"{module.file}#/{key}"
