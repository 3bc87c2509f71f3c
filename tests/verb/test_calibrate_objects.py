"""Calibrators of rankings, answers and choices: from stored scores, under their own key, for their own cases."""

import json
import re
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import harness
from harness.calibration.fit import sigmoid
from harness.errors import Leaked, Misconfigured, NotAdmitted

from .conftest import Project
from .conftest import project as project
from .test_calibrate import OUTPUTS, calibrated, cases, resealed
from .test_calibrate import ran as ran
from .test_task import Bench
from .test_task import bench as bench

N = 120


def role(i: int) -> str:
    return "calibration" if i < 60 else "promotion"


class TestChoices:
    @pytest.fixture
    def chosen(self, bench: Bench) -> tuple[Bench, list[int], dict[str, list[float]]]:
        """Cases of two to four choices, and logits that are too sure."""
        rng = np.random.default_rng(1)
        gold = [int(rng.integers(2 + i % 3)) for i in range(N)]
        sizes = [2 + i % 3 for i in range(N)]
        raised = [1.2 * (np.arange(size) == right) for size, right in zip(sizes, gold, strict=True)]
        logits = {f"c{i}": (6 * (rng.normal(size=sizes[i]) + raised[i])).tolist() for i in range(N)}
        rows = [
            {"id": f"c{i}", "question": f"q {i}", "choices": [f"{i}-{k}" for k in range(sizes[i])], "label": gold[i],
             "split": role(i)}
            for i in range(N)
        ]  # fmt: skip
        bench.suite("multiple-choice", rows, ["choice_log_loss", "choice_accuracy", "ece_top_label"], margin=5)
        bench.release("raw", "logits", "logit", logits)
        harness.run("s", candidate="raw", parent="none")
        return bench, gold, logits

    def test_one_temperature_over_each_case_s_own_choices(self, chosen: Any) -> None:
        """None has less loss on the first 60 cases, and the promotion loss is that of the scaled logits."""
        bench, gold, logits = chosen
        harness.calibrate("latest", family="temperature", save=bench.root / "releases/calibrator.json")
        said = json.loads((bench.root / "releases/calibrator.json").read_text())
        t = said["maps"][0]["temperature"]

        def loss(temperature: float, low: int, high: int) -> float:
            of = [np.array(logits[f"c{i}"]) / temperature for i in range(low, high)]
            return float(np.mean([np.log(np.exp(x).sum()) - x[g] for x, g in zip(of, gold[low:high], strict=True)]))

        found = minimize(
            lambda x: loss(float(np.exp(x[0])), 0, 60), [0.0], method="Nelder-Mead", options={"xatol": 1e-8}
        )
        assert t == pytest.approx(np.exp(found.x[0]), rel=1e-4)
        assert said["of"] == "choices"
        bench.release("warm", "logits", "logit", logits, '[calibrator]\npath = "../calibrator.json"\n')
        answer = harness.run("s", candidate="warm", parent="raw")
        values, parent = bench.values(answer), bench.values(answer, "parent")
        assert values["choice_log_loss"] == pytest.approx(loss(t, 60, N), abs=1e-9)
        assert values["choice_log_loss"] < parent["choice_log_loss"]
        assert values["choice_accuracy"] == parent["choice_accuracy"]
        assert values["ece_top_label"] < parent["ece_top_label"]

    def test_families_of_labels_are_none_of_choices(self, chosen: Any) -> None:
        with pytest.raises(Misconfigured, match="temperature"):
            harness.calibrate("latest", family="vector")


