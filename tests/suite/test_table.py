"""Tables: every cell goes where `columns` says, and a row that does not fit is refused with its line."""

import json
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather, ipc, parquet

from harness.errors import Misconfigured, NotFound
from harness.suite.case import Gold, GoldAnswer
from harness.suite.definition import Source
from harness.suite.formats.example import CaseTask, Examples
from harness.suite.formats.table import locate, read

CLASS = {"label": {"names": ["neg", "pos"], "_type": "ClassLabel"}, "text": {"dtype": "string", "_type": "Value"}}


def examples(path: Path, task: CaseTask, mapped: Sequence[str] = (), **keys: Any) -> Examples:
    source = Source.model_validate({"format": "table", **keys})
    return read(locate(path, source, mapped), source, task)


def refused(path: Path, task: CaseTask, mapped: Sequence[str] = (), **keys: Any) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        examples(path, task, mapped, **keys)
    return caught.value


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """A text table of these bytes."""

    def write(text: str, name: str = "t.tsv") -> Path:
        (tmp_path / name).write_bytes(text.encode())
        return tmp_path / name

    return write


class TestColumns:
    def test_columns_are_found_by_name(self, table: Callable[..., Path]) -> None:
        """By `columns`, or by the field's own name; the others are attributes, none where empty."""
        path = table("genre\tsentence\tlabel\nnews\tone two\tA\n\tthree\tB\n")
        first, second = examples(path, "classification", columns={"text": "sentence"}).rows
        assert (first.id, first.inputs, first.gold) == ("t.tsv:1", {"text": "one two"}, Gold(label="A"))
        assert first.further == {"genre": "news"}
        assert (second.id, second.further, second.place.line) == ("t.tsv:2", {"genre": None}, 3)

    def test_columns_are_found_by_number(self, table: Callable[..., Path]) -> None:
        """From 1, or from the right by negative ones; without names only the declared ones are attributes."""
        path = table("a\tb\tx\tnews\t4.5\na2\tb2\tx\tfilm\t-1e0\n")
        keys = {"columns": {"text_a": 1, "text_b": 2, "value": -1}, "attributes": {"genre": -2}, "header": False}
        first, second = examples(path, "similarity", **keys).rows
        assert first.inputs == {"text_a": "a", "text_b": "b"}
        assert (first.gold, first.further) == (Gold(value=4.5), {"genre": "news"})
        assert (second.id, second.gold) == ("t.tsv:2", Gold(value=-1.0))

    def test_a_numbered_column_beside_names(self, table: Callable[..., Path]) -> None:
        """With `header = true` the first line is none of the cases, and its names are those of the attributes."""
        path = table("s\tl\tk\none\tA\tx\n")
        (row,) = examples(path, "classification", columns={"text": 1, "label": 2}, header=True).rows
        assert (row.inputs, row.gold, row.further) == ({"text": "one"}, Gold(label="A"), {"k": "x"})

    def test_an_id_column_gives_the_ids(self, table: Callable[..., Path]) -> None:
        """`07` stays `07`; twice is refused with both places."""
        path = table("id\ttext\tlabel\n07\ta\tA\n7\tb\tB\n")
        assert [row.id for row in examples(path, "classification").rows] == ["07", "7"]
        path = table("id\ttext\tlabel\n7\ta\tA\n7\tb\tB\n")
        error = refused(path, "classification")
        assert error.subject.endswith("t.tsv line 3")
        assert "line 2" in error.found

    def test_without_a_column_of_gold_nothing_is_said_of_it(self, table: Callable[..., Path]) -> None:
        """No column is no gold at all; an empty cell is a gold that nobody knows."""
        assert examples(table("text\na\n"), "classification").rows[0].gold is None
        rows = examples(table("text\tlabel\na\t\nb\tB\n"), "classification").rows
        assert [row.gold for row in rows] == [Gold(), Gold(label="B")]
        assert examples(table("text\tvalue\na\t \n"), "regression").rows[0].gold == Gold()

    @pytest.mark.parametrize(
        ("keys", "said"),
        [
            ({"columns": {"text": "sentense"}}, "no column 'sentense'"),
            ({"columns": {"text": 4}, "header": True}, "no column 4 among 3"),
            ({"columns": {"text": 0}, "header": True}, "no column 0"),
            ({"columns": {"text": -4}, "header": True}, "no column -4"),
            ({"columns": {"text": 1, "tokens": 2}, "header": True}, "`columns` names `tokens`"),
            ({}, "columns 'genre', 'sentence', 'label'"),
            ({"columns": {"text": 1}}, "no `header`"),
            ({"columns": {"text": "sentence"}, "header": False}, "no column 'sentence'"),
            ({"columns": {"text": 2}, "header": True, "attributes": {"genre": 3}}, "an attribute 'genre'"),
            ({"columns": {"text": "sentence"}, "separator": "blank", "quotes": True}, "quotes between blanks"),
        ],
    )
    def test_a_column_is_never_guessed(self, table: Callable[..., Path], keys: dict[str, Any], said: str) -> None:
        """A column that isn't there, or isn't the task's, is refused."""
        error = refused(table("genre\tsentence\tlabel\nnews\tone\tA\n"), "classification", **keys)
        assert said in error.found

    def test_a_misspelt_column_is_told_the_nearest(self, table: Callable[..., Path]) -> None:
        """The line is that of the names."""
        error = refused(table("sentence\tlabel\n"), "classification", columns={"text": "sentense"})
        assert error.subject.endswith("t.tsv line 1")
        assert "'sentence'" in error.mend

    @pytest.mark.parametrize("name", ["t.txt", "t"])
    def test_a_separator_is_never_guessed(self, table: Callable[..., Path], name: str) -> None:
        """Only the suffixes .tsv and .csv say it themselves."""
        path = table("text;label\na;A\n", name)
        assert "no `separator`" in refused(path, "classification").found
        assert examples(path, "classification", separator="semicolon").rows[0].gold == Gold(label="A")

    def test_lines_that_end_with_a_carriage_return_alone(self, table: Callable[..., Path]) -> None:
        """Are one line, so the names of the columns are refused."""
        error = refused(table("text\tlabel\rone\tA\rtwo\tB\r"), "classification")
        assert ("carriage return" in error.found, "line ends" in error.mend) == (True, True)

    def test_two_columns_of_one_name(self, table: Callable[..., Path]) -> None:
        """They are refused; columns without a name, as an index, are left out."""
        assert "two columns called 'a'" in refused(table("text\ta\ta\nx\t1\t2\n"), "classification").found
        assert examples(table("\ttext\n0\tx\n"), "classification").rows[0].further == {}


