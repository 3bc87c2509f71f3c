"""Whether the corpus answers a question, as a release that ranks says it: by its top score, or its calibrator's word.

A question is answered by the ranking's first documents; right is what the suite calls right (Success@1 unless said).
One that nothing in the corpus answers is answered wrongly by whatever is said.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, cast

import numpy as np

from harness.calibration.record import CalibratorRecord, applied_to_score
from harness.errors import Misconfigured
from harness.identity import Json
from harness.metric.calibration import NEVER, Abstain
from harness.metric.chance import Stated
from harness.metric.form import Bools, Floats, scored
from harness.output.value import CaseValues, Status
from harness.store.read_ranking import RankingRows

GROUND: Literal["answerability"] = "answerability"


def top_scores(rows: RankingRows) -> Floats:
    """[n], the score of the first document; NaN where nothing was retrieved."""
    there = np.diff(rows.offsets) > 0
    found = np.full(len(there), np.nan)
    found[there] = rows.scores[rows.offsets[:-1][there]]
    return found


def abstention(decision: Json, calibrator: CalibratorRecord | None, release: str) -> Abstain:
    """When a release that ranks says nothing. Raises Misconfigured for a ground that a ranking has not."""
    if not isinstance(decision, Mapping) or decision.get("ground") is None:
        return NEVER
    ground = str(decision["ground"])
    if ground != GROUND or calibrator is None or calibrator.of != GROUND:
        lacking = "no calibrator" if calibrator is None else f"a calibrator of {calibrator.of}"
        raise Misconfigured(
            f"[decision] abstain of release {release!r}",
            found=f"the ground {ground} of a ranking" + ("" if ground != GROUND else f", and {lacking}"),
            expected="answerability, and a calibrator of it: one raw top score is not sure of anything",
            mend="Fit one with `harness calibrate RUN --family platt --of answerability`, or take the abstention out.",
        )  # fmt: skip
    return Abstain(GROUND, float(cast(float, decision["below"])))


def stated_rankings(
    rows: RankingRows, right: CaseValues, answerable: Bools, calibrator: CalibratorRecord | None, abstain: Abstain
) -> Stated:
    """That the corpus answers each question. Shapes: answerable [n], as the suite says; `right` of the same cases.

    A question that it answers and of which no relevant document is known is not applicable. Where nothing was retrieved
    nothing is said, and there is no probability.
    """
    top = top_scores(rows)
    mine = calibrator is not None and calibrator.of == GROUND
    chance = applied_to_score(calibrator, top) if mine and calibrator is not None else np.full(len(top), np.nan)
    said = scored(right.status)
    status = right.status.copy()
    # What no document answers has no value in `right`, and is wrong as soon as anything is said.
    unanswerable = ~answerable & (right.status == Status.NOT_APPLICABLE)
    status[unanswerable] = [
        {"missing": Status.MISSING, "failed": Status.FAILED}.get(str(each), Status.SCORED)
        for each in rows.status[unanswerable]
    ]
    return Stated(
        case_ids=rows.case_ids,
        chance=chance,
        held=answerable.astype(np.float64),
        # The calibrator is a rising map: by the score itself, releases that differ in it alone are equally sure.
        sure={"confidence": top, GROUND: chance},
        loss=1 - np.where(said & answerable, right.values, 0.0),
        status=status,
        abstain=abstain,
    )


def spoiled(stated: Stated, cases: Bools) -> Stated:
    """As if of cases [n] no relevant document were ranked, and who is sure were unsure and the other way round."""
    place = np.flatnonzero(cases & ~np.isnan(stated.sure["confidence"]))
    rising = place[np.argsort(stated.sure["confidence"][place], kind="stable")]

    def turned(values: Floats) -> Floats:
        found = values.copy()
        found[rising] = values[rising[::-1]]
        return found

    return replace(
        stated,
        chance=turned(stated.chance),
        sure={name: turned(each) for name, each in stated.sure.items()},
        loss=np.where(cases, 1.0, stated.loss),
    )
