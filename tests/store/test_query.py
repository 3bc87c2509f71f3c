"""SQL that people write: one statement that reads, or the condition of a slice."""

from pathlib import Path

import pytest

from harness.errors import Misconfigured, NotFound
from harness.store.connection import Store
from harness.store.query import Rows, query, select

CASES = ["q3", "q1", "q2", "q4"]
ATTRIBUTES = {"kind": ["typo", "plain", None, "typo"], "length": [1, 2, 3, None]}


def members(where: str, attributes: dict[str, list[object]] | None = None) -> list[str]:
    return select(CASES, ATTRIBUTES if attributes is None else attributes, where, "the slice 's'")


class TestQuery:
    @pytest.mark.parametrize(
        "text",
        ["SELECT 1 AS a", "select 1 as a;", "WITH t AS (SELECT 1 AS a) SELECT a FROM t", "-- why\nSELECT 1 AS a -- ;"],
    )
    def test_one_statement_that_reads(self, small: Store, text: str) -> None:
        """Columns by name, rows in order."""
        assert query(small, text) == Rows(("a",), ((1,),))

    @pytest.mark.parametrize(
        "text",
        ["SHOW TABLES", "DESCRIBE rankings", "SUMMARIZE rankings", "FROM runs", "VALUES (1)", "EXPLAIN FROM runs"],
    )
    def test_looking_around(self, small: Store, text: str) -> None:
        """What a newcomer types first."""
        assert query(small, text).rows

    def test_names_that_stand_twice_both_stand(self, small: Store) -> None:
        """A row is a tuple, so neither is lost."""
        assert query(small, "SELECT 1 AS a, 2 AS a") == Rows(("a", "a"), ((1, 2),))

    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("", "0 statements"), (" \n", "0 statements"), ("-- nothing", "0 statements"), ("/* */", "0 statements"),
            (";", "0 statements"), ("SELECT 1; SELECT 2", "2 statements"),
            ("SELECT 1; DELETE FROM runs", "2 statements"), ("DELETE FROM runs", "writes"),
            ("INSERT INTO steps VALUES ('r', 's', 1)", "writes"),
            ("CREATE TEMP TABLE t (a INTEGER)", "writes"), ("COPY runs TO 'out.csv'", "writes"),
            ("ATTACH 'x.duckdb'", "writes"), ("INSTALL httpfs", "writes"), ("SET threads = 1", "writes"),
            ("BEGIN", "writes"), ("PRAGMA threads = 1", "writes"), ("CALL pragma_version()", "writes"),
        ],
    )  # fmt: skip
    def test_anything_else_is_refused(self, small: Store, text: str, found: str) -> None:
        """Before it runs."""
        with pytest.raises(Misconfigured, match=found):
            query(small, text)

    @pytest.mark.parametrize(
        "text",
        [
            "EXPLAIN ANALYZE INSERT INTO steps VALUES ('r', 's', 1)", "EXPLAIN ANALYZE COPY runs TO 'out.csv'",
            "SELECT * FROM read_text('pyproject.toml')", "SELECT nosuch FROM runs", "SELEC 1", "SELECT ?",
            "SELECT * FROM statements", "SELECT * FROM store", "SELECT 1/0::INTEGER + 'x'::INTEGER", "SELECT '\ud800'",
        ],
    )  # fmt: skip
    def test_what_duckdb_refuses_is_the_users_mistake(
        self, small: Store, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Also a writing statement inside an explanation, a variable of ours, and text that is no UTF-8."""
        monkeypatch.chdir(tmp_path)
        with pytest.raises(Misconfigured):
            query(small, text)
        assert not list(tmp_path.iterdir())

    def test_no_store(self, empty: Store) -> None:
        """Said before the SQL is looked at."""
        with pytest.raises(NotFound):
            query(empty, "nonsense")


class TestSelect:
    @pytest.mark.parametrize(
        ("where", "expected"),
        [
            ("kind = 'typo'", ["q3", "q4"]), ("KIND = 'typo'", ["q3", "q4"]), ('"Kind" = \'typo\'', ["q3", "q4"]),
            ("length >= 2", ["q1", "q2"]), ("kind = 'typo' AND length = 1", ["q3"]), ("length / 0 = 1", []),
            ("kind = 'typo' -- and length = 1", ["q3", "q4"]), ("length > 1\n  AND kind = 'plain'", ["q1"]),
            ("length > (SELECT avg(length) FROM cases)", ["q2"]), ("true", CASES), ("false", []),
            ("kind = 'a\\0b' OR kind = 'x;y'", []),
        ],
    )  # fmt: skip
    def test_the_cases_it_holds_for_in_the_order_given(self, where: str, expected: list[str]) -> None:
        """Comments, line ends and subqueries over the cases are SQL like any other."""
        assert members(where) == expected

    @pytest.mark.parametrize(
        "where", ["kind = 'typo'", "kind <> 'typo'", "NOT (kind = 'typo')", "kind IN ('typo', 'x')"]
    )
    def test_a_case_that_lacks_the_attribute_is_no_member(self, where: str) -> None:
        """NULL is neither equal nor unequal; who means it says IS NULL."""
        assert "q2" not in members(where)
        assert members("kind IS NULL") == ["q2"]

    def test_an_attribute_that_no_case_has(self) -> None:
        """A column of NULLs holds for none."""
        assert members("kind = 'typo'", {"kind": [None] * 4}) == []

    def test_many_cases_keep_their_order(self) -> None:
        """Also where DuckDB reads them in parallel."""
        cases = [f"q{number}" for number in range(200_000, 0, -1)]
        assert select(cases, {"n": list(range(200_000))}, "n % 2 = 1", "s") == cases[1::2]

    @pytest.mark.parametrize(
        "name",
        [
            "a b", 'say "so"', "it's", "select", "order", "größe", "Ünï", "1", "a.b", "#", "##", "cases", "rowid",
            "case_id", "a\nb", "--", "😀", " ", "a" * 300,
        ],
    )  # fmt: skip
    def test_any_name_can_be_said_in_double_quotes(self, name: str) -> None:
        """Blanks, quotes, keywords, and the names that this very query might use."""
        quoted = '"' + name.replace('"', '""') + '"'
        assert members(f"{quoted} = 'x'", {name: ["x", "y", "x", None], "kind": ATTRIBUTES["kind"]}) == ["q3", "q2"]
        assert members(f"{quoted} = 'x' AND kind = 'typo'", {name: ["x"] * 4, "kind": ATTRIBUTES["kind"]}) == [
            "q3",
            "q4",
        ]

    @pytest.mark.parametrize(
        "where",
        [
            "1=1) OR (1=1", "'; DROP TABLE cases; --", "true); SELECT (1", "true) UNION ALL (SELECT 0",
            "true) UNION ALL (SELECT 99", "true) UNION ALL (SELECT -1", "false) UNION ALL SELECT 3 WHERE (true",
            "true) EXCEPT (SELECT 1", "true) ORDER BY 1 LIMIT (1", "true) GROUP BY ALL HAVING (true", "true] OR [true",
            "true) -- ", "/* open", "select true", "true, false", "", "  ", "-- nothing", "kind = 'typo';", "kind = ?",
            "kind = $1", "kind", "kind = \"typo\"", "count(*) > 1",
            "row_number() OVER () > 1", "kind = 'typ", "\ud800 = 1",
        ],
    )  # fmt: skip
    def test_what_is_no_condition_is_refused(self, where: str) -> None:
        """A text that leaves its brackets could add members that no condition holds for, or one twice."""
        with pytest.raises(Misconfigured, match="the slice 's'"):
            members(where)

    @pytest.mark.parametrize(
        "where",
        [
            "EXISTS (SELECT * FROM read_text('{}'))", "EXISTS (FROM '{}')", "EXISTS (SELECT * FROM read_csv('{}'))",
            "EXISTS (SELECT * FROM glob('{}'))", "EXISTS (SELECT * FROM case_ids)",
            "kind IN (SELECT kind FROM ATTRIBUTES)", "EXISTS (SELECT * FROM seen_by_python)",
        ],
    )  # fmt: skip
    def test_it_reaches_nothing_but_the_attributes(self, where: str, tmp_path: Path) -> None:
        """No file, no variable of Python: a slice means the same wherever it is frozen."""
        seen_by_python = [{"kind": "typo"}]
        (tmp_path / "file.csv").write_text("kind\ntypo\n")
        with pytest.raises(Misconfigured):
            members(where.format(tmp_path / "file.csv"))
        assert seen_by_python

    @pytest.mark.parametrize("where", ["random() < 0.5", "length > 1 AND random() < 0.5", "uuid()::TEXT < '8'"])
    def test_a_condition_that_is_chance_is_refused(self, where: str) -> None:
        """A slice is frozen as the cases that a condition means, not as those it once drew."""
        cases = [f"q{i}" for i in range(100)]
        with pytest.raises(Misconfigured, match="other cases each time"):
            select(cases, {"length": [2] * 100}, where, "the slice 's'")

    def test_a_condition_without_an_end_is_given_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A recursive one can run for ever."""
        monkeypatch.setattr("harness.store.query.LONGEST_CONDITION", 0.1)
        endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT 1 FROM t WHERE n < 0"
        with pytest.raises(Misconfigured, match="the slice 's'"):
            members(f"EXISTS ({endless})")

    def test_an_unknown_column_gives_the_attributes(self) -> None:
        """All of them, so that the right spelling is among them."""
        with pytest.raises(Misconfigured) as refusal:
            members("knid = 'typo'")
        assert "knid" in refusal.value.found and "\n" not in refusal.value.found
        assert refusal.value.expected.endswith("kind, length")

    def test_cases_without_attributes(self) -> None:
        """A condition that names none still means something, one that names one says that there are none."""
        assert members("true", {}) == CASES
        with pytest.raises(Misconfigured, match="they have none"):
            members("kind = 'typo'", {})

    @pytest.mark.parametrize("where", ["(" * 100_000 + "true" + ")" * 100_000, "not " * 50_000 + "true"])
    def test_nesting_without_end_is_refused(self, where: str) -> None:
        """Not a crash of the process."""
        with pytest.raises(Misconfigured):
            members(where)
