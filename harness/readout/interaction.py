"""Late interaction: two texts meet row by row.

Shapes: query [q, w] and document [k, w], counted rows only, already projected and normalised: there is no padding
here to leave out. Both raise EmptySlice for a side without rows. Higher is nearer.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice
from harness.readout.probability import scaled
from harness.rows.mask import Floats, Ints

Rows = NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class MaxSim:
    """`score`: the sum over query rows. `best` [q]: each query row's document row, the first among equals."""

    score: float
    best: Ints


def row_similarities(query: Rows, document: Rows) -> Floats:
    """[q, k], the dot product of each query row [q, w] with each document row [k, w].

    Raises EmptySlice where a side has no row.
    """
    for side, rows in (("query", query), ("document", document)):
        if not len(rows):
            raise EmptySlice(
                f"{side} rows", found="none", expected="at least one row", mend="Leave the text out of the scoring."
            )
    return query.astype(np.float64) @ document.astype(np.float64).T


def maxsim(query: Rows, document: Rows) -> MaxSim:
    """For each query row its largest dot product with a document row, summed.

    Source: Khattab and Zaharia, ColBERT, SIGIR 2020.
    """
    similarities = row_similarities(query, document)
    return MaxSim(float(similarities.max(axis=1).sum()), similarities.argmax(axis=1))


def smooth_maxsim(query: Rows, document: Rows, temperature: float) -> float:
    """As `maxsim`, each largest value s replaced by T log Σ exp(s / T).

    Above `maxsim` by no more than q T log k, and tends to it as T falls to 0. Raises Misconfigured unless T > 0.
    """
    similarities = scaled(row_similarities(query, document), temperature)
    top = similarities.max(axis=1, keepdims=True)
    return float(temperature * np.sum(top[:, 0] + np.log(np.exp(similarities - top).sum(axis=1))))
