"""Spans of a text with their types, and how many of two sets of them can be paired."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal, TypeAlias

from harness.errors import Misconfigured
from harness.metric.form import Ints

Why: TypeAlias = Literal["malformed", "lacking", "cannot-start", "cannot-end", "repeated"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Tokens or characters from `start` to before `end`, and what they are."""

    start: int
    end: int
    type: str

    def __str__(self) -> str:
        return f"{self.type} {self.start}:{self.end}"


@dataclass(frozen=True, slots=True)
class Illegal:
    """A place where tags or spans are not what they should be.

    `position`: a token, or a span's start; the number of tokens where the text ends too early. `found` and `previous`
    as they are written; None is the text's end, or its start. `why`: no tag of the scheme, or no span of the text; no
    tag at all; no entity can start with this tag here; the entity before it cannot end here; a span that stood there
    already.
    """

    position: int
    found: str | None
    previous: str | None
    why: Why


@dataclass(frozen=True, slots=True)
class SpansRead:
    """The spans of one text by rising start, none twice, and what is illegal in the order in which it is written."""

    spans: tuple[Span, ...]
    illegal: tuple[Illegal, ...]


@dataclass(frozen=True, slots=True)
class SpanPair:
    """A gold span and the predicted one that stands for it."""

    gold: Span
    predicted: Span


def read_spans(spans: Sequence[Span], length: int, label_map: Mapping[str, str] | None = None) -> SpansRead:
    """Spans as they are given, under new names where `label_map` has them; they may overlap.

    One that is empty, not within the source's `length`, without a type, or there already is illegal and left out.
    """
    kept: list[Span] = []
    illegal: list[Illegal] = []
    seen = set[Span]()
    for i, given in enumerate(spans):
        span = Span(given.start, given.end, (label_map or {}).get(given.type, given.type))
        sound = 0 <= span.start < span.end <= length and bool(span.type.strip())
        if sound and span not in seen:
            kept.append(span)
        else:
            previous = str(spans[i - 1]) if i else None
            illegal.append(Illegal(given.start, str(given), previous, "repeated" if sound else "malformed"))
        seen.add(span)
    return SpansRead(tuple(sorted(kept)), tuple(illegal))


def same_boundary(gold: Span, predicted: Span) -> bool:
    """Equal ends, whatever the types."""
    return (gold.start, gold.end) == (predicted.start, predicted.end)


def overlapping(gold: Span, predicted: Span) -> bool:
    """At least one token in common, whatever the types; ends are exclusive."""
    return gold.start < predicted.end and predicted.start < gold.end


def overlapping_alike(gold: Span, predicted: Span) -> bool:
    """At least one token in common, and one type."""
    return gold.type == predicted.type and overlapping(gold, predicted)


@dataclass(frozen=True, slots=True)
class Alignment:
    """Gold and predicted spans of a text, each in one place at most: `right` ones are alike, `stages` hold pairs."""

    right: tuple[Span, ...]
    stages: tuple[tuple[SpanPair, ...], ...]
    missed: tuple[Span, ...]
    spurious: tuple[Span, ...]


def aligned(gold: Sequence[Span], predicted: Sequence[Span], *fits: Callable[[Span, Span], bool]) -> Alignment:
    """Takes equal spans together first; then, for each relation in turn, as many pairs as there can be."""
    right = set(gold) & set(predicted)
    missed, spurious = ([span for span in side if span not in right] for side in (gold, predicted))
    stages = []
    for fit in fits:
        pairs = paired(missed, spurious, fit)
        stages.append(pairs)
        missed = _without(missed, {pair.gold for pair in pairs})
        spurious = _without(spurious, {pair.predicted for pair in pairs})
    return Alignment(tuple(sorted(right)), tuple(stages), tuple(sorted(missed)), tuple(sorted(spurious)))


def paired(gold: Sequence[Span], predicted: Sequence[Span], fits: Callable[[Span, Span], bool]) -> tuple[SpanPair, ...]:
    """As many pairs of spans that fit as there can be, each span in one at most; by gold. Only what overlaps may fit.

    Neither side holds a span twice. Their number hangs on no order; which spans they are is settled by position.
    """
    gold, predicted = sorted(gold), sorted(predicted)
    starts, ends = [span.start for span in predicted], list(accumulate((span.end for span in predicted), max))
    near = [
        [p for p in range(bisect_right(ends, each.start), bisect_left(starts, each.end)) if fits(each, predicted[p])]
        for each in gold
    ]
    partner, owner = [-1] * len(gold), [-1] * len(predicted)
    for g in range(len(gold)):
        _place(g, near, partner, owner)
    return tuple(SpanPair(gold[g], predicted[p]) for g, p in enumerate(partner) if p >= 0)


def _place(g: int, near: list[list[int]], partner: list[int], owner: list[int]) -> None:
    """Find a partner for g, where others can be moved out of its way (an augmenting path, breadth first)."""
    asked_by: dict[int, int] = {}
    queue = [g]
    for asking in queue:
        for p in near[asking]:
            if p in asked_by:
                continue
            asked_by[p] = asking
            if owner[p] >= 0:
                queue.append(owner[p])
                continue
            while p >= 0:
                moved = asked_by[p]
                owner[p], partner[moved], p = moved, p, partner[moved]
            return


def _without(spans: Sequence[Span], taken: set[Span]) -> list[Span]:
    return [span for span in spans if span not in taken]


def in_source(spans: Sequence[Span], offsets: Ints) -> tuple[Span, ...]:
    """Spans of tokens as spans of the source text's characters.

    Shapes: offsets [t, 2], each token's first character and the one behind its last; a token of no character (a special
    one) has both alike, and is not looked at.
    Raises Misconfigured for a span that is not within the tokens, or holds no character.
    """
    found = []
    for span in spans:
        inside = offsets[max(span.start, 0) : span.end]
        kept = inside[inside[:, 1] > inside[:, 0]]
        if not 0 <= span.start < span.end <= len(offsets) or not len(kept):
            raise Misconfigured(
                "source offsets",
                found=f"span {span} of {len(offsets)} tokens, with {len(kept)} of the text",
                expected="a span of at least one token that stands for characters",
                mend="Take spans and offsets from the same tokens.",
            )
        found.append(Span(int(kept[:, 0].min()), int(kept[:, 1].max()), span.type))
    return tuple(found)