class TestRows:
    @pytest.mark.parametrize(("row", "cells"), [("one\tA\tx", 3), ("one", 1), ("\t\t", 3)])
    def test_a_row_of_other_length_is_refused(self, table: Callable[..., Path], row: str, cells: int) -> None:
        """One cell too many or too few, with its line; an empty line is no row."""
        error = refused(table(f"text\tlabel\none\tA\n\n{row}\n"), "classification")
        assert error.subject.endswith("t.tsv line 4")
        assert error.found == f"{cells} cells"

    def test_without_names_the_first_row_sets_the_length(self, table: Callable[..., Path]) -> None:
        """A second row that is longer is refused, whichever columns are meant."""
        error = refused(table("A\tx\nB\ty\tz\n"), "classification", columns={"label": 1, "text": 2}, header=False)
        assert error.subject.endswith("line 2")

    def test_surplus_cells_are_dropped_if_so_said(self, table: Callable[..., Path]) -> None:
        """Beyond the last column that is named; a row that is too short is refused still."""
        keys = {"columns": {"label": 1, "text": 2}, "header": False, "surplus": "drop"}
        rows = examples(table("A\tx\nB\ty\tz\t\n"), "classification", **keys).rows
        assert [row.inputs["text"] for row in rows] == ["x", "y"]
        assert refused(table("A\tx\nB\n"), "classification", **keys).found == "1 cells"
        keys["columns"] = {"label": 1, "text": -1}
        assert "from the right" in refused(table("A\tx\n"), "classification", **keys).found

    def test_comments_are_no_rows(self, table: Callable[..., Path]) -> None:
        """Lines that begin with `comments` are left out, before the names too, and never within quotes."""
        path = table('#c\ntext,label\n# d\n"a\n# e",A\n', "t.csv")
        (row,) = examples(path, "classification", comments="#").rows
        assert (row.inputs["text"], row.id) == ("a\n# e", "t.csv:1")

    def test_between_blanks_the_last_column_has_the_rest(self, table: Callable[..., Path]) -> None:
        """A label, and a text with blanks of its own."""
        path = table("5 How far  is it\n4\tWhat\n", "t.all")
        rows = examples(path, "classification", separator="blank", header=False, columns={"label": 1, "text": 2}).rows
        assert [(row.gold, row.inputs["text"]) for row in rows] == [
            (Gold(label="5"), "How far  is it"),
            (Gold(label="4"), "What"),
        ]
        path = table("label text\n5 How far\n", "t.all")
        assert examples(path, "classification", separator="blank").rows[0].inputs["text"] == "How far"

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """It is not found, whatever its suffix."""
        for name in ("t.tsv", "t.parquet"):
            with pytest.raises(NotFound):
                examples(tmp_path / name, "classification")


