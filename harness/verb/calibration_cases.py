"""What calibrators and thresholds are fitted on: one side's stored scores of cases, and what holds of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from harness.calibration.record import CalibratorRecord, Of, ScoreType, applied, inputs
from harness.errors import Misconfigured
from harness.identity import digest
from harness.metric.form import Floats, Ints
from harness.store import read, read_ranking
from harness.store.connection import Connection
from harness.store.read_task import golds, said
from harness.suite.definition import RANKED
from harness.suite.lock import Lock

NO_CHANCE = {
    "regression": "a number has an error, and no probability that it is right",
    "entity": "of tags the store keeps which were given and not the logits of each token, so there is nothing to fit",
}
"""Why there is no calibrator, by task."""
Asked: TypeAlias = Literal["relevance", "answerability"]
POOL = "documents of the judged pool that the release retrieves; of unjudged ones it says nothing"
IN_CORPUS = "questions like these asked of this very corpus"


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Scores of cases, as they are stored, and what holds. Shapes: scores [r, k] (minus infinity where a case has fewer
    choices); gold [r] of columns where labels exclude one another, else [r, k] of 0 and 1; case [r], places in the
    suite's order.
    """

    of: Of
    labels: tuple[str, ...]
    score_type: ScoreType
    scores: Floats
    gold: Ints
    case: Ints
    included: str
    valid_for: str | None = None
    corpus: str | None = None

    @property
    def exclusive(self) -> bool:
        return self.gold.ndim == 1

    def taken(self, rows: NDArray[np.bool_]) -> "Evidence":
        """The same of some rows [r]."""
        return Evidence(
            self.of, self.labels, self.score_type, self.scores[rows], self.gold[rows], self.case[rows], self.included,
            self.valid_for, self.corpus,
        )  # fmt: skip


def evidence(
    connection: Connection, run: str, side: str, lock: Lock, suite: str, score_type: str, of: Asked | None
) -> Evidence:
    """Every case of one side that has gold and a finite score, whatever its role.

    Raises Misconfigured for a task whose outputs make no probability.
    """
    task = lock.definition.task
    if task in RANKED:
        return _ranked(connection, run, side, lock, suite, score_type, of or "relevance")
    if of is not None:
        raise Misconfigured(
            f"--of {of}", found=f"a suite of {task}", expected="a suite in which documents are ranked",
            mend="Leave --of out: what is calibrated follows from the task.",
        )  # fmt: skip
    if task in ("classification", "multilabel"):
        return _labelled(connection, run, side, lock, suite, score_type)
    if task == "multiple-choice":
        return _choices(connection, run, side, suite, score_type)
    if task == "answer":
        return _answers(connection, run, side, suite)
    if task == "similarity":
        return _pairs(connection, run, side, suite, score_type)
    raise Misconfigured(
        f"run {run[:12]}", found=f"a suite of {task}: {NO_CHANCE[task]}",
        expected="labels, choices, pairs that are the same or not, answers with a null score, or rankings",
        mend="Calibrate a release on a suite of one of these.",
    )  # fmt: skip


def _labelled(connection: Connection, run: str, side: str, lock: Lock, suite: str, score_type: str) -> Evidence:
    gold, outputs = golds(connection, suite), said(connection, run, side)
    own = outputs.labels
    scores = outputs.matrix(len(own))
    known: Sequence[object] = gold.label if lock.definition.task == "classification" else gold.labels
    there = np.array([each is not None for each in known], dtype=bool) & np.isfinite(scores).all(axis=1)
    rows = np.flatnonzero(there)
    if lock.definition.task == "classification":
        truth = np.array([own.index(str(gold.label[i])) for i in rows], dtype=np.int64)
    else:
        truth = np.array([[name in (gold.labels[i] or ()) for name in own] for i in rows], dtype=np.int64)
        truth = truth.reshape(len(rows), len(own))
    kind: ScoreType = "logit" if score_type == "logit" else "probability"
    return Evidence("labels", own, kind, scores[rows], truth, rows, "scored cases with gold")


