"""Pairs and rankings behind a calibrator: what they say, what is decided by it, and what has no probability at all."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

import harness
from harness.calibration import fit as fitting
from harness.calibration.fit import sigmoid
from harness.errors import Misconfigured

from .conftest import Project
from .conftest import project as project
from .test_task import Bench
from .test_task import bench as bench

N = 120
RNG = np.random.default_rng(21)
HELD = (RNG.random(N) < 0.4).astype(int)
SCORES = np.clip(0.5 + 0.15 * RNG.normal(size=N) + 0.25 * HELD, -1, 1)
PAIRED = ["log_loss", "brier_binary", "calibration_slope_error", "aurc", "pair_accuracy", "spearman"]
SLICES = '[[slices]]\nby = "kind"\nmin_support = 20\n'
COSINES = {f"c{i}": float(x) for i, x in enumerate(SCORES)}
CALIBRATED = '[calibrator]\npath = "../c.json"\n'
SHY = '[decision]\nabstain = {{ ground = "{0}", below = {1} }}\n'


def role(i: int) -> str:
    return "calibration" if i < 60 else "promotion"


def pairs(bench: Bench, gold: np.ndarray, names: list[str]) -> None:
    rows = [
        {"id": f"c{i}", "text_a": f"a {i}", "text_b": f"b {i}", "split": role(i), "kind": ("odd", "even")[i % 2],
         "value": float(gold[i])}
        for i in range(N)
    ]  # fmt: skip
    bench.suite("similarity", rows, names, margin=0.5, more=SLICES)
    bench.release("raw", "value", "cosine", COSINES)
    harness.run("s", candidate="raw", parent="none")


class TestPairs:
    """Whether two texts are the same: a cosine says it only through a calibrator."""

    @pytest.fixture
    def paired(self, bench: Bench) -> Bench:
        pairs(bench, HELD, PAIRED)
        bench.release("warm", "value", "cosine", COSINES, CALIBRATED)
        return bench

    @pytest.mark.parametrize("family", ["platt", "isotonic", "histogram"])
    def test_their_probability_is_a_rising_map_of_the_score(self, paired: Bench, family: Any) -> None:
        """Fitted on the first 60 pairs; losses of the others are scikit-learn's, and no order by score changes."""
        record = harness.calibrate("latest", family=family, save=paired.root / "releases/c.json").calibrator
        assert (record.of, record.labels, record.fitted_on.n) == ("pairs", ["same"], 60)
        found = harness.run("s", candidate="warm", parent="raw")
        chances = getattr(fitting, f"fit_{family}")(SCORES[:60], HELD[:60]).probabilities(SCORES[60:])
        own, before = paired.values(found), paired.values(found, "parent")
        inside = np.clip(chances, 2.0**-52, 1 - 2.0**-52)
        assert own["log_loss"] == pytest.approx(sk.log_loss(HELD[60:], inside), abs=1e-6)
        assert own["brier_binary"] == pytest.approx(sk.brier_score_loss(HELD[60:], chances))
        assert own["spearman"] == before["spearman"]
        assert before["log_loss"] is None
        assert any("raw gives no probability, so log_loss" in each for each in found.remarks)
        rows = harness.sql(
            "SELECT slice, sum(forecasts) FROM reliability_bins WHERE side = 'candidate' GROUP BY 1"
        ).rows
        assert {str(name): count for name, count in rows} == {"all": 60, "kind=odd": 30, "kind=even": 30}

    def test_a_threshold_behind_a_calibrator_is_of_the_probability(self, paired: Bench) -> None:
        maps = harness.calibrate("latest", family="platt", save=paired.root / "releases/c.json").calibrator.maps
        harness.run("s", candidate="warm", parent="raw")
        record = harness.threshold("latest", rule="costs", false_positive=4, false_negative=1).threshold
        assert (record.type, record.threshold) == ("probability", 0.8)
        of_raw = harness.threshold("latest", rule="f1", side="parent").threshold
        of_warm = harness.threshold("latest", rule="f1").threshold
        assert of_raw.type == "cosine" and of_raw.reached == of_warm.reached
        with pytest.raises(Misconfigured, match="a cosine is no probability"):
            harness.threshold("latest", rule="costs", false_positive=4, false_negative=1, side="parent")
        more = CALIBRATED + '[score]\nthreshold = 0.8\n[decision]\ntype = "probability"\n'
        paired.release("strict", "value", "cosine", COSINES, more)
        found = paired.values(harness.run("s", candidate="strict", parent="raw"))
        assert maps[0].slope is not None and maps[0].intercept is not None
        called = sigmoid(maps[0].slope * SCORES[60:] + maps[0].intercept) >= 0.8
        assert found["pair_accuracy"] == pytest.approx((called == HELD[60:]).mean())

    def test_who_is_unsure_by_a_cosine_cannot_abstain(self, paired: Bench) -> None:
        paired.release("shy", "value", "cosine", COSINES, SHY.format("confidence", 0.7))
        with pytest.raises(Misconfigured, match="cosine, which is no probability"):
            harness.run("s", candidate="shy", parent="raw")


