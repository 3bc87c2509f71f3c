"""Parity: are a release's vectors those that its manifest says?

The reference is given the release's own contextual rows, the masks, and the manifest, and nothing else: prompts,
lengths and padding are the manifest's, the weights of projections are read from the files that it names. What it
computes in float64 is held against what the release really answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.probe import prompt, relative_difference, sides
from harness.candidate.reference import MODES, recipe, refused
from harness.candidate.side import Side, SideEncoder
from harness.errors import HarnessError
from harness.identity import file_digest
from harness.readout.reference import DENOMINATORS, Recipe, vector
from harness.release.manifest import Manifest, Tower
from harness.rows.mask import Masks

TOLERANCE = 1e-5
# Columns put before the rows, so that positions in the text and positions in the tensor are two things.
MOVED = 3
# To about the smallest length that a normalisation divides by.
SHRUNK = np.float32(1e-13)
# Modes in which the library makes zero, or a row, of a text without counted rows.
GIVES_SOMETHING = ("mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "cls")
# Roles of the tokens that a model puts around a text.
SPECIAL = ("cls", "sep", "bos", "eos")


@dataclass(frozen=True, slots=True)
class Parity:
    """`largest_difference` of a vector from the reference's, relative to its largest value; infinite where the
    manifest says what cannot be computed. `text` says where that is, and which pooling would fit instead.
    """

    name: str
    largest_difference: float
    tolerance: float
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class _Compared:
    """One text in one layout: what the release answered [w], and what the reference is given, rows [r, d] and masks."""

    where: str
    found: NDArray[np.float32]
    rows: NDArray[np.float32]
    masks: Masks


@dataclass(frozen=True, slots=True)
class _Proof:
    """One side: what the manifest says, and what is held against it."""

    recipe: Recipe
    compared: Sequence[_Compared]


def parity(
    encoder: Encoder,
    manifest: Manifest,
    texts: Mapping[str, str],
    tolerance: float = TOLERANCE,
    *,
    suite: str | None = None,
    members: Mapping[Side, Manifest] | None = None,
) -> Parity:
    """Holds a loaded release against its manifest on texts by ID, on every side of it.

    The encoder has the prompts that the manifest states for `suite`, or outside of any suite. `members`: by side, the
    manifest that its folder was described in, where that isn't this one. A manifest that contradicts itself or its
    files fails as one whose vectors differ does; nothing is raised.
    """
    try:
        refuse_stale(encoder, manifest, members or {})
        proofs = [
            _Proof(recipe(tower, encoder.sides[side].folder), list(_compared(encoder, tower, side, texts, suite)))
            for side, tower in sides(manifest, suite=suite).items()
        ]
        found = max((_worst(proof, tolerance) for proof in proofs), key=lambda each: each.largest_difference)
        _refuse_dimension(manifest, proofs)
    except HarnessError as refusal:
        return unprovable(refusal, tolerance)
    if found.ok:
        return found
    return replace(found, text=found.text + _instead(proofs, tolerance))


def unprovable(refusal: HarnessError, tolerance: float) -> Parity:
    """Of a manifest that the reference cannot follow."""
    text = f"{refusal.subject}: {refusal.found}; expected: {refusal.expected}"
    return Parity("parity", float("inf"), tolerance, False, text)


def refuse_stale(encoder: Encoder, manifest: Manifest, members: Mapping[Side, Manifest]) -> None:
    """Raises NotAdmitted where a file that a side was described from changed since."""
    for side, own in encoder.sides.items():
        if changed := stale(members.get(side, manifest), own.folder):
            raise refused("evidence.files", f"a stale record, as {', '.join(changed)} changed", "the files as recorded")


def stale(manifest: Manifest, folder: Path) -> tuple[str, ...]:
    """Files that the manifest was read from and that are gone or changed, sorted."""
    said = sorted(manifest.evidence.files.items())
    return tuple(name for name, known in said if not (folder / name).is_file() or file_digest(folder / name) != known)


def _compared(
    encoder: Encoder, tower: Tower, side: Side, texts: Mapping[str, str], suite: str | None
) -> Iterator[_Compared]:
    """The release's answers beside the rows behind them.

    Besides as encoded, in layouts that no text may ever bring about, but that tell the policies of a readout apart:
    the rows are the release's own, and its own modules read them out.
    """
    before, own = prompt(tower, side, suite), encoder.sides[side]
    length = own.prompt_length(before)
    special = [known for role, known in tower.input.special_tokens.items() if role.removesuffix("_token") in SPECIAL]
    encoded = encoder.encode(list(texts.values()), side)
    padding, longest = tower.input.padding_side, tower.input.max_length
    for place, (name, text) in enumerate(texts.items()):
        if place in encoded.failed:
            raise refused(f"{side}, text {name!r}", encoded.failed[place], "a vector")
        batch = own.forward([text], before, padding_side=padding, max_length=longest)
        rows, masks = batch.rows[0], Masks(batch.attended[0], np.isin(batch.ids[0], special), length)
        refuse_state(own, tower, rows)
        yield _Compared(f"{side}, text {name!r}", encoded.vectors[place], rows, masks)
        for layout in _layouts(rows, masks, tower, first=place == 0):
            answer = own.read(layout.rows[None], layout.masks.attended[None], before)[0].values[0]
            yield _Compared(f"{side}, text {name!r} {layout.name}", answer, layout.rows, layout.masks)


@dataclass(frozen=True, slots=True)
class _Layout:
    """A text's rows laid out otherwise."""

    name: str
    rows: NDArray[np.float32]
    masks: Masks


