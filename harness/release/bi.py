"""A bi-encoder's manifest as those who encode with it read it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from harness.identity import Json
from harness.release.manifest import Manifest

Value = TypeVar("Value", int, str)

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


def bi_meaning(manifest: Manifest, side: Literal["query", "document"] = "query") -> BiMeaning | None:
    """What a manifest says of the encoder of one side, of both where they share it; None where it has none of its own,
    as a release made of two others.
    """
    meaning, evidence = manifest.meaning, manifest.evidence
    name: Literal["both", "query", "document"] = "both" if "both" in meaning.towers else side
    if meaning.interaction.kind != "bi" or meaning.interaction.releases or name not in meaning.towers:
        return None
    input_, readout = meaning.towers[name].input, meaning.towers[name].readout
    length, pooling = f"towers.{name}.input.max_length", f"towers.{name}.readout.modes"
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
        include_prompt=meaning.towers[name].rows.prompt,
        normalised=readout.normalisation.kind == "l2"
        and readout.truncate_dim is None
        and (readout.normalisation.stage == "after-projection" or not readout.projections),
        truncate_dim=readout.truncate_dim,
        width=meaning.output.dimension,
        score_type=SCORE_TYPES[meaning.score.type],
    )
