"""What stands beside measures of calibration: the bins, and what is lost by answering more."""

from collections.abc import Iterator, Mapping

import numpy as np

from harness.calibration.decision import risk_coverage
from harness.calibration.record import CalibratorRecord, applied
from harness.calibration.reliability import BINS, binned, edges_of
from harness.metric.calibration import NEVER, Forecasts, Sample
from harness.metric.chance import UNSURE, Stated, finite, forecasts
from harness.metric.form import Bools, Floats, scored
from harness.output.companion import Cell, Companion
from harness.store.connection import Connection
from harness.store.read import find_run
from harness.suite.lock import Lock
from harness.verb.calibration_cases import Evidence, evidence
from harness.verb.slices import members_of
from harness.verb.task.side import number

COVERAGES = 20
SLICE_RELIABILITY = "slice-reliability"
ENOUGH = 20
"""Forecasts below which a report shows no reliability of a slice."""


def abstained(found: Forecasts) -> dict[str, Bools]:
    """Which cases nothing is said of, as a flag; none where something always is."""
    if found.abstain is NEVER:
        return {}
    return {"abstained": scored(found.status) & (found.answered == 0)}


def calibration_companions(
    forecasts: Forecasts, slices: Mapping[str, Bools], valid_for: str | None = None, of: str | None = None
) -> Iterator[Companion]:
    """Of the scored cases, also by slice [n]; none where there are none. `of`: what is said to hold, if no label."""
    counted = scored(forecasts.status)
    if not counted.any():
        return
    sample, told = forecasts.likeliest, "the likeliest label" if forecasts.exclusive else "every label"
    if forecasts.positive is not None:
        every, column = forecasts.every, [forecasts.positive]
        sample, told = Sample(every.x[:, column], every.y[:, column]), "the positive label"
    yield reliability_companion(_of(sample, counted), of or told, valid_for)
    yield slice_companion(sample, counted, slices)
    yield coverage_companion(forecasts.sure["confidence"][counted], forecasts.loss[counted])


def _of(sample: Sample, members: Bools) -> Sample:
    return Sample(sample.x[members].ravel(), sample.y[members].ravel())


def slice_companion(sample: Sample, counted: Bools, slices: Mapping[str, Bools]) -> Companion:
    """The bins of every slice that have a forecast. Shapes: sample [n, k]; counted and slices [n]."""
    rows: list[tuple[Cell, ...]] = []
    for name, members in slices.items():
        within = _of(sample, counted & members)
        if not len(within.x):
            continue
        found = binned(within.x, within.y, edges_of(within.x, BINS))
        for place in np.flatnonzero(found.counts).tolist():
            low, high, n = found.edges[place], found.edges[place + 1], found.counts[place]
            rows.append((
                name, f"{'(' if place else '['}{low:.3f}, {high:.3f}]", int(n), float(found.confidence[place] / n),
                float(found.hits[place] / n), float(found.gaps[place]),
            ))  # fmt: skip
    return Companion(
        SLICE_RELIABILITY, "Reliability by slice",
        "As above, in each slice; a gap of few forecasts says little. The report leaves out slices of fewer than "
        f"{ENOUGH} forecasts; the view reliability_bins has all.",
        ("slice", "bin", "forecasts", "said", "came true", "gap"), tuple(rows),
    )  # fmt: skip


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
        "diagnostics, higher the fewer cases. The report leaves out empty bins."
        + (f" The calibrator speaks of {valid_for}." if valid_for else ""),
        ("above", "to", "forecasts", "said", "came true", "gap"), tuple(rows),
    )  # fmt: skip


def ranked_companions(
    connection: Connection, run: str, side: str, lock: Lock, calibrator: CalibratorRecord | None, stated: Stated | None
) -> Iterator[Companion]:
    """What stands beside the metrics of a release that ranks: what its calibrator says, and what comes true."""
    promotion = np.array([each == "promotion" for each in lock.roles], dtype=bool)
    within = {"all": set(lock.case_ids)} | {name: set(ids) for name, ids in members_of(connection, run, lock).items()}
    slices = {name: np.array([case in ids for case in lock.case_ids], dtype=bool) for name, ids in within.items()}
    if calibrator is not None and calibrator.of == "relevance":
        suite = find_run(connection, run).suite_digest
        found = evidence(connection, run, side, lock, suite, calibrator.score_type, "relevance")
        yield from _relevance_companions(found.taken(promotion[found.case]), calibrator, slices)
    elif stated is not None:
        valid_for = None if calibrator is None else calibrator.valid_for
        yield from _answerability_companions(
            stated.taken(promotion), {name: each[promotion] for name, each in slices.items()}, valid_for
        )


def _relevance_companions(
    found: Evidence, calibrator: CalibratorRecord, slices: Mapping[str, Bools]
) -> Iterator[Companion]:
    """What a calibrator says of judged documents of promotion cases, and what comes true; slices [n] of cases."""
    said = applied(calibrator, found.scores)
    usable = np.isfinite(said[:, 0])
    if not usable.any():
        return
    sample = Sample(said, found.gold.astype(np.float64))
    of = f"whether a judged document is {found.labels[0]}"
    yield reliability_companion(_of(sample, usable), of, calibrator.valid_for)
    yield slice_companion(sample, usable, {name: members[found.case] for name, members in slices.items()})


def _answerability_companions(
    stated: Stated, slices: Mapping[str, Bools], valid_for: str | None
) -> Iterator[Companion]:
    """What a release that ranks says of promotion cases, and what answering them loses."""
    forecast = forecasts(stated.probable())
    if scored(forecast.status).any():
        sample, counted = forecast.every, scored(forecast.status)
        yield reliability_companion(_of(sample, counted), "whether a question is answerable", valid_for)
        yield slice_companion(sample, counted, slices)
    counted = scored(stated.status)
    if counted.any():
        sure = {"sure": stated.sure["confidence"] if np.isnan(stated.chance).all() else stated.chance}
        yield coverage_companion(finite(sure)["sure"][counted], stated.loss[counted])


def coverage_companion(sure: Floats, loss: Floats) -> Companion:
    """Of how sure a side is of each case [n] and what it loses by answering."""
    curve = risk_coverage(sure, loss)
    wanted = np.arange(1, COVERAGES + 1) / COVERAGES
    places = np.unique(np.searchsorted(curve.coverage, wanted - 1e-12))
    reached, risks = curve.coverage[places], curve.risk[places]
    answered = np.rint(reached * len(sure)).astype(np.int64)
    least = np.sort(sure)[::-1][answered - 1]
    least = np.where(least == UNSURE, np.nan, least)
    columns = ([number(value) for value in each] for each in (least, risks, 1 - risks))
    rows = zip(reached.tolist(), answered.tolist(), *columns, strict=True)
    return Companion(
        "coverage", "Risk and coverage",
        f"Were only the surest answered: how many, from which confidence on, and how many of these wrongly. AURC "
        f"{curve.aurc:.4f}. Cases of one confidence are answered together.",
        ("coverage", "answered", "confidence from", "risk", "right of answered"), tuple(rows),
    )  # fmt: skip
