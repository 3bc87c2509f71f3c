"""Numbers as a reader sees them. None, and what isn't a number, is an en dash."""

from collections.abc import Iterable
from math import floor, isfinite, isnan, log10

NOTHING = "–"
MINUS = "−"


def value(number: float | None, digits: int = 4) -> str:
    """A metric's value with four decimals."""
    return _fixed(number, "", digits)


def signed(number: float | None, digits: int = 4) -> str:
    """A difference with its sign; one that rounds to zero has none."""
    return _fixed(number, "+", digits)


def probability(number: float | None) -> str:
    """A p-value with three significant digits, `<0.0001` below that."""
    if number is None or isnan(number):
        return NOTHING
    return "<0.0001" if number < 0.0001 else f"{number:#.3g}"


def interval(low: float | None, high: float | None, *, of_delta: bool, digits: int = 4) -> str:
    """Both ends in brackets, signed where they bound a difference."""
    if low is None and high is None:
        return NOTHING
    form = signed if of_delta else value
    return f"[{form(low, digits)}, {form(high, digits)}]"


def decimals(numbers: Iterable[float]) -> int:
    """How many suit the largest of some numbers: four below 10, fewer above, more where all are tiny."""
    largest = max((abs(each) for each in numbers if isfinite(each)), default=0.0)
    power = floor(log10(largest)) if largest else 0
    return max(0, 4 - power) if power > 0 else min(9, 2 - power) if power < -2 else 4


def count(number: int) -> str:
    """A whole number with commas at the thousands."""
    return f"{number:,}"


def plural(number: int, noun: str) -> str:
    """`1 case`, `2 cases`."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def _fixed(number: float | None, sign: str, digits: int) -> str:
    if number is None or isnan(number):
        return NOTHING
    if not isfinite(number):
        return "∞" if number > 0 else f"{MINUS}∞"
    text = f"{number:{sign}.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text.replace("-", MINUS)
