"""A suite of cases without a corpus, from what its files say."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from harness.errors import Misconfigured
from harness.file.lines import listed, refuse, shown
from harness.metric.tagging import read_tags, require_legal
from harness.suite.attribute import ANSWERABLE, read_attributes
from harness.suite.case import Case, Counts, Suite
from harness.suite.definition import SuiteDefinition
from harness.suite.formats.example import GOLD, CaseTask, ExampleRow, Examples
from harness.suite.identifier import near_equal, near_equal_warnings
from harness.suite.policy import check_labels
from harness.suite.role import assign_groups, assign_roles, check_groups, check_windows, group_warnings, places

LABELLED = ("classification", "multilabel", "entity")


def assembled(
    folder: Path, definition: SuiteDefinition, task: CaseTask, read: Examples, digests: Mapping[str, str]
) -> Suite:
    """The suite. Raises Misconfigured for a case without gold, a label that isn't declared, tags that break their
    scheme, and no case at all, Leaked as `load`.
    """
    rows, dropped = _without_ungiven(definition, task, read.rows)
    if not rows:
        raise Misconfigured(str(folder), found="no case", expected="at least one case", mend="Add cases.")
    attributes = read_attributes(rows)
    kept = [{name: value for name, value in row.items() if name != ANSWERABLE} for row in attributes.by_query]
    roles = assign_roles(rows, kept, rows, definition.cases, folder / definition.source.path)
    groups = assign_groups(rows, kept, definition.cases)
    check_groups(rows, roles, groups)
    check_windows(rows, kept, definition.cases)
    _check_tags(definition, rows)
    labels = _labels(folder, definition, task, rows, read.labels)
    if labels is not None:
        check_labels(definition, labels, folder / "suite.toml")
    alike = near_equal(row.id for row in rows)
    blank = [row.id for row in rows if not row.text.strip()]
    unknown = [row.id for row in rows if row.gold is not None and not _known(row)]
    return Suite(
        definition=definition,
        folder=folder,
        cases=tuple(
            Case(row.id, row.text, role, group, _answerable(row), own, row.inputs, row.gold)
            for row, role, group, own in zip(rows, roles, groups, kept, strict=True)
        ),
        documents=(),
        judgements=(),
        files=digests,
        counts=Counts(0, len(dropped), 0, 0, alike.count, 0),
        warnings=(
            *([f"{len(dropped)} cases without `{GOLD[task]}` dropped: {listed(dropped)}"] if dropped else []),
            *([f"{len(unknown)} cases of which nobody knows what holds are judged by nothing: {listed(unknown)}"]
              if unknown else []),
            *([f"{len(blank)} cases have a blank text: {listed(blank)}"] if blank else []),
            *attributes.left_out,
            *near_equal_warnings(alike, "case IDs"),
            *near_equal_warnings(near_equal(labels or ()), "labels"),
            *group_warnings(rows, kept, definition.cases.group),
        ),
        labels=labels,
        revision=read.revision,
        places=places(folder, rows),
    )  # fmt: skip


def _without_ungiven(
    definition: SuiteDefinition, task: CaseTask, rows: Sequence[ExampleRow]
) -> tuple[list[ExampleRow], list[str]]:
    """Rows whose gold the data speak of, and the IDs of the others."""
    lacking = [row for row in rows if row.gold is None]
    if lacking and definition.cases.unjudged == "refuse":
        refuse(
            lacking[0].place, f"{len(lacking)} cases without `{GOLD[task]}`: {listed(row.id for row in lacking)}",
            f"`{GOLD[task]}` on every case, null where nobody knows what holds",
            f"Say under `columns` of `source` which key holds `{GOLD[task]}`, or write "
            'unjudged = "drop" under [cases].',
        )  # fmt: skip
    return [row for row in rows if row.gold is not None], [row.id for row in lacking]


def _labels(
    folder: Path, definition: SuiteDefinition, task: CaseTask, rows: Sequence[ExampleRow], read: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    """The labels (of tags, the types) as suite.toml declares them, as the format does, or those given, by name."""
    if task not in LABELLED:
        return None
    given: dict[str, ExampleRow] = {}
    for row in rows:
        for label in _given(row):
            given.setdefault(label, row)
    declared = read if definition.labels is None else tuple(definition.labels)
    if declared is None:
        return tuple(sorted(given))
    strange = [label for label in given if label not in declared]
    if strange:
        refuse(
            given[strange[0]].place, f"the label {shown(strange[0])}", f"one of {', '.join(map(shown, declared))}",
            "Correct it, or add it to `labels` in suite.toml.",
        )  # fmt: skip
    return declared


def _check_tags(definition: SuiteDefinition, rows: Sequence[ExampleRow]) -> None:
    policy = definition.metrics.policy
    for row in rows:
        if row.gold is not None and row.gold.tags is not None:
            found = read_tags(row.gold.tags, policy.scheme, policy.reading)
            require_legal(f"{row.place}, tags of case {shown(row.id)}", found, policy.scheme, policy.reading)


def _given(row: ExampleRow) -> Iterator[str]:
    if row.gold is None:
        return
    if row.gold.tags is not None:
        yield from (tag.partition("-")[2] for tag in row.gold.tags if "-" in tag)
    else:
        yield from (row.gold.label,) if row.gold.label is not None else row.gold.labels or ()


def _known(row: ExampleRow) -> bool:
    gold = row.gold
    return gold is not None and any(
        each is not None for each in (gold.label, gold.labels, gold.value, gold.tags, gold.answers, gold.choice)
    )


def _answerable(row: ExampleRow) -> bool:
    return not (row.gold is not None and row.gold.answers == ())
