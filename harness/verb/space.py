"""What is told of a run's spaces: of vectors while the run holds them, of rankings from the store.

Nothing here enters a decision. Vectors are not kept, so their numbers are, under the key of the outputs.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice
from harness.metric import space
from harness.output.diagnostic import PAIR, Diagnostic
from harness.release.open import Release
from harness.release.window import best_of_windows
from harness.run.output import Executed
from harness.run.sample import VectorSample
from harness.store.connection import Connection
from harness.store.diagnostic import Ranked, heads, margins, record_ranking_diagnostics
from harness.suite.definition import RANKED
from harness.suite.lock import Lock

TEMPERATURE = 0.05
K, P, DEPTH = 10, 0.9, 100
"""Of hubness and overlap; of rank-biased overlap, and how far down it is looked, with all that tie there."""
OF_NORMS, OF_MARGINS = (0.0, 0.05, 0.5, 0.95, 1.0), (0.05, 0.5, 0.95)
NLL = f"contrastive_nll(t={TEMPERATURE:g})"
OF_VECTORS = ("norm", "anisotropy", "uniformity", "alignment", NLL)
WHY = {
    "recorded": "recorded outputs have no vectors",
    "late": "a text has many rows and no vector of its own",
    "sparse": "weights over a vocabulary, most of them 0, whose directions mean something else",
    "cross": "a cross-encoder reads pairs and has no vector of a text",
    "two-stage": "a composed release: each member has a space of its own",
    "fusion": "a composed release: each member has a space of its own",
    "head": "a head gives a case no vector",
}
UNRELATED = "nothing declares which texts belong together"


def of_vectors(release: Release, executed: Executed, lock: Lock) -> tuple[Diagnostic, ...]:
    """Of one side's outputs as they were just made; without vectors of its own, each name with the reason."""
    if executed.sample is not None:
        return tuple(_of_sample(executed.sample, related=lock.definition.task in RANKED))
    if release.definition.interaction == "bi" and best_of_windows(release.manifest.meaning):
        why = "a text has a vector for each of its windows"
    elif release.is_composed:
        why = WHY["fusion"]
    else:
        why = WHY.get(release.definition.interaction, "it ranked given candidates and searched no corpus")
    return tuple(Diagnostic("", name, "texts", None, None, 0, why) for name in OF_VECTORS)


def _of_sample(sample: VectorSample, *, related: bool) -> Iterator[Diagnostic]:
    """`related`: whether judgements say which documents belong to a query."""
    queries, documents = _directed(sample.queries), _directed(sample.documents)
    drawn = documents & sample.by_chance
    for texts, vectors, rows in (
        ("documents", sample.documents, drawn),
        ("queries", sample.queries, queries),
    ):
        lengths = space.norms(vectors[rows])
        yield from _quantiles("norm", texts, lengths, OF_NORMS, "no vector has a direction")
        directions = space.unit(vectors[rows])
        yield _told("anisotropy", texts, len(directions), partial(space.anisotropy, directions))
        yield _told("uniformity", texts, len(directions), partial(space.uniformity, directions))
    if related:
        yield from _of_pairs(sample, queries, documents)
    else:
        yield from (Diagnostic("", name, "pairs", None, None, 0, UNRELATED) for name in ("alignment", NLL))


def _of_pairs(sample: VectorSample, queries: NDArray[np.bool_], documents: NDArray[np.bool_]) -> Iterator[Diagnostic]:
    asked, ids = sample.query_ids[queries], sample.document_ids[documents]
    of_queries, of_documents = space.unit(sample.queries[queries]), space.unit(sample.documents[documents])
    at_query = {each: row for row, each in enumerate(asked)}
    at_document = {each: row for row, each in enumerate(ids)}
    pairs = sorted(pair for pair in sample.relevant if pair[0] in at_query and pair[1] in at_document)
    left = of_queries[[at_query[query] for query, _ in pairs]]
    right = of_documents[[at_document[document] for _, document in pairs]]
    yield _told("alignment", "pairs", len(pairs), lambda: space.alignment(left, right))
    admitted = space.admit(ids, sample.texts[documents], asked, sample.relevant)
    answered = admitted.positives.any(axis=1)
    positives = admitted.positives[answered]
    scores = np.einsum("qd,md->qm", of_queries[answered], of_documents[admitted.columns])
    everything = np.ones(scores.shape, dtype=bool)
    yield _told(
        NLL, f"queries against {len(admitted.columns)} documents", int(answered.sum()),
        lambda: space.contrastive_nll(scores, positives, everything, TEMPERATURE),
    )  # fmt: skip


