"""Where a ranking put the judged documents of each case."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JudgedPlaces:
    """The judged documents of every case, and where the ranking put each.

    Shapes: offsets [n+1], case i owns the rows offsets[i]:offsets[i+1]; grade, above, tied [j]; retrieved [n].
    `grade` below 0 has gain 0 and counts as unjudged in Bpref and Judged. `above` is the number of documents ranked
    strictly above the document's tied group, -1 when it was not retrieved; `tied` the size of that group, 1 without
    a tie, 0 when not retrieved. `retrieved` is the number of documents retrieved for the case.
    A case's rows stand by rising `above` (not retrieved last), then falling grade: sums taken in this order don't
    depend on what the documents are called.
    """

    offsets: Ints
    grade: Ints
    above: Ints
    tied: Ints
    retrieved: Ints

    def __post_init__(self) -> None:
        depth = _depth_key(self.above)
        backwards = (np.diff(depth) < 0) & (np.diff(self.case) == 0)
        if backwards.any():
            raise Misconfigured(
                "judged places",
                found=f"row {int(np.argmax(backwards)) + 1} is out of order",
                expected="the rows of a case by rising `above`, not retrieved last",
                mend="Build them with `place`.",
            )

    @property
    def case(self) -> Ints:
        """The case of each row [j]."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


def place(
    offsets: Ints,
    scores: Floats,
    judged_offsets: Ints,
    judged_grade: Ints,
    judged_score: Floats,
    judged_position: Ints,
    crossing: Ints,
    *,
    ties: Literal["expected", "trec"],
) -> JudgedPlaces:
    """Find the judged documents in the rankings.

    Shapes: offsets [n+1], scores [r] falling within a case, in the stored total order; judged_offsets [n+1];
    judged_grade [j]; judged_score [j], NaN when not retrieved; judged_position [j], from 0 in the stored ranking,
    -1 when not retrieved; crossing [n].
    `expected` goes by score: equal scores are one tied group. `trec` goes by position: nothing is tied.
    Where `crossing` > 0, the ranking's last tied group was too large to be stored whole: of its `crossing` documents
    only the judged ones are there. A last group that holds an unjudged document is therefore taken as whole, and
    the crossing one as without judged documents.
    Raises Misconfigured for a judged score that the case's ranking doesn't hold, and for `trec` over a ranking that
    was not stored whole.
    """
    case = np.repeat(np.arange(len(offsets) - 1), np.diff(judged_offsets))
    if ties == "trec":
        _refuse_crossing(crossing)
        above, tied = judged_position.astype(np.int64), (judged_position >= 0).astype(np.int64)
        retrieved = np.diff(offsets)
    else:
        above, tied, retrieved = np.full(len(case), -1), np.zeros(len(case), dtype=np.int64), np.diff(offsets)
        rows = np.flatnonzero(~np.isnan(judged_score))
        owner = case[rows]
        start, end, target = offsets[owner], offsets[owner + 1], judged_score[rows]
        first = _group_start(scores, start, end, target)
        last = _group_end(scores, first, end, target)
        above[rows], tied[rows] = first - start, last - first
        if crossing.any():
            at_end = (last == end) & (crossing[owner] > 0)
            kept = np.bincount(owner[at_end], minlength=len(crossing))
            at_end &= kept[owner] == last - first
            tied[rows[at_end]] = crossing[owner[at_end]]
            retrieved = retrieved + crossing - np.bincount(owner[at_end], minlength=len(crossing))
    order = np.lexsort((-judged_grade, _depth_key(above), case))
    return JudgedPlaces(judged_offsets, judged_grade[order], above[order], tied[order], retrieved)


def tied_cases(places: JudgedPlaces, *, depth: int) -> NDArray[np.bool_]:
    """[n], True where the order of tied documents could change a metric down to `depth`.

    That is where a tied group which begins above `depth` holds a judged document, and isn't all of one grade.
    """
    rows = np.flatnonzero((places.tied > 1) & (places.above < depth))
    case, above, grade = places.case[rows], places.above[rows], places.grade[rows]
    start = group_starts(case, above)
    judged = np.diff(np.append(start, len(rows)))
    alike = np.maximum.reduceat(grade, start) == np.minimum.reduceat(grade, start) if len(rows) else judged > 0
    mixed = ~(alike & (judged == places.tied[rows[start]]))
    return np.bincount(case[start][mixed], minlength=len(places.retrieved)) > 0


def case_sums(case: Ints, per_row: Floats, n: int) -> Floats:
    """[n], the sum of a case's rows, one after the other, so that it depends on the case's own rows alone."""
    return np.bincount(case, per_row, minlength=n).astype(np.float64, copy=False)


def group_starts(case: Ints, above: Ints) -> Ints:
    """The first row of each run of rows that share case and `above`."""
    if len(case) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], (np.diff(case) != 0) | (np.diff(above) != 0)]))


def _depth_key(above: Ints) -> Ints:
    return np.where(above < 0, np.iinfo(np.int64).max, above)


def _group_start(scores: Floats, start: Ints, end: Ints, target: Floats) -> Ints:
    """Where each target's run of equal scores begins in its own part start:end of `scores`."""
    first = _bisect(scores, start, end, target, past_equal=False)
    held = first < end
    held[held] = scores[first[held]] == target[held]
    if not held.all():
        raise Misconfigured(
            "judged scores",
            found=f"the score {target[~held][0]} of a judged document is not in its case's ranking",
            expected="the score under which the document was stored",
            mend="Read rankings and judged documents from the same run.",
        )
    return first


def _group_end(scores: Floats, first: Ints, end: Ints, target: Floats) -> Ints:
    """The index behind each target's run of equal scores, which begins at `first`."""
    last = first + 1
    more = np.flatnonzero(last < end)
    more = more[scores[last[more]] == target[more]]
    last[more] = _bisect(scores, last[more], end[more], target[more], past_equal=True)
    return last


def _bisect(scores: Floats, low: Ints, high: Ints, target: Floats, *, past_equal: bool) -> Ints:
    """The first index in low:high whose score is below the target, or (`past_equal` off) not above it."""
    for _ in range(int(np.max(high - low, initial=0)).bit_length()):
        middle = (low + high) >> 1
        score = scores[np.minimum(middle, len(scores) - 1)]
        ahead = score >= target if past_equal else score > target
        ahead &= low < high
        low, high = np.where(ahead, middle + 1, low), np.where(ahead, high, middle)
    return low


def _refuse_crossing(crossing: Ints) -> None:
    if crossing.any():
        raise Misconfigured(
            "ties = 'trec'",
            found=f"{np.count_nonzero(crossing)} rankings whose last tied group was not stored whole",
            expected="rankings stored in trec_eval's order",
            mend='Run the suite again with ties = "trec".',
        )
