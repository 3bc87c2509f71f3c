"""One choice among several."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare.form import statistic
from harness.errors import Misconfigured
from harness.metric.choice import chosen, contribution, position_table
from harness.metric.name import parse
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import ids, ok, raw


def read(gold, scores, status=None, kind="logit", **rest):
    n = len(gold)
    each = [np.array(row, dtype=float) for row in scores]
    return chosen(ids(n), np.array(gold), each, ok(n) if status is None else status, kind=kind, **rest)


def values(name, outputs):
    return contribution(parse(name), outputs).values.tolist()


class TestByHand:
    def test_right_wrong_and_tied(self):
        """A gold choice that shares the best score with one other is worth its chance of one half."""
        assert values("choice_accuracy", read([1, 0, 0], [[0, 2], [0, 2, 1], [3, 3, 1]])) == [1, 0, 0.5]

    def test_choices_compete_in_a_softmax(self):
        """Logits 0, 0 and ln 2: the last has one half."""
        assert values("choice_log_loss", read([2], [[0, 0, np.log(2)]])) == pytest.approx([np.log(2)])

    def test_probabilities_stay_as_they_are(self):
        outputs = read([0, 0], [[0.7, 0.3], [0.7, 0.7]], kind="probability")
        assert list(outputs.status) == [Status.SCORED, Status.FAILED]
        assert values("choice_log_loss", outputs)[0] == -np.log(0.7)

    def test_a_loss_has_a_named_bound(self):
        assert values("choice_log_loss", read([0], [[-1e4, 1e4]])) == [52 * np.log(2)]

    def test_scores_may_be_small_groups_of_any_size(self):
        """Cases of several sizes keep their own places."""
        outputs = read([0, 2, 1], [[1, 0], [0, 0, 1], [0, 1]])
        assert outputs.offsets.tolist() == [0, 2, 5, 7]
        assert values("choice_accuracy", outputs) == [1, 1, 1]


class TestOrder:
    @settings(max_examples=15, deadline=None)
    @given(seed=st.integers(0, 1000))
    @pytest.mark.parametrize("name", ["choice_accuracy", "choice_log_loss"])
    def test_order_of_choices_never_changes_a_bit(self, name, seed):
        found, rng = raw("multiple-choice", seed), np.random.default_rng(seed)
        orders = [rng.permutation(len(row)) for row in found.scores]
        gold = [int(np.flatnonzero(order == g)[0]) for order, g in zip(orders, found.gold, strict=True)]
        moved = read(gold, [row[order] for row, order in zip(found.scores, orders, strict=True)])
        assert values(name, moved) == values(name, read(found.gold, found.scores))


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        status = ok(4)
        status[1] = OutputStatus.MISSING
        outputs = read([0, 0, -1, 0], [[1, 0], [np.nan, np.nan], [1, 0], [np.nan, 0]], status)
        assert list(outputs.status) == [Status.SCORED, Status.MISSING, Status.NOT_APPLICABLE, Status.FAILED]
        assert np.isnan(values("choice_accuracy", outputs)).tolist() == [False, True, True, True]

    @pytest.mark.parametrize(
        ("gold", "scores", "order"), [(2, [1, 0], [0, 1]), (0, [], []), (0, [1, 0], [0, 0]), (0, [1, 0], [0])]
    )
    def test_a_case_that_is_none(self, gold, scores, order):
        """Gold that isn't among the choices, no choices, and an order that isn't one."""
        with pytest.raises(Misconfigured, match="case 'case-0'"):
            read([gold], [scores], order=[np.array(order)])


class TestPositions:
    def test_a_model_that_takes_the_first_place(self):
        """Gold is once at each of two places; the model takes the first both times."""
        outputs = read([0, 1], [[1, 0], [1, 0]])
        found = position_table(outputs)
        assert found.offered.tolist() == [2, 2]
        assert found.gold.tolist() == [1, 1]
        assert found.chosen.tolist() == [2, 0]
        assert found.right.tolist() == [1, 0]
        assert found.expected.tolist() == [1, 1]

    def test_places_are_those_that_the_model_saw(self):
        """The data's first choice was shown last; a tie is shared among places."""
        found = position_table(read([0, 0], [[1, 0, 0], [2, 2]], order=[np.array([2, 0, 1]), np.array([1, 0])]))
        assert found.offered.tolist() == [2, 2, 1]
        assert found.gold.tolist() == [0, 1, 1]
        assert found.chosen.tolist() == [0.5, 0.5, 1]
        assert found.right.tolist() == [0, 0.5, 1]
        assert found.n_tied == 1

    def test_only_scored_cases_count(self):
        found = position_table(read([0, 0], [[1, 0], [np.nan, 0]]))
        assert found.offered.tolist() == [1, 1]

    def test_the_mean_is_over_cases(self):
        assert statistic(contribution(parse("choice_accuracy"), read([0, 0], [[1, 0], [0, 1]]))).value() == 0.5
