"""Rows of Parquet and Arrow files, and of data sets as the `datasets` library saves them, read without it."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from harness.errors import Misconfigured, NotFound
from harness.file.lines import JsonObject, JsonValue, Place, listed, read_json, refuse

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".parquet", ".arrow", ".feather")
STATE = "state.json"
INFO = "dataset_info.json"
SPLITS = "dataset_dict.json"
MAGIC = b"ARROW1"
ROWS = 1024


@dataclass(frozen=True, slots=True)
class Stored:
    """A table with types. `classes`: what the numbers of a column mean, where the data say. Rows are lists of cells,
    in the order of `names`; columns of bytes (`left_out`) are in neither.
    """

    names: tuple[str, ...]
    left_out: tuple[str, ...]
    classes: Mapping[str, tuple[str, ...]]
    rows: Iterator[list[JsonValue]]


def saved_files(folder: Path) -> tuple[Path, ...]:
    """The files of a saved data set, or of the only split of several.

    Raises Misconfigured for a folder that isn't one, or has several splits.
    """
    if (folder / SPLITS).is_file():
        splits = _names(_object(folder / SPLITS).get("splits"))
        if len(splits) != 1:
            raise Misconfigured(
                str(folder), found=f"{len(splits)} splits: {listed(splits)}", expected="one that is named",
                mend='Name it in `path` of `source`, or several under [cases], as role = { "test" = "promotion" }.',
            )  # fmt: skip
        return saved_files(folder / splits[0])
    if not (folder / STATE).is_file():
        raise Misconfigured(
            str(folder), found=f"a folder without {STATE}", expected="a file, or a data set's folder as save_to_disk "
            "writes it",
            mend="Name the file in `path` of `source`, or several with a role each under [cases] role.",
        )  # fmt: skip
    state = _object(folder / STATE)
    if state.get("_indices_data_files"):
        refuse(
            folder / STATE, "rows that are chosen by a file of their numbers", "rows that are all there",
            "Save the data set again, with a `datasets` of version 2 or later.",
        )  # fmt: skip
    shards = state.get("_data_files")
    named = [each.get("filename") for each in shards if isinstance(each, dict)] if isinstance(shards, list) else []
    inside = [name for name in _names(named) if name == Path(name).name]
    if not inside or not isinstance(shards, list) or len(inside) != len(shards):
        refuse(folder / STATE, "no list of the data files", "`_data_files`, with names of files", "Save it again.")
    return (folder / STATE, folder / INFO, *(folder / name for name in inside))


def saved(files: Sequence[Path]) -> Stored:
    """A saved data set from its files, as `saved_files` gives them."""
    info, *shards = files[1:]
    features = _object(info).get("features")
    first = stored(shards[0])

    def rows() -> Iterator[list[JsonValue]]:
        yield from first.rows
        for shard in shards[1:]:
            other = stored(shard)
            if other.names != first.names:
                refuse(
                    shard, f"columns {listed(other.names)}", f"those of {shards[0].name}", "Save the data set again."
                )
            yield from other.rows

    return Stored(first.names, first.left_out, _classes(features) or first.classes, rows())


def stored(path: Path) -> Stored:
    """A Parquet or Arrow file; columns of bytes are left out. Raises NotFound without it, Misconfigured where it
    cannot be read.
    """
    if not path.is_file():
        raise NotFound(
            str(path), found="no such file", expected="a Parquet or Arrow file",
            mend="Correct the path, or put the file there.",
        )  # fmt: skip
    with _readable(path):
        schema, batches = _parquet(path) if path.suffix == ".parquet" else _ipc(path)
    names = [each.name for each in schema if not _holds_bytes(each.type)]
    left_out = tuple(each.name for each in schema if _holds_bytes(each.type))
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        refuse(path, f"two columns called {twice!r}", "names that are unique", "Rename one of them.")
    written = (schema.metadata or {}).get(b"huggingface")
    info = json.loads(written).get("info", {}) if written else {}
    return Stored(tuple(names), left_out, _classes(info.get("features")), _rows(path, names, batches))


def _parquet(path: Path) -> tuple["pa.Schema", Iterator["pa.RecordBatch"]]:
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    return file.schema_arrow, file.iter_batches(batch_size=ROWS)


def _ipc(path: Path) -> tuple["pa.Schema", Iterator["pa.RecordBatch"]]:
    """An IPC file or stream: both are called .arrow."""
    from pyarrow import ipc, memory_map

    source = memory_map(str(path))
    if path.stat().st_size >= len(MAGIC) and source.read(len(MAGIC)) == MAGIC:
        file = ipc.open_file(source)
        return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
    source.seek(0)
    stream = ipc.open_stream(source)
    return stream.schema, iter(stream)


def _rows(path: Path, names: Sequence[str], batches: Iterator["pa.RecordBatch"]) -> Iterator[list[JsonValue]]:
    number = 0
    with _readable(path):
        for batch in batches:
            for start in range(0, batch.num_rows, ROWS):
                part = batch.slice(start, ROWS)
                for cells in zip(*(_cells(part.column(name)) for name in names), strict=True):
                    number += 1
                    yield [plain(each, Place(path, number)) for each in cells]


def _cells(column: "pa.Array") -> list[object]:
    """Python's values. It has no time shorter than a microsecond, so what is finer is cut."""
    coarser = _in_microseconds(column.type)
    return list((column if coarser == column.type else column.cast(coarser, safe=False)).to_pylist())


