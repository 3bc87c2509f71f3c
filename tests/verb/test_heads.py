"""The main job with heads: proven, run over cases, measured, decided, bundled."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import harness
from fixtures.cases import draw
from harness.errors import Misconfigured
from harness.file.sealed import own_digest
from harness.output.decision import Outcome
from harness.release.open import open_release
from harness.report.page import html
from harness.run.key import scores_key

from .test_task import Bench

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
EXTRA = {
    "multilabel": "[score]\nthreshold = 0.5\n",
    "regression": '[output.regression]\nunits = "stars"\nscale = 1.0\nshift = 3.0\n',
}
METRICS = {
    "classification": ["accuracy", "f1_macro", "log_loss"], "multilabel": ["f1_micro", "subset_accuracy"],
    "regression": ["mae", "spearman"], "entity": ["entity_f1", "sequence_accuracy"],
    "answer": ["exact_match", "answer_f1"], "choice": ["choice_accuracy"],
}  # fmt: skip


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_page: None) -> Bench:
    for room in ("suites", "releases"):
        (tmp_path / room).mkdir()
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


def release(root: Path, name: str, model: str, extra: str = "") -> None:
    folder = root / "releases" / name
    folder.mkdir()
    kind = "bi" if model == "bi" else "head"
    (folder / "release.toml").write_text(
        f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "{kind}"\n[model]\n'
        f"source = {json.dumps(f'path:{MODELS / model}')}\n{EXTRA.get(model, '')}{extra}"
    )


def direct(cases: list[dict[str, Any]]) -> float:
    """Accuracy by transformers itself, one text at a time."""
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    folder = str(MODELS / "classification")
    model, tokenizer = AutoModelForSequenceClassification.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        logits = [model(**tokenizer(case["text"], return_tensors="pt")).logits[0] for case in cases]
    said = [model.config.id2label[int(row.argmax())] for row in logits]
    return float(np.mean([label == case["label"] for label, case in zip(said, cases, strict=True)]))


class TestTasks:
    @pytest.mark.parametrize("model", METRICS)
    def test_a_head_is_run_from_its_folder_to_a_decision(self, project: Bench, model: str) -> None:
        """Against a parent that reads a few tokens of each text it passes, and that one does not against it."""
        cases = draw(model, 80, 11)
        project.suite("multiple-choice" if model == "choice" else model, cases, METRICS[model])
        release(project.root, "whole", model)
        release(
            project.root, "cut", model, f"[input]\nmax_length = {6 if model in ('choice', 'classification') else 12}\n"
        )
        found = harness.run("s", candidate="whole", parent="cut")
        assert found.decision.outcome is Outcome.PASS and found.bundle is not None
        assert (found.counts.failed, found.counts.missing, found.counts.truncated) == (0, 0, 0)
        assert project.values(found) != project.values(found, "parent")
        back = harness.run("s", candidate="cut", parent="whole")
        assert back.counts.truncated > 0 and back.decision.outcome is not Outcome.PASS
        if model == "classification":
            assert project.values(found)["accuracy"] == pytest.approx(direct(cases))

    def test_two_texts_are_alike_by_a_bi_encoder(self, project: Bench) -> None:
        pairs = [
            ("the parcel is late", "where is my parcel", 4.0), ("i want a refund", "how do i get a refund", 5.0),
            ("the parcel is late", "how do i get a refund", 1.0), ("where is the dock", "my password is lost", 0.0),
        ]  # fmt: skip
        cases = [{"id": f"c{i}", "text_a": a, "text_b": b, "value": v} for i, (a, b, v) in enumerate(pairs * 6)]
        project.suite("similarity", cases, ["spearman"])
        release(project.root, "one", "bi")
        found = harness.run("s", candidate="one", parent="none")
        assert project.values(found)["spearman"] > 0.5 and found.counts.failed == 0
        told = {
            (name, texts): (n, absent)
            for name, texts, n, absent in harness.sql("SELECT name, texts, n, absent FROM vector_diagnostics").rows
        }
        assert told["anisotropy", "queries"] == (3, None) and told["norm", "documents"] == (3, None)
        assert told["alignment", "pairs"] == (0, "nothing declares which texts belong together")
        assert not harness.sql("SELECT * FROM ranking_diagnostics").rows

    def test_a_head_says_that_it_has_no_space(self, project: Bench) -> None:
        project.suite("classification", draw("classification", 80, 11), ["accuracy"])
        release(project.root, "one", "classification")
        harness.run("s", candidate="one", parent="none")
        told = harness.sql("SELECT DISTINCT value, absent FROM vector_diagnostics").rows
        assert told == ((None, "a head gives a case no vector"),)


class TestLabels:
    def test_a_head_with_other_labels_than_the_data_is_refused_with_both(self, project: Bench) -> None:
        project.suite("classification", draw("classification", 80, 11), ["accuracy"])
        names = '["BILLING", "POST", "ACCOUNT", "RETURNS"]'
        release(project.root, "other", "classification", f"[output]\nlabels = {names}\n")
        with pytest.raises(Misconfigured, match="'POST'") as refusal:
            harness.run("s", candidate="other", parent="none")
        assert "`labels` under [output]" in refusal.value.mend and "label_map" not in refusal.value.mend

    def test_outputs_are_taken_from_the_store_under_another_threshold_alone(self, project: Bench, monkeypatch) -> None:
        """Another way of decoding makes other outputs."""

        for name, extra in {"a": "", "b": 'pieces = "mean"\n', "c": 'decoder = "constrained"\n'}.items():
            release(project.root, name, "entity", f"[output]\n{extra}")
        keys = {scores_key(open_release(project.root / "releases" / name)) for name in "abc"}
        assert len(keys) == 3


class TestCoverage:
    def test_a_gold_answer_that_was_not_read_is_told_with_its_reason(self, project: Bench, monkeypatch) -> None:
        """It stays in the mean: a model that reads a few tokens is not judged on what it saw alone. The page has the
        table as it is, and no diagram of it.
        """
        project.suite("answer", draw("answer", 80, 11), METRICS["answer"])
        release(project.root, "whole", "answer")
        release(project.root, "cut", "answer", "[input]\nmax_length = 12\n")
        found = harness.run("s", candidate="cut", parent="whole")
        assert found.metrics["candidate"]["all"]["exact_match"].n_scored == 80
        rows = harness.sql("SELECT side, content FROM companions WHERE name = 'golds' ORDER BY side").rows
        told = {side: json.loads(content) for side, content in rows}
        assert told["parent"]["rows"] == []
        assert told["candidate"]["rows"] and {row[3] for row in told["candidate"]["rows"]} == {"truncated"}
        monkeypatch.setattr("harness.verb.report.html", html)
        page = Path(str(harness.report(found.run).report)).read_text()
        assert "Gold answers that were read" in page and "Risk and coverage" not in page


class TestWindows:
    WINDOW = '[input.window]\nsize = 8\nstride = 4\naggregation = "mean-of-logits"\n'

    def test_a_calibrator_is_that_of_whole_texts(self, project: Bench) -> None:
        """Fitted to the joined scores it is taken; to those of single windows, or as a bare temperature, refused."""
        apart = {case["text"].casefold(): case for case in draw("classification", 80, 11)}.values()
        cases = [{**case, "split": "calibration" if at % 2 else "promotion"} for at, case in enumerate(apart)]
        project.suite("classification", cases, ["log_loss"], margin=5.0)
        release(project.root, "raw", "classification", self.WINDOW)
        found = harness.run("s", candidate="raw", parent="none")
        assert (found.counts.failed, found.counts.truncated) == (0, 0)
        harness.calibrate("latest", family="temperature", save=project.root / "releases/c.json")
        nodes = harness.admit("raw").nodes
        written = json.loads((project.root / "releases/c.json").read_text())
        assert written["fitted_under"] == nodes["raw score:aggregated"] != nodes["raw score"]
        release(project.root, "warm", "classification", self.WINDOW + '[calibrator]\npath = "../c.json"\n')
        assert harness.admit("warm").ok
        written["fitted_under"] = nodes["raw score"]
        written["own_digest"] = own_digest(written)
        (project.root / "releases/d.json").write_text(json.dumps(written))
        release(project.root, "single", "classification", self.WINDOW + '[calibrator]\npath = "../d.json"\n')
        assert [each.name for each in harness.admit("single").checks if not each.ok] == ["calibrator-key"]
        release(project.root, "bare", "classification", self.WINDOW + "[score]\ntemperature = 2.0\n")
        assert [each.name for each in harness.admit("bare").checks if not each.ok] == ["temperature-of-whole"]
