"""Where a release's files are. A package is found without being imported; the network is used only when asked to."""

import importlib.util
import os
from pathlib import Path

from harness.errors import Misconfigured, NotFound, Stopped
from harness.release.definition import Model


def find_model(source: Model, release_folder: Path, *, download: bool = False) -> Path:
    """The model folder that `[model] source` means.

    A relative `path:` counts from the release folder and may lead out of it, so that releases can share a model. A
    model on the hub is looked for in the local cache; with `download` it is fetched where it isn't there.
    Raises NotFound for a folder or package that isn't there, Stopped where fetching failed.
    """
    if source.scheme == "hf":
        return _on_hub(source, download)
    folder = (
        _in_package(source) if source.scheme == "package" else Path(os.path.normpath(release_folder / source.place))
    )
    if not folder.is_dir():
        raise NotFound(
            f"[model] source {source.source!r}", found=f"no folder {folder}", expected="the folder of a model",
            mend="Correct the path; in release.toml it counts from the release's folder.",
        )  # fmt: skip
    return folder


def _on_hub(source: Model, download: bool) -> Path:
    name, _, commit = source.place.partition("@")
    folder = _hub_cache() / f"models--{name.replace('/', '--')}" / "snapshots" / commit
    # Also in part: a snapshot that is not whole is for the admission to name.
    if folder.is_dir() and not download:
        return folder
    if not download:
        raise NotFound(
            f"[model] source {source.source!r}", found=f"no snapshot {folder}",
            expected="that commit in the local cache",
            mend=f"Give --download, or fetch it with `hf download {name} --revision {commit}`.",
        )  # fmt: skip
    return _fetched(source, name, commit)


def _hub_cache() -> Path:
    """Where huggingface_hub keeps what it fetched, by its own environment variables."""
    if cache := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(cache).expanduser()
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")) / "huggingface"
    return Path(home).expanduser() / "hub"


def _fetched(source: Model, name: str, commit: str) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError:
        raise Misconfigured(
            f"[model] source {source.source!r}", found="no package huggingface_hub is installed",
            expected="that package", mend="pip install huggingface_hub",
        ) from None  # fmt: skip
    try:
        return Path(snapshot_download(name, revision=commit, cache_dir=_hub_cache()))
    except Exception as error:
        raise Stopped(
            f"[model] source {source.source!r}", found=f"it could not be fetched ({type(error).__name__}: {error})",
            expected="a commit of a model on the hub", mend="Check the name, the commit and the network.",
        ) from error  # fmt: skip


def _in_package(source: Model) -> Path:
    name, _, inside = source.place.partition("/")
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise NotFound(
            f"[model] source {source.source!r}", found=f"no package {name} is installed", expected="that package",
            mend=f"pip install {name.replace('_', '-')}",
        )  # fmt: skip
    if inside.startswith("/") or ".." in Path(inside).parts:
        raise NotFound(
            f"[model] source {source.source!r}", found="a path that leads out of the package",
            expected="a folder inside it", mend="Name a folder inside the package, or use path:.",
        )  # fmt: skip
    return Path(next(iter(spec.submodule_search_locations))) / inside
