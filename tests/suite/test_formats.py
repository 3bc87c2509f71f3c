"""Reading data files: every refusal has its file and line, and no text breaks a reader."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import Misconfigured, NotFound
from harness.file.lines import read_lines, read_objects
from harness.suite.formats.collection import read_queries
from harness.suite.load import load

from .conftest import CORPUS, HEAD, METRICS, QUERIES, RULE, Write

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))


def refused(folder: Path) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        load(folder)
    return caught.value


class TestLines:
    def test_only_a_line_feed_ends_a_line(self, tmp_path: Path) -> None:
        """U+2028, U+0085, form feed and a carriage return inside are text; CRLF, a BOM and blank lines are not."""
        path = tmp_path / "a.txt"
        path.write_bytes("\ufeffa\u2028b\u0085c\x0cd\re\r\n\n \t\r\n\ufefflast".encode())
        lines = list(read_lines(path))
        assert [line.text for line in lines] == ["a\u2028b\u0085c\x0cd\re", "\ufefflast"]
        assert [line.place.line for line in lines] == [1, 4]

    @pytest.mark.parametrize("bad", [b"\xff", b"\xed\xa0\x80", b"a\0b"])
    def test_bytes_that_are_no_text_have_their_line(self, tmp_path: Path, bad: bytes) -> None:
        """Neither invalid UTF-8 nor NUL gets through."""
        path = tmp_path / "a.txt"
        path.write_bytes(b"fine\n" + bad + b"\n")
        with pytest.raises(Misconfigured) as caught:
            list(read_lines(path))
        assert caught.value.subject.endswith("a.txt line 2")

    def test_a_file_that_is_not_there(self, tmp_path: Path) -> None:
        """A missing file is not found; a folder in its place is misconfigured."""
        with pytest.raises(NotFound):
            list(read_lines(tmp_path / "a.txt"))
        with pytest.raises(Misconfigured):
            list(read_lines(tmp_path))


class TestObjects:
    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ('{"_id": "a", "text": ', "no JSON"),
            ("[1]", "a list"),
            ('"a"', "text"),
            ("null", "null"),
            ('{"_id": "a", "_id": "b", "text": "t"}', "'_id' stands twice"),
            ('{"_id": "a", "text": "t", "m": {"x": 1, "x": 2}}', "'x' stands twice"),
            ('{"_id": "a", "text": "t", "n": NaN}', "NaN"),
            ('{"_id": "a", "text": "t", "n": -Infinity}', "Infinity"),
            ('{"_id": "a", "text": "t", "n": 1e999}', "too large"),
            ('{"_id": "a", "text": "t", "n": ' + "1" * 5000 + "}", "no JSON"),
            ('{"_id": "a", "text": "t", "n": ' + "[" * 100_000 + "}", "no JSON"),
            (r'{"_id": "a", "text": "half \ud800"}', r"\ud800"),
            (r'{"_id": "\udc00", "text": "t"}', r"\udc00"),
            (r'{"_id": "a", "text": "t", "\udc00": 1}', r"\udc00"),
            (r'{"_id": "a", "text": "t", "m": [{"k": "\ud800"}]}', r"\ud800"),
            (r'{"_id": "a", "text": "nul \u0000"}', "NUL"),
            ('{"_id": "a", "text": "t"} {}', "no JSON"),
        ],
    )
    def test_what_is_no_clean_object_is_refused_with_its_line(self, tmp_path: Path, line: str, said: str) -> None:
        """Each kind of damage is said, at its line."""
        path = tmp_path / "a.jsonl"
        path.write_text('{"_id": "first", "text": "t"}\n' + line + "\n", encoding="utf-8")
        with pytest.raises(Misconfigured) as caught:
            list(read_objects(path))
        assert caught.value.subject.endswith("a.jsonl line 2")
        assert said in caught.value.found

    def test_a_whole_pair_and_an_escaped_backslash_are_text(self, tmp_path: Path) -> None:
        """What only looks like half a pair or NUL gets through."""
        path = tmp_path / "a.jsonl"
        path.write_text(r'{"_id": "a", "text": "\ud83d\ude00 \\ud800 \\u0000"}', encoding="utf-8")
        assert read_queries(path, ("_id",))[0].text == "\U0001f600 \\ud800 \\u0000"

    @given(st.dictionaries(TEXT, TEXT), TEXT, TEXT.filter(str.strip), st.booleans())
    def test_every_text_comes_back(
        self, tmp_path_factory: pytest.TempPathFactory, further: dict[str, str], text: str, name: str, ascii: bool
    ) -> None:
        """Quotes, line ends within strings, tags, marks of direction: written as JSON and read, it is the same."""
        path = tmp_path_factory.mktemp("hostile") / "q.jsonl"
        row = {**further, "_id": name, "text": text}
        path.write_text(json.dumps(row, ensure_ascii=ascii) + "\n", encoding="utf-8", newline="")
        (query,) = read_queries(path, ("_id",))
        assert (query.id, query.text) == (name, text)
        assert {"_id": query.id, "text": query.text, **query.further} == row

    @pytest.mark.parametrize(
        "text", ["</script><!--", "\u202eevil\u200f", "a\nb\tc\rd", "'; DROP TABLE x; --", "x" * 100_000]
    )
    def test_hostile_ids_and_texts_survive_loading(self, write: Write, text: str) -> None:
        """As ID of case and document and as text, in a whole suite."""
        folder = write(
            corpus=[{"_id": text, "text": text}], queries=[{"_id": "q" + text, "text": text, "kind": text}],
            qrels="", cases="[cases]\nunjudged = \"drop\"\n",
        )  # fmt: skip
        with pytest.raises(Misconfigured) as caught:
            load(folder)
        assert "no case" in caught.value.found
        folder = write(
            corpus=[{"_id": text, "text": text}],
            queries=[{"_id": "q" + text, "text": text, "kind": text, "answerable": False}], qrels="",
        )  # fmt: skip
        suite = load(folder)
        assert suite.cases[0].id == "q" + text
        assert suite.cases[0].attributes["kind"] == text
        assert suite.documents[0].text == text.strip()


class TestIds:
    def test_ids_are_text_and_stay_apart(self, write: Write) -> None:
        """`007`, `1e2` and `100` are three IDs, in JSON and in judgements."""
        ids = ["007", "7", "1e2", "100", "true", "null", "１"]
        queries = [{"_id": each, "text": "t"} for each in ids]
        suite = load(write(queries=queries, qrels="".join(f"{each}\td1\t1\n" for each in ids)))
        assert [case.id for case in suite.cases] == ids
        assert [row.case_id for row in suite.judgements] == ids

    @pytest.mark.parametrize("value", [7, 7.5, True, None, ["7"]])
    def test_anything_but_text_is_refused(self, write: Write, value: object) -> None:
        """A JSON number is no ID: it would lose its zeros."""
        error = refused(write(queries=[QUERIES[0], {"_id": value, "text": "t"}]))
        assert error.subject.endswith("queries.jsonl line 2")
        assert "`_id`" in error.found
        if value == 7:
            assert '"_id": "7"' in error.mend

    @pytest.mark.parametrize("value", ["", " ", "\u2003"])
    def test_a_blank_id_is_none(self, write: Write, value: str) -> None:
        """An ID that can't be seen is refused."""
        assert "blank ID" in refused(write(corpus=[{"_id": value, "text": "t"}])).found

    @pytest.mark.parametrize(("name", "rows"), [("corpus", CORPUS), ("queries", QUERIES)])
    def test_an_id_twice_is_refused_with_both_lines(self, write: Write, name: str, rows: list[dict[str, str]]) -> None:
        """The second of two equal IDs is refused, and the first is shown."""
        error = refused(write(**{name: [*rows, rows[0]]}))
        assert error.subject.endswith(f"{name}.jsonl line 3")
        assert "first at line 1" in error.found

    @pytest.mark.parametrize("key", ["_id", "text"])
    def test_what_is_missing_is_named(self, write: Write, key: str) -> None:
        """Both keys must be there, for documents and queries."""
        for name, rows in (("corpus", CORPUS), ("queries", QUERIES)):
            row = {other: value for other, value in rows[0].items() if other != key}
            error = refused(write(**{name: [row]}))
            assert f"`{key}`" in error.found
            assert error.subject.endswith(f"{name}.jsonl line 1")


