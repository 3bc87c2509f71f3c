"""What a person reads after a command; the same words, without colour, where stdout isn't a terminal."""

import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from harness.identity import Json
from harness.output.answer import Answer, DeltaSummary, Summary
from harness.output.decision import Outcome, RuleResult
from harness.report import number, text, verdict

HUE = {Outcome.PASS: "green", Outcome.FAIL: "red", Outcome.UNDECIDED: "yellow", Outcome.WAIVED: "magenta"}
WIDE = 200
"""Columns where stdout isn't a terminal: whoever reads it there can scroll, but not unwrap."""
MANY = 12
"""How many open rules are written out before the others are counted."""
COMMANDS = 3
PLAINER = str.maketrans(
    {number.MINUS: "-", number.NOTHING: "-", "→": "->", "…": "...", "Δ": "d", "✓": "+", "✕": "x", "◇": "~"}
)


def print_answer(answer: Answer) -> None:
    """The decision and why, the rules that are open, the metrics over `all`, counts, places, and what to type next."""
    decision = answer.decision
    against = f"against {_name(answer.parent.name)}" if answer.parent else "without a parent"
    exploratory = " [bold blue]EXPLORATORY[/]" if decision.exploratory else ""
    pair = f"{_name(answer.candidate.name)} {against} on {_name(answer.suite)}"
    with _Page() as page:
        page.print(f"{_outcome(decision.outcome)}{exploratory}  {pair}")
        page.print(verdict.why(answer, _name))
        for remark in verdict.remarks(answer):
            page.print(f"[dim]Remark: {escape(text.clipped(remark, text.LONGEST_REASON))}[/]")
        _print_rules(page, verdict.ordered(decision.rules))
        _print_metrics(page, answer)
        page.print(f"\n{verdict.counted(answer.counts)}")
        for what, where in (
            ("run", answer.run),
            ("store", answer.store),
            ("report", answer.report),
            ("bundle", answer.bundle),
        ):
            if where is not None:
                page.print(f"[dim]{what:7}[/]{escape(text.clean(where))}")
        page.print("\nNext:")
        for command, shows in verdict.commands(answer)[:COMMANDS]:
            page.print(f"  {escape(command)}  [dim]# {shows}[/]")


def print_cache(entries: Sequence[Mapping[str, Json]]) -> None:
    """What is kept under each key, and whose it is."""
    with _Page() as page:
        for entry in entries:
            users = entry["used_by"] if isinstance(entry["used_by"], list) else []
            used_by = ", ".join(f"{_name(user['release'])} {user['side']}" for user in users)
            page.print(
                f"{text.short(str(entry['key']))}  {_whole(entry['pieces']):>10,} vectors {_megabytes(entry)}  "
                f"[dim]{entry['last_used']}[/]  {used_by or '[dim]of a release that no run here names[/]'}"
            )
        if entries:
            page.print(f"{_megabytes(*entries).lstrip()} in {number.plural(len(entries), 'key')}")
        else:
            page.print("Nothing is kept: a run of a live release keeps the vectors that it computes.")


def print_suite(record: Mapping[str, Json], word: str) -> None:
    """A suite that was frozen or holds: its digest, cases, roles and slices, and what was warned of."""
    with _Page() as page:
        page.print(
            f"[bold]{_name(str(record['suite']))}[/] {escape(word)}  {number.plural(_whole(record['cases']), 'case')}"
        )
        page.print(f"[dim]digest [/]{escape(text.clean(str(record['digest'])))}")
        for title in ("roles", "slices"):
            if said := _listed(record[title]):
                page.print(f"[dim]{title:7}[/]{said}")
        warnings = record["warnings"]
        for warning in warnings if isinstance(warnings, Sequence) and not isinstance(warnings, str) else ():
            page.print(f"[yellow]Warning:[/] {escape(text.clipped(str(warning), text.LONGEST_REASON))}")


def print_manifest(manifest: Mapping[str, Json]) -> None:
    """What a release means: each value with where it is said, and what an override departs from."""
    identity, evidence = _mapping(manifest["identity"]), _mapping(manifest["evidence"])
    sources, overridden = _mapping(evidence["sources"]), _mapping(evidence["overridden"])
    with _Page() as page:
        page.print(f"[bold]{_name(str(identity['name']))}[/]  [dim]{escape(str(identity['content_id']))}[/]")
        for path, value in _said(manifest["meaning"], sources):
            said = escape(text.clipped(json.dumps(value, ensure_ascii=False), 100))
            instead = f", in the folder {_value(overridden[path])}" if path in overridden else ""
            where = text.clipped(f"{sources.get(path) or ''}{instead}")
            page.print(f"  {_name(path)}: {said}  [dim]{escape(where)}[/]")


