"""A long text as overlapping windows of tokens, and their values put together again.

`stride` is the step from one window's start to the next, so `size - stride` tokens are shared. (The tokenizers of
transformers call the shared number of tokens `stride`.)
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice, Misconfigured
from harness.rows.mask import Floats, Ints

Owner: TypeAlias = Literal["first", "centre", "largest-context"]


@dataclass(frozen=True, slots=True)
class WindowRecord:
    """One window of a source. `index` counts them from 0; tokens are the source's own, `end` behind the last.

    `characters`: from the first character of its first token to behind the last one of its last. `left` and `right`:
    tokens that it shares with the window before and behind it. `special`: rows that the model adds. `release` is the
    content ID of what read it.
    """

    source: str
    index: int
    release: str
    start: int
    end: int
    characters: tuple[int, int]
    left: int
    right: int
    stride: int
    special: int


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """A source in windows. Shapes: windows [w, 2] over its tokens; multiplicity and owner [n], by token.

    `uncovered`: stretches of characters that are no blanks and stand in no token of any window.
    """

    records: tuple[WindowRecord, ...]
    windows: Ints
    multiplicity: Ints
    owner: Ints
    uncovered: tuple[tuple[int, int], ...]

    @property
    def n_uncovered(self) -> int:
        """How many characters no window shows."""
        return sum(end - start for start, end in self.uncovered)


def cut(
    text: str,
    offsets: Ints,
    *,
    source: str,
    release: str,
    size: int,
    stride: int | None,
    special: int = 0,
    policy: Owner = "largest-context",
) -> Cut:
    """A text in windows. Offsets [n, 2] are the characters of its tokens; without a stride it is truncated, hard.

    Raises as `split`.
    """
    n = len(offsets)
    windows = split(n, size, stride or size)
    windows = windows if stride else windows[:1]
    shared = np.maximum(windows[:-1, 1] - windows[1:, 0], 0).tolist()
    records = tuple(
        WindowRecord(
            source=source,
            index=w,
            release=release,
            start=start,
            end=end,
            characters=(int(offsets[start, 0]), int(offsets[end - 1, 1])),
            left=shared[w - 1] if w else 0,
            right=shared[w] if w < len(shared) else 0,
            stride=stride or size,
            special=special,
        )
        for w, (start, end) in enumerate(windows.tolist())
    )
    reached = int(windows[-1, 1])
    counts, owner = np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64)
    counts[:reached], owner[:reached] = multiplicity(windows, reached), owners(windows, reached, policy)
    return Cut(records, windows, counts, owner, uncovered(text, offsets[:reached]))


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


def uncovered(text: str, offsets: Ints) -> tuple[tuple[int, int], ...]:
    """Stretches of characters that aren't blank and lie in none of the tokens [n, 2]."""
    steps = np.zeros(len(text) + 1, dtype=np.int64)
    np.add.at(steps, offsets[:, 0], 1)
    np.add.at(steps, offsets[:, 1], -1)
    hidden = np.flatnonzero(np.cumsum(steps)[:-1] == 0)
    open_ = np.zeros(len(text) + 2, dtype=np.int64)
    open_[[at + 1 for at in hidden.tolist() if not text[at].isspace()]] = 1
    edges = np.flatnonzero(np.diff(open_))
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


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


def owners(windows: Ints, n_tokens: int, policy: Owner = "largest-context") -> Ints:
    """[n_tokens], the window that speaks for each token; among equals the earlier one.

    `first`: the first in which it stands. `centre`: where it is nearest to the window's middle. `largest-context`:
    where it is farthest from the nearer edge; the text's own ends need no exception, for no other window reaches
    beyond them.
    """
    multiplicity(windows, n_tokens)
    owner = np.zeros(n_tokens, dtype=np.int64)
    best = np.full(n_tokens, np.iinfo(np.int64).min)
    for window, (start, end) in enumerate(windows.tolist()):
        token = np.arange(start, end)
        if policy == "first":
            claim = np.zeros(end - start, dtype=np.int64)
        elif policy == "centre":
            claim = -np.abs(2 * token - (start + end - 1))
        else:
            claim = np.minimum(token - start, end - 1 - token)
        mine = token[claim > best[start:end]]
        owner[mine], best[mine] = window, claim[mine - start]
    return owner


def word_owners(windows: Ints, words: Ints, policy: Owner = "largest-context") -> Ints:
    """As `owners`, but a word's tokens follow its first one wherever that one's window shows them.

    Shapes: words [n_tokens], the word of each token, -1 for none; a word's tokens stand together.
    """
    found = owners(windows, len(words), policy)
    token = np.arange(len(words))
    begins = np.append(True, words[1:] != words[:-1])[: len(words)]
    of_first = found[np.maximum.accumulate(np.where(begins, token, 0))]
    shown = (words >= 0) & (token >= windows[of_first, 0]) & (token < windows[of_first, 1])
    return np.where(shown, of_first, found)


def mean_vector(vectors: Floats, *, normalise: Literal["before", "after", "both", "never"]) -> Floats:
    """One vector [d] out of those of windows [w, d]: their mean, each or the whole of unit length as declared.

    Raises EmptySlice without a window. A vector of length 0 stays as it is.
    """
    if not len(vectors):
        raise EmptySlice("windows", found="no vector", expected="at least one", mend="Leave the text out.")
    parts = vectors.astype(np.float64)
    mean = np.asarray((_unit(parts) if normalise in ("before", "both") else parts).mean(axis=0))
    return _unit(mean[None])[0] if normalise in ("after", "both") else mean


def best(scores: Floats) -> int:
    """The window [w] that speaks for a source, by its highest score; the earliest of equals. Raises EmptySlice."""
    if not len(scores):
        raise EmptySlice("windows", found="no score", expected="at least one", mend="Leave the text out.")
    return int(np.argmax(scores))


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


def _unit(vectors: Floats) -> Floats:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(length > 0, length, 1.0))


def _refuse_other_lengths(values: Sequence[NDArray[np.floating]], windows: Ints) -> None:
    found, expected = [len(value) for value in values], np.diff(windows, axis=1).ravel().tolist()
    if found != expected:
        raise Misconfigured(
            "values of windows",
            found=f"values for {found} tokens",
            expected=f"one for each token of each window: {expected}",
            mend="Leave out the rows of special tokens and padding first.",
        )
