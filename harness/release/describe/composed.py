"""Releases made of others, and recorded ones: what no model folder says."""

from collections.abc import Mapping
from typing import Literal

from harness.errors import Misconfigured
from harness.identity import Json
from harness.release.definition import Recorded, ReleaseDefinition
from harness.release.describe.pooled import interaction, output, ranked
from harness.release.describe.told import DECLARED, DERIVED, Told, Tree, each_from
from harness.release.manifest import Manifest, ScoreType

KINDS: Mapping[ScoreType, Literal["tags", "value", "score"]] = {"tags": "tags", "value": "value"}
RANGES: Mapping[ScoreType, tuple[float, float]] = {"probability": (0.0, 1.0), "cosine": (-1.0, 1.0)}
# What ranks the documents that a second stage is given.
FIRST_STAGES = ("bi", "late", "sparse", "fusion", "recorded")
# What scores documents that it is given.
LAST_STAGES = ("cross", "bi", "late", "recorded")


def two_stage(definition: ReleaseDefinition, members: Mapping[str, Manifest]) -> Tree:
    """A retriever's first documents, in a reranker's order. Raises Misconfigured for members that aren't that."""
    retriever, reranker = members["retriever"].meaning, members["reranker"].meaning
    for role, kind, kinds in (
        ("retriever", retriever.interaction.kind, FIRST_STAGES),
        ("reranker", reranker.interaction.kind, LAST_STAGES),
    ):
        if kind not in kinds:
            raise _unfit(definition, role, kind, kinds)
    stages = definition.stages
    return {
        "interaction": interaction(
            "two-stage", depth=Told(None if stages is None else stages.depth, DECLARED), releases=_releases(members)
        ),
        "towers": Told({}, DERIVED),
        "output": output("score", Told(1, DERIVED)),
        # Of the documents that it is given, a reranker keeps no index.
        "score": {**_score_of(definition, members["reranker"]), "index": Told("none", DERIVED)},
        "recording": Told(None, DERIVED),
    }


def fusion(definition: ReleaseDefinition, members: Mapping[str, Manifest]) -> Tree:
    """The weighted sum of several releases' scaled scores. Raises Misconfigured for a member that has no ranking."""
    for name, member in members.items():
        if member.meaning.interaction.kind not in (*FIRST_STAGES, "cross", "two-stage"):
            raise _unfit(definition, name, member.meaning.interaction.kind, (*FIRST_STAGES, "cross", "two-stage"))
    said = definition.fusion
    weights, scales = ({}, {}) if said is None else (said.weights, said.scales)

    def source(key: str) -> str:
        return DECLARED if said is not None and key in said.model_fields_set else DERIVED

    return {
        "interaction": interaction(
            "fusion", releases=_releases(members),
            weights={name: Told(weight, DECLARED) for name, weight in weights.items()},
            scales={name: Told(scale, DECLARED) for name, scale in scales.items()},
            pool=Told(None if said is None else said.depth, source("depth")),
            rank_constant=Told(said.k if said is not None and said.ranked else None, source("k")),
            absent=Told("lowest", DERIVED),
        ),
        "towers": Told({}, DERIVED),
        "output": output("score", Told(1, DERIVED)),
        "score": {
            **ranked(definition, "none"), "type": Told("value", DERIVED), "low": Told(None, DERIVED),
            "high": Told(None, DERIVED),
        },
        "recording": Told(None, DERIVED),
    }  # fmt: skip


def paired(definition: ReleaseDefinition, members: Mapping[str, Manifest]) -> Tree:
    """Two bi-encoders, each the encoder of one side. Raises Misconfigured for members that don't fit together."""
    towers: dict[str, Tree] = {}
    for side, member in members.items():
        if member.meaning.interaction.kind != "bi":
            raise _unfit(definition, side, member.meaning.interaction.kind, ("bi",))
        own = {str(name): tower for name, tower in member.meaning.towers.items()}
        tower = (own.get("both") or own[side]).model_dump(mode="json")
        for key in ("prompts", "suite_prompts"):
            tower["input"][key] = _of_side(tower["input"][key], side)
        towers[side] = Told(tower, DERIVED)
    query, document = members["query"].meaning, members["document"].meaning
    for what, one, other in (
        ("score", query.score.type, document.score.type),
        ("width", str(query.output.dimension), str(document.output.dimension)),
    ):
        if one != other:
            raise Misconfigured(
                f"release {definition.name}", found=f"the {what} {one} of queries and {other} of documents",
                expected="one for both", mend="Name two releases that were made for each other.",
            )  # fmt: skip
    return {
        "interaction": interaction("bi", tied=Told(False, DECLARED), releases=_releases(members)),
        "towers": towers,
        "output": output("vector", Told(document.output.dimension, DERIVED)),
        "score": _score_of(definition, members["query"]),
        "recording": Told(None, DERIVED),
    }


def recorded(definition: ReleaseDefinition, said: Recorded, outputs: str, null_scores: str | None) -> Tree:
    """Outputs made elsewhere: what made them is declared, and not observed."""
    low, high = RANGES.get(said.score_type, (None, None))
    distance = said.score_type == "squared-l2"
    kind = KINDS.get(said.score_type, "score")
    return {
        "interaction": interaction("recorded"),
        "towers": Told({}, DERIVED),
        "output": output(kind, Told(1, DERIVED)),
        "score": {
            **ranked(definition, "none"),
            "type": Told(said.score_type, DECLARED),
            "low": Told(0.0 if distance else low, DERIVED),
            "high": Told(high, DERIVED),
            "higher_is_better": Told(not distance, DERIVED),
            "probability": Told(said.score_type == "probability", DERIVED),
        },
        "recording": {
            "format": Told(said.format, DECLARED),
            "outputs": Told(outputs, said.path),
            "revision": Told(said.revision, DECLARED),
            "label_map": each_from(said.label_map, DECLARED),
            "column": Told(said.column, DECLARED),
            "null_scores": Told(null_scores, said.null_scores or DERIVED),
        },
    }


def _releases(members: Mapping[str, Manifest]) -> Tree:
    return {role: Told(member.identity.content_id, DERIVED) for role, member in members.items()}


def _score_of(definition: ReleaseDefinition, member: Manifest) -> Mapping[str, Tree]:
    """A member's score, with this release's own threshold and temperature; a calibrator isn't inherited."""
    own = member.meaning.score.model_dump(mode="json", exclude={"calibrator", "decision", "threshold", "temperature"})
    return {
        **{name: Told(value, DERIVED) for name, value in own.items()},
        "threshold": Told(definition.score.threshold, DECLARED),
        "temperature": Told(definition.score.temperature, DECLARED),
    }


def _of_side(prompts: Mapping[str, Json], side: str) -> dict[str, Json]:
    """Prompts by side, or by suite and side, of one side alone."""
    found: dict[str, Json] = {}
    for name, value in prompts.items():
        if isinstance(value, Mapping):
            found[name] = {side: value[side]} if side in value else {}
        elif name == side:
            found[name] = value
    return {name: value for name, value in found.items() if value != {}}


def _unfit(definition: ReleaseDefinition, role: str, kind: str, kinds: tuple[str, ...]) -> Misconfigured:
    return Misconfigured(
        f"release {definition.name}", found=f"a {kind} release as its {role}", expected=f"one of {', '.join(kinds)}",
        mend="Name another release in release.toml.",
    )  # fmt: skip
