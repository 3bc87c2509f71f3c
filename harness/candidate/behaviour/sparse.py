"""Learned sparse vectors: what becomes of a text's logits over the vocabulary."""

from collections.abc import Sequence
from math import e, log
from typing import Any

from harness.candidate.behaviour.policy import Facts, named

# Logits of two words in two rows, and behind them padding that is larger.
ROWS = [[[e - 1, -2.0], [3.0, 0.5], [7.0, 9.0]]]
TWO, NONE = [[1, 1, 0]], [[0, 0, 0]]


def _pooled(mask: Sequence[Sequence[int]], *options: str, rows: Any = ROWS) -> Any:
    import torch
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    given = {"token_embeddings": torch.tensor(rows), "attention_mask": torch.tensor(mask)}
    return SpladePooling(*options).eval()(given)["sentence_embedding"]


def pooling() -> Facts:
    import torch

    alone = [[[e - 1, -2.0]]]
    small = {
        "log(1 + relu)": [1.0, 0.0],
        "log(1 + log(1 + relu))": [log(2), 0.0],
        "relu": [e - 1, 0.0],
        "log(1 + its size)": [1.0, log(3)],
    }
    greatest, summed = [log(4), log(1.5)], [1 + log(4), log(1.5)]
    padded = {
        "greatest": [log(8), log(10)],
        "sum": [1 + log(4) + log(8), log(1.5) + log(10)],
    }
    pools = {
        "the greatest of counted rows": greatest,
        "the sum of counted rows": summed,
        "the mean of counted rows": [value / 2 for value in summed],
        "the greatest of all rows, padding too": padded["greatest"],
        "the sum of all rows, padding too": padded["sum"],
    }
    nothing = torch.cat([_pooled(NONE, mode) for mode in ("max", "sum")])
    return {
        "makes of a logit": named(_pooled([[1]], "max", "relu", rows=alone), small),
        "asked for log1p_relu, makes of a logit": named(_pooled([[1]], "max", "log1p_relu", rows=alone), small),
        "asked for max, gives": named(_pooled(TWO, "max"), pools),
        "asked for sum, gives": named(_pooled(TWO, "sum"), pools),
        "gives by default": named(_pooled(TWO), pools),
        "gives a text without counted rows": named(nothing, {"zero": [0.0] * 4, "minus infinity": [-float("inf")] * 4}),
    }
