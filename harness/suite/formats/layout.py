"""Which column of a table holds what of a case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.file.lines import Place, refuse, shown
from harness.file.toml import nearest
from harness.suite.definition import Column, Columns, Source
from harness.suite.formats.example import GOLD, INPUTS, CaseTask


@dataclass(frozen=True, slots=True)
class Layout:
    """Positions of columns, from 0: by field of a case, and by attribute. `choices` may stand in several."""

    fields: Mapping[str, int | tuple[int, ...]]
    attributes: Mapping[str, int]


def wanted_fields(task: CaseTask) -> set[str]:
    """What a case of a task may have."""
    return {"id", GOLD[task], *(name for each in INPUTS[task] for name in each)}


def named_columns(columns: Columns) -> dict[str, Column | list[Column]]:
    """The columns that suite.toml names, by field."""
    return columns.model_dump(exclude_none=True)


def layout(source: Source, task: CaseTask, names: Sequence[str] | None, width: int, where: Place) -> Layout:
    """Where the fields of a case stand in a table of `width` columns, called `names` where they have names.

    A field without a column of its own in `columns` is the column of its name. Every other column with a name is an
    attribute. Raises Misconfigured for a column that isn't there, a field that the task's cases don't have, and where
    the inputs aren't all there.
    """
    wanted = wanted_fields(task)
    named = named_columns(source.columns)
    strange = [field for field in named if field not in wanted]
    if strange:
        refuse(
            where, f"`columns` names `{strange[0]}`", f"what a case of {task} has: {', '.join(sorted(wanted))}",
            "Take it out, or mend `task` in suite.toml.",
        )  # fmt: skip
    fields: dict[str, int | tuple[int, ...]] = {}
    for field in sorted(wanted):
        column = named.get(field)
        if isinstance(column, list):
            fields[field] = tuple(_position(each, names, width, where) for each in column)
        elif column is not None:
            fields[field] = _position(column, names, width, where)
        elif field in (names or ()):
            fields[field] = _position(field, names, width, where)
    if not any(all(name in fields for name in each) for each in INPUTS[task]):
        sets = " or ".join(" and ".join(f"`{name}`" for name in each) for each in INPUTS[task])
        refuse(
            where, f"columns {', '.join(map(shown, names))}" if names is not None else f"{width} columns without names",
            f"{sets}, which a case of {task} has", "Say under `columns` of `source` which columns hold them.",
        )  # fmt: skip
    attributes = {name: _position(column, names, width, where) for name, column in source.attributes.items()}
    used = {at for each in fields.values() for at in (each if isinstance(each, tuple) else (each,))}
    for at, name in enumerate(names or ()):
        if at in used or at in attributes.values() or not name.strip():
            continue
        if name in attributes:
            refuse(
                where, f"an attribute {shown(name)} in `source` and a column of that name", "one of the two",
                "Call the attribute something else.",
            )  # fmt: skip
        attributes[name] = at
    return Layout(fields, attributes)


def mentioned(source: Source) -> list[Column]:
    """Every column that suite.toml names, of fields and attributes."""
    given = (*named_columns(source.columns).values(), *source.attributes.values())
    return [each for column in given for each in (column if isinstance(column, list) else [column])]


def _position(column: Column, names: Sequence[str] | None, width: int, where: Place) -> int:
    if isinstance(column, str):
        if names is not None and column in names:
            return names.index(column)
        meant = nearest(column, names or ())
        refuse(
            where, f"no column {shown(column)}",
            f"one of {', '.join(map(shown, names))}" if names is not None else "columns by number, where no line "
            "names them",
            f"Did you mean {shown(meant)}?" if meant else "Correct `columns` in `source`, or `separator` where other "
            "characters stand between the cells.",
        )  # fmt: skip
    if column == 0 or not -width <= column <= width:
        refuse(
            where, f"no column {column} among {width}", f"1 to {width}, or -1 to -{width} from the right",
            "Correct `columns` in `source`; they count from 1.",
        )  # fmt: skip
    return column - 1 if column > 0 else width + column