class TestBeir:
    def test_the_text_of_a_document_is_title_blank_text_stripped(self, write: Write) -> None:
        """With both, with one, with neither; a title of null is none."""
        corpus = [
            {"_id": "d1", "title": "Refunds", "text": "how to"},
            {"_id": "d2", "title": "", "text": " Shipping "},
            {"_id": "d3", "title": "Only", "text": ""},
            {"_id": "d4", "title": None, "text": ""},
            {"_id": "d5", "text": "untitled"},
        ]
        suite = load(write(corpus=corpus))
        assert [each.text for each in suite.documents] == ["Refunds how to", "Shipping", "Only", "", "untitled"]
        assert suite.counts.empty_documents == 1
        assert any("'d4'" in warning for warning in suite.warnings)

    def test_the_header_may_be_left_out(self, write: Write) -> None:
        """Without it the first line is a judgement like any other."""
        suite = load(write(qrels="q1\td1\t2\nq2\td2\t1\n"))
        assert [(row.case_id, row.document_id, row.grade) for row in suite.judgements] == [
            ("q1", "d1", 2),
            ("q2", "d2", 1),
        ]

    @pytest.mark.parametrize("data", [b"\xef\xbb\xbfquery-id\tcorpus-id\tscore\r\nq1\td1\t1\r\nq2\td2\t-1\r\n"])
    def test_a_byte_order_mark_and_windows_lines(self, write: Write, data: bytes) -> None:
        """Neither gets into an ID or a grade; grades below 0 are kept."""
        assert [row.grade for row in load(write(qrels=data)).judgements] == [1, -1]

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            ("q1 d2 1", "1 tab-separated"),
            ("q1\t0\td2\t1", "4 tab-separated"),
            ("q1\td2", "2 tab-separated"),
            ("q1\td2\t1.0", "'1.0'"),
            ("q1\td2\t", "''"),
            ("q1\td2\t１", "'１'"),
            ("q1\td2\t1_0", "'1_0'"),
            ("q1\td2\t10000000000", "'10000000000'"),
            ("query-id\tcorpus-id\tscore", "'score'"),
            ("\td2\t1", "blank ID"),
            ("q1\t\t1", "blank ID"),
            ("q1\td1\t2", "first at line 2"),
            ("q1\td1\t0", "first at line 2"),
        ],
    )
    def test_a_line_that_is_no_judgement_is_refused(self, write: Write, line: str, said: str) -> None:
        """Columns, grades, blanks, headers amid the data, and pairs judged twice, alike or not."""
        error = refused(write(qrels=f"query-id\tcorpus-id\tscore\nq1\td1\t2\n{line}\nq2\td2\t1\n"))
        assert error.subject.endswith("test.tsv line 3")
        assert said in error.found

    def test_of_several_files_one_must_be_named(self, write: Write) -> None:
        """By stem, by name or by path."""
        files = {
            "._dev.tsv": "a system's own",
            "dev.tsv": "q1\td1\t1\nq2\td1\t1\n",
            "test.tsv": "q1\td2\t1\nq2\td2\t1\n",
        }
        assert 'qrels = "test"' in refused(write(qrels=files)).mend
        for name in ("dev", "dev.tsv", "qrels/dev.tsv"):
            suite = load(write(head=HEAD.replace('path = "."', f'qrels = "{name}"'), qrels=files))
            assert {row.document_id for row in suite.judgements} == {"d1"}
            assert set(suite.files) == {"corpus.jsonl", "queries.jsonl", "qrels/dev.tsv"}

    def test_none_at_all_is_not_found(self, write: Write) -> None:
        """A suite without judgements is missing a file."""
        with pytest.raises(NotFound, match=r"qrels/\*\.tsv"):
            load(write(qrels={}))

    def test_the_data_may_lie_in_a_folder_within(self, write: Write) -> None:
        """`path` is from the suite's folder, and so are the names in `files`; an absolute one is refused."""
        folder = write(head=HEAD.replace('path = "."', 'path = "data"'))
        (folder / "data").mkdir()
        for name in ("corpus.jsonl", "queries.jsonl", "qrels"):
            (folder / name).rename(folder / "data" / name)
        assert set(load(folder).files) == {"data/corpus.jsonl", "data/queries.jsonl", "data/qrels/test.tsv"}
        assert "absolute" in refused(write(head=HEAD.replace('path = "."', f'path = "{folder}"'))).found
        assert "NUL" in refused(write(head=HEAD.replace('path = "."', r'path = "a\u0000"'))).found


