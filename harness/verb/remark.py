"""What a decision says besides its rules: one sentence each, from what is stored."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from harness.gate.exposure import Reading
from harness.lifecycle.state import State, evidence
from harness.store.connection import Connection
from harness.store.read import ReleaseRecord, case_marks
from harness.store.read_ranking import CandidateSet
from harness.suite.lock import Lock
from harness.verb.measure import Measured
from harness.verb.parameter import calibrator_of, in_words, threshold_in_words, threshold_of
from harness.verb.place import Place


def reading_remarks(reading: Reading) -> Iterator[str]:
    """Why a decision is exploratory."""
    if reading.changed_policy:
        yield (
            "Exploratory: rules, slices, margins or metrics are not those under which this candidate's promotion "
            "outcomes were first read."
        )
    if reading.changed_parameters:
        yield (
            "Exploratory: these very outcomes were read before under another threshold, calibrator or abstention, or "
            "the present one is a number that no record shows to be fitted on the calibration role."
        )


def side_remarks(releases: Mapping[str, ReleaseRecord], lock: Lock) -> Iterator[str]:
    """What cannot be said without a parent, or of a recorded side beside a live one."""
    if "parent" not in releases:
        left = sum(rule.kind == "no-worse" for rule in lock.definition.rules)
        guards = len(lock.guarded) * len(lock.definition.guards.metrics if lock.definition.guards else [])
        at_run = [each.name for each in lock.declared if each.from_parent]
        if at_run:
            yield f"No parent, so no case in what only it fixes: {', '.join(at_run)}."
        yield f"No parent, so no bundle; not judged: no-worse rules {left}, guards {guards}."
    if len({each.interaction == "recorded" for each in releases.values()}) > 1:
        yield "One side is recorded: its tuple is declared, not observed, and the two are not parity-proven."


def parameter_remarks(connection: Connection, releases: Mapping[str, ReleaseRecord], lock: Lock) -> Iterator[str]:
    """Which role fitted what, on record."""
    marks = case_marks(connection, lock.digest)
    for release in releases.values():
        calibrator = calibrator_of(release, lock, marks)
        if calibrator is not None:
            yield in_words(release, calibrator)
        threshold = threshold_of(release, lock, marks)
        if threshold is not None:
            yield threshold_in_words(release, threshold)


def candidate_remarks(given: Mapping[str, CandidateSet]) -> tuple[str, ...]:
    """What the last stages were given, by digest, and whether both were given the same."""
    shown = {
        side: f"{each.pairs} pairs of {each.cases} cases, candidates {each.digest[:12]}" for side, each in given.items()
    }
    if len(given) < 2:
        return tuple(f"The {side}'s last stage was given {told}." for side, told in shown.items())
    if given["candidate"].digest == given["parent"].digest:
        return (f"Both last stages were given the same {shown['candidate']}.",)
    return (
        f"The last stages were given other documents: the candidate's {shown['candidate']}, the parent's "
        f"{shown['parent']}; what differs is not the last stage alone.",
    )


def ceiling_remarks(sides: Mapping[str, Measured], promotion: NDArray[np.bool_]) -> Iterator[str]:
    """How much of what is relevant the last stages could reach at all."""
    for side, measured in sides.items():
        if measured.ceiling is not None and (scored := measured.ceiling.scored & promotion).any():
            reached = measured.ceiling.values[scored]
            yield (
                f"What the {side}'s last stage was given holds {reached.mean():.4f} of the relevant documents "
                f"(recall_ceiling), all of them in {int((reached == 1).sum())} of {len(reached)} cases."
            )


def parent_remark(place: Place, releases: Mapping[str, ReleaseRecord], lock: Lock) -> tuple[str, ...]:
    """Whether the parent passed under another lock than the one that decides now."""
    if "parent" not in releases:
        return ()
    parent = releases["parent"]
    entries = evidence(place.root / parent.place, parent.content_id, State.EVALUATED)
    passed = {str(entry["suite"]) for entry in entries if "suite" in entry}
    if not passed or lock.digest in passed:
        return ()
    shown = ", ".join(sorted(digest[:12] for digest in passed))
    return (f"The parent passed under another lock ({shown}); this one is {lock.digest[:12]}.",)
