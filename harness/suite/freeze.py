"""Fixing a suite, and holding a folder against what was fixed."""

from dataclasses import asdict, dataclass
from pathlib import Path

from harness.errors import HarnessError, Misconfigured, Tampered
from harness.file.lines import listed
from harness.identity import digest, file_digest, text_digest
from harness.metric.name import parse
from harness.suite.case import Suite
from harness.suite.definition import ALL, RANKED, Role
from harness.suite.demand import check_counts, check_demands, idle
from harness.suite.formats.example import GOLD
from harness.suite.leak import leak_warnings, leaks, refuse_leaks, window_parents
from harness.suite.load import DEFINITION, load, read_definition
from harness.suite.lock import Dropped, Identifiers, Lock, read_lock
from harness.suite.policy import check_slices
from harness.suite.role import ROLES, TUNES
from harness.suite.slices import Members, Resolved, resolve, slice_warnings

VERSIONS = {"ranking": "1", **dict.fromkeys(GOLD, "1"), "entity": "2"}
"""Of the metrics' definitions: raised when a metric's value for the same outputs changes."""


@dataclass(frozen=True, slots=True)
class FrozenSuite:
    """A suite and the lock that it was found to match."""

    suite: Suite
    lock: Lock


@dataclass(frozen=True, slots=True)
class Support:
    """How much of the promotion role a slice holds."""

    cases: int
    groups: int


@dataclass(frozen=True, slots=True)
class SuiteReport:
    """What `freeze` and `check` print. `cases` and `roles` count every case, `slices` those of the promotion role."""

    suite: str
    digest: str
    cases: int
    roles: dict[Role, int]
    slices: dict[str, Support]
    warnings: tuple[str, ...]


def scorers(task: str) -> dict[str, str]:
    """The metrics that a task is judged by, and their version."""
    kind = "ranking" if task in RANKED else task
    return {kind: VERSIONS[kind]}


def freeze(suite: Suite, members: Members) -> Lock:
    """The lock of a suite: equal suites give equal bytes.

    Raises Misconfigured for a policy that may not be frozen (`check_demands`), for no promotion case, for a slice
    that holds none, and whatever `members` raises for a condition that isn't one; Leaked for promotion cases that
    stand in a role which fits something, unless a waiver says why they may.
    """
    path = suite.folder / DEFINITION
    if not any(case.role == "promotion" for case in suite.cases):
        raise Misconfigured(
            str(path), found="no case has the role promotion", expected="at least one: the gate decides over that role",
            mend="Give some cases the role promotion.",
        )  # fmt: skip
    resolved = resolve(suite, members)
    check_slices(suite.definition, list(resolved.members), path)
    check_demands(suite.definition, path, resolved.declared)
    promotion = {case.id for case in suite.cases if case.role == "promotion"}
    at_run = {each.name: len(promotion) for each in resolved.declared if each.from_parent}
    held = {name: len(promotion.intersection(ids)) for name, ids in resolved.members.items()}
    check_counts(suite.definition, {ALL: len(promotion), **held, **at_run}, path)
    leaking = leaks(suite)
    refuse_leaks(suite, leaking)
    grades = sorted({row.grade for row in suite.judgements})
    return Lock(
        schema_="harness.suite-lock.v1",
        definition=suite.definition,
        files=dict(suite.files),
        case_ids=tuple(case.id for case in suite.cases),
        roles=tuple(case.role for case in suite.cases),
        groups=tuple(case.group for case in suite.cases),
        case_digests=case_digests(suite),
        slices=resolved.members,
        slice_entries=_entries(resolved),
        candidates=_candidate_ids(suite),
        documents=len(suite.documents),
        grades=tuple(grades),
        top_grade=max([0, *grades]),
        label_schema=suite.labels,
        revision=suite.revision,
        identifiers=Identifiers(near_equal_count=suite.counts.near_equal_ids),
        dropped=Dropped(
            dangling=suite.counts.dangling_dropped,
            unjudged=suite.counts.unjudged_dropped,
            candidates=suite.counts.candidates_dropped,
        ),
        window_parents=window_parents(suite.cases, suite.definition.cases.window_parent),
        leaks=leaking,
        tunes=dict(TUNES),
        scorers=scorers(suite.definition.task),
    )


