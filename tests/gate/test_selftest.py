"""How often a gate blocks by chance, and how often it finds a loss: small pairs whose answer is known."""

from dataclasses import replace

import numpy as np
import pytest

from harness.compare.draw import Resample, SignFlips
from harness.compare.scoreboard import Population
from harness.compare.trial import Manner
from harness.gate.fault import Fault, Target, Triple, fault, targets
from harness.gate.policy import Flags, Policy
from harness.gate.rule import Guards, Rule, Uncertainty
from harness.gate.selftest import SelfTest, Setting, selftest
from harness.output.contribution import CaseRanks, CaseRows, Contribution
from harness.output.value import CaseValues, Status

METRIC, N, DRAWS = "RR@10", 60, 400
IDS = np.array([f"q{i}" for i in range(N)], dtype=object)
POPULATION = Population.of(IDS, IDS, {"half": set(IDS[::2])})
NONE = dict.fromkeys(("missing", "failed", "non-finite"), np.zeros(N, dtype=bool))
HEADLINE = Rule(id="headline", kind="no-worse", metric=METRIC, margin=0.05)


def values(numbers: np.ndarray) -> CaseValues:
    status = np.where(np.isnan(numbers), Status.MISSING, Status.SCORED).astype(object)
    return CaseValues(METRIC, IDS, numbers, status)


def setting(
    candidate: Contribution, parent: Contribution, spoiled: Contribution, *rules: Rule, guards: Guards | None = None,
    population: Population = POPULATION, losses: frozenset[str] = frozenset(), flags: Flags | None = None,
) -> Setting:  # fmt: skip
    policy = Policy(
        rules=rules, guards=guards, guarded=("half",) if guards else (), uncertainty=Uncertainty(draws=DRAWS),
        critical=frozenset(), min_support={}, missing="undecided", losses=losses,
    )  # fmt: skip
    groups = int(population.groups.max()) + 1
    return Setting(
        policy, population, Triple({METRIC: candidate}, {METRIC: parent}, {METRIC: spoiled}),
        flags or Flags(NONE, NONE), Manner(Resample(groups, DRAWS, 3), "bca", 0.95, {}), SignFlips(groups, DRAWS, 4),
    )  # fmt: skip


def trialled(asked: Setting, *, drop: float | None = None, trials: int = 40, seed: int = 1) -> SelfTest:
    return selftest(asked, trials=trials, drop=drop, rng=np.random.default_rng(seed))


def noisy(seed: int) -> np.ndarray:
    return 1 / np.random.default_rng(seed).integers(1, 6, N)


ZERO = values(np.zeros(N))


class TestNothingChanged:
    def test_two_equal_sides_never_fail(self) -> None:
        """Exchanging them changes nothing: no trial fails."""
        same = values(noisy(1))
        found = trialled(setting(same, same, ZERO, HEADLINE, guards=Guards(metrics=[METRIC])))
        assert found.false_fail == 0.0
        assert {each.rule: each.failed for each in found.rules}["headline"] == 0.0

    def test_a_large_difference_is_no_false_fail(self) -> None:
        """A candidate that lost everything: exchanged by group, neither side is the worse one."""
        found = trialled(setting(ZERO, values(np.ones(N)), ZERO, HEADLINE, guards=Guards(metrics=[METRIC])))
        assert found.false_fail <= 0.1
        assert found.undecided > 0.5

    def test_shares_have_the_trials_behind_them(self) -> None:
        """Of no FAIL in 40 trials, Wilson: up to 0.088."""
        same = values(noisy(1))
        found = trialled(setting(same, same, ZERO, HEADLINE))
        interval = found.interval(found.false_fail)
        assert (interval.low, round(interval.high, 3)) == (0.0, 0.088)

    def test_a_count_is_exchanged_too(self) -> None:
        """A failed case of the candidate's is the parent's in half of the trials: FAIL there, UNDECIDED here."""
        broken = {**NONE, "failed": np.arange(N) == 0}
        numbers = noisy(1)
        numbers[0] = np.nan
        lacks = CaseValues(
            METRIC, IDS, numbers, np.where(np.isnan(numbers), Status.FAILED, Status.SCORED).astype(object)
        )
        found = trialled(setting(lacks, values(noisy(1)), ZERO, HEADLINE, flags=Flags(broken, NONE)), trials=200)
        shares = {each.rule: each for each in found.rules}
        assert shares["always:failed"].exact
        assert shares["always:failed"].failed == pytest.approx(0.5, abs=0.15)
        assert shares["always:failed"].failed + shares["always:missing"].undecided == 1.0

    def test_too_few_groups_decide_nothing(self) -> None:
        """Under 20 groups: UNDECIDED whatever was planted."""
        few = Population.of(IDS, np.array([f"g{i % 10}" for i in range(N)], dtype=object), {})
        found = trialled(setting(values(noisy(1)), values(noisy(2)), ZERO, HEADLINE, population=few))
        assert (found.false_fail, found.undecided, found.power, found.n_groups) == (0.0, 1.0, 0.0, 10)

    def test_the_same_seed_the_same_figures(self) -> None:
        """And another seed others."""
        asked = setting(values(noisy(1)), values(noisy(2)), ZERO, HEADLINE)
        assert trialled(asked, seed=5) == trialled(asked, seed=5)
        assert trialled(asked, seed=5) != trialled(asked, seed=6)


