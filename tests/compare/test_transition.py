"""Each case makes exactly one of five transitions."""

import numpy as np

from harness.compare.transition import Moved, Transition, moved, transitions


class TestTransitions:
    def test_by_hand(self) -> None:
        """Being wrong in the same way counts only where both are wrong."""
        candidate = np.array([True, False, True, False, False])
        parent = np.array([True, True, False, False, False])
        same = np.array([True, True, True, True, False])
        assert transitions(candidate, parent, same).tolist() == list(Transition)


class TestMoved:
    LOST, WON, SAME = Transition.PARENT_ONLY, Transition.CANDIDATE_ONLY, Transition.BOTH_RIGHT

    def test_a_case_a_group_is_mcnemars(self) -> None:
        """Five lost, none won: 2 · 2⁻⁵; a case that did not move has no part."""
        became = np.array([self.LOST] * 5 + [self.SAME] * 9, dtype=object)
        assert moved(became, np.arange(14)) == Moved(5, 0, 2 * 0.5**5)

    def test_a_group_moves_once(self) -> None:
        """Ten lost cases of one article are one group; one lost and one won are none."""
        became = np.array([self.LOST] * 10 + [self.LOST, self.WON] + [self.WON], dtype=object)
        assert moved(became, np.array([0] * 10 + [1, 1] + [2])) == Moved(1, 1, 1.0)

    def test_nothing_moved(self) -> None:
        assert moved(np.array([self.SAME], dtype=object), np.array([0])) == Moved(0, 0, 1.0)
        assert moved(np.empty(0, dtype=object), np.empty(0, dtype=np.intp)) == Moved(0, 0, 1.0)
