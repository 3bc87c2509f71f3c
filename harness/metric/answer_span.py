"""Where answers stand in their contexts. Offsets count code points from 0, the end excluded."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.errors import EmptySlice, Misconfigured
from harness.metric.form import Bools, Floats, Ints, Objects

SpanTie: TypeAlias = Literal["shorter", "earlier"]
Loss: TypeAlias = Literal["truncated", "skipped", "split"]


@dataclass(frozen=True, slots=True)
class AnswerSpan:
    """An answer's place and score. `tied`: another place has the same score."""

    start: int
    end: int
    score: float
    tied: bool


def best_span(starts: Ints, ends: Ints, scores: Floats, *, tie: SpanTie = "shorter") -> AnswerSpan:
    """The span with the highest score among those given [s], in any order, one perhaps several times.

    Among equals `shorter` takes the shorter, then the earlier; `earlier` that with the earlier start, then the
    earlier end. Raises EmptySlice without spans, Misconfigured for a score that isn't finite and an end before its
    start.
    """
    if not len(scores):
        raise EmptySlice("spans", found="none", expected="at least one", mend="Abstain where there is none.")
    if not np.isfinite(scores).all() or (ends < starts).any():
        raise Misconfigured(
            "spans",
            found="a score that is not finite, or an end before its start",
            expected="finite scores, and ends at or after their starts",
            mend="Leave such spans out.",
        )
    highest = scores == scores.max()
    keys = (starts, ends - starts) if tie == "shorter" else (ends, starts)
    best = np.flatnonzero(highest)[np.lexsort([each[highest] for each in keys])[0]]
    tied = highest & ((starts != starts[best]) | (ends != ends[best]))
    return AnswerSpan(int(starts[best]), int(ends[best]), float(scores[best]), bool(tied.any()))


@dataclass(frozen=True, slots=True)
class WrongOffsets:
    """An answer that is not what stands at its offsets. `found`: what does; None where they lie outside."""

    case_id: str
    start: int
    end: int
    answer: str
    found: str | None


def wrong_offsets(
    case_ids: Objects, answers: Sequence[str | None], starts: Ints, ends: Ints, contexts: Sequence[str]
) -> tuple[WrongOffsets, ...]:
    """The answers that are not character for character what stands at their offsets, by case ID.

    Shapes: all [n]; a start of -1 has no offsets to check, and an answer of None is one of no text.
    """
    wrong = []
    for case_id, answer, start, end, context in zip(
        case_ids, answers, starts.tolist(), ends.tolist(), contexts, strict=True
    ):
        found = context[start:end] if 0 <= start <= end <= len(context) else None
        if start != -1 and found != (answer or ""):
            wrong.append(WrongOffsets(str(case_id), start, end, answer or "", found))
    return tuple(sorted(wrong, key=lambda each: each.case_id))


@dataclass(frozen=True, slots=True)
class LostGold:
    """A gold answer that no window holds whole.

    `truncated`: some of it lies beyond the last window. `skipped`: some of it lies before or between windows.
    `split`: all of it was read, but in pieces.
    """

    case_id: str
    start: int
    end: int
    reason: Loss


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which gold answers the model could have found. `n_unreachable` questions have golds, but none inside a window.

    Lost golds are by case ID and place. They change no metric: a question that is out of reach stays in every mean
    with what was answered.
    """

    n_inside: int
    n_outside: int
    n_unreachable: int
    lost: tuple[LostGold, ...]

    @property
    def n_truncated(self) -> int:
        return sum(each.reason == "truncated" for each in self.lost)


def coverage(case_ids: Objects, gold_spans: Sequence[Ints], windows: Sequence[Ints]) -> Coverage:
    """Holds the golds [g, 2] of each question against its windows [w, 2], both as offsets into its context.

    A question without golds has nothing to lose; one without windows was truncated to nothing.
    """
    n_inside, n_unreachable = 0, 0
    lost: list[LostGold] = []
    for case_id, golds, read in zip(case_ids, gold_spans, windows, strict=True):
        golds, read = golds.reshape(-1, 2), read.reshape(-1, 2)
        inside = _inside(golds, read)
        n_inside += int(inside.sum())
        n_unreachable += int(len(golds) > 0 and not inside.any())
        lost += [
            LostGold(str(case_id), start, end, _reason(start, end, read)) for start, end in golds[~inside].tolist()
        ]
    lost.sort(key=lambda each: (each.case_id, each.start, each.end))
    return Coverage(n_inside, len(lost), n_unreachable, tuple(lost))


def _inside(golds: Ints, windows: Ints) -> Bools:
    """[g], where one window holds the whole gold."""
    within = (windows[None, :, 0] <= golds[:, :1]) & (golds[:, 1:] <= windows[None, :, 1])
    return np.asarray(within.any(axis=1))


def _reason(start: int, end: int, windows: Ints) -> Loss:
    if end > windows[:, 1].max(initial=0):
        return "truncated"
    reached = start
    for low, high in sorted(windows.tolist()):
        if low <= reached:
            reached = max(reached, high)
    return "split" if reached >= end else "skipped"
