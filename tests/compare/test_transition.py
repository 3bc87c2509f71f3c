"""Each case makes exactly one of five transitions."""

import numpy as np

from harness.compare.transition import Transition, transitions


class TestTransitions:
    def test_by_hand(self) -> None:
        """Being wrong in the same way counts only where both are wrong."""
        candidate = np.array([True, False, True, False, False])
        parent = np.array([True, True, False, False, False])
        same = np.array([True, True, True, True, False])
        assert transitions(candidate, parent, same).tolist() == list(Transition)
