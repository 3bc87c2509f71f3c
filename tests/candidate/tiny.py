"""Encoders of random weights beside the bi-encoder of one model, as the library saves them."""

from pathlib import Path
from typing import Any

from .conftest import bare_bert


def save_sparse(
    root: Path, *, pooling: str = "max", activation: str = "relu", keep: int | None = None,
    similarity: str | None = None, legacy: bool = False, **bare: Any,
) -> Path:  # fmt: skip
    """A masked language model of random weights, as SparseEncoder saves it."""
    from sentence_transformers import SparseEncoder
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sparse_encoder.modules import MLMTransformer, SpladePooling

    folder = str(bare_bert(root / "bare", head="ForMaskedLM", **bare))
    first = MLMTransformer(folder) if legacy else Transformer(folder, transformer_task="fill-mask")
    model = SparseEncoder(
        modules=[first, SpladePooling(pooling, activation)], device="cpu", max_active_dims=keep,
        similarity_fn_name=similarity,
    )  # fmt: skip
    model.save(str(root / "model"))
    return root / "model"


def save_router(root: Path) -> Path:
    """Queries by their first row, cut to 24 tokens; documents by the mean, through a Dense; then both of length 1."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Router, Transformer

    query = Transformer(str(bare_bert(root / "q", seed=4)), max_seq_length=24)
    document = Transformer(str(bare_bert(root / "d", seed=5, positions=40)))
    torch.manual_seed(6)
    routes = Router.for_query_document(
        [query, Pooling(32, "cls"), Dense(32, 16)], [document, Pooling(32, "mean"), Dense(32, 16)]
    )
    model = SentenceTransformer(
        modules=[routes, Normalize()], prompts={"query": "the: ", "document": "flow "}, device="cpu"
    )
    model.save(str(root / "model"))
    return root / "model"
