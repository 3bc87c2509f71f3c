"""Guards fail only when shown worse, over all that were declared.

With 1000 draws the smallest p is 1/1001: 40 groups that all lost leave no exchange that looks as bad.
"""

from collections.abc import Callable, Sequence

import pytest

from harness.gate.decide import conclude
from harness.gate.rule import Guards
from harness.output.decision import Outcome
from harness.output.value import Status

Make = Callable[..., object]

LOST = [-0.2, -0.2, -0.2, -0.1] * 10
EVEN = [0.1, -0.1] * 20
LEAST = 1 / 1001
NOTHING = [Status.NOT_APPLICABLE] * 40


def sides(**deltas: Sequence[float]) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    return (
        {name: [0.5 + delta for delta in each] for name, each in deltas.items()},
        {name: [0.5] * len(each) for name, each in deltas.items()},
    )


def guards(*metrics: str, margin: float = 0.0) -> Guards:
    return Guards(metrics=list(metrics), margin=margin)


class TestShownWorse:
    def test_a_loss_in_every_group_fails(self, gate: Make) -> None:
        """By the name `guard:SLICE:METRIC`, with p as it is and over the family."""
        found = gate(slices={"typos": range(40)}).judge(*sides(RR=LOST), guards=guards("RR"))["guard:typos:RR"]
        assert (found.outcome, found.kind, found.slice, found.metric) == (Outcome.FAIL, "guard", "typos", "RR")
        assert (found.p, found.p_adjusted) == pytest.approx((LEAST, LEAST))
        assert found.delta == pytest.approx(-0.175)
        assert found.reason.startswith("shown worse")

    def test_no_change_is_not_shown_worse(self, gate: Make) -> None:
        """PASS in those words, and no proof of being as good."""
        found = gate(slices={"typos": range(40)}).judge(*sides(RR=EVEN), guards=guards("RR"))["guard:typos:RR"]
        assert found.outcome is Outcome.PASS
        assert found.p > 0.3
        assert found.reason.startswith("not shown worse")

    def test_nothing_changed_at_all(self, gate: Make) -> None:
        """Every exchange looks the same, so p is 1."""
        found = gate(slices={"typos": range(40)}).judge(*sides(RR=[0.0] * 40), guards=guards("RR"))["guard:typos:RR"]
        assert (found.outcome, found.p) == (Outcome.PASS, 1.0)

    def test_a_gain_is_never_shown_worse(self, gate: Make) -> None:
        """One-sided."""
        gained = [-each for each in LOST]
        found = gate(slices={"typos": range(40)}).judge(*sides(RR=gained), guards=guards("RR"))["guard:typos:RR"]
        assert (found.outcome, found.p) == (Outcome.PASS, 1.0)

    @pytest.mark.parametrize(("margin", "outcome"), [(0.0, Outcome.FAIL), (0.1, Outcome.FAIL), (0.2, Outcome.PASS)])
    def test_the_margin_is_the_null(self, gate: Make, margin: float, outcome: Outcome) -> None:
        """A mean loss of .175 is worse than .1 and not worse than .2."""
        made = gate(slices={"typos": range(40)})
        found = made.judge(*sides(RR=LOST), guards=guards("RR", margin=margin))["guard:typos:RR"]
        assert (found.outcome, found.margin) == (outcome, margin)

    @pytest.mark.parametrize(("groups", "outcome"), [(4, Outcome.PASS), (40, Outcome.FAIL)])
    def test_groups_are_exchanged_whole(self, gate: Make, groups: int, outcome: Outcome) -> None:
        """Forty losing cases in four groups are four witnesses: 1 exchange in 16 looks as bad."""
        made = gate(slices={"typos": range(40)}, groups=[f"g{i % groups}" for i in range(40)])
        found = made.judge(*sides(RR=LOST), guards=guards("RR"))["guard:typos:RR"]
        assert found.outcome is outcome
        assert found.n_groups == groups
        assert found.p == pytest.approx(1 / 16 if groups == 4 else LEAST, abs=0.03 if groups == 4 else 1e-9)


