"""What windows say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import EmptySlice, Misconfigured
from harness.rows.window import by_multiplicity, by_owner, multiplicity, owners, split


class TestSplit:
    @pytest.mark.parametrize(
        ("n", "size", "stride", "wanted"),
        [
            (10, 4, 3, [[0, 4], [3, 7], [6, 10]]),
            (11, 4, 3, [[0, 4], [3, 7], [6, 10], [9, 11]]),
            (8, 4, 4, [[0, 4], [4, 8]]),
            (4, 4, 2, [[0, 4]]),
            (1, 4, 2, [[0, 1]]),
        ],
    )
    def test_by_hand(self, n, size, stride, wanted):
        """Starts are a stride apart, and the last window is the first that reaches the end."""
        assert split(n, size, stride).tolist() == wanted

    @given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 12))
    def test_no_token_is_skipped_and_no_window_is_idle(self, n, size, stride):
        """Every token stands in a window, and each window holds a token that no earlier one does."""
        windows = split(n, size, min(stride, size))
        assert multiplicity(windows, n).min() >= 1
        assert (np.diff(windows[:, 1]) > 0).all()
        assert windows[-1, 1] == n

    @pytest.mark.parametrize("stride", [5, 0, -1])
    def test_a_stride_that_skips_tokens_or_stands_still_is_refused(self, stride):
        """At most the size, at least 1."""
        with pytest.raises(Misconfigured, match="stride"):
            split(10, 4, stride)

    def test_a_text_without_tokens_has_no_window(self):
        """It is refused, not given an empty one."""
        with pytest.raises(EmptySlice):
            split(0, 4, 2)


class TestReconciliation:
    """Three tokens, then the third again and a fourth: [2, 4, 10] and [10, 20]."""

    WINDOWS = np.array([[0, 3], [2, 4]])
    VALUES = (np.array([2.0, 4, 10]), np.array([10.0, 20]))

    def test_a_shared_token_counts_once(self):
        """The mean over tokens is 36 / 4 = 9; the mean of the windows' means, 10.1667, counts the third twice."""
        assert by_multiplicity(self.VALUES, self.WINDOWS, 4).mean() == 9
        assert np.mean([value.mean() for value in self.VALUES]) == pytest.approx(10.1667, abs=1e-4)

    def test_values_that_differ_are_averaged(self):
        """The third token is 10 in one window and 16 in the other: 13."""
        values = (np.array([[2.0], [4], [10]]), np.array([[16.0], [20]]))
        assert by_multiplicity(values, self.WINDOWS, 4).ravel().tolist() == [2, 4, 13, 20]

    def test_multiplicity(self):
        """In how many windows a token stands."""
        assert multiplicity(self.WINDOWS, 4).tolist() == [1, 1, 2, 1]

    def test_the_owner_has_most_context(self):
        """Of tokens 4 and 5, shared by [0, 6) and [4, 10), each goes where its nearer edge is farther off."""
        assert owners(np.array([[0, 6], [4, 10]]), 10).tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]

    def test_among_equals_the_earlier_window_speaks(self):
        """Token 3 is two tokens from the nearer edge of [0, 6), of [1, 7) too."""
        assert owners(np.array([[0, 6], [1, 7]]), 7).tolist() == [0, 0, 0, 0, 1, 1, 1]

    def test_one_window_speaks_for_each_token(self):
        """Token 2 has no context after it in the first window, and none before it in the second: the first speaks."""
        values = (np.array([2.0, 4, 10]), np.array([16.0, 20]))
        assert by_owner(values, self.WINDOWS, 4).tolist() == [2, 4, 10, 20]

    @pytest.mark.parametrize("reconcile", [by_owner, by_multiplicity])
    def test_a_value_for_each_token_is_demanded(self, reconcile):
        """Rows of special tokens would shift all that follow."""
        with pytest.raises(Misconfigured, match="special tokens"):
            reconcile((np.zeros(5), np.zeros(2)), self.WINDOWS, 4)

    @pytest.mark.parametrize("windows", [[[0, 2], [3, 4]], [[0, 5]], [[-1, 4]]])
    def test_windows_cover_the_text_and_no_more(self, windows):
        """A token in no window has no value, and a window beyond the text is another text's."""
        with pytest.raises(Misconfigured, match="windows"):
            multiplicity(np.array(windows), 4)
