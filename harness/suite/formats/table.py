"""Cases as rows of a table: text between tabs, commas, semicolons or blanks, Parquet, Arrow, a saved data set."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import Misconfigured
from harness.file.lines import Entry, JsonObject, JsonValue, Place, refuse, shown
from harness.suite.definition import Source
from harness.suite.formats import arrow
from harness.suite.formats.cell import choice, given_choices, typed_value, written_value
from harness.suite.formats.delimited import Record, Separator, read_records
from harness.suite.formats.example import CaseTask, ExampleFiles, ExampleRow, Examples, unique
from harness.suite.formats.jsonl import case_of
from harness.suite.formats.layout import Layout, layout, mentioned, wanted_fields

BY_SUFFIX: Mapping[str, Separator] = {".tsv": "tab", ".csv": "comma"}


def locate(base: Path, source: Source, mapped: Sequence[str]) -> ExampleFiles:
    """The file or saved data set `base`, or those below it that `[cases] role` names; a saved data set's own files.

    Raises Misconfigured for a folder that is none, or has several splits.
    """
    paths = [base / name for name in mapped] or [base]
    return ExampleFiles(
        tuple(file for path in paths for file in (arrow.saved_files(path) if path.is_dir() else (path,)))
    )


def read(files: ExampleFiles, source: Source, task: CaseTask) -> Examples:
    """Every case of the files. `labels` are the classes of the label's column, where the data name them.

    A case without an ID is called `FILE:ROW`, the data's rows counted from 1; of a saved data set, by its folder's
    name. A row's line in errors is that number where the file has no lines. Raises Misconfigured for a row of more or
    fewer cells than the others, a column that isn't there, and whatever isn't as its field says.
    """
    tables = [_table(each, source, task) for each in _units(files.paths)]
    labels = {table.labels for table in tables}
    if len(labels) > 1:
        raise Misconfigured(
            " and ".join(str(each.path) for each in tables), found="different classes of labels",
            expected="one list of classes", mend="Save the files with the same classes.",
        )  # fmt: skip
    return Examples(tuple(unique(row for table in tables for row in table.cases)), labels.pop())


@dataclass(frozen=True, slots=True)
class _Table:
    path: Path
    labels: tuple[str, ...] | None
    cases: Iterator[ExampleRow]


def _units(paths: Sequence[Path]) -> list[tuple[Path, ...]]:
    """Files, each by itself or with the others of its saved data set."""
    units: dict[Path, tuple[Path, ...]] = {}
    folders = {path.parent for path in paths if path.name == arrow.STATE}
    for path in paths:
        unit = path.parent if path.parent in folders else path
        units[unit] = (*units.get(unit, ()), path)
    return list(units.values())


def _table(files: tuple[Path, ...], source: Source, task: CaseTask) -> _Table:
    if files[0].name == arrow.STATE:
        return _typed(files[0].parent, arrow.saved(files), source, task)
    (path,) = files
    if path.suffix in arrow.SUFFIXES:
        return _typed(path, arrow.stored(path), source, task)
    return _Table(path, None, _written(path, source, task))


def _typed(path: Path, table: arrow.Stored, source: Source, task: CaseTask) -> _Table:
    for key in ("separator", "quotes", "header", "comments", "between"):
        if getattr(source, key) is not None:
            refuse(
                path, f"`{key}` in `source`", "no such key beside a file whose columns have names and types",
                f"Take `{key}` out of `source`.",
            )  # fmt: skip
    bytes_of = [name for name in table.left_out if name in {*mentioned(source), *wanted_fields(task)}]
    if bytes_of:
        refuse(
            path, f"bytes in the column {shown(bytes_of[0])}", "text, numbers or lists of them",
            "Write the column as text, which Parquet tells from bytes.",
        )  # fmt: skip
    where = layout(source, task, table.names, len(table.names), Place(path, 1))
    classes = {name: table.classes.get(table.names[at], ()) for name, at in where.fields.items() if isinstance(at, int)}

    def cases() -> Iterator[ExampleRow]:
        for number, cells in enumerate(table.rows, 1):
            place = Place(path, number)
            keys = {
                field: typed_value(field, task, value, classes.get(field, ()), place)
                for field, value in _fields(where, cells, place).items()
            }
            further = {name: cells[at] for name, at in where.attributes.items()}
            # A folder may be called by `.`, which is no name.
            yield _case(keys, further, task, f"{path.absolute().name}:{number}", place)

    named = classes.get("label" if task == "classification" else "labels", ())
    return _Table(path, named or None, cases())


def _written(path: Path, source: Source, task: CaseTask) -> Iterator[ExampleRow]:
    header, records = _records(path, source)
    where, width = None, 0
    if header is not None:
        width = len(header.cells)
        where = layout(source, task, _names(header), width, header.place)
    for number, record in enumerate(records, 1):
        if where is None:
            width = max(_numbers(source)) if source.surplus == "drop" else len(record.cells)
            where = layout(source, task, None, width, record.place)
        place = record.place
        cells = _fitting(record, width, source)
        keys = {
            field: written_value(field, value, source.between, place) if isinstance(value, str) else value
            for field, value in _fields(where, cells, place).items()
        }
        further: JsonObject = {name: cells[at] or None for name, at in where.attributes.items()}
        yield _case(keys, further, task, f"{path.name}:{number}", place)


def _records(path: Path, source: Source) -> tuple[Record | None, Iterator[Record]]:
    """The row of names, where there is one, and the others."""
    separator, header = _separator(path, source), _has_header(path, source)
    parts = None

    def records() -> Iterator[Record]:
        return read_records(path, separator, quotes=source.quotes, comments=source.comments, parts=parts)

    if separator == "blank":
        if source.quotes:
            raise _unreadable(path, "quotes between blanks", "quotes with tab, comma or semicolon")
        # The last column that is meant has the rest of the line: a text has blanks.
        parts = next((len(record.cells) for record in records()), 1) if header else max(_numbers(source))
    read = records()
    return (next(read, None) if header else None), read


def _separator(path: Path, source: Source) -> Separator:
    separator = source.separator or BY_SUFFIX.get(path.suffix)
    if separator is None:
        raise _unreadable(path, "no `separator` in `source`", "what stands between the columns: a suffix .tsv or .csv")
    return separator


def _has_header(path: Path, source: Source) -> bool:
    columns = mentioned(source)
    if source.header is None and columns and all(isinstance(each, int) for each in columns):
        raise _unreadable(path, "columns by number, and no `header` in `source`", "whether the first line names them")
    return source.header is not False


def _numbers(source: Source) -> list[int]:
    """The columns that suite.toml names, where each must be counted from the left."""
    columns = [each for each in mentioned(source) if isinstance(each, int) and each > 0]
    if not columns or len(columns) < len(mentioned(source)):
        raise Misconfigured(
            "columns", found="columns by name, or counted from the right", expected="columns by number from 1, where "
            "rows may have more cells than are meant",
            mend="Write each column of `columns` and `attributes` as its number from the left.",
        )  # fmt: skip
    return columns


def _names(header: Record) -> list[str]:
    if any("\r" in name for name in header.cells):
        refuse(
            header.place, "a carriage return within the names of the columns", "lines that end with a line feed",
            "Convert the line ends: tr '\\r' '\\n' < FILE.",
        )  # fmt: skip
    twice = next((name for name in header.cells if name.strip() and header.cells.count(name) > 1), None)
    if twice is not None:
        refuse(header.place, f"two columns called {shown(twice)}", "names that are unique", "Rename one of them.")
    return header.cells


def _fitting(record: Record, width: int, source: Source) -> list[str]:
    if len(record.cells) > width and source.surplus == "drop":
        return record.cells[:width]
    if len(record.cells) != width:
        refuse(
            record.place, f"{len(record.cells)} cells", f"{width}, as in the first row",
            "Correct that row, or say with `separator` and `quotes` in `source` what stands between its cells"
            + ('; surplus = "drop" leaves out what is beyond the columns.' if len(record.cells) > width else "."),
        )  # fmt: skip
    return record.cells


def _fields(where: Layout, cells: Sequence[JsonValue], place: Place) -> JsonObject:
    return {
        field: cells[at] if isinstance(at, int) else given_choices([cells[each] for each in at], place)
        for field, at in where.fields.items()
    }


def _case(keys: JsonObject, further: JsonObject, task: CaseTask, name: str, place: Place) -> ExampleRow:
    if task == "multiple-choice" and "label" in keys:
        keys["label"] = choice(keys["label"], keys["choices"], place)
    return replace(case_of(Entry(place, {"id": name, **keys}), task), further=further)


def _unreadable(path: Path, found: str, expected: str) -> Misconfigured:
    return Misconfigured(
        str(path), found=found, expected=expected,
        mend='Write source = { format = "table", separator = "tab", header = true, … } in suite.toml.',
    )  # fmt: skip
