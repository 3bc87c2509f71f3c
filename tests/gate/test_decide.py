"""Headline rules, floors, invariants, and the decision that follows. 0.5 and less are exact enough for hand work.

Bounds by hand: Clopper-Pearson for 0 of n at 95 % is 1 - .025 ** (1/n), for n of n .025 ** (1/n).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import ClassVar

import numpy as np
import pytest

from harness.compare.scoreboard import Population
from harness.errors import Unpairable
from harness.gate.decide import conclude, name_findings
from harness.gate.policy import Subject
from harness.gate.rule import Guards, Rule
from harness.output.decision import Outcome, RuleResult
from harness.output.value import Status

from .conftest import RECALL

PASS, FAIL, UNDECIDED, WAIVED = Outcome.PASS, Outcome.FAIL, Outcome.UNDECIDED, Outcome.WAIVED
METRIC = "nDCG@10"
Make = Callable[..., object]

# Candidate minus parent over 40 groups, each a case. Their standard errors are .016, .016 and .007.
EVEN = [0.1, -0.1] * 20
DOWN = [-0.2, 0.0] * 20
LOST = [-0.2, -0.2, -0.2, -0.1] * 10


def no_worse(margin: float, name: str = "all", critical: bool = True) -> Rule:
    return Rule(id="rule", kind="no-worse", metric=METRIC, slice=name, margin=margin, critical=critical)


def floor(kind: str, value: float, name: str = "all") -> Rule:
    return Rule(id="rule", kind=kind, metric=METRIC, slice=name, value=value)


def sides(deltas: Sequence[float]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    return {METRIC: [0.5 + delta for delta in deltas]}, {METRIC: [0.5] * len(deltas)}


def with_status(values: list[float], status: Status, *places: int) -> dict[str, list[object]]:
    return {METRIC: [status if i in places else value for i, value in enumerate(values)]}


class TestNoWorse:
    @pytest.mark.parametrize(
        ("deltas", "margin", "outcome"),
        [
            (EVEN, 0.05, PASS), (EVEN, 0.02, UNDECIDED), (EVEN, 0.0, UNDECIDED),
            (DOWN, 0.15, PASS), (DOWN, 0.1, UNDECIDED), (DOWN, 0.05, FAIL),
            (LOST, 0.2, PASS), (LOST, 0.175, UNDECIDED), (LOST, 0.1, FAIL), (LOST, 0.0, FAIL),
            ([-each for each in LOST], 0.0, PASS),
        ],
    )  # fmt: skip
    def test_the_interval_against_the_margin(
        self, gate: Make, deltas: list[float], margin: float, outcome: Outcome
    ) -> None:
        """PASS when its worse end is within, FAIL when all of it is beyond, else UNDECIDED: two errors each way."""
        found = gate().judge(*sides(deltas), no_worse(margin))["rule"]
        assert found.outcome is outcome
        assert found.low < found.delta < found.high
        within, beyond = found.low >= -margin, found.high < -margin
        assert (within, beyond) == (outcome is PASS, outcome is FAIL)

    def test_what_it_prints(self, gate: Make) -> None:
        """Mean .45 against .5 over 40; half of DOWN lies .05 off its mean, so its error is √(40/39 · 40 · .05²)/40."""
        found = gate().judge(*sides([each / 2 for each in DOWN]), no_worse(0.2))["rule"]
        assert (found.value, found.parent_value, found.delta) == pytest.approx((0.45, 0.5, -0.05))
        assert (found.n_cases, found.n_groups, found.margin, found.method) == (40, 40, 0.2, "bca")
        assert found.mde == pytest.approx((1.959964 + 0.841621) * np.sqrt(40 / 39 * 0.1) / 40, rel=1e-5)
        assert (found.p, found.p_adjusted, found.finding, found.critical) == (None, None, None, True)

    def test_a_slice_is_judged_by_its_members(self, gate: Make) -> None:
        """The slice lost and the whole gained."""
        deltas = LOST + [0.4 + each for each in EVEN + EVEN]
        found = gate(slices={"typos": range(40)}).judge(*sides(deltas), no_worse(0.1, "typos"))["rule"]
        assert (found.outcome, found.n_groups) == (FAIL, 40)
        assert gate().judge(*sides(deltas), no_worse(0.1))["rule"].outcome is PASS


class TestSupport:
    @pytest.mark.parametrize(("groups", "outcome"), [(19, UNDECIDED), (20, FAIL)])
    def test_below_twenty_groups_nothing_is_decided(self, gate: Make, groups: int, outcome: Outcome) -> None:
        """However plain the loss, and whatever the number of cases."""
        deltas = [-0.4 - 0.01 * (i % 5) for i in range(100)]
        found = gate(groups=[f"g{i % groups}" for i in range(100)]).judge(*sides(deltas), no_worse(0.1))["rule"]
        assert (found.outcome, found.n_cases, found.n_groups) == (outcome, 100, groups)

    @pytest.mark.parametrize(("least", "outcome"), [(41, UNDECIDED), (40, PASS), (1, PASS)])
    def test_a_slice_may_ask_for_more(self, gate: Make, least: int, outcome: Outcome) -> None:
        """In groups."""
        made = gate(slices={"typos": range(40)}, min_support={"typos": least})
        assert made.judge(*sides(EVEN), no_worse(0.05, "typos"))["rule"].outcome is outcome

    def test_a_slice_may_not_ask_for_less(self, gate: Make) -> None:
        """Twenty is the least there is."""
        made = gate(slices={"typos": range(19)}, min_support={"typos": 5})
        assert made.judge(*sides(EVEN), no_worse(0.5, "typos"))["rule"].outcome is UNDECIDED

    @pytest.mark.parametrize("status", [Status.MISSING, Status.FAILED, Status.UNDEFINED])
    @pytest.mark.parametrize("side", [0, 1])
    def test_one_case_without_a_value_leaves_it_undecided(self, gate: Make, side: int, status: Status) -> None:
        """On either side: a mean over the others would hide it. The reason says where."""
        both = list(sides(LOST))
        both[side] = with_status(both[side][METRIC], status, 3)
        found = gate().judge(*both, no_worse(0.1))["rule"]
        assert found.outcome is UNDECIDED
        assert f"1 of 40 cases have no value on the {('candidate', 'parent')[side]}'s side" in found.reason

    def test_a_case_without_a_value_elsewhere_does_not_matter_to_a_slice(self, gate: Make) -> None:
        """Only its own members count."""
        candidate, parent = sides(EVEN + EVEN)
        lacking = with_status(candidate[METRIC], Status.MISSING, 79)
        found = gate(slices={"typos": range(40)}).judge(lacking, parent, no_worse(0.05, "typos"))["rule"]
        assert found.outcome is PASS

    def test_not_applicable_is_outside_the_total(self, gate: Make) -> None:
        """Neither scored nor lacking: the other forty decide."""
        candidate, parent = sides([*EVEN, 0.5])
        both = [with_status(side[METRIC], Status.NOT_APPLICABLE, 40) for side in (candidate, parent)]
        found = gate().judge(*both, no_worse(0.05))["rule"]
        assert (found.outcome, found.n_cases) == (PASS, 40)

    def test_a_rule_that_applies_to_nothing(self, gate: Make) -> None:
        """No case, no delta, UNDECIDED."""
        nothing = {METRIC: [Status.NOT_APPLICABLE] * 40}
        found = gate().judge(nothing, nothing, no_worse(0.05))["rule"]
        assert (found.outcome, found.value, found.delta, found.low) == (UNDECIDED, None, None, None)


class TestUndefined:
    """A metric may have no value on cases that are all scored: a recall where nobody has the class."""

    # The class is found in every other of the first forty cases; none of the last forty is of it.
    SOME: ClassVar = [1.0, 0.0] * 20 + [-1.0] * 40
    SLICES: ClassVar = {"here": range(40), "nowhere": range(40, 80)}

    @pytest.mark.parametrize("rule", [
        Rule(id="rule", kind="no-worse", metric=RECALL, slice="nowhere", margin=0.02),
        Rule(id="rule", kind="at-least", metric=RECALL, slice="nowhere", value=0.5),
    ])  # fmt: skip
    def test_a_rule_says_so(self, gate: Make, rule: Rule) -> None:
        """And counts the cases, which are not lacking."""
        found = gate(slices=self.SLICES).judge({RECALL: self.SOME}, {RECALL: self.SOME}, rule)["rule"]
        assert (found.outcome, found.value, found.n_cases, found.n_groups) == (UNDECIDED, None, 40, 40)
        assert found.reason.startswith("recall[RARE] is undefined on ") and "40 cases are scored" in found.reason

    def test_whose_it_is(self, gate: Make) -> None:
        """A floor speaks of the candidate; a pair of the side that lacks a value, or of both."""
        rule = Rule(id="rule", kind="no-worse", metric=RECALL, slice="nowhere", margin=0.02)
        other = [*self.SOME[:40], *([1.0] * 40)]
        both = gate(slices=self.SLICES).judge({RECALL: self.SOME}, {RECALL: self.SOME}, rule)["rule"]
        own = gate(slices=self.SLICES).judge({RECALL: self.SOME}, {RECALL: other}, rule)["rule"]
        parents = gate(slices=self.SLICES).judge({RECALL: other}, {RECALL: self.SOME}, rule)["rule"]
        assert ["both sides" in both.reason, "the candidate's side" in own.reason] == [True, True]
        assert "the parent's side" in parents.reason

    def test_elsewhere_it_is_judged(self, gate: Make) -> None:
        """The slice that has the class is judged by its own."""
        rule = Rule(id="rule", kind="no-worse", metric=RECALL, slice="here", margin=0.3)
        found = gate(slices=self.SLICES).judge({RECALL: self.SOME}, {RECALL: self.SOME}, rule)["rule"]
        assert (found.outcome, found.delta) == (PASS, 0.0)

    def test_a_guard_says_so_too(self, gate: Make) -> None:
        """It is not shown worse, and counts as p = 1 in its family."""
        guards = Guards(metrics=[RECALL])
        found = gate(slices=self.SLICES).judge({RECALL: self.SOME}, {RECALL: self.SOME}, guards=guards)
        told = found["guard:nowhere:recall[RARE]"]
        assert (told.outcome, told.p, told.p_adjusted) == (PASS, None, 1.0)
        assert "is undefined on both sides" in told.reason


class TestDegenerate:
    @pytest.mark.parametrize(
        ("n", "margin", "span", "outcome"),
        [(40, 0.1, 1.0, PASS), (40, 0.05, 1.0, UNDECIDED), (400, 0.01, 1.0, PASS), (40, 0.01, 0.1, PASS)],
    )
    def test_nothing_changed(self, gate: Make, n: int, margin: float, span: float, outcome: Outcome) -> None:
        """1 - .025 ** (1/40) = .0881 of groups may change, 1 - .025 ** (1/400) = .0092; times the largest loss."""
        found = gate(span={METRIC: span}).judge(*sides([0.0] * n), no_worse(margin))["rule"]
        assert found.outcome is outcome
        assert "0 of" in found.reason

    def test_no_change_is_no_proof_without_a_margin(self, gate: Make) -> None:
        """Margin 0: some group outside the sample may lose."""
        assert gate().judge(*sides([0.0] * 400), no_worse(0.0))["rule"].outcome is UNDECIDED

    @pytest.mark.parametrize(
        ("changed", "margin", "outcome"), [(9, 0.02, UNDECIDED), (9, 0.05, PASS), (10, 0.02, PASS)]
    )
    def test_fewer_than_ten_changed_groups(self, gate: Make, changed: int, margin: float, outcome: Outcome) -> None:
        """9 of 400 are bounded by .0423; ten are resampled, and their loss of .0005 is well within .02."""
        deltas = [-0.02] * changed + [0.0] * (400 - changed)
        found = gate().judge(*sides(deltas), no_worse(margin))["rule"]
        assert found.outcome is outcome
        assert ("clopper" in found.method) == (changed == 9)

    @pytest.mark.parametrize(("margin", "outcome"), [(0.2, UNDECIDED), (0.5, UNDECIDED), (1.0, PASS)])
    def test_a_few_large_groups_are_bounded_by_their_cases(self, gate: Make, margin: float, outcome: Outcome) -> None:
        """Nine groups of 100 cases lost .5 among 91 unchanged cases: the mean fell by .454.

        9 of 100 groups are bounded by 16.4 %, but 16 groups of a hundred cases could be all 991 there are.
        """
        deltas = [-0.5] * 900 + [0.0] * 91
        groups = [f"large{i % 9}" for i in range(900)] + [f"single{i}" for i in range(91)]
        found = gate(groups=groups).judge(*sides(deltas), no_worse(margin))["rule"]
        assert (found.outcome, found.n_groups) == (outcome, 100)
        assert found.delta == pytest.approx(-450 / 991)

    def test_groups_count_not_cases(self, gate: Make) -> None:
        """Twenty changed cases in nine groups are nine."""
        deltas = [-0.02] * 20 + [0.0] * 380
        groups = [f"c{i % 9}" for i in range(20)] + [f"s{i}" for i in range(380)]
        assert gate(groups=groups).judge(*sides(deltas), no_worse(0.02))["rule"].outcome is UNDECIDED

    @pytest.mark.parametrize(("margin", "outcome"), [(0.1, FAIL), (0.3, UNDECIDED), (1.0, PASS)])
    def test_all_groups_lost_alike(self, gate: Make, margin: float, outcome: Outcome) -> None:
        """No spread: beyond the margin on every group is FAIL, else only the metric's own bound helps."""
        assert gate().judge(*sides([-0.25] * 40), no_worse(margin))["rule"].outcome is outcome

    def test_all_groups_gained_alike(self, gate: Make) -> None:
        """No spread either, so all might have changed for the worse: never FAIL."""
        assert gate().judge(*sides([0.25] * 40), no_worse(0.1))["rule"].outcome is UNDECIDED


