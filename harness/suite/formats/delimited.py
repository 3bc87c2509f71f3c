"""Cells of text tables: what stands between tabs, commas, semicolons or blanks, and within quotes."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from harness.file.lines import Line, Place, read_lines, refuse, shown

Separator: TypeAlias = Literal["tab", "comma", "semicolon", "blank"]

CHARACTERS: dict[Separator, str] = {"tab": "\t", "comma": ",", "semicolon": ";"}
QUOTE = '"'
_BLANKS = re.compile("[ \t]+")


@dataclass(frozen=True, slots=True)
class Record:
    """The cells of one row; `place` is where it begins."""

    cells: list[str]
    place: Place


def read_records(
    path: Path, separator: Separator, *, quotes: bool | None, comments: str | None, parts: int | None
) -> Iterator[Record]:
    """Rows of a text table. Empty lines and those that begin with `comments` are none.

    `quotes`: whether quotes may enclose a cell, which then may hold separators, line ends (as line feeds) and quotes,
    each written twice; False takes them as any other character; None refuses a tab-separated cell that begins with
    one, for both kinds of file are common, and takes them to enclose elsewhere. Between blanks quotes are characters,
    and the last of `parts` cells has the rest of the line.

    Raises Misconfigured for quotes that don't enclose a whole cell, and as `read_lines`.
    """
    enclose = separator in ("comma", "semicolon") if quotes is None else quotes
    lines = read_lines(path, blank=True)
    if separator == "blank":
        for line in _meant(lines, comments):
            text = line.text.strip(" \t")
            # With re, a maximum of 0 splits means any number of them.
            yield Record([text] if parts == 1 else _BLANKS.split(text, maxsplit=(parts or 1) - 1), line.place)
    elif enclose:
        yield from _enclosed(lines, CHARACTERS[separator], comments)
    else:
        for line in _meant(lines, comments):
            cells = line.text.split(CHARACTERS[separator])
            if quotes is None and QUOTE in line.text:
                _check_undeclared(cells, line.place)
            yield Record(cells, line.place)


def _meant(lines: Iterable[Line], comments: str | None) -> Iterator[Line]:
    return (line for line in lines if _is_row(line, comments))


def _is_row(line: Line, comments: str | None) -> bool:
    # Tabs alone are a row of empty cells.
    return bool(line.text.strip(" ")) and not (comments is not None and line.text.startswith(comments))


def _check_undeclared(cells: Iterable[str], where: Place) -> None:
    cell = next((each for each in cells if each.startswith(QUOTE)), None)
    if cell is not None:
        refuse(
            where, f"a cell that begins with a quote, {shown(cell)}", "to be told whether quotes enclose cells here",
            "Write quotes = false in `source` where they are part of the text, as in GLUE's files, quotes = true where "
            "they enclose it.",
        )  # fmt: skip


def _enclosed(lines: Iterable[Line], separator: str, comments: str | None) -> Iterator[Record]:
    cells: list[str] = []
    # What stands of a cell whose quote is still open.
    open_cell: list[str] | None = None
    begin: Place | None = None
    for line in lines:
        if begin is None:
            if not _is_row(line, comments):
                continue
            begin = line.place
        at, text = 0, line.text
        while True:
            if open_cell is None and text.startswith(QUOTE, at):
                open_cell, at = [], at + 1
            if open_cell is not None:
                end = _closing(text, at)
                if end is None:
                    open_cell += text[at:], "\n"
                    break
                open_cell.append(text[at:end])
                cells.append("".join(open_cell).replace(QUOTE * 2, QUOTE))
                open_cell, at = None, end + 1
                if at < len(text) and not text.startswith(separator, at):
                    _refuse_quote(text[end : end + 20], line.place)
            else:
                end = text.find(separator, at)
                cell = text[at:] if end < 0 else text[at:end]
                if QUOTE in cell:
                    _refuse_quote(cell, line.place)
                cells.append(cell)
                at += len(cell)
            if at == len(text):
                yield Record(cells, begin)
                cells, begin = [], None
                break
            at += 1
    if begin is not None:
        refuse(
            begin, "a quote that is never closed", "quotes that enclose a whole cell",
            "Close it, or write quotes = false in `source` where quotes are part of the text.",
        )  # fmt: skip


def _closing(text: str, at: int) -> int | None:
    """Where the quote stands that ends a cell; two of them are one that is part of it."""
    end = text.find(QUOTE, at)
    while end >= 0 and text.startswith(QUOTE, end + 1):
        end = text.find(QUOTE, end + 2)
    return None if end < 0 else end


def _refuse_quote(cell: str, where: Place) -> None:
    refuse(
        where, f"a quote within a cell, {shown(cell)}", "quotes that enclose a whole cell, and within it two for one",
        "Enclose the cell and double its quotes, or write quotes = false in `source` where they are part of the text.",
    )  # fmt: skip
