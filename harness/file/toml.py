"""Files that people write in TOML, read strictly: what is wrong with one is said with its line."""

import difflib
import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import Misconfigured, NotFound

Model = TypeVar("Model", bound=BaseModel)
Key = str | int

_NAME = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_NAME}(?:\s*\.\s*{_NAME})*"
_TABLE = re.compile(rf"\s*\[\s*({_DOTTED})\s*\]")
_TABLES = re.compile(rf"\s*\[\[\s*({_DOTTED})\s*\]\]")
_ASSIGNMENT = re.compile(rf"\s*({_DOTTED})\s*=")
_STRING = re.compile(r'"(?:\\.|[^"\\])*"|' r"'[^']*'")
_AT_LINE = re.compile(r"\(at line (\d+), column \d+\)")


def read_toml(path: Path, model: type[Model]) -> Model:
    """The file as its model.

    Raises NotFound for a file that isn't there, Misconfigured (file, line, nearest right spelling) for bytes that
    aren't TOML, an unknown key, a missing one, a wrong type or value.
    """
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # a number of too many digits is a ValueError of its own
        said = str(error) if isinstance(error, ValueError) else "values nested too deeply"
        at = _AT_LINE.search(said)
        line = int(at.group(1)) if at else text.count("\n") + 1
        raise Misconfigured(
            f"{path} line {line}", found=_AT_LINE.sub("", said).strip(), expected="TOML 1.0", mend="Correct that line."
        ) from error
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _refusal(path, text, model, data, error.errors(include_url=False)) from error


def place(path: Path, *keys: Key) -> str:
    """`FILE line N` of a key, as `place(path, "rules", 0, "id")`; the nearest table where the key has no line."""
    return f"{path} line {_line(_text(path), keys)}"


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that a misspelt one most likely means."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    lower = {each.lower(): each for each in known}
    return (
        close[0]
        if close
        else next((lower[each] for each in difflib.get_close_matches(word.lower(), lower, n=1, cutoff=0.6)), None)
    )


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except FileNotFoundError:
        raise NotFound(str(path), found="no such file", expected="a TOML file", mend="Check the path.") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Misconfigured(
            f"{path} line {line}", found="bytes that aren't UTF-8", expected="TOML, which is always UTF-8",
            mend="Save the file as UTF-8.",
        ) from error  # fmt: skip
    except OSError as error:
        raise Misconfigured(
            str(path), found=error.strerror or str(error), expected="a file that can be read", mend="Check the path."
        ) from error


def _refusal(
    path: Path, text: str, model: type[BaseModel], data: object, errors: Sequence[ErrorDetails]
) -> Misconfigured:
    # A misspelt key is also a missing one: the unknown spelling is the finding that helps.
    unknown = [error for error in errors if error["type"] == "extra_forbidden"]
    first = (unknown or sorted(errors, key=lambda error: _line(text, _real(data, error["loc"]))))[0]
    keys = _real(data, first["loc"])
    others = len({_real(data, error["loc"]) for error in errors} - {keys})
    more = f" (and {others} more to mend)" if others else ""
    subject = f"{path} line {_line(text, keys)}"
    name = _dotted(keys)
    if first["type"] == "extra_forbidden":
        known = _known(model, first["loc"])
        meant = nearest(str(keys[-1]), known)
        return Misconfigured(
            subject, found=f"unknown key `{name}`{more}", expected=f"one of {', '.join(f'`{key}`' for key in known)}",
            mend=f"Did you mean `{meant}`?" if meant else "Take the key out.",
        )  # fmt: skip
    if first["type"] == "missing":
        return Misconfigured(
            subject, found=f"no `{_dotted((*keys, str(first['loc'][-1])))}`{more}", expected="that key",
            mend=f"Add `{first['loc'][-1]} = …`.",
        )  # fmt: skip
    if first["type"] == "value_error":
        said = _short(first["msg"].removeprefix("Value error, "))
        about = f"`{name}`: " if name else ""
        return Misconfigured(
            subject, found=f"{about}{said}{more}", expected="keys that fit each other", mend="Correct that entry."
        )
    wanted = [
        _short(error["msg"].removeprefix("Input should be ")) for error in errors if _real(data, error["loc"]) == keys
    ]
    expected = " or ".join(dict.fromkeys(wanted))
    value = first["input"]
    meant = nearest(value, re.findall(r"'([^']*)'", expected)) if isinstance(value, str) else None
    return Misconfigured(
        subject, found=f"`{name}` is {_shown(value)}{more}", expected=expected,
        mend=f"Did you mean {meant!r}?" if meant else f"Correct `{name}`.",
    )  # fmt: skip


