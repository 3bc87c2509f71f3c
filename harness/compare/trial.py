"""The cells of many comparisons over the same cases at once, under the same draws: what a simulation asks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.compare.draw import Resample
from harness.compare.evidence import DeltaEvidence, delta_evidence, standard_error
from harness.compare.form import statistic
from harness.compare.interval import Interval, Method, Side, bootstrap_many, side_intervals
from harness.compare.scoreboard import Bounds, Cell, Population, SideCell
from harness.compare.statistic import Grouped, Paired
from harness.output.contribution import Contribution
from harness.output.value import Status

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which cells are needed, as (slice, metric): all of `keys`; of `deltas` with the delta's interval, of `floors`
    with the candidate's own.
    """

    keys: tuple[Key, ...]
    deltas: frozenset[Key]
    floors: frozenset[Key]


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """What both sides bring, by metric, in the population's order."""

    candidate: Mapping[str, Contribution]
    parent: Mapping[str, Contribution]


@dataclass(frozen=True, slots=True)
class Manner:
    """How intervals are found."""

    resample: Resample
    method: Method
    level: float
    bounds: Bounds


@dataclass(frozen=True, slots=True, eq=False)
class _Bare:
    """A cell before its intervals."""

    candidate: SideCell
    parent: SideCell
    pair: Grouped | None
    alone: Grouped | None


def boards(population: Population, trials: Sequence[Sides], wanted: Wanted, manner: Manner) -> list[dict[Key, Cell]]:
    """For each trial its cells, as `scoreboard` has them, without the figures that `wanted` does not ask for."""
    bare = {(t, key): _bare(population, sides, key, wanted) for t, sides in enumerate(trials) for key in wanted.keys}
    pairs = {at: one.pair for at, one in bare.items() if one.pair is not None and at[1] in wanted.deltas}
    found = bootstrap_many(list(pairs.values()), resample=manner.resample, method=manner.method, level=manner.level)
    deltas = dict(zip(pairs, found, strict=True))
    alone = {at: one.alone for at, one in bare.items() if one.alone is not None}
    owns = [Side(own.statistic, own.groups, *manner.bounds.get(at[1][1], (0.0, 1.0))) for at, own in alone.items()]
    floors = dict(
        zip(
            alone, side_intervals(owns, resample=manner.resample, method=manner.method, level=manner.level), strict=True
        )
    )
    return [
        {key: _cell(key, bare[t, key], deltas.get((t, key)), floors.get((t, key)), manner.level) for key in wanted.keys}
        for t in range(len(trials))
    ]


def _bare(population: Population, sides: Sides, key: Key, wanted: Wanted) -> _Bare:
    members = population.slices[key[0]]
    candidate, parent = sides.candidate[key[1]], sides.parent[key[1]]
    own, other = members & candidate.scored, members & parent.scored
    both = own & other
    pair = None
    if both.any():
        paired = Paired(statistic(candidate, both), statistic(parent, both))
        pair = None if np.isnan(paired.value()) else Grouped(paired, population.groups[both])
    cells = [_side(population, side, members) for side in (candidate, parent)]
    floor = key in wanted.floors and cells[0].value is not None
    alone = Grouped(statistic(candidate, own), population.groups[own]) if floor else None
    return _Bare(cells[0], cells[1], pair, alone)


def _side(population: Population, side: Contribution, members: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> SideCell:
    scored = members & side.scored
    value = statistic(side, scored).value() if scored.any() else float("nan")
    return SideCell(
        value=None if np.isnan(value) else value,
        interval=None,
        n_scored=int(scored.sum()),
        n_total=int((members & (side.status != Status.NOT_APPLICABLE)).sum()),
        n_groups=population.n_groups(scored),
        se=None,
    )


def _cell(key: Key, bare: _Bare, delta: Interval | None, floor: Interval | None, level: float) -> Cell:
    candidate, evidence = bare.candidate, _evidence(bare.pair, delta, level)
    if bare.alone is not None:
        candidate = SideCell(
            candidate.value, floor, candidate.n_scored, candidate.n_total, candidate.n_groups,
            standard_error(bare.alone.statistic, bare.alone.groups),
        )  # fmt: skip
    paired = bare.pair.statistic if bare.pair else None
    return Cell(
        slice=key[0],
        metric=key[1],
        candidate=candidate,
        parent=bare.parent,
        paired=paired if isinstance(paired, Paired) else None,
        groups=bare.pair.groups if bare.pair else np.empty(0, dtype=np.intp),
        evidence=evidence,
    )


def _evidence(pair: Grouped | None, interval: Interval | None, level: float) -> DeltaEvidence | None:
    if pair is None or interval is None or not isinstance(pair.statistic, Paired):
        return None
    return delta_evidence(pair.statistic, pair.groups, interval=interval, alpha=(1 - level) / 2)
