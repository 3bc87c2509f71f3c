"""What holds of every metric of labels, numbers, pairs, choices, entities and answers."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare.form import statistic
from harness.errors import EmptySlice, Misconfigured
from harness.metric.name import parse
from harness.output.contribution import CaseForecasts, CaseRanks, CaseRows
from harness.output.value import CaseValues

from .outputs import LABELS, Raw, names, raw

TASKS = ("classification", "multilabel", "regression", "similarity", "multiple-choice", "entity", "answer")
EVERY = [(task, name) for task in TASKS for name in names(task)]
LABELLED = [(task, name) for task, name in EVERY if task in TASKS[:2]]
FORMS = {"mean": CaseValues, "finish": CaseRows, "rank": CaseRanks | CaseForecasts}

NO_BEST = ("brier_resolution", "brier_uncertainty", "calibration_", "coverage")
"""What the data or the release decide, or what has a right value between too low and too high."""

laws = settings(max_examples=8, deadline=None)
seeds = st.integers(0, 10**6)


class TestNumbersHangOnTheCasesAlone:
    @pytest.mark.parametrize(("task", "name"), EVERY)
    @laws
    @given(seed=seeds)
    def test_order_of_cases_never_changes_a_bit(self, task, name, seed):
        found = raw(task, seed)
        order = np.random.default_rng(seed).permutation(len(found.gold))
        assert found.take(order).value(name) == found.value(name)

    @pytest.mark.parametrize(("task", "name"), LABELLED)
    @laws
    @given(seed=seeds, own=st.permutations(range(4)), declared=st.permutations(LABELS))
    def test_order_of_labels_never_changes_a_bit(self, task, name, seed, own, declared):
        """Neither the model's nor the data's: columns go by name, and ties too."""
        found = raw(task, seed)
        assert found.relabelled(own).value(name, tuple(declared)) == found.value(name)

    # The rows of R² stand around the mean of the targets at hand.
    @pytest.mark.parametrize(("task", "name"), [each for each in EVERY if each[1] != "r2"])
    @laws
    @given(seed=seeds, cut=st.lists(st.integers(1, 29), max_size=5))
    def test_a_case_is_read_alike_in_any_batch(self, task, name, seed, cut):
        """What cases bring is bit for bit the same when they are read in pieces; the number is made of all of them."""
        found = raw(task, seed)
        whole = found.contribution(name)
        edges = [0, *sorted(set(cut)), len(found.gold)]
        pieces = [found.take(range(low, high)).contribution(name) for low, high in pairwise(edges)]
        for part in ("values", "rows", "x", "y"):
            if hasattr(whole, part):
                joined = np.concatenate([getattr(piece, part)[piece.scored] for piece in pieces])
                scored = np.concatenate([piece.scored for piece in pieces])
                assert joined.tobytes() == getattr(whole, part)[scored].tobytes()

    @pytest.mark.parametrize(("task", "name"), EVERY)
    @laws
    @given(seed=seeds)
    def test_a_subset_is_the_metric_of_its_cases(self, task, name, seed):
        """The statistic of a slice equals that of the slice's cases measured alone (R² but for rounding)."""
        found = raw(task, seed)
        inside = np.random.default_rng(seed).random(len(found.gold)) < 0.7
        inside[:4] = True
        alone = found.take(np.flatnonzero(inside)).contribution(name)
        if alone.scored.any():
            sliced = statistic(found.contribution(name), inside).value()
            assert sliced == pytest.approx(statistic(alone).value(), abs=1e-12, nan_ok=True)

    @pytest.mark.parametrize(("task", "name"), EVERY)
    @laws
    @given(seed=seeds)
    def test_a_case_of_weight_two_counts_twice(self, task, name, seed):
        found = raw(task, seed)
        counts = np.random.default_rng(seed).integers(1, 4, len(found.gold))
        brought = found.contribution(name)
        weighted = statistic(brought).of(counts[None, brought.scored].astype(float))[0]
        repeated = found.take(np.repeat(np.arange(len(found.gold)), counts)).value(name)
        assert weighted == pytest.approx(repeated, abs=1e-12, nan_ok=True)


class TestNamesKeepTheirWord:
    @pytest.mark.parametrize(("task", "name"), EVERY)
    @laws
    @given(seed=seeds)
    def test_form_and_bounds(self, task, name, seed):
        """A name knows in which form its metric comes and between which values it lies."""
        metric, found = parse(name), raw(task, seed)
        brought = found.contribution(name)
        assert isinstance(brought, FORMS[metric.form])
        assert brought.metric == name
        assert metric.lowest <= found.value(name) <= metric.highest

    @pytest.mark.parametrize(("task", "name"), [each for each in EVERY if not each[1].startswith(NO_BEST)])
    def test_a_perfect_answer_is_the_best_there_is(self, task, name):
        """Higher is better, or lower, as the name says."""
        metric, found = parse(name), raw(task, 3)
        right = _perfect(found).value(name)
        assert right == pytest.approx(metric.highest if metric.higher_is_better else metric.lowest, abs=1e-12)
        worse = found.value(name)
        assert worse < right if metric.higher_is_better else worse > right

    @pytest.mark.parametrize("task", TASKS)
    @pytest.mark.parametrize(
        "name",
        ["nDCG@10", "mae", "accuracy", "subset_accuracy", "pair_f1", "choice_accuracy", "entity_f1", "exact_match"],
    )
    def test_every_task_has_its_own_and_refuses_the_others(self, task, name):
        """It is no silent zero."""
        if task in parse(name).tasks:
            assert raw(task, 1).contribution(name).scored.all()
        else:
            with pytest.raises(Misconfigured, match=f"Name one of {task}"):
                raw(task, 1).contribution(name)

    @pytest.mark.parametrize("task", TASKS)
    def test_no_scored_case_is_no_number(self, task):
        """Where every output is missing there is nothing to take a statistic of."""
        found = raw(task, 1)
        nothing = [None if task == "entity" else np.full(np.shape(row), np.nan) for row in found.scores]
        none = Raw(task, found.gold, nothing)
        for name in names(task):
            brought = none.contribution(name)
            assert not brought.scored.any()
            with pytest.raises(EmptySlice):
                statistic(brought)


def _perfect(found: Raw) -> Raw:
    match found.task:
        case "classification":
            scores = [[99.0 if gold == c else -99.0 for c in LABELS] for gold in found.gold]
        case "multilabel":
            scores = [[99.0 if c in gold else -99.0 for c in LABELS] for gold in found.gold]
        case "regression" | "similarity" | "entity":
            scores = found.gold
        case "answer":
            scores = [(gold[-1], 1.0, 0.0) if gold else (None, 0.0, 1.0) for gold in found.gold]
        case _:
            scores = [
                np.where(np.arange(len(row)) == gold, 99.0, -99.0)
                for gold, row in zip(found.gold, found.scores, strict=True)
            ]
    return Raw(found.task, found.gold, scores)
