"""What stands beside measures of calibration: the bins, and what is lost by answering more."""

from collections.abc import Iterator

import numpy as np

from harness.calibration.decision import risk_coverage
from harness.calibration.record import CalibratorRecord, applied
from harness.calibration.reliability import BINS, binned, edges_of
from harness.metric.calibration import Forecasts, Sample
from harness.metric.form import Floats, scored
from harness.output.companion import Cell, Companion
from harness.store.connection import Connection
from harness.suite.lock import Lock
from harness.verb.calibration_cases import Asked, evidence
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
    yield reliability_companion(Sample(sample.x[counted].ravel(), sample.y[counted].ravel()), of)
    yield _coverage(forecasts.sure["confidence"][counted], forecasts.loss[counted])


def reliability_companion(sample: Sample, of: str, valid_for: str | None = None) -> Companion:
    """Forecasts x and outcomes y [r] by bin; `of` what they are, and what they are valid for."""
    found = binned(sample.x, sample.y, edges_of(sample.x, BINS))
    with np.errstate(invalid="ignore", divide="ignore"):
        said, came = found.confidence / found.counts, found.hits / found.counts
    means = zip(*(each.tolist() for each in (said, came, found.gaps)), strict=True)
    ends = zip(found.edges[:-1].tolist(), found.edges[1:].tolist(), found.counts.astype(np.int64).tolist(), strict=True)
    rows: list[tuple[Cell, ...]] = [
        (*place, *(number(each) for each in values)) for place, values in zip(ends, means, strict=True)
    ]
    brier = float(np.mean((sample.x - sample.y) ** 2))
    return Companion(
        "reliability", "Reliability",
        f"What is said of {of}, and how often it comes true; bins hold what is above their lower edge and up to their "
        f"upper one, the first also 0. Brier score {brier:.4f}; ECE {found.ece:.4f} and MCE {found.mce:.4f} are "
        "diagnostics, higher the fewer cases." + (f" It speaks of {valid_for}." if valid_for else ""),
        ("above", "to", "forecasts", "said", "came true", "gap"), tuple(rows),
    )  # fmt: skip


def ranked_companions(
    connection: Connection, run: str, side: str, lock: Lock, suite: str, calibrator: CalibratorRecord
) -> tuple[Companion, ...]:
    """Of a release that ranks: what its calibrator says of the promotion cases, and what comes true."""
    of: Asked = "answerability" if calibrator.of == "answerability" else "relevance"
    found = evidence(connection, run, side, lock, suite, calibrator.score_type, of)
    found = found.taken(np.array(lock.roles, dtype=object)[found.case] == "promotion")
    said, came = applied(calibrator, found.scores)[:, 0], found.gold[:, 0].astype(np.float64)
    usable = np.isfinite(said)
    if not usable.any():
        return ()
    whose = "a judged document" if of == "relevance" else "a question"
    sample = Sample(said[usable], came[usable])
    return (reliability_companion(sample, f"whether {whose} is {found.labels[0]}", calibrator.valid_for),)


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
