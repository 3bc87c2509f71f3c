"""What a task's judge is given of one side, and what it gives back."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from harness.calibration.record import CalibratorRecord
from harness.errors import Misconfigured
from harness.identity import Json
from harness.metric.calibration import NEVER, Abstain
from harness.metric.form import Policy, Word
from harness.metric.name import MetricName, parse
from harness.output.companion import Cell, Companion
from harness.output.contribution import Contribution
from harness.store.read_task import GoldRows, SaidRows, taken
from harness.suite.definition import MetricPolicy

Bools = NDArray[np.bool_]

NEAR = "near-boundary"
"""The flag of a case that is wrong by no more than the suite's `boundary_gap`."""


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """One side over every case of a suite. Shapes: roles [n]; slices, members [n] by name.

    `labels` are the data's, `beyond` what the models of a run have besides. `meaning` is the release's, and so is the
    `calibrator`, through which its scores become probabilities.
    """

    gold: GoldRows
    said: SaidRows
    roles: NDArray[np.object_]
    slices: Mapping[str, Bools]
    policy: MetricPolicy
    meaning: Mapping[str, Json]
    labels: tuple[str, ...] = ()
    beyond: tuple[str, ...] = ()
    calibrator: CalibratorRecord | None = None

    @property
    def promotion(self) -> "Asked":
        """The promotion cases alone; where all are, this very object, so that nobody reads them twice."""
        index = np.flatnonzero(self.roles == "promotion")
        if len(index) == len(self.roles):
            return self
        return replace(
            self,
            gold=taken(self.gold, index),
            said=taken(self.said, index),
            roles=self.roles[index],
            slices={name: members[index] for name, members in self.slices.items()},
        )

    @property
    def classes(self) -> tuple[str, ...]:
        """The data's labels, then those that only a model of the run has."""
        return (*self.labels, *self.beyond)

    def of(self, record: str, name: str) -> Json:
        """A value of the release's meaning; None where it says nothing."""
        found = self.meaning.get(record)
        return found.get(name) if isinstance(found, Mapping) else None

    @property
    def kind(self) -> str:
        """What the numbers are: a score type."""
        return str(self.of("score", "type"))

    @property
    def abstain(self) -> Abstain:
        """When the release says nothing, by how sure it is; a gap between scores is no ground of labels and choices."""
        decided = self.of("score", "decision")
        if not isinstance(decided, Mapping) or decided.get("ground") is None:
            return NEVER
        if decided["ground"] in ("gap", "answerability"):
            raise Misconfigured(
                "[decision] abstain", found=f"the ground {decided['ground']}, which is of answers and of rankings",
                expected="confidence, margin or entropy", mend="Name one, with the value below which nothing is said.",
            )  # fmt: skip
        return Abstain(str(decided["ground"]), float(cast(float, decided["below"])))

    def words(self, name: MetricName) -> Policy:
        """What stands where a metric is 0/0: as its own table says, else as the suite does."""
        own = self.policy.per_metric.get(str(name))
        division: Word = "zero" if name.label is None else "leave-out"
        return Policy(
            absent=(own and own.absent) or self.policy.absent,
            division=(own and own.division) or self.policy.division or division,
            empty=(own and own.empty) or self.policy.empty,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """What a side's outputs come to. Shapes: prediction and gold [n] as one reads them, probability [n]; flags, by the
    name of what a case is, [n].
    """

    contributions: dict[str, Contribution]
    prediction: list[str | None]
    gold: list[str | None]
    probability: NDArray[np.float64]
    flags: dict[str, Bools] = field(default_factory=dict)
    companions: tuple[Companion, ...] = ()


def parsed(names: tuple[str, ...]) -> dict[str, MetricName]:
    """Metrics by the names under which a suite has them."""
    return {name: parse(name) for name in names}


def number(value: float) -> Cell:
    """A number as a cell; None where it is none."""
    return None if math.isnan(value) else float(value)
