"""Diagnostics side by side, a line for each number, and what has no meaning here with the reason."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.output.diagnostic import MEANINGS, PAIR, Diagnostic, base
from harness.report import number

TITLE = "Diagnostics, no evidence"
LEAD = (
    "They describe the spaces and rankings, and decide nothing: no rule or guard may name one. Of vectors: a sample by "
    "the digests of IDs, of all roles. Of rankings: the promotion cases."
)


@dataclass(frozen=True, slots=True)
class Line:
    """One number of both sides, or of the pair. `at` which quantile, where it is one; `counted` of how many, the
    parent's first where they differ.
    """

    name: str
    at: str
    texts: str
    parent: float | None
    candidate: float | None
    pair: float | None
    counted: str
    meaning: str


def lines(diagnostics: Sequence[Diagnostic]) -> tuple[Line, ...]:
    """What has a value on either side, by the order of their meanings; each meaning once, on its first line."""
    held: dict[tuple[str, str, float | None], dict[str, Diagnostic]] = {}
    for each in diagnostics:
        if each.value is not None:
            held.setdefault((each.name, each.texts, each.quantile), {})[each.side] = each
    order = list(MEANINGS)
    found, met = [], set()
    for name, texts, quantile in sorted(held, key=lambda key: (order.index(base(key[0])), key[1], key[2] or 0.0)):
        sides = held[name, texts, quantile]
        counts = dict.fromkeys(number.count(sides[side].n) for side in ("parent", "candidate", PAIR) if side in sides)
        found.append(
            Line(
                name=name,
                at="" if quantile is None else f"{quantile:g}",
                texts=texts,
                parent=_value(sides, "parent"),
                candidate=_value(sides, "candidate"),
                pair=_value(sides, PAIR),
                counted=" → ".join(counts),
                meaning="" if name in met else MEANINGS[base(name)],
            )
        )
        met.add(name)
    return tuple(found)


def silences(diagnostics: Sequence[Diagnostic]) -> tuple[str, ...]:
    """By side and reason, what is absent."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in diagnostics:
        if each.absent is not None:
            found.setdefault((each.side, each.absent), []).append(each.name)
    who = {PAIR: "Of both together"}
    return tuple(
        f"{who.get(side, f'Of the {side}')} no {', '.join(dict.fromkeys(names))}: {why}."
        for (side, why), names in found.items()
    )


def _value(sides: dict[str, Diagnostic], side: str) -> float | None:
    return sides[side].value if side in sides else None
