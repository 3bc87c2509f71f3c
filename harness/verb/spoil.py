"""What a side would bring had it said the opposite: the fault that `selftest` plants, a share of groups at a time.

A ranking has no relevant document in it. Scores of labels and of choices are turned round within their case, so that
the likeliest has the lowest; of one number a case, those with the highest and the lowest change places, and so on
inwards; an answer is another case's; tags are all outside (O). So every value is one that a release can have.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from harness.metric import chance
from harness.metric.name import parse
from harness.output.case import OutputStatus
from harness.output.contribution import Contribution
from harness.output.value import CaseValues
from harness.verb.measure import Measured
from harness.verb.task.rankings import spoiled
from harness.verb.task.side import Asked

Floats = NDArray[np.float64]


def spoiled_rankings(measured: Measured, kept: frozenset[str], promotion: NDArray[np.bool_]) -> dict[str, Contribution]:
    """Every scored case at its metric's lowest value; Judged@k stays as it is, but for those that are not `kept`. Of
    what hangs on whether a question is answerable: nothing right among what is answered, and sureness turned round.

    Documents that are judged not relevant would take the place of those that are, so no gap of judgements shows.
    """
    stated = None if measured.stated is None else spoiled(measured.stated, promotion)
    found: dict[str, Contribution] = {}
    for name, own in measured.values.items():
        metric = parse(name)
        if stated is not None and metric.task_metric is not None:
            found[name] = replace(chance.contribution(metric, stated), metric=name)
        elif not isinstance(own, CaseValues) or name in kept:
            found[name] = own
        else:
            found[name] = replace(own, values=np.where(own.scored, parse(name).lowest, np.nan))
    return found


def judged_only(names: Mapping[str, Contribution], ruled: frozenset[str]) -> frozenset[str]:
    """Those of the names that count judgements, but for those that a rule is about."""
    return frozenset(name for name in names if not parse(name).needs_relevant and not parse(name).task_metric) - ruled


def spoiled_outputs(asked: Asked, task: str, rng: np.random.Generator) -> Asked:
    """The side with its promotion cases' outputs spoiled. Cases of other roles keep theirs, and so does what was fitted
    to them.
    """
    usable = (asked.roles == "promotion") & (asked.said.status == OutputStatus.OK)
    places = rng.permutation(np.flatnonzero(usable))
    donor = np.arange(len(usable))
    donor[places] = np.roll(places, 1)
    said = asked.said
    if task == "entity":
        tags = [["O"] * len(each) if each is not None and usable[i] else each for i, each in enumerate(said.tags)]
        return replace(asked, said=replace(said, tags=tags))
    if task == "answer":
        other = replace(
            said,
            answer=[said.answer[i] for i in donor],
            span_start=[None if usable[i] else start for i, start in enumerate(said.span_start)],
            span_end=[None if usable[i] else end for i, end in enumerate(said.span_end)],
            score=said.score[donor],
            null_score=said.null_score[donor],
        )
        return replace(asked, said=other)
    value, numbers = said.value.copy(), usable & np.isfinite(said.value)
    value[numbers] = _turned(value[numbers])
    scores = [_turned(each) if each is not None and usable[i] else each for i, each in enumerate(said.scores)]
    return replace(asked, said=replace(said, value=value, scores=scores))


def _turned(numbers: Floats) -> Floats:
    """The same numbers, the highest where the lowest was."""
    rising = np.argsort(numbers, kind="stable")
    turned = np.empty_like(numbers)
    turned[rising] = numbers[rising[::-1]]
    return turned
