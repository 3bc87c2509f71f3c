"""The ranking metrics under `trec` ties against trec_eval's own figures, pytrec_eval's and ir_measures'."""

import numpy as np
import pytest

from harness.metric.name import parse
from harness.metric.ranking import values
from harness.output.order import trec_order

CUTS = (5, 10, 20, 100)
MEASURES = (
    "map",
    "recip_rank",
    "Rprec",
    "bpref",
    "ndcg",
    *(f"{stem}_{k}" for stem in ("ndcg_cut", "P", "recall", "map_cut") for k in CUTS),
    *(f"success_{k}" for k in (1, 5, 10)),
)
RUNS = ("run_bm25.trec", "run_tfidf.trec", "run_bm25_ties.trec")


@pytest.fixture(
    scope="module", params=[("trec_eval", "results.test"), *(("cranfield", run) for run in RUNS)], ids="/".join
)
def collection(request, shared_data, read_run, read_qrels, judge):
    """A run, its judgements, the printed figures by query where there are any, and our places."""
    folder = shared_data(request.param[0])
    run = read_run(folder / request.param[1])
    qrels = read_qrels(folder / ("qrels.test" if request.param[0] == "trec_eval" else "qrels.trec"))
    printed = folder / (
        "out.test.aq"
        if request.param[0] == "trec_eval"
        else request.param[1].replace("run_", "trec_eval_v10_").replace(".trec", ".txt")
    )
    queries = sorted(run)
    places = judge([run[query] for query in queries], [qrels[query] for query in queries], ties="trec")
    return run, qrels, queries, read_figures(printed), places


def read_figures(path):
    """Measure and query to trec_eval's printed figure."""
    figures = {}
    for line in path.read_text().splitlines():
        if not line.startswith("#"):
            measure, query, figure = line.split()
            figures[measure, query] = figure
    return figures


def ours(measure, places):
    return values(parse(measure), places, depth=1000, top_grade=4)


class TestTrecEval:
    @pytest.mark.parametrize("measure", MEASURES)
    def test_every_query_as_pytrec_eval_computes_it(self, measure, collection):
        pytrec_eval = pytest.importorskip("pytrec_eval")
        run, qrels, queries, _, places = collection
        evaluator = pytrec_eval.RelevanceEvaluator(qrels, {measure})
        theirs = evaluator.evaluate(run)
        wanted = [theirs[query][measure] for query in queries]
        np.testing.assert_allclose(ours(measure, places), wanted, rtol=0, atol=1e-9)

    @pytest.mark.parametrize("measure", MEASURES)
    def test_every_query_as_trec_eval_prints_it(self, measure, collection):
        """To the printed four digits."""
        _, _, queries, figures, places = collection
        wanted = [float(figures[measure, query]) for query in queries]
        np.testing.assert_allclose(ours(measure, places), wanted, rtol=0, atol=0.5e-4 + 1e-9)


class TestTrecEvalsOwnTests:
    @pytest.mark.parametrize(
        ("output", "qrels", "run", "rel", "depth", "complete"),
        [
            ("out.test.aqc", "qrels.test", "results.trunc", 1, 1000, True),
            ("out.test.aqcM", "qrels.test", "results.trunc", 1, 100, True),
            ("out.test.aql", "qrels.rel_level", "results.test", 2, 1000, False),
        ],
    )
    def test_shipped_output(self, output, qrels, run, rel, depth, complete, shared_data, read_run, read_qrels, judge):
        """-c: queries without a ranking score 0. -M100: rankings end at depth 100. -l2: relevant from grade 2.

        Under -M100 trec_eval's ndcg still holds the ranking against an ideal of any length; here it is nDCG@100.
        """
        folder = shared_data("trec_eval")
        rankings, judgements = read_run(folder / run), read_qrels(folder / qrels)
        figures = read_figures(folder / output)
        queries = sorted(judgements if complete else rankings)
        places = judge([rankings.get(query, {}) for query in queries], [judgements[q] for q in queries], ties="trec")
        measures = [measure for measure in MEASURES if measure != "ndcg" or depth == 1000]
        mean = {}
        for measure in measures:
            name = parse(measure)
            inside = "" if name.base == "nDCG" else f"(rel={rel})"
            cutoff = f"@{name.cutoff}" if name.cutoff else ""
            found = values(parse(f"{name.base}{inside}{cutoff}"), places, depth=depth, top_grade=4)
            mean[measure] = float(found.mean())
        wanted = {measure: float(figures[measure, "all"]) for measure in measures}
        assert mean == pytest.approx(wanted, abs=0.5e-4 + 1e-9)

    def test_rbp_and_unjudged_share(self, shared_data, read_run, read_qrels, judge):
        """rbp has p = 0.9 by default; unj_k is what Judged@k leaves, as no ranking here is shorter than 100."""
        folder = shared_data("trec_eval")
        rankings, judgements = read_run(folder / "results.test"), read_qrels(folder / "qrels.test")
        figures, queries = read_figures(folder / "out.test.aq"), sorted(rankings)
        places = judge([rankings[query] for query in queries], [judgements[query] for query in queries], ties="trec")
        found = {"rbp": ours("rbp", places)} | {f"unj_{k}": 1 - ours(f"Judged@{k}", places) for k in (5, 10, 20)}
        for measure, per_query in found.items():
            wanted = [float(figures[measure, query]) for query in queries]
            np.testing.assert_allclose(per_query, wanted, rtol=0, atol=0.5e-4 + 1e-9, err_msg=measure)


class TestIrMeasures:
    @pytest.mark.parametrize("k", CUTS)
    def test_judged_share(self, k, collection):
        """Given trec_eval's order, and no document of negative grade: those count as unjudged here."""
        ir_measures = pytest.importorskip("ir_measures")
        run, qrels, queries, _, places = collection
        judged = {query: {d: g for d, g in grades.items() if g >= 0} for query, grades in qrels.items()}
        ranked = {}
        for query in queries:
            documents, scores = np.array(list(run[query]), dtype=object), np.array(list(run[query].values()))
            ranked[query] = {d: -float(i) for i, d in enumerate(documents[trec_order(documents, scores)])}
        evaluator = ir_measures.judged.evaluator([ir_measures.Judged @ k], judged)
        theirs = {found.query_id: found.value for found in evaluator.iter_calc(ranked)}
        np.testing.assert_allclose(
            ours(f"Judged@{k}", places), [theirs[query] for query in queries], rtol=0, atol=1e-12
        )