class TestFamily:
    def test_holm_over_all_members(self, gate: Make) -> None:
        """Two slices × two metrics: the smallest p counts fourfold, the next threefold; half the family is even."""
        made = gate(slices={"a": range(40), "b": range(40, 80)})
        found = made.judge(*sides(RR=LOST + EVEN, P=EVEN + LOST), guards=guards("RR", "P"))
        assert list(found)[:4] == ["guard:a:RR", "guard:a:P", "guard:b:RR", "guard:b:P"]
        assert found["guard:a:RR"].p_adjusted == pytest.approx(4 * LEAST)
        assert found["guard:b:P"].p_adjusted == pytest.approx(4 * LEAST)
        assert [each.outcome for each in list(found.values())[:4]] == [
            Outcome.FAIL, Outcome.PASS, Outcome.PASS, Outcome.FAIL,
        ]  # fmt: skip

    @pytest.mark.parametrize(("family", "times"), [("holm", 2), ("benjamini-hochberg", 1)])
    def test_the_suite_chooses(self, gate: Make, family: str, times: int) -> None:
        """Two members with the smallest p each: Holm doubles both, Benjamini-Hochberg neither."""
        made = gate(slices={"a": range(40)}, family=family)
        found = made.judge(*sides(RR=LOST, P=LOST), guards=guards("RR", "P"))
        assert found["guard:a:RR"].p_adjusted == pytest.approx(times * LEAST)

    def test_an_undefined_member_stays_in_the_family(self, gate: Make) -> None:
        """It counts as p = 1: the other's p doubles, and it passes by itself."""
        candidate, parent = sides(RR=LOST)
        made = gate(slices={"a": range(40)})
        found = made.judge({**candidate, "P": NOTHING}, {**parent, "P": NOTHING}, guards=guards("RR", "P"))
        assert found["guard:a:RR"].p_adjusted == pytest.approx(2 * LEAST)
        undefined = found["guard:a:P"]
        assert (undefined.outcome, undefined.p, undefined.p_adjusted, undefined.delta) == (
            Outcome.PASS,
            None,
            1.0,
            None,
        )

    def test_all_members_undefined(self, gate: Make) -> None:
        """Nothing to test, nothing shown."""
        found = gate(slices={"a": range(40)}).judge({"P": NOTHING}, {"P": NOTHING}, guards=guards("P"))
        assert (found["guard:a:P"].outcome, found["guard:a:P"].p_adjusted) == (Outcome.PASS, 1.0)

    def test_a_family_can_be_too_large_for_its_draws(self, gate: Make) -> None:
        """51 members × 1/1001 is above .05: hence draws ≥ 2·m/α is asked for when a suite is frozen."""
        names = [f"M{i}" for i in range(51)]
        even = dict.fromkeys(names[1:], EVEN)
        for members, outcome in ((names[:50], Outcome.FAIL), (names, Outcome.PASS)):
            deltas = {name: even.get(name, LOST) for name in members}
            found = gate(slices={"a": range(40)}).judge(*sides(**deltas), guards=guards(*members))
            assert found["guard:a:M0"].outcome is outcome

    def test_the_smallest_visible_change_is_that_of_the_family(self, gate: Make) -> None:
        """z at α/m in the place of α: 1.644854 for one member, 1.959964 for two, each plus .841621."""
        made = gate(slices={"a": range(40)})
        one = made.judge(*sides(RR=EVEN), guards=guards("RR"))["guard:a:RR"].mde
        two = made.judge(*sides(RR=EVEN, P=EVEN), guards=guards("RR", "P"))["guard:a:RR"].mde
        assert two / one == pytest.approx((1.959964 + 0.841621) / (1.644854 + 0.841621), rel=1e-6)


