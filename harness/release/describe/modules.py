"""The modules of a Sentence Transformers folder, old names and new, and the two pipelines that a Router holds."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, TypeAlias

from harness.errors import NotAdmitted
from harness.identity import Json
from harness.release.describe.split import split
from harness.release.describe.told import LIBRARY, Told, Tree
from harness.release.folder import ModelFolder, damaged, incomplete, read_json

Towers: TypeAlias = Mapping[Literal["both", "query", "document"], tuple["Module", ...]]

TRUSTED = "sentence_transformers."
# The library reads these as its own.
OTHERS = {"pylate.models.Dense.Dense": "Dense"}
# One class under two names.
SAME = {"Asym": "Router"}
# They have nothing to load, and old folders leave their place out.
WITHOUT_FOLDER = ("Normalize", "Dropout")
WITH_WEIGHTS = ("Transformer", "MLMTransformer", "Dense", "LayerNorm")
KNOWN = (
    "Transformer", "MLMTransformer", "Router", "Pooling", "Dense", "LayerNorm", "Dropout", "Normalize",
    "SpladePooling", "MultiVectorMask",
)  # fmt: skip
# Only classes with one meaning under one name, made without arguments; another path is code that would have to be run.
ACTIVATIONS: Mapping[str, str] = {
    f"torch.nn.{prefix}{name}": plain
    for name, plain, module in (
        ("Identity", "identity", "linear"), ("Tanh", "tanh", "activation"), ("ReLU", "relu", "activation"),
        ("GELU", "gelu", "activation"), ("Sigmoid", "sigmoid", "activation"), ("SiLU", "silu", "activation"),
        ("Softmax", "softmax", "activation"), ("Softplus", "softplus", "activation"), ("ELU", "elu", "activation"),
        ("LeakyReLU", "leaky-relu", "activation"), ("Mish", "mish", "activation"),
    )
    for prefix in ("", f"modules.{module}.", "modules.")
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Module:
    """One step: its class, where its files are in the model folder, and its configuration with that file's path."""

    kind: str
    place: PurePosixPath
    config: Mapping[str, Json]
    file: str


def read_towers(folder: ModelFolder) -> Towers:
    """The steps of each side, in order; under `both` where one pipeline serves the two.

    Raises NotAdmitted for a modules.json that is absent or broken, a module that isn't the library's or isn't
    supported, a configuration that isn't there, or a Router that isn't made for queries and documents.
    """
    path = folder.path / "modules.json"
    if not path.is_file():
        raise NotAdmitted(
            str(path), found="no such file", expected="the modules of a Sentence Transformers folder",
            mend="Without it the pooling would be guessed. Save the model once with SentenceTransformer(…).save(…).",
        )  # fmt: skip
    entries = read_json(path)
    if not isinstance(entries, list) or not entries or not all(isinstance(entry, dict) for entry in entries):
        raise damaged(path, "no list of modules", 'a list of {"path": …, "type": …}')
    modules = tuple(_module(folder, path.name, entry.get("type"), entry.get("path")) for entry in entries)
    if modules[0].kind != "Router":
        return {"both": modules}
    routes = _routes(folder, modules[0])
    return {side: (*steps, *modules[1:]) for side, steps in routes.items()}


def activation(subject: str, path: Json) -> str:
    """The short name of an activation. Raises NotAdmitted for a dotted path that names no known one."""
    if isinstance(path, str) and path in ACTIVATIONS:
        return ACTIVATIONS[path]
    raise NotAdmitted(
        subject, found=f"the activation {path!r}, a path to code",
        expected=f"a name that is known: {', '.join(sorted(name for name in ACTIVATIONS if '.modules.' not in name))}",
        mend="Code that a configuration names is never run; save the model with one of these.",
    )  # fmt: skip


