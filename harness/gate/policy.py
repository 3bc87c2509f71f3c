"""What a suite demands, as the gate reads it: the frozen rules with the slices they speak of."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from harness.gate.rule import Guards, Rule, Uncertainty
from harness.identity import Json


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules and everything that bears on them. `guarded`: the slices under guard, in the suite's order.

    `judged`: for a metric's name, the name under which its Judged@k was measured; none for other tasks. `losses`:
    metrics of which lower is better.
    """

    rules: tuple[Rule, ...]
    guards: Guards | None
    guarded: tuple[str, ...]
    uncertainty: Uncertainty
    critical: frozenset[str]
    min_support: Mapping[str, int]
    missing: str
    max_judged_gap: float | None = None
    budget: int | None = None
    judged: Mapping[str, str] = field(default_factory=dict)
    span: Mapping[str, float] = field(default_factory=dict)
    losses: frozenset[str] = frozenset()

    @property
    def members(self) -> tuple[tuple[str, str], ...]:
        """(slice, metric) of every declared guard."""
        return tuple((name, metric) for name in self.guarded for metric in self.guards.metrics) if self.guards else ()


@dataclass(frozen=True, slots=True, eq=False)
class Flags:
    """Per promotion case, what happened besides the value. Shapes: each [n] bool, by the name of the count."""

    candidate: Mapping[str, NDArray[np.bool_]]
    parent: Mapping[str, NDArray[np.bool_]]


@dataclass(frozen=True, slots=True)
class Subject:
    """What a finding is about: the same rule failing for the same contents on the same data is the same finding."""

    data: str
    candidate: str
    parent: str | None

    def as_record(self) -> dict[str, Json]:
        return {"data": self.data, "candidate": self.candidate, "parent": self.parent}
