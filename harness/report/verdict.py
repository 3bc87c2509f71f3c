"""Why a run was decided as it was: the rules in reading order, the sentence, the next commands."""

import shlex
from collections.abc import Callable, Sequence

from harness.output.answer import Answer, Counts, DeltaSummary
from harness.output.decision import Outcome, RuleResult
from harness.report import number, text

Naming = Callable[[str], str]

SYMBOL = {Outcome.PASS: "✓", Outcome.FAIL: "✕", Outcome.UNDECIDED: "?", Outcome.WAIVED: "◇"}
GRAVITY = (Outcome.FAIL, Outcome.UNDECIDED, Outcome.WAIVED, Outcome.PASS)
LABELLED = ("classification", "multilabel")
"""Tasks whose cases share their labels, so that it can be counted which was given for which."""
NAMED = 3
"""How many rules the sentence names before it counts the others."""


def is_guard(rule: RuleResult) -> bool:
    """Guards have IDs of their own kind, which no declared rule may have."""
    return rule.id.startswith("guard:")


def better(answer: Answer, metric: str, delta: float) -> bool:
    """Whether a metric that moved by so much, which isn't 0, got better. It has no right value between its ends."""
    return (delta > 0) is (metric not in answer.losses)


def direction(answer: Answer, metric: str) -> str:
    """In words what is better, where that isn't what is higher; else nothing."""
    if metric in answer.targets:
        return f"nearer to {answer.targets[metric]:g} is better"
    return "lower is better" if metric in answer.losses else ""


def clear(answer: Answer, metric: str, before: float | None, moved: DeltaSummary) -> str | None:
    """Whether a metric that was `before` got better (`up`) or worse (`down`) with its whole interval, or neither.

    Of one with a right value: whether it is nearer to it, or further off, wherever within the interval it moved to.
    """
    if moved.low is None or moved.high is None or not (moved.low > 0 or moved.high < 0):
        return None
    target = answer.targets.get(metric)
    if target is None:
        return "up" if better(answer, metric, moved.low) else "down"
    if before is None:
        return None
    off, ends = abs(before - target), [before + moved.low - target, before + moved.high - target]
    nearest = 0.0 if ends[0] < 0 < ends[1] else min(map(abs, ends))
    return "up" if max(map(abs, ends)) < off else "down" if nearest > off else None


def ordered(rules: Sequence[RuleResult]) -> list[RuleResult]:
    """Declared rules before guards, in each the grave before the good, else in the suite's order."""
    return sorted(rules, key=lambda rule: (is_guard(rule), GRAVITY.index(rule.outcome)))


def declared(answer: Answer) -> list[RuleResult]:
    """The headline rules and invariants, in reading order."""
    return [rule for rule in ordered(answer.decision.rules) if not is_guard(rule)]


def guards(answer: Answer) -> list[RuleResult]:
    """The guards, in reading order."""
    return [rule for rule in ordered(answer.decision.rules) if is_guard(rule)]


def remarks(answer: Answer) -> list[str]:
    """What a reader must know besides the rules, each once."""
    return list(dict.fromkeys(answer.decision.remarks))


def deciding(answer: Answer) -> list[RuleResult]:
    """The rules that made the decision what it is; none where all passed, or where no rule says why."""
    wanted = answer.decision.outcome
    return [
        rule
        for rule in ordered(answer.decision.rules)
        if rule.outcome is wanted and wanted is not Outcome.PASS and (rule.critical or wanted is Outcome.FAIL)
    ]


def why(answer: Answer, name: Naming) -> str:
    """The decision in plain words, with numbers. `name` puts a text of the user's into the form at hand."""
    total = len(answer.decision.rules)
    found = deciding(answer)
    named = "; ".join(_found(rule, name) for rule in found[:NAMED])
    others = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    match answer.decision.outcome:
        case Outcome.FAIL:
            said = f"{len(found)} of {number.plural(total, 'rule')} failed: {named}{others}."
        case Outcome.UNDECIDED if found:
            said = (
                f"The evidence can't settle {number.plural(len(found), 'critical rule')} of {total}: {named}{others}."
            )
        case Outcome.UNDECIDED:
            said = "No rule failed, yet the run can't be decided; the remarks say why."
        case _:
            said = f"{_holding(answer)}{_held(answer, name)}."
    if answer.decision.exploratory:
        said += " Exploratory: rules or thresholds changed after these outcomes were read, so nothing is bundled."
    return said


def counted(counts: Counts) -> str:
    """The candidate's promotion cases in one line."""
    return (
        f"{number.plural(counts.cases, 'case')}: {counts.missing} missing, {counts.failed} failed, "
        f"{counts.tied} tied, {counts.truncated} truncated, {counts.not_applicable} not applicable"
    )


