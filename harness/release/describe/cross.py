"""Cross-encoders: a pair of texts through one sequence classifier, and the activation on its logits."""

from collections.abc import Mapping

from harness.errors import Misconfigured
from harness.file.lines import shown
from harness.file.toml import nearest
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.backbone import Backbone, artifact, input_of, read_backbone, rows, state
from harness.release.describe.heads import groups, head_of, readout
from harness.release.describe.labels import Labels, labels_of
from harness.release.describe.modules import activation, read_towers, unsupported
from harness.release.describe.pooled import interaction, output, ranked, refuse_settings
from harness.release.describe.prompts import SETTINGS, saved_prompts
from harness.release.describe.split import split
from harness.release.describe.told import DECLARED, DERIVED, LIBRARY, Told, Tree
from harness.release.folder import ModelFolder

LEGACY = "sbert_ce_default_activation_function"
RANGES: Mapping[str, tuple[float, float | None]] = {
    "sigmoid": (0.0, 1.0), "softmax": (0.0, 1.0), "tanh": (-1.0, 1.0), "relu": (0.0, None), "softplus": (0.0, None),
    "elu": (-1.0, None),
}  # fmt: skip


def cross(definition: ReleaseDefinition, folder: ModelFolder) -> Tree:
    """The meaning of a cross-encoder.

    Raises NotAdmitted for a head or activation that isn't known, Misconfigured for a [score] label that it has not.
    """
    backbone = read_backbone(definition, folder, _place(folder))
    refuse_settings(backbone, "sequence-classification")
    settings = folder.json(SETTINGS) or {}
    head, labels = head_of(backbone, "sequence"), labels_of(backbone)
    weights = split(folder, backbone.place, groups(head))
    applied = _activation(backbone, settings, labels.count.value == 1)
    low, high = RANGES.get(str(applied.value), (None, None))
    one = labels.count.value == 1
    if one and definition.score.label is not None:
        raise Misconfigured(
            f"release {definition.name}, [score] label",
            found=f"{shown(definition.score.label)} of a head of one number",
            expected="no label: that number is the score", mend="Take `label` out of [score] in release.toml.",
        )  # fmt: skip
    return {
        "interaction": interaction("cross"),
        "towers": {
            "pair": {
                "artifact": artifact(backbone, weights.backbone, weights.head),
                "input": input_of(
                    backbone, prompts={"pair": _prompt(settings)}, suite_prompts=Told({}, DERIVED), template="pair"
                ),
                "rows": rows(backbone),
                "state": state(backbone),
                "readout": readout(backbone, "sequence", head, labels.count),
            }
        },
        "output": output("score", labels.count)
        if one
        else output(
            "classes", labels.count, labels=labels.names, generic_labels=labels.generic, decoder=Told("argmax", LIBRARY)
        ),
        "score": {
            **ranked(definition, "none"),
            "type": Told(_type(str(applied.value)), DERIVED),
            "low": Told(low, DERIVED),
            "high": Told(high, DERIVED),
            "sums_to": Told(1.0 if applied.value == "softmax" else None, DERIVED),
            "probability": Told(applied.value in ("sigmoid", "softmax"), DERIVED),
            "activation": applied,
            **({} if one else _several(definition, labels)),
        },
        "recording": Told(None, DERIVED),
    }  # fmt: skip


def _place(folder: ModelFolder) -> str:
    """Where the transformer is: the folder itself, or where its modules.json says."""
    if not (folder.path / "modules.json").is_file():
        return ""
    modules = read_towers(folder).get("both", ())
    if [module.kind for module in modules] != ["Transformer"]:
        raise unsupported(
            str(folder.path / "modules.json"), f"the modules {', '.join(module.kind for module in modules)}",
            "one Transformer with a sequence head",
        )  # fmt: skip
    return str(modules[0].place)


def _prompt(settings: Mapping[str, Json]) -> Told:
    """What the library puts before the first text of a pair."""
    name, known = settings.get("default_prompt_name"), saved_prompts(settings)
    if isinstance(name, str) and name in known:
        return Told(known[name], f"{SETTINGS}#/prompts/{name}")
    return Told("", LIBRARY)


def _activation(backbone: Backbone, settings: Mapping[str, Json], one: bool) -> Told:
    """From the first of the three places that say it, in the library's order; else the library's own."""
    own = backbone.config.get("sentence_transformers")
    file = backbone.at("config.json")
    places = (
        (settings.get("activation_fn"), f"{SETTINGS}#/activation_fn"),
        (
            own.get("activation_fn") if isinstance(own, Mapping) else None,
            f"{file}#/sentence_transformers/activation_fn",
        ),
        (backbone.config.get(LEGACY), f"{file}#/{LEGACY}"),
    )
    for path, source in places:
        if path is not None:
            return Told(activation(str(backbone.folder.path / source.partition("#")[0]), path), source)
    return Told("sigmoid" if one else "identity", LIBRARY)


def _several(definition: ReleaseDefinition, labels: Labels) -> Mapping[str, Tree]:
    """Of a head of several numbers, the one by which documents rank, where release.toml names its class."""
    said, names = definition.score.label, labels.names.value
    if said is None:
        return {"ties": Told("label-order", LIBRARY)}
    known = [str(each) for each in names] if isinstance(names, list) else []
    if said not in known:
        meant = nearest(said, known)
        raise Misconfigured(
            f"release {definition.name}, [score] label", found=shown(said), expected=f"one of {', '.join(known)}",
            mend=f"Did you mean {meant!r}?" if meant else "Name a class of the head.",
        )  # fmt: skip
    return {"label": Told(said, DECLARED), "ties": Told("expected", LIBRARY)}


def _type(applied: str) -> str:
    return {"identity": "logit", "sigmoid": "probability", "softmax": "probability"}.get(applied, "value")
