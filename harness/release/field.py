"""Every field of a meaning, and the kind of node that it enters.

The map is exhaustive: a field that it does not name is an error, for it could change an output unseen.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from pydantic import BaseModel

from harness.identity import Json
from harness.release.manifest import Meaning, Side, Tower


class Kind(StrEnum):
    """Nodes of a release's graph, in the order in which one descends from another."""

    SOURCE = "source"
    CONTEXTUAL = "contextual"
    VECTOR = "vector"
    INDEX = "index"
    RAW_SCORE = "raw score"
    CALIBRATED = "calibrated"
    DECISION = "decision"


ORDER = tuple(Kind)
Parts: TypeAlias = Mapping[str, Meaning]

RETRIEVER, RERANKER = "retriever", "reranker"
# A kind that depends on what is in the corpus as soon as it claims a probability.
SEARCHING = ("bi", "late", "sparse", "two-stage", "fusion")
COMPOSED = ("two-stage", "fusion")

# `*` is a key or a position. What enters nothing explains how a release came to be, or follows from other fields.
_ENTERS: Mapping[Kind | None, str] = {
    Kind.SOURCE: """
        towers.*.input.tokenizer.*  towers.*.input.normaliser  towers.*.input.lower_case  towers.*.input.max_length
        towers.*.input.truncation_side  towers.*.input.truncation  towers.*.input.truncated_first
        towers.*.input.padding_side  towers.*.input.special_tokens.*  towers.*.input.prompts.*
        towers.*.input.suite_prompts.*.*  towers.*.input.template  towers.*.input.window.size
        towers.*.input.window.stride  towers.*.input.window.text
        towers.*.rows.expansion.*  towers.*.rows.expansion_strategy
        towers.*.rows.expansion_token  towers.*.rows.expansion_attended  towers.*.rows.segments
    """,
    Kind.CONTEXTUAL: """
        towers.*.artifact.architecture  towers.*.artifact.model_type  towers.*.artifact.config
        towers.*.artifact.backbone  towers.*.artifact.adapter  towers.*.artifact.visibility
        towers.*.artifact.quantised
        towers.*.state.layers  towers.*.state.mixture  towers.*.state.scale  towers.*.state.final_norm
        towers.*.state.axes  towers.*.state.width
    """,
    Kind.VECTOR: """
        towers.*.rows.mask  towers.*.rows.polarity  towers.*.rows.special  towers.*.rows.prompt
        towers.*.rows.skipped.*  towers.*.rows.expansion_counts
        towers.*.readout.family  towers.*.readout.modes  towers.*.readout.denominator  towers.*.readout.weights
        towers.*.readout.projections.*.kind  towers.*.readout.projections.*.width_in
        towers.*.readout.projections.*.width_out  towers.*.readout.projections.*.bias
        towers.*.readout.projections.*.activation  towers.*.readout.projections.*.residual
        towers.*.readout.projections.*.weights
        towers.*.readout.normalisation.kind  towers.*.readout.normalisation.epsilon
        towers.*.readout.normalisation.stage  towers.*.readout.truncate_dim  towers.*.readout.renormalised
        towers.*.readout.max_active_dims  towers.*.readout.empty  towers.*.readout.dropout  towers.*.readout.stored
        output.kind  output.dimension  interaction.token_schema
    """,
    Kind.INDEX: "score.index  score.type",
    Kind.RAW_SCORE: """
        towers.*.artifact.head
        towers.*.input.window.aggregation  towers.*.input.window.normalise  towers.*.input.window.owner
        output.labels  output.null  output.transitions
        output.regression.units  output.regression.scale  output.regression.shift
        score.low  score.high  score.higher_is_better  score.sums_to  score.probability  score.activation
        score.label  score.temperature
        interaction.kind  interaction.releases.*  interaction.maxsim  interaction.maxsim_ties
        interaction.weights.*  interaction.scales.*
        interaction.pool  interaction.rank_constant  interaction.absent
        recording.format  recording.outputs  recording.revision
        recording.label_map.*  recording.column  recording.null_scores
    """,
    Kind.CALIBRATED: """
        interaction.depth  score.calibrator.family  score.calibrator.digest  score.calibrator.fitted_under
    """,
    Kind.DECISION: "output.decoder  output.pieces  output.longest  score.threshold  score.ties  "
    "score.decision.type  score.decision.ground  score.decision.below  score.decision.digest  "
    "score.decision.fitted_under",
    None: """
        towers.*.artifact.revision  towers.*.artifact.task_revision
        towers.*.rows.sequences  towers.*.rows.offsets  towers.*.rows.words
        output.generic_labels  interaction.tied
        training.dataset_revision  training.split  training.objectives  training.positives  training.admitted
        training.temperature  training.margin  training.margin_metric  training.miner  training.miner_revision
        training.gather  training.denominators  training.task_weights.*  training.sampler  training.ignored_rows
        training.seed  training.trainable  training.frozen  training.first_trainable  training.last_trainable
        training.modes.*  training.schedule  training.phase  training.base  training.adapter  training.parent
        training.head_only
    """,
}
STEPS: Mapping[str, Kind | None] = {path: kind for kind, paths in _ENTERS.items() for path in paths.split()}
# A head's outputs are named after labels, words and characters; where it stands on a vector, they are not the vector's.
HEAD_STEPS: Mapping[str, Kind | None] = {
    **STEPS,
    **dict.fromkeys(("output.kind", "output.dimension"), Kind.RAW_SCORE),
    **dict.fromkeys((f"towers.*.rows.{name}" for name in ("sequences", "offsets", "words")), Kind.RAW_SCORE),
}
# A key of these is a side, and absent says the same as this value.
BY_SIDE: Mapping[str, Json] = {
    "towers.*.input.prompts": "",
    "towers.*.rows.skipped": [],
    "towers.*.rows.expansion": 0,
}
# These say how a text is filled up, and so nothing about a side that is not.
OF_EXPANSION = tuple(f"towers.*.rows.expansion_{name}" for name in ("strategy", "token", "attended", "counts"))
WHOLE = "whole"