class TestTrec:
    HEAD = HEAD.replace('format = "beir", path = "."', 'format = "trec", corpus = "c", queries = "q", qrels = "r"')

    def suite(self, write: Write, corpus: str, queries: str, qrels: str, kind: str = "tsv") -> Path:
        head = self.HEAD.replace('"c"', f'"c.{kind}"').replace('"q"', f'"q.{kind}"')
        folder = write(toml=head + METRICS + RULE)
        for name, text in ((f"c.{kind}", corpus), (f"q.{kind}", queries), ("r", qrels)):
            (folder / name).write_bytes(text.encode())
        return folder

    def test_columns_of_id_and_text(self, write: Write) -> None:
        """Two columns by a tab; a judgement has four by any blanks, the second ignored, and no header."""
        folder = self.suite(
            write,
            "d1\tsome text\u2028with a mark\nd\u00a02\tother\n",
            "q1\tmoney  back\n",
            "q1 Q0  d1\t2\nq1\t7\td\u00a02\t0\n",
        )
        suite = load(folder)
        assert [(each.id, each.text) for each in suite.documents] == [
            ("d1", "some text\u2028with a mark"),
            ("d\u00a02", "other"),
        ]
        assert suite.cases[0].text == "money  back"
        assert [(row.document_id, row.grade) for row in suite.judgements] == [("d1", 2), ("d\u00a02", 0)]

    @pytest.mark.parametrize("key", ["_id", "id"])
    def test_json_lines_with_either_name_of_the_id(self, write: Write, key: str) -> None:
        """`_id` as BEIR has it, or `id`; not both."""
        row = json.dumps({key: "x1", "text": "t", "kind": "typo"})
        suite = load(self.suite(write, row, row, "x1 0 x1 1\n", "jsonl"))
        assert suite.cases[0].id == suite.documents[0].id == "x1"
        assert suite.cases[0].attributes == {"kind": "typo"}
        both = json.dumps({"_id": "x1", "id": "x2", "text": "t"})
        assert "both" in refused(self.suite(write, row, both, "x1 0 x1 1\n", "jsonl")).found

    @pytest.mark.parametrize(
        ("qrels", "said"),
        [
            ("q1\td1\t1\n", "3 columns"),
            ("q1 0 d1 1 x\n", "5 columns"),
            ("q1 0 d1 one\n", "'one'"),
            ("q1 0 d1 1\nq1 1 d1 1\n", "judged twice"),
        ],
    )
    def test_a_line_that_is_no_judgement_is_refused(self, write: Write, qrels: str, said: str) -> None:
        """Wrong columns, grades and repeats."""
        assert said in refused(self.suite(write, "d1\tt\n", "q1\tt\n", qrels)).found

    def test_a_text_column_too_many_is_refused(self, write: Write) -> None:
        """A tab within a text would be a third column."""
        assert "3 tab-separated" in refused(self.suite(write, "d1\tt\tu\n", "q1\tt\n", "q1 0 d1 1\n")).found

    def test_every_file_must_be_named(self, write: Write) -> None:
        """What `source` lacks is said."""
        error = refused(write(toml=self.HEAD.replace(', qrels = "r"', "") + METRICS + RULE))
        assert "no qrels" in error.found


