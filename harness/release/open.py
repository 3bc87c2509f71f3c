"""From a release's folder to the release: its definition, the files it depends on, its meaning and content ID."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import NotFound, Stopped
from harness.file.toml import read_toml
from harness.identity import Json, digest, file_digest
from harness.release.bi import BiMeaning, Prompts, bi_meaning
from harness.release.definition import Recorded, ReleaseDefinition
from harness.release.first_form import open_model_folder
from harness.release.source import find_model

DEFINITION = "release.toml"


@dataclass(frozen=True, slots=True)
class Release:
    """An opened release. `files`: relative path to SHA-256, of the model folder's or the recorded file.

    `content_id` is the digest of `meaning` alone: names, folders and parents have no part in it. `model_folder` and
    `bi` are None for a recorded release, `outputs` is None for a live one.
    """

    name: str
    folder: Path
    definition: ReleaseDefinition
    files: Mapping[str, str]
    meaning: Mapping[str, Json]
    content_id: str
    model_folder: Path | None = None
    bi: BiMeaning | None = None
    outputs: Path | None = None

    @property
    def recorded(self) -> Recorded | None:
        return self.definition.recorded

    @property
    def score_type(self) -> str:
        return str(self.meaning["score_type"])

    def prompts_for(self, suite_name: str | None = None) -> Prompts | None:
        """The prompts on one suite; None for a recorded release."""
        return None if self.bi is None else self.bi.prompts_for(suite_name)

    def prompts(self, suite_name: str) -> Json:
        """The prompts on one suite as they enter an output key."""
        prompts = self.prompts_for(suite_name)
        return None if prompts is None else prompts.as_json()


def open_release(folder: Path) -> Release:
    """Reads release.toml and everything it names, and loads no model.

    Raises Misconfigured for a file that does not say a release that this version supports, NotFound for a folder,
    package or file that isn't there, NotAdmitted for a model that may not be run, Stopped for one that can't be read.
    """
    definition = read_toml(folder / DEFINITION, ReleaseDefinition)
    try:
        if definition.recorded is not None:
            return _recorded(folder, definition, definition.recorded)
        return _bi(folder, definition)
    except OSError as refusal:
        raise Stopped(
            str(refusal.filename or folder), found=refusal.strerror or str(refusal), expected="a file that can be read",
            mend="Mend the permissions, or fetch the file again.",
        ) from refusal  # fmt: skip


def _bi(folder: Path, definition: ReleaseDefinition) -> Release:
    assert definition.model is not None  # held by the definition's own check
    model_folder = find_model(definition.model, folder)
    model = open_model_folder(model_folder)
    bi = bi_meaning(definition, model)
    meaning = bi.as_json()
    return Release(
        definition.name, folder, definition, model.files, meaning, digest(meaning), model_folder=model_folder, bi=bi
    )


def _recorded(folder: Path, definition: ReleaseDefinition, recorded: Recorded) -> Release:
    outputs = folder / recorded.path
    if not outputs.is_file():
        raise NotFound(
            f"[recorded] path {recorded.path!r}", found=f"no file {outputs}", expected="the recorded outputs",
            mend="Correct the path in release.toml; it counts from the release's folder.",
        )  # fmt: skip
    files = {recorded.path: file_digest(outputs)}
    meaning: Mapping[str, Json] = {
        "interaction": "recorded",
        "tuple": "declared",
        "format": recorded.format,
        "score_type": recorded.score_type,
        "revision": recorded.revision,
        "outputs": files[recorded.path],
    }
    return Release(definition.name, folder, definition, files, meaning, digest(meaning), outputs=outputs)
