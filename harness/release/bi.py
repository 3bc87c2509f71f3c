"""What a bi-encoder means: every value that its vectors and scores depend on, with where the value comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Generic, Literal, TypeVar

from harness.errors import Misconfigured, NotAdmitted
from harness.identity import Json
from harness.release.definition import PoolingMode, ReleaseDefinition
from harness.release.first_form import ModelFolder, Module

Value = TypeVar("Value", int, str)

TRANSFORMER_CONFIGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
# The keys of older configurations, in the order in which the library concatenates several.
POOLING_KEYS: Mapping[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
# Their positions start behind the padding ID, so that many of the position embeddings are never reached.
OFFSET_POSITIONS = ("roberta", "xlm-roberta", "camembert", "mpnet", "longformer", "xlm-roberta-xl", "data2vec-text")
# Tokenizers without a limit say 1e30.
NO_LIMIT = 1_000_000
PROMPT_NAMES = {"query": ("query",), "document": ("document", "passage", "corpus")}
SCORE_TYPES: Mapping[str, Literal["cosine", "dot"]] = {"cosine": "cosine", "dot": "dot"}


@dataclass(frozen=True, slots=True)
class Settled(Generic[Value]):
    """A value, what the folder's own files say (None where nothing), and its source.

    The source is a file and JSON pointer, `default`, or `declared`: the last only where release.toml departs from
    the folder, so that repeating what the folder says changes no meaning.
    """

    value: Value
    folder: Value | None
    source: str

    def as_json(self) -> Mapping[str, Json]:
        return {"value": self.value, "folder": self.folder, "source": self.source}


@dataclass(frozen=True, slots=True)
class Prompts:
    """What is put before the text of a query and of a document."""

    query: str
    document: str

    def as_json(self) -> Mapping[str, Json]:
        return {"query": self.query, "document": self.document}


@dataclass(frozen=True, slots=True)
class BiMeaning:
    """`max_length` in tokens, special ones included. `pooling` is one mode, or several joined by `+`.

    `suites` holds the prompts on those suites where they differ. `truncate_dim` cuts vectors after all modules.
    `width` is that of the vectors; `normalised` says that they have unit length.
    """

    files: Mapping[str, str]
    max_length: Settled[int]
    query: Settled[str]
    document: Settled[str]
    suites: Mapping[str, Prompts]
    pooling: Settled[str]
    include_prompt: bool
    normalised: bool
    truncate_dim: int | None
    width: int
    similarity: Settled[str]

    @property
    def score_type(self) -> Literal["cosine", "dot"]:
        return SCORE_TYPES[self.similarity.value]

    def prompts_for(self, suite_name: str | None) -> Prompts:
        usual = Prompts(self.query.value, self.document.value)
        return self.suites.get(suite_name, usual) if suite_name is not None else usual

    def as_json(self) -> Mapping[str, Json]:
        return {
            "interaction": "bi",
            "files": dict(self.files),
            "input": {"max_length": self.max_length.as_json()},
            "prompts": {
                "query": self.query.as_json(),
                "document": self.document.as_json(),
                "suites": {name: prompts.as_json() for name, prompts in self.suites.items()},
            },
            "readout": {
                "pooling": self.pooling.as_json(),
                "include_prompt": self.include_prompt,
                "normalised": self.normalised,
                "truncate_dim": self.truncate_dim,
                "width": self.width,
            },
            "similarity": self.similarity.as_json(),
            "score_type": self.score_type,
        }


def bi_meaning(definition: ReleaseDefinition, folder: ModelFolder) -> BiMeaning:
    """Settles release.toml with the files of an admitted folder.

    Raises NotAdmitted for a similarity or setting that is not supported, or widths that don't fit.
    """
    transformer, pooling = folder.modules[:2]
    _refuse_settings(folder, transformer)
    settings = folder.json("config_sentence_transformers.json") or {}
    mode = _pooling(definition, folder, pooling)
    width, normalised = _projected(folder, _pooled_width(folder, mode))
    truncate_dim = settings.get("truncate_dim")
    if isinstance(truncate_dim, int) and truncate_dim < width:
        width, normalised = truncate_dim, False
    query, document = (_prompt(definition, settings, side) for side in ("query", "document"))
    return BiMeaning(
        files=folder.files,
        max_length=_max_length(definition, folder, transformer.place),
        query=query,
        document=document,
        suites=_suite_prompts(definition, Prompts(query.value, document.value)),
        pooling=mode,
        include_prompt=_config(folder, pooling).get("include_prompt") is not False,
        normalised=normalised,
        truncate_dim=truncate_dim if isinstance(truncate_dim, int) else None,
        width=width,
        similarity=_similarity(folder, settings),
    )


def _settle(declared: Value | None, folder: Value | None, pointer: str, default: Value) -> Settled[Value]:
    without = default if folder is None else folder
    if declared is not None and declared != without:
        return Settled(declared, folder, "declared")
    return Settled(without, folder, "default" if folder is None else pointer)


def _config(folder: ModelFolder, module: Module) -> Mapping[str, Json]:
    return folder.json(module.place / "config.json") or {}


def _max_length(definition: ReleaseDefinition, folder: ModelFolder, place: PurePosixPath) -> Settled[int]:
    """The smallest limit of all that are stated, the folder's before the declared one where they are equal."""
    pointers = [
        *((place / name, "max_seq_length") for name in TRANSFORMER_CONFIGS),
        (place / "tokenizer_config.json", "model_max_length"),
        (place / "config.json", "max_position_embeddings"),
    ]
    found: list[tuple[int, str]] = []
    for file, key in pointers:
        config = folder.json(file) or {}
        limit = config.get(key)
        if not isinstance(limit, int) or not 0 < limit < NO_LIMIT:
            continue
        padding = config.get("pad_token_id")
        if config.get("model_type") in OFFSET_POSITIONS and isinstance(padding, int):
            limit -= padding + 1
        found.append((limit, f"{file}#/{key}"))
    declared = definition.input.max_length
    if not found:
        if declared is None:
            raise Misconfigured(
                f"release {definition.name}", found="no maximum length in the model's files", expected="one",
                mend="Add `max_length` to [input] in release.toml.",
            )  # fmt: skip
        return Settled(declared, None, "declared")
    limit, pointer = min(found, key=lambda stated: stated[0])
    if declared is not None and declared < limit:
        return Settled(declared, limit, "declared")
    return Settled(limit, limit, pointer)


