"""Every slice and metric of both sides: values, the paired delta, and an interval for each, under the same draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.compare.align import join
from harness.compare.draw import Resample
from harness.compare.evidence import DeltaEvidence, delta_evidence, standard_error
from harness.compare.form import brought, of_cases, statistic
from harness.compare.group import Bools, Codes
from harness.compare.interval import Interval, Method, Side, bootstrap_many, side_intervals
from harness.compare.statistic import Grouped, Paired
from harness.output.contribution import Contribution
from harness.output.value import Status

ALL = "all"
WIDE, ROWS = 64, 4096
"""Numbers a case up to which a group is told from others by all of them, beyond by their digest; cases at a time."""
Bounds: TypeAlias = Mapping[str, tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """The promotion cases in suite order. Shapes: case_ids, groups [n]; slices: name to members [n], `all` first."""

    case_ids: NDArray[np.object_]
    groups: Codes
    slices: Mapping[str, Bools]

    @classmethod
    def of(
        cls, case_ids: NDArray[np.object_], groups: NDArray[np.object_], members: Mapping[str, set[str]]
    ) -> "Population":
        """Groups by name become codes in the order in which they first stand."""
        codes: dict[str, int] = {}
        for group in groups:
            codes.setdefault(group, len(codes))
        inside = {name: np.array([case in ids for case in case_ids], dtype=bool) for name, ids in members.items()}
        return cls(
            case_ids,
            np.array([codes[group] for group in groups], dtype=np.intp),
            {ALL: np.ones(len(case_ids), dtype=bool), **inside},
        )

    def n_groups(self, members: Bools) -> int:
        """How many groups have a case among the members [n]."""
        return int(np.count_nonzero(np.bincount(self.groups[members])))


@dataclass(frozen=True, slots=True)
class SideCell:
    """One side on one slice and metric. `value` and `se`, by group, None where no case is scored.

    `n_total` is without not-applicable cases.
    """

    value: float | None
    interval: Interval | None
    n_scored: int
    n_total: int
    n_groups: int
    se: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Cell:
    """Both sides on one slice and metric. `paired` and `groups` are of the cases that both sides scored.

    `evidence` carries the delta with its interval; None without a parent or without a pair.
    """

    slice: str
    metric: str
    candidate: SideCell
    parent: SideCell | None
    paired: Paired | None
    groups: Codes
    evidence: DeltaEvidence | None


def scoreboard(
    population: Population,
    candidate: Mapping[str, Contribution],
    parent: Mapping[str, Contribution] | None,
    *,
    resample: Resample,
    method: Method,
    level: float,
    bounds: Bounds | None = None,
) -> dict[tuple[str, str], Cell]:
    """Cells by (slice, metric), slices outermost. `bounds`: the least and the greatest value of metrics that are not
    within 0 and 1. Raises Unpairable where a side lacks a promotion case.
    """
    sides = [in_order(population, side, list(candidate)) for side in (candidate, parent) if side]
    keys = [(name, metric) for name in population.slices for metric in candidate]
    population = replace(population, groups=by_content(population, sides))
    summaries = [_summaries(population, side, keys, resample, method, level, bounds or {}) for side in sides]
    pairs = {key: _pair(population, [side[key[1]] for side in sides], key[0]) for key in keys} if parent else {}
    some = {key: pair for key, pair in pairs.items() if pair}
    intervals = bootstrap_many(list(some.values()), resample=resample, method=method, level=level)
    evidence = {
        key: _evidence(pair, interval, level) for (key, pair), interval in zip(some.items(), intervals, strict=True)
    }
    cells = {}
    for key in keys:
        pair = pairs.get(key)
        cells[key] = Cell(
            slice=key[0],
            metric=key[1],
            candidate=summaries[0][key],
            parent=summaries[1][key] if parent else None,
            paired=pair.statistic if pair and isinstance(pair.statistic, Paired) else None,
            groups=pair.groups if pair else np.empty(0, dtype=np.intp),
            evidence=evidence.get(key),
        )
    return cells


def by_content(population: Population, sides: Sequence[Mapping[str, Contribution]]) -> Codes:
    """Group codes [n] in an order of what the groups hold: neither the order of cases nor any name moves a draw.

    Groups that hold the same may change places: whichever is drawn, the sample is the same.
    """
    held = [brought(found) for side in sides for found in side.values()]
    held += [members[:, None].astype(np.float64) for members in population.slices.values()]
    wide = sum(each.shape[1] for each in held) > WIDE
    contents: dict[int, list[bytes]] = {}
    for start in range(0, len(population.groups), ROWS):
        cases = np.hstack([each[start : start + ROWS] for each in held], dtype=np.float64)
        for code, row in zip(population.groups[start : start + ROWS].tolist(), cases, strict=True):
            whole = row.tobytes()
            contents.setdefault(code, []).append(blake2b(whole, digest_size=16).digest() if wide else whole)
    order = sorted(contents, key=lambda code: (len(contents[code]), sorted(contents[code])))
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order))
    return place[population.groups]


def in_order(population: Population, side: Mapping[str, Contribution], names: Sequence[str]) -> dict[str, Contribution]:
    """Every metric in the population's order. Metrics measured over the same cases are joined once."""
    joined: dict[int, NDArray[np.intp]] = {}
    found = {}
    for name in names:
        values = side[name]
        if id(values.case_ids) not in joined:
            wanted = set(population.case_ids)
            stays = np.flatnonzero([case in wanted for case in values.case_ids])
            joined[id(values.case_ids)] = stays[join(population.case_ids, values.case_ids[stays], name)]
        found[name] = of_cases(values, joined[id(values.case_ids)])
    return found


def _summaries(
    population: Population,
    side: Mapping[str, Contribution],
    keys: Sequence[tuple[str, str]],
    resample: Resample,
    method: Method,
    level: float,
    bounds: Bounds,
) -> dict[tuple[str, str], SideCell]:
    scored = {key: population.slices[key[0]] & side[key[1]].scored for key in keys}
    asked = {
        key: Side(statistic(side[key[1]], scored[key]), population.groups[scored[key]], *bounds.get(key[1], (0.0, 1.0)))
        for key in keys
        if scored[key].any()
    }
    values = {key: own.statistic.value() for key, own in asked.items()}
    # Of some cases a metric may have no value where of all it has one: no class of theirs is gold, say.
    defined = {key: own for key, own in asked.items() if not np.isnan(values[key])}
    found = side_intervals(list(defined.values()), resample=resample, method=method, level=level)
    intervals = dict(zip(defined, found, strict=True))
    return {
        key: SideCell(
            value=values[key] if key in defined else None,
            interval=intervals.get(key),
            n_scored=int(scored[key].sum()),
            n_total=int((population.slices[key[0]] & (side[key[1]].status != Status.NOT_APPLICABLE)).sum()),
            n_groups=population.n_groups(scored[key]),
            se=standard_error(defined[key].statistic, defined[key].groups) if key in defined else None,
        )
        for key in keys
    }


def _pair(population: Population, sides: Sequence[Contribution], name: str) -> Grouped | None:
    candidate, parent = sides
    both = population.slices[name] & candidate.scored & parent.scored
    if not both.any():
        return None
    paired = Paired(statistic(candidate, both), statistic(parent, both))
    return None if np.isnan(paired.value()) else Grouped(paired, population.groups[both])


def _evidence(pair: Grouped, interval: Interval, level: float) -> DeltaEvidence:
    paired = pair.statistic
    if not isinstance(paired, Paired):
        raise TypeError(type(paired).__name__)
    return delta_evidence(paired, pair.groups, interval=interval, alpha=(1 - level) / 2)