class TestFloors:
    @pytest.mark.parametrize(
        ("kind", "value", "ones", "outcome"),
        [
            ("at-least", 0.9, 40, PASS), ("at-least", 0.92, 40, UNDECIDED), ("at-least", 0.7, 20, FAIL),
            ("at-least", 0.5, 20, UNDECIDED), ("at-least", 0.3, 20, PASS),
            ("at-most", 0.09, 0, PASS), ("at-most", 0.08, 0, UNDECIDED), ("at-most", 0.3, 20, FAIL),
            ("at-most", 0.5, 20, UNDECIDED), ("at-most", 0.7, 20, PASS),
        ],
    )  # fmt: skip
    def test_a_rate_against_its_exact_interval(
        self, gate: Make, kind: str, value: float, ones: int, outcome: Outcome
    ) -> None:
        """40 of 40: from .9119; 0 of 40: to .0881; 20 of 40: .3380 to .6620."""
        rate = {METRIC: [1.0] * ones + [0.0] * (40 - ones)}
        found = gate().judge(rate, None, floor(kind, value))["rule"]
        assert found.outcome is outcome
        assert (found.value, found.method, found.margin) == (ones / 40, "clopper-pearson", value)
        assert {40: (0.9119, 1.0), 0: (0.0, 0.0881), 20: (0.3380, 0.6620)}[ones] == pytest.approx(
            (found.low, found.high), abs=5e-5
        )

    def test_it_is_the_candidates_own(self, gate: Make) -> None:
        """What the parent scored stands beside it and decides nothing; nor does what the parent lacks."""
        rate = {METRIC: [1.0] * 20 + [0.0] * 20}
        alone = gate().judge(rate, None, floor("at-least", 0.7))["rule"]
        for parent in ({METRIC: [1.0] * 40}, with_status([1.0] * 40, Status.MISSING, 0, 1)):
            beside = gate().judge(rate, parent, floor("at-least", 0.7))["rule"]
            assert replace(beside, parent_value=None) == alone
            assert beside.parent_value == 1.0

    @pytest.mark.parametrize("status", [Status.MISSING, Status.FAILED, Status.UNDEFINED])
    def test_a_case_without_a_value(self, gate: Make, status: Status) -> None:
        """Neither passes nor fails a floor by being left out."""
        for value in (0.1, 0.999):
            lacking = with_status([0.5, 0.6] * 20, status, 0)
            assert gate().judge(lacking, None, floor("at-least", value))["rule"].outcome is UNDECIDED

    def test_the_smallest_visible_change(self, gate: Make) -> None:
        """A rate of .5 over 40 has the error √(40/39 · 40 · .25)/40, made of its spread and of no bound."""
        rate = {METRIC: [1.0] * 20 + [0.0] * 20}
        expected = (1.959964 + 0.841621) * np.sqrt(40 / 39 * 10) / 40
        for value in (0.3, 0.7):
            assert gate().judge(rate, None, floor("at-least", value))["rule"].mde == pytest.approx(expected, rel=1e-5)

    def test_without_spread_a_few_large_groups_are_bounded_by_their_cases(self, gate: Make) -> None:
        """All .95 over 40 groups: 8.8 % of equal groups may differ, but 3 of 39 · 11 times larger ones are most cases.

        .95 - .0881 · .95 = .8663 is above .8; one group of 400 cases beside 39 single ones bounds nothing.
        """
        alike = gate().judge({METRIC: [0.95] * 40}, None, floor("at-least", 0.8))["rule"]
        assert (alike.outcome, alike.low) == (PASS, pytest.approx(0.8663, abs=1e-4))
        groups = ["large"] * 400 + [f"g{i}" for i in range(39)]
        found = gate(groups=groups).judge({METRIC: [0.95] * 439}, None, floor("at-least", 0.8))["rule"]
        assert (found.outcome, found.low) == (UNDECIDED, 0.0)

    def test_support(self, gate: Make) -> None:
        """Nineteen groups decide no floor."""
        rate = {METRIC: [0.0] * 19}
        assert gate().judge(rate, None, floor("at-least", 0.9))["rule"].outcome is UNDECIDED

    def test_no_case_at_all(self, gate: Make) -> None:
        """A floor of nothing is not met."""
        found = gate().judge({METRIC: [Status.NOT_APPLICABLE] * 40}, None, floor("at-most", 0.9))["rule"]
        assert (found.outcome, found.value) == (UNDECIDED, None)


