"""Where answers stand."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import EmptySlice, Misconfigured
from harness.metric.answer_span import AnswerSpan, LostGold, WrongOffsets, best_span, coverage, wrong_offsets

from .outputs import ids

SPANS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([0.0, 1.0])), min_size=1, max_size=6)


def best(*spans, **rest):
    starts, ends, scores = np.array(spans, dtype=float).T
    return best_span(starts.astype(np.int64), ends.astype(np.int64), scores, **rest)


def places(*rows):
    return np.array(rows, dtype=np.int64).reshape(-1, 2)


class TestBestSpan:
    def test_the_highest_score(self):
        assert best((4, 6, 0.5), (0, 9, 2.5)) == AnswerSpan(0, 9, 2.5, tied=False)

    def test_among_equals_the_shorter_then_the_earlier(self):
        assert best((0, 5, 1), (7, 9, 1), (3, 5, 1)) == AnswerSpan(3, 5, 1, tied=True)

    def test_or_the_earlier_as_declared(self):
        """The earlier start, then the earlier end."""
        assert best((2, 5, 1), (0, 8, 1), (0, 9, 1), tie="earlier") == AnswerSpan(0, 8, 1, tied=True)

    def test_a_place_that_two_windows_hold_is_no_tie(self):
        assert best((3, 5, 1), (3, 5, 1), (0, 1, 0)) == AnswerSpan(3, 5, 1, tied=False)

    @pytest.mark.parametrize("tie", ["shorter", "earlier"])
    @given(spans=SPANS)
    def test_order_of_spans_never_matters(self, tie, spans):
        rows = [(start, start + length, score) for start, length, score in spans]
        assert {best(*order, tie=tie) for order in list(permutations(rows))[:24]} == {best(*rows[::-1], tie=tie)}

    def test_no_span_no_answer(self):
        with pytest.raises(EmptySlice, match="Abstain"):
            best_span(np.array([], dtype=np.int64), np.array([], dtype=np.int64), np.array([]))

    @pytest.mark.parametrize("broken", [(3, 2, 1.0), (0, 1, np.nan), (0, 1, np.inf)])
    def test_what_is_no_span_is_refused(self, broken):
        with pytest.raises(Misconfigured, match="Leave such spans out"):
            best((0, 1, 0.5), broken)


def check(answer, start, end, context="Basel lies on the Rhine."):
    return wrong_offsets(ids(1), [answer], np.array([start]), np.array([end]), [context])


class TestOffsets:
    def test_the_text_stands_at_its_offsets(self):
        assert check("the Rhine", 14, 23) == ()

    @pytest.mark.parametrize(("start", "end", "found"), [(14, 22, "the Rhin"), (13, 22, " the Rhin"), (0, 0, "")])
    def test_what_stands_there_instead(self, start, end, found):
        assert check("the Rhine", start, end) == (WrongOffsets("case-0", start, end, "the Rhine", found),)

    @pytest.mark.parametrize(("start", "end"), [(14, 24 + 1), (-10, -1), (23, 14), (-2, 3)])
    def test_a_place_outside_the_context(self, start, end):
        """A negative offset doesn't count from the end, though text[-10:-1] is "the Rhine"."""
        assert [each.found for each in check("the Rhine", start, end)] == [None]

    def test_case_and_composition_count(self):
        """é is one code point or two."""
        assert len(check("the rhine", 14, 23)) == 1
        assert len(check("e\u0301", 0, 1, "é")) == 1
        assert check("𠮷", 1, 2, "a𠮷b") == ()

    def test_no_offsets_nothing_to_check(self):
        assert check("the Rhine", -1, -1) == ()

    def test_they_are_told_by_case_id(self):
        """In whatever order the cases come."""
        found = wrong_offsets(ids(3)[::-1], ["a"] * 3, np.zeros(3, int), np.zeros(3, int), ["a"] * 3)
        assert [each.case_id for each in found] == ["case-0", "case-1", "case-2"]

    def test_an_abstention_stands_nowhere(self):
        assert check(None, 0, 0) == ()
        assert [each.found for each in check(None, 0, 5)] == ["Basel"]

    def test_public_answers_stand_where_the_data_say(self, shared_data):
        """1,190 of them; moved by one, none does."""
        rows = _public(shared_data)
        starts = np.array([start for _, start, _ in rows])
        ends = starts + [len(text) for text, _, _ in rows]
        texts, contexts = [text for text, _, _ in rows], [context for _, _, context in rows]
        assert wrong_offsets(ids(len(rows)), texts, starts, ends, contexts) == ()
        assert len(wrong_offsets(ids(len(rows)), texts, starts + 1, ends + 1, contexts)) == len(rows) == 1190


class TestCoverage:
    def test_a_gold_inside_one_window_is_within_reach(self):
        found = coverage(ids(1), [places((12, 15), (0, 3))], [places((0, 10), (8, 20))])
        assert (found.n_inside, found.n_outside, found.n_unreachable, found.lost) == (2, 0, 0, ())

    def test_why_one_is_lost(self):
        """Windows over 0 to 6, 4 to 10 and 14 to 20 of 30 characters."""
        golds = places((3, 8), (11, 13), (9, 12), (15, 21), (22, 25))
        found = coverage(ids(1), [golds], [places((14, 20), (4, 10), (0, 6))])
        assert found.lost == (
            LostGold("case-0", 3, 8, "split"),
            LostGold("case-0", 9, 12, "skipped"),
            LostGold("case-0", 11, 13, "skipped"),
            LostGold("case-0", 15, 21, "truncated"),
            LostGold("case-0", 22, 25, "truncated"),
        )
        assert (found.n_inside, found.n_outside, found.n_unreachable, found.n_truncated) == (0, 5, 1, 2)

    def test_one_gold_within_reach_is_enough(self):
        found = coverage(ids(2), [places((0, 3), (50, 53)), places((50, 53))], [places((0, 10))] * 2)
        assert (found.n_inside, found.n_outside, found.n_unreachable) == (1, 2, 1)

    def test_without_golds_nothing_is_lost(self):
        found = coverage(ids(2), [places(), places((0, 3))], [places((0, 10)), places()])
        assert (found.n_inside, found.n_outside, found.n_unreachable) == (0, 1, 1)
        assert found.lost == (LostGold("case-1", 0, 3, "truncated"),)

    @given(start=st.integers(0, 20), length=st.integers(1, 6), cut=st.lists(st.integers(0, 18), min_size=1, max_size=5))
    def test_a_gold_is_split_where_all_of_it_was_read(self, start, length, cut):
        """Held against the set of the characters that any window of 5 holds."""
        windows = places(*((low, low + 5) for low in cut))
        gold, read = set(range(start, start + length)), [set(range(low, low + 5)) for low in cut]
        found = coverage(ids(1), [places((start, start + length))], [windows])
        reasons = [each.reason for each in found.lost]
        if any(gold <= window for window in read):
            assert reasons == []
        elif gold <= set().union(*read):
            assert reasons == ["split"]
        else:
            assert reasons == ["truncated" if max(gold) > max(set().union(*read)) else "skipped"]


def _public(shared_data):
    data = json.loads((shared_data("xquad_en") / "xquad.en.json").read_text())["data"]
    return [
        (answer["text"], answer["answer_start"], paragraph["context"])
        for article in data
        for paragraph in article["paragraphs"]
        for question in paragraph["qas"]
        for answer in question["answers"]
    ]
