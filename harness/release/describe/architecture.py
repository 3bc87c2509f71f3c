"""What the installed library fixes about an architecture, and no configuration says.

Each fact was read in transformers 5.24, models/NAME/modeling_NAME.py. An architecture that isn't here is asked about.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.errors import Misconfigured
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.told import DECLARED, LIBRARY, Told, declared

Visibility: TypeAlias = Literal["bidirectional", "causal"]
WIDTHS = ("hidden_size", "d_model", "dim", "n_embd")
LAYERS = ("num_hidden_layers", "n_layers", "num_layers", "n_layer")


@dataclass(frozen=True, slots=True)
class Architecture:
    """`final_norm`: a norm follows the last layer. `layers` and `segments`: where the configuration doesn't say.

    `offset_positions`: the first position is the padding ID plus one, so that many of the embeddings are never used.
    """

    visibility: Visibility
    final_norm: bool
    layers: int | None = None
    segments: bool = False
    offset_positions: bool = False


BERT = Architecture("bidirectional", final_norm=False, layers=12, segments=True)
PLAIN = Architecture("bidirectional", final_norm=False, layers=12)
ROBERTA = Architecture("bidirectional", final_norm=False, layers=12, offset_positions=True)
T5 = Architecture("bidirectional", final_norm=True)
DECODER = Architecture("causal", final_norm=True)

ARCHITECTURES: Mapping[str, Architecture] = {
    "bert": BERT, "albert": BERT, "electra": BERT, "nomic_bert": BERT, "deberta-v2": PLAIN, "deberta": PLAIN,
    "distilbert": Architecture("bidirectional", final_norm=False, layers=6),
    "roberta": ROBERTA, "xlm-roberta": ROBERTA, "camembert": ROBERTA, "mpnet": ROBERTA, "longformer": ROBERTA,
    "data2vec-text": ROBERTA,
    "modernbert": Architecture("bidirectional", final_norm=True, layers=22),
    "t5": T5, "mt5": T5, "umt5": T5,
    "qwen2": DECODER, "qwen3": DECODER, "llama": DECODER, "mistral": DECODER, "gemma": DECODER, "gemma2": DECODER,
    "gemma3_text": DECODER, "phi3": DECODER, "gpt2": DECODER, "gpt_neox": DECODER,
}  # fmt: skip
# Keys of a configuration that turn an architecture's attention round.
SWITCHES: Mapping[Visibility, tuple[tuple[str, Json, str], ...]] = {
    "causal": (
        ("use_bidirectional_attention", True, "causal-made-bidirectional"),
        ("is_causal", False, "causal-made-bidirectional"),
    ),
    "bidirectional": (("is_decoder", True, "causal"),),
}


def known(config: Mapping[str, Json]) -> Architecture | None:
    """What is known of a configuration's `model_type`; None of any other."""
    return ARCHITECTURES.get(str(config.get("model_type")))


def first_position(config: Mapping[str, Json]) -> int:
    """The first row of the table of positions that a text can have."""
    architecture, padding = known(config), config.get("pad_token_id")
    offset = architecture is not None and architecture.offset_positions
    return padding + 1 if offset and isinstance(padding, int) else 0


def visibility(definition: ReleaseDefinition, config: Mapping[str, Json], file: str) -> Told:
    """Which positions a row may attend to. Raises Misconfigured where nothing says it."""
    said = None if definition.model is None else definition.model.visibility
    architecture = known(config)
    if architecture is not None:
        for key, value, means in SWITCHES[architecture.visibility]:
            if config.get(key) == value:
                return declared(said, means, f"{file}#/{key}")
        return declared(said, architecture.visibility, LIBRARY)
    if said is None:
        raise unknown(definition, config, "visibility", '"bidirectional" or "causal"')
    return Told(said, DECLARED)


def final_norm(definition: ReleaseDefinition, config: Mapping[str, Json]) -> Told:
    """Raises Misconfigured for an unknown architecture whose final norm isn't declared."""
    said = None if definition.model is None else definition.model.final_norm
    architecture = known(config)
    if architecture is not None:
        return declared(said, architecture.final_norm, LIBRARY)
    if said is None:
        raise unknown(definition, config, "final_norm", "true or false")
    return Told(said, DECLARED)


def unknown(definition: ReleaseDefinition, config: Mapping[str, Json], key: str, values: str) -> Misconfigured:
    """The refusal of an architecture of which release.toml must say `key`."""
    return Misconfigured(
        f"release {definition.name}", found=f"the architecture {config.get('model_type')!r}, which is not known here",
        expected=f"its `{key}`", mend=f"Add `{key} = …` ({values}) to [model] in release.toml.",
    )  # fmt: skip