def _prompt(definition: ReleaseDefinition, settings: Mapping[str, Json], side: str) -> Settled[str]:
    prompts = settings.get("prompts")
    known = prompts if isinstance(prompts, dict) else {}
    names: Sequence[Json] = (*PROMPT_NAMES[side], settings.get("default_prompt_name"))
    name = next((name for name in names if isinstance(known.get(name), str)), None)
    folder = None if name is None else known[name]
    pointer = f"config_sentence_transformers.json#/prompts/{name}"
    return _settle(getattr(definition.prompts, side), folder, pointer, "")


def _suite_prompts(definition: ReleaseDefinition, usual: Prompts) -> Mapping[str, Prompts]:
    suites = {}
    for name in sorted(definition.prompts.suites):
        said = definition.prompts_for(name)
        prompts = Prompts(
            usual.query if said.query is None else said.query,
            usual.document if said.document is None else said.document,
        )
        if prompts != usual:
            suites[name] = prompts
    return suites


def _pooling(definition: ReleaseDefinition, folder: ModelFolder, module: Module) -> Settled[str]:
    config = _config(folder, module)
    said = config.get("pooling_mode")
    modes = [said] if isinstance(said, str) else list(said) if isinstance(said, list) else []
    if said is None:
        modes = [mode for key, mode in POOLING_KEYS.items() if config.get(key) is True] or ["mean"]
    file = module.place / "config.json"
    if not modes or not all(mode in POOLING_KEYS.values() for mode in modes):
        raise NotAdmitted(
            str(folder.path / file), found=f"the pooling mode {said!r}",
            expected=f"one or more of {', '.join(POOLING_KEYS.values())}", mend="Restore the file.",
        )  # fmt: skip
    pointer = f"{file}#" if said is None else f"{file}#/pooling_mode"
    return _settle(definition.override.readout.pooling, "+".join(str(mode) for mode in modes), pointer, "mean")


