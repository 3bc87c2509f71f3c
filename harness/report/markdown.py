"""The report as Markdown, short enough for a comment on a pull request."""

import re
from collections.abc import Iterator

from harness.output.cause import MEANINGS
from harness.output.change import CaseChange, FirstAnswer
from harness.output.companion import Cell
from harness.output.decision import Outcome
from harness.report import beside, cause, diagnostic, number, text, verdict
from harness.report.beside import Beside, Row
from harness.report.content import Content

WORST = 5
LONGEST = 160
MANY = 20
"""How many open rules are written out before the others are counted."""
ROWS, COLUMNS = 12, 12
"""Of a table beside the metrics; wider ones stand in the page alone."""

_SPECIAL = re.compile(r"[!-/:-@[-`{-~]")
_HARMLESS = "-.,;?'()/+=%:"
_CODE = re.compile(r"[^`|<>&\\]+")


def markdown(content: Content) -> str:
    """The decision, the rules that did not pass, the primary metric by slice, and the worst cases."""
    answer = content.answer
    exploratory = " (EXPLORATORY)" if answer.decision.exploratory else ""
    against = f"against {_name(answer.parent.name)}" if answer.parent else "without a parent"
    lines = [
        f"# {verdict.SYMBOL[answer.decision.outcome]} {answer.decision.outcome}{exploratory}: "
        f"{_name(answer.candidate.name)} {against}",
        "",
        verdict.why(answer, _name),
        "",
        *(f"> {_words(remark, text.LONGEST_REASON)}\n" for remark in verdict.remarks(answer)),
        _facts(content),
        "",
        *_rules(content),
        *_scoreboard(content),
        *_transitions(content),
        *_beside(content),
        *_diagnostics(content),
        *_cases(content),
        *_causes(content),
        "## Next",
        "",
        "```sh",
        *(f"{command}  # {shows}" for command, shows in verdict.commands(answer)),
        "```",
    ]
    return "\n".join(lines) + "\n"


def _facts(content: Content) -> str:
    answer = content.answer
    named = [f"candidate {_name(text.short(answer.candidate.content_id))}"]
    if answer.parent:
        named.append(f"parent {_name(text.short(answer.parent.content_id))}")
    named += [
        f"suite {_name(answer.suite)} {_name(text.short(answer.suite_digest))}",
        f"run {_name(text.short(answer.run))}",
        f"promotion outcomes read {number.plural(answer.reading, 'time')}",
    ]
    return f"{verdict.counted(answer.counts)}.  \n{', '.join(named)}"


def _rules(content: Content) -> list[str]:
    rules = verdict.ordered(content.answer.decision.rules)
    left = [rule for rule in rules if rule.outcome is not Outcome.PASS]
    lines = ["## Rules", ""]
    if left:
        lines += [
            "| | rule | metric, slice | parent → candidate | Δ | interval | MDE | cases / groups | adjusted p "
            "| reason |",
            "|---|---|---|---|--:|---|--:|--:|--:|---|",
        ]
    for rule in left[:MANY]:
        finding = f". A waiver names this finding: {_name(rule.finding)}" if rule.finding else ""
        cells = (
            f"{verdict.SYMBOL[rule.outcome]} {rule.outcome}",
            _name(rule.id),
            f"{_name(rule.metric)}, {_name(rule.slice)}",
            f"{verdict.figure(rule, rule.parent_value)} → {verdict.figure(rule, rule.value)}",
            number.signed(rule.delta),
            number.interval(rule.low, rule.high, of_delta=rule.delta is not None),
            number.value(rule.mde),
            f"{number.count(rule.n_cases)} / {number.count(rule.n_groups)}",
            _less(number.probability(rule.p_adjusted)),
            _words(rule.reason, text.LONGEST_REASON) + finding,
        )
        lines.append(_row(*cells))
    if len(left) > MANY:
        lines += ["", f"And {len(left) - MANY} more that did not pass."]
    passed = len(rules) - len(left)
    return [
        *lines,
        *([""] if left else []),
        f"{number.plural(passed, 'rule')} passed." if passed else "No rule passed.",
        "",
    ]


