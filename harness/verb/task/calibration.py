"""What stands beside measures of calibration: the bins, and what is lost by answering more."""

from collections.abc import Iterator

import numpy as np

from harness.calibration.decision import risk_coverage
from harness.calibration.reliability import BINS, binned, edges_of
from harness.metric.calibration import Forecasts, Sample
from harness.metric.form import Floats, scored
from harness.output.companion import Cell, Companion
from harness.verb.task.side import number

COVERAGES = 20


def calibration_companions(forecasts: Forecasts) -> Iterator[Companion]:
    """Of the scored cases; none where there are none."""
    counted = scored(forecasts.status)
    if not counted.any():
        return
    sample, of = forecasts.likeliest, "the likeliest label" if forecasts.exclusive else "every label"
    if forecasts.positive is not None:
        every, column = forecasts.every, [forecasts.positive]
        sample, of = Sample(every.x[:, column], every.y[:, column]), "the positive label"
    found = binned(sample.x[counted].ravel(), sample.y[counted].ravel(), edges_of(sample.x[counted].ravel(), BINS))
    rows: list[tuple[Cell, ...]] = [
        (float(found.edges[i]), float(found.edges[i + 1]), int(found.counts[i]),
         *(number(float(each[i]) / n if (n := found.counts[i]) else np.nan) for each in (found.confidence, found.hits)),
         number(float(found.gaps[i])))
        for i in range(len(found.counts))
    ]  # fmt: skip
    yield Companion(
        "reliability", "Reliability",
        f"What is said of {of}, and how often it comes true; bins hold what is above their lower edge and up to their "
        f"upper one, the first also 0. ECE {found.ece:.4f}, MCE {found.mce:.4f}: diagnostics, higher the fewer cases.",
        ("above", "to", "forecasts", "said", "came true", "gap"), tuple(rows),
    )  # fmt: skip
    yield _coverage(forecasts.sure["confidence"][counted], forecasts.loss[counted])


def _coverage(sure: Floats, loss: Floats) -> Companion:
    curve = risk_coverage(sure, loss)
    wanted = np.arange(1, COVERAGES + 1) / COVERAGES
    places = np.unique(np.searchsorted(curve.coverage, wanted - 1e-12))
    reached, risks = curve.coverage[places], curve.risk[places]
    answered = np.rint(reached * len(sure)).astype(np.int64)
    least = np.sort(sure)[::-1][answered - 1]
    rows = zip(*(each.tolist() for each in (reached, answered, least, risks, 1 - risks)), strict=True)
    return Companion(
        "coverage", "Risk and coverage",
        f"Were only the surest answered: how many, from which confidence on, and how many of these wrongly. AURC "
        f"{curve.aurc:.4f}. Cases of one confidence are answered together.",
        ("coverage", "answered", "confidence from", "risk", "right of answered"), tuple(rows),
    )  # fmt: skip
