"""The transformer of a model folder: its artifact, how texts reach it, its rows and its state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from harness.errors import Misconfigured
from harness.identity import Json, digest
from harness.release.definition import ReleaseDefinition, Window
from harness.release.describe.architecture import LAYERS, WIDTHS, final_norm, first_position, known, unknown, visibility
from harness.release.describe.split import adapter
from harness.release.describe.told import DECLARED, DERIVED, LIBRARY, Told, Tree
from harness.release.describe.vocabulary import Tokenizer, lower_cased, read_tokenizer
from harness.release.folder import ModelFolder, damaged, incomplete

USUAL_OWNER = "largest-context"
# Of two texts the one that is long: a document or context behind its query, or the context before each choice.
WINDOWED: Mapping[str, str] = {"pair": "second", "choices": "first"}
SETTINGS = tuple(
    f"sentence_{name}_config.json"
    for name in ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
)
SAID_ELSEWHERE = (
    "id2label", "label2id", "num_labels", "problem_type", "sentence_transformers",
    "sbert_ce_default_activation_function", "architectures",
)  # fmt: skip
# What no output depends on, name by name: dropout is off, nothing is drawn anew, weights are read as float32. A key
# that isn't here counts, for who knows: `token_dropout` of an ESM scales what it reads, with dropout off too.
WITHOUT_EFFECT = (
    "_name_or_path", "name_or_path", "transformers_version", "torch_dtype", "dtype", "task_specific_params",
    "use_cache", "output_past", "gradient_checkpointing", "finetuning_task",
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "classifier_dropout_prob",
    "hidden_dropout", "attention_dropout", "activation_dropout", "dropout", "dropout_rate", "pooler_dropout",
    "seq_classif_dropout", "qa_dropout", "embedding_dropout", "mlp_dropout", "resid_pdrop", "embd_pdrop", "attn_pdrop",
    "summary_first_dropout", "summary_last_dropout", "layerdrop", "encoder_layerdrop", "decoder_layerdrop",
    "initializer_range", "initializer_factor", "initializer_cutoff_factor", "init_std", "embed_init_std",
)  # fmt: skip
NOT_THE_BACKBONES = (*SAID_ELSEWHERE, *WITHOUT_EFFECT)
# Tokenizers without a limit say 1e30.
NO_LIMIT = 1_000_000
NO_WEIGHTS = Told(None, DERIVED)
LEFT_PADDED = ("XLNetTokenizer", "XLNetTokenizerFast")


@dataclass(frozen=True, slots=True)
class Limit:
    """A maximum length, special tokens included, and where it is stated. `fixed`: the model has no more positions."""

    tokens: int
    source: str
    fixed: bool = False


@dataclass(frozen=True, slots=True)
class Backbone:
    """A transformer's folder. `settings` are those of Sentence Transformers, from `settings_file`."""

    definition: ReleaseDefinition
    folder: ModelFolder
    place: PurePosixPath
    config: Mapping[str, Json]
    settings: Mapping[str, Json]
    settings_file: str
    tokenizer: Tokenizer

    def at(self, name: str) -> str:
        """The path of one of its files, as sources and digests name it."""
        return str(self.place / name)

    @property
    def config_file(self) -> Path:
        """Where its configuration is on this machine, for messages."""
        return self.folder.path / self.at("config.json")

    @property
    def width(self) -> Told:
        """Of the contextual rows. Raises Misconfigured for a configuration that doesn't say it."""
        return self._number(WIDTHS, "width")

    @property
    def layers(self) -> Told:
        architecture = known(self.config)
        if architecture is not None and architecture.layers and not any(key in self.config for key in LAYERS):
            return Told([architecture.layers], LIBRARY)
        last = self._number(LAYERS, "number of layers")
        return Told([last.value], last.source)

    def _number(self, keys: Sequence[str], what: str) -> Told:
        for key in keys:
            value = self.config.get(key)
            if isinstance(value, int) and value > 0:
                return Told(value, f"{self.at('config.json')}#/{key}")
        raise damaged(self.config_file, f"no {what}", f"one of {', '.join(keys)}")


