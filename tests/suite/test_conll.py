"""Sentences in columns: where each begins and ends, and which column is what."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import Misconfigured
from harness.suite.case import Gold
from harness.suite.definition import Source
from harness.suite.formats.conll import locate, read
from harness.suite.formats.example import CaseTask, ExampleRow

CONLL03 = """-DOCSTART- -X- -X- O

EU NNP I-NP B-ORG
rejects VBZ I-VP O

Peter NNP I-NP B-PER
-DOCSTART- -X- O O

BRUSSELS NNP I-NP B-LOC
"""


def cases(path: Path, task: CaseTask = "entity", **keys: Any) -> tuple[ExampleRow, ...]:
    source = Source.model_validate({"format": "conll", "columns": {"tokens": 1, "tags": -1}, **keys})
    return read(locate(path, source, ()), source, task).rows


def refused(path: Path, **keys: Any) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        cases(path, **keys)
    return caught.value


@pytest.fixture
def columns(tmp_path: Path) -> Callable[[str], Path]:
    """A file of columns."""

    def write(text: str) -> Path:
        (tmp_path / "t.conll").write_bytes(text.encode())
        return tmp_path / "t.conll"

    return write


class TestSentences:
    def test_blank_lines_part_them(self, columns: Callable[[str], Path]) -> None:
        """However many, with blanks on them or at the end of the file; the line is that of the first token."""
        rows = cases(columns("\na O\nb B-X\n\n \t\nc O\r\n\r\nd O"))
        assert [row.inputs["tokens"] for row in rows] == [("a", "b"), ("c",), ("d",)]
        assert [row.gold for row in rows] == [Gold(tags=("O", "B-X")), Gold(tags=("O",)), Gold(tags=("O",))]
        assert [(row.id, row.place.line) for row in rows] == [("t.conll:1", 2), ("t.conll:2", 6), ("t.conll:3", 8)]

    def test_documents_are_counted(self, columns: Callable[[str], Path]) -> None:
        """A break is no sentence, ends one that is open, and may have other columns; before the first there is none."""
        rows = cases(columns(CONLL03))
        assert [row.inputs["tokens"] for row in rows] == [("EU", "rejects"), ("Peter",), ("BRUSSELS",)]
        assert [row.further for row in rows] == [
            {"document": "t.conll:1"}, {"document": "t.conll:1"}, {"document": "t.conll:2"}
        ]  # fmt: skip
        assert cases(columns("a O\n\n-DOCSTART-\n\nb O\n"))[0].further == {}
        assert cases(columns("a O\n\n-DOCSTART-\n\nb O\n"))[1].id == "t.conll:2"
        rows = cases(columns("-DOCSTART-\n\n1 a O\n\n2 -DOCSTART- O\n1 b O\n"), columns={"tokens": 2, "tags": 3})
        assert [row.further for row in rows] == [{"document": "t.conll:1"}, {"document": "t.conll:2"}]

    def test_comments_are_left_out(self, columns: Callable[[str], Path]) -> None:
        """Only where they are declared: a token may begin with the same sign."""
        text = "# id = 1 of 2\na O\n# within\nb O\n"
        assert cases(columns(text), comments="#")[0].inputs["tokens"] == ("a", "b")
        assert cases(columns("# O\n#a O\n"))[0].inputs["tokens"] == ("#", "#a")


class TestColumns:
    def test_any_order(self, columns: Callable[[str], Path]) -> None:
        """By number from either side; tags as they are written, whatever the scheme."""
        path = columns("O x 1 a\nB_odd x 2 b\n")
        for named in ({"tokens": 4, "tags": 1}, {"tokens": -1, "tags": -4}):
            (row,) = cases(path, columns=named)
            assert (row.inputs["tokens"], row.gold) == (("a", "b"), Gold(tags=("O", "B_odd")))

    def test_without_tags_nothing_is_said_of_gold(self, columns: Callable[[str], Path]) -> None:
        """As of a file of tokens alone."""
        (row,) = cases(columns("a\nb\n"), columns={"tokens": 1})
        assert (row.inputs["tokens"], row.gold) == (("a", "b"), None)

    def test_between_tabs_a_token_may_have_blanks(self, columns: Callable[[str], Path]) -> None:
        """With `separator = "tab"`; else blanks part columns too, but no other space does."""
        assert cases(columns("a b\tO\n"), separator="tab")[0].inputs["tokens"] == ("a b",)
        assert cases(columns("a\u00a0b  \tO\n"))[0].inputs["tokens"] == ("a\u00a0b",)
        assert refused(columns("c\tO\na b\tO\n")).found == "3 columns"

    @pytest.mark.parametrize("row", ["c", "c O O"])
    def test_a_row_of_other_length_is_refused(self, columns: Callable[[str], Path], row: str) -> None:
        """One column too many or too few, with its line, also in another sentence."""
        error = refused(columns(f"a O\n\nb O\n{row}\n"), columns={"tokens": 1, "tags": -1})
        assert error.subject.endswith("t.conll line 4")
        assert error.expected.startswith("2,")

    @pytest.mark.parametrize(("row", "said"), [("\tO", "empty token"), ("a\t", "empty tag"), (" \tO", "empty token")])
    def test_an_empty_cell_is_refused(self, columns: Callable[[str], Path], row: str, said: str) -> None:
        """A tag that is missing is not `O`."""
        error = refused(columns(f"a\tO\n{row}\n"), separator="tab")
        assert error.subject.endswith("line 2")
        assert said in error.found

    def test_a_column_that_is_not_there(self, columns: Callable[[str], Path]) -> None:
        """From either side."""
        for number in (3, -3):
            error = refused(columns("a O\n"), columns={"tokens": 1, "tags": number})
            assert (error.subject.endswith("line 1"), error.expected) == (True, f"a column {number}")

    @pytest.mark.parametrize(
        "keys",
        [
            {"columns": {}},
            {"columns": {"tags": 1}},
            {"columns": {"tokens": "word", "tags": 2}},
            {"columns": {"tokens": 1, "tags": 0}},
            {"columns": {"tokens": 1, "tags": 2, "id": 3}},
            {"separator": "comma"},
        ],
    )
    def test_columns_are_never_guessed(self, columns: Callable[[str], Path], keys: dict[str, Any]) -> None:
        """They have no names, so each is named by number, and nothing else is."""
        assert refused(columns("a O x\n"), **keys).subject.endswith("t.conll")

    def test_other_tasks_are_refused(self, columns: Callable[[str], Path]) -> None:
        """A sentence in columns is a case of `entity`."""
        assert "classification" in refused(columns("a O\n"), task="classification").found


class TestPublicFiles:
    def test_wnut17(self, shared_data: Callable[[str], Path]) -> None:
        """1,287 sentences of 23,394 tokens, 1,079 of which begin an entity, as conlleval counts; a second file has the
        same tokens, and tags of several entities at once, which stay as they are.
        """
        rows = cases(shared_data("wnut17") / "mic-cis.gold_pred.tsv", columns={"tokens": 1, "tags": 2})
        assert len(rows) == 1287
        assert sum(len(row.inputs["tokens"]) for row in rows) == 23394
        assert sum(tag.startswith("B-") for row in rows if row.gold for tag in row.gold.tags or ()) == 1079
        others = cases(shared_data("wnut17") / "emerging.test.conll", columns={"tokens": 1, "tags": 2})
        assert [row.inputs for row in others] == [row.inputs for row in rows]
        assert any(row.gold and "B-creative-work,B-person" in (row.gold.tags or ()) for row in others)
