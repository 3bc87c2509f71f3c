"""Two sides exchange what they bring, whatever the form of the metric."""

from dataclasses import replace

import numpy as np
import pytest

from harness.compare.draw import Resample
from harness.compare.exchange import exchanged, on_one_scale
from harness.compare.form import statistic
from harness.compare.scoreboard import Population, by_content, scoreboard
from harness.compare.trial import Manner, Sides, Wanted, boards
from harness.output.contribution import CaseRanks, CaseRows, Contribution, RankKind
from harness.output.value import CaseValues, Status

N = 60
IDS = np.array([f"q{i}" for i in range(N)], dtype=object)
KINDS: tuple[RankKind, ...] = ("pearson", "spearman", "kendall", "auroc", "average_precision")


def share(sums: np.ndarray) -> np.ndarray:
    return sums[..., 0] / sums[..., 1]


def side(seed: int) -> dict[str, Contribution]:
    """A metric of each form; the first case is missing from all."""
    rng = np.random.default_rng(seed)
    status = np.full(N, Status.SCORED, dtype=object)
    status[seed % 5] = Status.MISSING
    lacks = status == Status.MISSING
    values = np.where(lacks, np.nan, 1 / rng.integers(1, 6, N))
    rows = np.where(lacks[:, None], np.nan, np.stack([rng.random(N) < 0.6, np.ones(N)], axis=1))
    found: dict[str, Contribution] = {
        "mean": CaseValues("mean", IDS, values, status),
        "finish": CaseRows("finish", IDS, rows, share, status),
    }
    for kind in KINDS:
        x = np.where(lacks, np.nan, np.exp(seed * rng.integers(0, 9, N) / 4))[:, None]
        y = np.where(lacks, np.nan, np.arange(N) % 2)[:, None]
        found[kind] = CaseRanks(kind, IDS, x, y, kind, status)
    return found


class TestExchanged:
    def test_a_case_brings_what_the_mask_says(self) -> None:
        """Values, rows, ranks and statuses of the marked cases are the other side's, of the rest one's own."""
        ours, theirs, mask = side(1), side(2), np.arange(N) % 3 == 0
        found = exchanged(ours, theirs, mask)
        assert list(found) == list(ours)
        for name, each in found.items():
            assert each.status.tolist() == np.where(mask, theirs[name].status, ours[name].status).tolist()
        mean, rows, rank = found["mean"], found["finish"], found["kendall"]
        assert isinstance(mean, CaseValues) and isinstance(rows, CaseRows) and isinstance(rank, CaseRanks)
        np.testing.assert_array_equal(mean.values[mask], theirs["mean"].values[mask])
        np.testing.assert_array_equal(rows.rows[~mask], ours["finish"].rows[~mask])
        np.testing.assert_array_equal(rank.x[mask], theirs["kendall"].x[mask])

    def test_twice_is_never(self) -> None:
        """What both sides exchanged, they exchange back."""
        ours, theirs, mask = side(1), side(2), np.arange(N) % 2 == 0
        once = exchanged(ours, theirs, mask), exchanged(theirs, ours, mask)
        for name, each in exchanged(*once, mask).items():
            assert statistic(each).value() == statistic(ours[name]).value()


class TestOnOneScale:
    def test_a_whole_side_keeps_its_statistics(self) -> None:
        """Midranks and standard scores change no correlation and no ordering."""
        sides = [side(1), side(3)]
        for before, after in zip(sides, on_one_scale(sides, like=(0, 1)), strict=True):
            for name, each in after.items():
                assert statistic(each).value() == pytest.approx(statistic(before[name]).value(), abs=1e-12)

    def test_scales_become_comparable(self) -> None:
        """A side whose numbers are ten times as large is, after it, the same side; a mean is left alone."""
        ours = side(1)
        large = {name: _times(each, 10) for name, each in ours.items()}
        for one, other in zip(*(each.items() for each in on_one_scale([ours, large], like=(0, 1))), strict=True):
            if isinstance(one[1], CaseRanks) and isinstance(other[1], CaseRanks):
                np.testing.assert_allclose(one[1].x, other[1].x, atol=1e-12)

    def test_a_side_may_stand_on_anothers_scale(self) -> None:
        """Three of four lie below a new number: midrank 3/4; one that equals the second lies at 3/8."""
        x = np.array([1.0, 2.0, 3.0, 9.0])
        among, own = (_ranks(each) for each in (x, np.array([5.0, 2.0, 0.0, 10.0])))
        found = on_one_scale([{"m": among}, {"m": own}], like=(0, 0))[1]["m"]
        assert isinstance(found, CaseRanks)
        assert found.x[:, 0].tolist() == [0.75, 0.375, 0.0, 1.0]


class TestBoards:
    def test_a_trial_is_a_comparison(self) -> None:
        """The same cells to the last bit as the scoreboard has for the same draws, of every form."""
        ours, theirs = side(1), side(3)
        groups = np.array([f"g{i // 2}" for i in range(N)], dtype=object)
        population = Population.of(IDS, groups, {"even": set(IDS[::2])})
        manner = Manner(Resample(N // 2, 200, 7), "bca", 0.95, {})
        keys = tuple((name, metric) for name in ("all", "even") for metric in ours)
        wanted = Wanted(keys, frozenset(keys), frozenset(keys))
        for candidate, parent in ((theirs, ours), (ours, theirs)):
            ordered = replace(population, groups=by_content(population, [candidate, parent]))
            cells = boards(ordered, [Sides(ours, ours), Sides(candidate, parent)], wanted, manner)[1]
            whole = scoreboard(population, candidate, parent, resample=manner.resample, method="bca", level=0.95)
            for key, cell in cells.items():
                assert cell.candidate == whole[key].candidate
                assert cell.evidence == whole[key].evidence

    def test_what_is_not_wanted_is_not_computed(self) -> None:
        """A guard's cell has its pair, and no interval."""
        population = Population.of(IDS, IDS, {})
        key = ("all", "mean")
        manner = Manner(Resample(N, 200, 7), "bca", 0.95, {})
        cell = boards(population, [Sides(side(1), side(3))], Wanted((key,), frozenset(), frozenset()), manner)[0][key]
        assert cell.paired is not None
        assert cell.evidence is None and cell.candidate.interval is None


def _times(found: Contribution, factor: float) -> Contribution:
    if not isinstance(found, CaseRanks):
        return found
    return CaseRanks(found.metric, found.case_ids, found.x * factor, found.y, found.kind, found.status)


def _ranks(x: np.ndarray) -> CaseRanks:
    n = len(x)
    return CaseRanks("m", IDS[:n], x[:, None], np.arange(float(n))[:, None], "spearman", np.full(n, Status.SCORED))
