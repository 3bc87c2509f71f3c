"""Fusion by hand: several members' scores of one query's documents as one number each.

Each member gives its own documents, by name, and none to the others. This is the plain way, one document at a time.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType
from typing import TypeAlias

from harness.errors import Misconfigured

Scores: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Member:
    """Scores by document, higher is better; what a scaled score is worth, and the scale."""

    scores: Scores
    weight: float
    scale: str


def fusion(members: Sequence[Member], rank_constant: float) -> dict[str, float]:
    """The weighted sum of scaled scores of every document that any member has.

    A document that a member hasn't adds 0 by reciprocal rank, else the least that the member's own documents add.
    Raises Misconfigured for a scale that isn't one.
    """
    total: dict[str, Fraction] = {document: Fraction(0) for member in members for document in member.scores}
    for member in members:
        if member.scale not in SCALES:
            raise Misconfigured(
                f"scale {member.scale!r}", found="no scale of that name", expected=f"one of {', '.join(SCALES)}",
                mend="Name one of them.",
            )  # fmt: skip
        own = SCALES[member.scale](member.scores, rank_constant)
        least = 0.0 if member.scale == "reciprocal-rank" else min(own.values(), default=0.0)
        for document in total:
            total[document] += Fraction(member.weight) * Fraction(own.get(document, least))
    return {document: float(each) for document, each in total.items()}


def _reciprocal_rank(scores: Scores, rank_constant: float) -> dict[str, float]:
    """1 / (k + rank); documents of one score share the mean of the ranks that they take up."""
    found = {}
    for document, score in scores.items():
        above = sum(other > score for other in scores.values())
        equal = sum(other == score for other in scores.values())
        found[document] = 1 / (rank_constant + above + (equal + 1) / 2)
    return found


def _min_max(scores: Scores, rank_constant: float) -> dict[str, float]:
    low, high = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    return {each: (score - low) / (high - low) if high > low else 0.0 for each, score in scores.items()}


def _z_score(scores: Scores, rank_constant: float) -> dict[str, float]:
    values = [Fraction(score) for score in scores.values()]
    mean = sum(values, Fraction(0)) / max(1, len(values))
    spread = float(sum(((value - mean) ** 2 for value in values), Fraction(0)) / max(1, len(values))) ** 0.5
    return {each: (score - float(mean)) / spread if spread else 0.0 for each, score in scores.items()}


SCALES: Mapping[str, Callable[[Scores, float], dict[str, float]]] = MappingProxyType(
    {
        "none": lambda scores, rank_constant: dict(scores),
        "min-max": _min_max,
        "z-score": _z_score,
        "reciprocal-rank": _reciprocal_rank,
    }
)