def _layouts(rows: NDArray[np.float32], masks: Masks, tower: Tower, first: bool) -> Iterator[_Layout]:
    """Padding before the text; and of one text, rows of almost no length and, where zero or a row is given, none."""
    at = masks.attended
    special = np.zeros_like(at) if masks.special is None else masks.special
    rows, whole = rows[at], Masks(at[at], special[at], masks.prompt_length)
    padding = np.full((MOVED, rows.shape[1]), 2 * np.abs(rows).max(initial=1), dtype=np.float32)
    blank = np.zeros(MOVED, dtype=np.bool_)
    moved = Masks(np.append(blank, whole.attended), np.append(blank, special[at]), masks.prompt_length)
    yield _Layout("behind padding", np.concatenate([padding, rows]), moved)
    if first:
        yield _Layout("with rows of almost no length", rows * SHRUNK, whole)
        if tower.readout.modes[0] in GIVES_SOMETHING and len(tower.readout.modes) == 1:
            yield _Layout("without a row that counts", rows, replace(whole, attended=~whole.attended))


def _worst(proof: _Proof, tolerance: float) -> Parity:
    differences = [relative_difference(vector(one.rows, one.masks, proof.recipe), one.found) for one in proof.compared]
    worst = int(np.argmax(differences))
    largest, where = differences[worst], proof.compared[worst].where
    text = f"{where}: the vector is off by {largest:.2g} of its largest value"
    return Parity("parity", largest, tolerance, largest <= tolerance, text)


def _instead(proofs: Sequence[_Proof], tolerance: float) -> str:
    """The one pooling mode under which all would have been well, in words."""
    for mode in MODES:
        weights: Literal["content-relative", "none"] = "content-relative" if mode == "weightedmean" else "none"
        try:
            others = [
                replace(
                    proof,
                    recipe=replace(proof.recipe, modes=(mode,), denominators=(DENOMINATORS[mode],), weights=weights),
                    compared=[one for one in proof.compared if one.masks.attended.any()],
                )
                for proof in proofs
            ]
            if all(_worst(other, tolerance).ok for other in others):
                return f"; with {mode} pooling it would be right"
        except HarnessError:
            continue
    return ""


def refuse_state(encoder: SideEncoder, tower: Tower, rows: NDArray[np.float32]) -> None:
    """The library hands on the last layer's rows alone. Raises NotAdmitted for a manifest that says otherwise."""
    state = tower.state
    if state.width != rows.shape[1]:
        raise refused("state.width", str(state.width), f"{rows.shape[1]}, that of the rows")
    if state.layers != [encoder.layers] or state.mixture is not None or state.scale is not None:
        raise refused("state.layers", f"{state.layers}, mixture {state.mixture}", f"the last alone, {encoder.layers}")


def _refuse_dimension(manifest: Manifest, proofs: Sequence[_Proof]) -> None:
    said = manifest.meaning.output.dimension
    for width in (len(proof.compared[0].found) for proof in proofs):
        if said != width:
            raise refused("output.dimension", str(said), f"{width}, that of the vectors")
