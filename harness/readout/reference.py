"""The reference: what a recipe makes of rows and masks, and of nothing else.

A recipe holds what a manifest says as plain values, with the weights beside it. A real release's vectors are held
against these.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, TypeAlias

import numpy as np

from harness.errors import EmptySlice, Misconfigured
from harness.readout import pooling
from harness.readout.normalisation import l2, truncate
from harness.readout.pooling import Attention, Rows
from harness.readout.projection import Dense, LayerNorm, project
from harness.readout.similarity import cosine, dot, squared_l2
from harness.rows.mask import Bools, Counting, Floats, Masks, content_positions, counted, kept

Mode: TypeAlias = Literal[
    "cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "physical-first", "boundary"
]
Weights: TypeAlias = Literal["none", "content-relative", "physical-position"]
Denominator: TypeAlias = Literal["counted rows", "square root of counted rows", "sum of weights", "none"]
Stage: TypeAlias = Literal["none", "after-pooling", "after-projection", "after-truncation", "per-row"]
Empty: TypeAlias = Literal["reject", "learned", "fallback-row", "zero"]

POOLINGS: Mapping[Mode, Callable[[Rows, Bools], Floats]] = MappingProxyType(
    {
        "cls": pooling.first,
        "physical-first": pooling.physical_first,
        "lasttoken": pooling.last,
        "boundary": pooling.boundary,
        "max": pooling.maximum,
        "mean": pooling.mean,
        "mean_sqrt_len_tokens": pooling.mean_sqrt,
        "weightedmean": pooling.weighted_by_column,
    }
)

DENOMINATORS: Mapping[Mode, Denominator] = MappingProxyType(
    {
        "cls": "none",
        "mean": "counted rows",
        "max": "none",
        "mean_sqrt_len_tokens": "square root of counted rows",
        "weightedmean": "sum of weights",
        "lasttoken": "none",
        "physical-first": "none",
        "boundary": "none",
    }
)


@dataclass(frozen=True, slots=True)
class Normalisation:
    """`epsilon`: the smallest length divided by, None for kind `none`. `stage`: after which step, once."""

    kind: Literal["none", "l2"]
    epsilon: float | None
    stage: Stage


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """How rows become a vector.

    `modes` in the order in which they are joined, each with what it divides by in `denominators`. `cls` is the first
    counted row, `physical-first` the first column's; learned attention is a mode that brings its weights. `weights` is
    `none` unless a mode is `weightedmean`. `projections` in their order. `truncate_dim` cuts the result after them;
    `renormalised` says whether it is then brought to unit length (again), and is None where nothing is cut. `empty`
    is what stands for the pooled vector when no row counts: `learned` [pooled width], or what the modes make of the
    physical first row, or of zeros.

    Raises Misconfigured when two of its values contradict one another.
    """

    counting: Counting
    modes: tuple[Mode | Attention, ...]
    denominators: tuple[Denominator, ...]
    weights: Weights
    projections: tuple[Dense | LayerNorm, ...]
    normalisation: Normalisation
    truncate_dim: int | None
    renormalised: bool | None
    empty: Empty
    learned: Rows | None = None

    def __post_init__(self) -> None:
        own = tuple("none" if isinstance(mode, Attention) else DENOMINATORS.get(mode) for mode in self.modes)
        norm, cut = self.normalisation, self.truncate_dim is not None
        _agree("denominators", str(self.denominators), f"{own}, those of the modes", self.denominators == own)
        weighted = "weightedmean" in self.modes
        _agree("weights", self.weights, "a policy if and only if a mode weighs", (self.weights != "none") == weighted)
        learned = self.learned is not None
        _agree("empty", self.empty, "a learned vector with `learned` alone", learned == (self.empty == "learned"))
        normal = norm.kind == "l2"
        full = (norm.epsilon is not None) == normal and (norm.stage != "none") == normal
        _agree("normalisation", str(norm), "epsilon and stage if and only if there is a kind", full)
        _agree(
            "renormalised", str(self.renormalised), "said where dimensions are cut", (self.renormalised is None) != cut
        )
        late = norm.stage == "after-truncation"
        _agree("renormalised", str(self.renormalised), "true after that stage", not late or bool(self.renormalised))
        _agree("renormalised", str(self.renormalised), "false without a kind", normal or not self.renormalised)


def vector(rows: Rows, masks: Masks, recipe: Recipe) -> Floats:
    """The vector [w] of one text, from its contextual rows [r, d].

    Raises EmptySlice when no row counts and the recipe rejects that, or names a fallback row that isn't there;
    Misconfigured when widths don't fit or a mask is missing.
    """
    epsilon, stage = recipe.normalisation.epsilon, recipe.normalisation.stage
    if epsilon is not None and stage == "per-row":
        rows = l2(rows, epsilon)
    result = _pooled(rows, masks, recipe)
    if epsilon is not None and stage == "after-pooling":
        result = l2(result, epsilon)
    for projection in recipe.projections:
        result = project(result, projection)
    if epsilon is not None and stage == "after-projection":
        result = l2(result, epsilon)
    if recipe.truncate_dim is not None:
        result = truncate(result, recipe.truncate_dim)
    return l2(result, epsilon) if epsilon is not None and recipe.renormalised else result


def row_vectors(rows: Rows, masks: Masks, recipe: Recipe) -> Floats:
    """The vectors [c, w] of the counted rows, for late interaction: each projected, normalised and cut.

    The recipe has no modes, and its stage is `none` or `per-row`. Raises EmptySlice when no row counts.
    """
    epsilon, stage = recipe.normalisation.epsilon, recipe.normalisation.stage
    _agree("recipe for rows", f"modes {recipe.modes}, empty {recipe.empty}", "no modes, and `reject`",
           not recipe.modes and recipe.empty == "reject")  # fmt: skip
    _agree("recipe for rows", f"stage {stage}", "`none` or `per-row`", stage in ("none", "per-row"))
    result = kept(rows, counted(masks, recipe.counting))
    for projection in recipe.projections:
        result = project(result, projection)
    if epsilon is not None:
        result = l2(result, epsilon)
    if recipe.truncate_dim is not None:
        result = truncate(result, recipe.truncate_dim)
    return l2(result, epsilon) if epsilon is not None and recipe.renormalised else result


def score(query: Rows, document: Rows, kind: Literal["dot", "cosine", "squared-l2"], epsilon: float) -> float:
    """What two vectors [w] are worth to each other; `epsilon` is cosine's alone. For squared L2 lower is nearer."""
    if kind == "cosine":
        return float(cosine(query, document, epsilon))
    return float(dot(query, document) if kind == "dot" else squared_l2(query, document))


