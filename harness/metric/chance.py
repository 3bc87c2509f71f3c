"""Metrics of one probability a case, that something holds: that a pair is the same, that the corpus answers a question.

Also of what is lost by acting on it: which cases are answered, the surest first, and how many of these wrongly.
"""

from dataclasses import dataclass, replace

import numpy as np

from harness.metric import calibration
from harness.metric.calibration import ANSWERED, NEVER, SURENESS, Abstain, Forecasts, Sample
from harness.metric.form import LARGEST, Bools, Floats, Objects, mean_of, scored
from harness.metric.name import MetricName
from harness.metric.probability import surprise
from harness.output.contribution import Contribution
from harness.output.value import Status

MEASURED = (*(each for each in calibration.MEASURED if each not in ("ece_top_label", "ece_classwise")),
            "log_loss", "brier_binary")  # fmt: skip


UNSURE = -LARGEST
"""Less sure than any score or probability."""


@dataclass(frozen=True, slots=True, eq=False)
class Stated:
    """What one side says of every case, and what holds.

    Shapes: all [n]. `chance`: NaN where the side gives no probability. `held`: 1 where it holds, else 0. `sure` by
    ground, the higher the surer; NaN where nothing is said. `loss`: 1 where what is done by it is wrong.
    """

    case_ids: Objects
    chance: Floats
    held: Floats
    sure: dict[str, Floats]
    loss: Floats
    status: Objects
    abstain: Abstain = NEVER

    def taken(self, cases: Bools) -> "Stated":
        """The same of some cases [n]."""
        return Stated(
            self.case_ids[cases], self.chance[cases], self.held[cases],
            {name: each[cases] for name, each in self.sure.items()}, self.loss[cases], self.status[cases], self.abstain,
        )  # fmt: skip

    def probable(self) -> "Stated":
        """With a status that says of which cases the side gives no probability."""
        lacks = scored(self.status) & np.isnan(self.chance)
        return replace(self, status=np.where(lacks, Status.UNDEFINED, self.status).astype(object))


def forecasts(stated: Stated) -> Forecasts:
    """As measures of calibration read them. A case of which nothing is said is less sure than any other."""
    every = Sample(np.nan_to_num(stated.chance)[:, None], stated.held[:, None])
    return Forecasts(
        case_ids=stated.case_ids,
        likeliest=every,
        every=every,
        positive=0,
        exclusive=False,
        sure=stated.sure,
        loss=stated.loss,
        status=stated.status,
        abstain=stated.abstain,
    )


def contribution(name: MetricName, stated: Stated) -> Contribution:
    """What each case brings to a metric of its probability; undefined where the side gives none.

    `aurc` and `risk_at_coverage` go by how sure a side is, and need no probability.
    """
    if name.base in ANSWERED:
        return calibration.contribution(name, forecasts(stated))
    if name.base in SURENESS:
        return calibration.contribution(name, forecasts(replace(stated, sure=finite(stated.sure))))
    stated = stated.probable()
    if name.base == "log_loss":
        values = surprise(np.where(stated.held == 1, stated.chance, 1 - stated.chance))
        return mean_of(str(name), stated.case_ids, values, stated.status)
    if name.base == "brier_binary":
        return mean_of(str(name), stated.case_ids, (stated.chance - stated.held) ** 2, stated.status)
    return calibration.contribution(name, forecasts(stated))


def finite(sure: dict[str, Floats]) -> dict[str, Floats]:
    """How sure a side is, with a number below all others where nothing is said."""
    return {name: np.where(np.isnan(each), UNSURE, each) for name, each in sure.items()}