class TestCranfield:
    """A real collection in both forms, and its published figures."""

    def test_both_forms_are_the_same_suite(self, shared_data, tmp_path: Path) -> None:
        """225 cases, 1400 documents (two of them empty), 1837 judgements with grades from -1 to 4."""
        source = shared_data("cranfield")
        for path in ("corpus.jsonl", "queries.jsonl", "qrels.trec", "qrels/test.tsv"):
            target = tmp_path / path
            target.parent.mkdir(exist_ok=True)
            target.write_bytes((source / path).read_bytes())
        forms = []
        for form in (
            'format = "beir"',
            'format = "trec", corpus = "corpus.jsonl", queries = "queries.jsonl", qrels = "qrels.trec"',
        ):
            head = HEAD.replace('format = "beir", path = "."', form)
            (tmp_path / "suite.toml").write_text(head + METRICS + RULE)
            forms.append(load(tmp_path))
        one, other = forms
        assert (one.cases, one.documents, one.judgements) == (other.cases, other.documents, other.judgements)
        assert (len(one.cases), len(one.documents), len(one.judgements)) == (225, 1400, 1837)
        assert one.counts.empty_documents == 2
        assert {row.grade for row in one.judgements} == {-1, 1, 2, 3, 4}
        assert one.counts.shared_ids == 225
