"""Each case makes exactly one of five transitions."""

import numpy as np

from harness.compare.transition import Transition, count, transitions


class TestTransitions:
    def test_by_hand(self) -> None:
        """Being wrong in the same way counts only where both are wrong."""
        candidate = np.array([True, False, True, False, False])
        parent = np.array([True, True, False, False, False])
        same = np.array([True, True, True, True, False])
        assert transitions(candidate, parent, same).tolist() == list(Transition)

    def test_counts_name_what_nobody_made(self) -> None:
        """All five stand in the count, in their order."""
        right = np.array([True, True, False])
        found = count(transitions(right, np.array([True, False, False]), np.zeros(3, dtype=bool)))
        assert list(found) == list(Transition)
        assert list(found.values()) == [1, 0, 1, 0, 1]
