"""What a release did on one case."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from harness.output.task import TaskOutput


class OutputStatus(StrEnum):
    """Whether a case has an output. An empty ranking is an output."""

    OK = "ok"
    MISSING = "missing"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Ranking:
    """Documents by falling score, in the suite's total order.

    Shapes: documents [d] str, scores [d] float64, all finite.
    `crossing` is the size of the tied group that crosses the suite's depth, where that group was too large to
    be kept whole and only its judged documents stand at the end of the ranking; 0 where every document is here.
    """

    documents: NDArray[np.str_] | NDArray[np.object_]
    scores: NDArray[np.float64]
    crossing: int = 0


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents that a last stage was given for one case, and what it made of each pair of query and document.

    Shapes: documents [c] str in the order given, each once; first_scores [c], the first stage's, NaN where not known;
    scores [c], what ranks, NaN where there is none; logits [c, l], the raw numbers of a head that reads both texts
    together; kept and lost [c, 2], the tokens of query and document that it read of them and that were cut, without
    special ones. None where the texts are read apart.
    """

    documents: NDArray[np.str_] | NDArray[np.object_]
    first_scores: NDArray[np.float64]
    scores: NDArray[np.float64]
    logits: NDArray[np.float32] | None = None
    kept: NDArray[np.int64] | None = None
    lost: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class CaseOutput:
    """One case's output.

    `reason` says in words why a case failed, `non_finite` that its output was no number. `input_digest` is that of the
    rendered text. `candidates`: what a last stage was given, None where there is none. `output`: that of a task without
    a corpus.

    Tokens count the model's own, special ones included, of the pair that lost most where texts are read in pairs; None
    where the release does not tell. `norm`: length of a query's vector before scoring, where it has one that is finite.
    """

    case_id: str
    status: OutputStatus
    reason: str = ""
    non_finite: bool = False
    ranking: Ranking | None = None
    input_digest: str | None = None
    tokens_kept: int | None = None
    tokens_lost: int | None = None
    candidates: Candidates | None = None
    output: TaskOutput | None = None
    norm: float | None = None