def _choices(connection: Connection, run: str, side: str, suite: str, score_type: str) -> Evidence:
    gold, outputs = golds(connection, suite), said(connection, run, side)
    kind: ScoreType = "logit" if score_type == "logit" else "probability"
    own = {
        i: each
        for i, each in enumerate(outputs.scores)
        if each is not None and gold.choice[i] >= 0 and np.isfinite(each).all()
    }
    # A choice that a case has not is no choice of probability 0, which would count.
    scores = np.full((len(own), max(map(len, own.values()), default=0)), -np.inf)
    for at, each in enumerate(own.values()):
        scores[at, : len(each)] = inputs(each[None], kind, "temperature")[0]
    places = np.array(list(own), dtype=np.int64)
    return Evidence("choices", (), kind, scores, gold.choice[places], places, "scored cases with gold")


def _pairs(connection: Connection, run: str, side: str, suite: str, score_type: str) -> Evidence:
    gold, outputs = golds(connection, suite), said(connection, run, side)
    rows = np.flatnonzero(np.isfinite(gold.value) & np.isfinite(outputs.value))
    if not np.isin(gold.value[rows], (0, 1)).all():
        raise Misconfigured(
            f"run {run[:12]}", found="gold besides 0 and 1: a degree of likeness comes true or not of no pair",
            expected="1 for a pair that is the same, 0 for one that is different",
            mend="Fit on pairs with such gold; a graded similarity has no probability.",
        )  # fmt: skip
    truth = gold.value[rows, None].astype(np.int64)
    return Evidence(
        "pairs", ("same",), cast(ScoreType, score_type), outputs.value[rows, None], truth, rows,
        "scored pairs with gold",
        "pairs drawn as these were: another share of same ones is another chance",
    )  # fmt: skip


def _answers(connection: Connection, run: str, side: str, suite: str) -> Evidence:
    gold, outputs = golds(connection, suite), said(connection, run, side)
    gap = outputs.score - outputs.null_score
    there = np.array([each is not None for each in gold.answers], dtype=bool)
    if not np.isfinite(gap[there]).any():
        raise Misconfigured(
            f"run {run[:12]}", found="answers without a score and a null score beside it",
            expected="both, whose gap says how sure it is that there is an answer",
            mend="Record `score` and `null_score` with every answer.",
        )  # fmt: skip
    rows = np.flatnonzero(there & np.isfinite(gap))
    truth = np.array([[bool(gold.answers[i])] for i in rows], dtype=np.int64)
    return Evidence(
        "answerability", ("answerable",), "gap", gap[rows, None], truth, rows, "answers with a score and a null score",
        "questions about contexts like these",
    )  # fmt: skip


def _ranked(
    connection: Connection, run: str, side: str, lock: Lock, suite: str, score_type: str, of: Asked
) -> Evidence:
    found = read_ranking.rankings(connection, run, side)
    kind = cast(ScoreType, score_type)
    if of == "answerability":
        top = np.array(
            [
                found.scores[low] if high > low else np.nan
                for low, high in zip(found.offsets, found.offsets[1:], strict=False)
            ]
        )
        rows = np.flatnonzero(np.isfinite(top))
        truth = read.answerable(connection, suite)[rows, None].astype(np.int64)
        return Evidence(
            "answerability", ("answerable",), kind, top[rows, None], truth, rows, "queries with a ranking", IN_CORPUS,
            corpus_digest(lock),
        )  # fmt: skip
    case = np.repeat(np.arange(len(found.case_ids)), np.diff(found.judged_offsets))
    there = np.isfinite(found.judged_score)
    truth = (found.judged_grade[there, None] >= 1).astype(np.int64)
    return Evidence(
        "relevance", ("relevant",), kind, found.judged_score[there, None], truth, case[there],
        "judged documents that were retrieved", POOL,
    )  # fmt: skip


def corpus_digest(lock: Lock) -> str:
    """Of the documents that a suite's cases are asked of: the file that has them, or where it isn't apart, all files;
    and where every case has its own candidates, these.
    """
    source = lock.definition.source
    named = {name: each for name, each in lock.files.items() if name in (source.corpus, "corpus.jsonl")}
    candidates = {case: list(each) for case, each in (lock.candidates or {}).items()}
    return digest({"files": dict(named or lock.files), "candidates": candidates})


def given(record: CalibratorRecord | None, found: Evidence) -> Floats:
    """[r, k], scores as they are, or what a calibrator makes of them."""
    return found.scores if record is None else applied(record, found.scores)