class TestInvariants:
    @pytest.mark.parametrize(("most", "outcome"), [(1, FAIL), (2, PASS), (3, PASS)])
    def test_a_count_is_exact(self, gate: Make, most: int, outcome: Outcome) -> None:
        """Two cut cases; no support is asked for."""
        rule = Rule(id="cut", kind="invariant", metric="truncated", value=float(most))
        found = gate(truncated=[1, 3]).judge({METRIC: [0.5] * 5}, None, rule)["cut"]
        assert (found.outcome, found.value, found.margin, found.n_cases) == (outcome, 2.0, most, 5)

    def test_it_is_of_its_slice(self, gate: Make) -> None:
        """One of the two is a member."""
        rule = Rule(id="cut", kind="invariant", metric="truncated", value=1.0, slice="typos")
        found = gate(truncated=[1, 3], slices={"typos": [0, 1]}).judge({METRIC: [0.5] * 5}, None, rule)["cut"]
        assert (found.outcome, found.value, found.n_cases) == (PASS, 1.0, 2)
        assert found.reason == "1 case truncated, at most 1 may be"


class TestWhatAlwaysHolds:
    def test_nothing_is_wrong(self, gate: Make) -> None:
        """Three results that nobody declared, after all others."""
        found = gate().judge(*sides(EVEN), no_worse(0.05))
        assert list(found) == ["rule", "always:failed", "always:non-finite", "always:missing"]
        assert {result.outcome for result in found.values()} == {PASS}
        assert all(result.critical for result in found.values())

    def test_one_failed_case_fails(self, gate: Make) -> None:
        """Of the candidate."""
        candidate, parent = sides(EVEN)
        failed = with_status(candidate[METRIC], Status.FAILED, 7)
        assert gate().judge(failed, parent)["always:failed"].outcome is FAIL

    @pytest.mark.parametrize("policy", ["undecided", "zero"])
    def test_a_case_that_failed_on_the_parents_side(self, gate: Make, policy: str) -> None:
        """It is no fault of the candidate and no comparison either: UNDECIDED, whatever missing cases score."""
        candidate, parent = sides(EVEN)
        found = gate(missing=policy).judge(candidate, with_status(parent[METRIC], Status.FAILED, 7))
        assert found["always:failed"].outcome is PASS
        lacking = found["always:missing"]
        assert (lacking.outcome, lacking.value, lacking.critical) == (UNDECIDED, 1.0, True)
        assert lacking.reason == "1 case failed on the parent's"
        assert conclude(found.values()) is UNDECIDED

    def test_one_output_that_is_no_number_fails(self, gate: Make) -> None:
        """By its own name."""
        found = gate(non_finite=[4]).judge(*sides(EVEN))
        assert (found["always:non-finite"].outcome, found["always:failed"].outcome) == (FAIL, PASS)

    @pytest.mark.parametrize(("policy", "outcome"), [("undecided", UNDECIDED), ("zero", PASS)])
    @pytest.mark.parametrize("side", [0, 1])
    def test_a_missing_case(self, gate: Make, side: int, policy: str, outcome: Outcome) -> None:
        """On either side: as the suite says, and counted in both cases."""
        both: list[object] = list(sides(EVEN))
        both[side] = with_status([0.5] * 40, Status.MISSING, 7)
        found = gate(missing=policy).judge(*both)["always:missing"]
        assert (found.outcome, found.value, found.critical) == (outcome, 1.0, True)
        assert f"1 case missing on the {('candidate', 'parent')[side]}'s" in found.reason
        assert ("scores a missing case 0" in found.reason) == (policy == "zero")

    def test_a_case_that_both_lack_is_one_case(self, gate: Make) -> None:
        """Not two."""
        both = [with_status([0.5] * 40, Status.MISSING, 7)] * 2
        assert gate().judge(*both)["always:missing"].value == 1.0


