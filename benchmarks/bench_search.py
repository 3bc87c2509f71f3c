"""Exact search against bare faiss: `python benchmarks/bench_search.py`.

1,000 queries over 200,000 documents of 384 dimensions, the best 100. Beside it `faiss.IndexFlatIP`, which scores in
float32, settles no ties and holds the whole corpus. Prints the best wall time of each and the ratio, at best 1; then
the same with every document standing ten times, where ties cross the depth.
"""

import argparse
import time
from collections.abc import Callable

import faiss
import numpy as np
from numpy.typing import NDArray

from harness.run.search import Chunk, search


def best(rounds: int, job: Callable[[], object]) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        job()
        times.append(time.perf_counter() - start)
    return min(times)


def unit(rows: int, width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    vectors = rng.normal(size=(rows, width)).astype(np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=8192)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()

    rng = np.random.default_rng(20261201)
    queries = unit(asked.queries, asked.width, rng)
    plain = unit(asked.documents, asked.width, rng)
    copied = np.ascontiguousarray(plain[rng.integers(0, max(1, asked.documents // 10), asked.documents)])
    for name, documents in (("all different", plain), ("ten of each", copied)):
        chunks = [
            Chunk(start, documents[start : start + asked.chunk]) for start in range(0, len(documents), asked.chunk)
        ]
        index = faiss.IndexFlatIP(asked.width)
        index.add(documents)

        def bare(index: faiss.IndexFlatIP = index) -> object:
            return index.search(queries, asked.depth)

        def exact(chunks: list[Chunk] = chunks) -> object:
            return search(queries, chunks, depth=asked.depth, grid=1e-6, score_type="cosine")

        theirs, ours = best(asked.rounds, bare), best(asked.rounds, exact)
        print(f"{name:<16}faiss {theirs:6.2f} s   harness {ours:6.2f} s   ratio {ours / theirs:5.2f}")


if __name__ == "__main__":
    main()
