"""The settings of a model folder, each of the type that it has. One of another type would be passed over unseen."""

from collections.abc import Callable, Iterator, Mapping

from harness.identity import Json
from harness.release.admit.check import Check, listed
from harness.release.describe.backbone import SETTINGS as OF_TRANSFORMER
from harness.release.describe.modules import Module
from harness.release.describe.prompts import SETTINGS
from harness.release.folder import RESTORE, ModelFolder

TEXT, WHOLE, SWITCH, TEXTS, SOME = (
    "text",
    "a whole number above 0",
    "true or false",
    "a list of texts",
    "text or a list of it",
)


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


IS: Mapping[str, Callable[[Json], bool]] = {
    TEXT: _is_text,
    WHOLE: lambda value: isinstance(value, int) and not isinstance(value, bool) and value > 0,
    SWITCH: lambda value: isinstance(value, bool),
    TEXTS: _are_texts,
    SOME: lambda value: _is_text(value) or _are_texts(value),
}
# Of config_sentence_transformers.json, PyLate's keys among them.
OF_FOLDER: Mapping[str, str] = {
    "default_prompt_name": TEXT, "similarity_fn_name": TEXT, "truncate_dim": WHOLE, "activation_fn": TEXT,
    "max_active_dims": WHOLE, "query_length": WHOLE, "document_length": WHOLE, "query_prefix": TEXT,
    "document_prefix": TEXT, "do_query_expansion": SWITCH, "skiplist_words": TEXTS,
}  # fmt: skip
OF_LENGTH: Mapping[str, str] = {
    "max_seq_length": WHOLE, "do_lower_case": SWITCH, "query_length": WHOLE, "document_length": WHOLE
}  # fmt: skip
OF_MODULE: Mapping[str, Mapping[str, str]] = {
    "Pooling": {
        "pooling_mode": SOME, "embedding_dimension": WHOLE, "word_embedding_dimension": WHOLE, "include_prompt": SWITCH,
        **{
            f"pooling_mode_{mode}": SWITCH
            for mode in (
                "cls_token", "max_tokens", "mean_tokens", "mean_sqrt_len_tokens", "weightedmean_tokens", "lasttoken",
            )
        },
    },
    "Dense": {
        "in_features": WHOLE, "out_features": WHOLE, "bias": SWITCH, "use_residual": SWITCH,
        "activation_function": TEXT, "module_input_name": TEXT, "module_output_name": TEXT,
    },
    "LayerNorm": {"dimension": WHOLE},
    "SpladePooling": {
        "pooling_strategy": TEXT, "activation_function": TEXT, "embedding_dimension": WHOLE,
        "word_embedding_dimension": WHOLE,
    },
    "MultiVectorMask": {"skiplist_words": TEXTS, "skiplist_tasks": SOME},
}  # fmt: skip


def setting_findings(folder: ModelFolder, modules: tuple[Module, ...]) -> tuple[Check, ...]:
    """Of the folder's own settings, its transformers' and its modules'. Null says as much as absent."""
    return (
        listed(
            "prompts-text", _prompts(folder), sound="holds", expected="a table of texts under `prompts`",
            mend=f"Correct {SETTINGS}: each prompt is a text, if an empty one.",
        ),
        listed("settings-types", _settings(folder, modules), sound="holds", expected="settings of their types",
               mend=RESTORE),
        listed("module-types", _modules(modules), sound="holds", expected="settings of their types", mend=RESTORE),
    )  # fmt: skip


def _prompts(folder: ModelFolder) -> Iterator[str]:
    prompts = folder.readable(SETTINGS).get("prompts")
    if prompts is None:
        return
    if not isinstance(prompts, Mapping):
        yield f"{SETTINGS}#/prompts is {prompts!r}"
        return
    yield from (f"{SETTINGS}#/prompts/{name} is {text!r}" for name, text in prompts.items() if not _is_text(text))


def _settings(folder: ModelFolder, modules: tuple[Module, ...]) -> Iterator[str]:
    yield from _others(folder.readable(SETTINGS), SETTINGS, OF_FOLDER)
    for module in modules:
        if module.kind in ("Transformer", "MLMTransformer"):
            for name in OF_TRANSFORMER:
                file = str(module.place / name)
                yield from _others(folder.readable(file), file, OF_LENGTH)


def _modules(modules: tuple[Module, ...]) -> Iterator[str]:
    for module in modules:
        yield from _others(module.config, module.file, OF_MODULE.get(module.kind, {}))


def _others(config: Mapping[str, Json], file: str, types: Mapping[str, str]) -> Iterator[str]:
    for key, wanted in types.items():
        value = config.get(key)
        if value is not None and not IS[wanted](value):
            yield f"{file}#/{key} is {value!r}, not {wanted}"
