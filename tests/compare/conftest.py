"""Small pairs of every form, with the ties that retrieval metrics have."""

from collections.abc import Callable

import numpy as np
import pytest

from harness.compare.ordering import RankMean, WeightedRank
from harness.compare.statistic import Finish, Mean, Paired


def f1(sums: np.ndarray) -> np.ndarray:
    """Sums of true positives, false positives, false negatives."""
    with np.errstate(invalid="ignore"):
        return 2 * sums[:, 0] / (2 * sums[:, 0] + sums[:, 1] + sums[:, 2])


def f1_rows(predicted: np.ndarray, gold: np.ndarray) -> np.ndarray:
    return np.stack([predicted & gold, predicted & ~gold, ~predicted & gold], axis=1).astype(float)


def _classes(gold: np.ndarray, rng: np.random.Generator) -> RankMean:
    columns = (WeightedRank(rng.integers(0, 9, len(gold)) / 8, y.astype(float), "auroc") for y in (gold, ~gold))
    return RankMean(tuple(columns))


@pytest.fixture(params=["mean", "finish", "pearson", "spearman", "kendall", "auroc", "average_precision", "classes"])
def sides(request: pytest.FixtureRequest) -> Callable[[int, np.random.Generator], Paired]:
    """A candidate and a parent of one form over n cases; a test that asks for it runs once per form."""

    def make(n: int, rng: np.random.Generator) -> Paired:
        if request.param == "mean":
            return Paired(*(Mean(1 / rng.integers(1, 6, n)) for _ in range(2)))
        gold = rng.random(n) < 0.5
        gold[:2] = True, False
        if request.param == "finish":
            return Paired(*(Finish(f1_rows(rng.random(n) < 0.6, gold), f1) for _ in range(2)))
        if request.param == "classes":
            return Paired(*(_classes(gold, rng) for _ in range(2)))
        true = (
            gold.astype(float)
            if request.param in ("auroc", "average_precision")
            else rng.integers(0, 6, n).astype(float)
        )
        return Paired(*(WeightedRank(rng.integers(0, 9, n) / 8, true, request.param) for _ in range(2)))

    return make
