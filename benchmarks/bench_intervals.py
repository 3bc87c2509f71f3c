"""The cost of intervals, form by form: `python benchmarks/bench_intervals.py [--large N] [--classes K]`.

First 10,000 draws × 50 slices × 10 metrics × 2,000 cases, of means and of summed rows (one of ten an F1 of three
counts), against a plain loop that sums the drawn cases of each draw anew, for one slice and metric, times their number;
and whether one thread and four give the same bytes. Then rank statistics of one slice of very many cases, both sides
and their difference, beside scikit-learn's and SciPy's own time for one value of each side. CPU seconds.
"""

import argparse
import hashlib
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from scipy import stats
from sklearn import metrics as sk

from harness.compare.draw import Resample
from harness.compare.interval import bootstrap_many
from harness.compare.ordering import RankMean, WeightedRank
from harness.compare.statistic import Finish, Grouped, Mean, Paired

CASES, SLICES, DRAWS, SEED = 2000, 50, 10_000, 20261202


def f1(sums: np.ndarray) -> np.ndarray:
    return 2 * sums[:, 0] / (2 * sums[:, 0] + sums[:, 1] + sums[:, 2])


def members(rng: np.random.Generator, finishes: int) -> list[Grouped]:
    """Ten metrics over 50 slices of nine tenths of the cases, so many of them summed rows."""
    pairs = []
    for i in range(10):
        parent = 1 / rng.integers(1, 11, CASES)
        candidate = np.where(rng.random(CASES) < 0.3, 1 / rng.integers(1, 11, CASES), parent)
        counts = (rng.random((2, CASES, 3)) < 0.5).astype(float)
        pair = Paired(Finish(counts[0], f1), Finish(counts[1], f1))
        pairs.append(pair if i < finishes else Paired(Mean(candidate), Mean(parent)))
    slices = [np.sort(rng.choice(CASES, CASES * 9 // 10, replace=False)) for _ in range(SLICES)]
    return [Grouped(pair.take(chosen), chosen) for chosen in slices for pair in pairs]


def clock(job: Callable[[], object]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def plain(pair: Paired, rng: np.random.Generator, draws: int) -> None:
    """What one would write first: draw cases, take them, ask the metric."""
    for _ in range(draws):
        pair.take(rng.integers(pair.n_cases, size=pair.n_cases)).value()


def bytes_of(threads: int) -> str:
    """The intervals' digest in a process of its own."""
    env = {**os.environ, "OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads)}
    asked = [sys.executable, __file__, "--digest"]
    return subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout


def digest() -> str:
    rng = np.random.default_rng(SEED)
    found = bootstrap_many(members(rng, 5)[:40], resample=Resample.draw(CASES, DRAWS, rng))
    return hashlib.sha256(np.array([(each.low, each.high) for each in found]).tobytes()).hexdigest()


def small() -> None:
    for name, finishes in (("means", 0), ("nine means, one F1", 1), ("summed rows alone", 10)):
        rng = np.random.default_rng(SEED)
        asked, resample = members(rng, finishes), Resample.draw(CASES, DRAWS, rng)
        ours = clock(lambda: bootstrap_many(asked, resample=resample))  # noqa: B023  # called at once
        one = asked[0].statistic
        assert isinstance(one, Paired)
        theirs = clock(lambda: plain(one, rng, 200)) * DRAWS / 200 * len(asked)  # noqa: B023
        print(f"{name:<28}{ours:8.2f} s   a plain loop over draws, {theirs / ours:,.0f} × as long")
    print(f"one thread and four         {'the same bytes' if bytes_of(1) == bytes_of(4) else 'OTHER BYTES'}")


def large(n: int, classes: int) -> None:
    rng = np.random.default_rng(SEED)
    gold = rng.integers(0, classes, n)
    scores = [rng.normal(size=(n, classes)) + 2 * (np.arange(classes) == gold[:, None]) for _ in range(2)]
    truth = (np.arange(classes) == gold[:, None]).astype(float)
    graded = rng.normal(size=n)
    said = [np.round(graded + rng.normal(size=n), 3) for _ in range(2)]
    resample = Resample.draw(n, DRAWS, rng)
    draws = clock(lambda: [None for _ in resample.blocks(20)])
    print(f"{n:,} cases; making {DRAWS:,} draws alone {draws:.1f} s")
    for kind, own in (
        ("auroc", lambda: [sk.roc_auc_score(truth, each, average="macro") for each in scores]),
        ("average_precision", lambda: [sk.average_precision_score(truth, each) for each in scores]),
        ("kendall", lambda: [stats.kendalltau(each, graded) for each in said]),
        ("spearman", lambda: [stats.spearmanr(each, graded) for each in said]),
    ):
        if kind in ("auroc", "average_precision"):
            name = f"{kind}, {classes} classes"
            sides = [
                RankMean(tuple(WeightedRank(x, y, kind) for x, y in zip(each.T, truth.T, strict=True)))
                for each in scores
            ]
        else:
            name, sides = kind, [WeightedRank(each, graded, kind) for each in said]
        pair = Paired(*sides)
        asked = [Grouped(each, np.arange(n)) for each in (*sides, pair)]
        values = clock(pair.value)
        ours = clock(lambda: bootstrap_many(asked, resample=resample))  # noqa: B023
        referee = clock(own)
        print(f"{name:<32} values {values:6.1f} s (the referee's {referee:6.1f} s), three intervals {ours:6.1f} s")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--large", type=int, default=100_000)
    parser.add_argument("--classes", type=int, default=77)
    parser.add_argument("--digest", action="store_true", help="print what the intervals come to, and nothing else")
    asked = parser.parse_args()
    if asked.digest:
        print(digest())
        return
    small()
    large(asked.large, asked.classes)


if __name__ == "__main__":
    main()
