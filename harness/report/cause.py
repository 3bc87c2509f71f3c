"""What was seen where cases got worse, a line a slice."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.output.cause import MEANINGS, CauseCount

TITLE = "What was seen where cases got worse"
LEAD = (
    "Promotion cases that lost by the metric that tells of cases, went from right to wrong, or have no output now; "
    "each under the first cause that holds. Seen, not proven: harness explain RUN --case ID names all that hold of one."
)


@dataclass(frozen=True, slots=True)
class Line:
    """A slice; `counts` by cause, in the order of the table's columns."""

    slice: str
    cases: int
    counts: tuple[int, ...]


def columns(counts: Sequence[CauseCount]) -> tuple[str, ...]:
    """The causes that any case is counted under."""
    met = {each.cause for each in counts}
    return tuple(cause for cause in MEANINGS if cause in met)


def lines(counts: Sequence[CauseCount]) -> tuple[Line, ...]:
    """Slices in the order in which they come."""
    held: dict[str, dict[str, int]] = {}
    for each in counts:
        held.setdefault(each.slice, {})[each.cause] = each.cases
    return tuple(
        Line(name, sum(cases.values()), tuple(cases.get(cause, 0) for cause in columns(counts)))
        for name, cases in held.items()
    )