def open_frozen(folder: Path) -> FrozenSuite:
    """The suite, which is as it was frozen.

    Raises NotFound where there is no lock, Tampered where a data file, `suite.toml` or the lock changed since,
    naming the files and the cases, Misconfigured where this version's metrics are others, and as `load`.
    """
    definition = read_definition(folder)
    lock = read_lock(folder)
    _check_files(folder, lock)
    if definition != lock.definition:
        changed = _changes(lock.definition.model_dump(mode="json"), definition.model_dump(mode="json"), "")
        raise _tampered(folder, str(folder / DEFINITION), f"changed since it was frozen: {'; '.join(changed[:5])}")
    present = scorers(lock.definition.task)
    if lock.scorers != present:
        raise Misconfigured(
            str(folder), found=f"frozen under metrics of version {lock.scorers}", expected=f"version {present}",
            mend=f"Run `harness freeze {folder}`; results under the old lock can't be compared with new ones.",
        )  # fmt: skip
    suite = load(folder)
    _check_cases(suite, lock)
    return FrozenSuite(suite, lock)


def check_members(frozen: FrozenSuite, members: Members) -> None:
    """Raises Tampered where a slice's condition now picks other cases than the lock has."""
    now = resolve(frozen.suite, members)
    if [each.name for each in now.declared] != [each.name for each in frozen.lock.declared]:
        raise _tampered(
            frozen.suite.folder, str(frozen.suite.folder),
            "other slices are declared than were frozen: "
            f"{listed(sorted(now.members.keys() ^ frozen.lock.slices.keys()))}",
        )  # fmt: skip
    for name, ids in now.members.items():
        other = set(ids) ^ set(frozen.lock.slices[name])
        if other:
            raise _tampered(
                frozen.suite.folder, str(frozen.suite.folder),
                f"slice {name!r} picks other cases than were frozen: {listed(sorted(other))}",
            )  # fmt: skip


def _entries(resolved: Resolved) -> dict[str, tuple[int, int]]:
    return {each.name: (each.position, order) for order, each in enumerate(resolved.declared)}


def check_leaks(frozen: FrozenSuite) -> None:
    """Raises Tampered where the cases leak otherwise than the lock has it; a lock of before this was checked has
    nothing to be held against.
    """
    if "leaks" in frozen.lock.as_record() and leaks(frozen.suite) != frozen.lock.leaks:
        raise _tampered(
            frozen.suite.folder, str(frozen.suite.folder), "other pairs of cases stand in two roles than were frozen"
        )


def report(suite: Suite, lock: Lock) -> SuiteReport:
    """The suite in a few figures, with every warning."""
    definition = suite.definition
    promoted = {case.id: case.group for case in suite.cases if case.role == "promotion"}
    slices = {}
    warnings = [*suite.warnings, *slice_warnings(suite)]
    at_run = [each.name for each in lock.declared if each.from_parent]
    if at_run:
        warnings.append(f"fixed by a run, from what the parent does: {', '.join(at_run)}")
    for each in lock.declared:
        if each.from_parent:
            continue
        groups = [promoted[identifier] for identifier in lock.slices[each.name] if identifier in promoted]
        slices[each.name] = Support(len(groups), len(set(groups)))
        if len(set(groups)) < each.min_support:
            warnings.append(
                f"slice {each.name!r} has {len(set(groups))} promotion groups, fewer than its min_support of "
                f"{each.min_support}: rules over it will be UNDECIDED"
            )
    if all(rule.kind == "invariant" for rule in definition.rules):
        warnings.append("no headline or floor rule: nothing here demands that the candidate be any good")
    warnings += [
        f"rule {rule.id!r} holds {rule.metric} {rule.kind.replace('-', ' ')} {rule.value:g}, though "
        f"{'higher' if parse(rule.metric).higher_is_better else 'lower'} is better"
        for rule in definition.rules
        if (rule.kind == "invariant" or parse(rule.metric).use != "bounds")
        and rule.kind == ("at-most" if rule.kind != "invariant" and parse(rule.metric).higher_is_better else "at-least")
    ]
    warnings += idle(definition)
    warnings += leak_warnings(lock.leaks)
    if "leaks" not in lock.as_record():
        warnings.append("frozen before leaks between roles were checked: freeze it again")
    roles: dict[Role, int] = {role: lock.roles.count(role) for role in ROLES if role in lock.roles}
    return SuiteReport(definition.name, lock.digest, len(suite.cases), roles, slices, tuple(warnings))


