"""What a head says of a text: logits by label, a number, or a span of rows. Dropout is off.

A head is a dense map whose rows are the labels in their order. Ties go to the earlier label or choice.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.errors import EmptySlice, Misconfigured
from harness.readout.probability import sigmoid, softmax
from harness.readout.projection import Dense, project
from harness.rows.mask import Bools, Floats, Ints, kept

Array = NDArray[np.floating]


def classification(vector: Array, by: Dense) -> Floats:
    """Logits [c] of the labels, from a vector [d]."""
    return project(vector, by)


def regression(vector: Array, by: Dense, *, scale: float, shift: float) -> Floats:
    """Values [t] in the target's own units, from a vector [d]: the head's output times `scale` plus `shift`.

    `scale` and `shift` undo what was done to the targets in training. Raises Misconfigured for a scale of 0.
    """
    if scale == 0:
        raise Misconfigured(
            "inverse transform", found="scale 0", expected="any other scale", mend="Take it from the training targets."
        )
    return project(vector, by) * scale + shift


def multilabel(logits: Array, thresholds: Array, temperature: float) -> Bools:
    """[c], the labels whose own probability reaches its threshold; none may. Shapes: logits and thresholds [c].

    Raises Misconfigured for any other number of thresholds.
    """
    if thresholds.shape != logits.shape:
        raise Misconfigured(
            "thresholds",
            found=f"{thresholds.size} thresholds for {logits.size} labels",
            expected="one for each label, in the order of the labels",
            mend="Give each label its threshold.",
        )
    return sigmoid(logits, temperature) >= thresholds


def multiple_choice(vectors: Array, by: Dense) -> Floats:
    """Logits [k] of the choices, from one vector [k, d] each by the same head of one row.

    The choices compete: a softmax goes over [k]. Raises EmptySlice without choices, Misconfigured for a head of more
    rows.
    """
    if not len(vectors):
        raise EmptySlice("choices", found="none", expected="at least one", mend="Leave the question out.")
    if len(by.weight) != 1:
        raise Misconfigured(
            "choice head",
            found=f"{len(by.weight)} outputs for each choice",
            expected="one",
            mend="Use the head that was trained on choices.",
        )
    return project(vectors, by)[:, 0]


def tokens(rows: Array, mask: Bools, by: Dense) -> Floats:
    """Logits [c, labels] of the counted rows alone, in their order. No pooler. Raises EmptySlice when none counts."""
    return project(kept(rows, mask), by)


@dataclass(frozen=True, slots=True)
class SpanLogits:
    """Logits that an answer begins or ends in a row. Shapes: rows, start and end [c], the counted rows alone."""

    rows: Ints
    start: Floats
    end: Floats


@dataclass(frozen=True, slots=True)
class Span:
    """An answer from row `first` to row `last`, both included, and the sum of the two logits."""

    first: int
    last: int
    score: float


def spans(rows: Array, mask: Bools, by: Dense) -> SpanLogits:
    """The head's first output is the start's logit and its second the end's.

    Raises EmptySlice when no row counts, Misconfigured for a head of other than two outputs.
    """
    if len(by.weight) != 2:
        raise Misconfigured(
            "span head", found=f"{len(by.weight)} outputs", expected="two, start and end", mend="Use an answer head."
        )
    both = project(kept(rows, mask), by)
    return SpanLogits(np.flatnonzero(mask), both[:, 0], both[:, 1])


def span_target(row: int, length: int) -> int:
    """The row that a start or end is trained on, in a text of `length` rows, padding included.

    Clamped into 0 to `length`, and `length` itself is the sentinel: a target there is ignored by the loss. A
    negative row becomes row 0 and does count.
    """
    return min(max(row, 0), length)


def best_span(logits: SpanLogits, longest: int) -> Span:
    """The span of at most `longest` rows, the first no later than the last, whose two logits sum highest.

    Rows between the two need not count. Among equals the shorter, then the earlier.
    Raises EmptySlice without rows, Misconfigured for a `longest` below 1.
    """
    if longest < 1:
        raise Misconfigured("longest answer", found=str(longest), expected="at least 1 row", mend="Raise it.")
    if not len(logits.rows):
        raise EmptySlice("rows", found="none", expected="at least one", mend="Answer that there is no answer.")
    length = logits.rows[None, :] - logits.rows[:, None]
    total = np.where((length >= 0) & (length < longest), logits.start[:, None] + logits.end[None, :], -np.inf)
    firsts, lasts = np.nonzero(total == total.max())
    at = np.lexsort((firsts, length[firsts, lasts]))[0]
    first, last = firsts[at], lasts[at]
    return Span(int(logits.rows[first]), int(logits.rows[last]), float(total[first, last]))


def windows_by_mean_logits(logits: Array, temperature: float) -> Floats:
    """Probabilities [c] of a text in windows: the softmax of the mean of their logits [k, c]."""
    return softmax(_windows(logits).mean(axis=0), temperature)


def windows_by_mean_probabilities(logits: Array, temperature: float) -> Floats:
    """Probabilities [c] of a text in windows: the mean of the softmax of each one's logits [k, c]."""
    return np.asarray(softmax(_windows(logits), temperature).mean(axis=0))


def _windows(logits: Array) -> Floats:
    if not len(logits):
        raise EmptySlice("windows", found="none", expected="at least one window", mend="Leave the text out.")
    return logits.astype(np.float64)
