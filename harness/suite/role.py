"""Which role every case has, and that no group stands in two."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, get_args

from harness.errors import Leaked, Misconfigured
from harness.file.lines import Place, listed, refuse, shown
from harness.file.toml import nearest
from harness.suite.case import Attribute, as_text
from harness.suite.definition import CasePolicy, Role


class Row(Protocol):
    """A case as it was read."""

    @property
    def id(self) -> str: ...
    @property
    def place(self) -> Place: ...


class Judged(Protocol):
    """What is said of a case, and where."""

    @property
    def case_id(self) -> str: ...
    @property
    def place(self) -> Place: ...


ROLES: tuple[Role, ...] = get_args(Role)

TUNES: Mapping[Role, tuple[str, ...]] = {
    "train": ("model",),
    "development": ("choice",),
    "calibration": ("temperature", "threshold", "null", "abstention"),
    "promotion": (),
}
"""What each role may be used to fit; promotion is read once and fits nothing."""


def assign_roles(
    queries: Sequence[Row],
    attributes: Sequence[Mapping[str, Attribute]],
    judgements: Sequence[Judged],
    policy: CasePolicy,
    base: Path,
) -> list[Role]:
    """One role a query, in order.

    Raises Misconfigured for a case without a role or with an unknown one, Leaked for a case that is judged in
    files of two roles.
    """
    match policy.role:
        case None:
            return ["promotion"] * len(queries)
        case str(name):
            return _from_attribute(queries, attributes, name)
        case by_file:
            return _from_files(queries, judgements, {base / path: role for path, role in by_file.items()})


def assign_groups(
    queries: Sequence[Row], attributes: Sequence[Mapping[str, Attribute]], policy: CasePolicy
) -> list[str]:
    """One group a query, in order: the attribute's value as text, its own ID where it has none.

    Raises Misconfigured where no query at all has the attribute: a misspelt name would make every case its own
    group, and every interval too narrow.
    """
    if policy.group is None:
        return [query.id for query in queries]
    _known(queries, attributes, "group", policy.group)
    return [
        query.id if ungrouped(row, policy.group) else as_text(row[policy.group])
        for query, row in zip(queries, attributes, strict=True)
    ]


def check_windows(queries: Sequence[Row], attributes: Sequence[Mapping[str, Attribute]], policy: CasePolicy) -> None:
    """Raises Misconfigured where no query has the attribute that names the text of which a case is a window."""
    if policy.window_parent is not None:
        _known(queries, attributes, "window_parent", policy.window_parent)


def places(folder: Path, queries: Sequence[Row]) -> dict[str, str]:
    """File, from the suite's folder, and line of every case."""
    names = {
        path: Path(os.path.relpath(path, folder)).as_posix() for path in dict.fromkeys(q.place.path for q in queries)
    }
    return {query.id: f"{names[query.place.path]} line {query.place.line}" for query in queries}


def ungrouped(attributes: Mapping[str, Attribute], name: str) -> bool:
    """True where a case lacks the attribute that names its group, or it is blank."""
    return not as_text(attributes.get(name, "")).strip()


def check_groups(queries: Sequence[Row], roles: Sequence[Role], groups: Sequence[str]) -> None:
    """Raises Leaked for a group whose cases have two roles."""
    first: dict[str, int] = {}
    for position, group in enumerate(groups):
        other = first.setdefault(group, position)
        if roles[other] != roles[position]:
            raise Leaked(
                str(queries[position].place),
                found=f"group {shown(group)} stands in two roles: case {shown(queries[other].id)} "
                f"(line {queries[other].place.line}) is {roles[other]}, case {shown(queries[position].id)} is "
                f"{roles[position]}",
                expected="every group within one role, for its cases depend on one another",
                mend=f"Give all cases of group {shown(group)} the same role.",
            )


def group_warnings(
    queries: Sequence[Row], attributes: Sequence[Mapping[str, Attribute]], name: str | None
) -> list[str]:
    """Cases that lack what names their group."""
    if name is None:
        return []
    alone = [query for query, row in zip(queries, attributes, strict=True) if ungrouped(row, name)]
    return (
        [f"{len(alone)} cases have no {name} and are each their own group (first: {alone[0].place})"] if alone else []
    )


def _from_attribute(queries: Sequence[Row], attributes: Sequence[Mapping[str, Attribute]], name: str) -> list[Role]:
    _known(queries, attributes, "role", name)
    without = [query for query, row in zip(queries, attributes, strict=True) if name not in row]
    if without:
        refuse(
            without[0].place, f"{len(without)} cases without a role: {listed(query.id for query in without)}",
            f"`{name}` on every query, one of {', '.join(ROLES)}", f'Add "{name}": "promotion" to that line.',
        )  # fmt: skip
    roles: list[Role] = []
    for query, row in zip(queries, attributes, strict=True):
        role = next((known for known in ROLES if known == row[name]), None)
        if role is None:
            meant = nearest(str(row[name]), ROLES)
            refuse(
                query.place, f"role {shown(str(row[name]))}", f"one of {', '.join(ROLES)}",
                f"Did you mean {meant!r}?" if meant else f'Write "{name}": "promotion", or another role.',
            )  # fmt: skip
        roles.append(role)
    return roles


def _from_files(queries: Sequence[Row], judgements: Sequence[Judged], by_path: Mapping[Path, Role]) -> list[Role]:
    first: dict[str, Place] = {}
    for row in judgements:
        other = first.setdefault(row.case_id, row.place)
        if by_path[other.path] != by_path[row.place.path]:
            raise Leaked(
                str(row.place), found=f"case {shown(row.case_id)} is judged as {by_path[row.place.path]} here and as "
                f"{by_path[other.path]} at {other}",
                expected="every case in one role", mend="Take its judgements out of one of the two files.",
            )  # fmt: skip
    without = [query for query in queries if query.id not in first]
    if without:
        refuse(
            without[0].place, f"{len(without)} cases that no file of judgements gives a role: "
            f"{listed(query.id for query in without)}",
            "a judgement, of grade 0 if need be, in a file that [cases] role names",
            'Name the role by an attribute instead: role = "split" under [cases], and "split" on every query.',
        )  # fmt: skip
    return [by_path[first[query.id].path] for query in queries]


def _known(queries: Sequence[Row], attributes: Sequence[Mapping[str, Attribute]], what: str, name: str) -> None:
    if not queries or any(name in row for row in attributes):
        return
    names = sorted({key for row in attributes for key in row})
    meant = nearest(name, names)
    raise Misconfigured(
        str(queries[0].place), found=f"no query has the attribute {shown(name)} that [cases] {what} names",
        expected=f"it on every query; there are: {listed(names) or 'none'}",
        mend=f'Did you mean {what} = "{meant}"?' if meant else f'Add "{name}" to every query, or take `{what}` out of '
        "[cases].",
    )  # fmt: skip
