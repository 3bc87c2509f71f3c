"""Causes from recorded outputs to what people read: the counts of the report, HTML and Markdown, and explain."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import harness
from harness.output.answer import Answer

from .conftest import Project
from .test_task import Bench

CLASSES = ("A", "B", "C")


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for room in ("suites", "releases"):
        (tmp_path / room).mkdir()
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


def chances(*values: float) -> dict[str, float]:
    return dict(zip(CLASSES, values, strict=True))


def page(found: Answer) -> dict[str, list[str]]:
    """The table of causes as the page has it: its columns under '', then the cells of each slice."""
    html = Path(found.report or "").read_text()
    table = html.partition('<section id="causes"')[2].partition("</table>")[0]
    rows = re.findall(r"<tr>(.*?)</tr>", table, re.S)
    cells = [[re.sub("<[^>]+>", "", each) for each in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row)] for row in rows]
    return {row[0] if at else "": row[1:] for at, row in enumerate(cells)}


def comment(found: Answer) -> dict[str, list[str]]:
    """The same table of the comment on a pull request."""
    text = Path(found.report or "").with_name("report.md").read_text()
    part = text.partition("## What was seen where cases got worse")[2].partition("\n## ")[0]
    rows = [re.split(r" \| ", line.strip("| ")) for line in part.splitlines() if line.startswith("| ")]
    return {row[0].strip("`") if at else "": row[1:] for at, row in enumerate(rows)}


def explained(case: str) -> str:
    return harness.explain("latest", case=case).partition("it got worse; ")[2]


def counts() -> set[tuple[object, ...]]:
    return set(harness.sql("SELECT slice, cause, cases FROM cause_counts").rows)


class TestOfLabels:
    """Forty cases of A that the parent gets right with .8. What became of six of them:"""

    BECAME: Mapping[str, dict[str, float] | None] = {
        "near": chances(0.44, 0.5, 0.06), "far": chances(0.1, 0.6, 0.3), "third": chances(0.32, 0.33, 0.35),
        "level": chances(0.45, 0.1, 0.45), "unsure": chances(0.4, 0.31, 0.29), "gone": None,
    }  # fmt: skip

    def run(self, bench: Bench, metrics: Sequence[str], more: str = "") -> Answer:
        names = [*self.BECAME, *(f"same{i}" for i in range(34))]
        cases = [{"id": name, "text": f"text {name}", "label": "A", "odd": i % 2 == 1} for i, name in enumerate(names)]
        for label in "BC":
            cases.append({"id": f"only {label}", "text": f"text {label}", "label": label, "odd": False})
        slices = '[[slices]]\nname = "odd"\nwhere = "odd"\n[[slices]]\nname = "even"\nwhere = "not odd"\n'
        bench.suite("classification", cases, list(metrics), more=slices + more)
        before = {each["id"]: chances(0.8, 0.12, 0.08) for each in cases}
        before |= {"only B": chances(0, 1, 0), "only C": chances(0, 0, 1), "unsure": chances(0.8, 0.11, 0.09)}
        after = {name: row for name, row in (before | self.BECAME).items() if row is not None}
        bench.release("old", "probabilities", "probability", before)
        bench.release("new", "probabilities", "probability", after)
        return harness.run("s", candidate="new", parent="old")

    def test_the_report_counts_each_case_once_by_slice(self, bench: Bench) -> None:
        """By accuracy four got worse. A tie counts as the first by name, so `level` is right still; `unsure` too."""
        found = self.run(bench, ["accuracy"])
        assert found.followed == "accuracy"
        expected = {
            "": ["no-output", "label-boundary", "unexplained"], "all": ["1", "2", "1"], "odd": ["1", "0", "1"],
            "even": ["0", "2", "0"],
        }  # fmt: skip
        worse = {"all": "4", "odd": "2", "even": "2"}
        for told in (page(found), comment(found)):
            assert {name: cells[1:] for name, cells in told.items()} == expected
            assert {name: cells[0] for name, cells in told.items() if name} == worse

    def test_explain_names_what_holds_of_a_case(self, bench: Bench) -> None:
        self.run(bench, ["accuracy"])
        assert "label-boundary: it is wrong by no more than the boundary_gap of the suite" in explained("near")
        assert "(near-boundary)" in harness.explain("latest", case="near")
        assert "label-boundary" in explained("third") and "unexplained" in explained("far")
        assert "no-output: missing" in explained("gone")
        assert explained("level") == explained("unsure") == explained("same0") == ""

    def test_the_gap_is_declared(self, bench: Bench) -> None:
        """`near` lacks .06 and `third` .03; the parent's flags are under the same gap."""
        self.run(bench, ["accuracy"], "[metrics.policy]\nboundary_gap = 0.05\n")
        assert ("all", "label-boundary", 1) in counts() and "unexplained" in explained("near")

    def test_a_loss_of_sureness_alone_is_calibration(self, bench: Bench) -> None:
        """By log_loss `unsure` got worse too, with all labels in the order in which they were."""
        found = self.run(bench, ["log_loss"])
        assert found.followed == "log_loss"
        assert "calibration-only: both sides put the labels or choices in one order" in explained("unsure")
        assert "tied" in explained("level")

    def test_they_follow_the_metric_that_the_report_follows(self, bench: Bench) -> None:
        """f1_macro has no values by case and accuracy says right: what got worse by log_loss alone is not told."""
        found = self.run(bench, ["f1_macro", "log_loss"])
        assert found.followed == "accuracy"
        assert explained("unsure") == "" and "label-boundary" in explained("near")
        worse = {row[0] for row in harness.sql("SELECT case_id FROM regressed_cases").rows}
        assert worse == {"near", "far", "third", "gone"}

    def test_the_same_bytes_from_the_store(self, bench: Bench) -> None:
        found = self.run(bench, ["accuracy"])
        folder = Path(found.report or "").parent
        before = {each.name: each.read_bytes() for each in folder.iterdir()}
        for verb in (harness.decide, harness.report):
            verb("latest")
            assert {each.name: each.read_bytes() for each in folder.iterdir()} == before

    def test_both_reports_have_the_transitions(self, bench: Bench) -> None:
        """Of 42 four were lost, and the others are right on both sides; .125 is 2 · ½⁴."""
        found = self.run(bench, ["accuracy"])
        text = Path(found.report or "").with_name("report.md").read_text()
        assert "| `all` | 38 | 4 | 0 | 0 | 0 | 0.125 |" in text
        assert "Who was right" in Path(found.report or "").read_text()


