"""Learned sparse vectors: one weight for each entry of the vocabulary, from a language model's logits.

Shapes: rows [r, d], logits [r, v], mask [r] bool where True counts, a vector [v] float64 of weights of at least 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.readout.projection import Dense, LayerNorm, project
from harness.rows.mask import Bools, Counting, Floats, Masks, counted, kept

Activation: TypeAlias = Literal["log1p-relu", "log1p-log1p-relu"]
# How often the logarithm is taken.
LOGARITHMS: dict[Activation, int] = {"log1p-relu": 1, "log1p-log1p-relu": 2}


@dataclass(frozen=True, slots=True, eq=False)
class SparseRecipe:
    """How rows become a sparse vector.

    `head`: the maps from a row to its logits, in their order. `mode`: over a text's counted rows. `keep`: how many of
    the largest weights are kept, None for all. `empty`: of a text without a counted row.
    """

    counting: Counting
    head: Sequence[Dense | LayerNorm]
    activation: Activation
    mode: Literal["max", "sum"]
    keep: int | None
    empty: Literal["reject", "zero"]


def weigh(logits: NDArray[np.floating], activation: Activation) -> Floats:
    """`log(1 + max(x, 0))` of each logit, or the logarithm of 1 + that once more; of its shape, at least 0.

    Source: Formal, Piwowarski and Clinchant, SPLADE, SIGIR 2021, for one logarithm.
    Raises Misconfigured for another activation.
    """
    if activation not in LOGARITHMS:
        raise Misconfigured(
            f"activation '{activation}'", found="no function of that name",
            expected=f"one of {', '.join(LOGARITHMS)}", mend="Name what the code computes.",
        )  # fmt: skip
    weights = np.maximum(logits.astype(np.float64), 0)
    for _ in range(LOGARITHMS[activation]):
        weights = np.log1p(weights)
    return weights


def pool(logits: NDArray[np.floating], mask: Bools, activation: Activation, mode: Literal["max", "sum"]) -> Floats:
    """[v], for each entry the largest weight of the counted rows, or the sum. Raises EmptySlice when no row counts."""
    weights = weigh(kept(logits, mask), activation)
    return np.asarray(weights.max(axis=0) if mode == "max" else weights.sum(axis=0))


def sparse_vector(rows: NDArray[np.floating], masks: Masks, recipe: SparseRecipe) -> Floats:
    """The vector [v] of one text with all its weights, whatever the recipe keeps of them.

    Raises EmptySlice when no row counts and the recipe rejects that, Misconfigured when widths don't fit.
    """
    mask, logits = counted(masks, recipe.counting), rows.astype(np.float64)
    for step in recipe.head:
        logits = project(logits, step)
    if not mask.any() and recipe.empty == "zero":
        return np.zeros(logits.shape[1])
    return pool(logits, mask, recipe.activation, recipe.mode)


def keep_largest(vector: Floats, count: int) -> Floats:
    """[v], all but the `count` largest weights made 0; among equals the first entries stay."""
    result = np.zeros_like(vector)
    best = np.argsort(-vector, kind="stable")[:count]
    result[best] = vector[best]
    return result