def _pooled(rows: Rows, masks: Masks, recipe: Recipe) -> Floats:
    mask = counted(masks, recipe.counting)
    if mask.any() or recipe.empty == "reject":
        return pooling.concatenate([_mode(mode, rows, mask, masks.attended, recipe) for mode in recipe.modes])
    if recipe.learned is not None:
        return recipe.learned.astype(np.float64)
    if not len(rows):
        raise EmptySlice(
            "rows",
            found="a text without any row",
            expected="at least one, padding included",
            mend="Leave the text out.",
        )
    alone = np.zeros((1, rows.shape[1])) if recipe.empty == "zero" else rows[:1]
    one = np.ones(1, dtype=np.bool_)
    return pooling.concatenate([_mode(mode, alone, one, one, recipe) for mode in recipe.modes])


def _mode(mode: Mode | Attention, rows: Rows, mask: Bools, attended: Bools, recipe: Recipe) -> Floats:
    if isinstance(mode, Attention):
        return pooling.multi_hop(rows, mask, mode)
    if mode == "weightedmean" and recipe.weights == "content-relative":
        return pooling.weighted_by_content(rows, mask, content_positions(attended))
    return POOLINGS[mode](rows, mask)


def _agree(field: str, found: str, expected: str, holds: bool) -> None:
    if not holds:
        raise Misconfigured(
            f"recipe: {field}",
            found=found,
            expected=expected,
            mend="Mend the manifest: its values contradict one another.",
        )
