"""Parity of sparse texts that are read in windows: are their weights joined from those of the windows as declared?

Where the windows lie follows from the characters of the tokens and the manifest; the weights of each are computed from
its own rows below the language model's head, and joined in float64, or held one by one where the best of them counts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.parity import SPECIAL, TOLERANCE, Parity, measured, unprovable
from harness.candidate.probe import sides
from harness.candidate.reference import refused
from harness.candidate.side import Side
from harness.candidate.sparse import SparseSide
from harness.candidate.sparse_parity import weight_difference
from harness.candidate.sparse_reference import sparse_recipe
from harness.candidate.window_parity import NAME, laid_out
from harness.errors import HarnessError
from harness.readout.sparse import SparseRecipe, sparse_vector
from harness.release.manifest import Manifest, Tower, Window
from harness.release.prompts import prompt_of
from harness.rows.mask import Floats, Masks

JOINS = ("max", "mean", "best")


def sparse_window_parity(
    encoder: Encoder, manifest: Manifest, texts: Mapping[str, str], tolerance: float = TOLERANCE
) -> Parity | None:
    """As `window_parity`, for a sparse encoder. A weight counts by its entry, an absent one as 0."""
    windowed = {side: each for side, each in sides(manifest, ("sparse",)).items() if each.input.window is not None}
    if not windowed:
        return None
    largest, where = -1.0, ""
    try:
        for side, tower in windowed.items():
            for name, difference in _differences(encoder, manifest, side, tower, texts, tolerance):
                if difference > largest:
                    largest, where = difference, f"{side}, text {name!r}"
    except HarnessError as refusal:
        return replace(unprovable(refusal, tolerance), name=NAME)
    return replace(measured(largest, tolerance, f"{where}: a weight", "of the largest"), name=NAME)


def _differences(
    encoder: Encoder, manifest: Manifest, side: Side, tower: Tower, texts: Mapping[str, str], tolerance: float
) -> Iterator[tuple[str, float]]:
    own, window = encoder.sides[side], tower.input.window
    if not isinstance(own, SparseSide) or window is None or window.aggregation not in JOINS:
        raise refused(f"{side}, input.window", "no way to join sparse vectors", " or ".join(JOINS))
    place = manifest.place("both" if "both" in manifest.meaning.towers else side)
    by = sparse_recipe(tower, own.folder, place)
    encoded, several = encoder.encode(list(texts.values()), side), 0
    for at, (name, text) in enumerate(texts.items()):
        if at in encoded.failed:
            continue
        apart = _vectors(own, tower, side, text, by)
        several += len(apart) > 1
        yield name, _difference(encoded.piece(at).dense(own.width), _joined(window, apart), by.keep, tolerance)
    if not several:
        raise refused("input.window", f"no text that is longer than {window.size} tokens", "one that is")


def _joined(window: Window, apart: Floats) -> Floats:
    """[1, v], or [k, v] where each of the windows' vectors [k, v] is kept."""
    if window.aggregation == "best":
        return apart
    return np.asarray(apart.max(axis=0) if window.aggregation == "max" else apart.mean(axis=0))[None]


def _difference(found: NDArray[np.float32], expected: Floats, keep: int | None, tolerance: float) -> float:
    """The largest of all vectors [k, v]; infinite where they are not as many."""
    if len(found) != len(expected):
        return float("inf")
    return max(weight_difference(*both, keep, tolerance) for both in zip(found, expected, strict=True))


def _vectors(own: SparseSide, tower: Tower, side: Side, text: str, by: SparseRecipe) -> Floats:
    """[k, v], every window through the model by itself, with all its weights."""
    prompt = prompt_of(tower, side, None)
    if tower.input.window is None:
        raise refused(f"{side}, input.window", "none", "one")
    laid = laid_out(own, prompt, tower.input.window, text)
    special = [known for role, known in tower.input.special_tokens.items() if role.removesuffix("_token") in SPECIAL]
    found = []
    for at in range(len(laid.at)):
        batch = own.alone().forward_tokens([laid.tokens(at)], tower.input.padding_side)
        rows = own.states(batch.ids, batch.attended)[0]
        masks = Masks(batch.attended[0], np.isin(batch.ids[0], special), own.prompt_length(prompt))
        found.append(sparse_vector(rows, masks, by))
    return np.array(found)