def _scoreboard(content: Content) -> list[str]:
    if not content.slices:
        return []
    metrics = content.answer.metrics
    lines = [
        f"## {_name(content.primary)} by slice{_lower(content, content.primary)}",
        "",
        "| slice | cases / groups | parent | candidate | interval | Δ | its interval | MDE |",
        "|---|--:|--:|--:|---|--:|---|--:|",
    ]
    for each in content.slices:
        now = metrics.get("candidate", {}).get(each.name, {}).get(content.primary)
        before = metrics.get("parent", {}).get(each.name, {}).get(content.primary)
        moved = content.deltas.get(each.name, {}).get(content.primary)
        lines.append(
            _row(
                _name(each.name) + (" (critical)" if each.critical else ""),
                f"{number.count(each.cases)} / {number.count(each.groups)}",
                number.value(before.value if before else None),
                number.value(now.value if now else None),
                number.interval(now.low, now.high, of_delta=False) if now else number.NOTHING,
                number.signed(moved.delta if moved else None),
                number.interval(moved.low, moved.high, of_delta=True) if moved else number.NOTHING,
                number.value(moved.mde if moved else None),
            )
        )
    return [*lines, ""]


def _transitions(content: Content) -> list[str]:
    """Which side was right, by slice, as the page has it."""
    if not content.transitions:
        return []
    return [
        "## Who was right",
        "",
        f"Cases by which side was right; a side is right where {_name(content.criterion)} is 1. p, exact and "
        "two-sided: that groups in which more cases were lost than won, or fewer, fall to either side alike.",
        "",
        "| slice | both | parent only | candidate only | neither, same answer | neither, another answer | p |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(
            _row(
                _name(each.slice),
                *map(
                    number.count,
                    (
                        each.both_right, each.parent_only, each.candidate_only, each.both_wrong_same,
                        each.both_wrong_different,
                    ),
                ),
                _less(number.probability(each.p)),
            )
            for each in content.transitions
        ),
        "",
    ]  # fmt: skip


def _beside(content: Content) -> list[str]:
    """Every table beside the metrics, the parent's cells before the candidate's where they differ."""
    lines: list[str] = []
    for pair in beside.paired(content.companions):
        lines += [f"**{_words(pair.title, LONGEST)}**", "", *_notes(pair)]
        lines += _upright(pair) if pair.one_row else _joined(pair)
        lines.append("")
    arrows = ["Parent → candidate where they differ.", ""] if "parent" in content.companions else []
    return ["## Beside the metrics", "", *arrows, *lines] if lines else []


def _notes(pair: Beside) -> list[str]:
    """What is said of a table, once where both sides say the same."""
    notes = {side: _words(table.note, text.LONGEST_REASON) for side, table in pair.sides.items() if table.note}
    if len(set(notes.values())) == 1 and len(notes) == len(pair.sides):
        return [next(iter(notes.values())), ""]
    return [line for side, note in notes.items() for line in (f"{side.capitalize()}: {note}", "")]


def _diagnostics(content: Content) -> list[str]:
    if not content.diagnostics:
        return []
    told, silent = diagnostic.lines(content.diagnostics), diagnostic.silences(content.diagnostics)
    lines = [f"## {diagnostic.TITLE}", "", diagnostic.LEAD, ""]
    if told:
        lines += ["| | of | at | parent | candidate | both | n | |", "|---|---|--:|--:|--:|--:|--:|---|"]
        lines += [
            _row(
                _name(each.name),
                _words(each.texts, LONGEST),
                each.at,
                *map(number.value, (each.parent, each.candidate, each.pair)),
                each.counted,
                _words(each.meaning, text.LONGEST),
            )
            for each in told
        ]  # fmt: skip
        lines.append("")
    lines += [f"- {_words(each, text.LONGEST_REASON)}" for each in silent]
    return [*lines, *([""] if silent else [])]


def _causes(content: Content) -> list[str]:
    if not content.causes:
        return []
    names = cause.columns(content.causes)
    return [
        f"## {cause.TITLE}",
        "",
        cause.LEAD,
        "",
        _row("slice", "worse", *names),
        f"|---|--:{'|--:' * len(names)}|",
        *(_row(_name(line.slice), str(line.cases), *map(str, line.counts)) for line in cause.lines(content.causes)),
        "",
        *(f"- {name}: {MEANINGS[name]}." for name in names),
        "",
    ]


