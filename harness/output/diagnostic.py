"""What is told of a space of vectors and of rankings besides the metrics: descriptions, by which nothing is decided.

A low uniformity or a high overlap is neither good nor bad by itself; rules and guards over these names are refused.
"""

from dataclasses import dataclass

PAIR = "pair"
"""In place of a side: of parent and candidate together."""

MEANINGS = {
    "norm": "length of a vector, before any normalisation for scoring; at 0, .05, .5, .95 and 1 of the sample",
    "anisotropy": "mean cosine of two different texts: 0 where directions are spread evenly, 1 where all are one",
    "uniformity": "log of the mean of exp(−2·d²) over pairs of unit vectors: lower is more even, 0 is one point",
    "alignment": "mean d² of a query and a relevant document, as unit vectors: lower is closer",
    "contrastive_nll": "mean over a query's relevant documents of −log softmax(cosine / t) among those admitted, each "
    "text once; lower finds them sooner",
    "hubness": "skewness of how often a document stands among a query's first k, over the corpus: large where few "
    "documents answer everything",
    "rank_overlap": "share of the first k documents that both sides have; 1 is the same set",
    "rbo": "rank-biased overlap, extrapolated, documents of one score at one rank; 1 is the same ranking",
    "margin_second": "score of the first document minus that of the second; at .05, .5 and .95 of the queries",
    "margin_relevant": "best score of a relevant document minus the best of any other, where both were ranked; below 0 "
    "the relevant one loses; at .05, .5 and .95 of the queries",
}
"""One line for each, in the order of the report."""


def base(name: str) -> str:
    """A diagnostic's name without cut-off and parameters: `rbo` of `rbo(p=0.9)`."""
    return name.partition("@")[0].partition("(")[0].partition("[")[0]


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One number of one side, or of the `pair`. `texts`: documents, queries, or pairs of both; `quantile` where it is
    one of a distribution. `value` None where it has no meaning, and `absent` says why; `n` is how many it is of.
    """

    side: str
    name: str
    texts: str
    quantile: float | None
    value: float | None
    n: int
    absent: str | None = None
