"""What a rule that chooses a threshold is told, and what it gives."""

from collections.abc import Mapping
from dataclasses import dataclass
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
    ground: Literal["confidence", "margin", "entropy"]


@dataclass(frozen=True, slots=True)
class Chosen:
    """What a rule gives, and what it comes to on the cases it was fitted on."""

    by: dict[str, float | dict[str, list[float]]]
    reached: dict[str, float]
    threshold: float | list[float] | None = None
    labels: tuple[str, ...] = ()
    ground: Ground | None = None
    below: float | None = None


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
            mend=f"Give --{name}.",
        )
    return value
