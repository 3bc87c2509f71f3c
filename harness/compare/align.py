"""Join two sides by case ID."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.compare.group import Bools, Codes, Floats
from harness.errors import Unpairable
from harness.output.value import CaseValues, Status

SHOWN = 3


@dataclass(frozen=True, slots=True, eq=False)
class Aligned:
    """One metric of both sides on the same cases, in the candidate's order.

    Shapes: all [n]; values are NaN unless scored. `paired`: both sides scored the case.
    """

    metric: str
    case_ids: NDArray[np.object_]
    candidate: Floats
    parent: Floats
    candidate_status: NDArray[np.object_]
    parent_status: NDArray[np.object_]

    @property
    def paired(self) -> Bools:
        both = (self.candidate_status == Status.SCORED) & (self.parent_status == Status.SCORED)
        return np.asarray(both, dtype=bool)


def align(candidate: CaseValues, parent: CaseValues) -> Aligned:
    """Pair two sides' values of one metric. Raises Unpairable where metrics or case IDs differ, or an ID repeats."""
    if candidate.metric != parent.metric:
        raise Unpairable(
            "two sides",
            found=f"{candidate.metric} of the candidate and {parent.metric} of the parent",
            expected="the same metric",
            mend="Measure both sides under one suite.",
        )
    place = join(candidate.case_ids, parent.case_ids, candidate.metric)
    return Aligned(
        metric=candidate.metric,
        case_ids=candidate.case_ids,
        candidate=candidate.values,
        parent=parent.values[place],
        candidate_status=candidate.status,
        parent_status=parent.status[place],
    )


def join(candidate_ids: NDArray[np.object_], parent_ids: NDArray[np.object_], subject: str) -> Codes:
    """Where each of the candidate's cases stands among the parent's: parent_ids[join(...)] equals candidate_ids.

    Raises Unpairable where an ID repeats on one side, or the two sides are not the same set.
    """
    candidate_place = _places(candidate_ids, f"{subject}: candidate")
    parent_place = _places(parent_ids, f"{subject}: parent")
    alone = [
        f"{len(extra)} case IDs of the {side} alone ({_first(extra)})"
        for side, extra in (
            ("candidate", [case for case in candidate_place if case not in parent_place]),
            ("parent", [case for case in parent_place if case not in candidate_place]),
        )
        if extra
    ]
    if alone:
        raise Unpairable(
            subject,
            found=" and ".join(alone),
            expected="the same cases on both sides",
            mend="Run both sides over the same frozen suite.",
        )
    return np.array([parent_place[case] for case in candidate_place], dtype=np.intp)


def _places(case_ids: NDArray[np.object_], subject: str) -> dict[str, int]:
    places: dict[str, int] = {}
    twice = []
    for i, case in enumerate(case_ids):
        if places.setdefault(case, i) != i:
            twice.append(case)
    if twice:
        raise Unpairable(
            subject,
            found=f"{len(twice)} repeated case IDs ({_first(twice)})",
            expected="each case once",
            mend="Give each case its own ID.",
        )
    return places


def _first(case_ids: list[str]) -> str:
    shown = ", ".join(repr(str(case)) for case in case_ids[:SHOWN])
    return shown if len(case_ids) <= SHOWN else f"{shown}, …"
