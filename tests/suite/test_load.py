"""From a folder to a suite: what is left out, what is refused, what is warned of."""

from pathlib import Path

import pytest

from harness.errors import Leaked, Misconfigured, NotFound
from harness.suite.load import load

from .conftest import CORPUS, HEAD, METRICS, QRELS, QUERIES, RULE, Write


def refused(folder: Path) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        load(folder)
    return caught.value


def leaked(folder: Path) -> Leaked:
    with pytest.raises(Leaked) as caught:
        load(folder)
    return caught.value


class TestSuite:
    def test_everything_stands_in_file_order(self, write: Write) -> None:
        """Cases, documents, judgements, attributes and digests of the small suite."""
        folder = write()
        suite = load(folder)
        assert [(case.id, case.text, case.attributes) for case in suite.cases] == [
            ("q1", "money back", {"kind": "plain"}),
            ("q2", "shiping", {"kind": "typo"}),
        ]
        assert [(each.id, each.text) for each in suite.documents] == [("d1", "Refunds how to"), ("d2", "Shipping")]
        assert [(row.case_id, row.document_id, row.grade) for row in suite.judgements] == [
            ("q1", "d1", 2),
            ("q2", "d2", 1),
            ("q2", "d1", 0),
        ]
        assert set(suite.files) == {"corpus.jsonl", "queries.jsonl", "qrels/test.tsv"}
        assert {case.role for case in suite.cases} == {"promotion"}
        assert [case.group for case in suite.cases] == ["q1", "q2"]
        assert suite.warnings == ()

    def test_a_folder_or_file_that_is_not_there(self, write: Write, tmp_path: Path) -> None:
        """No folder, no definition, no data: each is not found, and named."""
        with pytest.raises(NotFound, match="no such folder"):
            load(tmp_path / "nowhere")
        with pytest.raises(NotFound, match=r"no suite\.toml"):
            load(tmp_path)
        folder = write()
        (folder / "corpus.jsonl").unlink()
        with pytest.raises(NotFound, match=r"corpus\.jsonl"):
            load(folder)

    def test_no_query_or_document_is_no_suite(self, write: Write) -> None:
        """Something must count."""
        assert "no case" in refused(write(queries=[], qrels="")).found
        assert "no document" in refused(write(corpus=[], qrels=QRELS, cases='[cases]\ndangling = "drop"\n')).found


class TestDangling:
    QRELS = QRELS + "q9\td1\t1\nq1\td9\t1\n"

    def test_it_is_refused_with_the_line_to_add(self, write: Write) -> None:
        """Judgements of what isn't there are counted, the first named with its place, and the mend is a line."""
        error = refused(write(qrels=self.QRELS))
        assert error.subject.endswith("test.tsv line 5")
        assert "2 judgements" in error.found
        assert "query 'q9'" in error.found
        assert "document 'd9'" in error.found
        assert 'dangling = "drop"' in error.mend

    def test_dropped_it_is_counted(self, write: Write) -> None:
        """The rest of the suite is as without them."""
        suite = load(write(qrels=self.QRELS, cases='[cases]\ndangling = "drop"\n'))
        assert suite.judgements == load(write()).judgements
        assert suite.counts.dangling_dropped == 2
        assert any("2 judgements" in warning for warning in suite.warnings)

    def test_it_comes_before_unjudged(self, write: Write) -> None:
        """A query whose only judgement dangles is unjudged."""
        qrels = QRELS.replace("q1\td1", "q1\td9")
        error = refused(write(qrels=qrels, cases='[cases]\ndangling = "drop"\n'))
        assert "'q1'" in error.found
        suite = load(write(qrels=qrels, cases='[cases]\ndangling = "drop"\nunjudged = "drop"\n'))
        assert [case.id for case in suite.cases] == ["q2"]
        assert (suite.counts.dangling_dropped, suite.counts.unjudged_dropped) == (1, 1)


