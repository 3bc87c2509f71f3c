"""A long text as overlapping windows of tokens, and their values put together again.

`stride` is the step from one window's start to the next, so `size - stride` tokens are shared. (The tokenizers of
transformers call the shared number of tokens `stride`.)
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice, Misconfigured
from harness.rows.mask import Floats, Ints


def split(n_tokens: int, size: int, stride: int) -> Ints:
    """The windows [w, 2] over the tokens, end exclusive: as few as reach the last token.

    Raises Misconfigured for a stride that skips tokens or stands still, EmptySlice for a text without tokens.
    """
    if not 1 <= stride <= size:
        raise Misconfigured(
            "window policy",
            found=f"stride {stride} with size {size}",
            expected="a stride of at least 1 and at most the size, so that no token is skipped",
            mend="Set the stride to the size, or less for windows that overlap.",
        )
    if n_tokens < 1:
        raise EmptySlice(
            "windows", found="a text without tokens", expected="at least one token", mend="Leave the text out."
        )
    starts = stride * np.arange(1 + max(0, -(-(n_tokens - size) // stride)))
    return np.stack([starts, np.minimum(starts + size, n_tokens)], axis=1)


def multiplicity(windows: Ints, n_tokens: int) -> Ints:
    """[n_tokens], in how many windows each token stands. Raises Misconfigured when one stands in none."""
    if windows.size and not 0 <= windows.min() <= windows.max() <= n_tokens:
        raise Misconfigured(
            "windows",
            found=f"tokens {windows.min()} to {windows.max()}",
            expected=f"within the {n_tokens} tokens of the text",
            mend="Make the windows with `split`.",
        )
    steps = np.zeros(n_tokens + 1, dtype=np.int64)
    np.add.at(steps, windows[:, 0], 1)
    np.add.at(steps, windows[:, 1], -1)
    counts = np.cumsum(steps)[:-1]
    if (counts == 0).any():
        raise Misconfigured(
            "windows",
            found=f"token {int(np.argmax(counts == 0))} stands in no window",
            expected="every token in at least one window",
            mend="Make the windows with `split`.",
        )
    return counts


def owners(windows: Ints, n_tokens: int) -> Ints:
    """[n_tokens], the window that speaks for each token: where it is farthest from the nearer edge.

    The text's own ends need no exception: no other window reaches beyond them. Among equals the earlier speaks.
    """
    multiplicity(windows, n_tokens)
    token = np.arange(n_tokens)[None, :]
    start, end = windows[:, :1], windows[:, 1:]
    context = np.minimum(token - start, end - 1 - token)  # below 0 outside the window
    return np.asarray(np.argmax(context, axis=0), dtype=np.int64)


def by_owner(values: Sequence[NDArray[np.floating]], windows: Ints, n_tokens: int) -> Floats:
    """Each token's values [n_tokens, …] from the window that owns it.

    Shapes: values, for each window [its tokens, …].
    """
    _refuse_other_lengths(values, windows)
    owner = owners(windows, n_tokens)
    return np.stack([values[w][t - windows[w, 0]] for t, w in enumerate(owner)]).astype(np.float64)


def by_multiplicity(values: Sequence[NDArray[np.floating]], windows: Ints, n_tokens: int) -> Floats:
    """Each token's values [n_tokens, …], averaged over the windows in which it stands, so that none counts twice.

    Shapes: values, for each window [its tokens, …].
    """
    _refuse_other_lengths(values, windows)
    total = np.zeros((n_tokens, *values[0].shape[1:]))
    for value, (start, end) in zip(values, windows, strict=True):
        total[start:end] += value
    return total / multiplicity(windows, n_tokens).reshape(-1, *[1] * (total.ndim - 1))


def _refuse_other_lengths(values: Sequence[NDArray[np.floating]], windows: Ints) -> None:
    found, expected = [len(value) for value in values], np.diff(windows, axis=1).ravel().tolist()
    if found != expected:
        raise Misconfigured(
            "values of windows",
            found=f"values for {found} tokens",
            expected=f"one for each token of each window: {expected}",
            mend="Leave out the rows of special tokens and padding first.",
        )