def read_backbone(definition: ReleaseDefinition, folder: ModelFolder, place: PurePosixPath | str) -> Backbone:
    """Raises NotAdmitted where there is no configuration."""
    place = PurePosixPath(place)
    config = folder.json(place / "config.json")
    if config is None:
        raise incomplete(folder.path / place / "config.json", "the model's configuration")
    name = next((name for name in SETTINGS if (folder.path / place / name).is_file()), SETTINGS[0])
    return Backbone(
        definition, folder, place, config, folder.json(place / name) or {}, str(place / name),
        read_tokenizer(folder, place),
    )  # fmt: skip


def artifact(backbone: Backbone, weights: Told, head: Told = NO_WEIGHTS) -> Tree:
    """`weights` and `head`: digests of their tensors."""
    config, model = backbone.config, backbone.definition.model
    file = backbone.at("config.json")
    architectures = config.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    what_counts = {key: value for key, value in config.items() if key not in NOT_THE_BACKBONES}
    if not isinstance(config.get("model_type"), str):
        raise unknown(backbone.definition, config, "visibility", '"bidirectional" or "causal"')
    return {
        "architecture": Told(named, f"{file}#/architectures/0") if named else Told(config["model_type"], DERIVED),
        "model_type": Told(config["model_type"], f"{file}#/model_type"),
        "config": Told(digest(what_counts), f"{file}#"),
        "backbone": weights,
        "adapter": adapter(backbone.folder, backbone.place),
        "head": head,
        "quantised": Told(None if model is None else model.quantised, DECLARED),
        "visibility": visibility(backbone.definition, config, file),
        "revision": Told(None if model is None else model.revision, DECLARED),
        "task_revision": Told(None if model is None else model.task_revision, DECLARED),
    }


def input_of(
    backbone: Backbone,
    *,
    prompts: Tree,
    suite_prompts: Tree,
    template: Literal["single", "pair", "choices"] = "single",
    own: Limit | None = None,
    exactly: Limit | None = None,
    filled: bool = False,
) -> Tree:
    """From a text to token IDs. `own` and `exactly` as in `max_length`; what is `filled` up is never in windows."""
    tokenizer = backbone.tokenizer
    special = {role: Told(token_id, tokenizer.stated_in[role]) for role, token_id in tokenizer.special.items()}
    return {
        # By bare names: another layout of the same folder is the same release.
        "tokenizer": {PurePosixPath(file).name: Told(found, file) for file, found in tokenizer.files.items()}
        or Told({}, DERIVED),
        "normaliser": tokenizer.normaliser,
        "lower_case": _lower_case(backbone),
        "max_length": max_length(backbone, own, exactly),
        "truncation_side": _side(tokenizer, "truncation_side", "right"),
        "truncation": Told("longest_first", LIBRARY),
        "truncated_first": Told(None if template == "single" else "longest", LIBRARY),
        "padding_side": _side(tokenizer, "padding_side", "right"),
        "special_tokens": special or Told({}, DERIVED),
        "prompts": prompts,
        "suite_prompts": suite_prompts,
        "template": Told(template, DERIVED),
        "window": Told(None, DERIVED) if filled else _window(backbone.definition.input.window, template),
    }


def _window(said: Window | None, template: str) -> Tree:
    if said is None:
        return Told(None, DECLARED)
    found: dict[str, Tree] = {name: Told(value, DECLARED) for name, value in said.model_dump().items()}
    if said.aggregation == "rows" and said.owner is None:
        found["owner"] = Told(USUAL_OWNER, DERIVED)
    if said.text is None and template in WINDOWED:
        found["text"] = Told(WINDOWED[template], DERIVED)
    return found


def rows(backbone: Backbone, departing: Mapping[str, Tree] | None = None) -> Tree:
    """Which rows count; `departing` fields replace those of a text whose every row counts."""
    tokenizer = backbone.tokenizer
    plain: dict[str, Tree] = {
        "mask": Told("attention_mask", LIBRARY),
        "polarity": Told("1 counts", LIBRARY),
        "special": Told(True, LIBRARY),
        "prompt": Told(True, LIBRARY),
        "skipped": Told({}, LIBRARY),
        "expansion": Told({}, LIBRARY),
        **{f"expansion_{each}": Told(None, LIBRARY) for each in ("counts", "strategy", "token", "attended")},
        "segments": _segments(backbone),
        **{each: Told(tokenizer.fast, DERIVED) for each in ("sequences", "offsets", "words")},
    }
    return plain | dict(departing or {})


