"""How long models took for what they read: clocks, on which no output and nothing that is digested depends.

Whoever wants to know listens while texts are encoded. It is no argument of all that stands between, for nothing there
may depend on it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Pass:
    """What the rows of some texts took. `key`: the `rows` of `Keys`; `side`: query, document, pair or text.

    `tokens` are the texts' own, special ones included, without padding and what fills a query up. `seconds` of the
    forward passes alone, as a clock on the wall has them while so many `threads` compute side by side.
    """

    key: str
    side: str
    texts: int
    tokens: int
    seconds: float
    threads: int


_HEARD: ContextVar[list[Pass] | None] = ContextVar("heard", default=None)


@contextmanager
def listening() -> Iterator[list[Pass]]:
    """All that is computed inside the block, and not taken from what is kept: a list that grows."""
    heard: list[Pass] = []
    token = _HEARD.set(heard)
    try:
        yield heard
    finally:
        _HEARD.reset(token)


def tell(made: Pass) -> None:
    """To whoever listens."""
    heard = _HEARD.get()
    if heard is not None:
        heard.append(made)


def joined(heard: Sequence[Pass]) -> tuple[Pass, ...]:
    """One for each key and side, in that order."""
    found: dict[tuple[str, str], Pass] = {}
    for each in heard:
        at = each.key, each.side
        before = found.get(at)
        found[at] = each if before is None else Pass(
            *at, before.texts + each.texts, before.tokens + each.tokens, before.seconds + each.seconds, each.threads
        )  # fmt: skip
    return tuple(found[at] for at in sorted(found))


class Spent(NamedTuple):
    """Seconds that one thread took for a batch of so many tokens: for its `rows`, and for the `whole` of it."""

    key: str
    tokens: int
    rows: float
    whole: float


class Took(NamedTuple):
    """Tokens of one key, and seconds on the wall."""

    tokens: int
    seconds: float


def shared_out(wall: float, spent: Sequence[Spent]) -> dict[str, Took]:
    """By key, its part of the seconds on the wall: what threads do side by side takes these in proportion."""
    whole = sum(each.whole for each in spent)
    found: dict[str, Took] = {}
    for each in spent:
        before = found.get(each.key, Took(0, 0.0))
        seconds = wall * each.rows / whole if whole > 0 else 0.0
        found[each.key] = Took(before.tokens + each.tokens, before.seconds + seconds)
    return found