def commands(answer: Answer) -> list[tuple[str, str]]:
    """What is worth typing next, each with what it shows."""
    run = text.short(answer.run)
    worst = deciding(answer)
    explain = f"harness explain {run}" + (f" --rule {_word(text.clean(worst[0].id))}" if worst else "")
    next_up = [(explain, "the decision in words, rule by rule")]
    if answer.counts.missing or answer.counts.failed:
        where = f"SELECT side, case_id, reason FROM cases_without_output WHERE run LIKE '{run}%'"
        next_up.append((f"harness sql {_word(where)}", "the cases without an output, and why"))
    if answer.parent is not None and answer.followed is not None:
        metric = text.clean(answer.followed).replace("'", "''")
        what = "SELECT case_id, delta, text FROM worst_regressions"
        where = f"{what} WHERE run LIKE '{run}%' AND metric = '{metric}' LIMIT 20"
        next_up.append((f"harness sql {_word(where)}", "the cases on which most was lost"))
    if answer.bundle is not None:
        next_up.append((f"harness verify {_word(text.clean(answer.bundle))}", "the bundle against its checksums"))
    if not answer.ranks:
        next_up += _of_predictions(answer, run)
    elif answer.bundle is None:
        where = f"SELECT case_id, text, position, document_id FROM judging_queue WHERE run LIKE '{run}%' LIMIT 20"
        next_up.append((f"harness sql {_word(where)}", "high-ranked documents that nobody judged"))
    return next_up


def _of_predictions(answer: Answer, run: str) -> list[tuple[str, str]]:
    """What to ask where cases have predictions, and no documents."""
    where = f"WHERE run LIKE '{run}%' AND role = 'promotion'"
    if answer.parent is None:
        ask = f"SELECT case_id, gold, candidate, text FROM case_predictions {where} LIMIT 20"
        shows = "what holds of each case, and what was predicted"
    else:
        differs = "AND parent IS DISTINCT FROM candidate"
        ask = f"SELECT case_id, gold, parent, candidate, text FROM case_predictions {where} {differs} LIMIT 20"
        shows = "the cases of which the two sides say different things"
    found = [(f"harness sql {_word(ask)}", shows)]
    if answer.task in LABELLED:
        ask = f"SELECT side, gold, prediction, cases FROM confusions WHERE run LIKE '{run}%' LIMIT 20"
        found.append((f"harness sql {_word(ask)}", "what was given for what, and how often"))
    return found


def _holding(answer: Answer) -> str:
    """Of how many rules that were not in the way of a PASS it can be said that they hold."""
    outcomes = [rule.outcome for rule in answer.decision.rules]
    waived, unsettled = outcomes.count(Outcome.WAIVED), outcomes.count(Outcome.UNDECIDED)
    every = number.plural(len(outcomes), "rule")
    if not waived and not unsettled:
        return f"All {every} hold"
    told = f"{len(outcomes) - waived - unsettled} of {every} hold"
    told += f", {waived} failed and waived" if waived else ""
    return told + (f", {unsettled} undecided and not critical" if unsettled else "")


def _held(answer: Answer, name: Naming) -> str:
    """What the first headline rule that passed has found."""
    first = next((rule for rule in declared(answer) if rule.outcome is Outcome.PASS and rule.kind != "invariant"), None)
    return f": {_found(first, name)}" if first else ""


def _found(rule: RuleResult, name: Naming) -> str:
    """One rule's finding: `headline, nDCG@10 on all 0.6123 → 0.5871 (−0.0252, interval […], margin 0.0200)`."""
    subject = f"{name(rule.metric)} on {name(rule.slice)}"
    if not is_guard(rule):
        subject = f"{name(rule.id)}, {subject},"
    if rule.kind == "invariant":
        bound = "" if rule.margin is None else f" (bound {figure(rule, rule.margin)})"
        return f"{subject} is {figure(rule, rule.value)}{bound}"
    if rule.value is None:
        return f"{subject} has no value"
    bound = number.interval(rule.low, rule.high, of_delta=rule.delta is not None)
    facts = [] if bound == number.NOTHING else [f"interval {bound}"]
    if rule.margin is not None:
        facts.append(f"{'margin' if rule.delta is not None else 'bound'} {number.value(rule.margin)}")
    if is_guard(rule) and rule.p_adjusted is not None:
        small = number.probability(rule.p_adjusted)
        facts.append(f"adjusted p below {small[1:]}" if small.startswith("<") else f"adjusted p {small}")
    if rule.delta is None or rule.parent_value is None:
        moved = f"is {number.value(rule.value)}"
    else:
        moved = f"{number.value(rule.parent_value)} → {number.value(rule.value)}"
        facts.insert(0, number.signed(rule.delta))
    return f"{subject} {moved}" + (f" ({', '.join(facts)})" if facts else "")


def figure(rule: RuleResult, amount: float | None) -> str:
    """A rule's own value or bound: a count where the rule is over one, else a metric's value."""
    counted = rule.kind == "invariant" and amount is not None and amount == int(amount)
    return number.count(int(amount)) if counted and amount is not None else number.value(amount)


def _word(argument: str) -> str:
    """One shell word, in double quotes where nothing in it is special there."""
    if any(sign in argument for sign in '\\"$`!'):
        return shlex.quote(argument)
    return f'"{argument}"' if shlex.quote(argument) != argument else argument
