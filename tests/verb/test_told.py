"""What people are told of a run: its pages, its cases in words, and what to ask next."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.output.answer import Answer
from harness.report.content import Content
from harness.report.verdict import commands
from harness.verb.place import find_place
from harness.verb.report import content

from .conftest import Project
from .test_task import LABELS, Bench, N, classes, labelled

QUALITIES = {"good": 2.0, "poor": 0.5}


def told(found: Answer) -> Content:
    return content(find_place(), found)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    (tmp_path / "suites").mkdir()
    (tmp_path / "releases").mkdir()
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


@pytest.fixture
def classified(bench: Bench, plain_page: None) -> Callable[..., Answer]:
    """Runs a poor classifier against a good one, under metrics of which the first is primary."""

    def run(*metrics: str) -> Answer:
        for name, quality in QUALITIES.items():
            gold, logits = classes(np.random.default_rng(1), quality)
            bench.release(name, "logits", "logit", logits)
        bench.suite("classification", labelled(gold), list(metrics))
        return harness.run("s", candidate="poor", parent="good")

    return run


class TestWhichCases:
    def test_by_the_primary_metric(self, classified: Callable[..., Answer]) -> None:
        assert classified("log_loss", "f1_macro").followed == "log_loss"

    def test_else_by_the_one_that_says_right(self, classified: Callable[..., Answer]) -> None:
        """accuracy says when a case is right, though no suite names it; it stands behind a mean that is named."""
        assert classified("f1_macro", "log_loss").followed == "accuracy"

    def test_else_by_none(self, bench: Bench, plain_page: None) -> None:
        """Of numbers nothing says right, and r2 is of all cases together: no case is worse, and none is asked for."""
        target = np.random.default_rng(2).normal(50, 10, N)
        bench.suite("regression", [{"id": f"c{i}", "text": "t", "value": y} for i, y in enumerate(target)], ["r2"])
        for name, noise in (("a", 4.0), ("b", 8.0)):
            outputs = target + np.random.default_rng(3).normal(0, noise, N)
            bench.release(name, "value", "value", {f"c{i}": x for i, x in enumerate(outputs)})
        found = harness.run("s", candidate="b", parent="a")
        assert (found.followed, told(found).regressions, told(found).case_deltas) == (None, (), ())
        assert not any("worst_regressions" in command for command, _ in commands(found))


class TestDirection:
    def test_of_an_error_the_cases_that_rose_are_worse(self, bench: Bench, plain_page: None) -> None:
        """Case i misses by i instead of by 1 where i is even, by 1 instead of by i where it is odd."""
        target = [100.0] * N
        bench.suite("regression", [{"id": f"c{i:03}", "text": "t", "value": y} for i, y in enumerate(target)], ["mae"])
        for name, parity in (("new", 0), ("old", 1)):
            missed = {f"c{i:03}": y + (i if i % 2 == parity else 1) for i, y in enumerate(target)}
            bench.release(name, "value", "value", missed)
        found = harness.run("s", candidate="new", parent="old")
        assert found.losses == ("mae",)
        worse, better = told(found).regressions, told(found).improvements
        assert [each.case_id for each in worse[:2]] == ["c118", "c116"]
        assert [each.case_id for each in better[:2]] == ["c119", "c117"]
        assert (worse[0].parent_value, worse[0].candidate_value) == (1.0, 118.0)
        assert harness.explain("latest", rule="headline").split("lost most:\n    ")[1].startswith("c118 +117.0000")


class TestReport:
    def test_tables_cases_and_commands_of_labels(self, classified: Callable[..., Answer]) -> None:
        """Both sides beside the metrics; a case with its gold and predictions; nothing of documents."""
        found = classified("f1_macro", "log_loss")
        said = told(found)
        for side in ("candidate", "parent"):
            names = [each.name for each in said.companions[side]]
            assert names == ["classes", "confusion", "reliability", "coverage"]
        worst = said.regressions[0].predicted
        assert worst and worst.parent and worst.gold == worst.parent.said != worst.candidate.said
        assert worst.parent.probability is not None and 1 / 3 < worst.parent.probability < 1
        text = (Path(found.report or "").parent / "report.md").read_text()
        assert "## Beside the metrics" in text and "judging_queue" not in text and "document" not in text

    def test_the_same_bytes_again(self, bench: Bench) -> None:
        """The whole page, its tables and figures included."""
        for name, quality in QUALITIES.items():
            gold, logits = classes(np.random.default_rng(1), quality)
            bench.release(name, "logits", "logit", logits)
        bench.suite("classification", labelled(gold), ["f1_macro"])
        found = harness.run("s", candidate="poor", parent="good")
        folder = Path(found.report or "").parent
        first = {path.name: path.read_bytes() for path in folder.iterdir()}
        harness.report("latest")
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
        assert b"Beside the metrics" in first["index.html"]


class TestExplainedCase:
    def test_of_labels(self, classified: Callable[..., Answer]) -> None:
        """Gold, what either side predicted and how surely, and the metrics that have a value by case."""
        found = classified("f1_macro", "accuracy")
        gold, _ = classes(np.random.default_rng(1), 1.0)
        worst = told(found).regressions[0]
        number = int(worst.case_id[1:])
        said = harness.explain("latest", case=worst.case_id)
        assert f"  gold: {gold[number]}\n" in said
        assert f"predicted: {gold[number]} with probability 0." in said.partition("candidate")[0]
        [wrong] = [label for label in LABELS if f"predicted: {label}" in said.partition("candidate")[2]]
        assert wrong != gold[number]
        assert "accuracy: 1.0000 to 0.0000 (-1.0000)" in said and "f1_macro" not in said
        assert "document" not in said

    def test_flags_and_what_is_not_there(self, bench: Bench, plain_page: None) -> None:
        """A tie is said, a side without an output predicted nothing, and a gold may be unknown."""
        cases = [{"id": f"c{i}", "text": "t", "label": None if i == 1 else LABELS[i % 3]} for i in range(N)]
        bench.suite("classification", cases, ["accuracy"])
        even = {f"c{i}": dict.fromkeys(LABELS, 0.0) for i in range(N)}
        bench.release("even", "logits", "logit", even)
        bench.release("less", "logits", "logit", {case: row for case, row in even.items() if case != "c0"})
        harness.run("s", candidate="less", parent="even")
        first, second = (harness.explain("latest", case=case) for case in ("c0", "c1"))
        assert "predicted: BILL with probability 0.3333 (tied)" in first
        assert "candidate less: missing" in first and "predicted: nothing" in first.partition("candidate")[2]
        assert "gold: not known" in second

    @pytest.mark.usefixtures("plain_page")
    def test_what_a_last_stage_was_given(self, project: Project) -> None:
        """How many documents, and whether the relevant ones were among them."""
        folder = project.suite("r")
        toml = folder / "suite.toml"
        toml.write_text(
            toml.read_text().replace('"retrieval"', '"reranking"') + '[candidates]\npath = "candidates.tsv"\n'
        )
        given = [(f"q{i}", f"d{document}") for i in range(60) for document in (range(1, 4) if i == 5 else range(4))]
        (folder / "candidates.tsv").write_text("".join(f"{case}\t{document}\n" for case, document in given))
        project.judge("q7 d1 1", "q7 d6 1", suite="r")
        harness.freeze("r")
        harness.run("r", candidate="better", parent="old")
        said = {case: harness.explain("latest", case=case) for case in ("q0", "q5", "q7")}
        assert said["q0"].count("its last stage was given 4 documents, all 1 relevant among them") == 2
        assert said["q5"].count("its last stage was given 3 documents, 0 of 1 relevant among them; not d0") == 2
        assert said["q7"].count("its last stage was given 4 documents, 2 of 3 relevant among them; not d6") == 2

    @pytest.mark.usefixtures("plain_page")
    def test_without_a_last_stage_nothing_is_said_of_one(self, project: Project) -> None:
        harness.freeze("s")
        found = harness.run("s", candidate="better", parent="old")
        said = harness.explain("latest", case="q0")
        assert "last stage" not in said and "predicted" not in said and "gold" not in said
        assert json.dumps(found.as_record())


class TestUndefined:
    def test_a_slice_without_the_class(self, bench: Bench, plain_page: None) -> None:
        """Every case is scored, but none has the class: the rule says so, in the report too."""
        rng = np.random.default_rng(7)
        gold = ["REFUND" if i % 2 and i % 3 == 0 else LABELS[i % 2] for i in range(N)]
        cases = [{**each, "long": i % 2 == 0} for i, each in enumerate(labelled(gold))]
        logits = {}
        for i, label in enumerate(gold):
            wrong = label if rng.random() < 0.8 else "CARD"
            logits[f"c{i}"] = {name: 3.0 * (name == wrong) for name in LABELS}
        bench.suite(
            "classification", cases, ["accuracy"],
            more='[[rules]]\nid = "rare"\nkind = "no-worse"\nmetric = "recall[REFUND]"\nslice = "even"\nmargin = 0.1\n'
            '[[slices]]\nname = "even"\nwhere = "long"\n',
        )  # fmt: skip
        bench.release("a", "logits", "logit", logits)
        bench.release("b", "logits", "logit", logits, 'revision = "2"\n')
        found = harness.run("s", candidate="b", parent="a")
        rare = {rule.id: rule for rule in found.decision.rules}["rare"]
        assert (str(rare.outcome), rare.n_cases) == ("UNDECIDED", N // 2)
        assert "recall[REFUND] is undefined on both sides here, though 60 cases are scored" in rare.reason
