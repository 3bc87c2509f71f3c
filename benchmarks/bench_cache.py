"""What a second `harness run` costs, as a share of the first: `python benchmarks/bench_cache.py`.

Two lengths of the packaged MiniLM, over the embedded suite and over the same enlarged; admitted before. Cold: no store
and no cache. Then, each from where the cold run ended: the suite's rules changed; the release's threshold changed; one
document more; the candidate's pooling changed. In one process, after a run that isn't counted; wall time and CPU
seconds of all threads, the least of several rounds.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import enlarged

import harness

CANDIDATE, PARENT = "minilm-256", "minilm-128"


def changed_rules(root: Path, suite: str) -> None:
    toml = root / "suites" / suite / "suite.toml"
    toml.write_text(toml.read_text().replace("margin = 0.07", "margin = 0.06"))
    enlarged.with_folder(root, lambda: harness.freeze(suite))


def changed_threshold(root: Path, suite: str) -> None:
    with (root / "releases" / CANDIDATE / "release.toml").open("a") as stream:
        stream.write("[score]\nthreshold = 0.5\n")


def one_document_more(root: Path, suite: str) -> None:
    with (root / "suites" / suite / "corpus.jsonl").open("a") as stream:
        stream.write(json.dumps({"_id": "one-more", "text": "The last ferry leaves at ten."}) + "\n")
    enlarged.with_folder(root, lambda: harness.freeze(suite))


def changed_pooling(root: Path, suite: str) -> None:
    enlarged.build_release(root, CANDIDATE, 256, "cls")
    enlarged.admit(root, CANDIDATE)


CHANGES: dict[str, Callable[[Path, str], None]] = {
    "rules changed": changed_rules,
    "threshold changed": changed_threshold,
    "one document more": one_document_more,
    "pooling changed": changed_pooling,
}


def measured(root: Path, suite: str) -> tuple[float, float]:
    """Wall and CPU seconds of a run."""
    start, began = time.perf_counter(), time.process_time()
    enlarged.with_folder(root, lambda: harness.run(suite, candidate=CANDIDATE, parent=PARENT))
    return time.perf_counter() - start, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    asked = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "origin"
        enlarged.build_suite(root, asked.documents, asked.queries)
        enlarged.copy_embedded(root)
        enlarged.build_release(root, CANDIDATE, 256)
        enlarged.build_release(root, PARENT, 128)
        enlarged.admit(root, CANDIDATE, PARENT)
        measured(shutil.copytree(root, Path(folder) / "warm"), enlarged.EMBEDDED)
        for suite in (enlarged.EMBEDDED, enlarged.NAME):
            wall: dict[str, list[float]] = {}
            work: dict[str, list[float]] = {}
            for turn in range(asked.rounds):
                cold = shutil.copytree(root, Path(folder) / f"{suite}-{turn}")
                times = {"cold": measured(cold, suite)}
                for name, change in CHANGES.items():
                    copy = shutil.copytree(cold, Path(folder) / f"{suite}-{turn}-{name}")
                    change(copy, suite)
                    times[name] = measured(copy, suite)
                for name, (seconds, cpu) in times.items():
                    wall.setdefault(name, []).append(seconds)
                    work.setdefault(name, []).append(cpu)
            for name in wall:
                share, of_work = (min(each[name]) / min(each["cold"]) for each in (wall, work))
                figures = f"{min(wall[name]):8.1f} s {min(work[name]):8.1f} s CPU {share:8.1%} {of_work:8.1%} of CPU"
                print(f"{suite:<12} {name:<18} {figures}", flush=True)


if __name__ == "__main__":
    main()
