"""Late interaction: a vector for each row that counts. Sentence Transformers' own layout, PyLate's, Stanford's; and a
bi-encoder's own rows, under what release.toml declares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.identity import Json
from harness.release.definition import ReleaseDefinition, SidePrompts
from harness.release.describe.backbone import Backbone, Limit, artifact, input_of, read_backbone, rows, state
from harness.release.describe.modules import Module, projection, read_towers, unsupported
from harness.release.describe.own_rows import PUNCTUATION, skipped
from harness.release.describe.pooled import (
    interaction,
    normalisation,
    output,
    plain_vector,
    ranked,
    refuse_settings,
)  # fmt: skip
from harness.release.describe.prompts import SETTINGS, saved_prompts, side_prompts, suite_prompts
from harness.release.describe.split import Split, all_tensors, split
from harness.release.describe.told import DERIVED, LIBRARY, Told, Tree, declared
from harness.release.folder import ModelFolder, incomplete

STANFORD = "artifact.metadata"
# What ColBERT fills a query up to, where a checkpoint of its does not say.
USUAL_LENGTH = 32
SCHEMA = "float32 [row, width] of the rows that count, in their order"
Side: TypeAlias = Literal["query", "document"]
KNOBS = ("query_length", "document_length", "query_expansion")
SIDES: tuple[Side, ...] = ("query", "document")
# Any of these in config_sentence_transformers.json says that PyLate saved it.
PYLATES = (
    *KNOBS, "do_query_expansion", "attend_to_expansion_tokens", "attend_to_mask_tokens", "query_prefix",
    "document_prefix", "skiplist_words",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Policy:
    """How the sides of a late interaction are read. `expansion` is None where queries are not filled up."""

    lengths: Mapping[Side, Limit]
    expansion: Mapping[str, Json] | None
    expansion_source: str
    skipped: Mapping[str, Told]
    markers: Mapping[str, Told]


@dataclass(frozen=True, slots=True)
class _Expansion:
    config: Mapping[str, Json] | None
    source: str


def late(definition: ReleaseDefinition, folder: ModelFolder) -> Tree:
    """The meaning of a late interaction model.

    Raises NotAdmitted for modules or settings that are not supported, or a projection that isn't there, Misconfigured
    for a bi-encoder without a [late], or a [late] where the folder says it.
    """
    stanford = not (folder.path / "modules.json").is_file()
    modules: tuple[Module, ...] = () if stanford else read_towers(folder).get("both", ())
    backbone = read_backbone(definition, folder, modules[0].place if modules else "")
    settings = folder.json(SETTINGS) or {}
    own = skipped(definition, backbone, modules)
    refuse_settings(backbone, "feature-extraction", KNOBS if own is None else ())
    maps: tuple[Tree, ...] = ()
    if own is not None:
        policy = Policy({}, None, LIBRARY, own, side_prompts(SidePrompts(), settings, SIDES))
        weights = split(folder, backbone.place)
    elif stanford:
        policy, weights = _stanford_policy(backbone), _stanford_weights(backbone)
        maps = (_stanford_map(backbone),)
    else:
        _admit_modules(folder, modules, settings)
        policy = _policy(backbone, settings, modules)
        weights = split(folder, backbone.place)
        maps = tuple(projection(folder, each) for each in modules if each.kind == "Dense")
    last = maps[-1] if maps else {"width_out": backbone.width}
    width = last["width_out"] if isinstance(last, Mapping) else last
    mean = settings.get("similarity_fn_name") == "meanmaxsim"
    return {
        "interaction": interaction(
            "late", tied=Told(True, DERIVED), maxsim_ties=Told("first", LIBRARY), token_schema=Told(SCHEMA, LIBRARY),
            maxsim=Told("mean", f"{SETTINGS}#/similarity_fn_name") if mean else Told("sum", LIBRARY),
        ),
        "towers": {side: _tower(backbone, policy, weights, maps, side) for side in SIDES},
        "output": output("rows", width if isinstance(width, Told) else Told(None, DERIVED)),
        "score": {
            **ranked(definition), "type": Told("maxsim", LIBRARY), "low": Told(None, DERIVED),
            "high": Told(None, DERIVED),
        },
        "recording": Told(None, DERIVED),
    }  # fmt: skip


def _tower(backbone: Backbone, policy: Policy, weights: Split, maps: Sequence[Tree], side: Side) -> Tree:
    filled = policy.expansion if side == "query" else None
    length = _expanded(policy) if filled else None
    fixed = filled is not None and filled.get("strategy") == "fixed"
    cap = policy.lengths.get(side)
    if length and cap and cap.tokens < length.tokens:
        cap = length
    marker, said = policy.markers[side], backbone.definition.prompts.of(side)
    suites = suite_prompts(backbone.definition, {"prompts": {side: marker.value}}, (side,))
    return {
        "artifact": artifact(backbone, weights.backbone),
        "input": input_of(
            backbone, prompts={side: declared(said, marker.value, marker.source)}, suite_prompts=suites, own=cap,
            exactly=length if fixed else None, filled=length is not None,
        ),
        "rows": rows(
            backbone,
            {
                "skipped": {side: policy.skipped[side]} if side in policy.skipped else Told({}, LIBRARY),
                **_expansion(backbone, policy, length),
            },
        ),
        "state": state(backbone),
        "readout": {
            "family": Told("rows", DERIVED),
            "modes": Told([], DERIVED),
            "denominator": Told("none", LIBRARY),
            "weights": Told("none", LIBRARY),
            "projections": tuple(maps) or Told([], DERIVED),
            "normalisation": normalisation(Told("l2", LIBRARY), "per-row"),
            "truncate_dim": Told(None, LIBRARY),
            "renormalised": Told(None, LIBRARY),
            "empty": Told("reject", LIBRARY),
            **plain_vector(),
        },
    }  # fmt: skip


def _expanded(policy: Policy) -> Limit | None:
    length = None if policy.expansion is None else policy.expansion.get("length")
    return Limit(length, policy.expansion_source) if isinstance(length, int) else None


def _expansion(backbone: Backbone, policy: Policy, length: Limit | None) -> Mapping[str, Tree]:
    if length is None or policy.expansion is None:
        return {}
    token = policy.expansion.get("token")
    stated = backbone.tokenizer.stated
    usual = Told(stated.get("mask_token") or stated.get("eos_token"), LIBRARY)
    return {
        "expansion": {"query": Told(length.tokens, policy.expansion_source)},
        "expansion_counts": Told(True, LIBRARY),
        "expansion_strategy": Told(policy.expansion.get("strategy"), policy.expansion_source),
        "expansion_token": Told(token, policy.expansion_source) if token else usual,
        "expansion_attended": Told(policy.expansion.get("attend") is True, policy.expansion_source),
    }


def _admit_modules(folder: ModelFolder, modules: tuple[Module, ...], settings: Mapping[str, Json]) -> None:
    kinds = [module.kind for module in modules]
    # To a folder that doesn't say that it is its own, the library adds what is missing: a map of random numbers, too.
    own = settings.get("model_type") == "MultiVectorEncoder"
    lacking = {"MultiVectorMask", "Normalize"} if own else {"Dense"}
    if (
        kinds[:1] != ["Transformer"]
        or not set(kinds[1:]) <= {"Dense", "MultiVectorMask", "Normalize"}
        or not lacking <= set(kinds)
    ):
        raise unsupported(
            str(folder.path / "modules.json"), f"the modules {', '.join(kinds)}",
            "a Transformer, a Dense for each row, then MultiVectorMask and Normalize",
        )  # fmt: skip
    for module in modules[1:]:
        name = module.config.get("module_input_name", "token_embeddings" if module.kind == "Dense" else None)
        if module.kind == "Normalize" and name is None:
            name = "sentence_embedding"
        if name not in (None, "token_embeddings"):
            raise unsupported(str(folder.path / module.file), f"module_input_name {name!r}", "token_embeddings")
        if str(module.config.get("activation_function")).endswith(".Softmax"):
            # Without a dimension it is taken over the texts of a batch.
            raise unsupported(str(folder.path / module.file), "a softmax of rows", "an activation of each number")
        if module.config.get("keep_only_token_ids"):
            raise unsupported(str(folder.path / module.file), "`keep_only_token_ids`")
    if "MultiVectorMask" in kinds and "Normalize" not in kinds:
        raise unsupported(str(folder.path / "modules.json"), "no Normalize of rows", "rows of unit length")


def _policy(backbone: Backbone, settings: Mapping[str, Json], modules: tuple[Module, ...]) -> Policy:
    """Sentence Transformers' own layout, and PyLate's, whose settings are in config_sentence_transformers.json."""
    mask = next((module for module in modules if module.kind == "MultiVectorMask"), None)
    pylates = any(key in settings for key in PYLATES)
    holder, file = (settings, SETTINGS) if pylates else (backbone.settings, backbone.settings_file)
    said_expansion = _said_expansion(holder, file, pylates)
    expansion, source = said_expansion.config, said_expansion.source
    lengths = {
        side: Limit(tokens, f"{file}#/{side}_length")
        for side in SIDES
        if isinstance(tokens := holder.get(f"{side}_length"), int)
    }
    markers: Mapping[str, Told] = {side: _marker(settings, side) for side in SIDES}
    if mask is None:
        said = settings.get("skiplist_words")
        usual: list[Json] = PUNCTUATION if settings.get("model_type") == "ColBERT" or _prefixed(settings) else []
        words = Told(usual, LIBRARY) if said is None else Told(said, f"{SETTINGS}#/skiplist_words")
        return Policy(lengths, expansion, source, _known({"document": words}, backbone), markers)
    tasks = mask.config.get("skiplist_tasks") or ["document"]
    named = [tasks] if isinstance(tasks, str) else list(tasks) if isinstance(tasks, list) else []
    words = Told(mask.config.get("skiplist_words") or [], f"{mask.file}#/skiplist_words")
    return Policy(lengths, expansion, source, _known({str(task): words for task in named}, backbone), markers)


def _said_expansion(holder: Mapping[str, Json], file: str, pylates: bool) -> _Expansion:
    said = holder.get("query_expansion")
    if isinstance(said, Mapping):
        return _Expansion(said, f"{file}#/query_expansion")
    if not pylates or "query_expansion" in holder or holder.get("do_query_expansion") is False:
        return _Expansion(None, LIBRARY)
    attend = holder.get("attend_to_expansion_tokens", holder.get("attend_to_mask_tokens"))
    length = holder.get("query_length")
    whole: dict[str, Json] = {"strategy": "fixed", "attend": bool(attend), "length": length or USUAL_LENGTH}
    return _Expansion(whole, f"{file}#/query_length" if length else LIBRARY)


def _marker(settings: Mapping[str, Json], side: Side) -> Told:
    """The prompt of a side, PyLate's prefix before it."""
    prompt, prefix = saved_prompts(settings).get(side, ""), settings.get(f"{side}_prefix")
    if isinstance(prefix, str):
        return Told(prefix + prompt.removeprefix(prefix), f"{SETTINGS}#/{side}_prefix")
    return Told(prompt, f"{SETTINGS}#/prompts/{side}" if side in saved_prompts(settings) else LIBRARY)


