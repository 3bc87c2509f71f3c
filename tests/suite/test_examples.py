"""Suites of cases without a corpus: what a case is read as, and what is refused with its line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Leaked, Misconfigured, Tampered
from harness.suite.case import Gold, GoldAnswer
from harness.suite.freeze import freeze, open_frozen, report
from harness.suite.load import load
from harness.suite.lock import write_lock

METRIC = {
    "classification": "accuracy", "multilabel": "f1_samples", "regression": "mae", "similarity": "spearman",
    "entity": "entity_f1", "answer": "exact_match", "multiple-choice": "choice_accuracy",
}  # fmt: skip
GOOD: dict[str, dict[str, Any]] = {
    "classification": {"text": "t", "label": "A"},
    "multilabel": {"text": "t", "labels": ["A", "B"]},
    "regression": {"text": "t", "value": 3},
    "similarity": {"text_a": "a", "text_b": "b", "value": 0.5},
    "entity": {"tokens": ["Ada", "ran"], "tags": ["B-PER", "O"]},
    "answer": {"question": "q", "context": "It is here.", "answers": [{"text": "here", "start": 6}, "it"]},
    "multiple-choice": {"question": "q", "choices": ["x", "y"], "label": 1},
}
Cases = Callable[..., Path]


@pytest.fixture
def cases(tmp_path: Path) -> Cases:
    """Writes a suite of a task with these rows, IDs by number where they have none."""

    def write(task: str, *rows: dict[str, Any], more: str = "", metric: str | None = None) -> Path:
        lines = [json.dumps({"id": f"c{i}", **row}) + "\n" for i, row in enumerate(rows)]
        (tmp_path / "cases.jsonl").write_text("".join(lines))
        metric = metric or METRIC[task]
        (tmp_path / "suite.toml").write_text(
            f'schema = "harness.suite.v1"\nname = "s"\ntask = "{task}"\n{more}'
            + ("" if "source" in more else 'source = { format = "jsonl", path = "cases.jsonl" }\n')
            + f'[metrics]\nprimary = "{metric}"\n'
            f'[[rules]]\nid = "r"\nkind = "no-worse"\nmetric = "{metric}"\nmargin = 0.1\n'
        )
        return tmp_path

    return write


def none(_cases: object, _where: str) -> list[str]:
    return []


class TestGold:
    @pytest.mark.parametrize(
        ("task", "gold"),
        [
            ("classification", Gold(label="A")),
            ("multilabel", Gold(labels=("A", "B"))),
            ("regression", Gold(value=3.0)),
            ("similarity", Gold(value=0.5)),
            ("entity", Gold(tags=("B-PER", "O"))),
            ("answer", Gold(answers=(GoldAnswer("here", 6), GoldAnswer("it")))),
            ("multiple-choice", Gold(choice=1)),
        ],
    )
    def test_what_holds_of_a_case(self, cases: Cases, task: str, gold: Gold) -> None:
        case = load(cases(task, GOOD[task])).cases[0]
        assert case.gold == gold
        assert set(case.inputs) == set(GOOD[task]) - {"label", "labels", "value", "tags", "answers"}

    def test_null_is_that_nobody_knows_and_no_key_a_mistake(self, cases: Cases) -> None:
        """A case without the key is refused, or dropped where the suite says so; null stays, and is warned of."""
        row = {"text": "t"}
        suite = load(cases("classification", GOOD["classification"], {**row, "label": None}))
        assert suite.cases[1].gold == Gold()
        assert any("nobody knows" in warning and "c1" in warning for warning in suite.warnings)
        with pytest.raises(Misconfigured) as refusal:
            load(cases("classification", GOOD["classification"], row))
        assert refusal.value.subject.endswith("cases.jsonl line 2") and "`label`" in refusal.value.found
        dropped = load(cases("classification", GOOD["classification"], row, more='cases = { unjudged = "drop" }\n'))
        assert ([case.id for case in dropped.cases], dropped.counts.unjudged_dropped) == (["c0"], 1)

    def test_a_question_without_answers_is_not_answerable(self, cases: Cases) -> None:
        suite = load(cases("answer", GOOD["answer"], {**GOOD["answer"], "answers": []}))
        assert [case.answerable for case in suite.cases] == [True, False]

    @pytest.mark.parametrize(
        ("task", "change", "told"),
        [
            ("classification", {"label": 3}, "`label` is a number"),
            ("classification", {"text": ["t"]}, "`text` is a list"),
            ("multilabel", {"labels": ["A", "A"]}, "each label once"),
            ("multilabel", {"labels": "A"}, "a list of texts"),
            ("regression", {"value": "3"}, "without quotes"),
            ("regression", {"value": True}, "a number"),
            ("regression", {"value": -1e200}, "beyond 1e+40"),
            ("similarity", {"value": 10**400}, "beyond 1e+40"),
            ("entity", {"tags": ["O"]}, "1 tags for 2 tokens"),
            ("answer", {"answers": [{"text": "here", "start": 7}]}, "stand where they are said to"),
            ("classification", {"label": ""}, "a blank label"),
            ("multilabel", {"labels": ["A", " "]}, "a blank label"),
            ("answer", {"answers": "here"}, "no list"),
            ("answer", {"answers": ["here", " "]}, "without text"),
            ("answer", {"answers": [{"text": "", "start": 0}]}, "without text"),
            ("multiple-choice", {"choices": [], "label": None}, "no choice"),
            ("multiple-choice", {"label": 2}, "from 0 to 1"),
            ("multiple-choice", {"label": "z"}, "the text of one choice"),
            ("multiple-choice", {"label": True}, "from 0 to 1"),
            ("similarity", {"text_b": None}, "`text_b` is null"),
        ],
    )
    def test_what_is_none_is_refused_with_its_line(
        self, cases: Cases, task: str, change: dict[str, Any], told: str
    ) -> None:
        with pytest.raises(Misconfigured) as refusal:
            load(cases(task, GOOD[task], {**GOOD[task], **change}))
        assert refusal.value.subject.endswith("cases.jsonl line 2")
        assert told in f"{refusal.value.found}; {refusal.value.expected}"

    @pytest.mark.parametrize("tags", [["B", "O"], ["", "O"], ["X-PER", "O"], ["O", "I-PER"], ["B-PER", "E-PER"]])
    def test_tags_that_break_their_scheme_are_refused_before_anything_runs(self, cases: Cases, tags: list[str]) -> None:
        with pytest.raises(Misconfigured, match=r"cases.jsonl line 2, tags of case 'c1'.*tags of IOB2"):
            load(cases("entity", GOOD["entity"], {**GOOD["entity"], "tags": tags}))

    def test_tags_are_of_the_scheme_and_the_reading_that_the_suite_declares(self, cases: Cases) -> None:
        for tags, policy in ((["O", "I-PER"], 'reading = "conlleval"'), (["B-PER", "E-PER"], 'scheme = "IOBES"')):
            folder = cases("entity", {**GOOD["entity"], "tags": tags})
            (folder / "suite.toml").write_text((folder / "suite.toml").read_text() + f"[metrics.policy]\n{policy}\n")
            assert load(folder).labels == ("PER",)

    def test_a_key_may_be_called_otherwise_but_not_twice(self, cases: Cases) -> None:
        source = 'source = { format = "jsonl", path = "cases.jsonl", columns = { text = "sentence" } }\n'
        row = {"sentence": "t", "label": "A"}
        assert load(cases("classification", row, more=source)).cases[0].inputs == {"text": "t"}
        with pytest.raises(Misconfigured, match="both `sentence`"):
            load(cases("classification", {**row, "text": "u"}, more=source))

    def test_a_choice_may_be_named(self, cases: Cases) -> None:
        assert load(cases("multiple-choice", {**GOOD["multiple-choice"], "label": "y"})).cases[0].gold == Gold(choice=1)


class TestLabels:
    def test_they_are_those_that_are_given_by_name(self, cases: Cases) -> None:
        rows = [{"text": "t", "label": label} for label in ("b", "a", "b")]
        assert load(cases("classification", *rows)).labels == ("a", "b")

    def test_declared_ones_keep_their_order_and_hold_the_data(self, cases: Cases) -> None:
        """One that no case has stays; one that a case has and nobody declared is refused at that case."""
        rows = [{"text": "t", "label": label} for label in ("b", "a")]
        assert load(cases("classification", *rows, more='labels = ["c", "b", "a"]\n')).labels == ("c", "b", "a")
        with pytest.raises(Misconfigured) as refusal:
            load(cases("classification", *rows, more='labels = ["b"]\n'))
        assert refusal.value.subject.endswith("line 2") and "'a'" in refusal.value.found

    def test_labels_that_one_takes_for_another_are_warned_of(self, cases: Cases) -> None:
        rows = [{"text": "t", "label": label} for label in ("Refund", "refund", "BILL")]
        assert "2 labels differ only in case" in "".join(load(cases("classification", *rows)).warnings)

    def test_only_tasks_of_labels_declare_some(self, cases: Cases) -> None:
        with pytest.raises(Misconfigured, match="labels"):
            load(cases("regression", GOOD["regression"], more='labels = ["a"]\n'))

    @pytest.mark.parametrize(
        ("task", "more", "metric", "told"),
        [
            ("classification", "", "f1[a]", "no label 'a'"),
            ("multilabel", "", "recall[C]", "no label 'C'"),
            ("entity", "", "entity_f1[B-PER]", "no label 'B-PER'"),
            ("classification", "[metrics.policy]\ncosts = { Z = { A = 2.0 } }\n", "accuracy", "no label 'Z'"),
            ("classification", 'labels = ["A", "B", "C"]\n', "brier_binary", "'brier_binary' of 3 classes"),
        ],
    )
    def test_what_speaks_of_a_label_that_is_not_there_is_refused(
        self, cases: Cases, task: str, more: str, metric: str, told: str
    ) -> None:
        """With the line of suite.toml, before anything runs."""
        folder = cases(task, GOOD[task], metric=metric, more="" if more.startswith("[") else more)
        if more.startswith("["):
            (folder / "suite.toml").write_text((folder / "suite.toml").read_text() + more)
        with pytest.raises(Misconfigured) as refusal:
            load(folder)
        assert "suite.toml line" in refusal.value.subject and told in refusal.value.found

    def test_a_declared_label_may_be_spoken_of_though_no_case_has_it(self, cases: Cases) -> None:
        more = 'labels = ["A", "B"]\n'
        assert load(cases("classification", GOOD["classification"], metric="f1[B]", more=more)).labels == ("A", "B")


class TestFreezing:
    @pytest.mark.parametrize("task", list(GOOD))
    def test_what_was_frozen_opens_again(self, cases: Cases, task: str) -> None:
        """And gold that changed since is found, with its case."""
        folder = cases(task, GOOD[task], GOOD[task])
        write_lock(freeze(load(folder), none), folder)
        assert open_frozen(folder).lock.scorers == {task: "2" if task == "entity" else "1"}
        path = folder / "cases.jsonl"
        path.write_text(path.read_text().replace('"id": "c1"', '"id": "c1", "more": 1'))
        with pytest.raises(Tampered, match="c1"):
            open_frozen(folder)

    def test_gold_and_inputs_are_in_a_cases_digest(self, cases: Cases) -> None:
        first = freeze(load(cases("classification", {"text": "t", "label": "A"}, {"text": "u", "label": "B"})), none)
        other = freeze(load(cases("classification", {"text": "t", "label": "B"}, {"text": "u", "label": "B"})), none)
        assert first.case_digests[0] != other.case_digests[0]
        assert first.case_digests[1] == other.case_digests[1]
        assert first.data_digest != other.data_digest

    def test_roles_by_file_and_groups(self, cases: Cases) -> None:
        """Each file may be of a role, and a group must not stand in two."""
        folder = cases("classification", *[{"text": "t", "label": "A", "who": f"u{i}"} for i in range(2)])
        lines = (folder / "cases.jsonl").read_text().splitlines(keepends=True)
        (folder / "dev.jsonl").write_text(lines[0])
        (folder / "test.jsonl").write_text(lines[1])
        source = 'source = { format = "jsonl", path = "." }\n'
        roles = 'cases = { role = { "dev.jsonl" = "calibration", "test.jsonl" = "promotion" }, group = "who" }\n'
        text = (folder / "suite.toml").read_text()
        (folder / "suite.toml").write_text(
            text.replace('source = { format = "jsonl", path = "cases.jsonl" }\n', source + roles)
        )
        assert [case.role for case in load(folder).cases] == ["calibration", "promotion"]
        (folder / "test.jsonl").write_text(lines[1].replace("u1", "u0"))
        with pytest.raises(Leaked):
            load(folder)

    def test_a_folder_is_no_file(self, cases: Cases) -> None:
        with pytest.raises(Misconfigured, match="a folder"):
            load(cases("classification", GOOD["classification"], more='source = { format = "jsonl" }\n'))

    def test_zero_for_what_is_missing_needs_a_mean_that_zero_is_worst_of(self, cases: Cases) -> None:
        zero = 'cases = { missing = "zero" }\n'
        load(cases("classification", GOOD["classification"], more=zero))
        with pytest.raises(Misconfigured, match="zero"):
            load(cases("classification", GOOD["classification"], more=zero, metric="f1_macro"))
        with pytest.raises(Misconfigured, match="zero"):
            load(cases("regression", GOOD["regression"], more=zero))


class TestDirection:
    @pytest.mark.parametrize(
        ("task", "kind", "told"),
        [
            ("classification", "at-least", False), ("classification", "at-most", True),
            ("regression", "at-least", True), ("regression", "at-most", False), ("regression", "no-worse", False),
        ],
    )  # fmt: skip
    def test_a_floor_under_a_loss_is_warned_of(self, cases: Cases, task: str, kind: str, told: bool) -> None:
        """So is a ceiling over a score: what is bad enough passes either."""
        folder = cases(task, GOOD[task])
        path = folder / "suite.toml"
        bound = "margin = 0.1" if kind == "no-worse" else "value = 0.1"
        path.write_text(
            path.read_text().replace('kind = "no-worse"', f'kind = "{kind}"').replace("margin = 0.1", bound)
        )
        suite = load(folder)
        warnings = report(suite, freeze(suite, none)).warnings
        assert any("is better" in warning for warning in warnings) is told

    def test_an_answer_says_nothing_that_nobody_reads(self, cases: Cases) -> None:
        """SQuAD's own key for the place, which another format has, would go unchecked."""
        wrong = {**GOOD["answer"], "answers": [{"text": "here", "answer_start": 0}]}
        with pytest.raises(Misconfigured, match="`text` and `start`"):
            load(cases("answer", wrong))
