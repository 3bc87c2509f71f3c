"""From what a manifest says of a sparse tower to the reference's recipe, with the weights that it names.

A manifest has the map from rows to logits as one, by its weights. What stands between its tensors is the
architecture's, as read in transformers 5.24, models/NAME/modeling_NAME.py: a dense map, an activation, a norm, and a
map to the vocabulary, which is the table of embeddings unless it has weights of its own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from harness.candidate.reference import refused, tensors_in
from harness.identity import Json
from harness.readout.projection import Dense, LayerNorm
from harness.readout.sparse import LOGARITHMS, Activation, SparseRecipe
from harness.release.describe.sparse import GROUPS
from harness.release.describe.split import is_of, split
from harness.release.folder import read_folder
from harness.release.manifest import Projection, Readout, Tower
from harness.rows.mask import Counting

Tensors: TypeAlias = Mapping[str, NDArray[np.float64]]
EMBEDDINGS = ("word_embeddings.weight", "tok_embeddings.weight")
# The names that transformers' configurations have for what the reference calls otherwise.
NAMES = {"gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh"}


class Configured(NamedTuple):
    """A key of the configuration, if there is one, and the value where it isn't there."""

    key: str | None
    usual: str | float


GELU = Configured(None, "gelu")
EPSILON = Configured("layer_norm_eps", 1e-12)


@dataclass(frozen=True, slots=True)
class LanguageHead:
    """Where its tensors are. `bias`: the last map's, by its names in order; the first that is there counts."""

    dense: str
    norm: str
    decoder: str
    bias: tuple[str, ...]
    activation: Configured = GELU
    epsilon: Configured = EPSILON


BERT = LanguageHead(
    "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm", "cls.predictions.decoder",
    ("cls.predictions.decoder.bias", "cls.predictions.bias"), Configured("hidden_act", "gelu"),
)  # fmt: skip
ROBERTA = LanguageHead(
    "lm_head.dense", "lm_head.layer_norm", "lm_head.decoder", ("lm_head.decoder.bias", "lm_head.bias")
)
DISTILBERT = LanguageHead(
    "vocab_transform", "vocab_layer_norm", "vocab_projector", ("vocab_projector.bias",),
    Configured("activation", "gelu"), Configured(None, 1e-12),
)  # fmt: skip
ELECTRA = LanguageHead(
    "generator_predictions.dense", "generator_predictions.LayerNorm", "generator_lm_head", ("generator_lm_head.bias",)
)
ALBERT = LanguageHead(
    "predictions.dense", "predictions.LayerNorm", "predictions.decoder",
    ("predictions.decoder.bias", "predictions.bias"), Configured("hidden_act", "gelu_new"),
)  # fmt: skip
MODERNBERT = LanguageHead(
    "head.dense", "head.norm", "decoder", ("decoder.bias",), Configured("classifier_activation", "gelu"),
    Configured("norm_eps", 1e-5),
)  # fmt: skip
HEADS: Mapping[str, LanguageHead] = {
    "bert": BERT, "roberta": ROBERTA, "xlm-roberta": ROBERTA, "camembert": ROBERTA, "mpnet": ROBERTA,
    "distilbert": DISTILBERT, "electra": ELECTRA, "albert": ALBERT, "modernbert": MODERNBERT,
}  # fmt: skip


