"""Text by numbered lines, and one JSON object a line."""

import gzip
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import HarnessError, Misconfigured, NotFound
from harness.file.lines import Entry, read_lines, read_objects

Parse = Callable[..., dict[str, Any]]


def read(path: Path, content: bytes) -> list[tuple[int, str]]:
    path.write_bytes(content)
    return [(line.place.line, line.text) for line in read_lines(path)]


@pytest.fixture
def parse(tmp_path: Path) -> Parse:
    """The object on the third line of a file, between two that are fine."""

    def keys(text: str, *, constants: bool = False) -> dict[str, Any]:
        (tmp_path / "f").write_text(f'{{"before": 1}}\n\n{text}\n{{"after": 1}}\n', encoding="utf-8")
        entries: list[Entry] = list(read_objects(tmp_path / "f", constants=constants))
        assert [entry.place.line for entry in entries] == [1, 3, 4]
        return dict(entries[1].keys)

    return keys


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

    @pytest.mark.parametrize(
        ("content", "found", "mend"),
        [
            (gzip.compress(b"a\n"), "gzip", "gunzip"),
            (b"PK\x03\x04\x14\x00", "zip", "Unpack"),
            (b"PAR1\x15\x00\x15", "Parquet", ".parquet"),
            (b"ARROW1\x00\x00", "Arrow", ".arrow"),
            ("a\tb\n".encode("utf-16"), "UTF-16", "iconv"),
            ("\ufeffa\tb\n".encode("utf-16-be"), "UTF-16", "iconv"),
        ],
    )
    def test_a_file_of_another_kind_is_told_by_name(
        self, tmp_path: Path, content: bytes, found: str, mend: str
    ) -> None:
        """And how to make text of it."""
        with pytest.raises(Misconfigured) as refusal:
            read(tmp_path / "f", content)
        assert (found in refusal.value.found, mend in refusal.value.mend) == (True, True)

    def test_text_may_begin_as_another_kind_of_file_does(self, tmp_path: Path) -> None:
        """What is text is text."""
        assert read(tmp_path / "f", b"PAR1 B-PLACE\n") == [(1, "PAR1 B-PLACE")]

    @pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", "ä".encode("latin-1")])
    def test_bytes_that_are_not_utf8(self, tmp_path: Path, bad: bytes) -> None:
        """Refused with the line; the lines before it were given."""
        (tmp_path / "f").write_bytes(b"one\ntwo" + bad + b"\n")
        lines = read_lines(tmp_path / "f")
        assert next(lines).text == "one"
        with pytest.raises(Misconfigured) as refusal:
            next(lines)
        assert refusal.value.subject == f"{tmp_path / 'f'} line 2"

    @pytest.mark.parametrize(
        ("name", "kind"), [("none", NotFound), ("folder", Misconfigured), ("file/x", Misconfigured)]
    )
    def test_no_file(self, tmp_path: Path, name: str, kind: type[HarnessError]) -> None:
        """One that isn't there; a folder, or a path through a file, can't be read."""
        (tmp_path / "folder").mkdir()
        (tmp_path / "file").touch()
        with pytest.raises(kind) as refusal:
            list(read_lines(tmp_path / name))
        assert refusal.value.subject == str(tmp_path / name)

    def test_nul_is_a_damaged_file(self, tmp_path: Path) -> None:
        """Half of the tools behind us would end the text there."""
        with pytest.raises(Misconfigured, match="line 2"):
            read(tmp_path / "f", b"one\ntw\0o\n")

    def test_an_empty_file_has_no_lines(self, tmp_path: Path) -> None:
        """It is there, and says nothing."""
        assert read(tmp_path / "f", b"") == []


class TestObjects:
    def test_every_kind_of_value(self, parse: Parse) -> None:
        """As the standard library reads them; an escaped pair of surrogates is one character."""
        assert parse('{"a": [1, 2.5, null, true], "b": {"c": "\\ud83d\\ude00\\u2028"}}') == {
            "a": [1, 2.5, None, True], "b": {"c": "😀\u2028"},
        }  # fmt: skip

    @pytest.mark.parametrize(
        "text", ["[]", "1", '"a"', "null", "NaN", "{", "{} {}", "{'a': 1}", '{"a": 1,}', '{"a": 01}', "{a: 1}", "\x0b"]
    )
    def test_anything_else_is_refused_with_its_line(self, parse: Parse, text: str) -> None:
        """One object, and nothing behind it."""
        with pytest.raises(Misconfigured) as refusal:
            parse(text)
        assert refusal.value.subject.endswith("f line 3")

    @pytest.mark.parametrize("text", ['{"a": 1, "a": 1}', '{"x": [{"a": 1, "\\u0061": 2}]}'])
    @pytest.mark.parametrize("constants", [False, True])
    def test_a_key_that_stands_twice(self, parse: Parse, text: str, constants: bool) -> None:
        """At any depth, however it is escaped, also when both say the same."""
        with pytest.raises(Misconfigured, match="'a' stands twice"):
            parse(text, constants=constants)

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999"])
    def test_numbers_that_are_not_finite(self, parse: Parse, number: str) -> None:
        """No JSON, unless asked for: an output that isn't finite must fail by name, not by syntax."""
        text = f'{{"score": [{number}]}}'
        with pytest.raises(Misconfigured):
            parse(text)
        [found] = parse(text, constants=True)["score"]
        assert isinstance(found, float) and not math.isfinite(found)

    @pytest.mark.parametrize(
        "text",
        [
            '{"a": "\\ud800"}',
            '{"\\udfff": 1}',
            '{"a": [["x", "\\ude00\\ud83d"]]}',
            '{"a": "\\u0000"}',
            '{"\\u0000": 1}',
        ],
    )
    def test_text_that_no_file_could_hold_again(self, parse: Parse, text: str) -> None:
        """Half a surrogate pair or NUL, in a value, in a key, at any depth."""
        with pytest.raises(Misconfigured, match="line 3"):
            parse(text)

    def test_a_backslash_before_the_u_is_text(self, parse: Parse) -> None:
        """`\\\\ud800` is six characters, and each of them may stand."""
        assert parse('{"a": "\\\\ud800"}') == {"a": "\\ud800"}

    @pytest.mark.parametrize(
        "depths", [[100, 400], range(800, 1000), [100_000, 1_000_000]], ids=["fine", "edge", "far"]
    )
    def test_nesting(self, parse: Parse, depths: Sequence[int]) -> None:
        """Read as far as it goes, refused beyond: nowhere a crash, with and without an escape to look behind."""
        for depth in depths:
            for inner in ("1", '"\\u0041"'):
                try:
                    value = parse('{"a": ' + "[" * depth + inner + "]" * depth + "}")["a"]
                except Misconfigured as refusal:
                    assert depth > 400 and refusal.subject.endswith("line 3")
                else:
                    for _ in range(depth):
                        [value] = value

    def test_a_number_too_long_to_read(self, parse: Parse) -> None:
        """Python refuses whole numbers of more than 4,300 digits; so do we, by line."""
        with pytest.raises(Misconfigured, match="line 3"):
            parse('{"a": ' + "9" * 5000 + "}")
