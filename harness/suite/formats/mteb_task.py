"""A task of MTEB as its package defines it, with data that lie in a folder, at the revision which the task pins."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.errors import Misconfigured
from harness.file.lines import listed, refuse, shown
from harness.suite.definition import Source

SNAPSHOTS = "snapshots"
DOWNLOADS = ".cache/huggingface/download"
WRITE = 'Write source = { format = "mteb", task = "STSBenchmark", path = "…", … } in suite.toml.'


@dataclass(frozen=True, slots=True)
class LoadedTask:
    """`kind` is MTEB's own word for it, `definition` the object that says which columns are meant, `data` what it has
    made of the files, by split. `splits` are those on which it is judged.
    """

    name: str
    kind: str
    revision: str
    definition: Any
    data: Mapping[str, Any]
    splits: tuple[str, ...]


def data_files(folder: Path, source: Source) -> tuple[Path, ...]:
    """Every file of the folder that isn't hidden, by name. Raises Misconfigured where there is none."""
    if source.task is None:
        raise Misconfigured(
            str(folder), found="no `task` in `source`", expected="the name of one of MTEB's tasks", mend=WRITE
        )
    hidden = [key for key in ("corpus", "queries", "separator", "quotes", "header", "comments", "between")
              if getattr(source, key) is not None]  # fmt: skip
    hidden += ["columns"] if source.columns.model_dump(exclude_none=True) else []
    if hidden:
        raise Misconfigured(
            str(folder), found=f"`{hidden[0]}` in `source`", expected="no such key, for MTEB's task says it",
            mend=f"Take `{hidden[0]}` out.",
        )  # fmt: skip
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    found = tuple(path for path in paths if not any(part.startswith(".") for part in path.relative_to(folder).parts))
    if not found:
        raise Misconfigured(
            str(folder), found="no file" if folder.is_dir() else "no such folder",
            expected="the data of the task, as the hub has them",
            mend="Download them with `hf download --repo-type dataset --revision … --local-dir …`.",
        )  # fmt: skip
    return found


@contextmanager
def loaded_task(folder: Path, source: Source) -> Iterator[LoadedTask]:
    """The task with its data, without a look at the hub; the data are there within the block.

    Raises Misconfigured where `mteb` isn't installed, has no such task or subset, or cannot read the folder, and where
    the data are of another revision than the task's, or don't say of which.
    """
    name = source.task or ""
    definition = _definition(folder, name)
    metadata = definition.metadata
    revision = str(metadata.dataset["revision"])
    _check_revision(folder, source, name, revision)
    if list(metadata.modalities) != ["text"]:
        raise Misconfigured(
            str(folder), found=f"{name}, a task of {' and '.join(metadata.modalities)}", expected="a task of text",
            mend="Name another task.",
        )  # fmt: skip
    subset = _subset(folder, source, name, list(metadata.hf_subsets))
    definition.metadata = metadata.model_copy(update={"dataset": {**metadata.dataset, "path": str(folder)}})
    definition.hf_subsets = [subset]
    with _offline():
        try:
            definition.load_data()
            # Older tasks leave queries, corpus and judgements apart, and have them put together before an evaluation.
            if hasattr(definition, "convert_v1_dataset_format_to_v2"):
                definition.convert_v1_dataset_format_to_v2(num_proc=None)
        except Exception as error:
            # A task's own code may raise anything over files that aren't as it expects.
            raise Misconfigured(
                str(folder), found=f"data that {name} cannot read: {type(error).__name__}: {shown(str(error))}",
                expected="the files of the data set as the hub has them",
                mend="Download them whole, with their README.md.",
            ) from error  # fmt: skip
        data = definition.dataset
        # A corpus stands under the name of its subset even where the task has only one.
        data = data.get(subset, data)
        yield LoadedTask(name, str(metadata.type), revision, definition, data, tuple(metadata.eval_splits))