class TestPower:
    def test_a_stated_drop_is_found_when_it_is_large(self) -> None:
        """Half of everything lost: always. A loss within the margin: never."""
        asked = setting(values(noisy(1)), values(noisy(2)), ZERO, HEADLINE)
        assert trialled(asked, drop=0.35).power == 1.0
        assert trialled(asked, drop=0.02).power <= 0.1

    def test_the_default_is_found_four_times_in_five(self) -> None:
        """The MDE is that of the planted pair, so the rule's power is near .8 whatever the two sides were."""
        for parent in (noisy(1), noisy(2)):
            found = trialled(setting(values(noisy(1)), values(parent), ZERO, HEADLINE), trials=200)
            assert found.faults[0].by_rule == pytest.approx(0.85, abs=0.13)
            assert found.faults[0].fault is not None and found.faults[0].fault.drop > 0.05

    def test_the_observed_difference_has_no_part(self) -> None:
        """A candidate and a parent that change places are the same pair."""
        one, other = values(noisy(1)), values(noisy(2) / 2)
        drops = [trialled(setting(*pair, ZERO, HEADLINE)).faults[0].fault for pair in ((one, other), (other, one))]
        assert drops[0] is not None and drops[1] is not None
        assert drops[0].drop == pytest.approx(drops[1].drop, rel=0.05)

    def test_the_lowest_of_all_rules(self) -> None:
        """A rule over half of the cases is the weaker one; `power` is its."""
        rules = (HEADLINE, Rule(id="half", kind="no-worse", metric=METRIC, slice="half", margin=0.05))
        found = trialled(setting(values(noisy(1)), values(noisy(2)), ZERO, *rules), drop=0.2)
        assert [each.target.rule for each in found.faults] == ["headline", "half"]
        assert found.power == min(each.power for each in found.faults)

    def test_guards_alone(self) -> None:
        """Without a headline rule the guards are what should find it."""
        found = trialled(setting(values(noisy(1)), values(noisy(2)), ZERO, guards=Guards(metrics=[METRIC])), drop=0.4)
        assert [each.target.rule for each in found.faults] == [f"guard:half:{METRIC}"]
        assert found.power == 1.0

    def test_of_a_loss_worse_is_higher(self) -> None:
        """Errors from 0 to 1: spoiled cases have 5."""
        bad = values(np.full(N, 5.0))
        asked = setting(values(noisy(1)), values(noisy(2)), bad, HEADLINE, losses=frozenset([METRIC]))
        assert trialled(asked, drop=2.0).power == 1.0

    def test_a_floor(self) -> None:
        """At least .3 where the value is .46: the candidate is planted below the bound, by the drop."""
        asked = setting(
            values(noisy(1)), values(noisy(2)), ZERO, Rule(id="f", kind="at-least", metric=METRIC, value=0.3)
        )
        found = trialled(asked, drop=0.15)
        start = (noisy(1).mean() + noisy(2).mean()) / 2
        assert found.faults[0].fault is not None
        assert found.faults[0].fault.drop == pytest.approx(start - 0.3 + 0.15)
        assert found.power > 0.9

    def test_a_floor_that_is_missed_already(self) -> None:
        """Nothing needs to be planted; that the gate fails is no chance."""
        asked = setting(
            values(noisy(1)), values(noisy(2)), ZERO, Rule(id="f", kind="at-least", metric=METRIC, value=0.9)
        )
        found = trialled(asked)
        assert found.faults[0].fault is not None and found.faults[0].fault.share == 0
        assert found.power == found.false_fail == 1.0