class TestUnjudged:
    QUERIES = (*QUERIES, *({"_id": f"u{i}", "text": "never judged", "kind": "plain"} for i in range(5)))

    def test_it_is_refused_with_the_line_to_add(self, write: Write) -> None:
        """Counted, the first few named, the place of the first."""
        error = refused(write(queries=self.QUERIES))
        assert error.subject.endswith("queries.jsonl line 3")
        assert "5 queries" in error.found
        assert "'u0', 'u1', 'u2', …" in error.found
        assert 'unjudged = "drop"' in error.mend

    def test_dropped_it_is_counted(self, write: Write) -> None:
        """The cases are those that were judged."""
        suite = load(write(queries=self.QUERIES, cases='[cases]\nunjudged = "drop"\n'))
        assert [case.id for case in suite.cases] == ["q1", "q2"]
        assert suite.counts.unjudged_dropped == 5

    def test_a_case_may_be_meant_to_have_no_answer(self, write: Write) -> None:
        """`answerable` false makes an unjudged query a case, and stays an attribute for slices."""
        suite = load(write(queries=[*QUERIES, {"_id": "u", "text": "?", "answerable": False}]))
        assert [case.answerable for case in suite.cases] == [True, True, False]
        assert suite.cases[2].attributes == {"answerable": False}

    def test_an_unanswerable_case_has_no_relevant_document(self, write: Write) -> None:
        """Judged 0 it may be, judged relevant it contradicts itself."""
        queries = [{**QUERIES[0], "answerable": False}, QUERIES[1]]
        assert load(write(queries=queries, qrels=QRELS.replace("d1\t2", "d1\t0")))
        error = refused(write(queries=queries))
        assert error.subject.endswith("test.tsv line 2")
        assert "'q1'" in error.found

    @pytest.mark.parametrize("value", ["false", 0])
    def test_answerable_is_true_or_false(self, write: Write, value: object) -> None:
        """The text "false" would count as true."""
        assert "`answerable`" in refused(write(queries=[{**QUERIES[0], "answerable": value}, QUERIES[1]])).found

    def test_judged_without_a_relevant_document_is_a_case(self, write: Write) -> None:
        """Grades of 0 and below are judgements; the case is kept and warned of."""
        suite = load(write(qrels=QRELS.replace("d1\t2", "d1\t-1")))
        assert len(suite.cases) == 2
        assert any("no relevant document: 'q1'" in warning for warning in suite.warnings)


class TestAttributes:
    def rows(self, *values: object) -> list[dict[str, object]]:
        return [{**row, "n": value} for row, value in zip(QUERIES, values, strict=True)]

    def test_whole_and_broken_numbers_mix(self, write: Write) -> None:
        """As broken ones, on every case."""
        values = [case.attributes["n"] for case in load(write(queries=self.rows(1, 2.5))).cases]
        assert values == [1.0, 2.5]
        assert all(type(value) is float for value in values)
        assert all(type(case.attributes["n"]) is int for case in load(write(queries=self.rows(1, 2))).cases)

    @pytest.mark.parametrize("values", [(1, "1"), (True, 1), ("true", True), (0.5, False)])
    def test_other_mixtures_are_refused_with_both_lines(self, write: Write, values: tuple[object, object]) -> None:
        """Text, numbers and booleans are three types."""
        error = refused(write(queries=self.rows(*values)))
        assert error.subject.endswith("queries.jsonl line 2")
        assert "line 1" in error.found

    def test_null_is_absent(self, write: Write) -> None:
        """It has no type, and the case no such attribute."""
        assert "n" not in load(write(queries=self.rows(None, 3))).cases[0].attributes

    def test_lists_and_objects_are_left_out_and_said(self, write: Write) -> None:
        """One warning a name; empty ones are absent without a word."""
        suite = load(write(queries=self.rows({"a": 1}, [1])))
        assert [set(case.attributes) for case in suite.cases] == [{"kind"}, {"kind"}]
        assert sum("'n'" in warning for warning in suite.warnings) == 1
        assert load(write(queries=self.rows({}, []))).warnings == ()

    def test_names_that_sql_takes_as_one_are_refused(self, write: Write) -> None:
        """`kind` and `Kind` would be one column."""
        assert "'Kind'" in refused(write(queries=[{**QUERIES[0], "Kind": "x"}, QUERIES[1]])).found

    def test_a_number_beyond_2_to_the_53_is_refused(self, write: Write) -> None:
        """It could not be written to the lock exactly."""
        assert load(write(queries=self.rows(2**53 - 1, -(2**53) + 1)))
        assert "2**53" in refused(write(queries=self.rows(2**53, 1))).expected