class TestWhatHasNoChance:
    """Refused with the reason, never by a fit of something else."""

    def test_a_degree_of_likeness(self, bench: Bench) -> None:
        pairs(bench, np.random.default_rng(1).random(N), ["spearman"])
        with pytest.raises(Misconfigured, match="a degree of likeness"):
            harness.calibrate("latest", family="platt")

    def test_numbers(self, bench: Bench) -> None:
        rows = [{"id": f"c{i}", "text": f"t {i}", "value": i / 7, "split": role(i)} for i in range(N)]
        bench.suite("regression", rows, ["mae"], margin=1)
        bench.release("raw", "value", "value", {f"c{i}": i / 8 for i in range(N)})
        harness.run("s", candidate="raw", parent="none")
        with pytest.raises(Misconfigured, match="no probability that it is right"):
            harness.calibrate("latest", family="platt")

    def test_tags_of_which_no_logits_are_kept(self, bench: Bench) -> None:
        tags = {f"c{i}": [("O", "B-X")[i % 2]] for i in range(N)}
        rows = [
            {"id": name, "tokens": [f"w{name}"], "tags": tag, "split": role(int(name[1:]))}
            for name, tag in tags.items()
        ]
        bench.suite("entity", rows, ["entity_f1"], margin=0.9)
        bench.release("raw", "tags", "tags", tags)
        harness.run("s", candidate="raw", parent="none")
        with pytest.raises(Misconfigured, match="not the logits of each token"):
            harness.calibrate("latest", family="temperature")


ANSWERABLE = np.arange(60) % 3 > 0
RANKED = np.round(RNG.normal(size=(60, 4)) + 1.5 * np.outer(ANSWERABLE, np.arange(4) == 0), 6)
WRONG = ~((RANKED.argmax(axis=1) == 0) & ANSWERABLE)
SURE = ["aurc", "risk_at_coverage(0.8)", "log_loss", "brier_binary", "ece_positive", "answered_accuracy"]