def state(backbone: Backbone) -> Tree:
    """The last layer's rows."""
    return {
        "layers": backbone.layers,
        "mixture": Told(None, LIBRARY),
        "scale": Told(None, LIBRARY),
        "final_norm": final_norm(backbone.definition, backbone.config),
        "axes": Told("batch, row, width", LIBRARY),
        "width": backbone.width,
    }


def max_length(backbone: Backbone, own: Limit | None = None, exactly: Limit | None = None) -> Told:
    """What the module states, else the tokenizer, and no more than the positions; or the declared one in their place.

    `own`: a side's, which stands in the place of module's and tokenizer's. `exactly`: the width of a side whose texts
    all have the same, whatever is stated or declared. A declared length may pass what module and tokenizer were saved
    with, and both values are on record; it may not pass the positions that the model has. Raises Misconfigured there,
    and where nothing states a length.
    """
    if exactly:
        return Told(exactly.tokens, exactly.source)
    definition, found = backbone.definition, _stated(backbone)
    if own:
        found = [*(limit for limit in found if limit.fixed), own]
    said = definition.input.max_length
    if not found:
        if said is None:
            raise Misconfigured(
                f"release {definition.name}", found="no maximum length in the model's files", expected="one",
                mend="Add `max_length` to [input] in release.toml.",
            )  # fmt: skip
        return Told(said, DECLARED)
    least = min(found, key=lambda limit: limit.tokens)
    if said is None or said == least.tokens:
        return Told(least.tokens, least.source)
    if short := next((limit for limit in found if limit.fixed and said > limit.tokens), None):
        raise Misconfigured(
            f"release {definition.name}", found=f"max_length {said}",
            expected=f"at most {short.tokens}, the positions that the model has ({short.source})",
            mend="Lower [input] max_length in release.toml.",
        )  # fmt: skip
    return Told(said, DECLARED, least.tokens)


def _stated(backbone: Backbone) -> list[Limit]:
    # T5 has `n_positions` too, and no use for it.
    positions = "n_positions" if backbone.config.get("model_type") == "gpt2" else "max_position_embeddings"
    places = (
        (backbone.settings, backbone.settings_file, "max_seq_length"),
        (backbone.tokenizer.config, backbone.tokenizer.config_file, "model_max_length"),
        (backbone.config, backbone.at("config.json"), positions),
    )
    found = []
    for config, file, key in places:
        tokens = config.get(key)
        if isinstance(tokens, bool) or not isinstance(tokens, int) or not 0 < tokens < NO_LIMIT:
            continue
        if config is backbone.config:
            tokens -= first_position(backbone.config)
        found.append(Limit(tokens, f"{file}#/{key}", fixed=config is backbone.config))
    # The library gives the tokenizer what its module says, in place of the tokenizer's own, also where it is more.
    return [limit for limit in found if limit.fixed or limit is found[0]]


def _lower_case(backbone: Backbone) -> Told:
    tokenizer = backbone.tokenizer
    if backbone.settings.get("do_lower_case") is True:
        return Told(True, f"{backbone.settings_file}#/do_lower_case")
    said = tokenizer.config.get("do_lower_case")
    if isinstance(said, bool):
        return Told(said, f"{tokenizer.config_file}#/do_lower_case")
    if tokenizer.normaliser.value is None:
        return Told(None, tokenizer.normaliser.source)
    return Told(lower_cased(tokenizer.normaliser.value), tokenizer.normaliser.source)


def _side(tokenizer: Tokenizer, key: str, usual: str) -> Told:
    if isinstance(said := tokenizer.config.get(key), str):
        return Told(said, f"{tokenizer.config_file}#/{key}")
    if key == "padding_side" and tokenizer.config.get("tokenizer_class") in LEFT_PADDED:
        return Told("left", LIBRARY)
    return Told(usual, LIBRARY)


def _segments(backbone: Backbone) -> Told:
    kinds = backbone.config.get("type_vocab_size")
    if isinstance(kinds, int):
        return Told(kinds > 1, f"{backbone.at('config.json')}#/type_vocab_size")
    architecture = known(backbone.config)
    return Told(architecture is not None and architecture.segments, LIBRARY)