def projection(folder: ModelFolder, module: Module) -> Tree:
    """A Dense or LayerNorm module. Raises NotAdmitted for settings that it cannot have."""
    at = f"{module.file}#/"
    weights = split(folder, module.place).backbone
    if module.kind == "LayerNorm":
        width = Told(_width(folder, module, "dimension"), f"{at}dimension")
        fixed: Tree = Told(True, LIBRARY)
        return {
            "kind": Told("layer-norm", "modules.json#"), "width_in": width, "width_out": width, "bias": fixed,
            "activation": Told("identity", LIBRARY), "residual": Told(False, LIBRARY), "weights": weights,
        }  # fmt: skip
    path = module.config.get("activation_function")
    return {
        "kind": Told("dense", "modules.json#"),
        "width_in": Told(_width(folder, module, "in_features"), f"{at}in_features"),
        "width_out": Told(_width(folder, module, "out_features"), f"{at}out_features"),
        "bias": setting(module, "bias", True),
        "activation": Told("tanh", LIBRARY)
        if path is None
        else Told(activation(str(folder.path / module.file), path), f"{at}activation_function"),
        "residual": setting(module, "use_residual", False),
        "weights": weights,
    }


def setting(module: Module, key: str, usual: Json) -> Told:
    """A key of a module's configuration; the library's own value where the file leaves it out."""
    said = module.config.get(key)
    return Told(usual, LIBRARY) if said is None else Told(said, f"{module.file}#/{key}")


def unsupported(subject: str, found: str, expected: str = "a setting that this version supports") -> NotAdmitted:
    """The refusal of a setting that no reference is written for."""
    return NotAdmitted(subject, found=found, expected=expected, mend="Record the model's outputs instead.")


def _module(folder: ModelFolder, listed_in: str, kind: Json, place: Json) -> Module:
    file = folder.path / listed_in
    if not isinstance(kind, str) or not isinstance(place, str):
        raise damaged(file, f"the module {kind!r} at {place!r}", "`path` and `type`, both text")
    if not kind.startswith(TRUSTED) and kind not in OTHERS:
        raise NotAdmitted(
            str(file), found=f"the module {kind}, which asks for remote code", expected=f"modules of {TRUSTED[:-1]}",
            mend="Code that comes with a model is never run. Use a model whose modules the library has.",
        )  # fmt: skip
    short = OTHERS.get(kind, kind.rpartition(".")[2])
    short = SAME.get(short, short)
    if short not in KNOWN:
        raise unsupported(str(file), f"the module {kind}", f"one of {', '.join(KNOWN)}")
    inside = PurePosixPath(place)
    if inside.is_absolute() or ".." in inside.parts:
        raise damaged(file, f"the path {place!r}", "a path inside the model folder")
    return _configured(folder, short, inside)


def _configured(folder: ModelFolder, kind: str, place: PurePosixPath) -> Module:
    # A broken upload has the configuration itself where the module's folder should be.
    names = [place] if (folder.path / place).is_file() else [place / "config.json"]
    if kind == "Router":
        names = [place / "router_config.json", place / "config.json"]
    for name in names:
        if (config := folder.json(name)) is not None:
            return Module(kind, place, config, str(name))
    if kind in WITHOUT_FOLDER:
        return Module(kind, place, {}, str(names[-1]))
    raise incomplete(folder.path / names[-1], f"the configuration of {kind}")


def _routes(folder: ModelFolder, router: Module) -> Mapping[Literal["query", "document"], tuple[Module, ...]]:
    types, structure = router.config.get("types"), router.config.get("structure")
    parameters = router.config.get("parameters")
    if not isinstance(types, dict) or not isinstance(structure, dict):
        raise damaged(folder.path / router.file, "no `types` and `structure`", "the routes of a Router")
    if isinstance(parameters, dict) and parameters.get("route_mappings"):
        raise unsupported(str(folder.path / router.file), "`route_mappings`", "routes by side alone")
    if set(structure) != {"query", "document"}:
        raise unsupported(
            str(folder.path / router.file),
            f"the routes {', '.join(sorted(structure))}",
            "the routes query and document",
        )
    modules = {
        name: _module(folder, router.file, kind, str(router.place / name)) for name, kind in sorted(types.items())
    }
    routes: dict[Literal["query", "document"], tuple[Module, ...]] = {}
    for side in ("query", "document"):
        steps = structure[side]
        if not isinstance(steps, list) or not steps or not all(step in modules for step in steps):
            raise damaged(folder.path / router.file, f"the steps {steps!r} of {side}", "names that `types` has")
        routes["query" if side == "query" else "document"] = tuple(modules[step] for step in steps)
    return routes


def _width(folder: ModelFolder, module: Module, key: str) -> int:
    value = module.config.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise damaged(folder.path / module.file, f"{key} {value!r}", "a width above 0")
    return value
