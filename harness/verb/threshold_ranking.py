"""When a release that ranks says nothing: below which probability that the corpus answers the question."""

from typing import Literal

import numpy as np

from harness.calibration.decision import Abstention, abstain_for_coverage, abstain_for_risk, cost_threshold
from harness.errors import Misconfigured
from harness.metric.chance import Stated
from harness.release.threshold import Rule
from harness.store import read
from harness.verb.calibrate import Fitting
from harness.verb.measure import measured
from harness.verb.place import Place
from harness.verb.task.rankings import GROUND
from harness.verb.threshold_rule import Asked, Chosen, costs_of, needed, require_labels, told

LABEL = "answerable"
"""What a question is that the corpus answers."""


def stated_by(place: Place, run: str, side: Literal["candidate", "parent"], fitting: Fitting) -> Stated:
    """What the release says of the calibration cases. Raises Misconfigured where it has no probability to say."""
    with place.store.reading() as connection:
        stated = measured(connection, read.find_run(connection, run).run, side, fitting.lock).stated
    if stated is None or np.isnan(stated.chance).all():
        raise Misconfigured(
            "--threshold", found=f"no calibrator of answerability in release {fitting.release.name!r}",
            expected="one: below which probability nothing is said hangs on it",
            mend="Fit one with `harness calibrate RUN --family platt --of answerability`, name it in release.toml and "
            "run the release again.",
        )  # fmt: skip
    return stated.taken(np.isin(np.arange(len(stated.chance)), fitting.evidence.case))


def of_rankings(stated: Stated, rule: Rule, asked: Asked) -> Chosen:
    """Below which probability of an answer nothing is said."""
    loss = stated.loss
    if rule == "costs":
        require_labels(asked, (LABEL,))
        below = cost_threshold(*costs_of(LABEL, asked))
        given = stated.chance >= below
        reached = Abstention(below, float(given.mean()), float(loss[given].mean()) if given.any() else 0.0)
    elif rule == "coverage":
        reached = abstain_for_coverage(stated.chance, loss, needed("coverage", asked.coverage))
    else:
        reached = abstain_for_risk(stated.chance, loss, needed("risk", asked.risk))
    return Chosen(
        told(rule, asked), {"coverage": reached.coverage, "risk": reached.risk}, ground=GROUND, below=reached.below
    )
