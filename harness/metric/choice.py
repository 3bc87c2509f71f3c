"""Metrics of one choice among several, each case with its own choices."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.errors import Misconfigured
from harness.metric import calibration
from harness.metric.calibration import NEVER, Abstain, Forecasts, Sample
from harness.metric.form import Bools, Floats, Ints, Objects, case_status, mean_of, scored
from harness.metric.label import refuse_task
from harness.metric.name import MetricName
from harness.metric.probability import TOLERANCE, ScoreType, exclusive, surprise
from harness.output.contribution import Contribution


@dataclass(frozen=True, slots=True, eq=False)
class Chosen:
    """Choices as rows, case by case: offsets [n+1] cut them. Shapes: case_ids, gold (the row among a case's own; -1
    for none), tied and status [n]; share, probabilities and place [rows].

    `share`: 1 at the choice with the best score, divided evenly where several have it. `place`: where the choice
    stood, from 0, when the model saw it.
    """

    case_ids: Objects
    offsets: Ints
    gold: Ints
    share: Floats
    probabilities: Floats
    place: Ints
    tied: Bools
    status: Objects
    abstain: Abstain = NEVER


def chosen(
    case_ids: Objects,
    gold: Ints,
    scores: Sequence[Floats],
    output_status: Objects,
    *,
    kind: ScoreType,
    order: Sequence[Ints] | None = None,
    tolerance: float = TOLERANCE,
) -> Chosen:
    """Reads the scores [k] of each case's choices, as the data order them; gold is the right one's index, -1 for none.

    `order` [k] says for each choice at which place the model saw it; left out, the data's order is the model's.
    A case without an output still needs its choices (scores of NaN). Probabilities must sum to 1 over a case's
    choices, and logits compete in a softmax over them.
    Raises Misconfigured for gold that is none of the choices, a case without choices, and an order that isn't one.
    """
    sizes = np.array([len(each) for each in scores], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    order = [np.arange(size) for size in sizes.tolist()] if order is None else order
    for i, case_id in enumerate(case_ids):
        _refuse_broken(str(case_id), int(gold[i]), order[i], int(sizes[i]))
    rows = int(offsets[-1])
    share, probabilities = np.full(rows, np.nan), np.full(rows, np.nan)
    usable, tied = np.zeros(len(scores), dtype=bool), np.zeros(len(scores), dtype=bool)
    for size in np.unique(sizes).tolist():
        cases = np.flatnonzero(sizes == size)
        at = offsets[cases][:, None] + np.arange(size)
        given = np.stack([scores[i] for i in cases.tolist()]).astype(np.float64)
        chances = exclusive(given, kind, tolerance)
        usable[cases] = chances.usable
        best = given == given.max(axis=1, keepdims=True)
        tied[cases] = best.sum(axis=1) > 1
        probabilities[at] = chances.probabilities
        share[at] = best / np.maximum(best.sum(axis=1, keepdims=True), 1)
    status = case_status(output_status, applicable=gold >= 0, usable=usable)
    counted = scored(status)
    kept = np.repeat(counted, sizes)
    return Chosen(
        case_ids=case_ids,
        offsets=offsets,
        gold=gold,
        share=np.where(kept, share, np.nan),
        probabilities=np.where(kept, probabilities, np.nan),
        place=np.concatenate([np.empty(0, dtype=np.int64), *order]).astype(np.int64),
        tied=tied & counted,
        status=status,
    )


def contribution(name: MetricName, outputs: Chosen) -> Contribution:
    """What each case brings to a metric of choices. Raises Misconfigured for a metric of another task.

    choice_accuracy is 1 for the gold choice; where it shares the best score with others, its chance among them, so
    that no order of choices changes it. choice_log_loss is -ln of its probability, at most -ln 2**-52.
    """
    refuse_task(name, "multiple-choice")
    if name.base in calibration.MEASURED:
        if name.label is not None:
            raise Misconfigured(
                f"metric '{name}'", found="a label", expected="choices, which have none",
                mend=f"Write {name.base}: it is of the likeliest choice.",
            )  # fmt: skip
        return calibration.contribution(name, forecasts(outputs))
    at = outputs.offsets[:-1] + np.maximum(outputs.gold, 0)
    values = outputs.share[at] if name.base == "choice_accuracy" else surprise(outputs.probabilities[at])
    return mean_of(str(name), outputs.case_ids, values, outputs.status)


def forecasts(outputs: Chosen) -> Forecasts:
    """What is said of the likeliest choice; where several are, it is right by its chance among them."""
    right = np.nan_to_num(outputs.share[outputs.offsets[:-1] + np.maximum(outputs.gold, 0)])
    grounds: dict[str, Floats] = {each: np.zeros(len(right)) for each in ("confidence", "margin", "entropy")}
    sizes = np.diff(outputs.offsets)
    for size in np.unique(sizes).tolist():
        cases = np.flatnonzero(sizes == size)
        chances = np.nan_to_num(outputs.probabilities[outputs.offsets[cases][:, None] + np.arange(size)])
        for ground, values in calibration.sureness(chances).items():
            grounds[ground][cases] = values
    likeliest = Sample(grounds["confidence"][:, None], right[:, None])
    return Forecasts(
        case_ids=outputs.case_ids,
        likeliest=likeliest,
        every=likeliest,
        positive=None,
        exclusive=True,
        sure=grounds,
        loss=1 - right,
        status=outputs.status,
        abstain=outputs.abstain,
    )


@dataclass(frozen=True, slots=True, eq=False)
class PositionTable:
    """The scored cases by the place at which the model saw a choice. Shapes: all [k], k the most choices of a case.

    `offered` cases have a choice there, `gold` have the right one there, `chosen` is how often the model takes it
    (a tie counts as its share), `right` how often rightly. `expected` is how often it would take the place by
    choosing evenly. Without a bias for places, chosen / offered follows gold / offered.
    """

    offered: Ints
    gold: Ints
    chosen: Floats
    right: Floats
    expected: Floats
    n_tied: int


def position_table(outputs: Chosen) -> PositionTable:
    """How often each place is right, and how often it is taken."""
    sizes = np.diff(outputs.offsets)
    kept = np.repeat(scored(outputs.status), sizes)
    own = np.arange(len(outputs.place)) - np.repeat(outputs.offsets[:-1], sizes)
    is_gold = own == np.repeat(outputs.gold, sizes)
    k = int(sizes.max(initial=0))

    def by_place(weight: Floats) -> Floats:
        return np.bincount(outputs.place[kept], weight[kept], minlength=k).astype(np.float64)

    ones = np.ones(len(own))
    return PositionTable(
        offered=by_place(ones).astype(np.int64),
        gold=by_place(is_gold.astype(np.float64)).astype(np.int64),
        chosen=by_place(outputs.share),
        right=by_place(np.where(is_gold, outputs.share, 0.0)),
        expected=by_place(1 / np.repeat(sizes, sizes)),
        n_tied=int(outputs.tied.sum()),
    )


def _refuse_broken(case_id: str, gold: int, order: Ints, size: int) -> None:
    if size == 0 or not -1 <= gold < size or sorted(np.asarray(order).tolist()) != list(range(size)):
        raise Misconfigured(
            f"case {case_id!r}",
            found=f"{size} choices, gold {gold}, seen in the order {np.asarray(order).tolist()}",
            expected="at least one choice, gold among them, and each seen at one place of its own",
            mend="Mend the case; gold counts from 0, and -1 is none.",
        )