def _real(data: object, loc: Sequence[Key]) -> tuple[Key, ...]:
    """The part of a location that is in the data, which has neither the branch of a union, nor a missing key, nor the
    name that a model gives to keys of the table above.
    """
    keys: list[Key] = []
    for key in loc:
        if isinstance(data, dict):
            if key not in data:
                continue
            data = data[key]
        elif isinstance(data, list) and isinstance(key, int) and key < len(data):
            data = data[key]
        else:
            continue
        keys.append(key)
    return tuple(keys)


def _known(model: type[BaseModel], loc: Sequence[Key]) -> list[str]:
    """The keys that may stand where `loc` ends."""
    models = [model]
    for key in loc[:-1]:
        below = [
            inner
            for outer in models
            for name, field in outer.model_fields.items()
            if key == (field.alias or name)
            for inner in _models(field.annotation)
        ]
        models = below or models
    return [field.alias or name for outer in models for name, field in outer.model_fields.items()]


def _models(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models(argument)


def _line(text: str, keys: Sequence[Key]) -> int:
    """Line of the longest written prefix of `keys`, from 1."""
    best, found = 0, 1
    for entry, line in _entries(text):
        shared = min(len(entry), len(keys))
        # An entry below the keys shows where they begin, as [[x]] does of a table x that was meant to be one.
        if shared > best and entry[:shared] == tuple(keys[:shared]):
            best, found = shared, line
    return found


def _entries(text: str) -> Iterator[tuple[tuple[Key, ...], int]]:
    """Every table header and assignment with its line."""
    table: tuple[Key, ...] = ()
    counts: dict[tuple[Key, ...], int] = {}
    depth, quote = 0, ""
    for number, line in enumerate(text.split("\n"), 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if depth == 0:
            if tables := _TABLES.match(line):
                table = _resolved(_split(tables.group(1)), counts, last=False)
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
                yield table, number
                continue
            if header := _TABLE.match(line):
                table = _resolved(_split(header.group(1)), counts, last=True)
                yield table, number
                continue
            if assignment := _ASSIGNMENT.match(line):
                yield (*table, *_split(assignment.group(1))), number
        for mark in ('"""', "'''"):
            if line.count(mark) % 2:
                quote = mark
        bare = _STRING.sub("", line).split("#", 1)[0]
        depth = max(0, depth + sum(bare.count(mark) for mark in "[{") - sum(bare.count(mark) for mark in "]}"))


def _resolved(names: Sequence[str], counts: dict[tuple[Key, ...], int], *, last: bool) -> tuple[Key, ...]:
    """Names of a header with the index of the latest entry of every array of tables on the way."""
    path: tuple[Key, ...] = ()
    for position, name in enumerate(names, 1):
        path = (*path, name)
        if path in counts and (last or position < len(names)):
            path = (*path, counts[path])
    return path


def _split(dotted: str) -> list[str]:
    return [name.strip("\"'") for name in re.findall(_NAME, dotted)]


def _dotted(keys: Sequence[Key]) -> str:
    return "".join(f"[{key + 1}]" if isinstance(key, int) else f".{key}" for key in keys).lstrip(".")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _short(message: str) -> str:
    """A bound such as 1e100 as one writes it, not as a row of a hundred zeros."""
    return re.sub(r"\d{20,}", lambda digits: f"{float(digits[0]):g}", message)