def _in_microseconds(kind: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_timestamp(kind) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if pa.types.is_duration(kind) and kind.unit == "ns":
        return pa.duration("us")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_in_microseconds(each.type)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    return kind


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # a date that Python has not
        refuse(
            path, f"a file that cannot be read: {str(error).splitlines()[0]}", "a whole Parquet or Arrow file",
            "Write the file again; its suffix says what it is: .parquet, .arrow or .feather.",
        )  # fmt: skip


def _holds_bytes(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return True
    return any(_holds_bytes(kind.field(i).type) for i in range(kind.num_fields))


def plain(value: object, where: Place) -> JsonValue:
    """A cell as JSON would say it: dates as text, NaN as null, a decimal as the number that it is."""
    match value:
        case str():
            if "\0" in value:
                refuse(where, "a NUL character", "text without NUL", "Take it out.")
            return value
        case float():
            if math.isinf(value):
                refuse(where, f"the number {value}", "numbers that are finite", "Write null where nobody knows it.")
            return None if math.isnan(value) else value
        case None | bool() | int():
            return value
        case Decimal():
            return _decimal(value)
        case list() | tuple():
            return [plain(each, where) for each in value]
        case dict():
            return {str(name): plain(each, where) for name, each in value.items()}
    return str(value)


def _decimal(value: Decimal) -> JsonValue:
    """A whole number where it has no decimals, else the float of that value, or text where there is none."""
    if value.as_tuple().exponent == 0:
        return int(value)
    return float(value) if Decimal(repr(float(value))) == value else str(value)


def _classes(features: JsonValue) -> dict[str, tuple[str, ...]]:
    if not isinstance(features, dict):
        return {}
    named = {name: class_names(feature) for name, feature in features.items()}
    return {name: names for name, names in named.items() if names}


def class_names(feature: JsonValue) -> tuple[str, ...]:
    """The names of a ClassLabel, or of the members of a list of them."""
    if isinstance(feature, list) and len(feature) == 1:
        return class_names(feature[0])
    if not isinstance(feature, dict):
        return ()
    return _names(feature.get("names")) if feature.get("_type") == "ClassLabel" else class_names(feature.get("feature"))


def _names(value: JsonValue) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _object(path: Path) -> JsonObject:
    value = read_json(path)
    if not isinstance(value, dict):
        refuse(path, "no JSON object", "one, as save_to_disk writes it", "Save the data set again.")
    return value
