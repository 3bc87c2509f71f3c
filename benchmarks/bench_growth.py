"""Cost per case of a whole run over recorded releases, as the suite grows: seconds, peak memory, size of the store.

python benchmarks/bench_growth.py [CASES …] [--figure FILE.svg]
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SIZES = (1_000, 10_000, 100_000)
DEPTH = 20
SUITE = """schema = "harness.suite.v1"
name = "grown"
task = "retrieval"
source = { format = "beir" }
[ranking]
depth = 20
[metrics]
primary = "nDCG@10"
report = ["nDCG@10", "RR@10", "R@20"]
[[slices]]
name = "even"
where = "half = 'even'"
[uncertainty]
draws = 1000
[[rules]]
id = "headline"
kind = "no-worse"
metric = "nDCG@10"
margin = 0.02
[guards]
metrics = ["nDCG@10"]
slices = "every"
"""


def build(root: Path, cases: int) -> None:
    """A suite of `cases` queries with three judgements each, and two runs of DEPTH documents that differ by noise."""
    rng = np.random.default_rng(1)
    folder = root / "suites" / "grown"
    (folder / "qrels").mkdir(parents=True)
    documents = max(1000, cases // 10)
    with (folder / "corpus.jsonl").open("w") as stream:
        stream.writelines(json.dumps({"_id": f"d{i}", "text": f"document {i}"}) + "\n" for i in range(documents))
    with (folder / "queries.jsonl").open("w") as stream:
        halves = ("even", "odd")
        stream.writelines(
            json.dumps({"_id": f"q{i}", "text": f"query {i}", "half": halves[i % 2]}) + "\n" for i in range(cases)
        )
    relevant = [rng.choice(documents, 3, replace=False) for _ in range(cases)]
    with (folder / "qrels" / "test.tsv").open("w") as stream:
        stream.writelines(f"q{i}\td{d}\t{g}\n" for i in range(cases) for g, d in enumerate(relevant[i], start=1))
    (folder / "suite.toml").write_text(SUITE)
    for name in ("old", "new"):
        release = root / "releases" / name
        release.mkdir(parents=True)
        with (release / "run.trec").open("w") as stream:
            for i in range(cases):
                found = list(dict.fromkeys([*relevant[i], *rng.choice(documents, DEPTH)]))[:DEPTH]
                scores = rng.random(len(found)) + np.array([0.5] * 3 + [0.0] * (len(found) - 3))
                stream.writelines(f"q{i} Q0 d{d} 0 {s:.6f} x\n" for d, s in zip(found, scores, strict=True))
        (release / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "recorded"\n'
            '[recorded]\nformat = "trec-run"\npath = "run.trec"\nscore_type = "dot"\n'
        )


def timed(root: Path, code: str) -> float:
    """Seconds of a fresh process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], cwd=root, check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    return time.perf_counter() - start


def draw(rows: list[tuple[int, float, float]], file: Path) -> None:
    """Cases against seconds and memory, both axes logarithmic, so that a straight line of slope 1 is a flat cost."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    import matplotlib.pyplot as plt

    cases, seconds, memory = zip(*rows, strict=True)
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2), layout="constrained")
    for axes, values, label in ((left, seconds, "seconds of a whole run"), (right, memory, "peak memory, MB")):
        axes.loglog(cases, values, marker="o", color="black")
        axes.set_xlabel("cases")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3)
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", type=int, nargs="*", default=list(SIZES))
    parser.add_argument("--figure", type=Path)
    asked = parser.parse_args()
    sizes, rows = asked.cases, []
    print(f"{'cases':>8} {'freeze s':>9} {'run s':>8} {'again s':>8} {'ms/case':>8} {'peak MB':>8} {'store MB':>9}")
    for cases in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            build(root, cases)
            frozen = timed(root, "import harness; harness.freeze('grown')")
            ran = timed(root, "import harness; harness.run('grown', candidate='new', parent='old')")
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
            again = timed(root, "import harness; harness.run('grown', candidate='new', parent='old')")
            store = (root / ".harness" / "store.duckdb").stat().st_size / 1e6
            figures = f"{ran:>8.1f} {again:>8.1f} {1000 * ran / cases:>8.2f} {peak:>8.0f} {store:>9.1f}"
            print(f"{cases:>8} {frozen:>9.1f} {figures}", flush=True)
            rows.append((cases, ran, peak))
    if asked.figure:
        draw(rows, asked.figure)


if __name__ == "__main__":
    main()
