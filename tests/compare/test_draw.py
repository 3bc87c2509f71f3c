"""Draws are of whole groups, and a seed makes them again."""

import numpy as np
import pytest

from harness.compare.draw import Resample, SignFlips, over_draws
from harness.compare.group import Floats
from harness.compare.statistic import Finish


def whole(draws: Resample | SignFlips, rows: int) -> Floats:
    return np.concatenate(list(draws.blocks(rows)))


class TestResample:
    def test_as_many_groups_are_drawn_as_there_are(self) -> None:
        """Counts are whole, not negative, and sum to the number of groups."""
        counts = whole(Resample(7, 500, seed=1), 64)
        assert counts.shape == (500, 7)
        assert (counts == np.rint(counts)).all()
        assert (counts >= 0).all()
        assert (counts.sum(axis=1) == 7).all()

    def test_every_group_is_as_likely(self) -> None:
        """Means near 1, variance near 1 - 1/g, within five standard errors."""
        counts = whole(Resample(10, 20_000, seed=2), 999)
        assert np.abs(counts.mean(axis=0) - 1).max() < 5 * np.sqrt(0.9 / 20_000)
        assert counts.var(axis=0).mean() == pytest.approx(0.9, abs=0.02)


class TestOverDraws:
    @pytest.mark.parametrize("share", [0.02, 0.9])
    def test_what_is_0_is_left_out_without_a_trace(self, share: float) -> None:
        """The bytes are those of the whole product, whether few or most numbers are 0; equal columns are one."""
        rng = np.random.default_rng(6)
        rows = np.where(rng.random((300, 40)) < share, rng.normal(size=(300, 40)), 0.0)
        statistics = [
            Finish(rows[:, :25], lambda sums: sums[:, 0] - sums[:, 24]), Finish(rows[:, 20:], lambda sums: sums[:, 3])
        ]  # fmt: skip
        by_group = [each.by_group(np.arange(300) % 70, 71) for each in statistics]
        draws = Resample(71, 90, seed=7)
        alone = np.stack([each.of(whole(draws, 90)) for each in by_group])
        assert over_draws(by_group, draws).tobytes() == alone.tobytes()


class TestSignFlips:
    def test_signs_are_fair(self) -> None:
        """Each is -1 or 1, means near 0, and groups are independent."""
        signs = whole(SignFlips(70, 20_000, seed=3), 777)
        assert set(np.unique(signs)) == {-1.0, 1.0}
        together = signs.T @ signs / 20_000 - np.eye(70)
        assert np.abs(signs.mean(axis=0)).max() < 5 / np.sqrt(20_000)
        assert np.abs(together).max() < 6 / np.sqrt(20_000)


@pytest.mark.parametrize("kind", [Resample, SignFlips])
class TestBothAlike:
    def test_the_size_of_blocks_never_changes_a_draw(self, kind: type[Resample] | type[SignFlips]) -> None:
        """Blocks bound the memory and nothing else; an odd number of groups too."""
        draws = kind(65, 101, seed=4)
        assert whole(draws, 1).tobytes() == whole(draws, 10).tobytes() == whole(draws, 1000).tobytes()
        assert [len(block) for block in draws.blocks(40)] == [40, 40, 21]

    def test_a_generator_fixes_the_draws(self, kind: type[Resample] | type[SignFlips]) -> None:
        """Equal generators, equal draws; the next ones differ."""
        rng = np.random.default_rng(5)
        first, second = kind.draw(9, 50, rng), kind.draw(9, 50, rng)
        assert first == kind.draw(9, 50, np.random.default_rng(5))
        assert whole(first, 50).tobytes() != whole(second, 50).tobytes()
