"""Pairs that are read together: each through every cross-encoder that wants it, a chunk of them at a time."""

from collections.abc import Iterator, Mapping

import numpy as np

from harness.candidate.cross import Pair, PairEncoder
from harness.candidate.encoder import Encoded, Pieces, encode
from harness.candidate.window import InWindows
from harness.run.given import Asked, Floats, Ints, Pairs, Scored, shared
from harness.run.windowed import WindowedTexts, windowed
from harness.suite.case import Suite

# Pairs that are read at a time.
PAIRS = 8192


def score_joint(
    pairs: Mapping[str, Pairs], models: Mapping[str, PairEncoder], suite: Suite, grid: float, kept: Pieces | None
) -> dict[str, Scored]:
    """By name, what its model makes of its pairs. What several models want is tokenised and, where they are alike,
    computed once.
    """
    count = len(suite.documents)
    sheets = {name: _Sheet(models[name], each, count) for name, each in pairs.items()}
    for part in shared({name: sheet.codes for name, sheet in sheets.items()}, PAIRS):
        texts = [Pair(suite.cases[code // count].text, suite.documents[code % count].text) for code in part.numbers]
        for name, encoded in zip(part.names, encode([models[name] for name in part.names], texts, kept), strict=True):
            sheets[name].enter(part.numbers, encoded, grid)
    return {name: sheet.scored(suite) for name, sheet in sheets.items()}


class _Sheet:
    """What one model's pairs came to, filled in chunk by chunk. `codes` [p] number the pairs of the whole suite, which
    has so many documents.
    """

    def __init__(self, model: PairEncoder, pairs: Pairs, documents: int) -> None:
        self._model, self._pairs = model, pairs
        self.codes = pairs.rows * documents + pairs.documents
        self._order = np.argsort(self.codes)
        count = len(self.codes)
        self._scores: Floats = np.full(count, np.nan)
        self._logits = np.full((count, model.width), np.nan, dtype=np.float32)
        self._tokens: Ints = np.zeros((2, count), dtype=np.int64)
        self._shares: Ints = np.zeros((2, count, 2), dtype=np.int64)
        self._reasons: dict[int, str] = {}
        self._uncovered: dict[int, int] = {}
        self._in_windows: list[InWindows] = []

    def enter(self, codes: Ints, encoded: Encoded, grid: float) -> None:
        at = self._order[np.searchsorted(self.codes, codes, sorter=self._order)]
        self._scores[at] = self._model.scores(encoded.values, grid)
        self._logits[at] = encoded.values
        self._tokens[:, at] = encoded.tokens_kept, encoded.tokens_lost
        if encoded.shares_kept is not None and encoded.shares_lost is not None:
            self._shares[:, at] = encoded.shares_kept, encoded.shares_lost
        self._reasons |= {int(at[position]): reason for position, reason in encoded.failed.items()}
        if encoded.in_windows is not None:
            self._in_windows.append(encoded.in_windows.among(at))
        for position in np.flatnonzero(encoded.uncovered):
            self._uncovered[int(self._pairs.documents[at[position]])] = int(encoded.uncovered[position])

    def scored(self, suite: Suite) -> Scored:
        return Scored(
            self._scores, tuple(self._asked(suite)), self._reasons, self._logits, self._shares,
            uncovered=self._uncovered, windowed=tuple(self._windowed(suite)),
        )  # fmt: skip

    def _windowed(self, suite: Suite) -> Iterator[WindowedTexts]:
        """Pairs, by their queries and documents."""
        cases = [suite.cases[row].id for row in self._pairs.rows.tolist()]
        documents = [suite.documents[row].id for row in self._pairs.documents.tolist()]
        yield from windowed("pair", InWindows.joined(self._in_windows), cases=cases, documents=documents)

    def _asked(self, suite: Suite) -> Iterator[Asked]:
        """Of a query, the tokens of that one of its pairs which lost most."""
        for row, start, end in zip(self._pairs.cases, self._pairs.offsets, self._pairs.offsets[1:], strict=False):
            digest = self._model.query_digest(suite.cases[row].text)
            kept, lost = self._tokens[:, start:end]
            most = int(np.argmax(lost)) if len(lost) else None
            yield Asked(digest, 0 if most is None else int(kept[most]), 0 if most is None else int(lost[most]))
