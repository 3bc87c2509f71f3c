"""What an output depends on, and so when it may be taken from an earlier run."""

from collections.abc import Mapping

from harness import __version__
from harness.identity import Json, digest
from harness.release.field import Kind
from harness.release.open import Release
from harness.release.semantic import semantic_tuple

OUTPUTS = "3"
"""Version of what becomes of a model's scores: raised when search, cut or replay gives another ranking."""


def scores_key(release: Release) -> str:
    """What of a release its outputs depend on: its raw scores, and what behind them makes an output of scores.

    Not its threshold, its calibrator or the tie rule of its own decisions: changed alone, they leave every output as it
    was. Nor what explains a release and changes nothing, such as its training.
    """
    meaning, members = release.manifest.meaning, {role: each.manifest for role, each in release.members.items()}
    nodes = semantic_tuple(release.manifest, members).graph.nodes
    scores = {node.name: node.key for node in nodes if node.kind is Kind.RAW_SCORE}
    output = meaning.output
    own: dict[str, Json] = {"scores": scores, "depth": meaning.interaction.depth, "decoder": output.decoder}
    own |= {
        name: value for name, value in {"pieces": output.pieces, "longest": output.longest}.items() if value is not None
    }
    # A member's own members, and its depth, are no raw score of this release.
    within = {role: scores_key(member) for role, member in release.members.items()} if release.is_composed else {}
    return digest({**own, "members": within} if within else own)


def output_key(*, data: str, scores: str, prompts: Json, runtime: Json) -> str:
    """Digest of everything that can change an output: the suite's data, the release's scores, what ran it."""
    return digest({"outputs": OUTPUTS, "data": data, "scores": scores, "prompts": prompts, "runtime": runtime})


def run_id(*, suite: str, sides: Mapping[str, Json]) -> str:
    """Digest of a run's inputs: the lock, each side's name, content and output key, and this package's version."""
    return digest({"suite": suite, "sides": sides, "version": __version__})
