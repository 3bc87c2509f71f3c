"""Rankings and judgements written as dicts, turned into the arrays that a run's reader hands over."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from harness.metric.place import JudgedPlaces, place
from harness.output.order import expected_order, trec_order

Scores = dict[str, float]
Grades = dict[str, int]
Judge = Callable[..., JudgedPlaces]


def _judge(
    rankings: Sequence[Scores],
    judgements: Sequence[Grades],
    *,
    ties: Literal["expected", "trec"] = "expected",
    crossing: Sequence[int] | None = None,
) -> JudgedPlaces:
    """Order each ranking as stored, find the judged documents in it, and place them."""
    order = trec_order if ties == "trec" else expected_order
    scores: list[float] = []
    found: list[tuple[float, int]] = []
    for ranking, grades in zip(rankings, judgements, strict=True):
        documents, given = np.array(list(ranking), dtype=object), np.array(list(ranking.values()), dtype=float)
        by_place = order(documents, given)
        scores += given[by_place].tolist()
        position = {document: i for i, document in enumerate(documents[by_place].tolist())}
        found += [(ranking.get(document, np.nan), position.get(document, -1)) for document in grades]
    return place(
        np.cumsum([0] + [len(ranking) for ranking in rankings]),
        np.array(scores, dtype=float),
        np.cumsum([0] + [len(grades) for grades in judgements]),
        np.array([grade for grades in judgements for grade in grades.values()], dtype=np.int64),
        np.array([score for score, _ in found], dtype=float),
        np.array([position for _, position in found], dtype=np.int64),
        np.zeros(len(rankings), dtype=np.int64) if crossing is None else np.array(crossing, dtype=np.int64),
        ties=ties,
    )


def _read_run(path: Path) -> dict[str, Scores]:
    run: dict[str, Scores] = {}
    for line in path.read_text().splitlines():
        query, _, document, _, score, *_ = line.split()
        run.setdefault(query, {})[document] = float(score)
    return run


def _read_qrels(path: Path) -> dict[str, Grades]:
    qrels: dict[str, Grades] = {}
    for line in path.read_text().splitlines():
        query, _, document, grade = line.split()
        qrels.setdefault(query, {})[document] = int(grade)
    return qrels


@pytest.fixture(scope="session")
def judge() -> Judge:
    return _judge


@pytest.fixture(scope="session")
def read_run() -> Callable[[Path], dict[str, Scores]]:
    return _read_run


@pytest.fixture(scope="session")
def read_qrels() -> Callable[[Path], dict[str, Grades]]:
    return _read_qrels
