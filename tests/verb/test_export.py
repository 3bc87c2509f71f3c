"""What other tools read of a stored run."""

import json
from pathlib import Path

import pytest
import pytrec_eval

import harness
from harness.errors import Misconfigured
from harness.output.answer import Answer
from harness.suite.definition import SuiteDefinition
from harness.verb.export import split_of

from .conftest import Project


@pytest.mark.usefixtures("plain_page")
class TestExport:
    def ran(self, project: Project) -> Answer:
        harness.freeze("s")
        return harness.run("s", candidate="better", parent="old")

    def test_trec_eval_gives_the_same_numbers_from_it(self, project: Project) -> None:
        """Run and judgements as written, scored by another's scorer."""
        found = self.ran(project)
        files = harness.export("latest", format="trec").files
        assert [file.rpartition("/")[2] for file in files] == ["candidate.trec", "parent.trec", "qrels.trec"]
        rows = [line.split(" ") for line in Path(files[1]).read_text().splitlines()]
        assert all(len(row) == 6 for row in rows)
        run: dict[str, dict[str, float]] = {}
        for query, _, document, _, score, _ in rows:
            run.setdefault(query, {})[document] = float(score)
        qrels: dict[str, dict[str, int]] = {}
        for line in Path(files[2]).read_text().splitlines():
            query, _, document, grade = line.split(" ")
            qrels.setdefault(query, {})[document] = int(grade)
        scored = pytrec_eval.RelevanceEvaluator(qrels, {"recip_rank"}).evaluate(run)
        mean = sum(each["recip_rank"] for each in scored.values()) / len(scored)
        assert mean == pytest.approx(found.metrics["parent"]["all"]["RR@10"].value)

    def test_beir_holds_every_score(self, project: Project) -> None:
        self.ran(project)
        files = harness.export("latest", format="beir", to=project.root / "out").files
        held = json.loads((project.root / "out/candidate.json").read_text())
        assert len(files) == 2 and len(held) == 60 and held["q0"]["d0"] == 9.0

    def test_mteb_has_the_main_score_and_its_names(self, project: Project) -> None:
        found = self.ran(project)
        harness.export("latest", format="mteb", to="out")
        told = json.loads((project.root / "out/candidate.json").read_text())
        scores = told["scores"]["test"][0]
        assert told["task_name"] == "s"
        assert scores["main_score"] == scores["mrr_at_10"] == found.metrics["candidate"]["all"]["RR@10"].value
        assert "ndcg_at_10" in scores
        assert (list(told["scores"]), scores["hf_subset"]) == (["test"], "default")
        assert scores["languages"] == ["und-Zyyy"]

    @pytest.mark.parametrize(
        ("keys", "role", "split"),
        [
            ({"format": "mteb"}, None, "test"),
            ({"format": "mteb", "qrels": "dev"}, None, "dev"),
            ({"format": "mteb"}, {"train": "calibration", "validation": "promotion"}, "validation"),
            ({"format": "jsonl"}, {"my.jsonl": "promotion"}, "test"),
        ],
    )
    def test_mteb_is_told_its_own_name_of_the_split(self, keys: dict[str, str], role: object, split: str) -> None:
        """It drops the scores of a split that the task has not."""
        definition = SuiteDefinition.model_validate({
            "schema": "harness.suite.v1", "name": "s", "task": "retrieval", "source": keys, "cases": {"role": role},
            "metrics": {"primary": "RR@10"},
        })  # fmt: skip
        assert split_of(definition) == split

    def test_other_files_in_the_folder_stay(self, project: Project) -> None:
        self.ran(project)
        (project.root / "out").mkdir()
        (project.root / "out/mine.txt").write_text("mine")
        harness.export("latest", format="beir", to="out")
        assert (project.root / "out/mine.txt").read_text() == "mine"

    def test_an_id_with_a_blank_has_no_trec_form(self, project: Project) -> None:
        folder = project.root / "suites/s"
        for file in ("queries.jsonl", "qrels/test.tsv"):
            path = folder / file
            path.write_text(path.read_text().replace("q0", "q 0", 1))
        with pytest.raises(Misconfigured, match="blank"):
            self.ran(project)
            harness.export("latest", format="trec")
