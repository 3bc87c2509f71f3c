"""What a person reads after a command."""

import io
import sys
from dataclasses import replace

import pytest

from harness.output.answer import DeltaSummary
from harness.report.terminal import print_answer, print_difference, print_manifest, print_suite

RECORD = {
    "suite": "help-center",
    "digest": "ab" * 32,
    "cases": 512,
    "roles": {"promotion": 412, "development": 100},
    "slices": {"typing-mistakes": {"cases": 64, "groups": 40}},
    "warnings": ["2 IDs differ in case alone"],
}


def _printed(capsys: pytest.CaptureFixture[str], answer) -> str:
    print_answer(answer)
    return capsys.readouterr().out


class TestAnswer:
    def test_decision_first_then_what_is_open(self, contents, capsys):
        """The first word is the outcome; open rules have their reasons, the others are counted."""
        said = _printed(capsys, contents.failing().answer)
        assert said.startswith("✕ FAIL  minilm-256 against minilm-128 on help-center\n")
        for rule in contents.failing().answer.decision.rules:
            assert said.count(f"{rule.id}: {rule.reason}") == (rule.outcome != "PASS")
        assert "17 others pass" in said

    def test_metrics_over_all(self, contents, capsys):
        """Both sides of every metric, the candidate's interval, the paired difference with its own, MDE and support."""
        answer = replace(
            contents.failing().answer,
            deltas={"all": {"nDCG@10": DeltaSummary(-0.0213, -0.0367, -0.0071, 0.02, 412, 80, 9)}},
        )
        said = _printed(capsys, answer)
        lines = {line.split()[0]: line.split()[1:] for line in said.split("\n") if line.startswith(("nDCG", "RR"))}
        assert " ".join(lines["nDCG@10"][:4]).startswith("0.6325 0.6112 [0.5500, ")
        assert lines["nDCG@10"][4:] == ["−0.0213", "[−0.0367,", "−0.0071]", "0.0200", "412/414", "188"]
        assert lines["RR@10"][:2] == ["0.5625", "0.5412"]
        assert lines["RR@10"][-5:] == ["–", "–", "–", "412/414", "188"]

    def test_a_loss_says_so(self, contents, capsys):
        """Beside its name, as nothing else tells which way is worse."""
        said = _printed(capsys, contents.labelled().answer)
        assert "log_loss (lower is better)" in said and said.count("lower is better") == 1
        assert "judging_queue" not in said and "case_predictions" in said

    def test_places_and_three_commands(self, contents, capsys):
        """Where things lie, and what to type next."""
        answer = contents.passing().answer
        said = _printed(capsys, answer)
        assert all(place in said for place in (answer.store, answer.report, answer.bundle))
        assert [line.split()[1] for line in said.split("\n") if line.startswith("  harness ")] == [
            "explain",
            "sql",
            "verify",
        ]

    def test_marks_of_users_are_shown_as_they_are(self, contents, capsys):
        """`[red]` in an ID is neither a colour nor lost, and no escape sequence reaches the screen."""
        said = _printed(capsys, contents.everywhere(contents.failing(), "[red]x[/] \x1b[31m").answer)
        assert "[red]x[/] \ufffd[31m" in said and "\x1b" not in said

    def test_every_kind_of_run(self, any_content, capsys):
        """Whatever is missing; and no missing number is a word of Python's."""
        assert "None" not in _printed(capsys, any_content.answer)

    def test_without_a_parent(self, contents, capsys):
        """Nothing is compared."""
        said = _printed(capsys, contents.alone().answer)
        assert "without a parent" in said and "worst_regressions" not in said

    def test_narrow_encodings(self, contents, monkeypatch):
        """Where stdout can't say a mark, a plainer one stands there."""
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
        monkeypatch.setattr(sys, "stdout", stream)
        print_answer(replace(contents.failing().answer, suite="süß"))
        stream.flush()
        said = stream.buffer.getvalue().decode("ascii")
        assert said.startswith("x FAIL  minilm-256 against minilm-128 on s??") and "-0.0213" in said


class TestSuite:
    def test_digest_counts_and_warnings(self, capsys):
        """The suite, whether it holds, and what it is made of."""
        print_suite(RECORD, "frozen")
        assert capsys.readouterr().out == (
            f"help-center frozen  512 cases\ndigest {'ab' * 32}\nroles  promotion 412, development 100\n"
            "slices typing-mistakes 64/40\nWarning: 2 IDs differ in case alone\n"
        )

    def test_marks_of_users_are_shown_as_they_are(self, capsys):
        """Names are not markup."""
        print_suite({**RECORD, "suite": "[bold]s", "slices": {"[red]": {"cases": 1, "groups": 1}}}, "holds")
        said = capsys.readouterr().out
        assert said.startswith("[bold]s holds") and "[red] 1" in said


class TestDifference:
    def test_a_tower_that_only_one_release_has_is_one_line(self, capsys):
        """What moved within a tower that both have is told field by field."""
        row = {"node": "vector", "side": None}
        gone = [{**row, "field": f"towers.both.{at}", "old": at, "new": None} for at in range(40)]
        moved = [{**row, "field": f"retriever.towers.both.{at}", "old": at, "new": at + 1} for at in range(20)]
        print_difference({"changes": [*gone, *moved], "namespaces": [], "plan": [], "switched": []})
        said = capsys.readouterr().out
        assert said.startswith("60 changes\n  towers.both: 40 fields of the parent that the candidate does not have\n")
        assert said.count("retriever.towers.both.") == 20 and "null" not in said

    def test_the_switch_stands_between_the_last_proof_and_the_first_drop(self, capsys):
        """Once; without a successor nothing is switched, also where something is dropped."""
        row = {"namespace": "v", "items": None, "of": None, "reason": "so"}
        plan = [{**row, "action": action} for action in ("re-encode", "prove-parity", "drop", "drop")]
        record = {"changes": [], "namespaces": [], "plan": plan, "switched": ["v", "index"]}
        print_difference(record)
        assert capsys.readouterr().out.splitlines()[-5:] == [
            "  1. re-encode v: so",
            "  2. prove-parity v: so",
            "  switch in one step, queries and documents together: v, index",
            "  3. drop v: so",
            "  4. drop v: so",
        ]
        print_difference({**record, "switched": []})
        assert "switch" not in capsys.readouterr().out


class TestManifest:
    def test_each_value_stands_with_its_source(self, capsys):
        """Down to where one source says it; a key with dots of its own in brackets, what an override left behind it."""
        print_manifest(
            {
                "identity": {"name": "m", "content_id": "ab12"},
                "meaning": {
                    "tower": {"files": {"a.json": "12"}, "pooling": "cls", "norm": {"eps": 1}},
                    "training": None,
                },
                "evidence": {
                    "sources": {"tower.files[a.json]": "a.json", "tower.pooling": "declared", "tower.norm": "library"},
                    "overridden": {"tower.pooling": "mean"},
                },
            }
        )
        assert capsys.readouterr().out.splitlines() == [
            "m  ab12",
            '  tower.files[a.json]: "12"  a.json',
            '  tower.pooling: "cls"  declared, in the folder mean',
            '  tower.norm: {"eps": 1}  library',
            "  training: null",
        ]
