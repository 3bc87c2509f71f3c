"""A query's best documents, however they come."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.run.front import Front, add_block, fronts_of, lasts

NONE = np.empty(0, dtype=np.int64)


def filled(keys, *, depth, limit=1000, must_keep=NONE, size=3, order=None):
    front = Front(depth, limit, must_keep)
    order = np.arange(len(keys)) if order is None else order
    for start in range(0, len(keys), size):
        part = order[start : start + size]
        front.add(part, np.asarray(keys, dtype=np.float64)[part])
    return front


class TestFront:
    def test_by_hand(self):
        """Of 5, 3, 4, 3, 1 the best two are 5 and 4, the best three these and both of 3."""
        assert filled([5, 3, 4, 3, 1], depth=2).hits(0.5).documents.tolist() == [0, 2]
        three = filled([5, 3, 4, 3, 1], depth=3)
        assert three.last == 3 and three.hits(0.5).documents.tolist() == [0, 2, 1, 3]
        assert three.hits(0.5).scores.tolist() == [2.5, 2.0, 1.5, 1.5]

    def test_while_there_is_room_everything_is_in(self):
        """Then no document is below the last place."""
        front = filled([2, 1], depth=3)
        assert front.last == -np.inf and front.hits(1.0).documents.tolist() == [0, 1]

    def test_a_tied_group_beyond_the_limit_is_told_by_its_size(self):
        """Of nine that tie below the first, one that must be kept and the first of the others."""
        hits = filled([1, 1, 1, 1, 2, 1, 1, 1, 1, 1], depth=2, limit=3, must_keep=np.array([8])).hits(1.0)
        assert hits.documents.tolist() == [4, 0, 8] and hits.crossing == 9

    def test_a_group_that_does_not_cross_the_depth_is_whole(self):
        """Five that tie, and five places."""
        hits = filled([1, 1, 1, 1, 1, 0], depth=5, limit=3).hits(1.0)
        assert hits.documents.tolist() == [0, 1, 2, 3, 4] and hits.crossing == 0

    def test_what_is_told_by_its_size_is_not_held(self):
        """Memory stays small however many tie: one above, two that must be kept, one other."""
        front = filled([2] + [1] * 500, depth=2, limit=3, must_keep=np.array([70, 400]))
        assert len(front.documents) <= 4 and front.hits(1.0).crossing == 500

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(0, 4), max_size=60), st.integers(1, 12), st.integers(1, 12), st.integers(1, 60),
           st.randoms(use_true_random=False))  # fmt: skip
    def test_is_a_sorted_list_however_the_documents_come(self, keys, depth, limit, size, random):
        """Sorted whole and cut behind the group of the last place, in any order and any portions."""
        order = np.array(random.sample(range(len(keys)), len(keys)), dtype=np.int64)
        must_keep = order[: len(order) // 3]
        hits = filled(keys, depth=depth, limit=limit, must_keep=must_keep, size=size, order=order).hits(1.0)
        ranked = sorted(range(len(keys)), key=lambda document: (-keys[document], document))
        last = keys[ranked[min(depth, len(ranked)) - 1]] if ranked else 0
        above = [document for document in ranked if keys[document] > last]
        group = [document for document in ranked if keys[document] == last]
        crossing = len(group) if len(above) + len(group) > depth and len(group) > limit else 0
        if crossing:
            others = [document for document in group if document not in must_keep]
            group = sorted({*set(group).intersection(must_keep.tolist()), *others[:1]})
        assert hits.documents.tolist() == above + group and hits.crossing == crossing
        assert hits.scores.tolist() == [keys[document] for document in above + group]


class TestBlocks:
    def test_each_query_gets_what_it_wants(self):
        """Documents 10, 11 and 12 for two queries, the second of which wants none."""
        fronts = fronts_of(2, 1, 1000, None)
        keys = np.array([[1.0, 3.0, 2.0], [9.0, 9.0, 9.0]])
        add_block(fronts, 10, keys, np.array([[True, True, False], [False, False, False]]))
        assert lasts(fronts).tolist() == [3.0, -np.inf]
        assert fronts[0].documents.tolist() == [11]

    def test_each_query_keeps_its_own(self):
        """Without a list nothing has to be kept."""
        assert [front.must_keep.tolist() for front in fronts_of(2, 1, 1, [np.array([4]), NONE])] == [[4], []]
        assert [front.must_keep.tolist() for front in fronts_of(2, 1, 1, None)] == [[], []]
