"""Sentence Transformers of one vector a text: Transformer, Pooling, projections, normalisation, truncation."""

from collections.abc import Mapping, Sequence
from typing import Literal

from harness.errors import NotAdmitted
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.backbone import Backbone, artifact, input_of, read_backbone, rows, state
from harness.release.describe.modules import Module, Towers, projection, read_towers, setting, unsupported
from harness.release.describe.prompts import SETTINGS, SIDES, Sides, side_prompts, suite_prompts
from harness.release.describe.split import split
from harness.release.describe.told import DECLARED, DERIVED, LIBRARY, Told, Tree, declared
from harness.release.folder import ModelFolder

# The keys of older configurations, in the order in which the library concatenates several.
POOLING_KEYS: Mapping[str, str] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
DENOMINATORS = {
    "mean": "counted rows",
    "mean_sqrt_len_tokens": "square root of counted rows",
    "weightedmean": "sum of weights",
}
# What Pooling of 6.2 makes of a text without a counted row.
EMPTY = {"cls": "fallback-row", "max": "reject"}
EPSILON = 1e-12
TAIL = ("Dense", "LayerNorm", "Dropout", "Normalize")
NOT_SAID = ("tied", "depth", "maxsim", "maxsim_ties", "token_schema", "pool", "rank_constant", "absent")
RENDERED_OTHERWISE = (
    "query_length", "document_length", "query_expansion", "processing_kwargs", "tokenizer_name_or_path", "model_args",
    "config_args", "model_kwargs", "config_kwargs", "processor_kwargs", "tokenizer_args",
)  # fmt: skip
HARMLESS = ("trust_remote_code", "cache_dir", "token", "revision", "local_files_only")


def pooled(definition: ReleaseDefinition, folder: ModelFolder) -> Tree:
    """The meaning of a bi-encoder; of two where a Router has an encoder for each side.

    Raises NotAdmitted for modules, settings or a similarity that are not supported.
    """
    towers = read_towers(folder)
    settings = folder.json(SETTINGS) or {}
    trees: dict[str, Tree] = {
        name: _tower(definition, folder, modules, settings, SIDES[name]) for name, modules in towers.items()
    }
    last = _last_width(definition, folder, next(iter(towers.values())), settings)
    score, normalised = _similarity(definition, folder, settings), _unit(towers, settings)
    bounded = Told(True, DERIVED) if score.value == "cosine" or normalised else Told(None, DERIVED)
    return {
        "interaction": interaction("bi", tied=Told("both" in towers, "modules.json#")),
        "towers": trees,
        "output": output("vector", last),
        "score": {
            "type": score,
            "low": Told(-1.0 if bounded.value else None, DERIVED),
            "high": Told(1.0 if bounded.value else None, DERIVED),
            **ranked(definition),
        },
        "recording": Told(None, DERIVED),
    }


def interaction(kind: str, **fields: Tree) -> Mapping[str, Tree]:
    """An interaction's record, in which what isn't given does not apply."""
    empty: dict[str, Tree] = {
        "kind": Told(kind, DECLARED),
        "releases": Told({}, DERIVED),
        "weights": Told({}, DERIVED),
        "scales": Told({}, DERIVED),
        **{name: Told(None, DERIVED) for name in NOT_SAID},
    }
    return empty | fields


def output(kind: str, dimension: Told, **fields: Told) -> Mapping[str, Tree]:
    """An output's record, in which what isn't given does not apply."""
    empty: dict[str, Tree] = {
        "kind": Told(kind, DERIVED),
        "dimension": dimension,
        "generic_labels": Told(False, DERIVED),
        "decoder": Told("none", DERIVED),
        **{name: Told(None, DERIVED) for name in ("labels", "null", "pieces", "longest", "transitions", "regression")},
    }
    return empty | fields


def ranked(definition: ReleaseDefinition, index: Literal["flat", "none"] = "flat") -> Mapping[str, Tree]:
    """The fields of a score by which documents are ranked, all but its type and range."""
    return {
        "higher_is_better": Told(True, LIBRARY),
        "sums_to": Told(None, DERIVED),
        "probability": Told(False, DERIVED),
        "activation": Told("identity", LIBRARY),
        "label": Told(None, DERIVED),
        "temperature": Told(definition.score.temperature, DECLARED),
        "index": Told(index, LIBRARY),
        "threshold": Told(definition.score.threshold, DECLARED),
        "ties": Told("expected", LIBRARY),
    }


