"""Hand-made manifests of six kinds of release, and how a test changes one value of them."""

import copy
import hashlib
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import BaseModel

from harness.identity import digest
from harness.release.field import STEPS, Kind
from harness.release.manifest import Manifest, Meaning
from harness.release.semantic import SemanticTuple, semantic_tuple


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def tower(sides: Iterable[str], family: str = "pooled", weights: str = "backbone") -> dict[str, Any]:
    pooled, late = family == "pooled", family == "rows"
    return {
        "artifact": {
            "architecture": "BertModel", "model_type": "bert", "config": sha("config"),
            "backbone": sha(weights), "adapter": None,
            "head": None if family in ("pooled", "rows") else sha("head"),
            "quantised": None, "visibility": "bidirectional", "revision": None, "task_revision": None,
        },
        "input": {
            "tokenizer": {"tokenizer.json": sha("tokenizer")}, "normaliser": {"type": "BertNormalizer"},
            "lower_case": True, "max_length": 128, "truncation_side": "right", "truncation": "longest_first",
            "truncated_first": "longest", "padding_side": "right", "special_tokens": {"cls": 101, "sep": 102},
            "prompts": dict.fromkeys(sides, ""), "suite_prompts": {}, "template": "single", "window": None,
        },
        "rows": {
            "mask": "attention_mask", "polarity": "1 counts", "special": True, "prompt": True,
            "skipped": {"document": [".", ","]} if late else {}, "expansion": {"query": 32} if late else {},
            "expansion_counts": True if late else None, "expansion_strategy": "fixed" if late else None,
            "expansion_token": "[MASK]" if late else None, "expansion_attended": False if late else None,
            "segments": True, "sequences": True, "offsets": True, "words": True,
        },
        "state": {
            "layers": [12], "mixture": None, "scale": None, "final_norm": False, "axes": "batch, row, width",
            "width": 384,
        },
        "readout": {
            "family": family, "modes": ["mean"] if pooled else [], "denominator": "counted rows" if pooled else "none",
            "weights": "none",
            "projections": [{
                "kind": "dense", "width_in": 384, "width_out": 128, "bias": False, "activation": "identity",
                "residual": False, "weights": sha("dense"),
            }] if late else [],
            "normalisation": {
                "kind": "l2" if pooled or late else "none", "epsilon": 1e-12 if pooled or late else None,
                "stage": "after-pooling" if pooled else "per-row" if late else "none",
            },
            "truncate_dim": None, "renormalised": None, "max_active_dims": None,
            "empty": "zero" if pooled else "reject", "dropout": "off", "stored": "float32",
        },
    }  # fmt: skip


def _written(kind: str, towers: dict[str, Any], output: dict[str, Any], score: dict[str, Any]) -> dict[str, Any]:
    return {
        "interaction": {
            "kind": kind, "tied": None, "releases": {}, "depth": None, "maxsim": None, "maxsim_ties": None,
            "token_schema": None, "weights": {}, "scales": {}, "pool": None,
            "rank_constant": None, "absent": None,
        },
        "towers": towers,
        "output": {
            "kind": "vector", "dimension": 384, "labels": None, "generic_labels": False, "null": None,
            "decoder": "none", "pieces": None, "longest": None, "transitions": None, "regression": None, **output,
        },
        "score": {
            "type": "cosine", "low": -1.0, "high": 1.0, "higher_is_better": True, "sums_to": None,
            "probability": False, "activation": "identity", "label": None, "temperature": None, "index": "none",
            "threshold": None, "ties": "expected", "calibrator": None, "decision": None, **score,
        },
        "recording": None,
        "training": None,
    }  # fmt: skip


LOGIT = {"type": "logit", "low": None, "high": None}


