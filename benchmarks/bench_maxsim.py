"""Late interaction over ragged rows against padded and batched kernels: `python benchmarks/bench_maxsim.py`.

100 queries of 32 rows over documents of 20 to 180 rows, 128 wide, one thread. Beside it Sentence Transformers' own
`maxsim`, which pads, and the package maxsim-cpu where it is installed (`pip install maxsim-cpu --no-deps`). All run in
turn in one process; printed is the least CPU time of each over the rounds, and theirs over ours: for the float32
kernel, and for exact search of the best 100, whose second look in float64 neither of them does.
"""

import argparse
import importlib
import os
import time
from collections.abc import Callable

import numpy as np
import torch
from sentence_transformers.util import maxsim
from threadpoolctl import threadpool_limits

from harness.rows.ragged import Ragged
from harness.run.maxsim import RaggedChunk, rough_scores, search_rows

Job = Callable[[], object]


def least(rounds: int, jobs: dict[str, Job]) -> dict[str, float]:
    """Each job's least CPU time in seconds: they alternate, so that what else runs on the machine meets them all."""
    times = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            times[name] = min(times[name], time.process_time() - start)
    return times


def unit_rows(counts: np.ndarray, width: int, rng: np.random.Generator) -> Ragged:
    values = rng.normal(size=(int(counts.sum()), width)).astype(np.float32)
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    return Ragged(values, np.concatenate([[0], np.cumsum(counts)]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--query-rows", type=int, default=32)
    parser.add_argument("--documents", type=int, default=1000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()

    torch.set_num_threads(1)
    threadpool_limits(1)
    # maxsim-cpu reads it when it first computes.
    os.environ["RAYON_NUM_THREADS"] = "1"
    rng = np.random.default_rng(20261202)
    queries = unit_rows(np.full(asked.queries, asked.query_rows), asked.width, rng)
    documents = unit_rows(rng.integers(20, 181, asked.documents), asked.width, rng)
    query_list = [queries.rows(i) for i in range(len(queries))]
    document_list = [documents.rows(i) for i in range(len(documents))]
    tensors = [[torch.from_numpy(rows) for rows in side] for side in (query_list, document_list)]

    ours: dict[str, Job] = {
        "float32 kernel": lambda: rough_scores(queries, documents, "sum"),
        "exact search": lambda: search_rows(
            queries, [RaggedChunk(0, documents)], depth=asked.depth, grid=1e-6, reduce="sum"
        ),
    }
    theirs: dict[str, Job] = {"Sentence Transformers": lambda: maxsim(*tensors).numpy()}
    try:
        variable = importlib.import_module("maxsim_cpu").maxsim_scores_variable
        theirs["maxsim-cpu"] = lambda: np.array([variable(query, document_list) for query in query_list])
    except ImportError:
        print("maxsim-cpu is not installed, and left out")

    scores = ours["float32 kernel"]()
    for name, job in theirs.items():
        if not np.allclose(scores, job(), atol=1e-3):
            raise SystemExit(f"{name} has other scores")
    times = least(asked.rounds, ours | theirs)
    for name in theirs:
        ratios = "   ".join(f"{mine} {times[mine]:5.2f} s, {times[name] / times[mine]:4.2f} x" for mine in ours)
        print(f"{name:<22}{times[name]:5.2f} s   {ratios}")


if __name__ == "__main__":
    main()
