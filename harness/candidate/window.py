"""A long text as a model reads it: its tokens in windows, each between the tokens that stand around every one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import OWNED, Tokens, Windows
from harness.errors import Misconfigured
from harness.release.manifest import Owner, Window
from harness.rows.windows import owners, split, uncovered, word_owners


def lay_out(window: Window, own: NDArray[np.bool_], offsets: NDArray[np.int64], text: str) -> Windows | None:
    """Where the windows of a text lie; None where it has no token of its own.

    Shapes: own [r], the tokens that are the text's, which stand together; offsets [r, 2], their characters in it. What
    stands before and behind them is in every window. Where that leaves less room than the stride, as a long question
    does, a window begins where the one before it ends. Raises Misconfigured where it leaves no room at all.
    """
    there = np.flatnonzero(own)
    if not len(there):
        return None
    head, tail = int(there[0]), len(own) - int(there[-1]) - 1
    room = window.size - head - tail
    if room < 1:
        raise Misconfigured(
            "windows", found=f"{head + tail} tokens around the text", expected=f"fewer than the {window.size} of a "
            "window", mend="Raise `size` in [input.window] of release.toml.",
        )  # fmt: skip
    count = len(own) - head - tail
    spans = split(count, room, min(window.stride, room))
    mine = offsets[head : head + count]
    shown = np.stack([mine[spans[:, 0], 0], mine[spans[:, 1] - 1, 1]], axis=1)
    hidden = sum(end - start for start, end in uncovered(text, mine))
    return Windows(head, tail, spans, shown, hidden)


def parts(tokens: Tokens) -> list[Tokens]:
    """Each window as the model is given it; a text that fits into one, or is read without, as it is."""
    if tokens.windows is None or len(tokens.windows.spans) == 1:
        return [replace(tokens, windows=None)]
    return [
        replace(
            tokens,
            features={name: in_window(tokens.windows, values, at) for name, values in tokens.features.items()},
            windows=None,
        )
        for at in range(len(tokens.windows.spans))
    ]


def in_window(windows: Windows, values: Sequence[int], at: int) -> list[int]:
    """Of values of a whole text's tokens, those of its window `at`."""
    start, end = (windows.head + edge for edge in windows.spans[at].tolist())
    return [*values[: windows.head], *values[start:end], *values[len(values) - windows.tail :]]


def owning(window: Window, tokens: Tokens, parts: list[Tokens]) -> list[Tokens]:
    """The windows of a text, each to keep the rows of the tokens that it owns, and those of what stands around every
    one. A text that fits into one is left as it is.
    """
    windows = tokens.windows
    if windows is None or len(parts) == 1:
        return parts
    owner = owners(windows.spans, int(windows.spans[-1, 1]), window.owner or "largest-context")
    return [replace(part, features={**part.features, OWNED: _of(windows, owner, at)}) for at, part in enumerate(parts)]


def _of(windows: Windows, owner: NDArray[np.int64], at: int) -> list[int]:
    start, end = windows.spans[at].tolist()
    return [*[1] * windows.head, *(owner[start:end] == at).astype(int).tolist(), *[1] * windows.tail]


@dataclass(frozen=True, slots=True, eq=False)
class InWindows:
    """Texts each of which was read in several windows, as `window` says.

    Shapes: rows [t], which of all texts each one is, rising; counts [t], its windows; around [t], tokens that stand
    around every one of them; uncovered [t], characters in no token. Of all windows [w], text after text: tokens and
    characters [w, 2] of its text that each shows, and `owned` [w, 2], of those tokens the ones that it speaks for, None
    where windows are not joined as rows; ends exclusive.
    """

    window: Window
    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    around: NDArray[np.int64]
    uncovered: NDArray[np.int64]
    tokens: NDArray[np.int32]
    characters: NDArray[np.int32]
    owned: NDArray[np.int32] | None

    def among(self, rows: NDArray[np.int64]) -> "InWindows":
        """The same texts among others. Shapes: rows [n], where each of all texts stands there."""
        return replace(self, rows=rows[self.rows])

    @classmethod
    def joined(cls, parts: "Sequence[InWindows]") -> "InWindows | None":
        """Texts of one encoder, read part by part; None where there are none."""
        if not parts:
            return None
        counts = np.concatenate([each.counts for each in parts])
        order = np.argsort(np.concatenate([each.rows for each in parts]), kind="stable")
        starts = np.cumsum(counts) - counts
        # From where each text's windows are taken, one text after another.
        taken = np.repeat(starts[order] - np.cumsum(counts[order]) + counts[order], counts[order])
        taken += np.arange(len(taken))
        owned = [each.owned for each in parts if each.owned is not None]
        return cls(
            parts[0].window,
            rows=np.concatenate([each.rows for each in parts])[order],
            counts=counts[order],
            around=np.concatenate([each.around for each in parts])[order],
            uncovered=np.concatenate([each.uncovered for each in parts])[order],
            tokens=np.concatenate([each.tokens for each in parts])[taken],
            characters=np.concatenate([each.characters for each in parts])[taken],
            owned=np.concatenate(owned)[taken] if owned else None,
        )

    @classmethod
    def of(cls, window: Window | None, texts: Mapping[int, Windows]) -> "InWindows | None":
        """Of texts by row; None where no text has several."""
        some = {row: texts[row] for row in sorted(texts) if len(texts[row].spans) > 1}
        if window is None or not some:
            return None
        owned = None
        if window.owner is not None:
            owned = np.concatenate([_owned(each, window.owner) for each in some.values()])
        return cls(
            window,
            np.array(list(some), dtype=np.int64),
            np.array([len(each.spans) for each in some.values()], dtype=np.int64),
            np.array([each.head + each.tail for each in some.values()], dtype=np.int64),
            np.array([each.uncovered for each in some.values()], dtype=np.int64),
            np.concatenate([each.spans for each in some.values()]).astype(np.int32),
            np.concatenate([each.characters for each in some.values()]).astype(np.int32),
            None if owned is None else owned.astype(np.int32),
        )


def _owned(windows: Windows, policy: Owner) -> NDArray[np.int64]:
    """[w, 2], of a text's own tokens those that each window speaks for: they stand together."""
    count = int(windows.spans[-1, 1])
    words = np.full(count, -1) if windows.words is None else windows.words
    owner, every = word_owners(windows.spans, words, policy), np.arange(len(windows.spans))
    return np.stack([np.searchsorted(owner, every), np.searchsorted(owner, every, side="right")], axis=1)


def room_for_windows(name: str, window: Window, around: int) -> None:
    """Raises Misconfigured where special tokens and prompt, `around` a text, leave less room than a stride."""
    if window.size - around < window.stride:
        raise Misconfigured(
            f"release {name}",
            found=f"windows of {window.size} tokens, {around} of which are special or the prompt's",
            expected=f"room for the stride of {window.stride}, so that no token is skipped",
            mend="Lower `stride` in [input.window] of release.toml, or raise `size`.",
        )