class TestPoolBias:
    """Judged@10 fell from 1 to .75: documents that nobody read may be the candidate's best ones."""

    JUDGED = "Judged@10"

    def board(self, deltas: list[float], fell: float = 0.25) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
        candidate, parent = sides(deltas)
        n = len(deltas)
        return {**candidate, self.JUDGED: [1.0 - fell] * n}, {**parent, self.JUDGED: [1.0] * n}

    @pytest.mark.parametrize(("gap", "outcome"), [(None, FAIL), (0.1, UNDECIDED), (0.25, FAIL), (0.3, FAIL)], ids=str)
    @pytest.mark.parametrize("rule", [no_worse(0.1), floor("at-least", 0.9)], ids=["no-worse", "at-least"])
    def test_a_fail_becomes_undecided(self, gate: Make, gap: float | None, outcome: Outcome, rule: Rule) -> None:
        """Where it fell by more than the suite allows; a floor looks at the same unread documents."""
        made = gate(max_judged_gap=gap, judged={METRIC: self.JUDGED})
        found = made.judge(*self.board(LOST), rule)["rule"]
        assert found.outcome is outcome
        assert ("judge the queue" in found.reason) == (outcome is UNDECIDED)
        assert found.awaits_judging == (outcome is UNDECIDED)

    def test_it_is_critical_whatever_the_rule_was(self, gate: Make) -> None:
        """A FAIL blocks without being critical; as UNDECIDED it must still block, not pass unread."""
        rule = no_worse(0.1, critical=False)
        judged = {METRIC: self.JUDGED}
        found = gate(max_judged_gap=0.1, judged=judged).judge(*self.board(LOST), rule)
        assert (found["rule"].critical, found["rule"].awaits_judging) == (True, True)
        assert conclude(found.values()) is UNDECIDED
        assert gate(judged=judged).judge(*self.board(LOST), rule)["rule"].critical is False

    def test_a_pass_stays(self, gate: Make) -> None:
        """Passing in spite of unread documents is passing, and what is undecided otherwise awaits no judge."""
        made = gate(max_judged_gap=0.1, judged={METRIC: self.JUDGED})
        for margin, outcome in ((0.05, PASS), (0.0, UNDECIDED)):
            found = made.judge(*self.board(EVEN), no_worse(margin))["rule"]
            assert (found.outcome, found.awaits_judging) == (outcome, False)

    def test_more_judged_documents_excuse_nothing(self, gate: Make) -> None:
        """Only a fall counts."""
        made = gate(max_judged_gap=0.1, judged={METRIC: self.JUDGED})
        candidate, parent = self.board(LOST)
        more = {**parent, self.JUDGED: [0.5] * 40}
        assert made.judge({**candidate, self.JUDGED: [1.0] * 40}, more, no_worse(0.1))["rule"].outcome is FAIL

    def test_a_rule_on_the_share_itself(self, gate: Make) -> None:
        """That the share fell is what it says, so the fall is no excuse."""
        made = gate(max_judged_gap=0.1, judged={METRIC: self.JUDGED, self.JUDGED: self.JUDGED})
        rule = Rule(id="rule", kind="no-worse", metric=self.JUDGED, margin=0.05)
        assert made.judge(*self.board(EVEN), rule)["rule"].outcome is FAIL

    def test_an_invariant_has_no_ranking_to_excuse(self, gate: Make) -> None:
        """A failed case stays failed."""
        candidate, parent = self.board(LOST)
        candidate[METRIC][0] = Status.FAILED
        made = gate(max_judged_gap=0.1, judged={METRIC: self.JUDGED})
        assert made.judge(candidate, parent)["always:failed"].outcome is FAIL