def _prefixed(settings: Mapping[str, Json]) -> bool:
    return any(f"{side}_prefix" in settings for side in SIDES)


def _known(skipped: Mapping[str, Told], backbone: Backbone) -> Mapping[str, Told]:
    """Only words that are one token of the vocabulary can be skipped; the library drops all others."""
    tokenizer = backbone.tokenizer
    found = {}
    for side, words in skipped.items():
        every = [word for word in words.value if isinstance(word, str)] if isinstance(words.value, list) else []
        kept: list[Json] = [word for word in every if not tokenizer.whole or word in tokenizer.ids]
        if kept:
            found[side] = Told(kept, words.source)
    return found


def _stanford_policy(backbone: Backbone) -> Policy:
    """From artifact.metadata, as the library reads it."""
    said = backbone.folder.json(STANFORD) or {}
    subject = str(backbone.folder.path / STANFORD)
    if said.get("similarity", "cosine") != "cosine" or said.get("interaction", "colbert") != "colbert":
        raise unsupported(
            subject, f"similarity {said.get('similarity')!r}, interaction {said.get('interaction')!r}",
            "cosine and colbert",
        )  # fmt: skip
    at = f"{STANFORD}#/"
    keys: Mapping[Side, tuple[str, str]] = {
        "query": ("query_token_id", "[unused0]"),
        "document": ("doc_token_id", "[unused1]"),
    }
    markers: Mapping[str, Told] = {
        side: Told(f"{said.get(key) or usual} ", f"{at}{key}" if said.get(key) else LIBRARY)
        for side, (key, usual) in keys.items()
    }
    longest, width = said.get("doc_maxlen"), said.get("query_maxlen")
    expansion: dict[str, Json] = {
        "strategy": "fixed", "attend": bool(said.get("attend_to_mask_tokens")), "length": width or USUAL_LENGTH
    }  # fmt: skip
    punctuation = Told(
        PUNCTUATION if said.get("mask_punctuation", True) else [],
        f"{at}mask_punctuation" if "mask_punctuation" in said else LIBRARY,
    )
    return Policy(
        {"document": Limit(longest, f"{at}doc_maxlen")} if isinstance(longest, int) else {}, expansion,
        f"{at}query_maxlen" if width else LIBRARY, _known({"document": punctuation}, backbone), markers,
    )  # fmt: skip


def _stanford_weights(backbone: Backbone) -> Split:
    """The projection stands among the encoder's tensors, as `linear.weight`."""
    return split(backbone.folder, backbone.place, ("linear",))


def _stanford_map(backbone: Backbone) -> Tree:
    folder, file = backbone.folder, STANFORD
    tensor = all_tensors(folder, backbone.place).get("linear.weight")
    said = (folder.json(file) or {}).get("dim")
    if tensor is not None and len(tensor.shape) == 2:
        width, source = tensor.shape[0], DERIVED
    elif isinstance(said, int):
        width, source = said, f"{file}#/dim"
    else:
        found = f"neither `linear.weight` nor `dim` in {file}"
        raise incomplete(folder.path, "the projection of the rows", found)
    return {
        "kind": Told("dense", LIBRARY),
        "width_in": backbone.width if tensor is None else Told(tensor.shape[-1], DERIVED),
        "width_out": Told(width, source),
        "bias": Told(False, LIBRARY),
        "activation": Told("identity", LIBRARY),
        "residual": Told(False, LIBRARY),
        "weights": _stanford_weights(backbone).head,
    }
