"""What a decision says of a release that leaves cases without an answer, and of one that gives no probability."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from harness.metric import chance
from harness.metric.calibration import ANSWERED, SURENESS
from harness.metric.name import parse
from harness.output.contribution import Contribution
from harness.output.value import Status
from harness.store.read import ReleaseRecord
from harness.suite.definition import RANKED
from harness.suite.lock import Lock
from harness.verb.measure import Measured


def abstention_remarks(
    lock: Lock, releases: Mapping[str, ReleaseRecord], sides: Mapping[str, Measured], promotion: NDArray[np.bool_]
) -> Iterator[str]:
    """Of how many cases a release says nothing, where no metric is of those alone that it answers; and which metrics
    of a probability find none.
    """
    names = [parse(name) for name in lock.definition.metric_names]
    for side, measured in sides.items():
        silent = measured.abstained
        if silent is not None and not any(each.base == "answered_accuracy" for each in names):
            there = promotion & ~measured.flags["missing"] & ~measured.flags["failed"]
            n, said = int(there.sum()), int((there & ~silent).sum())
            yield (
                f"{releases[side].release} abstains: it answers {said} of {n} promotion cases (coverage "
                f"{said / max(n, 1):.4f}). The suite names no answered_accuracy, and every other metric is of all "
                "cases, as if each were answered."
            )
        lacking = [name for name, each in measured.values.items() if _says_no_probability(name, each)]
        if lock.definition.task in (*RANKED, "similarity") and lacking:
            yield (
                f"{releases[side].release} gives no probability, so {', '.join(lacking)} "
                f"{'is' if len(lacking) == 1 else 'are'} undefined: it has no calibrator of "
                f"{'pairs' if lock.definition.task == 'similarity' else 'answerability'}."
            )


def _says_no_probability(name: str, found: Contribution) -> bool:
    """Whether a metric of a probability a case is undefined of all."""
    probable = parse(name).base in chance.MEASURED and parse(name).base not in (*SURENESS, *ANSWERED)
    return probable and not found.scored.any() and bool((found.status == Status.UNDEFINED).any())
