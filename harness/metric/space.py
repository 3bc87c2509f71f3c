"""Diagnostics of a space: how vectors lie, and how two rankings agree. They describe; nothing is decided by them.

Sums go by einsum, never by a BLAS, whose order of adding follows the number of threads.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Objects = NDArray[np.object_]


def unit(vectors: NDArray[np.floating]) -> Floats:
    """[n, d] of length 1, in float64. Raises EmptySlice for a vector without a direction."""
    exact = vectors.astype(np.float64)
    lengths = norms(exact)
    if not (lengths > 0).all():
        raise EmptySlice(
            "vectors", found="one without a direction", expected="lengths above 0", mend="Leave it out, and count it."
        )
    directions: Floats = exact / lengths[:, None]
    return directions


def norms(vectors: NDArray[np.floating]) -> Floats:
    """[n] Euclidean lengths of [n, d]."""
    exact = vectors.astype(np.float64)
    lengths: Floats = np.sqrt(np.einsum("nd,nd->n", exact, exact))
    return lengths


def alignment(queries: Floats, documents: Floats) -> float:
    """Mean squared distance of the two vectors of each positive pair. Shapes: both [n, d], of unit length.

    From 0 to 4; lower is closer. Raises EmptySlice for no pair.
    Source: Wang and Isola, Understanding contrastive representation learning, 2020, section 4.1, with alpha = 2.
    """
    _some(len(queries), 1, "positive pairs")
    gap = queries - documents
    return float(np.mean(np.einsum("nd,nd->n", gap, gap)))


def uniformity(vectors: Floats) -> float:
    """Log of the mean of exp(-2 d²) over the pairs of different vectors [n, d] of unit length.

    From -8 to 0; lower is more evenly spread. Raises EmptySlice for fewer than two.
    Source: Wang and Isola 2020, section 4.1, with t = 2; over pairs of a sample, as in their code, without a vector
    and itself.
    """
    squared = np.maximum(2 - 2 * _pair_cosines(vectors), 0)
    return float(np.log(np.mean(np.exp(-2 * squared))))


def anisotropy(vectors: Floats) -> float:
    """Mean cosine of the pairs of different vectors [n, d] of unit length: all of a sample, so no draw changes it.

    Raises EmptySlice for fewer than two.
    Source: Ethayarajh, How contextual are contextualized word representations, 2019, section 3.3: the mean cosine of
    randomly sampled words, there subtracted as anisotropy's baseline.
    """
    return float(np.mean(_pair_cosines(vectors)))


def contrastive_nll(scores: Floats, positives: Bools, admitted: Bools, temperature: float) -> float:
    """Mean over queries of the mean over their positives of -log softmax(score / temperature) among those admitted.

    Shapes: scores, positives, admitted [q, m]. Lower is better. Raises EmptySlice for no query, for a query without a
    positive, and for a positive that isn't admitted.
    Source: Khosla et al., Supervised contrastive learning, 2020, equation 2 (the mean outside the logarithm).
    """
    _some(len(scores), 1, "queries")
    if not positives.any(axis=1).all() or (positives & ~admitted).any():
        raise EmptySlice(
            "contrastive NLL", found="a query without a positive among the admitted documents",
            expected="every positive admitted, one or more", mend="Leave the query out, and count it.",
        )  # fmt: skip
    logits = np.where(admitted, scores / temperature, -np.inf)
    top = logits.max(axis=1, keepdims=True)
    log_sum = top + np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
    lost = np.where(positives, log_sum - np.where(admitted, logits, 0), 0)
    return float(np.mean(lost.sum(axis=1) / positives.sum(axis=1)))


@dataclass(frozen=True, slots=True, eq=False)
class Admitted:
    """Which of the documents stand in the softmax, each text once: `columns` [m], rising by the first ID of each text.
    `positives` [q, m]: whether any document of that text is relevant to the query.
    """

    columns: NDArray[np.int64]
    positives: Bools


def admit(documents: Objects, texts: Objects, query_ids: Objects, relevant: frozenset[tuple[str, str]]) -> Admitted:
    """Documents found by ID, whatever their order; of those with one text the first by ID stands for all.

    So no duplicate of a relevant document counts as a wrong one. Shapes: documents and texts [n], query_ids [q];
    `relevant` are pairs of query ID and document ID.
    """
    standing: dict[str, int] = {}
    members: dict[str, list[str]] = {}
    for row in sorted(range(len(documents)), key=lambda at: str(documents[at])):
        standing.setdefault(texts[row], row)
        members.setdefault(texts[row], []).append(documents[row])
    positives = np.array(
        [[any((query, each) in relevant for each in members[text]) for text in standing] for query in query_ids],
        dtype=bool,
    ).reshape(len(query_ids), len(standing))
    return Admitted(np.array(list(standing.values()), dtype=np.int64), positives)


def occurrences(places: NDArray[np.int64], sizes: NDArray[np.int64], k: int) -> Floats:
    """What a document in a tied group counts among the first k: the share of the group's orders that put it there.

    Shapes: places (from 0, of the group's first) and sizes of the group, [r].
    """
    return np.clip((k - places) / sizes, 0, 1)


def skewness(counts: Floats) -> float:
    """Third standardised moment of the k-occurrences N_k [n], 0 where they are spread evenly on both sides.

    Raises EmptySlice where all are equal, for then there is no spread to be skew.
    Source: Radovanović, Nanopoulos and Ivanović, Hubs in space, 2010, equation 1.
    """
    _some(len(counts), 1, "documents")
    # In order of size, so that the order of documents is no part of a sum.
    gap = np.sort(counts) - np.sort(counts).mean()
    spread = float(np.sqrt(np.mean(gap**2)))
    if spread < 1e-12:
        raise EmptySlice("hubness", found="equal counts", expected="counts that differ", mend="There is no skewness.")
    return float(np.mean(gap**3) / spread**3)


def tied_places(scores: Floats) -> NDArray[np.int64]:
    """[r], for scores that fall, the place from 0 of the first document with the same score."""
    if not len(scores):
        return np.empty(0, dtype=np.int64)
    first = np.concatenate([[True], scores[1:] != scores[:-1]])
    places: NDArray[np.int64] = np.flatnonzero(first)[np.cumsum(first) - 1]
    return places


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """Of two rankings, at each depth from 1 to that of the longer one, the share of documents they have in common:
    `shares` [l], of which those below the shorter one's end are extrapolated.
    """

    shares: Floats


def agreement(first: Objects, first_scores: Floats, second: Objects, second_scores: Floats) -> Agreement:
    """How two rankings agree at every depth. Shapes: documents and scores [a] and [b], scores falling.

    Documents of one score share the first of their ranks, and the share is 2 |S ∩ T| / (|S| + |T|) of those whose
    rank is within the depth. Behind the end of the shorter ranking its agreement there is taken to go on.
    Raises EmptySlice for a ranking with nothing in it.
    Source: Webber, Moffat and Zobel, A similarity measure for indefinite rankings, 2010: ties in section 4.4, uneven
    rankings as in equation 32.
    """
    short, long = sorted((len(first), len(second)))
    _some(short, 1, "documents in both rankings")
    ranks = tied_places(first_scores), tied_places(second_scores)
    place = {each: int(rank) for each, rank in zip(first, ranks[0], strict=True)}
    both = [max(place[each], int(rank)) for each, rank in zip(second, ranks[1], strict=True) if each in place]
    depths = np.arange(1, long + 1)
    shared = np.cumsum(np.bincount(np.array(both, dtype=np.int64), minlength=long))[:long].astype(np.float64)
    sizes = [np.maximum(np.cumsum(np.bincount(each, minlength=long))[:long], 0) for each in ranks]
    beyond = depths > short
    at_short = 2 * shared[short - 1] / (sizes[0][short - 1] + sizes[1][short - 1])
    shared = shared + np.where(beyond, at_short * (depths - short), 0)
    held = [np.where(depths > len(rank), depths, size) for rank, size in zip(ranks, sizes, strict=True)]
    return Agreement(np.minimum(2 * shared / (held[0] + held[1]), 1))


def rank_biased_overlap(found: Agreement, p: float) -> float:
    """Extrapolated rank-biased overlap, from 0 (nothing in common) to 1 (the same). `p`: how likely a reader goes on.

    Source: Webber, Moffat and Zobel 2010, equation 32, by way of the agreements.
    """
    depth = len(found.shares)
    weights = (1 - p) * p ** np.arange(depth)
    return float(np.sum(weights * found.shares) + p**depth * found.shares[-1])


def overlap_at(found: Agreement, k: int) -> float:
    """The share of the first k documents that two rankings have in common; of shorter ones, down to their end."""
    return float(found.shares[min(k, len(found.shares)) - 1])


def _pair_cosines(vectors: Floats) -> Floats:
    """[n (n - 1) / 2], rising, so that the order of vectors is no part of a sum."""
    _some(len(vectors), 2, "vectors")
    cosines = np.einsum("id,jd->ij", vectors, vectors)
    return np.sort(cosines[np.triu_indices(len(vectors), 1)])


def _some(count: int, least: int, what: str) -> None:
    if count < least:
        raise EmptySlice(
            what, found=str(count), expected=f"at least {least}", mend="There is nothing to tell of so few."
        )
