"""Hand-made manifests of six kinds of release, and how a test changes one value of them."""

import copy
import hashlib
from collections.abc import Iterable
from typing import Any

from harness.identity import digest
from harness.release.field import Kind
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
            "decoder": "none", "transitions": None, "regression": None, **output,
        },
        "score": {
            "type": "cosine", "low": -1.0, "high": 1.0, "higher_is_better": True, "sums_to": None,
            "probability": False, "activation": "identity", "label": None, "temperature": None, "index": "none",
            "threshold": None, "ties": "expected", "calibrator": None, **score,
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
        found["recording"] = {"format": "trec-run", "outputs": sha("run"), "revision": None}
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


CALIBRATOR = {"family": "temperature", "digest": sha("calibrator"), "fitted_under": sha("scores")}
ALL_KINDS = tuple(str(kind) for kind in Kind)
