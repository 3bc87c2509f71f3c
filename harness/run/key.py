"""What an output depends on, and so when it may be taken from an earlier run."""

from collections.abc import Mapping

from harness import __version__
from harness.identity import Json, digest

OUTPUTS = "2"
"""Version of what becomes of a model's scores: raised when search, cut or replay gives another ranking."""


def output_key(*, data: str, content_id: str, prompts: Json, runtime: Json) -> str:
    """Digest of everything that can change an output: the suite's data, the release's meaning, what ran it."""
    return digest({"outputs": OUTPUTS, "data": data, "content_id": content_id, "prompts": prompts, "runtime": runtime})


def run_id(*, suite: str, sides: Mapping[str, Json]) -> str:
    """Digest of a run's inputs: the lock, each side's name and output key, and this package's version."""
    return digest({"suite": suite, "sides": sides, "version": __version__})
