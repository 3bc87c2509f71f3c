"""Parity: are a release's vectors, or the rows that it keeps, those that its manifest says?

The reference is given the release's own contextual rows, the masks, and the manifest, and nothing else: prompts,
lengths, padding and filling up are the manifest's, the weights of projections are read from the files that it names.
What it computes in float64 is held against what the release really answers.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.probe import relative_difference, sides
from harness.candidate.reference import MODES, recipe, refuse_tokenizer, refused, token_ids
from harness.candidate.side import Piece, Side, SideEncoder
from harness.errors import HarnessError
from harness.identity import file_digest
from harness.readout.reference import DENOMINATORS, Recipe, row_vectors, vector
from harness.release.manifest import Manifest, Tower
from harness.release.prompts import prompt_of
from harness.rows.mask import Floats, Masks, counted

TOLERANCE = 1e-5
# Columns put before the rows, so that positions in the text and positions in the tensor are two things.
MOVED = 3
# To about the smallest length that a normalisation divides by.
SHRUNK = np.float32(1e-13)
# Modes in which the library makes zero, or a row, of a text without counted rows.
GIVES_SOMETHING = ("mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken", "cls")
# Roles of the tokens that a model puts around a text.
SPECIAL = ("cls", "sep", "bos", "eos")
# Rows given tokens that no text may have, together.
EVERY_TOKEN = 4096


@dataclass(frozen=True, slots=True)
class Parity:
    """`largest_difference` of a vector (of rows, of a score) from the reference's, relative to the largest value;
    infinite where the manifest says what cannot be computed. `text` says where that is, and which pooling would fit.
    """

    name: str
    largest_difference: float
    tolerance: float
    ok: bool
    text: str


@dataclass(frozen=True, slots=True)
class Given:
    """What the reference is given of one text: rows [r, d] and masks; and which tokens the rows are of.

    Shapes: ids [r]; filled [r], True where a row fills up the text.
    """

    rows: NDArray[np.float32]
    masks: Masks
    ids: NDArray[np.int64]
    filled: NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class _Compared:
    """One text in one layout, and what the release answered: a vector [w], or rows [l, w]."""

    where: str
    found: NDArray[np.float32]
    given: Given


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
        encoder = encoder.alone()
        held = [
            Held(encoder.sides[side], tower, side, suite)
            for side, tower in sides(manifest, ("pooled", "rows"), suite).items()
        ]
        proofs = [_proof(each, encoder, texts) for each in held]
        found = max((_worst(proof, tolerance) for proof in proofs), key=lambda each: each.largest_difference)
        _refuse_dimension(manifest, proofs)
        for each, proof in zip(held, proofs, strict=True) if found.ok else ():
            _refuse_skipping(each, proof, tolerance)
    except HarnessError as refusal:
        return unprovable(refusal, tolerance)
    if found.ok:
        return found
    return replace(found, text=found.text + _instead(proofs, tolerance))


def measured(largest: float, tolerance: float, what: str, of: str) -> Parity:
    """By the largest difference: of what, and relative to what."""
    return Parity("parity", largest, tolerance, largest <= tolerance, f"{what} is off by {largest:.2g} {of}")


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


@dataclass(frozen=True, slots=True)
class Held:
    """A side, and what its manifest says of it on one suite, or outside of any."""

    own: SideEncoder
    tower: Tower
    side: Side
    suite: str | None

    @property
    def prompt(self) -> str:
        return prompt_of(self.tower, self.side, self.suite)

    def given(self, text: str) -> Given:
        """A text's contextual rows and masks, as the manifest says; of one that is read in windows, the first one's.

        Raises NotAdmitted for a manifest that the tokenizer or the model contradicts.
        """
        said, about = self.own.said_by(self.tower), self.tower.input
        longest = about.max_length if about.window is None else about.window.size
        batch = said.forward([text], self.prompt, padding_side=about.padding_side, max_length=longest)
        refuse_state(self.own, self.tower, batch.rows[0])
        return self.masked(batch.rows[0], batch.attended[0], batch.ids[0], batch.filled[0])

    def masked(
        self,
        rows: NDArray[np.float32],
        attended: NDArray[np.bool_],
        ids: NDArray[np.int64],
        filled: NDArray[np.bool_],
    ) -> Given:
        """Rows with the masks that the manifest says of their tokens."""
        roles = self.tower.input.special_tokens.items()
        special = [known for role, known in roles if role.removesuffix("_token") in SPECIAL]
        skipped = token_ids(self.own.tokenizer, self.tower.rows.skipped.get(self.side, []), "rows.skipped")
        masks = Masks(
            attended,
            np.isin(ids, special),
            self.own.prompt_length(self.prompt),
            np.isin(ids, skipped) if skipped else None,
            filled if self.tower.rows.expansion.get(self.side) else None,
        )
        return Given(rows, masks, ids, filled)

    def answer(self, given: Given) -> NDArray[np.float32]:
        """What the release's own modules make of rows laid out otherwise."""
        attended, before = given.masks.attended, self.prompt
        [piece] = self.own.read(given.rows[None], attended[None], before, given.ids[None], given.filled[None])
        return self.kept(piece)

    def kept(self, piece: Piece) -> NDArray[np.float32]:
        """A vector [w], or rows [l, w]."""
        return piece.values[0] if self.tower.readout.family == "pooled" else piece.values


