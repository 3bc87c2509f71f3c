"""Text files by numbered lines, and the JSON objects on them, each with its place."""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, TypeAlias

from harness.errors import Misconfigured, NotFound

JsonValue: TypeAlias = bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"] | None
JsonObject: TypeAlias = dict[str, JsonValue]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
OTHER_FILES = {
    b"\x1f\x8b": ("a file that gzip has packed", "Unpack it with gunzip, and name the unpacked file."),
    b"PK\x03\x04": ("a zip archive", "Unpack it, and name the file that was in it."),
    b"PAR1": ("a Parquet file", 'Name it with the suffix .parquet, in a `source` with format = "table".'),
    b"ARROW1": ("an Arrow file", 'Name it with the suffix .arrow, in a `source` with format = "table".'),
    b"\xff\xfe": ("text in UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE."),
    b"\xfe\xff": ("text in UTF-16", "Convert it: iconv -f UTF-16 -t UTF-8 FILE."),
}
"""What a file begins with that isn't UTF-8 text, and the mend."""
LISTED = 3
_BLANKS = re.compile("[ \t]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where something stands: a line of a file, counted from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path} line {self.line}"


@dataclass(frozen=True, slots=True)
class Line:
    """One line without its end."""

    place: Place
    text: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One JSON object."""

    place: Place
    keys: JsonObject


def refuse(where: Place | Path, found: str, expected: str, mend: str) -> NoReturn:
    """Raises Misconfigured about a place."""
    raise Misconfigured(str(where), found=found, expected=expected, mend=mend)


def shown(text: str) -> str:
    """A text as an error message may print it: quoted, on one line, of bounded length."""
    quoted = repr(text[:60])
    return quoted if len(text) <= 60 else f"{quoted[:-1]}…{quoted[-1]} ({len(text)} characters)"


def listed(identifiers: Iterable[str]) -> str:
    """The first few IDs, and that there are more."""
    ids = list(identifiers)
    return ", ".join(shown(each) for each in ids[:LISTED]) + (", …" if len(ids) > LISTED else "")


def read_lines(path: Path, *, blank: bool = False) -> Iterator[Line]:
    """Lines that aren't blank, or all. They end at a line feed only, for U+2028 and its like may stand within a text.

    A carriage return before it and a byte order mark before all are no part of the text.
    Raises NotFound for a file that isn't there, Misconfigured for bytes that aren't UTF-8 and for NUL.
    """
    try:
        with path.open("rb") as stream:
            for number, raw in enumerate(stream, 1):
                if number == 1:
                    raw = raw.removeprefix(BYTE_ORDER_MARK)
                text = _decoded(raw.removesuffix(b"\n").removesuffix(b"\r"), path, number)
                if blank or text.strip(" \t"):
                    yield Line(Place(path, number), text)
    except FileNotFoundError:
        raise NotFound(
            str(path), found="no such file", expected="a UTF-8 text file",
            mend="Correct the path, or put the file there.",
        ) from None  # fmt: skip
    except OSError as error:
        refuse(path, error.strerror or str(error), "a file that can be read", "Mend the path or the permissions.")


def split_columns(line: Line) -> list[str]:
    """The parts of a line between blanks and tabs. Not str.split(): an ID may hold another Unicode space."""
    return _BLANKS.split(line.text.strip(" \t"))


def read_objects(path: Path, *, constants: bool = False) -> Iterator[Entry]:
    """JSON objects, one a line. `constants` lets NaN and infinities through: an output that isn't finite must be seen.

    Raises as `read_lines`, and Misconfigured for what isn't one JSON object, a key given twice, a number that
    isn't finite, and text that UTF-8 cannot say or that holds NUL.
    """
    for line in read_lines(path):
        try:
            value: JsonValue = (_LENIENT if constants else _STRICT).decode(line.text)
        except (ValueError, RecursionError) as error:
            refuse(line.place, f"no JSON object: {error}", "one JSON object a line", "Correct that line.")
        if not isinstance(value, dict):
            refuse(line.place, f"{_kind(value)}, no JSON object", "one JSON object a line", "Correct that line.")
        # A lone surrogate or a NUL can only come from an escape, and few lines have one.
        if "\\u" in line.text:
            _check_text(value, line.place)
        yield Entry(line.place, value)


def read_json(path: Path) -> JsonValue:
    """A file that is one JSON value. Raises as `read_objects`, with the line where the JSON breaks."""
    text = "\n".join(line.text for line in read_lines(path, blank=True))
    try:
        value: JsonValue = _STRICT.decode(text)
    except (ValueError, RecursionError) as error:
        where = Place(path, error.lineno) if isinstance(error, json.JSONDecodeError) else path
        refuse(where, f"no JSON: {error}", "a file that is one JSON value", "Correct that file.")
    if "\\u" in text:
        _check_text(value, Place(path, 1))
    return value


def text_of(entry: Entry, key: str) -> str:
    """A key that must be there and be text."""
    if key not in entry.keys:
        refuse(entry.place, f"no `{key}`", f"`{key}`, as text", f"Add `{key}` to that line.")
    value = entry.keys[key]
    if not isinstance(value, str):
        written = json.dumps(value)
        example = f'Write "{key}": "{written}".' if _kind(value) == "a number" else f"Make `{key}` text."
        refuse(entry.place, f"`{key}` is {_kind(value)}", "text (IDs are text: 7, 07 and 7.0 are three)", example)
    return value


def checked_id(value: str, where: Place) -> str:
    """An ID that isn't blank."""
    if not value.strip():
        refuse(where, f"a blank ID, {shown(value)}", "an ID with at least one visible character", "Give it an ID.")
    return value


def _decoded(raw: bytes, path: Path, number: int) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse_other(raw, path, number)
        refuse(
            Place(path, number), f"byte {error.start + 1} of the line isn't UTF-8", "a UTF-8 file",
            "Convert the file to UTF-8.",
        )  # fmt: skip
    if "\0" in text:
        _refuse_other(raw, path, number)
        refuse(Place(path, number), "a NUL character", "text without NUL", "Take it out; the file may be damaged.")
    return text


def _refuse_other(raw: bytes, path: Path, number: int) -> None:
    """Raises Misconfigured where a first line that is no text begins like a file of another kind."""
    for magic, (found, mend) in OTHER_FILES.items():
        if number == 1 and raw.startswith(magic):
            refuse(path, found, "a UTF-8 text file", mend)


def _object(pairs: list[tuple[str, JsonValue]]) -> JsonObject:
    keys = dict(pairs)
    if len(keys) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {shown(twice)} stands twice")
    return keys


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:20]} is too large a number")
    return value


def strict_decoder(whole: Callable[[str], int | float] | None = None) -> json.JSONDecoder:
    """Of JSON in which no key stands twice and every number is finite; ValueError tells what isn't so.

    `whole`: what a whole number is read by, in place of `int`.
    """
    return json.JSONDecoder(
        object_pairs_hook=_object, parse_constant=_no_constant, parse_float=_finite, parse_int=whole
    )  # fmt: skip


_STRICT = strict_decoder()
_LENIENT = json.JSONDecoder(object_pairs_hook=_object)


def _check_text(value: JsonValue, where: Place) -> None:
    if isinstance(value, str):
        if "\0" in value:
            refuse(where, "a NUL character", "text without NUL", "Take the \\u0000 out.")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            unit = ord(value[error.start])
            refuse(where, f"half a surrogate pair, \\u{unit:04x}", "whole characters", "Correct or remove the escape.")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key, where)
            _check_text(inner, where)
    elif isinstance(value, list):
        for inner in value:
            _check_text(inner, where)


def _kind(value: JsonValue) -> str:
    if isinstance(value, bool):
        return "true or false"
    kinds = {str: "text", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return kinds.get(type(value), "null")