class TestRankings:
    """By the probability that the corpus answers a question: when nothing is said, and what that is worth."""

    @pytest.fixture
    def ranked(self, project: Project) -> Project:
        """60 questions, 30 of them for calibration, two of three with an answer, d0; scores of four documents."""
        folder = project.suite(cases='role = "split"')
        toml = folder / "suite.toml"
        named = ", ".join(f'"{name}"' for name in SURE)
        toml.write_text(toml.read_text().replace('"RR@10", "nDCG@10"]', f'"RR@10", "nDCG@10", {named}]', 1))
        rows = [
            {"_id": f"q{i}", "text": f"question {i}", "kind": ("plain", "typo")[i % 2],
             "split": "calibration" if i < 30 else "promotion", "answerable": bool(ANSWERABLE[i])}
            for i in range(60)
        ]  # fmt: skip
        (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
        judged = "".join(f"q{i}\td0\t{int(ANSWERABLE[i])}\n" for i in range(60))
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
        harness.freeze("s")
        release(project, "raw", RANKED)
        harness.run("s", candidate="raw", parent="none")
        harness.calibrate("latest", family="platt", of="answerability", save=project.root / "releases/c.json")
        return project

    def chances(self, project: Project) -> np.ndarray:
        [platt] = json.loads((project.root / "releases/c.json").read_text())["maps"]
        return sigmoid(platt["slope"] * RANKED.max(axis=1) + platt["intercept"])

    def test_what_is_answered_and_what_that_risks(self, ranked: Project) -> None:
        """By hand, of 30 questions those with P ≥ .6: wrong is what has another document first, or no answer."""
        release(ranked, "shy", RANKED, CALIBRATED + SHY.format("answerability", 0.6))
        found = harness.run("s", candidate="shy", parent="raw")
        own, before = (
            {name: each.value for name, each in found.metrics[side]["all"].items()} for side in ("candidate", "parent")
        )
        chances, wrong = self.chances(ranked)[30:], WRONG[30:]
        given = chances >= 0.6
        assert own["coverage"] == pytest.approx(given.mean()) and before["coverage"] == 1
        assert own["answered_accuracy"] == pytest.approx(1 - wrong[given].mean())
        assert before["answered_accuracy"] == pytest.approx(1 - wrong.mean())
        lost = np.cumsum(wrong[np.argsort(-chances)])
        assert own["aurc"] == before["aurc"] == pytest.approx((lost / np.arange(1, 31)).mean())
        assert own["risk_at_coverage(0.8)"] == pytest.approx(lost[23] / 24)
        assert own["log_loss"] == pytest.approx(sk.log_loss(ANSWERABLE[30:], chances))
        assert own["brier_binary"] == pytest.approx(sk.brier_score_loss(ANSWERABLE[30:], chances))
        assert before["log_loss"] is None
        pages = [(ranked.root / "reports" / found.run / name).read_bytes() for name in ("index.html", "report.md")]
        harness.decide(found.run)
        assert pages == [(ranked.root / "reports" / found.run / n).read_bytes() for n in ("index.html", "report.md")]

    def test_where_the_suite_names_no_accuracy_of_the_answered_a_remark_has_the_coverage(self, ranked: Project) -> None:
        toml = ranked.root / "suites/s/suite.toml"
        toml.write_text(toml.read_text().replace(', "answered_accuracy"', ""))
        harness.freeze("s")
        release(ranked, "shy", RANKED, CALIBRATED + SHY.format("answerability", "1.0"))
        found = harness.run("s", candidate="shy", parent="raw")
        said = "shy abstains: it answers 0 of 30 promotion cases (coverage 0.0000)"
        assert any(said in each for each in found.remarks)

    def test_a_rule_may_hold_it(self, ranked: Project) -> None:
        """Who is sure of what has no answer, and puts other documents first, fails by its AURC."""
        toml = ranked.root / "suites/s/suite.toml"
        rule = '[[rules]]\nid = "sure"\nkind = "no-worse"\nmetric = "aurc"\nmargin = 0.05\n'
        toml.write_text(toml.read_text() + rule)
        harness.freeze("s")
        release(ranked, "turned", -RANKED)
        found = harness.run("s", candidate="turned", parent="raw")
        assert str(next(each for each in found.decision.rules if each.id == "sure").outcome) == "FAIL"
        assert harness.selftest(found.run, trials=10).as_record()["power"] is not None

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            (SHY.format("answerability", 0.6), "no calibrator"),
            (CALIBRATED + SHY.format("confidence", 0.6), "confidence of a ranking"),
        ],
    )
    def test_no_other_ground_and_none_without_a_calibrator(self, ranked: Project, more: str, words: str) -> None:
        release(ranked, "shy", RANKED, more)
        with pytest.raises(Misconfigured, match=words):
            harness.run("s", candidate="shy", parent="raw")

    def test_a_rule_of_abstention_is_fitted_on_the_calibration_role(self, ranked: Project) -> None:
        """So much is answered there as was asked for, and in force it is not exploratory."""
        release(ranked, "warm", RANKED, CALIBRATED)
        harness.run("s", candidate="warm", parent="none")
        path = ranked.root / "releases/t.json"
        record = harness.threshold("latest", rule="coverage", coverage=0.5, save=path).threshold
        chances, wrong = self.chances(ranked)[:30], WRONG[:30]
        assert record.below is not None and record.ground == "answerability"
        given = chances >= record.below - 1e-12
        assert given.mean() == record.reached["coverage"] == 0.5
        assert record.reached["risk"] == pytest.approx(wrong[given].mean())
        assert harness.threshold("latest", rule="costs", false_positive=3, false_negative=1).threshold.below == 0.75
        with pytest.raises(Misconfigured, match="costs, coverage or risk"):
            harness.threshold("latest", rule="f1")
        with pytest.raises(Misconfigured, match="--ground: an option that the rule coverage of a suite in which"):
            harness.threshold("latest", rule="coverage", coverage=0.5, ground="margin")
        with pytest.raises(Misconfigured, match=r"costs of answered\. Expected: one of answerable"):
            harness.threshold(
                "latest", rule="costs", false_positive=3, false_negative=1, label_costs={"answered": (1, 2)}
            )
        release(ranked, "fitted", RANKED, CALIBRATED + '[decision]\npath = "../t.json"\n')
        found = harness.run("s", candidate="fitted", parent="raw")
        assert not found.decision.exploratory
        assert any("rule of abstention of fitted (by coverage)" in each for each in found.remarks)
        with pytest.raises(Misconfigured, match="no calibrator of answerability in release 'raw'"):
            harness.threshold("latest", rule="coverage", coverage=0.5, side="parent")


def release(project: Project, name: str, scores: np.ndarray, more: str = "") -> None:
    folder = project.recorded(name, lambda i: 1)
    lines = "".join(f"q{i} Q0 d{k} 1 {scores[i, k]:.6f} t\n" for i in range(60) for k in range(4))
    (folder / "run.trec").write_text(lines)
    toml = folder / "release.toml"
    toml.write_text(toml.read_text() + more)
