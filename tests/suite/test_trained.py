"""A case that stands in a training file is found with file and line, however it is written there."""

import json
from pathlib import Path

import pytest

from harness.errors import Leaked, Misconfigured
from harness.suite.case import Suite
from harness.suite.load import load
from harness.suite.trained import Trained, refuse_trained, trained

from .conftest import METRICS, RULE, Write

QUESTION = "How do I get my money back for an order?"


def suite(write: Write, role: str = "promotion", more: str = "", text: str = QUESTION) -> Suite:
    queries = [{"_id": "q1", "split": role, "text": text}, {"_id": "q2", "split": "promotion", "text": "short one"}]
    qrels = "query-id\tcorpus-id\tscore\nq1\td1\t1\nq2\td1\t1\n"
    return load(write(queries=queries, qrels=qrels, cases='[cases]\nrole = "split"\n', rest=METRICS + RULE + more))


def found(loaded: Suite, tmp_path: Path, name: str, text: str) -> list[tuple[str, str, int]]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return [(each.case_id, each.how, each.line) for each in trained(loaded, "r", {name: tmp_path / name})]


class TestStanding:
    @pytest.mark.parametrize(
        ("name", "text", "line"),
        [
            ("t.jsonl", '{"a": 1}\n{"query": {"text": ["how do i get my MONEY back for an order"]}}\n', 2),
            ("t.json", json.dumps([{"x": "y"}, {"x": QUESTION}]), 2),
            ("t.tsv", f"label\ttext\nREFUND\t{QUESTION}\n", 2),
            ("t.csv", f'label,text\nREFUND,"{QUESTION}"\n', 2),
            ("t.txt", f"nothing\n\n{QUESTION.upper()}\n", 3),
            ("t.csv", f"text;label\r\n{QUESTION};REFUND\r\n", 2),
            ("t.csv", f"\ufefftext\tlabel\n{QUESTION}\tREFUND\n", 2),
            ("t.csv", f"label|text\nREFUND|{QUESTION}\n", 2),
            ("t.JSONL", f"\ufeff{json.dumps({'text': QUESTION})}\r\n", 1),
            ("t.txt", json.dumps({"text": QUESTION, "label": "REFUND"}) + "\n", 1),
            ("t.txt", f"__label__REFUND {QUESTION}\n", 1),
            ("train", f"{QUESTION}\n", 1),
            ("t.conll", "a O\n\n" + "".join(f"{each} O\n" for each in QUESTION.split()) + "\nb O\n", 3),
            ("t.conllu", "# x\n" + "".join(f"1\t{each}\t_\n" for each in QUESTION.split()), 2),
        ],
    )
    def test_in_every_form_of_file(self, write: Write, tmp_path: Path, name: str, text: str, line: int) -> None:
        """As a JSON string at any depth, a cell by what parts the first line, a sentence of a token a line, a line;
        case and punctuation aside, and a mark of the byte order, ends of lines and labels before a text.
        """
        assert found(suite(write), tmp_path, name, text) == [("q1", "equal", line)]

    def test_within_a_longer_text(self, write: Write, tmp_path: Path) -> None:
        """From five words on; a shorter text must stand alone."""
        assert found(suite(write), tmp_path, "t.txt", f"Q: {QUESTION} A: you do not, short one\n") == [
            ("q1", "within", 1)
        ]
        assert found(suite(write), tmp_path, "t.txt", "short one\n") == [("q2", "equal", 1)]

    def test_nearly(self, write: Write, tmp_path: Path) -> None:
        """A word less: seven of eight shingles."""
        rows = found(suite(write), tmp_path, "t.txt", "how do I get my money back for an\n")
        assert rows == [("q1", "near", 1)]
        assert found(suite(write), tmp_path, "t.txt", "how do I get my parcel back for an\n") == []

    def test_train_cases_may_stand_there(self, write: Write, tmp_path: Path) -> None:
        """They are what training is for."""
        assert found(suite(write, role="train"), tmp_path, "t.txt", QUESTION) == []

    def test_of_a_pair_both_texts_in_one_line(self, tmp_path: Path) -> None:
        """One of the two alone is another pair."""
        folder = tmp_path / "pairs"
        folder.mkdir()
        row = {"id": "a", "text_a": "money back", "text_b": "refund of an order", "value": 1}
        (folder / "cases.jsonl").write_text(json.dumps(row) + "\n")
        (folder / "suite.toml").write_text(
            'schema = "harness.suite.v1"\nname = "pairs"\ntask = "similarity"\n'
            'source = { format = "jsonl", path = "cases.jsonl" }\n[metrics]\nprimary = "spearman"\n'
        )
        assert found(load(folder), tmp_path, "t.tsv", "money back\tanother\nrefund of an order\tanother\n") == []
        assert found(load(folder), tmp_path, "t.tsv", "refund of an order\tMoney back\n") == [("a", "equal", 1)]

    def test_a_file_that_cannot_be_read_is_refused(self, write: Write, tmp_path: Path) -> None:
        """It would be taken to hold nothing."""
        for suffix in (".parquet", ".jsonl.gz", ".xml", ".xlsx"):
            with pytest.raises(Misconfigured, match=suffix.rpartition(".")[2]):
                found(suite(write), tmp_path, f"t{suffix}", "x")
        for name, text in (("t.jsonl", ""), ("t.txt", " \n\n"), ("t.json", "[]"), ("t.csv", "\n")):
            with pytest.raises(Misconfigured, match="no text in it"):
                found(suite(write), tmp_path, name, text)
        with pytest.raises(Misconfigured, match="line 2"):
            found(suite(write), tmp_path, "t.jsonl", '{"a": 1}\n{\n')


class TestRefusal:
    def rows(self, write: Write, tmp_path: Path, role: str = "promotion", more: str = "") -> tuple[Trained, ...]:
        (tmp_path / "t.txt").write_text(QUESTION)
        return trained(suite(write, role, more), "r", {"t.txt": tmp_path / "t.txt"})

    def test_promotion_is_refused_with_case_file_and_line(self, write: Write, tmp_path: Path) -> None:
        """And nothing else is."""
        rows = self.rows(write, tmp_path)
        with pytest.raises(Leaked, match=r"case 'q1' \(promotion\) stands in t\.txt line 1") as caught:
            refuse_trained(suite(write), "r", rows)
        assert rows[0].finding in caught.value.found
        refuse_trained(suite(write), "r", self.rows(write, tmp_path, role="calibration"))

    def test_a_waiver_is_of_one_release(self, write: Write, tmp_path: Path) -> None:
        """It lets its own finding stand, and one that meets none is refused."""
        finding = self.rows(write, tmp_path)[0].finding
        waiver = f'[[leakage.waivers]]\nfinding = "{finding}"\nreason = "a common phrase"\nrelease = "RELEASE"\n'
        mine = self.rows(write, tmp_path, more=waiver.replace("RELEASE", "r"))
        assert [each.waived for each in mine] == ["a common phrase"]
        refuse_trained(suite(write), "r", mine)
        assert self.rows(write, tmp_path, more=waiver.replace("RELEASE", "another"))[0].waived is None
        (tmp_path / "t.txt").write_text("nothing")
        with pytest.raises(Misconfigured, match="no finding of release 'r'"):
            trained(suite(write, more=waiver.replace("RELEASE", "r")), "r", {"t.txt": tmp_path / "t.txt"})
