"""From evidence to outcomes: one result a rule, and the decision that follows from them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.compare.draw import SignFlips
from harness.compare.evidence import Degenerate, DeltaEvidence, degenerate, mde
from harness.compare.family import benjamini_hochberg, holm
from harness.compare.group import Floats
from harness.compare.randomisation import worse_p
from harness.compare.scoreboard import ALL, Cell, Population
from harness.compare.statistic import Grouped
from harness.gate.policy import Flags, Policy, Subject
from harness.gate.rule import Rule
from harness.identity import digest
from harness.output.decision import Outcome, RuleResult

FEWEST_GROUPS = 20
Cells = Mapping[tuple[str, str], Cell]


def judge(
    policy: Policy, population: Population, cells: Cells, flags: Flags, rng: np.random.Generator
) -> list[RuleResult]:
    """One result a rule: the declared ones, the guards, then the counts that always hold.

    Without a parent only floors and invariants are judged.
    """
    flips = SignFlips.draw(len(np.unique(population.groups)), policy.uncertainty.draws, rng)
    return judge_many(policy, population, [cells], [flags], flips)[0]


def judge_many(
    policy: Policy, population: Population, boards: Sequence[Cells], flags: Sequence[Flags], flips: SignFlips
) -> list[list[RuleResult]]:
    """What `judge` says of each of several comparisons of the same cases, under the same flips."""
    p = _guard_p(policy, boards, flips)
    return [
        _judged(policy, population, cells, counted, row) for cells, counted, row in zip(boards, flags, p, strict=True)
    ]


def _judged(policy: Policy, population: Population, cells: Cells, flags: Flags, p: Floats) -> list[RuleResult]:
    results = []
    for rule in policy.rules:
        if rule.kind == "invariant":
            results.append(_invariant(rule, population, flags))
        elif rule.kind != "no-worse":
            results.append(_judged_gap(_floor(rule, cells[rule.slice, rule.metric], policy), cells, policy))
        elif cells[rule.slice, rule.metric].parent is not None:
            results.append(_judged_gap(_no_worse(rule, cells[rule.slice, rule.metric], policy), cells, policy))
    if policy.members and cells[policy.members[0]].parent is not None:
        results += [_judged_gap(result, cells, policy) for result in _guards(policy, cells, p)]
    return results + _always(policy, population, flags)


def conclude(results: Iterable[RuleResult]) -> Outcome:
    """Any unwaived FAIL is FAIL; else any critical UNDECIDED is UNDECIDED; else PASS."""
    results = list(results)
    if any(result.outcome is Outcome.FAIL for result in results):
        return Outcome.FAIL
    if any(result.outcome is Outcome.UNDECIDED and result.critical for result in results):
        return Outcome.UNDECIDED
    return Outcome.PASS


def name_findings(results: Iterable[RuleResult], subject: Subject) -> list[RuleResult]:
    """Every FAIL with the digest by which a waiver names it."""
    return [
        replace(result, finding=_finding(result, subject)) if result.outcome is Outcome.FAIL else result
        for result in results
    ]


def _finding(result: RuleResult, subject: Subject) -> str:
    return digest({
        **subject.as_record(), "rule": result.id, "slice": result.slice, "metric": result.metric,
        "value": result.value, "delta": result.delta,
    })  # fmt: skip


def _no_worse(rule: Rule, cell: Cell, policy: Policy) -> RuleResult:
    margin = float(rule.margin or 0.0)
    result = _with_delta(_blank(rule, margin), cell)
    if why := _lacking(cell) or _undefined(cell) or _few(cell, policy):
        return replace(result, outcome=Outcome.UNDECIDED, reason=why)
    if cell.paired is None or cell.evidence is None:
        return replace(result, outcome=Outcome.UNDECIDED, reason="no case that both sides scored")
    higher = rule.metric not in policy.losses
    plain = degenerate(
        cell.paired, cell.groups, margin=margin, worst_loss=policy.span.get(rule.metric, 1.0),
        level=policy.uncertainty.level, higher_is_better=higher,
    )  # fmt: skip
    low, high = cell.evidence.interval.low, cell.evidence.interval.high
    worse, better = (low, high) if higher else (-high, -low)
    seen = f"{_delta(cell)}, interval [{low:+.4f}, {high:+.4f}]"
    if plain:
        return _without_interval(result, cell.evidence, plain, margin)
    if np.isnan(low):
        return replace(result, outcome=Outcome.UNDECIDED, reason=f"{_delta(cell)}, but its interval is undefined")
    if worse >= -margin:
        return replace(result, outcome=Outcome.PASS, reason=f"{seen}: its worse end is within the margin {margin:g}")
    if better < -margin:
        return replace(result, outcome=Outcome.FAIL, reason=f"{seen}: all of it is beyond the margin {margin:g}")
    least = f"the smallest change that this suite sees here is {cell.evidence.mde:.4f}"
    why = f"{seen} reaches beyond the margin {margin:g}; {least}"
    return replace(result, outcome=Outcome.UNDECIDED, reason=why)


def _without_interval(result: RuleResult, evidence: DeltaEvidence, plain: Degenerate, margin: float) -> RuleResult:
    """Of a difference that no resampling can judge: by how many groups may change, and what they may lose."""
    seen = f"delta {evidence.delta:+.4f}"
    if plain.every_group_beyond:
        return replace(result, outcome=Outcome.FAIL, reason=f"{seen} on every group: beyond the margin {margin:g}")
    result = replace(result, method=f"{evidence.interval.method}; judged by clopper-pearson over changed groups")
    if plain.largest_loss > margin:
        why = (
            f"{plain.reason}, too few to resample; up to {plain.changed_share:.1%} of groups may change, "
            f"a loss of up to {plain.largest_loss:.4f}: more than the margin {margin:g}"
        )
        return replace(result, outcome=Outcome.UNDECIDED, reason=why)
    why = f"{plain.reason}; a loss of at most {plain.largest_loss:.4f} is within the margin {margin:g}"
    return replace(result, outcome=Outcome.PASS, reason=why)


def _floor(rule: Rule, cell: Cell, policy: Policy) -> RuleResult:
    bound = float(rule.value or 0.0)
    side = cell.candidate
    alone = replace(cell, parent=None)  # a floor judges the candidate's own interval, whatever the parent lacks
    result = replace(
        _blank(rule, None), value=side.value, parent_value=cell.parent.value if cell.parent else None,
        n_cases=side.n_scored, n_groups=side.n_groups, mde=_mde(side.se, (1 - policy.uncertainty.level) / 2),
    )  # fmt: skip
    if why := _lacking(alone) or _undefined(alone) or _few(alone, policy):
        return replace(result, outcome=Outcome.UNDECIDED, reason=why)
    if side.value is None or side.interval is None or np.isnan(side.interval.low):
        return replace(result, outcome=Outcome.UNDECIDED, reason="no case with a value, so no interval")
    low, high = side.interval.low, side.interval.high
    result = replace(result, low=low, high=high, method=side.interval.method)
    seen = f"{side.value:.4f}, interval [{low:.4f}, {high:.4f}]"
    least = rule.kind == "at-least"
    if low >= bound if least else high <= bound:
        return replace(
            result, outcome=Outcome.PASS, reason=f"{seen}: all of it is {rule.kind.replace('-', ' ')} {bound:g}"
        )
    if high < bound if least else low > bound:
        word = "below" if least else "above"
        return replace(result, outcome=Outcome.FAIL, reason=f"{seen}: all of it is {word} {bound:g}")
    return replace(result, outcome=Outcome.UNDECIDED, reason=f"{seen} holds {bound:g}")


def _guard_p(policy: Policy, boards: Sequence[Cells], flips: SignFlips) -> Floats:
    """p [boards, guards]; NaN of a guard without a pair of cases."""
    margin = policy.guards.margin if policy.guards else 0.0
    members = [cells[key] for cells in boards for key in policy.members]
    tested = [i for i, cell in enumerate(members) if cell.paired is not None]
    pairs = [Grouped(cell.paired, cell.groups) for cell in members if cell.paired is not None]
    higher = [members[i].metric not in policy.losses for i in tested]
    p = np.full(len(members), np.nan)
    p[tested] = worse_p(pairs, flips=flips, higher_is_better=higher, margin=margin)
    return p.reshape(len(boards), len(policy.members))


def _guards(policy: Policy, cells: Cells, p: Floats) -> list[RuleResult]:
    margin = policy.guards.margin if policy.guards else 0.0
    alpha = 1 - policy.uncertainty.level
    members = [cells[key] for key in policy.members]
    adjusted = (holm if policy.uncertainty.family == "holm" else benjamini_hochberg)(p)
    among = f"adjusted for {len(members)} guards" if len(members) > 1 else "for the only guard"
    results = []
    for cell, raw, family in zip(members, p, adjusted, strict=True):
        result = RuleResult(
            id=f"guard:{cell.slice}:{cell.metric}", kind="guard", metric=cell.metric, slice=cell.slice,
            outcome=Outcome.PASS, reason="", critical=cell.slice in (ALL, *policy.critical), margin=margin,
        )  # fmt: skip
        result = _with_delta(result, cell)
        result = replace(result, p=None if np.isnan(raw) else float(raw), p_adjusted=float(family))
        if cell.evidence:
            result = replace(result, mde=_mde(cell.evidence.se, alpha / len(members)))
        unpaired = f"; {lacking}" if (lacking := _lacking(cell)) else ""
        if family <= alpha:
            why = f"shown worse: {_delta(cell)}, p {raw:.2g}, {family:.2g} {among}{unpaired}"
            results.append(replace(result, outcome=Outcome.FAIL, reason=why))
        else:
            seen = f"{_delta(cell)}, p {family:.2g} {among}" if cell.paired else _undefined(cell) or "no pair of cases"
            results.append(replace(result, reason=f"not shown worse: {seen}{unpaired}"))
    return results


def _invariant(rule: Rule, population: Population, flags: Flags) -> RuleResult:
    members = population.slices[rule.slice]
    found = int(flags.candidate[rule.metric][members].sum())
    most = float(rule.value or 0.0)
    held = found <= most
    return replace(
        _blank(rule, None), value=float(found), n_cases=int(members.sum()), n_groups=population.n_groups(members),
        outcome=Outcome.PASS if held else Outcome.FAIL,
        reason=f"{_cases(found)} {rule.metric}, at most {most:g} may be",
    )  # fmt: skip


def _cases(count: int) -> str:
    return f"{count} case" if count == 1 else f"{count} cases"


def _always(policy: Policy, population: Population, flags: Flags) -> list[RuleResult]:
    """What holds undeclared: no failed and no non-finite output, and no case that is missing unseen."""
    results = [
        _invariant(Rule(id=f"always:{count}", kind="invariant", metric=count, value=0.0), population, flags)
        for count in ("failed", "non-finite")
    ]
    missing = flags.candidate["missing"] | flags.parent["missing"]
    lacking = missing | flags.parent["failed"]
    result = RuleResult(
        id="always:missing", kind="invariant", metric="missing", slice=ALL, outcome=Outcome.PASS, critical=True,
        reason="every case has its output", value=float(lacking.sum()), n_cases=len(lacking),
        n_groups=population.n_groups(population.slices[ALL]),
    )  # fmt: skip
    if lacking.any():
        counts = {
            "missing on the candidate's side": flags.candidate["missing"],
            "missing on the parent's": flags.parent["missing"],
            "failed on the parent's": flags.parent["failed"],
        }
        seen = ", ".join(f"{_cases(int(flag.sum()))} {what}" for what, flag in counts.items() if flag.any())
        scored = policy.missing == "zero" and not flags.parent["failed"].any()
        result = replace(
            result, outcome=Outcome.PASS if scored else Outcome.UNDECIDED,
            reason=f"{seen}; the suite scores a missing case 0" if scored else seen,
        )  # fmt: skip
    return [*results, result]


def _judged_gap(result: RuleResult, cells: Cells, policy: Policy) -> RuleResult:
    """A FAIL becomes UNDECIDED where the candidate's documents were judged so much less that it may be the cause."""
    judged = policy.judged.get(result.metric)
    if policy.max_judged_gap is None or judged in (None, result.metric) or result.outcome is not Outcome.FAIL:
        return result
    cell = cells[result.slice, judged]
    if cell.parent is None or cell.parent.value is None or cell.candidate.value is None:
        return result
    gap = cell.parent.value - cell.candidate.value
    if gap <= policy.max_judged_gap:
        return result
    why = (
        f"{result.reason}; but {judged} fell by {gap:.4f}, more than max_judged_gap {policy.max_judged_gap:g}: "
        "judge the queue in the report first"
    )
    # Critical whatever the rule was: what would have failed the run must not pass it unread.
    return replace(result, outcome=Outcome.UNDECIDED, reason=why, critical=True, awaits_judging=True)


