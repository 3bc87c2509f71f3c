"""Parity of texts that are read in windows: is what is kept of one joined from its windows as the manifest says?

Where the windows lie follows from the characters of the tokens and the manifest; what each gives is computed from its
own contextual rows, and joined by the reference.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Tokens
from harness.candidate.encoder import Encoder
from harness.candidate.parity import TOLERANCE, Given, Held, Parity, computed, measured, unprovable
from harness.candidate.probe import relative_difference, sides
from harness.candidate.reference import recipe, refused
from harness.candidate.side import SideEncoder
from harness.errors import HarnessError
from harness.readout.normalisation import l2
from harness.readout.reference import Normalisation, Recipe, row_vectors, vector
from harness.release.manifest import Manifest, Window
from harness.rows.mask import Counting, Floats, Masks, counted
from harness.rows.windows import Cut, cut, mean_vector

NAME = "parity: windows"


def window_parity(
    encoder: Encoder, manifest: Manifest, texts: Mapping[str, str], tolerance: float = TOLERANCE
) -> Parity | None:
    """Holds what is kept of texts by ID against what the reference joins; None for a release without windows.

    Raises nothing for a manifest that contradicts itself: it fails.
    """
    if all(tower.input.window is None for tower in manifest.meaning.towers.values()):
        return None
    largest, where = -1.0, ""
    try:
        for side, tower in sides(manifest, ("pooled", "rows")).items():
            if tower.input.window is None:
                continue
            held = Held(encoder.sides[side], tower, side, None)
            for name, difference in _differences(held, tower.input.window, encoder, texts):
                if difference > largest:
                    largest, where = difference, f"{side}, text {name!r}"
    except HarnessError as refusal:
        return replace(unprovable(refusal, tolerance), name=NAME)
    return replace(measured(largest, tolerance, f"{where}: what is kept", "of its largest value"), name=NAME)


def _differences(held: Held, window: Window, encoder: Encoder, texts: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    by, encoded = recipe(held.tower, held.own.folder), encoder.encode(list(texts.values()), held.side)
    several = 0
    for place, (name, text) in enumerate(texts.items()):
        if place in encoded.failed:
            continue
        read = _read(held, window, text)
        several += len(read.given) > 1
        found = encoded.piece(place).values
        expected = _rows(read, by) if held.tower.readout.family == "rows" else _vectors(read, by, window)
        yield name, relative_difference(found, expected)
    if not several:
        raise refused("input.window", f"no text that is longer than {window.size} tokens", "one that is")


@dataclass(frozen=True, slots=True)
class Laid:
    """A text's windows as the reference lays them: `features` of its tokens, `at` those of each window, `head` the
    number of tokens before its own. Without a token of its own it is one window, and `cut` None.
    """

    cut: Cut | None
    features: Mapping[str, list[int]]
    at: list[NDArray[np.int64]]
    head: int

    def tokens(self, window: int, excluded: int = 0) -> Tokens:
        """Of one window, as the model is given it."""
        mine = {name: [values[row] for row in self.at[window]] for name, values in self.features.items()}
        return Tokens(mine, excluded=excluded)


def laid_out(own: SideEncoder, prompt: str, window: Window, text: str) -> Laid:
    """Where a text's windows lie, by the characters of its tokens and the manifest alone."""
    told = own.tokenizer(
        prompt + text, truncation=False, verbose=False, return_offsets_mapping=True, return_special_tokens_mask=True
    )
    offsets, special = np.array(told.pop("offset_mapping")), np.array(told.pop("special_tokens_mask"))
    mine = np.flatnonzero((special == 0) & ((offsets[:, 1] > len(prompt)) | (prompt == "")))
    ids = np.arange(len(offsets))
    if not len(mine):
        return Laid(None, told, [ids], len(ids))
    head, tail = ids[: mine[0]], ids[mine[-1] + 1 :]
    made = cut(
        text, np.maximum(offsets[mine[0] : mine[-1] + 1] - len(prompt), 0), source=text, release="",
        size=window.size - len(head) - len(tail), stride=window.stride, special=len(head) + len(tail),
        policy=window.owner or "largest-context",
    )  # fmt: skip
    rows = [np.concatenate([head, mine[0] + np.arange(*span), tail]) for span in made.windows.tolist()]
    return Laid(made, told, rows, len(head))


@dataclass(frozen=True, slots=True)
class _Windows:
    """A text's windows as the reference has them, each with its rows; `head`: tokens before its own."""

    cut: Cut | None
    given: list[Given]
    head: int


def _read(held: Held, window: Window, text: str) -> _Windows:
    """Every window through the model by itself."""
    laid = laid_out(held.own, held.prompt, window, text)
    excluded = held.own.excluded(held.prompt)
    given = [_given(held, laid.tokens(at, excluded)) for at in range(len(laid.at))]
    return _Windows(laid.cut, given, laid.head)


def _given(held: Held, tokens: Tokens) -> Given:
    batch = held.own.alone().forward_tokens([tokens], held.tower.input.padding_side)
    return held.masked(batch.rows[0], batch.attended[0], batch.ids[0], batch.filled[0])


def _vectors(read: _Windows, by: Recipe, window: Window) -> Floats:
    """[1, w], or of windows of which the best counts [k, w]."""
    if window.aggregation == "best":
        return np.array([computed(one, by) for one in read.given])
    if window.aggregation == "rows":
        return _pooled(read, by)[None]
    if window.normalise != "after":
        return mean_vector(np.array([computed(one, by) for one in read.given]), normalise="never")[None]
    plain = replace(by, normalisation=Normalisation("none", None, "none"), truncate_dim=None, renormalised=None)
    mean = mean_vector(np.array([computed(one, plain) for one in read.given]), normalise="never")
    return l2(mean, by.normalisation.epsilon or 0.0)[None, : by.truncate_dim]


def _pooled(read: _Windows, by: Recipe) -> Floats:
    """[w], of the rows that `_masked` leaves of all windows, as of one text's."""
    rows = np.concatenate([one.rows[counted(masks, by.counting)] for one, masks in _masked(read)])
    every = Counting(special=True, prompt=True, expansion=None)
    return vector(rows, Masks(np.ones(len(rows), dtype=np.bool_)), replace(by, counting=every))


def _rows(read: _Windows, by: Recipe) -> Floats:
    """[l, w], of the rows that `_masked` leaves of all windows."""
    some = [(one, masks) for one, masks in _masked(read) if counted(masks, by.counting).any()]
    return np.concatenate([row_vectors(one.rows, masks, by) for one, masks in some])


def _masked(read: _Windows) -> Iterator[tuple[Given, Masks]]:
    """Every window with masks that leave it the rows of tokens that it owns and of what stands around them."""
    for at, one in enumerate(read.given):
        others = np.zeros(len(one.rows), dtype=np.bool_)
        if read.cut is not None:
            start, end = read.cut.windows[at].tolist()
            columns = np.flatnonzero(one.masks.attended)[read.head : read.head + end - start]
            others[columns[read.cut.owner[start:end] != at]] = True
        skipped = others if one.masks.skipped is None else one.masks.skipped | others
        yield one, replace(one.masks, skipped=skipped)
