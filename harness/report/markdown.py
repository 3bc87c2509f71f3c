"""The report as Markdown, short enough for a comment on a pull request."""

import re

from harness.output.change import CaseChange, FirstAnswer
from harness.output.decision import Outcome
from harness.report import number, text, verdict
from harness.report.content import Content

WORST = 5
LONGEST = 160
MANY = 20
"""How many open rules are written out before the others are counted."""

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
        *_cases(content),
        "## Next",
        "",
        "```sh",
        *(f"{command}  # {shows}" for command, shows in verdict.commands(answer, content.primary)),
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
            "| | rule | metric, slice | parent → candidate | Δ | interval | adjusted p | reason |",
            "|---|---|---|---|--:|---|--:|---|",
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
            number.probability(rule.p_adjusted).replace("<", "&lt;"),
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
        f"## {_name(content.primary)} by slice",
        "",
        "| slice | cases / groups | parent | candidate | Δ | interval |",
        "|---|--:|--:|--:|--:|---|",
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
                number.signed(moved.delta if moved else None),
                number.interval(moved.low, moved.high, of_delta=True) if moved else number.NOTHING,
            )
        )
    return [*lines, ""]


def _cases(content: Content) -> list[str]:
    if not content.regressions:
        return []
    lines = [
        "## Cases that got worse",
        "",
        "| case | text | parent → candidate | parent put first | candidate put first |",
        "|---|---|---|---|---|",
    ]
    for each in content.regressions[:WORST]:
        lines.append(
            _row(
                _name(each.case_id),
                _words(each.text, LONGEST),
                _moved(each),
                _first(each.parent_first),
                _first(each.candidate_first),
            )
        )
    return [*lines, ""]


def _moved(change: CaseChange) -> str:
    return f"{number.value(change.parent_value)} → {number.value(change.candidate_value)}"


def _first(found: FirstAnswer | None) -> str:
    if found is None:
        return "nothing"
    return f"{_name(found.document_id)} ({'not judged' if found.grade is None else f'grade {found.grade}'})"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _name(written: str) -> str:
    """A name or ID as code, where nobody is mentioned and nothing linked."""
    shown = text.clipped(written, text.LONGEST_NAME)
    return f"`{shown}`" if _CODE.fullmatch(shown) else f"<code>{_entities(shown)}</code>"


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