def _few(cell: Cell, policy: Policy) -> str | None:
    groups = len(np.unique(cell.groups)) if cell.parent else cell.candidate.n_groups
    least = max(FEWEST_GROUPS, policy.min_support.get(cell.slice, FEWEST_GROUPS))
    return f"{groups} groups; fewer than {least} decide nothing" if groups < least else None


def _lacking(cell: Cell) -> str | None:
    """Why a slice has cases that cannot be paired: a mean over the others would hide them."""
    for name, side in (("candidate", cell.candidate), ("parent", cell.parent)):
        if side and side.n_scored < side.n_total:
            return f"{side.n_total - side.n_scored} of {side.n_total} cases have no value on the {name}'s side"
    return None


def _undefined(cell: Cell) -> str | None:
    """Why a slice whose cases are scored has no value all the same: some metrics are of no case by itself."""
    sides = {"candidate": cell.candidate} | ({"parent": cell.parent} if cell.parent else {})
    lacking = [name for name, side in sides.items() if side.n_scored and side.value is None]
    if not lacking:
        return None
    whose = "both sides" if len(lacking) == 2 else f"the {lacking[0]}'s side"
    return (
        f"{cell.metric} is undefined on {whose} here, though {cell.candidate.n_scored} cases are scored: a class has "
        "no gold or no prediction, say, or a side is constant"
    )