def computed(one: Given, by: Recipe) -> Floats:
    """The vector [w] or the rows [l, w] of a text by the reference."""
    return vector(one.rows, one.masks, by) if by.modes else row_vectors(one.rows, one.masks, by)


def _proof(held: Held, encoder: Encoder, texts: Mapping[str, str]) -> _Proof:
    by = recipe(held.tower, held.own.folder)
    compared = list(_compared(held, by, encoder, texts))
    if not compared:
        raise refused(held.side, "no text of which a row counts", "texts of which some do")
    return _Proof(by, compared)


def _compared(held: Held, by: Recipe, encoder: Encoder, texts: Mapping[str, str]) -> Iterator[_Compared]:
    """The release's answers beside the rows behind them. Nothing is kept of a text without rows that count.

    Besides as encoded, in layouts that no text may ever bring about, but that tell the policies of a readout apart:
    the rows are the release's own, and its own modules read them out.
    """
    encoded, first = encoder.encode(list(texts.values()), held.side), True
    for place, (name, text) in enumerate(texts.items()):
        where = f"{held.side}, text {name!r}"
        if place in encoded.failed:
            if by.modes or counted(held.given(text).masks, by.counting).any():
                raise refused(where, encoded.failed[place], "a vector, or rows")
            continue
        plain = held.given(text)
        yield _Compared(where, held.kept(encoded.piece(place)), plain)
        for layout in _layouts(held, plain, first):
            yield _Compared(f"{where} {layout.name}", held.answer(layout.given), layout.given)
        first = False


@dataclass(frozen=True, slots=True)
class _Layout:
    """A text's rows laid out otherwise."""

    name: str
    given: Given


def _layouts(held: Held, plain: Given, first: bool) -> Iterator[_Layout]:
    """Padding before the text; and of one text, rows of almost no length and, where zero or a row is given, none."""
    at, modes = plain.masks.attended | plain.filled, held.tower.readout.modes
    rows, attended, ids, filled = plain.rows[at], plain.masks.attended[at], plain.ids[at], plain.filled[at]
    padding = np.full((MOVED, rows.shape[1]), 2 * np.abs(rows).max(initial=1), dtype=np.float32)
    blank, unread = np.zeros(MOVED, dtype=np.bool_), np.zeros(MOVED, dtype=np.int64)
    moved = held.masked(
        np.concatenate([padding, rows]), np.append(blank, attended), np.append(unread, ids), np.append(blank, filled)
    )
    yield _Layout("behind padding", moved)
    if first:
        yield _Layout("with rows of almost no length", held.masked(rows * SHRUNK, attended, ids, filled))
        if len(modes) == 1 and modes[0] in GIVES_SOMETHING:
            yield _Layout("without a row that counts", held.masked(rows, ~attended, ids, filled))


