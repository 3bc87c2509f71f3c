"""The cost of resampling a whole suite: `OMP_NUM_THREADS=1 python benchmarks/bench_resample.py`.

10,000 draws, 50 slices, 10 metrics (nine means and one F1), 2,000 cases; beside it, SciPy's bootstrap of one
slice and metric, times their number. CPU seconds of all threads, and the peak of the process's memory.
"""

import argparse
import resource
import time

import numpy as np
from scipy import stats

from harness.compare.draw import Resample, SignFlips
from harness.compare.interval import bootstrap_many
from harness.compare.randomisation import worse_p
from harness.compare.statistic import Finish, Grouped, Mean, Paired


def f1(sums: np.ndarray) -> np.ndarray:
    return 2 * sums[:, 0] / (2 * sums[:, 0] + sums[:, 1])


def metrics(cases: int, rng: np.random.Generator) -> list[Paired]:
    """Nine means of reciprocal ranks that change on some cases, and one F1 (true positives, errors)."""
    pairs = []
    for _ in range(9):
        parent = 1 / rng.integers(1, 11, cases)
        candidate = np.where(rng.random(cases) < 0.3, 1 / rng.integers(1, 11, cases), parent)
        pairs.append(Paired(Mean(candidate), Mean(parent)))
    sides = [np.stack([hit, ~hit], axis=1).astype(np.float64) for hit in rng.random((2, cases)) < 0.7]
    return [*pairs, Paired(Finish(sides[0], f1), Finish(sides[1], f1))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--slices", type=int, default=50)
    parser.add_argument("--share", type=float, default=0.9, help="of all cases that each slice holds, at random")
    parser.add_argument("--draws", type=int, default=10_000)
    parser.add_argument("--flips", type=int, default=20_000, help="for the guards: at least 2·m/α")
    asked = parser.parse_args()

    rng = np.random.default_rng(20261201)
    pairs, groups = metrics(asked.cases, rng), np.arange(asked.cases)
    size = round(asked.share * asked.cases)
    slices = [np.sort(rng.choice(asked.cases, size, replace=False)) for _ in range(asked.slices)]
    members = [Grouped(pair.take(chosen), groups[chosen]) for chosen in slices for pair in pairs]

    def clock(name: str, job: object) -> float:
        start = time.process_time()
        job()
        spent = time.process_time() - start
        print(f"{name:<52}{spent:8.2f} s CPU")
        return spent

    resample = Resample.draw(asked.cases, asked.draws, rng)
    flips = SignFlips.draw(asked.cases, asked.flips, rng)
    ours = clock(
        f"intervals (BCa) of {len(members)} slices × metrics", lambda: bootstrap_many(members, resample=resample)
    )
    clock(
        f"guards, {asked.flips} flips",
        lambda: worse_p(members, flips=flips, higher_is_better=[True] * len(members)),
    )
    print(f"{'peak memory':<52}{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:8.0f} MB")

    candidate, parent = pairs[0].candidate, pairs[0].parent
    assert isinstance(candidate, Mean) and isinstance(parent, Mean)
    deltas = (candidate.values - parent.values)[slices[0]]
    theirs = clock(
        "scipy.stats.bootstrap (BCa), one of them",
        lambda: stats.bootstrap((deltas,), np.mean, n_resamples=asked.draws, batch=100, rng=rng),
    )
    print(f"{'times their number, against ours':<52}{theirs * len(members) / ours:8.0f} ×")


if __name__ == "__main__":
    main()