class TestFault:
    def lost(self, drop: float, spoiled: np.ndarray, slice: str = "all") -> Fault | None:
        target = Target("r", METRIC, slice, 0.0, None, -1.0, 0.025, drop)
        sides = Triple({METRIC: values(np.ones(N))}, {METRIC: values(np.ones(N))}, {METRIC: values(spoiled)})
        return fault(target, POPULATION, sides, np.random.default_rng(1))

    def test_a_share_by_hand(self) -> None:
        """All have 1, spoiled 0: a quarter of the groups lose a quarter; of spoiled 0.5, half of them."""
        for spoiled, share in ((0.0, 0.25), (0.5, 0.5)):
            found = self.lost(0.25, np.full(N, spoiled))
            assert found is not None and found.possible
            assert found.share == pytest.approx(share, abs=1e-3)
            assert found.reached == pytest.approx(0.25, abs=1e-3)

    def test_what_cannot_be_lost(self) -> None:
        """Spoiled cases lose 0.1 each: a loss of 0.25 is not possible, and what is planted is 0.1."""
        found = self.lost(0.25, np.full(N, 0.9))
        assert found is not None and not found.possible
        assert (found.share, round(found.reached, 9), found.drop) == (1.0, 0.1, 0.25)

    def test_cases_that_cannot_be_spoiled_stay(self) -> None:
        """Only half of the cases have a spoiled output: twice as many groups are hit."""
        found = self.lost(0.25, np.where(np.arange(N) % 2, np.nan, 0.0))
        assert found is not None
        assert found.share == pytest.approx(0.5, abs=1e-3)

    def test_within_the_slice(self) -> None:
        """The loss is the slice's own."""
        found = self.lost(0.25, np.where(np.arange(N) % 2, np.nan, 0.0), "half")
        assert found is not None
        assert found.share == pytest.approx(0.25, abs=1e-3)

    @pytest.mark.parametrize("form", ["finish", "spearman", "auroc"])
    def test_every_form_loses_what_is_asked(self, form: str) -> None:
        """Plants at the share that was found lose the drop on average."""
        rng = np.random.default_rng(3)
        n = 400
        ids = np.array([f"q{i}" for i in range(n)], dtype=object)
        population = Population.of(ids, ids, {})
        sides = [_side(form, ids, rng, noise) for noise in (0.5, 0.5, 50.0)]
        triple = Triple(*({METRIC: each} for each in sides))
        found = fault(Target("r", METRIC, "all", 0.0, None, -1.0, 0.025, 0.15), population, triple, rng)
        assert found is not None and found.possible
        from harness.compare.form import statistic
        from harness.gate.fault import planted, swapped

        lost = []
        for _ in range(60):
            ours, theirs = swapped(triple, population, rng.random(n) < 0.5)
            spoiled = planted(ours, triple, found, population, rng.random(n) < found.share)
            lost.append(statistic(theirs[METRIC]).value() - statistic(spoiled[METRIC]).value())
        assert np.mean(lost) == pytest.approx(0.15, abs=0.02)


class TestTargets:
    def test_headlines_and_floors_in_their_directions(self) -> None:
        """Of a loss it is worse to rise; a floor is worse below, a ceiling above; a count is no target."""
        rules = (
            HEADLINE, Rule(id="low", kind="at-least", metric=METRIC, value=0.1),
            Rule(id="high", kind="at-most", metric="mae", value=2.0),
            Rule(id="n", kind="invariant", metric="tied", value=0),
        )  # fmt: skip
        policy = replace(setting(ZERO, ZERO, ZERO, *rules).policy, losses=frozenset(["mae"]))
        assert [(each.rule, each.worse, each.bound) for each in targets(policy, None)] == [
            ("headline", -1.0, None), ("low", -1.0, 0.1), ("high", 1.0, 2.0),
        ]  # fmt: skip

    def test_invariants_alone_have_none(self) -> None:
        """No loss can fail them."""
        rule = Rule(id="n", kind="invariant", metric="tied", value=0)
        assert targets(setting(ZERO, ZERO, ZERO, rule).policy, None) == ()


def _side(form: str, ids: np.ndarray, rng: np.random.Generator, noise: float) -> Contribution:
    n, status = len(ids), np.full(len(ids), Status.SCORED)
    gold = (np.arange(n) % 2).astype(float)
    said = gold + rng.normal(size=n) * noise
    if form == "finish":
        right = (said > 0.5) == (gold > 0.5)
        return CaseRows(METRIC, ids, np.stack([right, np.ones(n)], axis=1).astype(float), _share, status)
    return CaseRanks(METRIC, ids, (np.argsort(np.argsort(said)) / n)[:, None], gold[:, None], form, status)


def _share(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]