def _directed(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
    """[n]: which are finite and have a direction."""
    lengths = space.norms(vectors)
    return np.isfinite(lengths) & (lengths > 0)


def keep_ranking_diagnostics(connection: Connection, run: str, sides: Mapping[str, object], lock: Lock) -> None:
    """Of every side's stored rankings, and of the two together."""
    if lock.definition.task not in RANKED:
        return
    ranked = {side: heads(connection, run, side, DEPTH) for side in sides}
    for side, found in ranked.items():
        told = [_hubness(found, lock.documents), *_margins(connection, run, side)]
        record_ranking_diagnostics(connection, run, side, told)
    pair = list(_of_both(ranked["candidate"], ranked["parent"])) if "parent" in ranked else []
    record_ranking_diagnostics(connection, run, PAIR, pair)


def _hubness(ranked: Mapping[str, Ranked], documents: int) -> Diagnostic:
    """Documents that stand nowhere among the first k count 0, and there may be many of them."""
    counts: dict[str, float] = {}
    for each in ranked.values():
        places = space.tied_places(each.scores)
        sizes = np.bincount(places, minlength=len(places))[places]
        for document, share in zip(each.documents, space.occurrences(places, sizes, K), strict=True):
            counts[document] = counts.get(document, 0.0) + float(share)
    met = sorted(counts.values())
    every = np.array([0.0] * (documents - len(met)) + met)
    return _told(f"hubness@{K}", "documents", len(every), lambda: space.skewness(every))


def _margins(connection: Connection, run: str, side: str) -> Iterator[Diagnostic]:
    found = margins(connection, run, side)
    yield from _quantiles("margin_second", "queries", found.second, OF_MARGINS, "no query has two documents")
    yield from _quantiles(
        "margin_relevant", "queries", found.relevant, OF_MARGINS,
        "of no query were both a relevant document and another one ranked",
    )  # fmt: skip


def _of_both(candidate: Mapping[str, Ranked], parent: Mapping[str, Ranked]) -> Iterator[Diagnostic]:
    """Means over the cases that both sides have ranked anything of."""
    both = [
        space.agreement(parent[case].documents, parent[case].scores, each.documents, each.scores)
        for case, each in candidate.items()
        if case in parent
    ]
    overlaps = np.array([space.overlap_at(each, K) for each in both])
    biased = np.array([space.rank_biased_overlap(each, P) for each in both])
    for name, values in ((f"rank_overlap@{K}", overlaps), (f"rbo(p={P:g})", biased)):
        if len(values):
            yield Diagnostic(PAIR, name, "queries", None, float(np.sort(values).mean()), len(values))
        else:
            yield Diagnostic(PAIR, name, "queries", None, None, 0, "no query was ranked by both sides")


def _quantiles(
    name: str, texts: str, values: NDArray[np.float64], at: tuple[float, ...], why: str
) -> Iterator[Diagnostic]:
    for quantile in at:
        if len(values):
            yield Diagnostic("", name, texts, quantile, float(np.quantile(values, quantile)), len(values))
        else:
            yield Diagnostic("", name, texts, quantile, None, 0, why)


def _told(name: str, texts: str, n: int, value: Callable[[], float]) -> Diagnostic:
    """With the reason where there is none to tell."""
    try:
        return Diagnostic("", name, texts, None, value(), n)
    except EmptySlice as lack:
        return Diagnostic("", name, texts, None, None, n, f"{lack.found} where {lack.expected} is needed")