def meaning(kind: str) -> dict[str, Any]:
    """`tied`, `untied`, `late`, `cross`, `head`, `span`, `two-stage`, `fusion` or `recorded`."""
    if kind == "tied":
        found = _written("bi", {"both": tower(("query", "document"))}, {}, {"index": "flat"})
        found["interaction"]["tied"] = True
    elif kind == "untied":
        towers = {side: tower((side,), weights=side) for side in ("query", "document")}
        found = _written("bi", towers, {}, {"index": "flat"})
        found["interaction"]["tied"] = False
    elif kind == "late":
        towers = {"both": tower(("query", "document"), "rows")}
        found = _written("late", towers, {"kind": "rows", "dimension": 128}, {"type": "maxsim"})
        found["interaction"] |= {"tied": True, "maxsim": "sum", "maxsim_ties": "first", "token_schema": "rows.v1"}
    elif kind == "cross":
        found = _written("cross", {"pair": tower(("pair",), "cls-head")}, {"kind": "score", "dimension": 1}, LOGIT)
    elif kind == "head":
        output = {"kind": "classes", "dimension": 3, "labels": ["ASK", "BUY", "SELL"], "decoder": "argmax"}
        found = _written("head", {"text": tower(("text",), "cls-head")}, output, LOGIT)
    elif kind == "span":
        output = {"kind": "span", "dimension": 2, "null": "first row", "decoder": "span-search"}
        found = _written("head", {"pair": tower(("pair",), "span-head")}, output, LOGIT)
    elif kind in ("two-stage", "fusion"):
        found = _written(kind, {}, {"kind": "score", "dimension": 1}, LOGIT)
    else:
        found = _written("recorded", {}, {"kind": "score", "dimension": 1}, {"type": "dot"})
        found["recording"] = {
            "format": "trec-run", "outputs": sha("run"), "revision": None, "label_map": {}, "column": None,
            "null_scores": None,
        }  # fmt: skip
    if kind == "two-stage":
        found["interaction"] |= {
            "releases": {"retriever": content("tied"), "reranker": content("cross")}, "depth": 100,
        }  # fmt: skip
    if kind == "fusion":
        found["interaction"] |= {
            "releases": {"dense": content("tied"), "rows": content("late")},
            "weights": {"dense": 0.5, "rows": 0.5}, "scales": {"dense": "none", "rows": "min-max"},
        }  # fmt: skip
    return found


def content(kind: str) -> str:
    return manifest(meaning(kind)).identity.content_id


def manifest(meant: dict[str, Any], name: str = "parent", **runtime: Any) -> Manifest:
    of = Meaning.model_validate(meant)
    return Manifest.model_validate({
        "schema": "numinens.readout.v1",
        "meaning": meant,
        "runtime": {"declared": {}, "observed": runtime or {"torch": "2.6.0", "device": "cpu"}},
        "evidence": {"sources": {}, "overridden": {}, "files": {}},
        "identity": {
            "name": name, "parent": None, "content_id": digest(of.model_dump(mode="json")),
            "rollback_compatible": None, "tests": [],
        },
    })  # fmt: skip


def changed(meant: dict[str, Any], **values: Any) -> dict[str, Any]:
    """A copy with other values; `__` leads inward, as in `towers__both__input__max_length`."""
    other = copy.deepcopy(meant)
    for path, value in values.items():
        *above, last = path.split("__")
        within = other
        for key in above:
            within = within[int(key)] if key.isdecimal() else within[key]
        within[last] = value
    return other


def whole(meant: dict[str, Any], parts: dict[str, dict[str, Any]] | None = None, **runtime: Any) -> SemanticTuple:
    of = {role: manifest(part, role) for role, part in (parts or {}).items()}
    for role, part in of.items():
        meant["interaction"]["releases"][role] = part.identity.content_id
    return semantic_tuple(manifest(meant, **runtime), of)


DECISION = {
    "type": "cosine", "ground": "confidence", "below": 0.5, "digest": sha("threshold"), "fitted_under": sha("scores"),
}  # fmt: skip
CALIBRATOR = {"family": "temperature", "digest": sha("calibrator"), "fitted_under": sha("scores")}
ALL_KINDS = tuple(str(kind) for kind in Kind)


