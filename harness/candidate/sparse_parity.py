"""Parity of sparse encoders: are a release's weights those that its manifest says, computed from its own rows?

The rows are the library's, below the language model's head. The head, what becomes of its logits and how a text's are
pooled is the manifest's.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.parity import (
    MOVED,
    SPECIAL,
    TOLERANCE,
    Parity,
    measured,
    refuse_stale,
    refuse_state,
    unprovable,
)
from harness.candidate.probe import relative_difference, sides
from harness.candidate.reference import refused
from harness.candidate.side import Piece, Side
from harness.candidate.sparse import SparseSide
from harness.candidate.sparse_reference import sparse_recipe
from harness.errors import HarnessError
from harness.readout.sparse import SparseRecipe, keep_largest, sparse_vector
from harness.release.manifest import Manifest, Tower
from harness.release.prompts import prompt_of
from harness.rows.mask import Floats, Masks

MODES: tuple[Literal["max", "sum"], ...] = ("max", "sum")


@dataclass(frozen=True, slots=True)
class _Compared:
    """One text in one layout: what the release answered [v], and what the reference is given, rows [r, d] and masks."""

    where: str
    found: NDArray[np.float32]
    rows: NDArray[np.float32]
    masks: Masks


@dataclass(frozen=True, slots=True)
class _Proof:
    recipe: SparseRecipe
    compared: Sequence[_Compared]


def sparse_parity(
    encoder: Encoder,
    manifest: Manifest,
    texts: Mapping[str, str],
    tolerance: float = TOLERANCE,
    *,
    suite: str | None = None,
    members: Mapping[Side, Manifest] | None = None,
) -> Parity:
    """As `parity`, for a sparse encoder. A weight counts by its entry in the vocabulary, an absent one as 0."""
    try:
        refuse_stale(encoder, manifest, members or {})
        encoder = encoder.alone()
        shared = "both" in manifest.meaning.towers
        proofs = [
            _Proof(
                sparse_recipe(tower, encoder.sides[side].folder, manifest.place("both" if shared else side)),
                list(_compared(encoder, manifest, tower, side, texts, suite)),
            )
            for side, tower in sides(manifest, ("sparse",), suite).items()
        ]
        found = max((_worst(proof, tolerance) for proof in proofs), key=lambda each: each.largest_difference)
    except HarnessError as refusal:
        return unprovable(refusal, tolerance)
    return found if found.ok else replace(found, text=found.text + _instead(proofs, tolerance))


def _compared(
    encoder: Encoder, manifest: Manifest, tower: Tower, side: Side, texts: Mapping[str, str], suite: str | None
) -> Iterator[_Compared]:
    """The release's answers beside the rows behind them; of one text also behind padding, and without a row."""
    before, own = prompt_of(tower, side, suite), encoder.sides[side]
    if not isinstance(own, SparseSide):
        raise refused("interaction.kind", manifest.meaning.interaction.kind, "that of the encoder, which isn't sparse")
    if manifest.meaning.output.dimension != own.width:
        raise refused("output.dimension", str(manifest.meaning.output.dimension), f"{own.width}, that of the vectors")
    length = own.prompt_length(before)
    special = [known for role, known in tower.input.special_tokens.items() if role.removesuffix("_token") in SPECIAL]
    encoded = encoder.encode(list(texts.values()), side)
    window = tower.input.window
    padding, longest = tower.input.padding_side, tower.input.max_length if window is None else window.size
    for place, (name, text) in enumerate(texts.items()):
        where = f"{side}, text {name!r}"
        if place in encoded.failed:
            raise refused(where, encoded.failed[place], "a vector")
        batch = own.forward([text], before, padding_side=padding, max_length=longest)
        rows = own.states(batch.ids, batch.attended)[0]
        refuse_state(own, tower, rows)
        masks = Masks(batch.attended[0], np.isin(batch.ids[0], special), length)
        yield _Compared(where, _dense(own, encoded.piece(place)), rows, masks)
        if place == 0:
            for layout in _layouts(rows, batch.rows[0], masks):
                [answer] = own.read(layout.logits[None], layout.masks.attended[None], before)
                yield _Compared(f"{where} {layout.name}", _dense(own, answer), layout.rows, layout.masks)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A text's rows laid out otherwise: below the head, and its logits."""

    name: str
    rows: NDArray[np.float32]
    logits: NDArray[np.float32]
    masks: Masks


def _layouts(rows: NDArray[np.float32], logits: NDArray[np.float32], masks: Masks) -> Iterator[_Layout]:
    blank = np.zeros(MOVED, dtype=np.bool_)
    special = np.zeros_like(masks.attended) if masks.special is None else masks.special
    moved = Masks(np.append(blank, masks.attended), np.append(blank, special), masks.prompt_length)
    # Logits that would win if they counted.
    yield _Layout(
        "behind padding",
        np.pad(rows, ((MOVED, 0), (0, 0))),
        np.pad(logits, ((MOVED, 0), (0, 0)), constant_values=2 * np.abs(logits).max(initial=1)),
        moved,
    )
    yield _Layout("without a row that counts", rows, logits, replace(masks, attended=np.zeros_like(masks.attended)))


def _dense(own: SparseSide, piece: Piece) -> NDArray[np.float32]:
    """[v], of a piece that may lack some."""
    return piece.dense(own.width).ravel()


def _worst(proof: _Proof, tolerance: float) -> Parity:
    differences = [
        weight_difference(one.found, sparse_vector(one.rows, one.masks, proof.recipe), proof.recipe.keep, tolerance)
        for one in proof.compared
    ]
    worst = int(np.argmax(differences))
    return measured(differences[worst], tolerance, f"{proof.compared[worst].where}: a weight", "of the largest")


def weight_difference(found: NDArray[np.float32], whole: Floats, keep: int | None, tolerance: float) -> float:
    """Which of two weights is the last to be kept is open where they are nearer to each other than the tolerance."""
    if keep is None:
        return relative_difference(found, whole)
    expected = keep_largest(whole, keep)
    if np.count_nonzero(found) == np.count_nonzero(expected):
        near = np.abs(whole - expected[expected > 0].min(initial=np.inf)) <= tolerance * whole.max(initial=0)
        expected = np.where(near, np.where(found == 0, 0, whole), expected)
    return relative_difference(found, expected)


def _instead(proofs: Sequence[_Proof], tolerance: float) -> str:
    """The pooling under which all would have been well, in words."""
    for mode in MODES:
        others = [replace(proof, recipe=replace(proof.recipe, mode=mode)) for proof in proofs]
        if all(_worst(other, tolerance).ok for other in others):
            return f"; with {mode} pooling it would be right"
    return ""
