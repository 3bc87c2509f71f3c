"""Rows under a key are replaced as a whole, and text is never SQL."""

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from harness.store import write
from harness.store.connection import Store

HOSTILE = [
    "", " ", "it's", 'say "so"', "'); DROP TABLE documents; --", "a\nb\r\nc\td", "nul\0inside", "\0", "a\\b",
    "%s {x} $1 ?", "\u202eright to left\u2066", "\u2028\u2029\x85", "e\u0301 é", "😀" * 50, "\ufeff",
    "NULL", "nan", "x" * 100_000,
]  # fmt: skip


def heads(store: Store, suite: str) -> list[tuple[str, str]]:
    with store.reading() as connection:
        sql = "SELECT document_id, head FROM documents WHERE suite_digest = ? ORDER BY rowid"
        return connection.execute(sql, [suite]).fetchall()


class TestReplace:
    def test_twice_leaves_one_copy(self, empty: Store) -> None:
        """In two steps, and in one."""
        for times in (1, 2):
            with empty.writing() as connection:
                for _ in range(times):
                    write.replace(
                        connection, "documents", {"suite_digest": "s"}, {"document_id": ["a", "b"], "head": ["1", "2"]}
                    )
            assert heads(empty, "s") == [("a", "1"), ("b", "2")]

    def test_the_whole_key_gives_way_and_nothing_else(self, empty: Store) -> None:
        """Fewer rows than before leave none of the old; another key keeps its own."""
        with empty.writing() as connection:
            for suite in ("s", "t"):
                write.replace(
                    connection, "documents", {"suite_digest": suite}, {"document_id": ["a", "b"], "head": ["1", "2"]}
                )
            write.replace(connection, "documents", {"suite_digest": "s"}, {"document_id": ["c"], "head": ["3"]})
        assert heads(empty, "s") == [("c", "3")]
        assert heads(empty, "t") == [("a", "1"), ("b", "2")]

    def test_with_no_rows_it_empties(self, empty: Store) -> None:
        """Columns of length 0, typed or not."""
        for nothing in ([], pa.array([], pa.string()), np.array([], dtype=object)):
            with empty.writing() as connection:
                write.append(connection, "documents", {"suite_digest": "s"}, {"document_id": ["a"], "head": ["1"]})
                write.replace(connection, "documents", {"suite_digest": "s"}, {"document_id": nothing, "head": nothing})
            assert heads(empty, "s") == []

    def test_a_row_with_a_primary_key(self, empty: Store) -> None:
        """A run that is written again in the same step, and in the next."""
        for candidate in ("one", "two"):
            with empty.writing() as connection:
                for _ in range(2):
                    write.replace(connection, "suites", {"suite_digest": "s"}, {
                        "suite": [candidate], "data_digest": ["d"], "policy_digest": ["p"], "lock": ["{}"],
                    })  # fmt: skip
        with empty.reading() as connection:
            assert connection.execute("SELECT suite FROM suites").fetchall() == [("two",)]

    def test_columns_of_unequal_length_write_nothing(self, empty: Store) -> None:
        """And take nothing out."""
        with empty.writing() as connection:
            write.append(connection, "documents", {"suite_digest": "s"}, {"document_id": ["a"], "head": ["1"]})
        with pytest.raises(pa.ArrowInvalid), empty.writing() as connection:
            write.replace(connection, "documents", {"suite_digest": "s"}, {"document_id": ["b"], "head": ["2", "3"]})
        assert heads(empty, "s") == [("a", "1")]

    def test_what_was_wrong_is_said(self, empty: Store) -> None:
        """The statement that failed, not the cleaning up behind it: a full disk must look like one."""
        with pytest.raises(duckdb.ConstraintException, match="head"), empty.writing() as connection:
            write.append(connection, "documents", {"suite_digest": "s"}, {"document_id": ["a"], "head": [None]})


class TestUpdate:
    def test_the_rows_of_the_key(self, empty: Store) -> None:
        """Their named columns, and nothing else; no row, no change."""
        with empty.writing() as connection:
            for suite in ("s", "t"):
                write.append(
                    connection, "documents", {"suite_digest": suite}, {"document_id": ["a", "b"], "head": ["1", "2"]}
                )
            write.update(connection, "documents", {"suite_digest": "s", "document_id": "b"}, {"head": "it's"})
            write.update(connection, "documents", {"suite_digest": "u"}, {"head": "x"})
        assert heads(empty, "s") == [("a", "1"), ("b", "it's")]
        assert heads(empty, "t") == [("a", "1"), ("b", "2")]


class TestTexts:
    @pytest.mark.parametrize("kind", ["list", "numpy", "arrow"])
    def test_any_text_comes_back_as_it_was(self, empty: Store, kind: str) -> None:
        """Quotes, line ends, NUL, direction marks, 100,000 characters; as an ID and as a value."""
        make = {"list": list, "numpy": lambda each: np.array(each, dtype=object), "arrow": lambda each: pa.array(each)}
        with empty.writing() as connection:
            columns = {"document_id": make[kind](HOSTILE), "head": make[kind](HOSTILE[::-1])}
            write.replace(connection, "documents", {"suite_digest": "s"}, columns)
        assert heads(empty, "s") == list(zip(HOSTILE, HOSTILE[::-1], strict=True))

    def test_a_key_is_text_too(self, empty: Store) -> None:
        """Replacing and removing under a hostile key touches no other."""
        keys = HOSTILE[:-1]
        with empty.writing() as connection:
            for key in keys:
                write.replace(connection, "documents", {"suite_digest": key}, {"document_id": ["a"], "head": [key]})
            write.remove(connection, "documents", {"suite_digest": keys[4]})
        assert [heads(empty, key) for key in keys] == [
            [] if key == keys[4] else [("a", key)] for key in keys
        ]  # fmt: skip

    def test_ids_that_look_like_numbers_stay_text(self, empty: Store) -> None:
        """`007`, `1e2` and `100` are three IDs."""
        ids = ["007", "7", "1e2", "100", "+1", "true"]
        with empty.writing() as connection:
            write.append(connection, "documents", {"suite_digest": "1"}, {"document_id": ids, "head": ids})
        assert [row[0] for row in heads(empty, "1")] == ids


class TestSteps:
    def test_a_step_is_finished_once_it_is_committed(self, empty: Store) -> None:
        """By run and by name, and again is still once."""
        for _ in range(2):
            with empty.writing() as connection:
                write.finish(connection, "ab", "measured", 1.5)
        with empty.reading() as connection:
            assert write.finished(connection, "ab", "measured")
            assert not write.finished(connection, "ab", "decided")
            assert not write.finished(connection, "a", "measured")
            assert connection.execute("SELECT count(*) FROM steps").fetchall() == [(1,)]
