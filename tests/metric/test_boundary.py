"""Cases that are wrong by little, by hand."""

import numpy as np
import pytest

from harness.metric.boundary import near_choice, near_class, near_set
from harness.metric.choice import chosen
from harness.metric.classification import Classified, classified
from harness.metric.multilabel import multilabelled

OK = np.array(["ok"], dtype=object)
IDS = np.array(["c"], dtype=object)
LABELS = ("A", "B", "C")


def one(gold: str | None, *chances: float, status: str = "ok") -> Classified:
    return classified(
        IDS, [gold], LABELS[: len(chances)], np.array([chances]), LABELS[: len(chances)],
        np.array([status], dtype=object), kind="probability",
    )  # fmt: skip


class TestNearClass:
    @pytest.mark.parametrize(("gold", "chances", "near"), [
        ("A", (0.45, 0.5, 0.05), True), ("A", (0.3, 0.4, 0.3), True), ("A", (0.35, 0.55, 0.1), False),
        ("B", (0.45, 0.5, 0.05), False), ("C", (0.3, 0.36, 0.34), True),
    ])  # fmt: skip
    def test_the_right_one_is_at_most_the_gap_less_likely(
        self, gold: str, chances: tuple[float, ...], near: bool
    ) -> None:
        """.4 - .3 is .1, but for rounding. What is right is near no boundary; nor is it asked who comes second."""
        assert near_class(one(gold, *chances), 0.1).tolist() == [near]

    def test_a_tie_is_none(self) -> None:
        """B has as much as A, which is given as the first by name: that hangs on a tie."""
        assert near_class(one("B", 0.45, 0.45, 0.1), 0.1).tolist() == [False]

    @pytest.mark.parametrize(("gold", "near"), [(0.0, False), (0.2, True)])
    def test_the_gap_is_the_suites(self, gold: float, near: bool) -> None:
        assert near_class(one("A", 0.4, 0.55, 0.05), gold).tolist() == [near]

    @pytest.mark.parametrize(("gold", "status"), [(None, "ok"), ("A", "missing"), ("A", "failed")])
    def test_nothing_of_a_case_that_is_not_scored(self, gold: str | None, status: str) -> None:
        assert near_class(one(gold, 0.45, 0.5, 0.05, status=status), 0.1).tolist() == [False]

    @pytest.mark.parametrize(("positive", "near"), [(0.65, True), (0.55, False), (0.75, False)])
    def test_of_two_classes_from_their_threshold(self, positive: float, near: bool) -> None:
        """B is given from .7 on: at .65 it lacks .05, though it is by far the likelier; at .75 it is given."""
        found = one("B", 1 - positive, positive)
        given = Classified(
            found.case_ids, found.classes, found.gold, np.array([int(positive >= 0.7)]), found.probabilities,
            found.tied, found.status,
        )  # fmt: skip
        assert near_class(given, 0.1, 0.7).tolist() == [near]


class TestNearSet:
    @pytest.mark.parametrize(("gold", "chances", "near"), [
        ({"A"}, (0.9, 0.55, 0.1), True), ({"A"}, (0.9, 0.75, 0.1), False), ({"A"}, (0.45, 0.58, 0.1), True),
        ({"A"}, (0.45, 0.9, 0.1), False), ({"A"}, (0.9, 0.1, 0.1), False), (set(), (0.5, 0.1, 0.1), True),
    ])  # fmt: skip
    def test_each_label_that_is_wrong_lies_within_the_gap_of_its_threshold(
        self, gold: set[str], chances: tuple[float, ...], near: bool
    ) -> None:
        found = multilabelled(IDS, [gold], LABELS, np.array([chances]), LABELS, OK, kind="probability")
        assert near_set(found, 0.1).tolist() == [near]

    def test_each_its_own_threshold(self) -> None:
        """B is given from .8 on, and lies .04 below; .5 it passed long ago."""
        limits = {"A": 0.5, "B": 0.8, "C": 0.5}
        scores = np.array([[0.9, 0.76, 0.1]])
        found = multilabelled(IDS, [{"A", "B"}], LABELS, scores, LABELS, OK, kind="probability", thresholds=limits)
        assert near_set(found, 0.1).tolist() == [True]


class TestNearChoice:
    @pytest.mark.parametrize(("gold", "chances", "near"), [
        (1, (0.5, 0.45, 0.05), True), (2, (0.5, 0.45, 0.05), False), (0, (0.5, 0.45, 0.05), False),
        (1, (0.4, 0.4, 0.2), False), (-1, (0.5, 0.45, 0.05), False),
    ])  # fmt: skip
    def test_the_right_one_is_at_most_the_gap_less_likely(
        self, gold: int, chances: tuple[float, ...], near: bool
    ) -> None:
        """Nothing of what is right, of a tie, or of a case without gold."""
        found = chosen(IDS, np.array([gold]), [np.array(chances)], OK, kind="probability")
        assert near_choice(found, 0.1).tolist() == [near]

    def test_no_case(self) -> None:
        none = np.array([], dtype=object)
        assert near_choice(chosen(none, np.array([], dtype=np.int64), [], none, kind="logit"), 0.1).tolist() == []