@dataclass(frozen=True, slots=True)
class Field:
    """One value of a meaning.

    `path` leads to it; `name` is the path as the sides see it, without the tower or the side. `step` is the first kind
    of node that it may enter, None where it changes no output. `sides` are those that it concerns, WHOLE where it is
    not a tower's.
    """

    path: str
    name: str
    value: Json
    step: Kind | None
    sides: tuple[str, ...]

    @property
    def side(self) -> str | None:
        """One side, `both`, or None."""
        return None if self.sides == (WHOLE,) else self.sides[0] if len(self.sides) == 1 else "both"


def sides_of(meaning: Meaning) -> dict[Side, Tower]:
    """Every side with its encoder; a shared one stands under both."""
    return {
        side: tower
        for key, tower in meaning.towers.items()
        for side in (("query", "document") if key == "both" else (key,))
    }


def fields(meaning: Meaning, *, apart: bool = False) -> tuple[Field, ...]:
    """Every stated value; of a training, what says anything.

    `apart` writes a shared encoder as that of each side, to hold it against two.

    Raises KeyError for a field that the map does not name.
    """
    found: list[Field] = []
    for key, tower in meaning.towers.items():
        shared = ("query", "document") if key == "both" else (str(key),)
        for name, sides in [(side, (side,)) for side in shared] if apart else [(str(key), shared)]:
            found += _of_tower(meaning, tower, f"towers.{name}", sides)
    steps = _steps(meaning)
    for record in type(meaning).model_fields:
        if record != "towers":
            for pattern, keys, value in _leaves(getattr(meaning, record), record):
                # Only the value tells what is declared of a training; 0 is declared.
                if record == "training" and (value is None or value is False or value in ([], {})):
                    continue
                path = join(keys)
                found.append(Field(path, path, value, steps[pattern], (WHOLE,)))
    return tuple(found)


def stands_for(meaning: Meaning, role: str) -> bool:
    """Whether this meaning's own encoders are what a role's release would be."""
    if role == RERANKER:
        return "pair" in meaning.towers
    return role == RETRIEVER and any(side != "pair" for side in meaning.towers)


def join(keys: tuple[str, ...]) -> str:
    """A path in writing: names joined by dots, any other key in brackets."""
    return "".join(f".{key}" if key.replace("-", "_").isidentifier() else f"[{key}]" for key in keys).lstrip(".")


def _steps(meaning: Meaning) -> Mapping[str, Kind | None]:
    return HEAD_STEPS if meaning.interaction.kind == "head" else STEPS


def _of_tower(meaning: Meaning, tower: Tower, place: str, sides: tuple[str, ...]) -> Iterator[Field]:
    steps = _steps(meaning)
    widths = {str(side): width for side, width in tower.rows.expansion.items()}
    filled = tuple(side for side in sides if widths.get(side, 0))
    for pattern, keys, value in _leaves(tower, "towers.*"):
        above = pattern.removesuffix(".*")
        if above in BY_SIDE:
            continue
        path, name = join((*place.split("."), *keys[2:])), join(keys[2:])
        of: tuple[str, ...] = sides
        if pattern == "towers.*.input.suite_prompts.*.*":
            of, name = (keys[-1],), join(keys[2:-1])
        elif pattern in OF_EXPANSION:
            of = filled
        yield Field(path, name, value, steps[pattern] if of else None, of or sides)
    for above, absent in BY_SIDE.items():
        model, name = above.split(".")[2:]
        stated: Mapping[str, Json] = getattr(getattr(tower, model), name)
        for side in dict.fromkeys((*sides, *stated)):
            value = stated.get(side, absent)
            # Of a side that is not the encoder's own, nothing is said by what absent says.
            if side not in sides and value == absent:
                continue
            # Tokens to leave out are a set.
            value = sorted(value) if isinstance(value, list) else value
            yield Field(f"{place}.{model}.{name}.{side}", f"{model}.{name}", value, steps[f"{above}.*"], (side,))


def _leaves(value: object, pattern: str) -> Iterator[tuple[str, tuple[str, ...], Json]]:
    return _walk(value, pattern, tuple(pattern.split(".")))


def _walk(value: object, pattern: str, keys: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...], Json]]:
    """Pattern, keys and value of all that the map names below here; what is null or empty as a whole has none."""
    if pattern in STEPS:
        yield pattern, keys, value  # type: ignore[misc]  # the schema's leaves are JSON
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from _walk(getattr(value, name), f"{pattern}.{name}", (*keys, name))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _walk(inner, f"{pattern}.*", (*keys, str(key)))
    elif isinstance(value, list | tuple) and value and isinstance(value[0], BaseModel):
        for position, inner in enumerate(value):
            yield from _walk(inner, f"{pattern}.*", (*keys, str(position)))
    elif not any(known.startswith(f"{pattern}.") for known in STEPS):
        raise KeyError(f"no node is known for {pattern}")
