"""What a rule that chooses a threshold is told, and what it gives."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal

from harness.errors import Misconfigured
from harness.release.threshold import Ground, Rule

OF_LABELS: tuple[Rule, ...] = ("costs", "capacity", "f1")
OF_RANKINGS: tuple[Rule, ...] = ("costs", "coverage", "risk")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the rule is told; None for what it needs not."""

    false_positive: float | None
    false_negative: float | None
    label_costs: Mapping[str, tuple[float, float]] | None
    capacity: float | None
    coverage: float | None
    risk: float | None
    ground: Literal["confidence", "margin", "entropy"] | None


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a rule gives, and what it comes to on the cases it was fitted on."""

    by: dict[str, float | dict[str, list[float]]]
    reached: dict[str, float]
    threshold: float | list[float] | None = None
    labels: tuple[str, ...] = ()
    ground: Ground | None = None
    below: float | None = None


# What each rule hangs on, beside its ground.
READ: dict[Rule, tuple[str, ...]] = {
    "costs": ("false_positive", "false_negative", "label_costs"),
    "capacity": ("capacity",),
    "f1": (),
    "coverage": ("coverage",),
    "risk": ("risk",),
}


def require_read(rule: Rule, asked: Asked, *, ranked: bool) -> None:
    """Raises Misconfigured for what was said and the rule would not read."""
    read = {*READ[rule], *(("ground",) if rule in ("coverage", "risk") and not ranked else ())}
    said = {each.name: getattr(asked, each.name) for each in fields(asked)}
    for name, value in said.items():
        if value is not None and name not in read:
            option = name.replace("_", "-")
            why = f"the rule {rule} of a suite in which documents are ranked" if ranked else f"the rule {rule}"
            options = ", ".join(f"--{each.replace('_', '-')}" for each in said if each in read)
            raise Misconfigured(
                f"--{option}", found=f"an option that {why} does not read", expected=options or "none of its own",
                mend=f"Leave --{option} out, or name the rule that is meant.",
            )  # fmt: skip


def told(rule: Rule, asked: Asked) -> dict[str, float | dict[str, list[float]]]:
    """Of what the rule hangs on, what was said."""
    said = {"false_positive": asked.false_positive, "false_negative": asked.false_negative, "capacity": asked.capacity,
            "coverage": asked.coverage, "risk": asked.risk}  # fmt: skip
    of: dict[Rule, tuple[str, ...]] = {"costs": ("false_positive", "false_negative")}
    found: dict[str, float | dict[str, list[float]]] = {
        name: value for name in of.get(rule, (rule,)) if (value := said.get(name)) is not None
    }
    if rule == "costs" and asked.label_costs:
        found["label_costs"] = {label: list(pair) for label, pair in asked.label_costs.items()}
    return found


def require_labels(asked: Asked, labels: Sequence[str]) -> None:
    """Raises Misconfigured for costs of what is no label."""
    strange = sorted(set(asked.label_costs or {}) - set(labels))
    if strange:
        raise Misconfigured(
            "--label-costs", found=f"costs of {', '.join(strange)}", expected=f"one of {', '.join(labels)}",
            mend="Name a label as the data spell it.",
        )  # fmt: skip


def costs_of(label: str, asked: Asked) -> tuple[float, float]:
    """Of a false alarm and a miss, the label's own where it has some."""
    own = (asked.label_costs or {}).get(label)
    return own or (needed("false_positive", asked.false_positive), needed("false_negative", asked.false_negative))


def needed(name: str, value: float | None) -> float:
    """Raises Misconfigured where nothing was said."""
    if value is None:
        raise Misconfigured(
            f"--{name.replace('_', '-')}",
            found="nothing",
            expected="a number that the rule hangs on",
            mend=f"Give --{name.replace('_', '-')}.",
        )
    return value
