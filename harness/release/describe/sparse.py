"""Sparse encoders: a masked language model's logits, made small and pooled into one weight for each token."""

from collections.abc import Mapping
from pathlib import PurePosixPath

from harness.errors import NotAdmitted
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.backbone import Backbone, artifact, input_of, read_backbone, rows, state
from harness.release.describe.modules import Module, Towers, read_towers, setting, unsupported
from harness.release.describe.pooled import (
    interaction,
    normalisation,
    output,
    plain_vector,
    ranked,
    refuse_settings,
)  # fmt: skip
from harness.release.describe.prompts import SETTINGS, SIDES, Sides, side_prompts, suite_prompts
from harness.release.describe.split import split
from harness.release.describe.told import DERIVED, LIBRARY, Told, Tree
from harness.release.folder import ModelFolder, damaged

# Where architectures keep the map from rows to the vocabulary.
GROUPS = ("cls", "lm_head", "head", "decoder", "vocab_transform", "vocab_layer_norm", "vocab_projector", "predictions",
          "generator_predictions", "generator_lm_head")  # fmt: skip
ACTIVATIONS = {"relu": "log1p-relu", "log1p_relu": "log1p-log1p-relu"}


def sparse(definition: ReleaseDefinition, folder: ModelFolder) -> Tree:
    """The meaning of a sparse encoder. Raises NotAdmitted for modules or settings that are not supported."""
    settings = folder.json(SETTINGS) or {}
    stated = (folder.path / "modules.json").is_file()
    if stated:
        towers: Towers = read_towers(folder)
    else:
        towers = {"both": _usual(folder)}
    said = settings.get("similarity_fn_name")
    if said not in (None, "dot", "cosine"):
        raise unsupported(str(folder.path / SETTINGS), f"similarity_fn_name {said!r}", "dot or cosine")
    first = read_backbone(definition, folder, next(iter(towers.values()))[0].place)
    bound = 1.0 if said == "cosine" else None
    return {
        "interaction": interaction("sparse", tied=Told("both" in towers, "modules.json#" if stated else LIBRARY)),
        "towers": {name: _tower(definition, folder, SIDES[name], each, settings) for name, each in towers.items()},
        "output": output("sparse-vector", _vocabulary(first)),
        "score": {
            **ranked(definition),
            "type": Told("dot", LIBRARY) if said is None else Told(said, f"{SETTINGS}#/similarity_fn_name"),
            "low": Told(0.0, DERIVED),
            "high": Told(bound, DERIVED),
        },
        "recording": Told(None, DERIVED),
    }


def _usual(folder: ModelFolder) -> tuple[Module, ...]:
    """What SparseEncoder makes of a plain masked language model; release.toml alone says that it is one."""
    config = folder.json("config.json") or {}
    named = config.get("architectures")
    if not isinstance(named, list) or not any(str(each).endswith("ForMaskedLM") for each in named):
        raise unsupported(str(folder.path / "config.json"), f"the architectures {named!r}", "a masked language model")
    here = PurePosixPath()
    return Module("Transformer", here, config, "config.json"), Module("SpladePooling", here, {}, "config.json")


def _tower(
    definition: ReleaseDefinition,
    folder: ModelFolder,
    sides: Sides,
    modules: tuple[Module, ...],
    settings: Mapping[str, Json],
) -> Tree:
    kinds = [module.kind for module in modules]
    if kinds not in (["Transformer", "SpladePooling"], ["MLMTransformer", "SpladePooling"]):
        raise unsupported(
            str(folder.path / "modules.json"), f"the modules {', '.join(kinds)}", "a Transformer and a SpladePooling"
        )
    backbone = read_backbone(definition, folder, modules[0].place)
    refuse_settings(backbone, "fill-mask")
    weights = split(folder, backbone.place, GROUPS)
    return {
        "artifact": artifact(backbone, weights.backbone),
        "input": input_of(
            backbone, prompts=side_prompts(definition.prompts, settings, sides),
            suite_prompts=suite_prompts(definition, settings, sides),
        ),
        "rows": rows(backbone),
        "state": state(backbone),
        "readout": _readout(backbone, modules[1], weights.head, settings),
    }  # fmt: skip


def _readout(backbone: Backbone, module: Module, weights: Told, settings: Mapping[str, Json]) -> Tree:
    mode, applied = setting(module, "pooling_strategy", "max"), setting(module, "activation_function", "relu")
    subject = str(backbone.folder.path / module.file)
    if mode.value not in ("max", "sum") or applied.value not in ACTIVATIONS:
        raise NotAdmitted(
            subject, found=f"pooling_strategy {mode.value!r}, activation_function {applied.value!r}",
            expected=f"max or sum, and {' or '.join(ACTIVATIONS)}", mend="Restore the file.",
        )  # fmt: skip
    kept = settings.get("max_active_dims")
    return {
        "family": Told("sparse", DERIVED),
        "modes": Told([mode.value], mode.source),
        "denominator": Told("none", LIBRARY),
        "weights": Told("none", LIBRARY),
        "projections": (
            {
                "kind": Told("mlm", LIBRARY),
                "width_in": backbone.width,
                "width_out": _vocabulary(backbone),
                "bias": Told(True, LIBRARY),
                "activation": Told(ACTIVATIONS[str(applied.value)], applied.source),
                "residual": Told(False, LIBRARY),
                "weights": weights,
            },
        ),
        "normalisation": normalisation(Told("none", LIBRARY), "none"),
        "truncate_dim": Told(None, LIBRARY),
        "renormalised": Told(None, LIBRARY),
        "empty": Told("zero", LIBRARY),
        **plain_vector(),
        "max_active_dims": Told(kept, LIBRARY if kept is None else f"{SETTINGS}#/max_active_dims"),
    }


def _vocabulary(backbone: Backbone) -> Told:
    size = backbone.config.get("vocab_size")
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise damaged(backbone.config_file, f"vocab_size {size!r}", "the number of tokens")
    return Told(size, f"{backbone.at('config.json')}#/vocab_size")