class TestNoParent:
    def test_floors_and_invariants_alone(self, gate: Make) -> None:
        """Nothing is said of a no-worse rule."""
        rate = {METRIC: [1.0] * 40}
        rules = no_worse(0.1), Rule(id="floor", kind="at-least", metric=METRIC, value=0.9)
        found = gate().judge(rate, None, *rules)
        assert list(found) == ["floor", "always:failed", "always:non-finite", "always:missing"]
        assert found["floor"].outcome is PASS


class TestOrderAndNames:
    """Neither the order in which values come nor what cases and groups are called changes a byte."""

    RULES = no_worse(0.05), Rule(id="floor", kind="at-least", metric=METRIC, value=0.4)
    GUARDS = Guards(metrics=[METRIC])
    DELTAS = tuple(np.random.default_rng(3).normal(-0.01, 0.1, 90))
    GROUPS = tuple(f"g{i % 30}" for i in range(90))

    def test_the_order_of_values(self, gate: Make) -> None:
        """They are joined by case ID."""
        plain = gate(groups=self.GROUPS).judge(*sides(self.DELTAS), *self.RULES)
        shuffled = np.random.default_rng(4).permutation(90)
        assert gate(groups=self.GROUPS, order=shuffled).judge(*sides(self.DELTAS), *self.RULES) == plain

    def test_the_order_of_cases_within_groups(self, gate: Make) -> None:
        """Sums by group are exact, so they have no order."""
        plain = gate(groups=self.GROUPS).judge(*sides(self.DELTAS), *self.RULES)
        moved = [*range(30), *range(89, 29, -1)]
        again = gate(groups=[self.GROUPS[i] for i in moved]).judge(*sides([self.DELTAS[i] for i in moved]), *self.RULES)
        assert again == plain

    def test_the_order_of_the_suite(self, gate: Make) -> None:
        """Groups are drawn by what they hold, not by where they stand: guards and intervals keep their bytes too."""
        slices = {"late": range(45, 90)}
        plain = gate(groups=self.GROUPS, slices=slices).judge(*sides(self.DELTAS), *self.RULES, guards=self.GUARDS)
        moved = np.random.default_rng(5).permutation(90)
        made = gate(groups=[self.GROUPS[i] for i in moved], slices={"late": np.flatnonzero(moved >= 45).tolist()})
        again = made.judge(*sides([self.DELTAS[i] for i in moved]), *self.RULES, guards=self.GUARDS)
        assert again == plain

    def test_names(self, gate: Make) -> None:
        """Renamed so that they sort the other way round, a group called by a number, a case by nothing but a blank."""
        plain = gate(groups=self.GROUPS).judge(*sides(self.DELTAS), *self.RULES)
        groups = [str(99 - int(group[1:])) for group in self.GROUPS]
        ids = [" ", *(f"é{200 - i}" for i in range(89))]
        assert gate(groups=groups, ids=ids).judge(*sides(self.DELTAS), *self.RULES) == plain


