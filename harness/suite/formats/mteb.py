"""Cases of MTEB's tasks without a corpus: classes, sets of labels, numbers, pairs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from harness.errors import Misconfigured
from harness.file.lines import Entry, JsonObject, Place, listed, shown
from harness.suite.definition import Source
from harness.suite.formats.arrow import plain
from harness.suite.formats.cell import typed_value
from harness.suite.formats.example import GOLD, CaseTask, ExampleFiles, ExampleRow, Examples, unique
from harness.suite.formats.jsonl import case_of
from harness.suite.formats.mteb_task import LoadedTask, chosen_splits, data_files, loaded_task

KINDS: Mapping[str, tuple[CaseTask, ...]] = {
    "STS": ("similarity",),
    "Classification": ("classification",),
    "MultilabelClassification": ("multilabel",),
    "PairClassification": ("classification", "similarity"),
    "Regression": ("regression",),
}
"""What cases of MTEB's kinds of task may be here; a pair's class, 0 or 1, is a number too."""


def locate(base: Path, source: Source, mapped: Sequence[str]) -> ExampleFiles:
    """The folder `base` of a task's data, and the splits that `[cases] role` names. Raises as `data_files`."""
    return ExampleFiles(data_files(base, source), base, tuple(mapped))


def read(files: ExampleFiles, source: Source, task: CaseTask) -> Examples:
    """Every case of the splits, called `SPLIT:ROW`, a split's rows counted from 1.

    Columns are those that MTEB's task names, after what the task itself makes of the data; the others are attributes.
    Classes, -1 and whole numbers as of tables with types. A case stands at the split's row of the folder. Raises
    Misconfigured for a task of another kind than the suite's, and as `loaded_task`.
    """
    if files.folder is None:
        raise TypeError("files of MTEB's tasks are a folder's")
    with loaded_task(files.folder, source) as loaded:
        columns = _columns(files.folder, loaded, task)
        splits = chosen_splits(files.folder, loaded, files.splits)
        rows = tuple(
            unique(
                row
                for split in splits
                for row in _cases(loaded.data[split], columns, task, split, files.folder / split)
            )
        )
        labels = {_classes(loaded.data[split], columns[GOLD[task]]) for split in splits}
    if len(labels) > 1:
        raise Misconfigured(
            str(files.folder), found="splits with different classes of labels", expected="one list of classes",
            mend="Name splits that share them.",
        )  # fmt: skip
    return Examples(rows, (labels.pop() or None) if task in ("classification", "multilabel") else None, loaded.revision)


def _columns(folder: Path, task: LoadedTask, wanted: CaseTask) -> dict[str, str]:
    """The columns of MTEB's task by field of a case."""
    kinds = KINDS.get(task.kind, ())
    if wanted not in kinds:
        raise Misconfigured(
            str(folder), found=f"{task.name}, a task of MTEB's kind {task.kind}, for a suite of {wanted}",
            expected=f"a suite of {' or '.join(kinds)}" if kinds else f"a task of kind {', '.join(KINDS)}",
            mend="Mend `task` in suite.toml, or name another of MTEB's tasks.",
        )  # fmt: skip
    own = task.definition
    if task.kind == "STS":
        columns = {"text_a": own.column_names[0], "text_b": own.column_names[1], "value": "score"}
    elif task.kind == "PairClassification":
        columns = {"text_a": own.input1_column_name, "text_b": own.input2_column_name}
        columns[GOLD[wanted]] = own.label_column_name
    else:
        columns = {"text": own.input_column_name, GOLD[wanted]: own.label_column_name}
    if not all(isinstance(column, str) for column in columns.values()):
        raise Misconfigured(
            str(folder), found=f"inputs of {task.name} that stand in several columns", expected="one for each text",
            mend="Name another task.",
        )  # fmt: skip
    return columns


def _cases(data: Any, columns: Mapping[str, str], task: CaseTask, split: str, at: Path) -> Iterator[ExampleRow]:
    lacking = [name for name in columns.values() if name not in data.features]
    if lacking:
        raise Misconfigured(
            str(at), found=f"columns {', '.join(map(shown, data.features))}", expected=listed(columns.values()),
            mend="Download the data set's files as the hub has them.",
        )  # fmt: skip
    classes = {field: _classes(data, name) for field, name in columns.items()}
    for number, row in enumerate(_rows(data, columns), 1):
        place = Place(at, number)
        cells = {name: plain(value, place) for name, value in row.items() if not isinstance(value, bytes)}
        keys: JsonObject = {"id": f"{split}:{number}"}
        for field, name in columns.items():
            keys[field] = typed_value(field, task, cells[name], classes[field], place)
        further = {name: value for name, value in cells.items() if name not in columns.values()}
        yield replace(case_of(Entry(place, keys), task), further=further)


def _rows(data: Any, columns: Mapping[str, str]) -> Iterator[Mapping[str, object]]:
    """The rows, also where an older data set of pairs has them all in one, as lists."""
    rows = iter(data)
    if len(data) == 1 and {"text_a", "text_b"} <= columns.keys():
        row = next(rows)
        lists = {name: row[name] for name in columns.values()}
        if all(isinstance(each, list) for each in lists.values()):
            yield from (dict(zip(lists, cells, strict=True)) for cells in zip(*lists.values(), strict=True))
            return
        yield row
    yield from rows


def _classes(data: Any, column: str) -> tuple[str, ...]:
    feature = data.features.get(column)
    feature = getattr(feature, "feature", feature)
    return tuple(getattr(feature, "names", None) or ())
