"""What `harness sql` prints: a row is a line for people, and exact for programs."""

import csv
import io
import json

import pytest

from harness.store.query import Rows
from harness.verb.sql import print_rows

HOSTILE = "one\ntwo\tthree\r\nfour\u2028five\x85six\x1bseven"
ROWS = Rows(("text\nof it", "n"), ((HOSTILE, 1), ("العربية 日本語", 2)))


class TestTable:
    def test_a_row_is_a_line_whatever_stands_in_a_cell(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Line ends and tabs are written as in code; what may not be shown is replaced."""
        print_rows(ROWS, "table")
        lines = capsys.readouterr().out.splitlines()
        assert len(lines) == 4
        assert r"text\nof it" in lines[0]
        assert r"one\ntwo\tthree\r\nfour\u2028five\x85six" + "\ufffdseven" in lines[2]
        assert "العربية 日本語" in lines[3]

    def test_csv_and_json_are_exact(self, capsys: pytest.CaptureFixture[str]) -> None:
        print_rows(ROWS, "json")
        assert json.loads(capsys.readouterr().out)["rows"][0][0] == HOSTILE
        print_rows(ROWS, "csv")
        read = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
        assert read[1] == [HOSTILE, "1"]