class TestAnswers:
    def test_the_gap_to_the_null_score_says_whether_there_is_an_answer(self, bench: Bench) -> None:
        rng = np.random.default_rng(2)
        there = rng.random(N) < 0.6
        gap = 3 * rng.normal(size=N) + 2 * there
        rows = [
            {"id": f"c{i}", "question": f"q{i}", "context": f"word{i} here",
             "answers": [f"word{i}"] if there[i] else [], "split": role(i)}
            for i in range(N)
        ]  # fmt: skip
        said = {f"c{i}": f"word{i}" for i in range(N)}
        bench.suite("answer", rows, ["exact_match"], margin=0.5)
        for name, more in (("raw", ""), ("warm", '[calibrator]\npath = "../calibrator.json"\n')):
            bench.release(name, "answer", "logit", said, more)
            lines = [{"id": f"c{i}", "answer": f"word{i}", "score": float(gap[i]), "null_score": 0.0} for i in range(N)]
            (bench.root / f"releases/{name}/out.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
        harness.run("s", candidate="raw", parent="none")
        record = harness.calibrate("latest", family="platt", save=bench.root / "releases/calibrator.json").calibrator
        assert (record.of, record.score_type, record.corpus) == ("answerability", "gap", None)
        harness.run("s", candidate="warm", parent="raw")
        rows = harness.sql("SELECT case_id, probability FROM predictions WHERE release = 'warm'").rows
        slope, intercept = record.maps[0].slope, record.maps[0].intercept
        assert slope is not None and intercept is not None and slope > 0
        assert {str(case): chance for case, chance in rows} == pytest.approx(
            {f"c{i}": float(sigmoid(np.array([slope * gap[i] + intercept]))[0]) for i in range(N)}
        )


class TestRankings:
    @pytest.fixture
    def ranked(self, project: Project) -> Project:
        """60 questions, the first half for calibration; scores say how relevant a document is, the other way round for
        none; every third question has no answer here.
        """
        rng = np.random.default_rng(3)
        folder = project.suite(cases='role = "split"\ngroup = "topic"')
        rows = [
            {"_id": f"q{i}", "text": f"question {i}", "kind": ("plain", "typo")[i % 2], "topic": f"t{i // 2}",
             "split": "calibration" if i < 30 else "promotion", "answerable": i % 3 > 0}
            for i in range(60)
        ]  # fmt: skip
        (folder / "queries.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
        judged = "".join(f"q{i}\td{k}\t{int(k == 0 and i % 3 > 0)}\n" for i in range(60) for k in range(3))
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + judged)
        harness.freeze("s")
        for name in ("raw", "warm"):
            release = project.recorded(name, lambda i: 1)
            scores = rng.normal(size=(60, 4)) + 1.5 * np.outer(np.arange(60) % 3 > 0, np.arange(4) == 0)
            (release / "run.trec").write_text(
                "".join(f"q{i} Q0 d{k} 1 {scores[i, k]:.6f} t\n" for i in range(60) for k in range(4))
            )
        harness.run("s", candidate="raw", parent="none")
        return project

    def test_relevance_of_judged_pairs_with_intervals_by_query(self, ranked: Project) -> None:
        record = harness.calibrate("latest", family="platt").calibrator
        assert (record.of, record.fitted_on.n, record.fitted_on.n_cases, record.fitted_on.n_groups) == (
            "relevance",
            90,
            30,
            15,
        )
        assert "judged pool" in str(record.valid_for)
        assert len(record.curve) == 5 and record.curve_draws > 150
        assert all(point.low < point.probability < point.high for point in record.curve)
        assert [point.probability for point in record.curve] == sorted(point.probability for point in record.curve)
        assert harness.calibrate("latest", family="platt").calibrator == record

    def test_answerability_hangs_on_the_corpus(self, ranked: Project) -> None:
        """Fitted on one, it is refused under another, with both digests (exit 4)."""
        record = harness.calibrate("latest", family="platt", of="answerability").calibrator
        assert (record.fitted_on.n, record.of) == (30, "answerability") and record.corpus
        path = ranked.root / "releases/raw/calibrator.json"
        harness.calibrate("latest", family="platt", of="answerability", save=path)
        toml = path.with_name("release.toml")
        toml.write_text(toml.read_text() + '[calibrator]\npath = "calibrator.json"\n')
        answer = harness.run("s", candidate="raw", parent="none")
        assert any("was fitted on 30 cases of the calibration role" in each for each in answer.remarks)
        [[content]] = harness.sql("SELECT content FROM companions WHERE name = 'reliability'").rows
        table = json.loads(str(content))
        assert sum(row[2] for row in table["rows"]) == 30 and "this very corpus" in table["note"]
        corpus = ranked.root / "suites/s/corpus.jsonl"
        corpus.write_text(corpus.read_text() + '{"_id": "d9", "title": "", "text": "a new article"}\n')
        harness.freeze("s")
        with pytest.raises(NotAdmitted, match=record.corpus) as refusal:
            harness.run("s", candidate="raw", parent="none")
        assert refusal.value.exit_code == 4

    def test_moved_to_another_release_it_is_refused_by_name(self, ranked: Project) -> None:
        record = harness.calibrate("latest", family="isotonic", save=ranked.root / "releases/warm/c.json").calibrator
        assert record.maps[0].n_certain
        toml = ranked.root / "releases/warm/release.toml"
        toml.write_text(toml.read_text() + '[calibrator]\npath = "c.json"\n')
        with pytest.raises(NotAdmitted, match="release 'raw'") as refusal:
            harness.run("s", candidate="warm", parent="raw")
        assert record.fitted_under in str(refusal.value) and "release 'warm'" in str(refusal.value)

    def test_a_score_turned_round_is_an_error(self, ranked: Project) -> None:
        run = ranked.root / "releases/raw/run.trec"
        rows = [line.split() for line in run.read_text().splitlines()]
        run.write_text("".join(f"{' '.join(row[:4])} {-float(row[4])} t\n" for row in rows))
        harness.run("s", candidate="raw", parent="none")
        with pytest.raises(Misconfigured, match="slope"):
            harness.calibrate("latest", family="platt")

    @pytest.mark.parametrize("family", ["temperature", "beta"])
    def test_what_no_single_score_can_give_is_refused(self, ranked: Project, family: Any) -> None:
        with pytest.raises(Misconfigured, match="platt"):
            harness.calibrate("latest", family=family)


class TestLedgerOfRoles:
    """A case is known again by its inputs, in any suite, and by its ID, in one that shares a case."""

    def test_roles_that_were_exchanged(self, ran: Bench) -> None:
        calibrated(ran)
        ran.suite("classification", cases(lambda i: "promotion" if i < 60 else "calibration"), ["log_loss", "accuracy"])
        with pytest.raises(Leaked, match="60 promotion cases") as refusal:
            harness.run("s", candidate="warm", parent="none")
        assert refusal.value.exit_code == 4

    def test_another_suite_with_other_ids(self, ran: Bench) -> None:
        calibrated(ran)
        rows = [{**row, "id": f"other-{row['id']}", "split": "promotion"} for row in cases()]
        toml = ran.root / "suites/s/suite.toml"
        ran.suite("classification", rows, ["log_loss", "accuracy"])
        toml.write_text(toml.read_text().replace('name = "s"', 'name = "elsewhere"'))
        harness.freeze("s")
        turned = {f"other-{case}": each for case, each in OUTPUTS.items()}
        ran.release("warm", "logits", "logit", turned, '[calibrator]\npath = "calibrator.json"\n')
        said = json.loads((ran.root / "releases/warm/calibrator.json").read_text())
        said["fitted_under"] = _key(ran, turned)
        (ran.root / "releases/warm/calibrator.json").write_text(resealed(said))
        with pytest.raises(Leaked, match="60 promotion cases"):
            harness.run("s", candidate="warm", parent="none")

    def test_a_text_that_was_mended_since(self, ran: Bench) -> None:
        """The ID is the same, and so is the case."""
        calibrated(ran)
        rows = [
            {**row, "split": "promotion", "text": row["text"] + ("!" if i < 3 else "")} for i, row in enumerate(cases())
        ]
        ran.suite("classification", [row for i, row in enumerate(rows) if i < 3 or i >= 60], ["log_loss", "accuracy"])
        with pytest.raises(Leaked, match="3 promotion cases"):
            harness.run("s", candidate="warm", parent="none")

    def test_the_same_numbers_in_another_collection_are_no_leak(self, ran: Bench) -> None:
        calibrated(ran)
        rows = [{**row, "text": f"something else {i}", "split": "promotion"} for i, row in enumerate(cases())]
        ran.suite("classification", rows, ["log_loss", "accuracy"])
        toml = ran.root / "suites/s/suite.toml"
        toml.write_text(toml.read_text().replace('name = "s"', 'name = "elsewhere"'))
        harness.freeze("s")
        harness.run("s", candidate="warm", parent="none")

    def test_what_a_promotion_case_repeats_is_not_fitted_on(self, bench: Bench) -> None:
        """Where the suite waives that a text stands in two roles."""
        rows = [{**row, "text": "text 100" if i < 4 else row["text"]} for i, row in enumerate(cases())]
        with pytest.raises(Leaked) as found:
            bench.suite("classification", rows, ["log_loss"])
        digests = re.findall(r"\[([0-9a-f]{64})\]", str(found.value))
        waived = "".join(f'[[leakage.waivers]]\nfinding = "{each}"\nreason = "as asked"\n' for each in digests)
        bench.suite("classification", rows, ["log_loss"], more=waived)
        bench.release("raw", "logits", "logit", OUTPUTS)
        harness.run("s", candidate="raw", parent="none")
        on = harness.calibrate("latest", family="temperature").calibrator.fitted_on
        assert (on.n, on.left_out) == (56, 4)


class TestWhatIsChosenAfterIsExploratory:
    """These outcomes were read; what decides over them now must not have been chosen by them."""

    def test_a_calibrator_from_the_calibration_role_is_not(self, ran: Bench) -> None:
        calibrated(ran)
        assert not harness.run("s", candidate="warm", parent="raw").decision.exploratory

    def test_another_one_after_its_outcomes_were_read_is(self, ran: Bench) -> None:
        calibrated(ran)
        first = harness.run("s", candidate="warm", parent="raw").run
        raw = harness.run("s", candidate="raw", parent="none").run
        harness.calibrate(raw, family="vector", save=ran.root / "releases/warm/calibrator.json")
        found = harness.run("s", candidate="warm", parent="raw")
        assert found.run != first and found.decision.exploratory and found.exit_code == 3
        assert harness.decide(found.run).exit_code == 3
        assert any("another threshold, calibrator" in each for each in found.remarks)

    def test_a_threshold_that_someone_wrote_then_is(self, bench: Bench) -> None:
        """Of sets of labels; written before anything was read, it is not."""
        rows = [{k: v for k, v in {**row, "labels": [row["label"]]}.items() if k != "label"} for row in cases()]
        bench.suite("multilabel", rows, ["f1_micro"], margin=0.9)
        for name, more in (
            ("half", ""),
            ("low", "[score]\nthreshold = -1.0\n"),
            ("lower", "[score]\nthreshold = -2.0\n"),
        ):
            bench.release(name, "logits", "logit", OUTPUTS, more)
        assert not harness.run("s", candidate="low", parent="half").decision.exploratory
        found = harness.run("s", candidate="lower", parent="half")
        assert found.decision.exploratory and found.exit_code == 3
        assert not harness.run("s", candidate="low", parent="half").decision.exploratory


def _key(bench: Bench, outputs: dict[str, Any]) -> str:
    bench.release("bare", "logits", "logit", outputs)
    return harness.admit("bare").nodes["raw score"]
