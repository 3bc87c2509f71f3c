"""Which rows of one text count.

A mask is [r] bool and True counts. It is applied by leaving rows out, never by multiplying them.
"""

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from harness.errors import EmptySlice, Misconfigured

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Masks:
    """What is known of each row of one text; None where it is not known, or does not apply.

    Shapes: all [r] bool, True as the name says. `attended`: a row of the text, no padding. `special`: a token of the
    model's own, such as [CLS]. `prompt_length`: how many rows the prompt takes up, counted from the first attended
    one, special tokens before it included. `skipped`: a token on this side's skip list. `expansion`: a row that
    fills up a query, attended or not.
    """

    attended: Bools
    special: Bools | None = None
    prompt_length: int | None = None
    skipped: Bools | None = None
    expansion: Bools | None = None

    def __post_init__(self) -> None:
        for name in ("attended", "special", "skipped", "expansion"):
            mask = getattr(self, name)
            if mask is not None and (mask.dtype != np.bool_ or mask.shape != (len(self.attended),)):
                raise Misconfigured(
                    f"mask '{name}'",
                    found=f"{mask.dtype} of shape {mask.shape}",
                    expected=f"bool of shape ({len(self.attended)},), one value for each row",
                    mend="Turn it into booleans with `as_mask`, for one text at a time.",
                )
        if self.prompt_length is not None and self.prompt_length < 0:
            raise Misconfigured(
                "prompt length",
                found=str(self.prompt_length),
                expected="0 or more rows",
                mend="Count the prompt's rows.",
            )


@dataclass(frozen=True, slots=True)
class Counting:
    """Which kinds of rows count. `expansion` is None where no query is filled up; skipped rows never count."""

    special: bool
    prompt: bool
    expansion: bool | None


def as_mask(values: ArrayLike) -> Bools:
    """An attention mask of 0 and 1, as booleans of the same shape.

    Raises Misconfigured for any other value: an additive mask (0 and minus infinity) has the opposite polarity.
    """
    mask = np.asarray(values)
    if mask.dtype != np.bool_ and not np.isin(mask, (0, 1)).all():
        raise Misconfigured(
            "attention mask",
            found=f"the values {', '.join(map(str, np.unique(mask)[:4]))}",
            expected="0 and 1, where 1 counts",
            mend="Hand over the tokenizer's mask, not one that was made ready for adding to attention scores.",
        )
    return mask.astype(np.bool_)


def counted(masks: Masks, counting: Counting) -> Bools:
    """The rows [r] that count; possibly none.

    Raises Misconfigured where a kind of row is to be left out and nothing says which rows those are.
    """
    rows = masks.attended.copy()
    if masks.expansion is not None:
        rows &= ~masks.expansion
    if not counting.special:
        rows &= ~_known(masks.special, "special tokens", "the tokenizer's special-token mask")
    if not counting.prompt:
        length = _known(masks.prompt_length, "the prompt", "the prompt's length in rows")
        rows &= content_positions(masks.attended) > length
    if counting.expansion:
        rows |= _known(masks.expansion, "query expansion", "the rows that fill up the query")
    if masks.skipped is not None:
        rows &= ~masks.skipped
    return rows


def content_positions(attended: Bools) -> Ints:
    """Positions [r] from 1 at the first attended row, by column; 0 before it, and everywhere if no row is attended."""
    start = int(np.argmax(attended)) if attended.any() else len(attended)
    return np.maximum(np.arange(len(attended)) - start + 1, 0)


def physical_positions(length: int) -> Ints:
    """Positions [r] from 1 at the first column, padding included, so that left padding moves them."""
    return np.arange(1, length + 1)


def kept(rows: NDArray[np.floating], mask: Bools) -> Floats:
    """The counted rows [c, d] as float64, in their order.

    Shapes: rows [r, d], mask [r] bool. Raises EmptySlice when no row counts, Misconfigured when the shapes differ.
    """
    if rows.ndim != 2 or mask.dtype != np.bool_ or mask.shape != rows.shape[:1]:
        raise Misconfigured(
            "rows and mask",
            found=f"rows of shape {rows.shape}, a mask of {mask.dtype} of shape {mask.shape}",
            expected="rows [r, d] and a boolean mask [r]",
            mend="Hand over one text at a time, with the mask of its own rows.",
        )
    if not mask.any():
        raise EmptySlice(
            "counted rows",
            found=f"none of {len(mask)} rows counts",
            expected="at least one row",
            mend="Leave the text out, or declare a policy for an empty row set.",
        )
    return rows[mask].astype(np.float64)


def _known(value: T | None, kind: str, source: str) -> T:
    if value is None:
        raise Misconfigured(
            "mask sources",
            found=f"no rows are named for {kind}",
            expected=source,
            mend="Hand it over with the masks, or let those rows count as the attention mask has them.",
        )
    return value