def _upright(pair: Beside) -> list[str]:
    sides = list(pair.sides.values())
    return [
        _row("", *pair.sides),
        f"|---{'|--:' * len(sides)}|",
        *(
            _row(_name(column), *(_cell(pair, column, each.rows[0][each.columns.index(column)]) for each in sides))
            for column in pair.columns
        ),
    ]


def _joined(pair: Beside) -> list[str]:
    if len({each.columns for each in pair.sides.values()}) > 1:
        return ["The two sides have other columns; the page has both tables."]
    if len(pair.columns) > COLUMNS:
        return [f"{len(pair.columns)} columns are more than fit here; the page has them."]
    rows = beside.joined(pair)
    shown = [
        _row(
            *(_cell(pair, column, cell) for column, cell in zip(pair.columns, row.key, strict=False)), *_both(pair, row)
        )
        for row in rows[:ROWS]
    ]
    marks = "|".join("--:" if pair.numeric(column) else "---" for column in pair.columns)
    more = ["", f"And {number.plural(len(rows) - ROWS, 'more row')}."] if len(rows) > ROWS else []
    return [_row(*map(_name, pair.columns)), f"|{marks}|", *shown, *more]


def _both(pair: Beside, row: Row) -> Iterator[str]:
    """`parent → candidate` in each cell behind the key, once where both say the same or one has no such row."""
    columns = pair.columns[len(row.key) :]
    for at, column in enumerate(columns):
        sides = [_cell(pair, column, cells[at] if cells else None) for cells in (row.parent, row.candidate)]
        yield sides[1] if "parent" not in pair.sides or sides[0] == sides[1] else " → ".join(sides)


def _cell(pair: Beside, column: str, cell: Cell) -> str:
    return _name(cell) if isinstance(cell, str) else pair.shown(column, cell)


def _lower(content: Content, metric: str) -> str:
    told = verdict.direction(content.answer, metric)
    return f" ({told})" if told else ""


def _cases(content: Content) -> list[str]:
    followed = content.answer.followed
    if followed is None:
        return ["No metric of this run has values by case, so no case is told to have got worse or better.", ""]
    if not content.regressions:
        return []
    ends = "parent put first | candidate put first |" if content.answer.ranks else "gold | parent | candidate |"
    return [
        "## Cases that got worse",
        "",
        f"By {_name(followed)}{_lower(content, followed)}.",
        "",
        f"| case | text | parent → candidate | {ends}",
        "|---|---|---" + "|---" * ends.count("|") + "|",
        *(
            _row(_name(each.case_id), _words(each.text, LONGEST), _moved(each), *_told(each))
            for each in content.regressions[:WORST]
        ),
        "",
    ]


def _told(change: CaseChange) -> Iterator[str]:
    """What either side put first, or what holds and what either predicted."""
    if change.predicted is None:
        yield from (_first(change.parent_first), _first(change.candidate_first))
        return
    found = change.predicted
    for said in (found.gold, found.parent.said if found.parent else None, found.candidate.said):
        yield number.NOTHING if said is None else _name(said) if said else "none of the labels"


def _moved(change: CaseChange) -> str:
    return f"{number.value(change.parent_value)} → {number.value(change.candidate_value)}"


def _first(found: FirstAnswer | None) -> str:
    if found is None:
        return "nothing"
    return f"{_name(found.document_id)} ({'not judged' if found.grade is None else f'grade {found.grade}'})"


def _less(shown: str) -> str:
    return shown.replace("<", "&lt;")


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def code(written: str) -> str:
    """A name, ID or command as code, where nobody is mentioned and nothing linked."""
    shown = text.clipped(written, text.LONGEST_NAME)
    return f"`{shown}`" if _CODE.fullmatch(shown) else f"<code>{_entities(shown)}</code>"


_name = code


def _words(written: str, longest: int) -> str:
    """Prose in which no character is Markdown, HTML or the edge of a cell."""
    return _entities(text.clipped(written, longest))


def _entities(shown: str) -> str:
    """Character references can't be structure; those for what a site would make a link of are for that alone."""
    shown = _SPECIAL.sub(lambda found: _reference(found.group()), shown)
    return re.sub(r"(?i)\bwww\.", "www&#46;", shown.replace("://", "&#58;//"))


def _reference(sign: str) -> str:
    if sign in _HARMLESS:
        return sign
    # A word joiner keeps a site from reading a person or an issue where the reference alone would not.
    return f"&#{ord(sign)};" + ("\u2060" if sign in "@#" else "")