class TestRole:
    def rows(self, *roles: object) -> list[dict[str, object]]:
        return [{**row, "split": role} for row, role in zip(QUERIES, roles, strict=True)]

    CASES = '[cases]\nrole = "split"\n'

    def test_an_attribute_names_it(self, write: Write) -> None:
        """Case by case."""
        suite = load(write(queries=self.rows("calibration", "promotion"), cases=self.CASES))
        assert [case.role for case in suite.cases] == ["calibration", "promotion"]

    def test_a_case_without_one_is_refused_with_the_line_to_add(self, write: Write) -> None:
        """Counted, placed, and the key to write."""
        error = refused(write(queries=self.rows("promotion", None), cases=self.CASES))
        assert error.subject.endswith("queries.jsonl line 2")
        assert "1 cases without a role: 'q2'" in error.found
        assert '"split": "promotion"' in error.mend

    def test_a_role_that_is_none_gets_the_nearest(self, write: Write) -> None:
        """There are four roles."""
        assert "'calibration'" in refused(write(queries=self.rows("promotion", "calibraton"), cases=self.CASES)).mend
        assert "dev" in refused(write(queries=self.rows("promotion", "dev"), cases=self.CASES)).found

    def test_an_attribute_that_no_query_has_gets_the_nearest(self, write: Write) -> None:
        """A misspelt attribute is a configuration error, not a suite without roles or groups."""
        for key in ("role", "group"):
            assert '"kind"' in refused(write(cases=f'[cases]\n{key} = "knd"\n')).mend

    MAP = '[cases]\nrole = { "qrels/dev.tsv" = "calibration", "qrels/test.tsv" = "promotion" }\n'

    def test_the_file_that_judges_a_case_names_it(self, write: Write) -> None:
        """Every file that has a role is read."""
        suite = load(
            write(cases=self.MAP, qrels={"dev.tsv": "q1\td1\t2\n", "test.tsv": "q2\td2\t1\n", "x.tsv": "junk"})
        )
        assert [case.role for case in suite.cases] == ["calibration", "promotion"]
        assert len(suite.judgements) == 2
        assert "qrels/x.tsv" not in suite.files

    def test_a_case_judged_in_two_roles_leaks(self, write: Write) -> None:
        """It is refused as leaked, with both places."""
        error = leaked(write(cases=self.MAP, qrels={"dev.tsv": "q1\td1\t2\n", "test.tsv": "q2\td2\t1\nq1\td2\t1\n"}))
        assert error.exit_code == 4
        assert "test.tsv line 2" in error.subject
        assert "dev.tsv line 1" in error.found

    def test_a_pair_judged_in_two_files_is_judged_twice(self, write: Write) -> None:
        """Also where both files have one role."""
        error = refused(
            write(
                cases=self.MAP.replace("calibration", "promotion"),
                qrels={"dev.tsv": "q1\td1\t2\n", "test.tsv": "q2\td2\t1\nq1\td1\t2\n"},
            )
        )
        assert "dev.tsv line 1" in error.found

    def test_a_case_that_no_file_judges_has_none(self, write: Write) -> None:
        """An unanswerable case needs its role from elsewhere."""
        queries = [*QUERIES, {"_id": "u", "text": "?", "answerable": False}]
        error = refused(
            write(cases=self.MAP, queries=queries, qrels={"dev.tsv": "q1\td1\t2\n", "test.tsv": "q2\td2\t1\n"})
        )
        assert error.subject.endswith("queries.jsonl line 3")

    def test_files_are_named_in_one_place(self, write: Write) -> None:
        """`qrels` beside a role for every file would be ignored, so it is refused."""
        assert "one place" in refused(write(head=HEAD.replace('path = "."', 'qrels = "dev"'), cases=self.MAP)).expected


class TestGroup:
    CASES = '[cases]\nrole = "split"\ngroup = "article"\n'

    def rows(self, *articles: object, roles: tuple[str, str] = ("promotion", "promotion")) -> list[dict[str, object]]:
        return [
            {**row, "split": role, "article": article}
            for row, role, article in zip(QUERIES, roles, articles, strict=True)
        ]

    def test_an_attribute_names_it(self, write: Write) -> None:
        """As text, also where it is a number; without it, a case is its own, and that is said."""
        assert {case.group for case in load(write(queries=self.rows(7, 7), cases=self.CASES)).cases} == {"7"}
        for blank in (None, " "):
            suite = load(write(queries=self.rows(blank, "a"), cases=self.CASES))
            assert [case.group for case in suite.cases] == ["q1", "a"]
            assert any("1 cases have no article" in warning for warning in suite.warnings)

    def test_a_group_in_two_roles_leaks(self, write: Write) -> None:
        """Both cases, both lines and both roles are named."""
        rows = self.rows("a", "a", roles=("calibration", "promotion"))
        error = leaked(write(queries=rows, cases=self.CASES))
        assert error.subject.endswith("queries.jsonl line 2")
        for part in ("'a'", "'q1' (line 1) is calibration", "'q2' is promotion"):
            assert part in error.found
        assert load(write(queries=self.rows("a", "b", roles=("calibration", "promotion")), cases=self.CASES))


class TestWarnings:
    def test_near_equal_ids_are_counted(self, write: Write) -> None:
        """Equal after NFC, case folding and stripping, but not equal: warned of, and kept apart."""
        composed, decomposed = "caf\u00e9", "CAFE\u0301 "
        corpus = [*CORPUS, {"_id": composed, "text": "a"}, {"_id": decomposed, "text": "b"}, {"_id": "D1", "text": "c"}]
        suite = load(write(corpus=corpus))
        assert suite.counts.near_equal_ids == 4
        assert len(suite.documents) == 5
        assert any("4 document IDs" in warning for warning in suite.warnings)

    def test_shared_ids_are_counted(self, write: Write) -> None:
        """An ID that names both a query and a document is always reported."""
        suite = load(write(corpus=[*CORPUS, {"_id": "q1", "text": "the query itself"}]))
        assert suite.counts.shared_ids == 1
        assert any("'q1'" in warning and "self_match" in warning for warning in suite.warnings)

    def test_a_blank_query_is_kept(self, write: Write) -> None:
        """It is a case, and said."""
        suite = load(write(queries=[{**QUERIES[0], "text": " "}, QUERIES[1]]))
        assert suite.cases[0].text == " "
        assert any("blank text: 'q1'" in warning for warning in suite.warnings)


def test_the_definition_is_checked_before_the_data(write: Write) -> None:
    """A rule over a slice that isn't there is found though the data are broken too."""
    folder = write(rest=METRICS + RULE + 'slice = "nowhere"\n', corpus=b"junk")
    assert "suite.toml" in refused(folder).subject
