"""A bi-encoder's manifest as those who encode with it read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from harness.identity import Json
from harness.release.manifest import Manifest

Value = TypeVar("Value", int, str)

TOWER = "towers.both"
SCORE_TYPES: Mapping[str, Literal["cosine", "dot"]] = {"cosine": "cosine", "dot": "dot"}


@dataclass(frozen=True, slots=True)
class Settled(Generic[Value]):
    """A value, what the folder's own files say (None where nothing), and its source."""

    value: Value
    folder: Value | None
    source: str

    def as_json(self) -> Mapping[str, Json]:
        return {"value": self.value, "folder": self.folder, "source": self.source}


@dataclass(frozen=True, slots=True)
class BiMeaning:
    """`max_length` in tokens, special ones included. `pooling` is one mode, or several joined by `+`.

    `truncate_dim` cuts vectors after all modules.
    `width` is that of the vectors; `normalised` says that they have unit length.
    """

    max_length: Settled[int]
    pooling: Settled[str]
    include_prompt: bool
    normalised: bool
    truncate_dim: int | None
    width: int
    score_type: Literal["cosine", "dot"]


def bi_meaning(manifest: Manifest) -> BiMeaning | None:
    """What a manifest says of one encoder for both sides; None where it isn't that."""
    meaning = manifest.meaning
    if meaning.interaction.kind != "bi" or "both" not in meaning.towers:
        return None
    tower, evidence = meaning.towers["both"], manifest.evidence
    input_, readout = tower.input, tower.readout
    length, pooling = f"{TOWER}.input.max_length", f"{TOWER}.readout.modes"
    folder_length, folder_modes = evidence.overridden.get(length), evidence.overridden.get(pooling)
    modes = "+".join(readout.modes)
    undeclared = evidence.sources[length] != "declared"
    return BiMeaning(
        max_length=Settled(
            input_.max_length,
            folder_length if isinstance(folder_length, int) else input_.max_length if undeclared else None,
            evidence.sources[length],
        ),
        pooling=Settled(
            modes,
            "+".join(str(mode) for mode in folder_modes) if isinstance(folder_modes, list) else modes,
            evidence.sources[pooling],
        ),
        include_prompt=tower.rows.prompt,
        normalised=readout.normalisation.kind == "l2"
        and readout.truncate_dim is None
        and (readout.normalisation.stage == "after-projection" or not readout.projections),
        truncate_dim=readout.truncate_dim,
        width=meaning.output.dimension,
        score_type=SCORE_TYPES[meaning.score.type],
    )