def _with_delta(result: RuleResult, cell: Cell) -> RuleResult:
    evidence = cell.evidence
    if evidence is None:
        both = [cell.candidate, cell.parent] if cell.parent else [cell.candidate]
        return replace(
            result, value=cell.candidate.value, parent_value=cell.parent.value if cell.parent else None,
            n_cases=min(side.n_scored for side in both), n_groups=min(side.n_groups for side in both),
        )  # fmt: skip
    return replace(
        result, value=evidence.value, parent_value=evidence.parent_value, delta=evidence.delta,
        low=_finite(evidence.interval.low), high=_finite(evidence.interval.high), n_cases=evidence.n_cases,
        n_groups=evidence.n_groups, mde=_finite(evidence.mde), method=evidence.interval.method,
    )  # fmt: skip


def _blank(rule: Rule, margin: float | None) -> RuleResult:
    return RuleResult(
        id=rule.id, kind=rule.kind, metric=rule.metric, slice=rule.slice, outcome=Outcome.UNDECIDED, reason="",
        critical=rule.critical, margin=margin if rule.kind == "no-worse" else rule.value,
    )  # fmt: skip


def _mde(se: float | None, alpha: float) -> float | None:
    return None if se is None else _finite(mde(se, alpha))


def _delta(cell: Cell) -> str:
    return f"delta {cell.evidence.delta:+.4f}" if cell.evidence else "no delta"


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None