def _worst(proof: _Proof, tolerance: float) -> Parity:
    found = [(one, computed(one.given, proof.recipe)) for one in proof.compared]
    differences = [relative_difference(expected, one.found) for one, expected in found]
    worst = int(np.argmax(differences))
    largest, (one, expected) = differences[worst], found[worst]
    what = "vector" if one.found.ndim == 1 else "largest row"
    shown = measured(largest, tolerance, f"{one.where}: the {what}", "of its largest value")
    if one.found.shape == expected.shape:
        return shown
    return replace(shown, text=f"{one.where}: {_shape(one.found)}, by the manifest {_shape(expected)}")


def _shape(values: NDArray[np.floating]) -> str:
    return f"{values.shape[-1]} dimensions" if values.ndim == 1 else "{} rows of {} dimensions".format(*values.shape)


def _instead(proofs: Sequence[_Proof], tolerance: float) -> str:
    """The one pooling mode under which all would have been well, in words."""
    for mode in MODES if proofs[0].recipe.modes else ():
        weights: Literal["content-relative", "none"] = "content-relative" if mode == "weightedmean" else "none"
        try:
            others = [
                replace(
                    proof,
                    recipe=replace(proof.recipe, modes=(mode,), denominators=(DENOMINATORS[mode],), weights=weights),
                    compared=[one for one in proof.compared if one.given.masks.attended.any()],
                )
                for proof in proofs
            ]
            if all(_worst(other, tolerance).ok for other in others):
                return f"; with {mode} pooling it would be right"
        except HarnessError:
            continue
    return ""


def refuse_state(encoder: SideEncoder, tower: Tower, rows: NDArray[np.float32]) -> None:
    """The library hands on the last layer's rows alone, of its tokenizer's tokens. Raises NotAdmitted for a manifest
    that says otherwise.
    """
    refuse_tokenizer(encoder.tokenizer, tower)
    state = tower.state
    if state.width != rows.shape[1]:
        raise refused("state.width", str(state.width), f"{rows.shape[1]}, that of the rows")
    if state.layers != [encoder.layers] or state.mixture is not None or state.scale is not None:
        raise refused("state.layers", f"{state.layers}, mixture {state.mixture}", f"the last alone, {encoder.layers}")


def _refuse_skipping(held: Held, proof: _Proof, tolerance: float) -> None:
    """Of every token that the tokenizer has: the texts bring few of those that a side may skip."""
    if held.tower.readout.family != "rows":
        return
    rows, size = proof.compared[0].given.rows, len(held.own.tokenizer)
    for start in range(0, size, EVERY_TOKEN):
        ids = np.arange(start, min(start + EVERY_TOKEN, size))
        attended, filled = np.ones(len(ids), dtype=np.bool_), np.zeros(len(ids), dtype=np.bool_)
        one = held.masked(rows[ids % len(rows)], attended, ids, filled)
        found, count = held.answer(one), int(counted(one.masks, proof.recipe.counting).sum())
        same = count == len(found)
        if not same or (count and relative_difference(found, computed(one, proof.recipe)) > tolerance):
            among = f"{count} of {len(ids)} tokens from {start} that count"
            raise refused(f"{held.side}, rows.skipped", among, f"{len(found)}, or others")


def _refuse_dimension(manifest: Manifest, proofs: Sequence[_Proof]) -> None:
    said = manifest.meaning.output.dimension
    for width in (proof.compared[0].found.shape[-1] for proof in proofs):
        if said != width:
            raise refused("output.dimension", str(said), f"{width}, that of what is kept")
