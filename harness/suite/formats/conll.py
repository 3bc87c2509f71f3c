"""Sentences in columns, as the CoNLL shared tasks have them: a token a line, a blank line after each sentence."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Misconfigured
from harness.file.lines import Line, Place, read_lines, refuse, shown, split_columns
from harness.suite.case import Gold
from harness.suite.definition import Source
from harness.suite.formats.example import CaseTask, ExampleFiles, ExampleRow, Examples, unique
from harness.suite.formats.example import locate as locate
from harness.suite.formats.layout import named_columns

DOCUMENT_BREAK = "-DOCSTART-"


@dataclass(frozen=True, slots=True)
class ColumnFile:
    """Which columns of a file are meant, from 1, or from the right by negative numbers; `tags` None for no tags.

    `tab` takes a column to end at each tab, else at any run of blanks and tabs. Lines that begin with `comments` are
    left out. `gaps`: a row may lack its tag, which then is empty: between tabs, or where there is but a token beside.
    """

    path: Path
    tokens: int
    tags: int | None
    tab: bool = False
    comments: str | None = None
    gaps: bool = False


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence, tags as they are written. `number` counts from 1 in its file, `document` is None before the first
    document break; `place` is the line of its first token.
    """

    number: int
    document: int | None
    tokens: tuple[str, ...]
    tags: tuple[str, ...] | None
    place: Place


def read(files: ExampleFiles, source: Source, task: CaseTask) -> Examples:
    """Every sentence of the files, called `FILE:SENTENCE`, the sentences counted from 1.

    Where the file has document breaks, the attribute `document` is `FILE:DOCUMENT`. Raises Misconfigured for columns
    that aren't named by number, and as `sentences`.
    """
    if task != "entity":
        raise Misconfigured(
            "source", found=f'format = "conll" for a suite of {task}', expected="a suite of entity",
            mend="Name another format, or mend `task`.",
        )  # fmt: skip
    opened = [column_file(path, source) for path in files.paths]
    return Examples(tuple(unique(_case(each, sentence) for each in opened for sentence in sentences(each))))


def column_file(path: Path, source: Source) -> ColumnFile:
    """The file as `source` of suite.toml tells its columns. Raises Misconfigured where it doesn't, or cannot."""
    named = named_columns(source.columns)
    numbers = {name: column for name, column in named.items() if isinstance(column, int) and column != 0}
    if not {"tokens"} <= numbers.keys() == named.keys() <= {"tokens", "tags"}:
        raise Misconfigured(
            str(path), found=f"`columns` = {named or 'nothing'}", expected="the columns of tokens and tags by number, "
            "from 1, or from the right by negative ones",
            mend='Write source = { format = "conll", columns = { tokens = 1, tags = -1 }, … } in suite.toml.',
        )  # fmt: skip
    if source.separator not in (None, "blank", "tab"):
        raise Misconfigured(
            str(path), found=f"separator = {source.separator!r}", expected='"tab" or "blank"',
            mend="Leave it out where blanks or tabs stand between the columns.",
        )  # fmt: skip
    return ColumnFile(path, numbers["tokens"], numbers.get("tags"), source.separator == "tab", source.comments)


def sentences(file: ColumnFile) -> Iterator[Sentence]:
    """The sentences of a file as they come.

    Raises Misconfigured, with the line, for a row of more or fewer columns than the first one, an empty token or tag,
    and a column that isn't there.
    """
    number, document, width = 0, 0, 0
    rows: list[tuple[str, str]] = []
    place = Place(file.path, 1)

    def sentence() -> Sentence:
        tokens, tags = zip(*rows, strict=True)
        return Sentence(number, document or None, tokens, tags if file.tags is not None else None, place)

    for line in read_lines(file.path, blank=True):
        if file.comments is not None and line.text.startswith(file.comments):
            continue
        columns = line.text.split("\t") if file.tab else split_columns(line)
        ends = not line.text.strip(" \t")
        breaks = DOCUMENT_BREAK in columns
        if (ends or breaks) and rows:
            yield sentence()
            rows = []
        document += breaks
        if ends or breaks:
            continue
        width = width or len(columns)
        if file.gaps and (len(columns), width) == (1, 2):
            columns = [*columns, ""] if file.tokens in (1, -2) else ["", *columns]
        if len(columns) != width:
            refuse(
                line.place, f"{len(columns)} columns", f"{width}, as in the first row",
                "Correct that line, or say with `separator` and `comments` in `source` what stands in the file.",
            )  # fmt: skip
        if not rows:
            number, place = number + 1, line.place
        rows.append(_row(file, columns, line))
    if rows:
        yield sentence()


def _row(file: ColumnFile, columns: Sequence[str], line: Line) -> tuple[str, str]:
    token = columns[_at(file.tokens, columns, line)]
    tag = token if file.tags is None else columns[_at(file.tags, columns, line)]
    if file.gaps and token.strip(" ") and not tag.strip(" "):
        return token, ""
    if not token.strip(" ") or not tag.strip(" "):
        refuse(
            line.place, f"an empty {'tag' if token.strip(' ') else 'token'}", "a token and a tag on every line",
            "Correct that line, or the numbers under `columns` of `source`.",
        )  # fmt: skip
    return token, tag


def _at(column: int, columns: Sequence[str], line: Line) -> int:
    if not -len(columns) <= column <= len(columns):
        refuse(
            line.place, f"{len(columns)} columns: {', '.join(map(shown, columns[:5]))}", f"a column {column}",
            "Correct that line, or the numbers under `columns` of `source`; they count from 1.",
        )  # fmt: skip
    return column - 1 if column > 0 else column


def _case(file: ColumnFile, sentence: Sentence) -> ExampleRow:
    name = file.path.name
    return ExampleRow(
        f"{name}:{sentence.number}",
        {"tokens": sentence.tokens},
        None if sentence.tags is None else Gold(tags=sentence.tags),
        {} if sentence.document is None else {"document": f"{name}:{sentence.document}"},
        sentence.place,
    )