def case_digests(suite: Suite) -> tuple[str, ...]:
    """One digest a case over all it is judged by, 16 hexadecimal digits, in suite order."""
    judged = {row.document_id for row in suite.judgements}
    texts = {each.id: text_digest(each.text) for each in suite.documents if each.id in judged}
    given = _candidate_ids(suite)
    rows: dict[str, list[tuple[str, int, str]]] = {case.id: [] for case in suite.cases}
    for row in suite.judgements:
        rows[row.case_id].append((row.document_id, row.grade, texts[row.document_id]))
    return tuple(
        digest(
            {
                "text": case.text,
                "attributes": case.attributes,
                "role": case.role,
                "group": case.group,
                "answerable": case.answerable,
                "judgements": sorted(rows[case.id]),
                **({} if given is None else {"candidates": given[case.id]}),
                **({} if case.gold is None else {"inputs": case.inputs, "gold": asdict(case.gold)}),
            }
        )[:16]
        for case in suite.cases
    )


def _candidate_ids(suite: Suite) -> dict[str, tuple[str, ...]] | None:
    if suite.candidates is None:
        return None
    return {case_id: tuple(each.document_id for each in given) for case_id, given in suite.candidates.items()}


def _check_files(folder: Path, lock: Lock) -> None:
    changed = []
    for name, known in lock.files.items():
        try:
            if file_digest(folder / name) != known:
                changed.append(f"{name} changed")
        except FileNotFoundError:
            changed.append(f"{name} is gone")
        except OSError as error:
            changed.append(f"{name} can't be read ({error.strerror})")
    if changed:
        raise _tampered(folder, str(folder), f"{', '.join(changed)}; {_traced(folder, lock)}")


def _traced(folder: Path, lock: Lock) -> str:
    """Which cases a changed file changed, in words."""
    try:
        suite = load(folder)
    except HarnessError as error:
        return f"the files no longer read: {error.subject}: {error.found}"
    then = dict(zip(lock.case_ids, lock.case_digests, strict=True))
    now = dict(zip((case.id for case in suite.cases), case_digests(suite), strict=True))
    parts = [
        f"{len(ids)} cases {what} ({listed(ids)})"
        for what, ids in (
            ("changed", [each for each in now if each in then and now[each] != then[each]]),
            ("added", [each for each in now if each not in then]),
            ("removed", [each for each in then if each not in now]),
        )
        if ids
    ]
    return ", ".join(parts) or "no case, judgement or judged document changed"


def _check_cases(suite: Suite, lock: Lock) -> None:
    """The same files must read as the same cases, else the lock was edited or another reader wrote it."""
    if suite.files != lock.files:
        other = sorted(set(suite.files) ^ set(lock.files))
        raise _tampered(suite.folder, str(suite.folder), f"other data files are read than were frozen: {listed(other)}")
    now = [(case.id, case.role, case.group) for case in suite.cases]
    then = list(zip(lock.case_ids, lock.roles, lock.groups, strict=True))
    if now != then or case_digests(suite) != lock.case_digests or _candidate_ids(suite) != lock.candidates:
        raise _tampered(suite.folder, str(suite.folder), "the same files now read as other cases than were frozen")


def _changes(then: object, now: object, name: str) -> list[str]:
    """Paths at which two JSON values differ, with both values."""
    if isinstance(then, dict) and isinstance(now, dict):
        return [
            line
            for key in dict.fromkeys([*then, *now])
            for line in _changes(then.get(key), now.get(key), f"{name}.{key}".lstrip("."))
        ]
    if isinstance(then, list) and isinstance(now, list) and len(then) == len(now):
        return [
            line
            for i, (old, new) in enumerate(zip(then, now, strict=True))
            for line in _changes(old, new, f"{name}[{i + 1}]")
        ]
    return [] if then == now else [f"{name} {then!r} → {now!r}"]


def _tampered(folder: Path, subject: str, found: str) -> Tampered:
    return Tampered(
        subject, found=found, expected="what suite.lock.json fixed",
        mend=f"Restore it, or run `harness freeze {folder}` and judge candidate and parent anew.",
    )  # fmt: skip
