"""Exact search against bare faiss, and its memory over a large corpus: `python benchmarks/bench_search.py`.

The best 100 of 1,000 queries over 200,000 documents of 384 dimensions, on one thread. Beside it `faiss.IndexFlatIP`,
which scores in float32, settles no ties and holds the whole corpus; both are timed from the vectors to the hits, for
faiss `add` and `search`. They take turns. Prints CPU seconds, and of the ratios round by round the median and the
worst. Cases: unit vectors by cosine and by dot product, vectors of all lengths by cosine, and every document ten
times, where ties cross the depth.

Then the same search over 2,000,000 documents in memory-mapped files of 8,192, as a live run has them, in a process of
its own: seconds and peak resident memory. It needs 3 GB of disk; `--large 0` leaves it out.
"""

import argparse
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import faiss
import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from harness.run.search import Chunk, search

CHUNK = 8192
GRID = 1e-6


def unit(rows: int, width: int, rng: np.random.Generator) -> NDArray[np.float32]:
    vectors = rng.standard_normal((rows, width), dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def chunked(documents: NDArray[np.float32]) -> list[Chunk]:
    return [Chunk(start, documents[start : start + CHUNK]) for start in range(0, len(documents), CHUNK)]


def seconds(job: Callable[[], object]) -> float:
    """CPU seconds, which other work on the machine lengthens less than it does the wall clock."""
    start = time.process_time()
    job()
    return time.process_time() - start


def cases(asked: argparse.Namespace) -> Iterator[tuple[str, str, NDArray[np.float32], NDArray[np.float32]]]:
    rng = np.random.default_rng(20261201)
    queries = unit(asked.queries, asked.width, rng)
    documents = unit(asked.documents, asked.width, rng)
    yield "unit vectors", "cosine", queries, documents
    yield "unit vectors", "dot", queries, documents
    lengths = rng.uniform(0.1, 10, (asked.documents, 1)).astype(np.float32)
    yield "all lengths", "cosine", queries, documents * lengths
    yield "ten of each", "cosine", queries, documents[rng.integers(0, max(1, asked.documents // 10), asked.documents)]


def against_faiss(asked: argparse.Namespace) -> None:
    print(f"{'':14}{'':8}{'faiss':>8}{'harness':>9}   ratio: median  worst of {asked.rounds}")
    for name, score_type, queries, documents in cases(asked):
        chunks = chunked(documents)

        def bare(queries: NDArray[np.float32] = queries, documents: NDArray[np.float32] = documents) -> object:
            index = faiss.IndexFlatIP(asked.width)
            index.add(documents)
            return index.search(queries, asked.depth)

        def exact(
            queries: NDArray[np.float32] = queries, chunks: list[Chunk] = chunks, score_type: str = score_type
        ) -> object:
            return search(queries, chunks, depth=asked.depth, grid=GRID, score_type=score_type)

        exact()
        times = [(seconds(bare), seconds(exact)) for _ in range(asked.rounds)]
        ratios = [ours / theirs for theirs, ours in times]
        theirs, ours = (statistics.median(column) for column in zip(*times, strict=True))
        print(
            f"{name:14}{score_type:8}{theirs:6.2f} s{ours:7.2f} s{statistics.median(ratios):16.2f}{max(ratios):7.2f}",
            flush=True,
        )


def large(asked: argparse.Namespace) -> None:
    rng = np.random.default_rng(20261202)
    with tempfile.TemporaryDirectory(prefix="harness-bench-") as folder:
        np.save(Path(folder) / "queries.npy", unit(asked.queries, asked.width, rng))
        for start in range(0, asked.large, CHUNK):
            np.save(Path(folder) / f"{start}.npy", unit(min(CHUNK, asked.large - start), asked.width, rng))
        subprocess.run([sys.executable, __file__, "--search", folder, "--depth", str(asked.depth)], check=True)


def search_folder(folder: Path, depth: int) -> None:
    """What the process of its own does: searches the files of a folder, and prints what that took."""
    files = sorted((file for file in folder.glob("*.npy") if file.stem.isdigit()), key=lambda file: int(file.stem))
    chunks = [Chunk(int(file.stem), np.load(file, mmap_mode="r")) for file in files]
    queries = np.load(folder / "queries.npy")
    start = time.perf_counter()
    search(queries, chunks, depth=depth, grid=GRID, score_type="cosine")
    took = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    count = sum(len(chunk.vectors) for chunk in chunks)
    size = sum(chunk.vectors.nbytes for chunk in chunks)
    print(f"{count:,} documents, {size / 1e9:.1f} GB on disk: {took:.1f} s, peak resident memory {peak / 1e6:.0f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--documents", type=int, default=200_000)
    parser.add_argument("--large", type=int, default=2_000_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--depth", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--search", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    with threadpool_limits(1):
        if asked.search is not None:
            search_folder(asked.search, asked.depth)
            return
        # First, for a child's peak can't be less than what its parent held.
        if asked.large:
            large(asked)
        against_faiss(asked)


if __name__ == "__main__":
    main()
