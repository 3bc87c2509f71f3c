"""A second look at the intervals that headline rules decide by: the jackknife by group, which draws nothing."""

from collections.abc import Iterator

import numpy as np
from scipy import special

from harness.compare.evidence import FEW_CHANGED_GROUPS, jackknife_error
from harness.gate.decide import FEWEST_GROUPS, Cells
from harness.gate.policy import Policy

GROSS = 1.5
"""How many times as wide one may be as the other before a reader is told."""


def jackknife_remarks(policy: Policy, cells: Cells) -> Iterator[str]:
    """A remark for each no-worse rule whose interval is far wider, or narrower, than the jackknife's.

    Where few groups decide or few changed, no interval decides, so none is held against another.
    """
    z = float(special.ndtri((1 + policy.uncertainty.level) / 2))
    for rule in policy.rules:
        cell = cells[rule.slice, rule.metric] if rule.kind == "no-worse" else None
        if cell is None or cell.paired is None or cell.evidence is None:
            continue
        evidence = cell.evidence
        if evidence.n_groups < FEWEST_GROUPS or evidence.n_changed_groups < FEW_CHANGED_GROUPS:
            continue
        error = jackknife_error(cell.paired, cell.groups)
        width, other = evidence.interval.high - evidence.interval.low, 2 * z * error
        if not np.isfinite([width, other]).all() or min(width, other) <= 0:
            continue
        if not 1 / GROSS <= width / other <= GROSS:
            low, high = evidence.delta - z * error, evidence.delta + z * error
            how = f"{width / other:.2g} times narrower" if width > other else f"{other / width:.2g} times wider"
            yield (
                f"{rule.id}: the jackknife by group gives [{low:+.4f}, {high:+.4f}], {how} than the interval that "
                "decided: few groups carry the difference, or the metric is far from smooth here."
            )