class TestScoreboard:
    def test_one_cell_by_hand(self, gate: Make) -> None:
        """Five cases: scored .5, missing, not applicable, and two of group b scored 1 and 0."""
        candidate = {METRIC: [0.5, Status.MISSING, Status.NOT_APPLICABLE, 1.0, 0.0]}
        parent = {METRIC: [0.25, 0.5, Status.NOT_APPLICABLE, 0.5, Status.FAILED]}
        made = gate(groups=["a", "a", "c", "b", "b"], slices={"late": [3, 4]})
        _, cells = made.cells(candidate, parent)
        cell = cells["all", METRIC]
        assert (cell.candidate.value, cell.candidate.n_scored, cell.candidate.n_total) == (0.5, 3, 4)
        assert cell.candidate.n_groups == 2
        assert (cell.parent.n_scored, cell.parent.n_total) == (3, 4)
        assert (cell.evidence.delta, cell.evidence.n_cases, cell.evidence.n_groups) == (0.375, 2, 2)
        assert (cells["late", METRIC].candidate.value, cells["late", METRIC].evidence.delta) == (0.5, 0.5)
        assert list(cells) == [("all", METRIC), ("late", METRIC)]

    def test_a_case_that_a_side_lacks_altogether(self, gate: Make) -> None:
        """Not even a status: the two cannot be paired."""
        candidate, parent = sides(EVEN)
        with pytest.raises(Unpairable):
            gate(order=range(39)).judge(candidate, parent, no_worse(0.1))

    def test_groups_are_counted_once(self) -> None:
        """By members, whatever they are called."""
        ids, groups = np.array(["x", "y", "z"], dtype=object), np.array(["g", "h", "g"], dtype=object)
        population = Population.of(ids, groups, {"s": {"x", "z", "not promoted"}})
        assert population.n_groups(population.slices["all"]) == 2
        assert population.n_groups(population.slices["s"]) == 1
        assert list(population.slices["s"]) == [True, False, True]


