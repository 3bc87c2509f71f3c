"""What became of each case between parent and candidate, by a criterion of right and wrong per case."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from harness.compare.group import Bools, Codes
from harness.compare.randomisation import mcnemar_exact


class Transition(StrEnum):
    """`both-wrong-same`: wrong in the same way (the same top document, the same label)."""

    BOTH_RIGHT = "both-right"
    PARENT_ONLY = "parent-only"
    CANDIDATE_ONLY = "candidate-only"
    BOTH_WRONG_SAME = "both-wrong-same"
    BOTH_WRONG_DIFFERENT = "both-wrong-different"


def transitions(candidate_right: Bools, parent_right: Bools, same_wrong: Bools) -> NDArray[np.object_]:
    """The transition of every case. Shapes: all [n]; `same_wrong` counts only where both are wrong."""
    becomes = np.empty(len(candidate_right), dtype=object)
    becomes[candidate_right & parent_right] = Transition.BOTH_RIGHT
    becomes[~candidate_right & parent_right] = Transition.PARENT_ONLY
    becomes[candidate_right & ~parent_right] = Transition.CANDIDATE_ONLY
    becomes[~candidate_right & ~parent_right & same_wrong] = Transition.BOTH_WRONG_SAME
    becomes[~candidate_right & ~parent_right & ~same_wrong] = Transition.BOTH_WRONG_DIFFERENT
    return becomes


@dataclass(frozen=True, slots=True)
class Moved:
    """Groups in which more cases went from right to wrong than the other way (`lost`), or fewer (`won`), and the exact
    two-sided p that such groups fall to either side alike: McNemar's where every case is a group of its own.
    """

    lost: int
    won: int
    p: float


def moved(became: NDArray[np.object_], groups: Codes) -> Moved:
    """From transitions [n] and the cases' groups [n]; groups in which as many went either way count as unmoved."""
    steps = (became == Transition.CANDIDATE_ONLY).astype(float) - (became == Transition.PARENT_ONLY)
    net = np.bincount(groups, steps) if len(groups) else np.empty(0)
    lost, won = int((net < 0).sum()), int((net > 0).sum())
    return Moved(lost, won, mcnemar_exact(lost, won))
