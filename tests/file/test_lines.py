"""Text by numbered lines, and one JSON object a line."""

import json
import math
from pathlib import Path

import pytest

from harness.errors import Misconfigured, NotFound
from harness.file.lines import Line, json_object, read_lines


def read(path: Path, content: bytes) -> list[tuple[int, str]]:
    path.write_bytes(content)
    return [(line.number, line.text) for line in read_lines(path)]


def parse(text: str, *, constants: bool = False) -> dict[str, object]:
    return json_object(Line(Path("file.jsonl"), 7, text), constants=constants)


class TestLines:
    @pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r"])
    def test_only_a_line_feed_ends_a_line(self, tmp_path: Path, mark: str) -> None:
        """`str.splitlines` would break at every one of these."""
        assert read(tmp_path / "f", f"a{mark}b\nc\n".encode()) == [(1, f"a{mark}b"), (2, "c")]

    def test_a_carriage_return_before_it_goes_too(self, tmp_path: Path) -> None:
        """One, and only at the end."""
        assert read(tmp_path / "f", b"a\r\nb\r\r\nc") == [(1, "a"), (2, "b\r"), (3, "c")]

    def test_blank_lines_are_counted_and_left_out(self, tmp_path: Path) -> None:
        """Numbers are those that an editor shows; other blanks on a line are text."""
        assert read(tmp_path / "f", b"\n \t\r\n\n  a \n\n") == [(4, "  a ")]

    def test_a_byte_order_mark_is_no_text(self, tmp_path: Path) -> None:
        """At the start of the file only."""
        mark = b"\xef\xbb\xbf"
        assert read(tmp_path / "f", mark + b"a\n" + mark + b"b") == [(1, "a"), (2, "\ufeffb")]
        assert read(tmp_path / "f", mark) == []

    @pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", "ä".encode("latin-1")])
    def test_bytes_that_are_not_utf8(self, tmp_path: Path, bad: bytes) -> None:
        """Refused with the line; the lines before it were given."""
        (tmp_path / "f").write_bytes(b"one\ntwo" + bad + b"\n")
        lines = read_lines(tmp_path / "f")
        assert next(lines).text == "one"
        with pytest.raises(Misconfigured) as refusal:
            next(lines)
        assert refusal.value.subject == f"{tmp_path / 'f'} line 2"

    @pytest.mark.parametrize("name", ["none", "folder"])
    def test_no_file(self, tmp_path: Path, name: str) -> None:
        """A folder is no file either."""
        (tmp_path / "folder").mkdir()
        with pytest.raises(NotFound):
            list(read_lines(tmp_path / name))

    def test_an_empty_file_has_no_lines(self, tmp_path: Path) -> None:
        """It is there, and says nothing."""
        assert read(tmp_path / "f", b"") == []


class TestJsonObject:
    def test_every_kind_of_value(self) -> None:
        """As the standard library reads them; an escaped pair of surrogates is one character."""
        assert parse('{"a": [1, 2.5, null, true], "b": {"c": "\\ud83d\\ude00\\u2028"}}') == {
            "a": [1, 2.5, None, True], "b": {"c": "😀\u2028"},
        }  # fmt: skip

    @pytest.mark.parametrize(
        "text", ["[]", "1", '"a"', "null", "NaN", "{", "{} {}", "{'a': 1}", '{"a": 1,}', "", '{"a": 01}', "{a: 1}"]
    )
    def test_anything_else_is_refused_with_its_line(self, text: str) -> None:
        """One object, and nothing behind it."""
        with pytest.raises(Misconfigured) as refusal:
            parse(text)
        assert refusal.value.subject == "file.jsonl line 7"

    @pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"x": [{"a": 1, "\\u0061": 2}]}'])
    def test_a_key_that_stands_twice(self, text: str) -> None:
        """At any depth, however it is escaped, also when both say the same."""
        with pytest.raises(Misconfigured, match="'a' stands twice"):
            parse(text)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
    def test_numbers_that_are_not_finite(self, number: str) -> None:
        """No JSON, unless asked for: an output that isn't finite must fail by name, not by syntax."""
        text = f'{{"score": {number}}}'
        with pytest.raises(Misconfigured):
            parse(text)
        found = parse(text, constants=True)["score"]
        assert isinstance(found, float) and not math.isfinite(found)

    @pytest.mark.parametrize("text", ['{"a": "\\ud800"}', '{"\\udfff": 1}', '{"a": [["x", "\\ude00\\ud83d"]]}'])
    def test_half_a_surrogate_pair(self, text: str) -> None:
        """In a value, in a key, in the wrong order: no file could hold it again."""
        with pytest.raises(Misconfigured, match="surrogate"):
            parse(text)

    def test_a_backslash_before_the_u_is_text(self) -> None:
        """`\\\\ud800` is six characters, and each of them may stand."""
        assert parse('{"a": "\\\\ud800"}') == {"a": "\\ud800"}

    @pytest.mark.parametrize("depth", [100_000, 1_000_000])
    def test_nesting_without_end(self, depth: int) -> None:
        """Refused, not a crash."""
        with pytest.raises(Misconfigured):
            parse('{"a": ' + "[" * depth + "]" * depth + "}")

    def test_nesting_that_can_be_read_but_not_walked(self) -> None:
        """The search for surrogates has the same bound."""
        deep = 900
        text = '{"a": ' + "[" * deep + '"\\u0041"' + "]" * deep + "}"
        try:
            assert json.dumps(parse(text)).count("[") == deep
        except Misconfigured as refusal:
            assert "nested too deep" in refusal.found

    def test_a_number_too_long_to_read(self) -> None:
        """Python refuses whole numbers of more than 4,300 digits; so do we, by line."""
        with pytest.raises(Misconfigured):
            parse('{"a": ' + "9" * 5000 + "}")
