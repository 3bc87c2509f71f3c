"""A fitted calibrator or threshold in a few lines; the file that is saved has every number."""

from collections.abc import Iterator, Mapping, Sequence

from harness.identity import Json
from harness.report import number, text

MANY = 12
"""How many labels are written out before the others are counted."""


def fitted_lines(record: Mapping[str, Json]) -> Iterator[str]:
    """Of `calibrate --json`'s object: what was fitted, on which cases, what it comes to, what to do with the file."""
    path = None if record["path"] is None else str(record["path"])
    for table, key, lines in (("calibrator", "calibrator", _calibrator), ("decision", "threshold", _threshold)):
        said = record.get(key)
        if isinstance(said, Mapping):
            yield from lines(said)
            yield from _ending(table, path)


def _calibrator(record: Mapping[str, Json]) -> Iterator[str]:
    yield from _heading(f"{record['family']}, a calibrator of {record['of']}", record)
    maps = [_map(each) for each in _rows(record["maps"])]
    labels = _names(record["labels"]) if len(maps) > 1 else ["map"]
    yield from _by_label(list(zip(labels, maps, strict=True)))
    if curve := _rows(record.get("curve")):
        yield f"  what a {record['score_type']} comes to:"
        for point in curve:
            ends = f"[{_short(point['low'])}, {_short(point['high'])}]"
            yield f"    {_short(point['score'])}: {_short(point['probability'])} {ends}"
    if record.get("valid_for"):
        yield f"  valid for {text.clean(str(record['valid_for']))}"
    for remark in _names(record.get("reported")):
        yield f"Remark: {remark}"


def _threshold(record: Mapping[str, Json]) -> Iterator[str]:
    by = record["by"] if isinstance(record["by"], Mapping) else {}
    told = ", ".join(f"{name} {_short(each)}" for name, each in by.items() if isinstance(each, int | float))
    given = f" ({told})" if told else ""
    yield from _heading(f"a threshold by {record['rule']}{given}", record)
    reached = record["reached"] if isinstance(record["reached"], Mapping) else {}
    if record.get("ground"):
        yield f"  nothing is said where {record['ground']} is below {_short(record['below'])}"
    threshold, labels = record.get("threshold"), _names(record["labels"])
    if labels and threshold is not None:
        each = threshold if isinstance(threshold, Sequence) else [threshold] * len(labels)
        rows = []
        for label, value in zip(labels, each, strict=True):
            suffix = f"[{label}]"
            own = {name.removesuffix(suffix): share for name, share in reached.items() if name.endswith(suffix)}
            rows.append((label, f"from {record['type']} {_short(value)} on" + _reached(own)))
        yield from _by_label(rows)
    else:
        if threshold is not None:
            yield f"  from {record['type']} {_short(threshold)} on"
        yield f"  on these cases{_reached(reached)}"


def _heading(what: str, record: Mapping[str, Json]) -> Iterator[str]:
    on = record["fitted_on"] if isinstance(record["fitted_on"], Mapping) else {}
    yield f"{what}, for {text.clean(str(record['release']))}"
    rows, cases, groups = (_count(on.get(key)) or _count(on["n"]) for key in ("n", "n_cases", "n_groups"))
    held = f"{number.plural(cases, 'calibration case')} in {number.plural(groups, 'group')}"
    counted = f", {number.plural(rows, 'row')}" if rows != cases else ""
    yield f"  fitted on {held}{counted}, of {text.clean(str(on['suite']))}: {on['included']}"
    if left_out := _count(on.get("left_out")):
        yield f"  {number.plural(left_out, 'calibration case')} left out: a promotion case has the same inputs"


def _by_label(rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    for label, said in rows[:MANY]:
        yield f"  {label}: {said}"
    if len(rows) > MANY:
        yield f"  and {len(rows) - MANY} more"


def _map(numbers: Mapping[str, Json]) -> str:
    """Its few numbers; of many, how many there are."""
    values = numbers.get("values")
    if isinstance(values, list):
        return f"{number.plural(len(values), 'step')}, from {_short(values[0])} to {_short(values[-1])}"
    few = ", ".join(f"{name} {_short(each)}" for name, each in numbers.items() if isinstance(each, int | float))
    return few or f"a matrix and a bias of {number.plural(len(_rows_of(numbers.get('weights'))), 'label')}"


def _reached(reached: Mapping[str, Json]) -> str:
    said = ", ".join(f"{name} {_short(each)}" for name, each in reached.items())
    return f": {said}" if said else ""


def _ending(table: str, path: str | None) -> Iterator[str]:
    if path is None:
        yield "Nothing was written: --save FILE keeps it, --json prints all of it."
        return
    name = text.clean(path.replace("\\", "/").rpartition("/")[2])
    yield f"wrote {text.clean(path)}"
    yield ""
    yield f'Beside release.toml it takes effect by [{table}] path = "{name}" there, from the next `harness run` on.'


def _rows(value: Json) -> list[Mapping[str, Json]]:
    return [each for each in _rows_of(value) if isinstance(each, Mapping)]


def _rows_of(value: Json) -> Sequence[Json]:
    return value if isinstance(value, Sequence) and not isinstance(value, str) else ()


def _names(value: Json) -> list[str]:
    return [text.clean(str(each)) for each in _rows_of(value)]


def _count(value: Json) -> int:
    return value if isinstance(value, int) else 0


def _short(amount: Json) -> str:
    """Six significant digits: what is read; the file has them all."""
    return f"{amount:.6g}" if isinstance(amount, int | float) else str(amount)
