"""Invariance probes: does a text's vector, or rows, depend on how it was padded, batched and ordered?

Every text is encoded alone and unpadded first; what every other arrangement makes of it is held against that by the
text's ID. A release answers for its own padding side, for batches and for order; what the other side changes is no
fault, but evidence of a policy that whoever serves the model otherwise must know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.side import Piece, Side, SideEncoder
from harness.errors import Misconfigured
from harness.release.manifest import Manifest, Tower
from harness.release.prompts import prompt_of

Padding: TypeAlias = Literal["left", "right"]
Pieces: TypeAlias = Mapping[str, Piece]

TOLERANCE = 1e-4
# Columns of padding that a probe adds, few enough to fit most models' positions.
ADDED = 5
# Families of readout of which something is kept for each text.
KEPT = ("pooled", "rows", "sparse")
# Beyond so many tokens a text says nothing more about padding, and only takes time.
LONGEST = 512

PROBE_TEXTS: Mapping[str, str] = {
    "one word": "password",
    "short": "How do I reset my password?",
    "two sentences": "The wing stalls at a high angle. Lift is lost, and drag rises.",
    "long": " ".join(["Heat flows from the plate into the layer of air that moves along it, and is carried off."] * 3),
    "unicode": "Café ÜBER naïve — ½ ﬁne e\u0301 日本語のテキスト \U0001f600",
    "marks and figures": "v2.0-rc1: 1,234.56 % (see https://example.org/a?b=c#d)",
    "blanks": "  a\tb\n c  ",
    "empty": "",
    "empty after stripping": " \t\n ",
}


def probe_texts(max_length: int) -> Mapping[str, str]:
    """The probe texts by ID, with one that is longer than `max_length` tokens whatever the tokenizer."""
    return {**PROBE_TEXTS, "truncated": " ".join(["flow of air over a wing"] * (max_length // 6 + 2))}


@dataclass(frozen=True, slots=True)
class Probe:
    """One arrangement. `largest_difference`: over all texts, of what is kept of one from what is kept of it alone,
    relative to the largest value of that. Only a `fatal` probe that isn't `ok` refuses a release. `policy`: what a
    difference reveals, None where there is none.
    """

    name: str
    largest_difference: float
    tolerance: float
    ok: bool
    fatal: bool
    policy: str | None


def relative_difference(found: NDArray[np.floating], expected: NDArray[np.floating]) -> float:
    """Largest |found - expected| of two vectors over the largest value of both.

    Infinite where one isn't finite, or has another shape.
    """
    if found.shape != expected.shape or not (np.isfinite(found).all() and np.isfinite(expected).all()):
        return float("inf")
    largest = max(np.abs(found).max(initial=0), np.abs(expected).max(initial=0))
    return float(np.abs(found - expected).max(initial=0) / largest) if largest else 0.0


def probes(encoder: Encoder, manifest: Manifest, tolerance: float = TOLERANCE) -> tuple[Probe, ...]:
    """Every probe, the worst of all sides in each. Raises Stopped where the model raises.

    Of a release in windows a text is one of them, cut to its size: how they are put together is proven apart.
    """
    encoder = encoder.alone()
    found: dict[str, Probe] = {}
    for side, tower in sides(manifest, KEPT).items():
        for probe in _Arranged(encoder, tower, side, tolerance).probes():
            before = found.get(probe.name)
            if before is None or probe.largest_difference > before.largest_difference:
                found[probe.name] = probe
    return tuple(found.values())


def sides(manifest: Manifest, families: Sequence[str] = ("pooled",), suite: str | None = None) -> Mapping[Side, Tower]:
    """The tower of each side, a side with the same tower and prompt as one before left out.

    Raises Misconfigured for a release without a tower of one of the families for queries, or for documents.
    """
    towers = manifest.meaning.towers
    found: dict[Side, Tower] = {}
    for side in ("query", "document"):
        tower = towers.get(side, towers.get("both"))
        if tower is None or tower.readout.family not in families:
            raise Misconfigured(
                f"release {manifest.identity.name}", found=f"the towers {', '.join(towers) or 'none'}",
                expected=f"a {' or '.join(families)} tower for queries and one for documents",
                mend="Only such an encoder can be probed in this way.",
            )  # fmt: skip
        mine = prompt_of(tower, side, suite)
        if not any(other == tower and prompt_of(other, one, suite) == mine for one, other in found.items()):
            found[side] = tower
    return found


class _Arranged:
    """The texts of one side, in every arrangement."""

    def __init__(self, encoder: Encoder, tower: Tower, side: Side, tolerance: float) -> None:
        self._encoder, self._tower, self._side, self._tolerance = encoder, tower, side, tolerance
        self._own: SideEncoder = encoder.sides[side]
        self._declared: Padding = tower.input.padding_side
        self._prompt = prompt_of(tower, side)
        self._texts = probe_texts(min(self._own.max_length, LONGEST))
        self._alone = {name: self._own.forward([text], self._prompt, width=0) for name, text in self._texts.items()}

    def probes(self) -> list[Probe]:
        names, turned = list(self._texts), list(self._texts)[::-1]
        mixed = [names[:1], names[1:3], names[3:4], names[4:9], names[9:]]
        found = [self._padded("right"), self._padded("left")]
        found += [self._told(f"batches of {size}", self._batched(_cut(names, size))) for size in (1, 2, 8)]
        found.append(self._told("batches of mixed size", self._batched([batch for batch in mixed if batch])))
        found.append(self._told("another order", self._batched(_cut(turned, 4))))
        found.append(self._told("padding to a multiple of 8", self._batched(_cut(names, 2), multiple=8)))
        encoded = self._encoder.encode(list(self._texts.values()), self._side)
        found.append(self._told("as evaluated", {name: encoded.piece(row) for row, name in enumerate(names)}))
        return found

    def _told(self, name: str, pieces: Pieces, fatal: bool = True, policy: str | None = None) -> Probe:
        largest = max(self._moved(text, piece) for text, piece in pieces.items())
        return Probe(name, largest, self._tolerance, largest <= self._tolerance, fatal, policy)

    def _moved(self, name: str, piece: Piece) -> float:
        """How far what is kept of a text is from what is kept of it alone."""
        width, [alone] = self._own.width, self._alone[name].pieces
        return relative_difference(piece.dense(width), alone.dense(width))

    def _batched(self, batches: Sequence[Sequence[str]], multiple: int = 1) -> Pieces:
        pieces: dict[str, Piece] = {}
        for batch in batches:
            longest = max(len(self._alone[name].ids[0]) for name in batch)
            width = min(-(-longest // multiple) * multiple, max(longest, self._own.widest))
            texts = [self._texts[name] for name in batch]
            found = self._own.forward(texts, self._prompt, width=width, padding_side=self._declared).pieces
            pieces.update(zip(batch, found, strict=True))
        return pieces

    def _padded(self, padding: Padding) -> Probe:
        found = {
            name: self._own.forward([text], self._prompt, width=self._room(name), padding_side=padding)
            for name, text in self._texts.items()
        }
        policies = []
        rows = [
            relative_difference(each.rows[each.attended], alone.rows[alone.attended])
            for each, alone in ((each, self._alone[name]) for name, each in found.items())
        ]
        if max(rows) > self._tolerance:
            policies.append(f"absolute positions under {padding} padding")
        policies += self._by_column(padding)
        pieces = {name: each.pieces[0] for name, each in found.items()}
        return self._told(f"{padding} padding", pieces, padding == self._declared, "; ".join(policies) or None)

    def _by_column(self, padding: Padding) -> list[str]:
        """What the readout takes from the physical column: the same rows are moved, and nothing else."""
        differences = []
        for name, alone in self._alone.items():
            blank = self._room(name) - alone.rows.shape[1]
            pads = (blank, 0) if padding == "left" else (0, blank)
            # Padding of zeros would go unseen in a sum.
            conspicuous = 2 * np.abs(alone.rows).max()
            rows = np.pad(alone.rows, ((0, 0), pads, (0, 0)), constant_values=conspicuous)
            attended, filled = (np.pad(each, ((0, 0), pads)) for each in (alone.attended, alone.filled))
            [moved] = self._own.read(rows, attended, self._prompt, np.pad(alone.ids, ((0, 0), pads)), filled)
            differences.append(self._moved(name, moved))
        if max(differences) <= self._tolerance:
            return []
        named = {
            "cls": "physical first row",
            "lasttoken": "physical last row",
            "weightedmean": "weighted mean over physical positions",
        }
        return [named[mode] for mode in self._tower.readout.modes if mode in named] or ["padding counts in the readout"]

    def _room(self, name: str) -> int:
        """Columns for a padded text, as far as the model has positions."""
        length = len(self._alone[name].ids[0])
        return max(length, min(length + ADDED, self._own.widest))


def _cut(names: Sequence[str], size: int) -> list[Sequence[str]]:
    return [names[start : start + size] for start in range(0, len(names), size)]
