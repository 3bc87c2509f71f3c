"""What the description of a release folder says."""

from harness.file.toml import read_toml
from harness.release.definition import ReleaseDefinition
from harness.release.describe import describe
from harness.release.describe.beside import read_beside
from harness.release.folder import read_folder
from harness.release.manifest import Manifest


def described(folder) -> Manifest:
    """The manifest of a release folder with a model, admitted or not."""
    definition = read_toml(folder.path / "release.toml", ReleaseDefinition)
    return describe(definition, read_folder(folder.path / "model"), read_beside(definition, folder.path))


def tower(folder, name="both"):
    return described(folder).meaning.towers[name]


def source(folder, path: str) -> str:
    return described(folder).evidence.sources[path]