def print_checks(record: Mapping[str, Json]) -> None:
    """A release's admission: its state, every check that failed with its mend, then what held, then the nodes."""
    checks = _rows(record["checks"])
    with _Page() as page:
        content = text.clipped(str(record["content_id"] or "no content ID"), 12)
        page.print(
            f"[bold]{_name(str(record['release']))}[/] {escape(str(record['state']))}  [dim]{escape(content)}[/]"
        )
        for check in sorted(checks, key=lambda check: bool(check["ok"])):
            mark, hue = ("✓", "green") if check["ok"] else ("✕", "red")
            said = text.clipped(str(check["found"]), text.LONGEST_REASON)
            page.print(f"  [{hue}]{mark}[/] {_name(str(check['name']))}: {escape(said)}")
            if not check["ok"]:
                wanted = f"expected: {check['expected']}. {check['mend']}"
                page.print(f"    {escape(text.clipped(wanted, text.LONGEST_REASON))}")
        nodes = record["nodes"]
        for name, key in nodes.items() if isinstance(nodes, Mapping) else ():
            page.print(f"  [dim]{escape(str(key))[:16]}[/] {_name(str(name))}")


def print_difference(record: Mapping[str, Json]) -> None:
    """Changed fields, then what becomes of every namespace, then the plan in its order, the switch in its place."""
    with _Page() as page:
        changes = _rows(record["changes"])
        page.print(f"[bold]{number.plural(len(changes), 'change')}[/]")
        gone = _one_sided(changes)
        for tower, rows in gone.items():
            side, having = ("candidate", "parent") if rows[0]["new"] is None else ("parent", "candidate")
            page.print(
                f"  {_name(tower)}: {number.plural(len(rows), 'field')} of the {having} that the {side} does not have"
            )
        for row in changes:
            if _tower(row) in gone:
                continue
            where = " ".join(str(row[key]) for key in ("side", "node") if row[key])
            said = f"{_value(row['old'])} → {_value(row['new'])}"
            page.print(f"  {_name(str(row['field']))}: {escape(text.clipped(said, 160))}  [dim]{escape(where)}[/]")
        page.print("\n[bold]namespaces[/]")
        for row in _rows(record["namespaces"]):
            hue = {"reusable": "green", "unproven": "yellow"}.get(str(row["state"]), "red")
            reason = escape(text.clipped(str(row["reason"]), text.LONGEST_REASON))
            page.print(f"  [{hue}]{escape(str(row['state'])):9}[/] {_name(str(row['name']))}  {reason}")
        page.print("\n[bold]plan[/]")
        switched = ", ".join(_name(str(name)) for name in _sequence(record["switched"]))
        for at, row in enumerate(_rows(record["plan"]), start=1):
            if switched and row["action"] == "drop":
                page.print(f"  switch in one step, queries and documents together: {switched}")
                switched = ""
            items = "" if row["items"] is None else f" {row['items']} of {row['of']} items" if row["of"] else ""
            reason = escape(text.clipped(str(row["reason"]), text.LONGEST_REASON))
            page.print(
                f"  {at}. {escape(str(row['action']))} {_name(str(row['namespace'] or 'the release'))}{items}: {reason}"
            )


def _mapping(value: Json) -> Mapping[str, Json]:
    return value if isinstance(value, Mapping) else {}


def _said(value: Json, sources: Mapping[str, Json], path: str = "") -> Iterator[tuple[str, Json]]:
    """Every value by its path, down to where one source says it."""
    if path in sources or not isinstance(value, Mapping):
        yield path, value
    elif value:
        for key, each in value.items():
            by_name = f"{path}[{key}]"
            yield from _said(each, sources, by_name if by_name in sources else f"{path}.{key}".lstrip("."))


def _one_sided(changes: Sequence[Mapping[str, Json]]) -> Mapping[str, Sequence[Mapping[str, Json]]]:
    """Towers that only one of the two releases has: every field of theirs is a change, and none of them news."""
    towers: dict[str, list[Mapping[str, Json]]] = {}
    for row in changes:
        if tower := _tower(row):
            towers.setdefault(tower, []).append(row)
    return {
        tower: rows
        for tower, rows in towers.items()
        if len(rows) > MANY and any(all(row[end] is None for row in rows) for end in ("old", "new"))
    }


