"""A BERT of random weights for late interaction, as Sentence Transformers, PyLate and Stanford's ColBERT save it."""

import json
import string
from pathlib import Path
from typing import Any

from .conftest import WORDS

PUNCTUATION = list(string.punctuation)
TOKENS = [
    "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "[unused0]", "[unused1]",
    *WORDS, *PUNCTUATION, *"abcdefghijklmnopqrstuvwxyz", *(f"##{c}" for c in "abcdefgs"),
]  # fmt: skip
MARKERS = {"query": "[unused0] ", "document": "[unused1] "}
# What all three layouts say, each in its own words.
LENGTH, FIXED = 24, {"strategy": "fixed", "attend": False, "length": 12}


def save_late(
    path: Path, *, dense: bool = True, bias: bool = False, activation: str = "Identity", positions: int = 48,
    skip: list[str] | None = None, skip_tasks: list[str] | None = None, expansion: dict[str, Any] | None = FIXED,
    query_length: int | None = None, document_length: int | None = LENGTH, similarity: str | None = None,
    prompts: dict[str, str] | None = None, padding_side: str = "right",
) -> Path:  # fmt: skip
    """Two layers, rows of 32 mapped to 16; punctuation is skipped in documents where `skip` is None."""
    import torch
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Transformer

    rows = "token_embeddings"
    modules = [
        Transformer(
            str(_bare(path / "bare", positions, padding_side)), query_length=query_length,
            document_length=document_length, query_expansion=expansion,
        ),
        MultiVectorMask(PUNCTUATION if skip is None else skip, skiplist_tasks=skip_tasks),
        Normalize(module_input_name=rows),
    ]  # fmt: skip
    if dense:
        torch.manual_seed(7)
        chosen = getattr(torch.nn, activation)()
        modules.insert(1, Dense(32, 16, bias=bias, activation_function=chosen, module_input_name=rows))
        if bias:
            torch.nn.init.normal_(modules[1].linear.bias)
    model = MultiVectorEncoder(
        modules=modules, device="cpu", similarity_fn_name=similarity,
        prompts=prompts or {"query": "the ", "document": "flow: "},
    )  # fmt: skip
    model.save(str(path / "model"))
    return path / "model"


def save_pylate(path: Path) -> Path:
    """Two modules, and everything else in config_sentence_transformers.json."""
    folder = save_late(path, expansion=None, document_length=None)
    _write(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ])  # fmt: skip
    said = json.loads((folder / "1_Dense/config.json").read_text())
    _write(folder / "1_Dense/config.json", {key: said[key] for key in said if not key.startswith("module_")})
    # PyLate leaves the length of its last call there, less what its marker takes.
    _write(folder / "sentence_bert_config.json", {"max_seq_length": LENGTH - 1, "do_lower_case": False})
    return _write(folder / "config_sentence_transformers.json", {
        "model_type": "ColBERT", "query_prefix": MARKERS["query"], "document_prefix": MARKERS["document"],
        "query_length": FIXED["length"], "document_length": LENGTH, "attend_to_expansion_tokens": False,
        "do_query_expansion": True, "skiplist_words": PUNCTUATION, "similarity_fn_name": "MaxSim",
    })  # fmt: skip


def save_stanford(path: Path) -> Path:
    """The map among the encoder's weights, and artifact.metadata beside them."""
    import torch
    from safetensors.torch import load_file, save_file

    folder = _bare(path / "model", 48, "right")
    torch.manual_seed(7)
    weights = {f"bert.{name}": each for name, each in load_file(folder / "model.safetensors").items()}
    save_file(weights | {"linear.weight": torch.nn.Linear(32, 16).weight.data}, folder / "model.safetensors")
    said = json.loads((folder / "config.json").read_text())
    _write(folder / "config.json", {**said, "architectures": ["HF_ColBERT"]})
    return _write(folder / "artifact.metadata", {
        "query_token_id": "[unused0]", "doc_token_id": "[unused1]", "query_maxlen": FIXED["length"],
        "doc_maxlen": LENGTH, "dim": 16, "mask_punctuation": True, "attend_to_mask_tokens": False,
        "similarity": "cosine", "interaction": "colbert",
    })  # fmt: skip


def _bare(path: Path, positions: int, padding_side: str) -> Path:
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(3)
    path.mkdir(parents=True)
    (path / "vocab.txt").write_text("\n".join(TOKENS))
    BertTokenizer(str(path / "vocab.txt"), model_max_length=positions, padding_side=padding_side).save_pretrained(path)
    config = BertConfig(
        vocab_size=len(TOKENS), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=positions, initializer_range=0.2,
    )  # fmt: skip
    BertModel(config).save_pretrained(path)
    return path


def _write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content), encoding="utf-8")
    return path.parent