class TestWhatBearsOnIt:
    def test_it_inherits_its_slices_criticality(self, gate: Make) -> None:
        """A FAIL blocks either way; an UNDECIDED only where it is critical."""
        made = gate(slices={"a": range(20), "b": range(20, 40)}, critical=frozenset({"a"}))
        found = made.judge(*sides(RR=EVEN), guards=guards("RR"))
        assert [found[f"guard:{name}:RR"].critical for name in "ab"] == [True, False]

    @pytest.mark.parametrize("side", [0, 1])
    @pytest.mark.parametrize("status", [Status.MISSING, Status.FAILED, Status.UNDEFINED])
    def test_cases_without_a_value_hide_no_loss(self, gate: Make, side: int, status: Status) -> None:
        """What is shown worse on the pairs there are stays shown worse; the reason says what they lack."""
        both = sides(RR=LOST)
        both[side]["RR"][0] = status
        found = gate(slices={"a": range(40)}).judge(*both, guards=guards("RR"))["guard:a:RR"]
        assert (found.outcome, found.n_cases) == (Outcome.FAIL, 39)
        assert found.reason.startswith("shown worse")
        assert f"1 of 40 cases have no value on the {('candidate', 'parent')[side]}'s side" in found.reason

    @pytest.mark.parametrize("side", [0, 1])
    def test_cases_without_a_value_show_nothing(self, gate: Make, side: int) -> None:
        """The other pairs are not shown worse: PASS with a note; that cases lack is what always:missing says."""
        both = sides(RR=EVEN)
        both[side]["RR"][0] = Status.MISSING
        found = gate(slices={"a": range(40)}, critical=frozenset("a")).judge(*both, guards=guards("RR"))
        assert found["guard:a:RR"].outcome is Outcome.PASS
        assert "1 of 40 cases have no value" in found["guard:a:RR"].reason
        assert conclude(found.values()) is Outcome.UNDECIDED

    def test_no_pair_at_all(self, gate: Make) -> None:
        """Nothing to test: p is none, and says so."""
        both = sides(RR=LOST)
        both[1]["RR"][:] = [Status.MISSING] * 40
        found = gate(slices={"a": range(40)}).judge(*both, guards=guards("RR"))["guard:a:RR"]
        assert (found.outcome, found.p, found.p_adjusted) == (Outcome.PASS, None, 1.0)
        assert found.reason.startswith("not shown worse: no pair of cases; 40 of 40 cases have no value")

    def test_without_a_parent_there_are_none(self, gate: Make) -> None:
        """There is nothing to be worse than."""
        found = gate(slices={"a": range(40)}).judge(sides(RR=LOST)[0], None, guards=guards("RR"))
        assert not any(name.startswith("guard:") for name in found)

    def test_pool_bias_excuses_a_guard_too(self, gate: Make) -> None:
        """Judged@10 of the slice fell from 1 to .5."""
        candidate, parent = sides(RR=LOST)
        judged = {"Judged@10": [0.5] * 40}, {"Judged@10": [1.0] * 40}
        made = gate(slices={"a": range(40)}, max_judged_gap=0.1, judged={"RR": "Judged@10"})
        found = made.judge(candidate | judged[0], parent | judged[1], guards=guards("RR"))
        assert (found["guard:a:RR"].outcome, found["guard:a:RR"].awaits_judging) == (Outcome.UNDECIDED, True)
        assert found["guard:a:RR"].critical

    def test_names_and_orders_change_nothing(self, gate: Make) -> None:
        """Cases in another order within their groups, groups and cases renamed."""
        groups = [f"g{i % 20}" for i in range(40)]
        plain = gate(slices={"a": range(40)}, groups=groups).judge(*sides(RR=[*EVEN[1:], 0.3]), guards=guards("RR"))
        moved = [*range(20), *range(39, 19, -1)]
        deltas = [*EVEN[1:], 0.3]
        made = gate(
            slices={"a": range(40)}, groups=[f"h{99 - i % 20}" for i in moved], ids=[f"é{i}" for i in range(40)]
        )
        assert made.judge(*sides(RR=[deltas[i] for i in moved]), guards=guards("RR")) == plain