def _pooled_width(folder: ModelFolder, pooling: Settled[str]) -> int:
    transformer, module = folder.modules[:2]
    config, whole = _config(folder, module), _config(folder, transformer)
    width = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    hidden = next((whole[key] for key in ("hidden_size", "d_model", "dim", "n_embd") if key in whole), width)
    if not isinstance(width, int) or width != hidden:
        raise NotAdmitted(
            str(folder.path / module.place / "config.json"), found=f"the width {width!r}",
            expected=f"that of the model, {hidden}", mend="Restore the file: pooling and model don't belong together.",
        )  # fmt: skip
    return width * len(pooling.value.split("+"))


def _projected(folder: ModelFolder, width: int) -> tuple[int, bool]:
    """Width of the vectors after every module that follows the pooling, and whether they have unit length."""
    normalised = False
    for module in folder.modules[2:]:
        config = _config(folder, module)
        subject = str(folder.path / module.place / "config.json")
        for key in ("module_input_name", "module_output_name"):
            if config.get(key) not in (None, "sentence_embedding"):
                raise _unsupported(subject, f"{key} {config[key]!r}")
        activation = config.get("activation_function", "torch.")
        if not isinstance(activation, str) or not activation.startswith("torch."):
            raise _unsupported(subject, f"the activation function {activation!r}, which asks for remote code")
        expected = {"Dense": config.get("in_features"), "LayerNorm": config.get("dimension")}.get(module.kind, width)
        if expected != width:
            raise NotAdmitted(
                subject, found=f"{module.kind} of vectors with {expected} dimensions", expected=f"{width} dimensions",
                mend="Restore the file, or take the pooling override out of release.toml.",
            )  # fmt: skip
        if module.kind == "Dense":
            out = config.get("out_features")
            width = out if isinstance(out, int) else width
        if module.kind != "Dropout":
            normalised = module.kind == "Normalize"
    return width, normalised


def _similarity(folder: ModelFolder, settings: Mapping[str, Json]) -> Settled[str]:
    said = settings.get("similarity_fn_name")
    file = "config_sentence_transformers.json"
    if said is not None and said not in SCORE_TYPES:
        raise _unsupported(str(folder.path / file), f"similarity_fn_name {said!r}")
    return _settle(None, said if isinstance(said, str) else None, f"{file}#/similarity_fn_name", "cosine")


def _refuse_settings(folder: ModelFolder, transformer: Module) -> None:
    """Settings with which the library would render or read a text otherwise than by tokenizer and forward pass."""
    for name in TRANSFORMER_CONFIGS:
        config = folder.json(transformer.place / name) or {}
        subject = str(folder.path / transformer.place / name)
        for key in (
            "query_length",
            "document_length",
            "query_expansion",
            "processing_kwargs",
            "tokenizer_name_or_path",
        ):
            if config.get(key):
                raise _unsupported(subject, f"`{key}`")
        if config.get("transformer_task", "feature-extraction") != "feature-extraction":
            raise _unsupported(subject, f"transformer_task {config['transformer_task']!r}")
        modalities = config.get("modality_config")
        if isinstance(modalities, dict) and list(modalities) != ["text"]:
            raise _unsupported(subject, f"the modalities {', '.join(modalities)}")


def _unsupported(subject: str, found: str) -> NotAdmitted:
    return NotAdmitted(
        subject,
        found=found,
        expected="a setting that this version supports",
        mend="Record the model's outputs instead.",
    )
