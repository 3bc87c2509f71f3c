"""Multiple choice."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from harness.calibration.record import applied_to_choices
from harness.errors import Misconfigured
from harness.metric import choice
from harness.metric.boundary import near_choice
from harness.metric.choice import Chosen
from harness.output.companion import Companion
from harness.verb.task.calibration import abstained, calibration_companions
from harness.verb.task.side import NEAR, Asked, Judged, number, parsed


def judge_choices(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of one choice among several."""
    outputs = _chosen(asked)
    best = [_best(outputs, i) for i in range(len(outputs.case_ids))]
    choices = [each["choices"] for each in asked.gold.inputs]
    at = [outputs.offsets[i] + max(each, 0) for i, each in enumerate(best)]
    return Judged(
        contributions={
            name: replace(choice.contribution(metric, outputs), metric=name) for name, metric in parsed(names).items()
        },
        prediction=[None if each < 0 else choices[i][each] for i, each in enumerate(best)],
        gold=[None if each < 0 else choices[i][each] for i, each in enumerate(asked.gold.choice)],
        probability=np.where(np.array(best) < 0, np.nan, outputs.probabilities[at]) if best else np.empty(0),
        flags={"tied": outputs.tied, NEAR: near_choice(outputs, asked.policy.boundary_gap)}
        | abstained(choice.forecasts(outputs)),
        companions=tuple(_companions(_chosen(asked.promotion), asked.promotion.slices)),
    )


def _chosen(asked: Asked) -> Chosen:
    if asked.kind not in ("logit", "probability"):
        raise Misconfigured(
            "score type", found=f"{asked.kind!r}, which gives choices no probability", expected="logit or probability",
            mend="Correct score_type under [recorded] in release.toml.",
        )  # fmt: skip
    scores = [
        np.full(len(inputs["choices"]), np.nan) if each is None else each
        for inputs, each in zip(asked.gold.inputs, asked.said.scores, strict=True)
    ]
    kind = cast(Literal["logit", "probability"], asked.kind)
    if asked.calibrator is not None:
        kind = "probability"
        scores = [
            applied_to_choices(asked.calibrator, each) if np.isfinite(each).all() else np.full(len(each), np.nan)
            for each in scores
        ]
    found = choice.chosen(asked.said.case_ids, asked.gold.choice, scores, asked.said.status, kind=kind)
    return replace(found, abstain=asked.abstain)


def _best(outputs: Chosen, case: int) -> int:
    """The choice with the best score, the first of several; -1 where there is none."""
    share = outputs.share[outputs.offsets[case] : outputs.offsets[case + 1]]
    return -1 if np.isnan(share).any() else int(np.argmax(share > 0))


def _companions(outputs: Chosen, slices: Mapping[str, NDArray[np.bool_]]) -> Iterator[Companion]:
    table = choice.position_table(outputs)
    rows = tuple(
        (i + 1, int(table.offered[i]), int(table.gold[i]), number(table.chosen[i]), number(table.right[i]),
         number(table.expected[i]))
        for i in range(len(table.offered))
    )  # fmt: skip
    yield Companion(
        "positions", "Places of the choices",
        "Without a bias for places, what is chosen follows what is right. A tie counts as its share; "
        f"{table.n_tied} cases are tied. Choices stand in the order of the data.",
        ("place", "offered", "right there", "chosen", "chosen rightly", "by chance"), rows,
    )  # fmt: skip
    yield from calibration_companions(choice.forecasts(outputs), slices)