class TestQuotes:
    def test_quotes_enclose_in_csv(self, table: Callable[..., Path]) -> None:
        """Separators, line ends, blank lines and doubled quotes within; a row's line is where it begins."""
        path = table('text,label\n"a, ""b""\r\n\n  c",A\r\n"",B\n"x","C"\n', "t.csv")
        rows = examples(path, "classification").rows
        assert [row.inputs["text"] for row in rows] == ['a, "b"\n\n  c', "", "x"]
        assert [row.place.line for row in rows] == [2, 5, 6]
        assert [row.id for row in rows] == ["t.csv:1", "t.csv:2", "t.csv:3"]

    def test_stray_quotes_are_text_without_quotes(self, table: Callable[..., Path]) -> None:
        """As in GLUE's files: one quote, at the beginning or within, opens nothing."""
        path = table('text\tlabel\n"I had" is fine\tA\n5" pipe\tB\n"\tC\n')
        rows = examples(path, "classification", quotes=False).rows
        assert [row.inputs["text"] for row in rows] == ['"I had" is fine', '5" pipe', '"']

    def test_between_tabs_quotes_must_be_declared(self, table: Callable[..., Path]) -> None:
        """A cell that begins with a quote could be meant either way; one within a cell could not."""
        path = table('text\tlabel\n5" pipe\tA\n"x"\tB\n')
        error = refused(path, "classification")
        assert error.subject.endswith("line 3")
        assert "quotes = false" in error.mend
        assert examples(table('text\tlabel\n"x"\tB\n'), "classification", quotes=True).rows[0].inputs["text"] == "x"
        assert examples(table('text\tlabel\n5" pipe\tA\n'), "classification").rows[0].inputs["text"] == '5" pipe'

    @pytest.mark.parametrize(
        ("rows", "line", "said"),
        [
            ('"a,A\nb,B\n', 2, "never closed"),
            ('a,A\n5" b,B\n', 3, "within a cell"),
            ('a,A\n"b"c,B\n', 3, "within a cell"),
            ('"a\nb" ,B\n', 3, "within a cell"),
        ],
    )
    def test_a_quote_in_the_wrong_place_is_refused(
        self, table: Callable[..., Path], rows: str, line: int, said: str
    ) -> None:
        """With its line: where the open one stands, or the one that is too many."""
        error = refused(table("text,label\n" + rows, "t.csv"), "classification")
        assert error.subject.endswith(f"t.csv line {line}")
        assert said in error.found

    @given(
        st.lists(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r")), min_size=2, max_size=4),
        st.sampled_from(["comma", "semicolon", "tab"]),
    )
    def test_every_text_comes_back(
        self, tmp_path_factory: pytest.TempPathFactory, cells: list[str], separator: str
    ) -> None:
        """Enclosed and doubled, whatever stands in a cell is read as it was."""
        path = tmp_path_factory.mktemp("cells") / "t"
        between = {"comma": ",", "semicolon": ";", "tab": "\t"}[separator]
        line = between.join('"' + cell.replace('"', '""') + '"' for cell in cells)
        path.write_bytes(f"{line}\n{line}".encode())
        keys = {"separator": separator, "quotes": True, "header": False}
        numbered = {f"c{i}": i for i in range(2, len(cells) + 1)}
        first, second = examples(path, "classification", columns={"text": 1}, attributes=numbered, **keys).rows
        assert first.inputs == second.inputs == {"text": cells[0]}
        assert [first.further[f"c{i}"] for i in range(2, len(cells) + 1)] == [cell or None for cell in cells[1:]]


class TestValues:
    @pytest.mark.parametrize("text", ["4,5", "nan", "inf", "1_000", "1e999", "four", "0x1"])
    def test_what_is_no_number_is_refused(self, table: Callable[..., Path], text: str) -> None:
        """Also what Python alone would take for one."""
        error = refused(table(f"text\tvalue\na\t1\nb\t{text}\n"), "regression")
        assert error.subject.endswith("line 3")
        assert repr(text) in error.found

    def test_labels_are_a_json_list_or_stand_between(self, table: Callable[..., Path]) -> None:
        """`[]` is none of the labels, an empty cell is unknown."""
        path = table('text\tlabels\na\t["x", "y"]\nb\t[]\nc\t\n')
        golds = [Gold(labels=("x", "y")), Gold(labels=()), Gold()]
        assert [row.gold for row in examples(path, "multilabel").rows] == golds
        path = table("text\tlabels\na\tx | y\nb\t[]\nc\t\n")
        assert [row.gold for row in examples(path, "multilabel", between="|").rows] == golds
        assert "'x | y'" in refused(path.with_name(path.name), "multilabel").found
        assert "each label once" in refused(table("text\tlabels\na\tx|x\n"), "multilabel", between="|").expected

    def test_choices_may_stand_in_several_columns(self, table: Callable[..., Path]) -> None:
        """In the order of `columns`; empty ones at the end are none; the label is a number or a text."""
        path = table("q\tc\ta\tb\tlabel\nwhy\t\tx\ty\t1\nwho\tz\tx\ty\tz\n")
        keys = {"columns": {"question": "q", "choices": ["a", "b", "c"]}}
        first, second = examples(path, "multiple-choice", **keys).rows
        assert (first.inputs["choices"], first.gold) == (("x", "y"), Gold(choice=1))
        assert (second.inputs["choices"], second.gold) == (("x", "y", "z"), Gold(choice=2))
        path = table("q\ta\tb\tc\tlabel\nwhy\tx\t\ty\t1\n")
        assert "empty choice" in refused(path, "multiple-choice", **keys).found

    def test_a_label_that_may_be_number_or_text_is_refused(self, table: Callable[..., Path]) -> None:
        """`1` among the choices 1 and 2 is the first by its text and the second by its number."""
        keys = {"columns": {"question": "q", "choices": ["a", "b"]}}
        assert (
            "number from 0 or its text"
            in refused(table("q\ta\tb\tlabel\nwhy\t1\t2\t1\n"), "multiple-choice", **keys).found
        )
        (row,) = examples(table("q\ta\tb\tlabel\nwhy\t0\t1\t1\n"), "multiple-choice", **keys).rows
        assert row.gold == Gold(choice=1)

    def test_tokens_and_answers_are_json_lists(self, table: Callable[..., Path]) -> None:
        """As in JSON Lines, in a cell."""
        path = table('tokens\ttags\n["a", "b"]\t["O", "B-X"]\n["a"]\t\n')
        assert [row.gold for row in examples(path, "entity", quotes=False).rows] == [Gold(tags=("O", "B-X")), Gold()]
        path = table('question\tcontext\tanswers\nq\tabc\t["b"]\n')
        assert examples(path, "answer").rows[0].gold == Gold(answers=(GoldAnswer("b"),))
        assert "`tokens` is 'a b'" in refused(table("tokens\na b\n"), "entity").found


def typed(path: Path, columns: dict[str, Any], features: dict[str, Any] | None = None, batch: int = 2) -> Path:
    """A Parquet or Arrow file by its suffix, with the features that the `datasets` library writes."""
    arrow = pa.table(columns)
    if features is not None:
        arrow = arrow.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(arrow, path)
    elif path.suffix == ".feather":
        feather.write_feather(arrow, path)
    else:
        with path.open("wb") as stream, ipc.new_stream(stream, arrow.schema) as writer:
            writer.write_table(arrow, max_chunksize=batch)
    return path


def data_set(folder: Path, shards: Sequence[dict[str, Any]], features: dict[str, Any]) -> Path:
    """A folder as save_to_disk writes it."""
    names = [f"data-{i:05}-of-{len(shards):05}.arrow" for i in range(len(shards))]
    for name, shard in zip(names, shards, strict=True):
        typed(folder / name, shard)
    (folder / "state.json").write_text(json.dumps({"_data_files": [{"filename": name} for name in names]}))
    (folder / "dataset_info.json").write_text(json.dumps({"features": features}))
    return folder


class TestTypedFiles:
    @pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".feather"])
    def test_classes_become_labels(self, tmp_path: Path, suffix: str) -> None:
        """A class by its name, -1 as unknown, in all kinds of file; the classes are the labels, in their order."""
        path = typed(tmp_path / f"t{suffix}", {"text": ["a", "b", "c"], "label": [1, -1, 0], "n": [1, None, 3]}, CLASS)
        read = examples(path, "classification")
        assert read.labels == ("neg", "pos")
        assert [row.gold for row in read.rows] == [Gold(label="pos"), Gold(), Gold(label="neg")]
        assert [row.further["n"] for row in read.rows] == [1, None, 3]
        assert [(row.id, row.place.line) for row in read.rows][2] == (f"t{suffix}:3", 3)

    def test_without_classes_numbers_are_text(self, tmp_path: Path) -> None:
        """Then -1 is a label like any other, and only null is unknown; a number may be an ID."""
        path = typed(tmp_path / "t.parquet", {"text": ["a", "b"], "label": [-1, None], "id": [7, 8]})
        read = examples(path, "classification")
        assert read.labels is None
        assert [(row.id, row.gold) for row in read.rows] == [("7", Gold(label="-1")), ("8", Gold())]

    def test_lists_of_classes(self, tmp_path: Path) -> None:
        """Tags and labels by name, as older and newer versions of `datasets` write their lists."""
        names = {"names": ["O", "B-X"], "_type": "ClassLabel"}
        for feature in ([names], {"feature": names, "_type": "Sequence"}, {"feature": names, "_type": "List"}):
            path = typed(tmp_path / "t.arrow", {"tokens": [["a", "b"]], "ner_tags": [[1, 0]]}, {"ner_tags": feature})
            (row,) = examples(path, "entity", columns={"tags": "ner_tags"}).rows
            assert (row.inputs["tokens"], row.gold) == (("a", "b"), Gold(tags=("B-X", "O")))
        path = typed(tmp_path / "t.arrow", {"text": ["a", "b"], "labels": [[1], []]}, {"labels": [names]})
        read = examples(path, "multilabel")
        assert ([row.gold for row in read.rows], read.labels) == (
            [Gold(labels=("B-X",)), Gold(labels=())],
            ("O", "B-X"),
        )

    def test_a_class_that_is_none_is_refused(self, tmp_path: Path) -> None:
        """With its row."""
        error = refused(typed(tmp_path / "t.parquet", {"text": ["a", "b"], "label": [0, 2]}, CLASS), "classification")
        assert error.subject.endswith("t.parquet line 2")
        error = refused(typed(tmp_path / "t.parquet", {"text": ["a"], "label": [-2]}, CLASS), "classification")
        assert "'-2'" in error.found
        for label in ("0", True):
            path = typed(tmp_path / "t.parquet", {"text": ["a"], "label": [label]}, CLASS)
            assert str(label) in refused(path, "classification").found

    def test_answers_of_the_hub_and_choices(self, tmp_path: Path) -> None:
        """Texts and places as two lists; a choice by its number, unknown where its text is empty."""
        columns = {"question": ["q"], "context": ["abc"], "answers": [{"text": ["b"], "answer_start": [1]}]}
        (row,) = examples(typed(tmp_path / "t.parquet", columns), "answer").rows
        assert row.gold == Gold(answers=(GoldAnswer("b", 1),))
        columns = {"question": ["q", "r"], "choices": [["x", "y"], ["x", "y"]], "label": ["1", ""]}
        rows = examples(typed(tmp_path / "t.parquet", columns), "multiple-choice").rows
        assert [row.gold for row in rows] == [Gold(choice=1), Gold()]
        columns["label"] = [1, -1]
        rows = examples(typed(tmp_path / "t.parquet", columns, CLASS), "multiple-choice").rows
        assert [row.gold for row in rows] == [Gold(choice=1), Gold()]

    def test_answers_and_places_pair(self, tmp_path: Path) -> None:
        """Two lists of different lengths say nothing."""
        columns = {"question": ["q"], "context": ["abc"], "answers": [{"text": ["b"], "answer_start": [1, 2]}]}
        assert "of one length" in refused(typed(tmp_path / "t.parquet", columns), "answer").expected

    def test_many_rows_are_all_read(self, tmp_path: Path) -> None:
        """Whatever the file's own batches are."""
        path = typed(tmp_path / "t.feather", {"text": [str(i) for i in range(3000)], "label": ["x"] * 3000})
        rows = examples(path, "classification").rows
        assert [row.inputs["text"] for row in rows] == [str(i) for i in range(3000)]
        assert rows[-1].id == "t.feather:3000"

    def test_nul_and_repeated_names_are_refused(self, tmp_path: Path) -> None:
        """As in every other format."""
        path = typed(tmp_path / "t.parquet", {"text": ["a", "b\0"], "label": ["x", "y"]})
        assert refused(path, "classification").subject.endswith("line 2")
        twice = pa.table([["a"], ["b"]], names=["text", "text"])
        parquet.write_table(twice, tmp_path / "t.parquet")
        assert "two columns" in refused(tmp_path / "t.parquet", "classification").found

    def test_numbers(self, tmp_path: Path) -> None:
        """NaN, as pandas writes what is missing, is unknown; an infinity is refused; bytes are left out."""
        columns = {"text": ["a", "b"], "value": [1.5, float("nan")], "image": [b"1", b"2"]}
        rows = examples(typed(tmp_path / "t.parquet", columns), "regression").rows
        assert [row.gold for row in rows] == [Gold(value=1.5), Gold()]
        assert rows[0].further == {}
        columns = {"text": ["a", "b"], "value": [1.5, float("inf")]}
        assert refused(typed(tmp_path / "t.parquet", columns), "regression").subject.endswith("line 2")

    def test_decimals_are_numbers(self, tmp_path: Path) -> None:
        """As they are written; without decimals they are whole, so that such an ID has one spelling."""
        values = [Decimal("0.10"), Decimal("2.00")]
        columns = {"id": pa.array([7, 8], pa.decimal128(20, 0)), "text": ["a", "b"], "value": pa.array(values)}
        rows = examples(typed(tmp_path / "t.parquet", columns), "regression").rows
        assert [(row.id, row.gold) for row in rows] == [("7", Gold(value=0.1)), ("8", Gold(value=2.0))]

    def test_times_finer_than_python_has_them(self, tmp_path: Path) -> None:
        """Are cut to microseconds, also within lists, and hinder nothing."""
        times = pa.array([1_001, 2_002], pa.timestamp("ns"))
        columns = {
            "text": ["a", "b"], "value": [1.0, 2.0], "at": times, "for": times.cast(pa.int64()).cast(pa.duration("ns")),
            "of_day": times.cast(pa.int64()).cast(pa.time64("ns")), "all": pa.array([[1], [2]], pa.list_(times.type)),
        }  # fmt: skip
        first, second = examples(typed(tmp_path / "t.parquet", columns), "regression").rows
        assert [first.further["at"], second.further["at"]] == [
            "1970-01-01 00:00:00.000001",
            "1970-01-01 00:00:00.000002",
        ]
        assert (second.further["for"], second.further["of_day"]) == ("0:00:00.000002", "00:00:00.000002")

    def test_a_time_beyond_pythons_is_refused_by_name(self, tmp_path: Path) -> None:
        """Not by the error of a library."""
        columns = {"text": ["a"], "value": [1.0], "at": pa.array([-9 * 10**14], pa.timestamp("ms"))}
        assert refused(typed(tmp_path / "t.parquet", columns), "regression").subject.startswith(str(tmp_path))

    def test_bytes_where_a_field_should_be_are_told(self, tmp_path: Path) -> None:
        """By the field's own name or under `columns`; other columns of bytes are left out."""
        path = typed(tmp_path / "t.parquet", {"text": ["a"], "label": [b"x"], "image": [b"1"]})
        assert "bytes in the column 'label'" in refused(path, "classification").found
        path = typed(tmp_path / "t.parquet", {"text": ["a"], "intent": [b"x"]})
        assert "'intent'" in refused(path, "classification", columns={"label": "intent"}).found

    def test_keys_of_text_tables_are_refused(self, tmp_path: Path) -> None:
        """They would not be honoured."""
        path = typed(tmp_path / "t.parquet", {"text": ["a"], "label": ["x"]})
        assert "`quotes`" in refused(path, "classification", quotes=False).found

    @pytest.mark.parametrize("name", ["t.parquet", "t.arrow"])
    def test_a_damaged_file_is_refused_by_name(self, tmp_path: Path, name: str) -> None:
        """Neither garbage nor a file cut short gets through."""
        path = typed(tmp_path / name, {"text": ["a", "b", "c"] * 50, "label": ["x"] * 150}, batch=20)
        whole = path.read_bytes()
        for data in (b"", b"garbage, and more of it", whole[: len(whole) // 2]):
            path.write_bytes(data)
            assert refused(path, "classification").subject.startswith(str(path))


class TestSavedDataSets:
    def test_shards_are_read_in_order(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """As one table, called by its folder; classes come from its info, and every file is a file of the suite."""
        shards = [{"text": ["a", "b"], "label": [0, 1]}, {"text": ["c"], "label": [1]}]
        folder = data_set(tmp_path / "dev", shards, CLASS)
        read = examples(folder, "classification")
        assert [(row.id, row.gold) for row in read.rows] == [
            ("dev:1", Gold(label="neg")), ("dev:2", Gold(label="pos")), ("dev:3", Gold(label="pos"))
        ]  # fmt: skip
        assert read.labels == ("neg", "pos")
        assert read.rows[2].place.path == folder
        monkeypatch.chdir(folder)
        assert examples(Path(), "classification").rows[0].id == "dev:1"
        files = locate(folder, Source(format="table"), ()).all
        assert [path.name for path in files] == [
            "state.json", "dataset_info.json", "data-00000-of-00002.arrow", "data-00001-of-00002.arrow"
        ]  # fmt: skip

    def test_splits_are_named_by_role(self, tmp_path: Path) -> None:
        """Each is a unit of its own, and its cases stand at the path by which it was named."""
        for name in ("dev", "test"):
            data_set(tmp_path / name, [{"text": [name], "label": [0]}], CLASS)
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["dev", "test"]}')
        rows = examples(tmp_path, "classification", ["test", "dev"]).rows
        assert [(row.id, row.place.path) for row in rows] == [
            ("test:1", tmp_path / "test"), ("dev:1", tmp_path / "dev")
        ]  # fmt: skip
        assert "2 splits: 'dev', 'test'" in refused(tmp_path, "classification").found
        (tmp_path / "dataset_dict.json").write_text('{"splits": ["dev"]}')
        assert [row.id for row in examples(tmp_path, "classification").rows] == ["dev:1"]

    def test_splits_must_share_their_classes(self, tmp_path: Path) -> None:
        """The number 0 would mean two labels."""
        other = {**CLASS, "label": {"names": ["pos", "neg"], "_type": "ClassLabel"}}
        data_set(tmp_path / "dev", [{"text": ["a"], "label": [0]}], CLASS)
        data_set(tmp_path / "test", [{"text": ["a"], "label": [0]}], other)
        assert "different classes" in refused(tmp_path, "classification", ["dev", "test"]).found

    def test_what_is_no_saved_data_set_is_refused(self, tmp_path: Path) -> None:
        """A folder without its state, names that lead out of it, rows chosen by number, shards that differ."""
        assert "without state.json" in refused(tmp_path, "classification").found
        folder = data_set(tmp_path / "dev", [{"text": ["a"], "label": [0]}, {"text": ["a"]}], CLASS)
        assert "columns 'text'" in refused(folder, "classification").found
        for state in ({"_data_files": [{"filename": "../x.arrow"}]}, {}, {"_data_files": []}):
            (folder / "state.json").write_text(json.dumps(state))
            assert "data files" in refused(folder, "classification").found
        (folder / "state.json").write_text('{"_indices_data_files": [{"filename": "i.arrow"}]}')
        assert "by a file of their numbers" in refused(folder, "classification").found


class TestPublicFiles:
    def test_sts_benchmark(self, shared_data: Callable[[str], Path]) -> None:
        """1,500 pairs with stray quotes and, in 22 of them, two cells more; their mean gold by another reading."""
        path = shared_data("sts_dev") / "sts-dev.csv"
        keys: dict[str, Any] = {
            "separator": "tab", "quotes": False, "header": False, "attributes": {"genre": 1, "file": 2},
            "columns": {"value": 5, "text_a": 6, "text_b": 7},
        }  # fmt: skip
        assert "9 cells" in refused(path, "similarity", **keys).found
        rows = examples(path, "similarity", **keys, surplus="drop").rows
        lines = [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n") if line]
        assert len(rows) == 1500
        assert [row.gold for row in rows] == [Gold(value=float(line[4])) for line in lines]
        assert [row.inputs["text_b"] for row in rows] == [line[6] for line in lines]
        assert {row.further["genre"] for row in rows} == {"main-captions", "main-forums", "main-news"}

    def test_trec_questions(self, shared_data: Callable[[str], Path]) -> None:
        """500 questions of six classes, each line a label, a blank and the question."""
        path = shared_data("trec6") / "TREC.test.all"
        rows = examples(path, "classification", separator="blank", header=False, columns={"label": 1, "text": 2}).rows
        assert len(rows) == 500
        assert {row.gold.label for row in rows if row.gold} == set("012345")
        assert rows[0].inputs["text"] == "How far is it from Denver to Aspen ?"
