"""Two sides that exchange what they bring, case by case: what a comparison would look like had it been otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.compare.group import Bools, Floats
from harness.output.contribution import CaseForecasts, CaseRanks, CaseRows, Contribution
from harness.output.value import CaseValues


def exchanged(
    mine: Mapping[str, Contribution], theirs: Mapping[str, Contribution], mask: Bools
) -> dict[str, Contribution]:
    """Every metric of `mine`, of `theirs` where the mask [n] is True; statuses go along. Cases stand in one order."""
    return {name: _exchanged(own, theirs[name], mask) for name, own in mine.items()}


def on_one_scale(sides: Sequence[Mapping[str, Contribution]], like: Sequence[int]) -> list[dict[str, Contribution]]:
    """Sides whose rank statistics may be exchanged: a cosine and a logit share no scale, so numbers become midranks
    among those of their own side (of Pearson's correlation: standard scores), which leaves every statistic of a whole
    side as it is. `like[i]`: the side among whose numbers those of side i stand. All other forms stay as they are.
    """
    return [
        {name: _scaled(own, sides[of][name]) for name, own in side.items()}
        for side, of in zip(sides, like, strict=True)
    ]


def _exchanged(mine: Contribution, theirs: Contribution, mask: Bools) -> Contribution:
    status = np.where(mask, theirs.status, mine.status).astype(object)
    if isinstance(mine, CaseRows) and isinstance(theirs, CaseRows):
        return replace(mine, rows=np.where(mask[:, None], theirs.rows, mine.rows), status=status)
    if isinstance(mine, CaseRanks | CaseForecasts) and isinstance(theirs, CaseRanks | CaseForecasts):
        x, y = (np.where(mask[:, None], their, my) for my, their in ((mine.x, theirs.x), (mine.y, theirs.y)))
        return replace(mine, x=x, y=y, status=status)
    if not (isinstance(mine, CaseValues) and isinstance(theirs, CaseValues)):
        raise TypeError(f"{type(mine).__name__} and {type(theirs).__name__}")
    return replace(mine, values=np.where(mask, theirs.values, mine.values), status=status)


def _scaled(own: Contribution, among: Contribution) -> Contribution:
    if not (isinstance(own, CaseRanks) and isinstance(among, CaseRanks)):
        return own
    kept = own.scored
    x = np.full(own.x.shape, np.nan)
    for column in range(own.x.shape[1]):
        scale = among.x[among.scored, column]
        x[kept, column] = (
            _standard(own.x[kept, column], scale) if own.kind == "pearson" else _midrank(own.x[kept, column], scale)
        )
    return replace(own, x=x)


def _midrank(values: Floats, among: Floats) -> Floats:
    """Each value's share of those that lie below it, of equal ones half."""
    rising = np.sort(among)
    places = np.searchsorted(rising, values, "left") + np.searchsorted(rising, values, "right")
    return np.asarray(places / max(2 * len(rising), 1), dtype=np.float64)


def _standard(values: Floats, among: Floats) -> Floats:
    spread = among.std() if len(among) and np.ptp(among) > 0 else 1.0
    return np.asarray((values - (among.mean() if len(among) else 0.0)) / spread)
