"""Ranking metrics: one value per case, from where the ranking put the judged documents.

Ideal gains and the number of relevant documents come from the judgements, never from what was returned.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.metric.name import MetricName
from harness.metric.place import Floats, Ints, JudgedPlaces, case_sums, place
from harness.metric.ties import Groups, cascade, first_relevant, precision_sum, preference_sum
from harness.output.case import OutputStatus
from harness.output.value import CaseValues, Status

__all__ = ["JudgedPlaces", "case_values", "place", "relevant_counts", "values"]


def values(name: MetricName, places: JudgedPlaces, *, depth: int, top_grade: int) -> Floats:
    """The metric on every case [n], from 0 to its span (1 for all of these), higher is better.

    Under tied places it is the exact mean over all orders of the tied documents. A metric without a cutoff is taken
    at `depth`; Rprec and Bpref also see no document below it. `top_grade` is the suite's, and scales ERR alone.
    An empty ranking scores 0, and so does a case without relevant documents, as in trec_eval.
    Raises Misconfigured for a cutoff above `depth`, and for a grade that ERR or exponential gains cannot hold.
    """
    if name.cutoff is not None and name.cutoff > depth:
        raise Misconfigured(
            f"metric '{name}'",
            found=f"the rankings are kept down to depth {depth}",
            expected=f"a cutoff of at most {depth}",
            mend="Lower the cutoff, or raise `depth` in [ranking] and run again.",
        )
    # Rounding must not carry a mean out of the values that the metric has.
    return np.clip(FORMULAS[name.base](_Asked(name, places, name.cutoff or depth, top_grade)), 0.0, name.span)


def relevant_counts(places: JudgedPlaces, rel: int = 1) -> Ints:
    """[n], each case's judged documents of grade `rel` and above, retrieved or not."""
    return np.bincount(places.case[places.grade >= rel], minlength=len(places.retrieved))


def case_values(
    name: MetricName,
    places: JudgedPlaces,
    *,
    case_ids: NDArray[np.object_],
    output_status: NDArray[np.object_],
    depth: int,
    top_grade: int,
    no_relevant: Literal["not-applicable", "zero"],
) -> CaseValues:
    """The metric on every case, with why a case has none.

    Shapes: case_ids [n] str, output_status [n] of OutputStatus values. What the data alone decide comes first: a
    case without relevant documents is `not-applicable` whatever its output, unless `no_relevant` is "zero".
    """
    status = np.full(len(case_ids), Status.SCORED, dtype=object)
    status[output_status == OutputStatus.MISSING] = Status.MISSING
    status[output_status == OutputStatus.FAILED] = Status.FAILED
    if name.needs_relevant and no_relevant == "not-applicable":
        status[relevant_counts(places, name.rel) == 0] = Status.NOT_APPLICABLE
    scored = np.asarray(status == Status.SCORED, dtype=bool)
    found = np.where(scored, values(name, places, depth=depth, top_grade=top_grade), np.nan)
    return CaseValues(str(name), case_ids, found, status)


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a formula is given: the metric, the places, how far down it looks, and the suite's top grade."""

    name: MetricName
    places: JudgedPlaces
    cut: int
    top_grade: int

    @property
    def n(self) -> int:
        return len(self.places.retrieved)

    @property
    def relevant(self) -> Floats:
        """[j], 1 for a relevant document, else 0."""
        return (self.places.grade >= self.name.rel).astype(np.float64)

    @property
    def counts(self) -> Ints:
        """[n], relevant documents, retrieved or not."""
        return relevant_counts(self.places, self.name.rel)

    @property
    def groups(self) -> Groups:
        return Groups.of(self.places, self.relevant, self.cut)

    def mean_inside(self, cut: int | Ints) -> Floats:
        """[j], the chance that the document stands among the first `cut`; 0 when not retrieved."""
        return np.clip(cut - self.places.above, 0, self.places.tied) / np.maximum(self.places.tied, 1)

    def mean_worth(self, worth: Floats) -> Floats:
        """[j], the mean of `worth` [cut] over the places that the document can take; 0 when not retrieved or below."""
        places, cut = self.places, len(worth)
        result = np.append(worth, 0.0)[np.minimum(places.above, cut)]  # -1, not retrieved, reads the 0 at the end
        many = np.flatnonzero((places.tied > 1) & (places.above < cut))
        above, tied = places.above[many], places.tied[many]
        running = np.concatenate([[0.0], np.cumsum(worth)])
        result[many] = (running[np.minimum(above + tied, cut)] - running[above]) / tied
        return result

    def sums(self, per_row: Floats) -> Floats:
        """[n], each case's sum over its rows [j]."""
        return case_sums(self.places.case, per_row, self.n)