def _tower(row: Mapping[str, Json]) -> str:
    """`towers.both` of `towers.both.input.max_length`, which of a part begins with its role; else nothing."""
    before, found, after = str(row["field"]).partition("towers.")
    return f"{before}{found}{after.partition('.')[0]}" if found else ""


def _rows(entries: Json) -> list[Mapping[str, Json]]:
    return [each for each in _sequence(entries) if isinstance(each, Mapping)]


def _value(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _sequence(entries: Json) -> Sequence[Json]:
    return entries if isinstance(entries, Sequence) and not isinstance(entries, str) else ()


def _megabytes(*entries: Mapping[str, Json]) -> str:
    return f"{sum(_whole(entry['bytes']) for entry in entries) / 1e6:>9,.1f} MB"


class _Page:
    """Collects what is printed and writes it whole, with marks that stdout's encoding lacks replaced."""

    def __enter__(self) -> Console:
        out = sys.stdout
        shown = Console(file=out)
        self.stream = io.StringIO()
        return Console(
            file=self.stream,
            force_terminal=shown.is_terminal,
            no_color=shown.no_color,
            width=shown.width if shown.is_terminal else WIDE,
            highlight=False,
            emoji=False,
            soft_wrap=True,
        )

    def __exit__(self, kind: object, fault: object, trace: object) -> None:
        if fault is None:
            encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
            said = "\n".join(line.rstrip() for line in self.stream.getvalue().split("\n"))
            if not _can_write(said, encoding):
                said = said.translate(PLAINER).encode(encoding, "replace").decode(encoding)
            sys.stdout.write(said)


def _can_write(said: str, encoding: str) -> bool:
    try:
        said.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _print_rules(page: Console, rules: Sequence[RuleResult]) -> None:
    left = [rule for rule in rules if rule.outcome is not Outcome.PASS]
    page.print()
    for rule in left[:MANY]:
        page.print(
            f"  {_outcome(rule.outcome)} {_name(rule.id)}: {escape(text.clipped(rule.reason, text.LONGEST_REASON))}"
        )
        if rule.finding and rule.outcome is Outcome.FAIL:
            page.print(f"    [dim]finding {rule.finding}, which a waiver would name[/]")
    if len(left) > MANY:
        page.print(f"  and {len(left) - MANY} more that did not pass; the report has them all")
    passed = len(rules) - len(left)
    if passed:
        page.print(f"  [green]{number.count(passed)}{' others' if left else ''} pass[/]")


def _print_metrics(page: Console, answer: Answer) -> None:
    candidate, parent = (answer.metrics.get(side, {}).get("all", {}) for side in ("candidate", "parent"))
    if not candidate:
        return
    deltas = answer.deltas.get("all", {})
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("all")
    for title in ("parent", "candidate", "interval", "delta", "its interval", "MDE", "scored", "groups"):
        table.add_column(title, justify="right", no_wrap=True)
    for metric, now in candidate.items():
        told = verdict.direction(answer, metric)
        lower = f" [dim]({told})[/]" if told else ""
        table.add_row(_name(metric) + lower, *_cells(now, parent.get(metric), deltas.get(metric)))
    page.print()
    page.print(table)


def _cells(now: Summary, before: Summary | None, moved: DeltaSummary | None) -> tuple[str, ...]:
    """A metric's row. The difference is the paired one: two averages may be over other cases."""
    return (
        number.value(before.value if before else None),
        number.value(now.value),
        escape(number.interval(now.low, now.high, of_delta=False)),
        number.signed(moved.delta if moved else None),
        escape(number.interval(moved.low, moved.high, of_delta=True)) if moved else number.NOTHING,
        number.value(moved.mde if moved else None),
        f"{number.count(now.n_scored)}/{number.count(now.n_total)}",
        number.count(now.n_groups),
    )


def _outcome(outcome: Outcome) -> str:
    return f"[bold {HUE[outcome]}]{verdict.SYMBOL[outcome]} {outcome}[/]"


def _name(written: str) -> str:
    return escape(text.clipped(written, text.LONGEST_NAME))


def _whole(amount: Json) -> int:
    return len(amount) if isinstance(amount, Sequence | Mapping) else int(amount or 0)


def _listed(entries: Json) -> str:
    """`train 20, promotion 120` of counts by name; of a slice, its promotion cases and groups."""
    named = entries.items() if isinstance(entries, Mapping) else ()
    return ", ".join(f"{_name(str(name))} {_held(held)}" for name, held in named)


def _held(held: Json) -> str:
    if isinstance(held, Mapping):
        return f"{number.count(_whole(held['cases']))}/{number.count(_whole(held['groups']))}"
    return number.count(_whole(held))
