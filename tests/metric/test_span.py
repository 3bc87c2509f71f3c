"""Spans and their pairs."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import Misconfigured
from harness.metric.span import Illegal, Span, aligned, in_source, overlapping, paired, read_spans, same_boundary

some = st.lists(
    st.builds(lambda start, size, kind: Span(start, start + size, kind), st.integers(0, 6), st.integers(1, 4),
              st.sampled_from("AB")),
    max_size=4, unique=True,
)  # fmt: skip


class TestPairs:
    @settings(max_examples=200, deadline=None)
    @given(gold=some, predicted=some)
    def test_there_are_as_many_as_there_can_be(self, gold, predicted):
        """Held against every way to pair, also where spans nest and overlap."""
        short, long = sorted((gold, predicted), key=len)
        best = max(sum(map(overlapping, short, order)) for order in permutations(long, len(short)))
        found = paired(gold, predicted, overlapping)
        assert len(found) == best
        assert all(overlapping(pair.gold, pair.predicted) for pair in found)
        assert len({pair.gold for pair in found}) == len({pair.predicted for pair in found}) == best

    @settings(max_examples=100, deadline=None)
    @given(gold=some, predicted=some, data=st.data())
    def test_order_changes_nothing(self, gold, predicted, data):
        mixed = [data.draw(st.permutations(side)) for side in (gold, predicted)]
        assert aligned(*mixed, same_boundary, overlapping) == aligned(gold, predicted, same_boundary, overlapping)

    def test_who_has_a_choice_moves_over(self):
        """The first gold span overlaps all, and gives way twice; of the next chain each member gives way once."""
        gold, predicted = [(0, 9), (1, 2), (3, 4)], [(0, 2), (3, 4), (5, 6)]
        assert self.number(gold, predicted) == 3
        gold, predicted = [(0, 4), (3, 7), (3, 4)], [(2, 4), (0, 1), (6, 7)]
        assert self.number(gold, predicted) == 3
        gold, predicted = [(0, 6), (1, 9), (2, 3)], [(0, 3), (5, 6), (8, 9)]
        assert self.number(gold, predicted) == 3

    @staticmethod
    def number(gold, predicted):
        return len(paired([Span(*each, "A") for each in gold], [Span(*each, "A") for each in predicted], overlapping))

    def test_touching_is_not_overlapping(self):
        assert not overlapping(Span(0, 2, "A"), Span(2, 3, "A"))
        assert overlapping(Span(0, 2, "A"), Span(1, 3, "B"))


class TestReading:
    def test_what_is_no_span_of_the_text_is_left_out_and_kept_as_illegal(self):
        """Spans may nest; equal ones count once."""
        given = [Span(2, 4, "A"), Span(0, 6, "B"), Span(2, 4, "A"), Span(3, 3, "A"), Span(5, 7, "A"), Span(-1, 2, "A"),
                 Span(0, 1, " ")]  # fmt: skip
        read = read_spans(given, 6)
        assert read.spans == (Span(0, 6, "B"), Span(2, 4, "A"))
        assert [(bad.position, bad.found, bad.why) for bad in read.illegal] == [
            (2, "A 2:4", "repeated"), (3, "A 3:3", "malformed"), (5, "A 5:7", "malformed"),
            (-1, "A -1:2", "malformed"), (0, "  0:1", "malformed"),
        ]  # fmt: skip

    def test_two_of_the_model_s_types_may_be_one_of_the_data_s(self):
        read = read_spans([Span(0, 1, "PERSON"), Span(0, 1, "PER")], 2, {"PERSON": "PER"})
        assert read.spans == (Span(0, 1, "PER"),)
        assert read.illegal == (Illegal(0, "PER 0:1", "PERSON 0:1", "repeated"),)


class TestSourceOffsets:
    OFFSETS = np.array([[0, 0], [0, 4], [4, 6], [7, 10], [0, 0]])

    def test_tokens_become_the_characters_they_stand_for(self):
        """A special token inside or beside a span stands for none."""
        assert in_source([Span(1, 3, "A"), Span(0, 2, "A"), Span(3, 5, "B")], self.OFFSETS) == (
            Span(0, 6, "A"), Span(0, 4, "A"), Span(7, 10, "B"),
        )  # fmt: skip

    @pytest.mark.parametrize("span", [Span(0, 1, "A"), Span(4, 6, "A"), Span(-1, 2, "A"), Span(2, 2, "A")])
    def test_a_span_without_characters_or_not_within_the_tokens(self, span):
        with pytest.raises(Misconfigured, match="source offsets"):
            in_source([span], self.OFFSETS)
