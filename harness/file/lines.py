"""Text files by numbered lines. A line ends at a line feed only: U+2028 and its like are text."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Misconfigured, NotFound


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end; `number` counts from 1."""

    path: Path
    number: int
    text: str

    def refuse(self, found: str, expected: str, mend: str) -> Misconfigured:
        """An error that names this file and line."""
        return Misconfigured(f"{self.path} line {self.number}", found=found, expected=expected, mend=mend)


def read_lines(path: Path) -> Iterator[Line]:
    """Every line that isn't blank.

    Raises NotFound where there is no file, Misconfigured for bytes that aren't UTF-8.
    """
    if not path.is_file():
        raise NotFound(
            str(path), found="no such file", expected="a UTF-8 text file", mend="Correct the path, or put it there."
        )
    with path.open("rb") as stream:
        for number, raw in enumerate(stream, start=1):
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as refusal:
                raise Misconfigured(
                    f"{path} line {number}", found=f"byte {refusal.start} of the line isn't UTF-8", expected="UTF-8 text",
                    mend="Convert the file, for instance with `iconv -t UTF-8`.",
                ) from refusal  # fmt: skip
            text = text.removesuffix("\n").removesuffix("\r")
            if text.strip():
                yield Line(path, number, text)


def json_object(line: Line, *, constants: bool = False) -> dict[str, object]:
    """The JSON object on a line. `constants` lets NaN and infinities through, for outputs that must fail by name.

    Raises Misconfigured for anything else, a key that stands twice, or half a surrogate pair (which no UTF-8 file
    can hold again).
    """
    mend = "Write one JSON object a line."
    try:
        value = json.loads(
            line.text, object_pairs_hook=_once, parse_constant=float if constants else _no_constant,
            parse_float=float if constants else _finite,
        )  # fmt: skip
        line_breaks_utf8 = "\\u" in line.text and _has_surrogate(value)
    except RecursionError as refusal:
        raise line.refuse("JSON nested too deep to read", "one JSON object", mend) from refusal
    except ValueError as refusal:
        raise line.refuse(str(refusal), "one JSON object", mend) from refusal
    if line_breaks_utf8:
        raise line.refuse("half a surrogate pair (\\ud800 to \\udfff alone)", "text that UTF-8 can hold", mend)
    if not isinstance(value, dict):
        raise line.refuse(f"a JSON {type(value).__name__}", "one JSON object", mend)
    return value


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice")
        found[key] = value
    return found


def _no_constant(word: str) -> float:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    if math.isinf(value := float(digits)):
        raise ValueError(f"{digits} is beyond what a float holds")
    return value


def _has_surrogate(value: object) -> bool:
    match value:
        case str():
            return any("\ud800" <= character <= "\udfff" for character in value)
        case dict():
            return any(_has_surrogate(item) for pair in value.items() for item in pair)
        case list():
            return any(map(_has_surrogate, value))
        case _:
            return False
