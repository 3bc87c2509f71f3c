"""Pairs of texts that are read apart: queries at once, documents chunk by chunk, and only scores are kept."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from harness.candidate.encoder import Encoded, Encoder, Pieces, encode
from harness.candidate.window import InWindows
from harness.errors import Misconfigured
from harness.release.bi import SCORE_TYPES
from harness.release.open import Release
from harness.release.window import best_of_windows
from harness.rows.ragged import Ragged
from harness.run import inverted, maxsim
from harness.run.best import score_best
from harness.run.given import Asked, Floats, Ints, Pairs, Scored, asked_of, shared
from harness.run.output import CutDocument
from harness.run.retrieve import CHUNK, reduce_of, sparse_of
from harness.run.search import score_pairs
from harness.run.windowed import WindowedTexts, windowed
from harness.suite.case import Suite

# Scores [p] of pairs [p, 2] of what was made of queries and of documents, on a grid; NaN where there is none. To the
# bit those of the release's search.
Scorer = Callable[[Release, Encoded, Encoded, Ints, float], Floats]


def _dense(release: Release, queries: Encoded, documents: Encoded, pairs: Ints, grid: float) -> Floats:
    if best_of_windows(release.manifest.meaning):
        return score_best(
            Ragged(queries.values, queries.offsets),
            Ragged(documents.values, documents.offsets),
            pairs,
            grid=grid,
            score_type=SCORE_TYPES[release.score_type],
        )
    return score_pairs(
        queries.vectors,
        documents.vectors,
        pairs,
        grid=grid,
        score_type=SCORE_TYPES[release.score_type],
    )


def _of_rows(release: Release, queries: Encoded, documents: Encoded, pairs: Ints, grid: float) -> Floats:
    return maxsim.score_pairs(
        Ragged(queries.values, queries.offsets),
        Ragged(documents.values, documents.offsets),
        pairs,
        grid=grid,
        reduce=reduce_of(release),
    )


def _sparse(release: Release, queries: Encoded, documents: Encoded, pairs: Ints, grid: float) -> Floats:
    return inverted.score_pairs(
        sparse_of(release, queries),
        sparse_of(release, documents),
        pairs,
        grid=grid,
        score_type=SCORE_TYPES[release.score_type],
    )


SCORERS: Mapping[str, Scorer] = {"bi": _dense, "late": _of_rows, "sparse": _sparse}


def require_scorer(release: Release) -> None:
    """Raises Misconfigured for an interaction that scores no pairs of encoded texts."""
    kind = release.definition.interaction
    if kind not in SCORERS:
        raise Misconfigured(
            f"release {release.name!r}", found=f"a {kind} release, which scores no given documents",
            expected=f"cross, {', '.join(SCORERS)}", mend="Record its outputs instead.",
        )  # fmt: skip


def score_apart(
    pairs: Mapping[str, Pairs],
    releases: Mapping[str, Release],
    encoders: Mapping[str, Encoder],
    suite: Suite,
    grid: float,
    kept: Pieces | None,
) -> dict[str, Scored]:
    """By name, what its release makes of its pairs. What several releases want is read together."""
    if not pairs:
        return {}
    texts = [case.text for case in suite.cases]
    asked = encode([encoders[name].sides["query"] for name in pairs], texts, kept)
    sheets = {
        name: _Sheet(releases[name], each, queries) for (name, each), queries in zip(pairs.items(), asked, strict=True)
    }
    size = min(CHUNK[releases[name].definition.interaction] for name in pairs)
    for part in shared({name: np.unique(each.documents) for name, each in pairs.items()}, size):
        sides = [encoders[name].sides["document"] for name in part.names]
        texts = [suite.documents[row].text for row in part.numbers]
        for name, encoded in zip(part.names, encode(sides, texts, kept), strict=True):
            sheets[name].enter(part.numbers, encoded, suite, grid)
    return {name: sheet.scored(suite) for name, sheet in sheets.items()}


class _Sheet:
    """What one release's pairs came to, filled in with every chunk of documents."""

    def __init__(self, release: Release, pairs: Pairs, queries: Encoded) -> None:
        self._release, self._pairs, self._queries = release, pairs, queries
        self._rows = pairs.rows
        self._scores: Floats = np.full(len(pairs.documents), np.nan)
        self._reasons: dict[int, str] = {}
        self._cut: list[CutDocument] = []
        self._uncovered: dict[int, int] = {}
        self._in_windows: list[InWindows] = []

    def enter(self, documents: Ints, encoded: Encoded, suite: Suite, grid: float) -> None:
        """Scores the pairs of the documents [k] of one chunk, rising rows of the corpus."""
        at = np.flatnonzero(np.isin(self._pairs.documents, documents))
        local = np.searchsorted(documents, self._pairs.documents[at])
        pairs = np.stack([self._rows[at], local], axis=1)
        score = SCORERS[self._release.definition.interaction]
        self._scores[at] = score(self._release, self._queries, encoded, pairs, grid)
        for row, reason in encoded.failed.items():
            self._reasons |= dict.fromkeys(at[local == row].tolist(), reason)
        self._cut += [
            CutDocument(
                suite.documents[documents[row]].id, int(encoded.tokens_kept[row]), int(encoded.tokens_lost[row])
            )
            for row in np.flatnonzero(encoded.tokens_lost)
        ]
        if encoded.in_windows is not None:
            self._in_windows.append(encoded.in_windows.among(documents))
        hidden = np.flatnonzero(encoded.uncovered)
        self._uncovered |= dict(zip(documents[hidden].tolist(), encoded.uncovered[hidden].tolist(), strict=True))

    def scored(self, suite: Suite) -> Scored:
        asked: list[Asked] = asked_of(self._queries, self._pairs.cases)
        hidden = [row for row in self._pairs.cases.tolist() if self._queries.uncovered[row]]
        return Scored(
            self._scores, asked, self._reasons, cut_documents=self._cut, uncovered=self._uncovered,
            uncovered_queries={row: int(self._queries.uncovered[row]) for row in hidden},
            windowed=tuple(self._windowed(suite)),
        )  # fmt: skip

    def _windowed(self, suite: Suite) -> Iterator[WindowedTexts]:
        """Of all queries, whether a document is given for them or not."""
        yield from windowed("query", self._queries.in_windows, cases=[case.id for case in suite.cases])
        documents = [each.id for each in suite.documents]
        yield from windowed("document", InWindows.joined(self._in_windows), documents=documents)