def normalisation(kind: Told, stage: str) -> Tree:
    """A readout's normalisation, with the library's own epsilon where there is one."""
    fixed: Tree = Told(EPSILON if kind.value == "l2" else None, LIBRARY)
    return {"kind": kind, "epsilon": fixed, "stage": Told(stage, kind.source)}


def refuse_settings(backbone: Backbone, task: str, allowed: Sequence[str] = ()) -> None:
    """Settings with which the library would render or read a text otherwise than by tokenizer and forward pass."""
    subject = str(backbone.folder.path / backbone.settings_file)
    for key in RENDERED_OTHERWISE:
        value = backbone.settings.get(key)
        if isinstance(value, dict) and key.endswith(("args", "kwargs")):
            value = {name: each for name, each in value.items() if name not in HARMLESS and each not in (None, {})}
        if value and key not in allowed:
            raise unsupported(subject, f"`{key}`")
    if backbone.settings.get("transformer_task", task) != task:
        raise unsupported(subject, f"transformer_task {backbone.settings['transformer_task']!r}")
    modalities = backbone.settings.get("modality_config")
    if isinstance(modalities, dict) and list(modalities) != ["text"]:
        raise unsupported(subject, f"the modalities {', '.join(modalities)}")


def _tower(
    definition: ReleaseDefinition,
    folder: ModelFolder,
    modules: tuple[Module, ...],
    settings: Mapping[str, Json],
    sides: Sides,
) -> Tree:
    kinds = [module.kind for module in modules]
    if kinds[:2] != ["Transformer", "Pooling"] or not set(kinds[2:]) <= set(TAIL):
        raise unsupported(
            str(folder.path / "modules.json"), f"the modules {', '.join(kinds)}",
            f"a Transformer, a Pooling, then any of {', '.join(TAIL)}",
        )  # fmt: skip
    backbone = read_backbone(definition, folder, modules[0].place)
    refuse_settings(backbone, "feature-extraction")
    return {
        "artifact": artifact(backbone, split(folder, backbone.place).backbone),
        "input": input_of(
            backbone, prompts=side_prompts(definition.prompts, settings, sides),
            suite_prompts=suite_prompts(definition, settings, sides),
        ),
        "rows": rows(backbone, {"prompt": setting(modules[1], "include_prompt", True)}),
        "state": state(backbone),
        "readout": _readout(definition, folder, modules, settings),
    }  # fmt: skip


def _readout(
    definition: ReleaseDefinition, folder: ModelFolder, modules: tuple[Module, ...], settings: Mapping[str, Json]
) -> Tree:
    modes = pooling_modes(definition, folder, modules[1])
    named = list(modes.value) if isinstance(modes.value, list) else []
    dimension = _truncation(settings)
    return {
        "family": Told("pooled", DERIVED),
        "modes": modes,
        "denominator": Told(next((DENOMINATORS[str(each)] for each in named if each in DENOMINATORS), "none"), LIBRARY),
        "weights": Told("content-relative" if "weightedmean" in named else "none", LIBRARY),
        "projections": tuple(projection(folder, each) for each in modules[2:] if each.kind in ("Dense", "LayerNorm"))
        or Told([], "modules.json#"),
        "normalisation": _normalisation(folder, modules),
        "truncate_dim": dimension,
        "renormalised": Told(None if dimension.value is None else False, LIBRARY),
        "empty": Told(EMPTY.get(str(named[0]), "zero"), LIBRARY),
        **plain_vector(),
    }


def plain_vector() -> Mapping[str, Tree]:
    """What no folder departs from."""
    return {
        "max_active_dims": Told(None, LIBRARY),
        "dropout": Told("off", LIBRARY),
        "stored": Told("float32", LIBRARY),
    }