@pytest.mark.usefixtures("plain_page")
class TestOfOtherTasks:
    N = 40

    def run(self, bench: Bench, task: str, metric: str, gold: dict[str, Any], said: dict[str, Sequence[Any]]) -> None:
        """All alike but `q0`; `said`: by key the score type, what the parent says, and what of `q0` the candidate."""
        [(key, (score_type, before, after))] = said.items()
        bench.suite(task, [{"id": f"q{i}", **gold} for i in range(self.N)], [metric])
        rows = {f"q{i}": before for i in range(self.N)}
        bench.release("old", key, score_type, rows)
        bench.release("new", key, score_type, rows | {"q0": after})
        harness.run("s", candidate="new", parent="old")

    @pytest.mark.parametrize(("after", "cause"), [
        ({"A": 0.9, "B": 0.55}, "label-boundary"), ({"A": 0.97, "B": 0.95}, "unexplained"),
        ({"A": 0.45, "B": 0.55}, "label-boundary"), ({"A": 0.45, "B": 0.95}, "unexplained"),
    ])  # fmt: skip
    def test_sets_of_labels(self, bench: Bench, after: dict[str, float], cause: str) -> None:
        """B just above .5, far above it; A just below as well. That A stands before B still is no calibration."""
        self.run(bench, "multilabel", "subset_accuracy", {"text": "x", "labels": ["A"]}, {
            "probabilities": ("probability", {"A": 0.9, "B": 0.2}, after),
        })  # fmt: skip
        assert explained("q0").splitlines()[1].strip().startswith(cause)

    @pytest.mark.parametrize(
        ("after", "cause"), [([0.45, 0.5, 0.05], "label-boundary"), ([0.1, 0.8, 0.1], "unexplained")]
    )
    def test_choices(self, bench: Bench, after: list[float], cause: str) -> None:
        gold = {"question": "q", "choices": ["x", "y", "z"], "label": 0}
        self.run(bench, "multiple-choice", "choice_accuracy", gold, {
            "probabilities": ("probability", [0.8, 0.1, 0.1], after),
        })  # fmt: skip
        assert explained("q0").splitlines()[1].strip().startswith(cause)

    @pytest.mark.parametrize(("after", "cause"), [
        (["B-ORG", "I-ORG", "O"], "type"), (["B-PER", "O", "O"], "label-boundary"), (["O", "O", "O"], "unexplained"),
        (["B-PER"], "truncated"),
    ])  # fmt: skip
    def test_entities(self, bench: Bench, after: list[str], cause: str) -> None:
        right = ["B-PER", "I-PER", "O"]
        gold = {"tokens": ["Ada", "Lovelace", "wrote"], "tags": right}
        self.run(bench, "entity", "entity_f1", gold, {"tags": ("tags", right, after)})
        assert explained("q0").splitlines()[1].strip().startswith(cause)

    @pytest.mark.parametrize(("after", "cause"), [(None, "no-answer"), ("red", "unexplained")])
    def test_answers(self, bench: Bench, after: str | None, cause: str) -> None:
        gold = {"question": "which", "context": "it is blue or red", "answers": ["blue"]}
        self.run(bench, "answer", "exact_match", gold, {"answer": ("logit", "blue", after)})
        assert explained("q0").splitlines()[1].strip().startswith(cause)

    @pytest.mark.parametrize(("after", "cause"), [(3.0, "unexplained"), (5.50001, "calibration-only")])
    def test_numbers(self, bench: Bench, after: float, cause: str) -> None:
        gold = {"text": "x", "value": 5.0}
        self.run(bench, "regression", "mae", gold, {"value": ("value", 5.5, after)})
        assert explained("q0").splitlines()[1].strip().startswith(cause)


class TestOfRankings:
    def test_ties_and_what_is_missing_by_slice(self, project: Project) -> None:
        """q0 lost its output, q1 (a typo) its place, and in q2 d0 ties with what nobody wants."""
        project.recorded("first", lambda i: 1)
        folder = project.recorded("new", lambda i: {0: 0, 1: 3}.get(i, 1))
        rows = (folder / "run.trec").read_text().replace("q2 Q0 d1 2 8 tag", "q2 Q0 d1 2 9 tag")
        (folder / "run.trec").write_text(rows)
        harness.freeze("s")
        found = harness.run("s", candidate="new", parent="first")
        for told in (page(found), comment(found)):
            assert told[""][1:] == ["no-output", "tied", "unexplained"]
            assert told["all"] == ["3", "1", "1", "1"] and told["typo"] == ["1", "0", "0", "1"]
        assert "tied: d0 ties with others" in explained("q2")
        assert explained("q3") == ""
