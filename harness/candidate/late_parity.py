"""Parity of late interaction: are the rows those that the manifest says, and is the score what it says of them?

The rows are proven as any encoder's are. Then each probe text as a query meets each as a document: the score that the
library gives to the release's own rows is held against that of the reference's rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.late import LateEncoder
from harness.candidate.parity import TOLERANCE, Held, Parity, computed, measured, parity, unprovable
from harness.candidate.reference import recipe, refused
from harness.candidate.side import SIDES, Side
from harness.errors import HarnessError
from harness.readout.interaction import maxsim
from harness.release.describe.late import SCHEMA
from harness.release.manifest import Manifest
from harness.rows.mask import Floats


def late_parity(
    encoder: Encoder,
    manifest: Manifest,
    texts: Mapping[str, str],
    tolerance: float = TOLERANCE,
    *,
    suite: str | None = None,
    members: Mapping[Side, Manifest] | None = None,
) -> Parity:
    """As `parity`, of rows, and of scores relative to the largest: the worse of the two."""
    rows = parity(encoder, manifest, texts, tolerance, suite=suite, members=members)
    if not rows.ok:
        return rows
    try:
        _refuse_score(manifest)
        scores = _scores(encoder.alone(), manifest, texts, tolerance, suite)
    except HarnessError as refusal:
        return unprovable(refusal, tolerance)
    return scores if scores.largest_difference > rows.largest_difference else rows


def _refuse_score(manifest: Manifest) -> None:
    meaning = manifest.meaning
    for field, found, expected in (
        ("interaction.maxsim_ties", meaning.interaction.maxsim_ties, "first"),
        ("interaction.token_schema", meaning.interaction.token_schema, SCHEMA),
        ("output.kind", meaning.output.kind, "rows"),
        ("score.type", meaning.score.type, "maxsim"),
    ):
        if found != expected:
            raise refused(field, str(found), expected)


def _scores(
    encoder: Encoder, manifest: Manifest, texts: Mapping[str, str], tolerance: float, suite: str | None
) -> Parity:
    if not isinstance(encoder, LateEncoder):
        raise refused("interaction.kind", manifest.meaning.interaction.kind, "that of the encoder, which keeps vectors")
    queries, documents = (_side(encoder, manifest, texts, side, suite) for side in SIDES)
    found = encoder.similarity(queries.found, documents.found)
    expected = np.array([[_score(manifest, one, other) for other in documents.computed] for one in queries.computed])
    differences = np.abs(found - expected) / np.abs(expected).max()
    query, document = np.unravel_index(int(np.argmax(differences)), differences.shape)
    where = f"query {queries.names[query]!r} and document {documents.names[document]!r}"
    return measured(float(differences[query, document]), tolerance, f"{where}: the score", "of the largest")


@dataclass(frozen=True, slots=True)
class _Texts:
    """Those of one side of which a row counts: the rows [l, w] as the release gives and as the reference computes."""

    names: tuple[str, ...]
    found: list[NDArray[np.float32]]
    computed: list[Floats]


def _side(encoder: Encoder, manifest: Manifest, texts: Mapping[str, str], side: Side, suite: str | None) -> _Texts:
    held = Held(encoder.sides[side], manifest.meaning.towers[side], side, suite)
    by, encoded = recipe(held.tower, held.own.folder), encoder.encode(list(texts.values()), side)
    there = [place for place in range(len(texts)) if place not in encoded.failed]
    names = tuple(texts)
    return _Texts(
        tuple(names[place] for place in there),
        [encoded.piece(place).values for place in there],
        [computed(held.given(texts[names[place]]), by) for place in there],
    )


def _score(manifest: Manifest, query: Floats, document: Floats) -> float:
    kind = manifest.meaning.interaction.maxsim
    if kind is None:
        raise refused("interaction.maxsim", "none", "sum or mean")
    return maxsim(query, document).score / (len(query) if kind == "mean" else 1)