def chosen_splits(folder: Path, task: LoadedTask, named: Sequence[str]) -> tuple[str, ...]:
    """The named splits, or the only one on which the task is judged. Raises Misconfigured for any other number."""
    splits = tuple(named) or task.splits
    if not named and len(splits) != 1:
        raise Misconfigured(
            str(folder), found=f"{len(splits)} splits on which {task.name} is judged: {listed(splits)}",
            expected="one, or a role for each that is meant", mend=f'Write role = {{ "{splits[0]}" = "promotion" }} '
            "under [cases].",
        )  # fmt: skip
    strange = next((split for split in splits if split not in task.data), None)
    if strange is not None:
        raise Misconfigured(
            str(folder), found=f"no split {shown(strange)}", expected=f"one of {', '.join(map(shown, task.data))}",
            mend="Correct its name, or download the data set whole.",
        )  # fmt: skip
    return splits


def written_revision(folder: Path) -> str | None:
    """The revision of a folder in the hub's cache, or of one that was downloaded; None where it does not say.

    Raises Misconfigured for files of several revisions.
    """
    resolved = folder.resolve()
    if resolved.parent.name == SNAPSHOTS:
        return resolved.name
    records = sorted((folder / DOWNLOADS).rglob("*.metadata"))
    revisions = sorted({path.read_text(encoding="utf-8").partition("\n")[0].strip() for path in records})
    if len(revisions) > 1:
        refuse(folder, f"files of {len(revisions)} revisions: {listed(revisions)}", "one", "Download them anew.")
    return revisions[0] if revisions else None


def _check_revision(folder: Path, source: Source, name: str, pinned: str) -> None:
    written = written_revision(folder)
    for revision, told in ((written, "the data are"), (source.revision, "`source` says that the data are")):
        if revision is not None and revision != pinned:
            raise Misconfigured(
                str(folder), found=f"{told} of revision {revision}", expected=f"{pinned}, which {name} pins",
                mend=f"Download them with `hf download --repo-type dataset --revision {pinned} --local-dir …`.",
            )  # fmt: skip
    if written is None and source.revision is None:
        raise Misconfigured(
            str(folder), found="data that don't say of which revision they are",
            expected=f"{pinned}, which {name} pins",
            mend=f'If they are of that one, write revision = "{pinned}" in `source`.',
        )  # fmt: skip


def _subset(folder: Path, source: Source, name: str, subsets: Sequence[str]) -> str:
    if source.subset is None and len(subsets) == 1:
        return subsets[0]
    if source.subset is None or source.subset not in subsets:
        raise Misconfigured(
            str(folder), found=f"subset {shown(source.subset)}" if source.subset else f"{len(subsets)} subsets",
            expected=f"one of {name}'s: {', '.join(map(shown, subsets))}",
            mend=f'Write subset = "{subsets[0]}" in `source`, or another.',
        )  # fmt: skip
    return source.subset


def _definition(folder: Path, name: str) -> Any:
    try:
        import mteb
    except ImportError as error:
        raise Misconfigured(
            str(folder), found="the package mteb is not installed", expected="it, for it says how its tasks are read",
            mend="Install it: pip install 'retrieval-harness[mteb]'.",
        ) from error  # fmt: skip
    try:
        return mteb.get_task(name)
    except KeyError as error:
        raise Misconfigured(
            str(folder), found=f"the task {shown(name)}", expected="one of MTEB's tasks", mend=str(error.args[0])
        ) from error


@contextmanager
def _offline() -> Iterator[None]:
    """Data come from the folder alone: neither from the hub nor from what was made of other files earlier."""
    import datasets
    from huggingface_hub import constants

    before = datasets.config.HF_HUB_OFFLINE, datasets.config.HF_DATASETS_CACHE, constants.HF_HUB_OFFLINE
    shows = datasets.are_progress_bars_disabled()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as cache:
        datasets.config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
        datasets.config.HF_DATASETS_CACHE = Path(cache)
        datasets.disable_progress_bars()
        try:
            yield
        finally:
            datasets.config.HF_HUB_OFFLINE, datasets.config.HF_DATASETS_CACHE, constants.HF_HUB_OFFLINE = before
            if not shows:
                datasets.enable_progress_bars()