def result(outcome: Outcome, critical: bool = True, **figures: object) -> RuleResult:
    return RuleResult(
        id="rule", kind="no-worse", metric=METRIC, slice="all", outcome=outcome, reason="", critical=critical,
        **figures,
    )  # fmt: skip


class TestConclude:
    @pytest.mark.parametrize("pair", list(product(product(Outcome, (True, False)), repeat=2)))
    def test_the_whole_table(self, pair: tuple[tuple[Outcome, bool], ...]) -> None:
        """Any FAIL is FAIL, critical or not; else any critical UNDECIDED; else PASS, waived rules included."""
        found = conclude(result(outcome, critical) for outcome, critical in pair)
        if any(outcome is FAIL for outcome, _ in pair):
            assert found is FAIL
        elif (UNDECIDED, True) in pair:
            assert found is UNDECIDED
        else:
            assert found is PASS

    def test_no_rule_at_all(self) -> None:
        """Nothing speaks against it; a suite that declares none is refused when it is frozen."""
        assert conclude([]) is PASS


class TestFindings:
    SUBJECT = Subject(data="d", candidate="c", parent="p")
    FAILED = result(FAIL, value=0.25, delta=-0.25)

    def finding(self, changed: RuleResult | None = None, subject: Subject | None = None) -> str | None:
        return name_findings([changed or self.FAILED], subject or self.SUBJECT)[0].finding

    @pytest.mark.parametrize("outcome", [PASS, UNDECIDED, WAIVED])
    def test_only_a_fail_has_one(self, outcome: Outcome) -> None:
        """There is nothing else to waive."""
        assert self.finding(result(outcome)) is None

    def test_equal_for_equal(self) -> None:
        """64 hexadecimal digits; how it is worded and how it was resampled are no part of it."""
        found = self.finding()
        assert found and len(found) == 64 and found == self.finding()
        assert found == self.finding(
            replace(self.FAILED, reason="other words", low=-0.5, high=-0.1, p=0.01, margin=0.2)
        )

    @pytest.mark.parametrize(
        "change",
        [
            {"id": "other"}, {"slice": "typos"}, {"metric": "P@5"}, {"value": 0.26}, {"delta": -0.26}, {"delta": None},
            {"value": float(np.nextafter(0.25, 1))},
        ],
    )  # fmt: skip
    def test_another_finding_is_another(self, change: dict[str, object]) -> None:
        """Rule, slice, metric, or a figure in its last digit."""
        assert self.finding(replace(self.FAILED, **change)) != self.finding()

    @pytest.mark.parametrize("change", [{"data": "e"}, {"candidate": "e"}, {"parent": "e"}, {"parent": None}])
    def test_another_subject_is_another(self, change: dict[str, object]) -> None:
        """Other data or other contents: the old waiver does not cover it."""
        assert self.finding(subject=replace(self.SUBJECT, **change)) != self.finding()

    def test_the_results_stay_in_their_order(self) -> None:
        """And are otherwise untouched."""
        results = [result(PASS), self.FAILED, result(UNDECIDED)]
        found = name_findings(results, self.SUBJECT)
        assert [replace(each, finding=None) for each in found] == results
