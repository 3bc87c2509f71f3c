"""How much faster the ranking metrics are than pytrec_eval, on one thread, in one process.

    python benchmarks/bench_ranking.py [--queries 5000] [--depth 1000] [--repeats 7]

5,000 queries of 1,000 documents: nDCG@10, AP, RR and R@100 of every query. Both sides get their inputs ready made:
pytrec_eval its dicts and an evaluator over the judgements, we the arrays that a run's reader hands over. Two ratios:

- from the stored run: the scores come in rank order, as every run is stored; `place` and `values` are timed.
- from raw scores: the scores come in no order, as pytrec_eval's do, so that sorting them is timed as well.

Half the queries have tied scores. Before timing, the two must agree wherever nothing is tied.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytrec_eval

from harness.metric.name import parse
from harness.metric.place import place
from harness.metric.ranking import values

MEASURES = {"ndcg_cut_10": "nDCG@10", "map": "AP", "recip_rank": "RR", "recall_100": "R@100"}
JUDGED = 25
TARGET = 5.0


@dataclass(frozen=True, slots=True)
class Collection:
    """Shapes: scores [q, depth] float64 in no order; judged [q, JUDGED] columns into a corpus of 2 × depth documents,
    of which a query's first `depth` are retrieved; grade [q, JUDGED]."""

    scores: np.ndarray
    judged: np.ndarray
    grade: np.ndarray

    @property
    def judged_scores(self) -> np.ndarray:
        """[q, JUDGED], NaN where the document was not retrieved."""
        depth = self.scores.shape[1]
        found = np.take_along_axis(self.scores, np.minimum(self.judged, depth - 1), axis=1)
        return np.where(self.judged < depth, found, np.nan)


@dataclass(frozen=True, slots=True)
class Stored:
    """What a run's reader hands over: `place`'s own arguments."""

    offsets: np.ndarray
    scores: np.ndarray
    judged_offsets: np.ndarray
    judged_grade: np.ndarray
    judged_score: np.ndarray
    judged_position: np.ndarray
    crossing: np.ndarray


def collect(queries: int, depth: int, rng: np.random.Generator) -> Collection:
    scores = rng.standard_normal((queries, depth)).astype(np.float32).astype(np.float64)
    scores[1::2] = np.round(scores[1::2], 2)
    judged = np.stack([rng.choice(2 * depth, size=JUDGED, replace=False) for _ in range(queries)])
    return Collection(scores, judged, rng.choice([0, 0, 1, 1, 2, 3], size=judged.shape))


def as_dicts(collection: Collection) -> tuple[dict[str, dict[str, float]], dict[str, dict[str, int]]]:
    names = [f"doc{i:07}" for i in range(2 * collection.scores.shape[1])]
    run = {f"q{i}": dict(zip(names, row, strict=False)) for i, row in enumerate(collection.scores.tolist())}
    qrels = {
        f"q{i}": {names[column]: grade for column, grade in zip(columns, grades, strict=True)}
        for i, (columns, grades) in enumerate(zip(collection.judged.tolist(), collection.grade.tolist(), strict=True))
    }
    return run, qrels


def as_stored(collection: Collection) -> Stored:
    queries, depth = collection.scores.shape
    order = np.argsort(-collection.scores, axis=1, kind="stable")
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(depth)[None, :], axis=1)
    position = np.take_along_axis(rank, np.minimum(collection.judged, depth - 1), axis=1)
    return Stored(
        offsets=np.arange(queries + 1) * depth,
        scores=np.take_along_axis(collection.scores, order, axis=1).ravel(),
        judged_offsets=np.arange(queries + 1) * JUDGED,
        judged_grade=collection.grade.ravel(),
        judged_score=collection.judged_scores.ravel(),
        judged_position=np.where(collection.judged < depth, position, -1).ravel(),
        crossing=np.zeros(queries, dtype=np.int64),
    )


def from_stored(stored: Stored, depth: int) -> dict[str, np.ndarray]:
    places = place(
        stored.offsets,
        stored.scores,
        stored.judged_offsets,
        stored.judged_grade,
        stored.judged_score,
        stored.judged_position,
        stored.crossing,
        ties="expected",
    )
    return {text: values(parse(text), places, depth=depth, top_grade=3) for text in MEASURES.values()}


def from_raw(collection: Collection) -> dict[str, np.ndarray]:
    """Under `expected` only the values need sorting; positions are not looked at."""
    queries, depth = collection.scores.shape
    judged_score = collection.judged_scores.ravel()
    falling = np.negative(collection.scores)
    falling.sort(axis=1)
    stored = Stored(
        offsets=np.arange(queries + 1) * depth,
        scores=np.negative(falling, out=falling).ravel(),
        judged_offsets=np.arange(queries + 1) * JUDGED,
        judged_grade=collection.grade.ravel(),
        judged_score=judged_score,
        judged_position=np.where(np.isnan(judged_score), -1, 0),
        crossing=np.zeros(queries, dtype=np.int64),
    )
    return from_stored(stored, depth)


def seconds(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--depth", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    given = parser.parse_args()

    collection = collect(given.queries, given.depth, np.random.default_rng(20261201))
    stored = as_stored(collection)
    run, qrels = as_dicts(collection)
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES))

    theirs, ours, raw = evaluator.evaluate(run), from_stored(stored, given.depth), from_raw(collection)
    for measure, text in MEASURES.items():
        untied = [theirs[f"q{i}"][measure] for i in range(0, given.queries, 2)]
        distinct = [len(np.unique(row)) == given.depth for row in collection.scores[::2]]
        np.testing.assert_allclose(ours[text][::2][distinct], np.array(untied)[distinct], rtol=0, atol=1e-9)
        np.testing.assert_array_equal(ours[text], raw[text])

    print(f"{given.queries} queries × {given.depth} documents, {JUDGED} judged each: {', '.join(ours)}")
    rounds = []
    for _ in range(given.repeats):
        rounds.append(
            (
                seconds(lambda: evaluator.evaluate(run)),
                seconds(lambda: from_stored(stored, given.depth)),
                seconds(lambda: from_raw(collection)),
            )
        )
    for i, side in enumerate(("pytrec_eval", "from the stored run", "from raw scores")):
        line = f"{side:20} median {median(each[i] for each in rounds) * 1e3:8.1f} ms"
        if i:
            ratios = [each[0] / each[i] for each in rounds]
            line += f"   ratio min {min(ratios):6.1f}   median {median(ratios):6.1f}   (target {TARGET:g})"
        print(line)


if __name__ == "__main__":
    main()