def complete(kind: str) -> dict[str, Any]:
    """`meaning` of a kind with every field of the schema stated, also where none of its like would have it."""
    found = meaning(kind)
    for part in found["towers"].values():
        sides = list(part["input"]["prompts"])
        part["artifact"] |= {
            "adapter": sha("adapter"), "head": sha("head"), "quantised": "int8", "revision": "main",
            "task_revision": "v1",
        }  # fmt: skip
        part["input"] |= {
            "suite_prompts": {"help": dict.fromkeys(sides, "ask: ")},
            "window": {
                "size": 64, "stride": 32, "aggregation": "best", "normalise": "after", "owner": "first",
                "text": "second",
            },
        }  # fmt: skip
        part["rows"] |= {
            "skipped": {side: ["."] for side in sides}, "expansion": dict.fromkeys(sides, 32),
            "expansion_counts": True, "expansion_strategy": "fixed", "expansion_token": "[MASK]",
            "expansion_attended": False,
        }  # fmt: skip
        part["state"] |= {"mixture": [0.5, 0.5], "scale": 1.0}
        part["readout"] |= {
            "projections": tower(sides, "rows")["readout"]["projections"], "truncate_dim": 64, "renormalised": True,
            "max_active_dims": 16, "modes": ["mean"],
            "normalisation": {"kind": "l2", "epsilon": 1e-12, "stage": "after-pooling"},
        }  # fmt: skip
    found["output"] |= {
        "labels": ["A", "B"], "null": "A", "pieces": "first", "longest": 30, "transitions": sha("crf"),
        "regression": {"units": "stars", "scale": 1.0, "shift": 0.0},
    }  # fmt: skip
    found["score"] |= {
        "low": -1.0, "high": 1.0, "sums_to": 1.0, "label": "A", "temperature": 1.0, "threshold": 0.5,
        "calibrator": CALIBRATOR, "decision": DECISION,
    }  # fmt: skip
    found["interaction"] |= {
        "tied": True, "releases": {"retriever": sha("release")}, "depth": 10, "maxsim": "sum", "maxsim_ties": "first",
        "token_schema": "rows.v1", "weights": {"retriever": 0.5}, "scales": {"retriever": "none"},
        "pool": 10, "rank_constant": 60.0, "absent": "lowest",
    }  # fmt: skip
    found["recording"] = {
        "format": "trec-run", "outputs": sha("run"), "revision": "r1", "label_map": {"A": "B"}, "column": -1,
        "null_scores": sha("null"),
    }  # fmt: skip
    texts = (
        "dataset_revision", "positives", "admitted", "margin_metric", "miner", "miner_revision", "gather",
        "denominators", "sampler", "ignored_rows", "first_trainable", "last_trainable", "schedule", "phase", "base",
        "adapter", "parent",
    )  # fmt: skip
    found["training"] = {
        **dict.fromkeys(texts, "x"), "split": sha("split"), "objectives": ["x"], "temperature": 1.0, "margin": 1.0,
        "task_weights": {"x": 1.0}, "seed": 1, "trainable": ["x"], "frozen": ["y"], "modes": {"x": "y"},
        "head_only": False,
    }  # fmt: skip
    return found


# Fields that can say one thing alone.
FIXED = {"towers.*.rows.mask", "towers.*.rows.polarity", "towers.*.state.axes", "towers.*.readout.dropout"}


def single_changes(meant: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every stated field by its path in the map of fields, and the meaning with another valid value there alone."""
    for pattern, path, value in _others(Meaning, meant, "", ()):
        other = copy.deepcopy(meant)
        within: Any = other
        for key in path[:-1]:
            within = within[key]
        within[path[-1]] = value
        yield pattern, other


def _others(annotation: Any, value: Any, pattern: str, path: tuple[Any, ...]) -> Iterator[tuple[str, Any, Any]]:
    optional, annotation = type(None) in get_args(annotation), _inner(annotation)
    if pattern in STEPS:
        if pattern not in FIXED:
            yield pattern, path, _other(annotation, value, optional)
    elif isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items() if value is not None else ():
            yield from _others(field.annotation, value[name], f"{pattern}.{name}".lstrip("."), (*path, name))
    else:
        inner = get_args(annotation)[-1]
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from _others(inner, value[key], f"{pattern}.*", (*path, key))


def _inner(annotation: Any) -> Any:
    """A type without its metadata and its None."""
    if get_origin(annotation) is Annotated:
        return _inner(get_args(annotation)[0])
    stated = [each for each in get_args(annotation) if each is not type(None)]
    return _inner(stated[0]) if type(None) in get_args(annotation) else annotation


def _other(annotation: Any, value: Any, optional: bool) -> Any:
    if get_origin(annotation) is Literal:
        return next(each for each in (*get_args(annotation), *([None] if optional else [])) if each != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return sha(value) if len(value) == 64 else value + "x"
    return (
        {**value, "x": 1} if isinstance(value, dict) else [*value, value[0]] if isinstance(value, list) else value + 1
    )