def pooling_modes(definition: ReleaseDefinition, folder: ModelFolder, module: Module) -> Told:
    """The modes in the order in which they are joined. Raises NotAdmitted for one that doesn't exist."""
    said = module.config.get("pooling_mode")
    modes: list[Json] = [said] if isinstance(said, str) else list(said) if isinstance(said, list) else []
    keys = [key for key in POOLING_KEYS if module.config.get(key) is True]
    source = f"{module.file}#/pooling_mode" if said is not None else LIBRARY
    if not keys and any(config_key in module.config for config_key in ("pooling_mode", *POOLING_KEYS)) and said is None:
        # The library would take the mean, which the file denies, or not load it.
        raise NotAdmitted(
            str(folder.path / module.file), found="pooling modes of which none is used", expected="a mode, or no word",
            mend="Restore the file, or say `pooling_mode` in it.",
        )  # fmt: skip
    if said is None:
        modes = [POOLING_KEYS[key] for key in keys] or ["mean"]
        source = f"{module.file}#/{keys[0]}" if keys else LIBRARY
    if not modes or not all(mode in POOLING_KEYS.values() for mode in modes):
        raise NotAdmitted(
            str(folder.path / module.file), found=f"the pooling mode {said!r}",
            expected=f"one or more of {', '.join(POOLING_KEYS.values())}", mend="Restore the file.",
        )  # fmt: skip
    override = definition.override.readout.pooling
    return declared(None if override is None else [override], modes, source)


def _normalisation(folder: ModelFolder, modules: tuple[Module, ...]) -> Tree:
    """Its stage, by the projections before and after it. Raises NotAdmitted for one in between, or for two."""
    tail = [module for module in modules[2:] if module.kind != "Dropout"]
    for module in tail:
        for key in ("module_input_name", "module_output_name"):
            if module.config.get(key) not in (None, "sentence_embedding"):
                raise unsupported(str(folder.path / module.file), f"{key} {module.config[key]!r}")
    places = [place for place, module in enumerate(tail) if module.kind == "Normalize"]
    source = "modules.json#"
    if not places:
        return normalisation(Told("none", source), "none")
    if len(places) > 1 or places[0] not in (0, len(tail) - 1):
        raise unsupported(
            str(folder.path / "modules.json"), f"the modules {', '.join(module.kind for module in modules)}",
            "one Normalize, first or last after the Pooling",
        )  # fmt: skip
    return normalisation(Told("l2", source), "after-pooling" if places[0] == 0 else "after-projection")


def _truncation(settings: Mapping[str, Json]) -> Told:
    said = settings.get("truncate_dim")
    whole = isinstance(said, int) and not isinstance(said, bool)
    return Told(said if whole else None, f"{SETTINGS}#/truncate_dim" if whole else LIBRARY)


def _last_width(
    definition: ReleaseDefinition, folder: ModelFolder, modules: tuple[Module, ...], settings: Mapping[str, Json]
) -> Told:
    """Of the vectors after every module and the truncation."""
    modes = pooling_modes(definition, folder, modules[1]).value
    backbone = read_backbone(definition, folder, modules[0].place)
    width = int(str(backbone.width.value)) * (len(modes) if isinstance(modes, list) else 1)
    for module in modules[2:]:
        out = module.config.get("out_features" if module.kind == "Dense" else "dimension")
        if module.kind in ("Dense", "LayerNorm") and isinstance(out, int):
            width = out
    cut = _truncation(settings).value
    return Told(min(width, cut) if isinstance(cut, int) else width, DERIVED)


def _unit(towers: Towers, settings: Mapping[str, Json]) -> bool:
    """Whether every vector has unit length at the end."""
    ends = [[module.kind for module in modules if module.kind != "Dropout"][-1] for modules in towers.values()]
    return all(end == "Normalize" for end in ends) and _truncation(settings).value is None


def _similarity(definition: ReleaseDefinition, folder: ModelFolder, settings: Mapping[str, Json]) -> Told:
    said = settings.get("similarity_fn_name")
    if said not in (None, "cosine", "dot"):
        raise unsupported(str(folder.path / SETTINGS), f"similarity_fn_name {said!r}", "cosine or dot")
    source = LIBRARY if said is None else f"{SETTINGS}#/similarity_fn_name"
    return declared(definition.override.score.type, said or "cosine", source)
