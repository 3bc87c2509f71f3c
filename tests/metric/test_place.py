"""Where a ranking put the judged documents."""

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.metric.place import JudgedPlaces, place, tied_cases


class TestPlace:
    def test_a_tied_group_is_counted_from_its_first_document(self, judge):
        """a | b c d | e: c stands in a group of three below one document."""
        places = judge([{"a": 3, "b": 2, "c": 2, "d": 2, "e": 1}], [{"c": 1, "e": 2, "gone": 3}])
        assert places.above.tolist() == [1, 4, -1]
        assert places.tied.tolist() == [3, 1, 0]
        assert places.grade.tolist() == [1, 2, 3]
        assert places.retrieved.tolist() == [5]

    def test_trec_ties_nothing(self, judge):
        """b c d stand by falling ID: d first."""
        places = judge([{"a": 3, "b": 2, "c": 2, "d": 2, "e": 1}], [{"c": 1, "d": 2, "gone": 3}], ties="trec")
        assert places.above.tolist() == [1, 2, -1]
        assert places.tied.tolist() == [1, 1, 0]

    def test_equal_scores_in_two_cases_are_not_tied(self, judge):
        places = judge([{"a": 1}, {"b": 1, "c": 1}, {}, {"d": 1}], [{"a": 1}, {"c": 1}, {"z": 1}, {"d": 1}])
        assert places.tied.tolist() == [1, 2, 0, 1]
        assert places.above.tolist() == [0, 0, -1, 0]

    def test_rows_stand_by_place_then_falling_grade(self, judge):
        places = judge([{"a": 1, "b": 2, "c": 2}], [{"gone": 9, "a": 3, "b": 1, "c": 2}])
        assert places.grade.tolist() == [2, 1, 3, 9]

    def test_agrees_with_a_count_by_hand_on_many_rankings(self, judge):
        """Counting larger and equal scores one by one gives the same places."""
        rng = np.random.default_rng(1)
        rankings = [
            {f"d{i}": float(score) for i, score in enumerate(rng.integers(12, size=rng.integers(40)))}
            for _ in range(50)
        ]
        judgements = [{f"d{i}": int(i) for i in rng.permutation(60)[:15]} for _ in rankings]
        places = judge(rankings, judgements)
        found = {
            (int(case), int(grade)): (int(above), int(tied))
            for case, grade, above, tied in zip(places.case, places.grade, places.above, places.tied, strict=True)
        }
        for case, (ranking, grades) in enumerate(zip(rankings, judgements, strict=True)):
            for document, grade in grades.items():
                score, others = ranking.get(document), list(ranking.values())
                wanted = (-1, 0) if score is None else (sum(s > score for s in others), others.count(score))
                assert found[case, grade] == wanted


class TestRefusal:
    def test_a_score_that_the_ranking_does_not_hold(self):
        with pytest.raises(Misconfigured, match=r"0\.5"):
            place(
                np.array([0, 2]),
                np.array([2.0, 1.0]),
                np.array([0, 1]),
                np.array([1]),
                np.array([0.5]),
                np.array([1]),
                np.array([0]),
                ties="expected",
            )

    def test_trec_over_a_ranking_that_is_not_whole(self, judge):
        with pytest.raises(Misconfigured, match="not stored whole"):
            judge([{"a": 1.0}], [{"a": 1}], ties="trec", crossing=[7])

    def test_rows_out_of_order(self):
        with pytest.raises(Misconfigured, match="row 1 is out of order"):
            JudgedPlaces(np.array([0, 2]), np.array([1, 1]), np.array([4, 2]), np.array([1, 1]), np.array([9]))


class TestTiedCases:
    @pytest.mark.parametrize(
        ("ranking", "grades", "tied"),
        [
            ({"a": 2, "b": 1}, {"a": 1, "b": 0}, False),
            ({"a": 1, "b": 1}, {"a": 1}, True),
            ({"a": 1, "b": 1}, {"a": 1, "b": 2}, True),
            ({"a": 1, "b": 1}, {"a": 1, "b": 1}, False),
            ({"a": 1, "b": 1}, {}, False),
            ({"x": 3, "y": 2, "a": 1, "b": 1}, {"a": 1}, False),
        ],
    )
    def test_counts_where_order_could_change_a_metric(self, ranking, grades, tied, judge):
        """Not where the tied documents are of one grade, unjudged, or all below the depth, here 2."""
        places = judge([{}, ranking], [{"q": 1}, grades])
        assert tied_cases(places, depth=2).tolist() == [False, tied]