def sparse_recipe(tower: Tower, folder: Path, place: PurePosixPath) -> SparseRecipe:
    """What a tower's manifest says; `place` is where in the folder its configuration and weights are.

    Raises NotAdmitted for a manifest that its files contradict or that the reference cannot compute.
    """
    readout, rows = tower.readout, tower.rows
    [mode] = readout.modes if len(readout.modes) == 1 else ["several"]
    said = readout.projections[0].activation if readout.projections else "none"
    for field, found, expected in (
        ("readout.family", readout.family, ("sparse",)),
        ("readout.modes", mode, ("max", "sum")),
        ("readout.projections", "+".join(each.kind for each in readout.projections), ("mlm",)),
        ("readout.projections[0].activation", said, tuple(LOGARITHMS)),
        ("readout.empty", readout.empty, ("reject", "zero")),
    ):
        if found not in expected:
            raise refused(field, found, " or ".join(expected))
    _refuse_more(readout)
    if any(rows.skipped.values()) or any(rows.expansion.values()):
        raise refused("rows", "a skip list or a query expansion", "the rows of a text, which have neither")
    return SparseRecipe(
        counting=Counting(special=rows.special, prompt=rows.prompt, expansion=None),
        head=_head(tower, readout.projections[0], folder, place),
        activation=cast(Activation, said),
        mode=cast(Literal["max", "sum"], mode),
        keep=readout.max_active_dims,
        empty=cast(Literal["reject", "zero"], readout.empty),
    )


def _refuse_more(readout: Readout) -> None:
    """Steps that no sparse vector goes through."""
    norm = readout.normalisation
    for field, found, usual in (
        ("denominator", readout.denominator, "none"),
        ("weights", readout.weights, "none"),
        ("normalisation", f"{norm.kind}, {norm.stage}, {norm.epsilon}", "none, none, None"),
        ("truncate_dim", str(readout.truncate_dim), "None"),
        ("renormalised", str(readout.renormalised), "None"),
    ):
        if found != usual:
            raise refused(f"readout.{field}", found, f"{usual}, as a sparse vector has it")


def _head(tower: Tower, said: Projection, folder: Path, place: PurePosixPath) -> tuple[Dense | LayerNorm, ...]:
    known = HEADS.get(tower.artifact.model_type)
    if known is None:
        raise refused("artifact.model_type", tower.artifact.model_type, f"one of {', '.join(HEADS)}")
    if said.residual:
        raise refused("readout.projections[0].residual", "true", "false, as no language model has one")
    named = _tensors(said, folder, place)
    config = json.loads((folder / place / "config.json").read_text(encoding="utf-8"))
    dense, norm = _first(named, f"{known.dense}.weight"), _first(named, f"{known.norm}.weight", f"{known.norm}.gamma")
    decoder = _first(named, f"{known.decoder}.weight", *(name for name in named if name.endswith(EMBEDDINGS)))
    bias = _first(named, *known.bias)
    if dense is None or norm is None or decoder is None or (said.bias and bias is None):
        raise refused("readout.projections[0]", "a part of it is in no file", "a dense map, a norm, a map and its bias")
    shapes = (dense.shape, norm.shape, decoder.shape)
    inner = len(dense)
    if shapes != ((inner, said.width_in), (inner,), (said.width_out, inner)):
        raise refused("readout.projections[0]", f"from {said.width_in} to {said.width_out}", f"weights {shapes}")
    activation = str(_configured(config, known.activation))
    return (
        Dense(dense, _first(named, f"{known.dense}.bias"), NAMES.get(activation, activation)),
        LayerNorm(
            norm, _first(named, f"{known.norm}.bias", f"{known.norm}.beta"),
            float(str(_configured(config, known.epsilon))),
        ),
        Dense(decoder, bias if said.bias else None, "identity"),
    )  # fmt: skip


def _first(named: Tensors, *names: str) -> NDArray[np.float64] | None:
    return next((named[name] for name in names if name in named), None)


def _configured(config: Mapping[str, Json], at: Configured) -> Json:
    return at.usual if at.key is None else config.get(at.key, at.usual)


def _tensors(said: Projection, folder: Path, place: PurePosixPath) -> Tensors:
    """Of the map to the vocabulary, and of the embeddings. Raises NotAdmitted where they are not the manifest's."""
    model = read_folder(folder)
    if said.weights is None or split(model, place, GROUPS).head.value != said.weights:
        expected = f"tensors with the digest {said.weights}"
        raise refused("readout.projections[0].weights", "other weights, or none", expected)
    return tensors_in(model, place, lambda name: name.endswith(EMBEDDINGS) or any(is_of(each, name) for each in GROUPS))
