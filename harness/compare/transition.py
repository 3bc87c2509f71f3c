"""What became of each case between parent and candidate, by a criterion of right and wrong per case."""

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from harness.compare.group import Bools


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
