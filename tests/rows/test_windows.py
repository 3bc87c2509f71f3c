"""What windows say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import EmptySlice, Misconfigured
from harness.rows.windows import (
    best,
    by_multiplicity,
    by_owner,
    cut,
    mean_vector,
    multiplicity,
    owners,
    split,
    word_owners,
)


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

    def test_a_word_has_one_owner_where_that_shows_it(self):
        """The first of tokens 4 to 6 decides for the word; by `first` that is a window which ends before token 6."""
        words = np.array([0, 1, 2, 3, 4, 4, 4, 5, 5, -1])
        windows = np.array([[0, 6], [2, 10]])
        assert owners(windows, 10).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
        assert word_owners(windows, words).tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1, 1]
        assert word_owners(windows, words, "first").tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]
        early = np.array([0, 1, 2, 3, 3, 3, 4, 5, 5, -1])
        assert word_owners(windows, early).tolist() == [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]

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


class TestOwners:
    WINDOWS = np.array([[0, 6], [4, 10]])

    @pytest.mark.parametrize(
        ("policy", "wanted"),
        [
            ("first", [0, 0, 0, 0, 0, 0, 1, 1, 1, 1]),
            ("centre", [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
            ("largest-context", [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
        ],
    )
    def test_each_policy_by_hand(self, policy, wanted):
        assert owners(self.WINDOWS, 10, policy).tolist() == wanted

    def test_the_last_window_is_shorter_and_so_its_centre_is_another(self):
        """Of [0, 8) and [6, 10), token 6 is 2.5 from one middle and 1.5 from the other, and 1 and 0 from an edge."""
        windows = np.array([[0, 8], [6, 10]])
        assert owners(windows, 10, "centre")[6] == 1
        assert owners(windows, 10, "largest-context")[6] == 0

    @given(
        st.integers(1, 40),
        st.integers(1, 9),
        st.integers(1, 9),
        st.sampled_from(["first", "centre", "largest-context"]),
    )
    def test_the_owner_holds_the_token(self, n, size, stride, policy):
        windows = split(n, size, min(stride, size))
        for token, owner in enumerate(owners(windows, n, policy)):
            assert windows[owner, 0] <= token < windows[owner, 1]


class TestCut:
    TEXT = "one two  three four"
    OFFSETS = np.array([[0, 3], [4, 7], [9, 14], [15, 19]])

    def test_every_window_knows_where_it_stands(self):
        """Tokens, characters, what it shares with its neighbours, and whose it is."""
        found = cut(self.TEXT, self.OFFSETS, source="d1", release="r", size=3, stride=2, special=2)
        assert [(each.start, each.end, each.characters, each.left, each.right) for each in found.records] == [
            (0, 3, (0, 14), 0, 1), (2, 4, (9, 19), 1, 0),
        ]  # fmt: skip
        assert {(each.source, each.release, each.stride, each.special) for each in found.records} == {("d1", "r", 2, 2)}
        assert found.multiplicity.tolist() == [1, 1, 2, 1]
        assert found.uncovered == ()

    def test_what_hard_truncation_hides_is_counted(self):
        """Blanks are nothing to be hidden."""
        found = cut(self.TEXT, self.OFFSETS, source="d1", release="r", size=3, stride=None)
        assert (len(found.records), found.owner.tolist()) == (1, [0, 0, 0, -1])
        assert (found.uncovered, found.n_uncovered) == (((15, 19),), 4)

    def test_characters_that_no_token_has_are_uncovered(self):
        """A tokenizer that drops a sign shows it to no window."""
        found = cut("a\u00adb c", np.array([[0, 1], [2, 3], [4, 5]]), source="d", release="r", size=2, stride=2)
        assert found.uncovered == ((1, 2),)

    @given(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30), st.integers(1, 5), st.integers(1, 5)
    )
    def test_with_a_stride_every_character_of_every_token_is_shown(self, text, size, stride):
        offsets = np.stack([np.arange(len(text)), np.arange(1, len(text) + 1)], axis=1)
        assert cut(text, offsets, source="d", release="r", size=size, stride=min(size, stride)).n_uncovered == 0


class TestOneVector:
    VECTORS = np.array([[4.0, 0.0], [0.0, 1.0]])

    @pytest.mark.parametrize(
        ("normalise", "wanted"),
        [
            ("never", [2, 0.5]),
            ("before", [0.5, 0.5]),
            ("after", [0.9701425, 0.2425356]),
            ("both", [0.7071068, 0.7071068]),
        ],
    )
    def test_when_it_is_normalised_is_part_of_what_it_means(self, normalise, wanted):
        assert mean_vector(self.VECTORS, normalise=normalise) == pytest.approx(wanted, abs=1e-7)

    def test_the_best_window_is_the_earliest_of_equals(self):
        assert best(np.array([0.1, 0.7, 0.7])) == 1

    def test_no_window_has_neither(self):
        with pytest.raises(EmptySlice):
            mean_vector(np.empty((0, 2)), normalise="after")
        with pytest.raises(EmptySlice):
            best(np.empty(0))
