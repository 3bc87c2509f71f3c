"""Documents that a release is given to rank, as pairs with their queries, and what scoring makes of the pairs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoded
from harness.run.output import CutDocument
from harness.run.windowed import WindowedTexts
from harness.suite.case import Candidate, Suite

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Given:
    """The documents of one case, each once, with the first stage's scores, NaN where not known.

    Shapes: documents, scores [c].
    """

    documents: NDArray[np.object_]
    scores: Floats


def given_of(candidates: Mapping[str, Sequence[Candidate]], *, drop_self: bool) -> dict[str, Given]:
    """A suite's own lists by case; without the document that has the query's ID where it is to be dropped."""
    found = {}
    for case_id, some in candidates.items():
        kept = [each for each in some if not (drop_self and each.document_id == case_id)]
        scores = [np.nan if each.score is None else each.score for each in kept]
        documents = np.array([each.document_id for each in kept], dtype=object)
        found[case_id] = Given(documents, np.array(scores, dtype=np.float64))
    return found


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs case after case. Shapes: offsets [n + 1] over cases [n]; cases and documents [p] as rows of the suite's.

    `cases` are those that have a list, which may be empty.
    """

    cases: Ints
    offsets: Ints
    documents: Ints

    @classmethod
    def of(cls, given: Mapping[str, Given], suite: Suite) -> "Pairs":
        place = {each.id: row for row, each in enumerate(suite.documents)}
        cases = [row for row, case in enumerate(suite.cases) if case.id in given]
        some = [given[suite.cases[row].id].documents for row in cases]
        documents = [place[each] for documents in some for each in documents]
        offsets = np.cumsum([0, *(len(documents) for documents in some)], dtype=np.int64)
        return cls(np.array(cases, dtype=np.int64), offsets, np.array(documents, dtype=np.int64))

    @property
    def rows(self) -> Ints:
        """[p], the suite's row of each pair's case."""
        return np.repeat(self.cases, np.diff(self.offsets))


@dataclass(frozen=True, slots=True)
class Asked:
    """What was read of one query: the digest of the rendered text, tokens kept and lost; `failed` says why nothing."""

    digest: str
    tokens_kept: int
    tokens_lost: int
    failed: str | None = None


@dataclass(frozen=True, slots=True)
class Scored:
    """What became of p pairs of n cases.

    Shapes: scores [p], NaN where there is none; `reasons`: why a pair raised, by its position; `asked` [n]. Of texts
    that are read together: logits [p, l] and shares [2, p, 2], the tokens kept and lost of query and document.
    `uncovered`: characters that no window shows, by the document's row; `uncovered_queries` by the case's. `windowed`:
    texts, or pairs, that were read in several.
    """

    scores: Floats
    asked: Sequence[Asked]
    reasons: Mapping[int, str] = field(default_factory=dict)
    logits: NDArray[np.float32] | None = None
    shares: Ints | None = None
    cut_documents: Sequence[CutDocument] = ()
    uncovered: Mapping[int, int] = field(default_factory=dict)
    uncovered_queries: Mapping[int, int] = field(default_factory=dict)
    windowed: tuple[WindowedTexts, ...] = ()


def shared(wanted: Mapping[str, Ints], size: int) -> Iterator["Wanted"]:
    """Parts of all that is wanted, each with those who want the whole of it, so that it is made once for them all.

    `wanted`: by name, what is wanted as numbers. Parts hold at most `size`, rising, each number in one of them.
    """
    if not wanted:
        return
    every = np.unique(np.concatenate(list(wanted.values())))
    wants = np.array([np.isin(every, each) for each in wanted.values()])
    patterns, which = np.unique(wants, axis=1, return_inverse=True)
    for at, pattern in enumerate(patterns.T):
        names = tuple(name for name, yes in zip(wanted, pattern, strict=True) if yes)
        mine = every[which.reshape(-1) == at]
        for start in range(0, len(mine), size):
            yield Wanted(names, mine[start : start + size])


@dataclass(frozen=True, slots=True)
class Wanted:
    """Numbers [k] that all of `names` want."""

    names: tuple[str, ...]
    numbers: Ints


def asked_of(encoded: Encoded, rows: Ints) -> list[Asked]:
    """Of some of the encoded queries, by their rows."""
    return [
        Asked(
            encoded.input_digests[row],
            int(encoded.tokens_kept[row]),
            int(encoded.tokens_lost[row]),
            encoded.failed.get(row),
        )
        for row in rows.tolist()
    ]
