"""`harness describe`: read a model folder, write the release's file, show the manifest."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from harness.errors import Misconfigured
from harness.file.whole import write_bytes
from harness.identity import Json
from harness.release.admit import not_admitted
from harness.release.definition import Model, Name
from harness.release.describe import interaction_of
from harness.release.folder import read_folder
from harness.release.open import DEFINITION, inspect_release
from harness.release.source import find_model
from harness.verb.place import find_place, shown


@dataclass(frozen=True, slots=True)
class Described:
    """Where the release's file stands now, whether it was written just now, and the manifest as JSON."""

    path: str
    written: bool
    manifest: Mapping[str, Json]

    def as_record(self) -> dict[str, Json]:
        return {"manifest": self.manifest, "path": self.path}


def describe(model: str, *, name: str, download: bool = False) -> Described:
    """Writes releases/NAME/release.toml for a model folder (a path, `package:` or `hf:`), and reads it back.

    A release of that name that stands on the same source is described as it is. What a folder doesn't say is asked
    for: the file is written all the same, and the refusal names the key to add.
    Raises Misconfigured for a name that is taken or for what must be declared, NotFound for a folder that isn't there,
    NotAdmitted for a folder that says no meaning.
    """
    _check_name(name)
    folder = find_place().root / "releases" / name
    source = model if model.startswith(("package:", "hf:", "path:")) else f"path:{os.path.relpath(model, folder)}"
    path = folder / DEFINITION
    written = path.exists()
    if written:
        _same_source(path, source)
    else:
        where = find_model(_source(source), folder, download=download)
        kind = interaction_of(read_folder(where))
        text = f'schema = "harness.release.v1"\nname = {json.dumps(name)}\ninteraction = "{kind}"\n\n'
        write_bytes(path, f"{text}[model]\nsource = {json.dumps(source)}\n".encode())
    inspection = inspect_release(folder, download=download)
    broken = [check for check in inspection.checks if not check.ok]
    if inspection.manifest is None or any(check.name == "files-whole" for check in broken):
        if not written:
            path.unlink()
            folder.rmdir()
        raise not_admitted(model, broken, broken[0].mend)
    return Described(shown(path), not written, inspection.manifest.as_record())


def _check_name(name: str) -> None:
    try:
        TypeAdapter(Name).validate_python(name)
    except ValueError as refusal:
        raise Misconfigured(
            f"--name {name!r}", found="no name for a release", expected="letters, digits, `.`, `_` and `-`",
            mend="Give another --name; it names a folder under releases/.",
        ) from refusal  # fmt: skip


def _source(source: str) -> Model:
    try:
        return Model(source=source)
    except ValueError as refusal:
        raise Misconfigured(
            f"model {source!r}", found="no source of a model",
            expected="a folder, package:NAME/FOLDER, or hf:ORG/NAME@COMMIT with the whole commit hash",
            mend="A branch moves; name the commit.",
        ) from refusal  # fmt: skip


def _same_source(path: Path, source: str) -> None:
    if f"source = {json.dumps(source)}" not in path.read_text(encoding="utf-8"):
        raise Misconfigured(
            shown(path), found="a release of that name on another model", expected="a name that is free",
            mend="Give another --name, or take that release away.",
        )  # fmt: skip
