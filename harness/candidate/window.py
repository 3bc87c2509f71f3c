"""A long text as a model reads it: its tokens in windows, each between the tokens that stand around every one."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Tokens, Windows
from harness.errors import Misconfigured
from harness.release.manifest import Window
from harness.rows.windows import split, uncovered


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
    hidden = sum(end - start for start, end in uncovered(text, offsets[head : head + count]))
    return Windows(head, tail, spans, hidden)


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


def room_for_windows(name: str, window: Window, around: int) -> None:
    """Raises Misconfigured where special tokens and prompt, `around` a text, leave less room than a stride."""
    if window.size - around < window.stride:
        raise Misconfigured(
            f"release {name}",
            found=f"windows of {window.size} tokens, {around} of which are special or the prompt's",
            expected=f"room for the stride of {window.stride}, so that no token is skipped",
            mend="Lower `stride` in [input.window] of release.toml, or raise `size`.",
        )
