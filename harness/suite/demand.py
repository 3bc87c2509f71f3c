"""Whether what a suite's rules demand can be met, failed and judged by its data."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness.errors import Misconfigured
from harness.file.toml import Key, place
from harness.gate.rule import Rule
from harness.metric.name import parse
from harness.suite.definition import SuiteDefinition
from harness.suite.slices import DeclaredSlice

CALIBRATION = ("log_loss", "brier_binary", "brier_sum")
"""What a rule holds probabilities by: each is least, on average, where they come true as often as they say."""


def check_bounds(definition: SuiteDefinition, path: Path) -> None:
    """Raises Misconfigured, with the line in `path`, for a margin or bound beyond all that the metric can be: a slip of
    the decimal point is no demand.
    """
    for position, rule in enumerate(definition.rules):
        if rule.kind == "no-worse":
            _check_margin(path, ("rules", position, "margin"), rule.metric, rule.margin or 0.0)
        elif rule.kind != "invariant":
            _check_floor(path, position, rule, rule.value or 0.0)
    if definition.guards:
        for name in definition.guards.metrics:
            _check_margin(path, ("guards", "margin"), name, definition.guards.margin)


def _check_margin(path: Path, keys: Sequence[Key], name: str, margin: float) -> None:
    most = parse(name).span
    if margin > most:
        raise Misconfigured(
            place(path, *keys), found=f"a margin of {margin:g}, and {name} can lose no more than {most:g}",
            expected=f"a margin below {most:g}: with this one no candidate would fail",
            mend="Write it in the metric's own units: two of a hundred are margin = 0.02.",
        )  # fmt: skip


def _check_floor(path: Path, position: int, rule: Rule, value: float) -> None:
    lowest, highest = parse(rule.metric).lowest, parse(rule.metric).highest
    least = rule.kind == "at-least"
    if value < lowest if least else value > highest:
        found, who = "which every candidate is", "no candidate would fail"
    elif value > highest if least else value < lowest:
        found, who = "which no candidate can be", "every candidate would fail"
    else:
        return
    said = f"{rule.metric} {rule.kind.replace('-', ' ')} {value:g}"
    raise Misconfigured(
        place(path, "rules", position, "value"), found=f"{said}, {found}",
        expected=f"a value within {lowest:g} and {highest:g}: with this one {who}",
        mend="Write it in the metric's own units: nine of ten are value = 0.9.",
    )  # fmt: skip


def refuse_diagnostics(definition: SuiteDefinition, path: Path) -> None:
    """Raises Misconfigured, with the line in `path`, for a rule or guard over a diagnostic, or over a slope as if one
    side of it were better. A perfectly calibrated model of 60 cases has an ECE of .12: nothing can be decided by it.
    """
    demanded: list[tuple[tuple[Key, ...], str, str]] = [
        (("rules", i, "metric"), rule.metric, rule.kind)
        for i, rule in enumerate(definition.rules)
        if rule.kind != "invariant"
    ]
    demanded += [
        (("guards", "metrics"), each, "guard") for each in (definition.guards.metrics if definition.guards else [])
    ]
    for keys, name, kind in demanded:
        metric = parse(name)
        if metric.use == "diagnostic":
            proper = [each for each in CALIBRATION if definition.task in parse(each).tasks] or ["choice_log_loss"]
            raise Misconfigured(
                place(path, *keys), found=f"a rule over {name!r}, which is a diagnostic: it is biased by how few cases "
                "and how many bins there are",
                expected="a rule over "
                + ", ".join([*proper, "calibration_slope_error", "calibration_slope", "calibration_intercept"]),
                mend=f"Leave {name} under `report`; hold {proper[0]} by no-worse, the slope by at-least and at-most.",
            )  # fmt: skip
        if metric.use == "bounds" and kind in ("no-worse", "guard"):
            right = f"{metric.target:g}"
            distance = f"{metric.base}_error" + ("" if metric.label is None else f"[{metric.label}]")
            raise Misconfigured(
                place(path, *keys), found=f"{name!r} under {kind}, and neither side of {right} is better",
                expected=f"an at-least and an at-most rule around it, or {distance}, how far it is from {right}",
                mend=f"Write {distance}, or two rules with a value on either side of {right}.",
            )  # fmt: skip


def check_demands(definition: SuiteDefinition, path: Path, declared: Sequence[DeclaredSlice]) -> None:
    """Raises Misconfigured for a policy that may not be frozen, over the slices that it `declared`.

    No rule at all; a critical slice that no headline or floor rule judges; guards over nothing, or with so few
    draws that none could reject: the smallest p-value, 1 / (draws + 1), times the family must reach alpha.
    """
    if not definition.rules and not definition.guards:
        raise Misconfigured(
            str(path), found="no rule", expected="at least one [[rules]] entry: without one every candidate would pass",
            mend=f'Add [[rules]] with id = "headline", kind = "no-worse", metric = "{definition.metrics.primary}", '
            "margin = 0.02.",
        )  # fmt: skip
    judged = {rule.slice for rule in definition.rules if rule.kind != "invariant"}
    for each in declared:
        if each.critical and each.name not in judged:
            raise Misconfigured(
                place(path, "slices", each.position, "critical"), found=f"critical slice {each.name!r} has no rule",
                expected="a no-worse, at-least or at-most rule over every critical slice",
                mend=f'Add [[rules]] with slice = "{each.name}", or take `critical` out.',
            )  # fmt: skip
    if definition.guards:
        guarded = len(declared) if definition.guards.slices == "every" else len(definition.guards.slices)
        _check_draws(definition, path, guarded * len(definition.guards.metrics))


def _check_draws(definition: SuiteDefinition, path: Path, members: int) -> None:
    if not members:
        raise Misconfigured(
            place(path, "guards"), found="guards over no slice", expected="at least one slice under guard",
            mend='Declare [[slices]], or write slices = ["all"] under [guards].',
        )  # fmt: skip
    alpha = 1 - definition.uncertainty.level
    draws = definition.uncertainty.draws
    # Rounded, for 1 - 0.9 is a little less than 0.1.
    needed = math.ceil(round(2 * members / alpha, 6))
    if draws < needed:
        raise Misconfigured(
            place(path, "uncertainty", "draws"), found=f"{draws} draws for {members} guards at alpha {alpha:g}",
            expected=f"at least {needed}: with fewer no guard could be shown worse",
            mend=f"Write draws = {needed} under [uncertainty].",
        )  # fmt: skip


def check_counts(definition: SuiteDefinition, cases: Mapping[str, int], path: Path) -> None:
    """Raises Misconfigured for an invariant that allows as many cases as its slice has promotion cases."""
    for position, rule in enumerate(definition.rules):
        if rule.kind == "invariant" and (rule.value or 0.0) >= cases[rule.slice]:
            raise Misconfigured(
                place(path, "rules", position, "value"),
                found=f"{rule.value:g} cases {rule.metric}, and {rule.slice!r} has {cases[rule.slice]}",
                expected="fewer than there are: with this count no candidate would fail",
                mend="Invariants are exact: write value = 0.",
            )  # fmt: skip


def idle(definition: SuiteDefinition) -> list[str]:
    """Of rules that no candidate can fail, what is said of each: their margin or bound is just all that can be."""
    said = []
    for rule in definition.rules:
        if rule.kind == "invariant":
            continue
        name, demand = parse(rule.metric), rule.kind.replace("-", " ")
        if rule.kind == "no-worse" and rule.margin == name.span:
            said.append(f"rule {rule.id!r} has a margin of {rule.margin:g}, all that {rule.metric} can lose")
        elif rule.kind != "no-worse" and rule.value == (name.lowest if rule.kind == "at-least" else name.highest):
            said.append(f"rule {rule.id!r} wants {rule.metric} {demand} {rule.value:g}, which it always is")
    return [f"{each}: no candidate fails it" for each in said]