def _ndcg(asked: _Asked) -> Floats:
    """Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation, 2002; exp-log2: Burges et al., 2005."""
    places, cut = asked.places, asked.cut
    gain = np.maximum(places.grade, 0).astype(np.float64)
    if asked.name.param("dcg") == "exp-log2":
        _refuse_grade(asked, 1000)
        gain = np.exp2(gain) - 1
    discount = 1 / np.log2(np.arange(cut) + 2.0)
    case = places.case
    best = np.lexsort((-gain, case))
    rank = np.arange(len(gain)) - places.offsets[case]
    top = rank < cut
    ideal = case_sums(case[top], gain[best][top] * discount[rank[top]], asked.n)
    return _ratio(asked.sums(gain * asked.mean_worth(discount)), ideal)


def _average_precision(asked: _Asked) -> Floats:
    return _ratio(precision_sum(asked.groups, asked.cut, asked.n), asked.counts)


def _reciprocal_rank(asked: _Asked) -> Floats:
    return first_relevant(asked.groups, 1 / np.arange(1.0, asked.cut + 1), asked.n)


def _success(asked: _Asked) -> Floats:
    return first_relevant(asked.groups, np.ones(asked.cut), asked.n)


def _precision(asked: _Asked) -> Floats:
    return asked.sums(asked.relevant * asked.mean_inside(asked.cut)) / asked.cut


def _recall(asked: _Asked) -> Floats:
    return _ratio(asked.sums(asked.relevant * asked.mean_inside(asked.cut)), asked.counts)


def _r_precision(asked: _Asked) -> Floats:
    counts = asked.counts
    cut = np.minimum(counts, asked.cut)[asked.places.case]
    return _ratio(asked.sums(asked.relevant * asked.mean_inside(cut)), counts)


def _bpref(asked: _Asked) -> Floats:
    """Source: Buckley and Voorhees, Retrieval evaluation with incomplete information, 2004, as in trec_eval."""
    grade = asked.places.grade
    nonrelevant = (grade >= 0) & (grade < asked.name.rel)
    counts = asked.counts
    fewer = np.minimum(counts, np.bincount(asked.places.case[nonrelevant], minlength=asked.n))
    total = preference_sum(asked.groups, asked.places, nonrelevant, most=counts, over=np.maximum(fewer, 1))
    return _ratio(total, counts)


def _expected_reciprocal_rank(asked: _Asked) -> Floats:
    """Source: Chapelle et al., Expected reciprocal rank for graded relevance, 2009."""
    _refuse_grade(asked, asked.top_grade)
    grade = np.maximum(asked.places.grade, 0)
    stops = np.exp2(grade - float(asked.top_grade)) - np.exp2(-float(asked.top_grade))
    return cascade(Groups.of(asked.places, stops, asked.cut), asked.n)


def _rank_biased_precision(asked: _Asked) -> Floats:
    """Source: Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, 2008."""
    p = float(asked.name.param("p"))
    return asked.sums(asked.relevant * asked.mean_worth((1 - p) * np.power(p, np.arange(float(asked.cut)))))


def _judged(asked: _Asked) -> Floats:
    """The share of the first `cut` documents, or of all that were retrieved where those are fewer."""
    judged = (asked.places.grade >= 0).astype(np.float64)
    return _ratio(asked.sums(judged * asked.mean_inside(asked.cut)), np.minimum(asked.places.retrieved, asked.cut))


FORMULAS: dict[str, Callable[[_Asked], Floats]] = {
    "nDCG": _ndcg,
    "AP": _average_precision,
    "RR": _reciprocal_rank,
    "P": _precision,
    "R": _recall,
    "Success": _success,
    "Rprec": _r_precision,
    "Bpref": _bpref,
    "ERR": _expected_reciprocal_rank,
    "RBP": _rank_biased_precision,
    "Judged": _judged,
    "recall_ceiling": _recall,
}


def _ratio(value: Floats, over: Floats | Ints) -> Floats:
    return np.divide(value, over, out=np.zeros(len(value)), where=over > 0)


def _refuse_grade(asked: _Asked, highest: int) -> None:
    top = int(np.max(asked.places.grade, initial=0))
    if top > highest:
        raise Misconfigured(
            f"metric '{asked.name}'",
            found=f"a judgement of grade {top}",
            expected=f"grades of at most {highest}",
            mend="Mend the judgement, or freeze the suite anew so that its top grade is right.",
        )
