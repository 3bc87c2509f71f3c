"""Ranking metrics: one value per case, from where the ranking put the judged documents.

Ideal gains and the number of relevant documents come from the judgements, never from what was returned.
"""

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.metric.name import MetricName
from harness.metric.place import Floats, Ints, JudgedPlaces, place
from harness.metric.ties import Groups, cascade, first_relevant, precision_sum, preference_sum
from harness.output.case import OutputStatus
from harness.output.value import CaseValues, Status

__all__ = ["JudgedPlaces", "case_values", "place", "relevant_counts", "values"]


def values(name: MetricName, places: JudgedPlaces, *, depth: int, top_grade: int) -> Floats:
    """The metric on every case [n], in [0, 1], higher is better.

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
    # Rounding must not carry a mean of values in [0, 1] out of it.
    return np.clip(FORMULAS[name.base](name, places, name.cutoff or depth, top_grade), 0.0, 1.0)


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


def _ndcg(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    """Source: Järvelin and Kekäläinen, Cumulated gain-based evaluation, 2002; exp-log2: Burges et al., 2005."""
    gain = np.maximum(places.grade, 0).astype(np.float64)
    if name.param("dcg") == "exp-log2":
        _refuse_grade(name, places, 1000)
        gain = np.exp2(gain) - 1
    discount = 1 / np.log2(np.arange(cut) + 2.0)
    best = np.lexsort((-gain, places.case))
    rank = np.arange(len(gain)) - places.offsets[places.case]
    top = rank < cut
    ideal = _sum(places, gain[best][top] * discount[rank[top]], top)
    return _ratio(_sum(places, gain * _mean_worth(places, discount)), ideal)


def _average_precision(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    total = precision_sum(Groups.of(places, _binary(name, places), cut), cut, len(places.retrieved))
    return _ratio(total, relevant_counts(places, name.rel))


def _reciprocal_rank(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    groups = Groups.of(places, _binary(name, places), cut)
    return first_relevant(groups, 1 / np.arange(1.0, cut + 1), len(places.retrieved))


def _success(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    return first_relevant(Groups.of(places, _binary(name, places), cut), np.ones(cut), len(places.retrieved))


def _precision(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    return _sum(places, _binary(name, places) * _mean_inside(places, cut)) / cut


def _recall(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    hits = _sum(places, _binary(name, places) * _mean_inside(places, cut))
    return _ratio(hits, relevant_counts(places, name.rel))


def _r_precision(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    relevant = relevant_counts(places, name.rel)
    hits = _sum(places, _binary(name, places) * _mean_inside(places, np.minimum(relevant, cut)[places.case]))
    return _ratio(hits, relevant)


def _bpref(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    """Source: Buckley and Voorhees, Retrieval evaluation with incomplete information, 2004, as in trec_eval."""
    nonrelevant = (places.grade >= 0) & (places.grade < name.rel)
    relevant = relevant_counts(places, name.rel)
    judged_nonrelevant = np.bincount(places.case[nonrelevant], minlength=len(relevant))
    bound = np.stack([relevant, np.maximum(np.minimum(relevant, judged_nonrelevant), 1)], axis=1)
    groups = Groups.of(places, _binary(name, places), cut)
    return _ratio(preference_sum(groups, places, nonrelevant, bound), relevant)


def _expected_reciprocal_rank(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    """Source: Chapelle et al., Expected reciprocal rank for graded relevance, 2009."""
    _refuse_grade(name, places, top_grade)
    grade = np.maximum(places.grade, 0).astype(np.float64)
    chance = np.exp2(grade - top_grade) - np.exp2(-float(top_grade))
    return cascade(Groups.of(places, chance, cut), len(places.retrieved))


def _rank_biased_precision(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    """Source: Moffat and Zobel, Rank-biased precision for measurement of retrieval effectiveness, 2008."""
    p = float(name.param("p"))
    return _sum(places, _binary(name, places) * _mean_worth(places, (1 - p) * p ** np.arange(cut)))


def _judged(name: MetricName, places: JudgedPlaces, cut: int, top_grade: int) -> Floats:
    """The share of the first `cut` documents, or of all that were retrieved where those are fewer."""
    return _ratio(_sum(places, (places.grade >= 0) * _mean_inside(places, cut)), np.minimum(places.retrieved, cut))


FORMULAS: dict[str, Callable[[MetricName, JudgedPlaces, int, int], Floats]] = {
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
}


def _binary(name: MetricName, places: JudgedPlaces) -> Floats:
    return (places.grade >= name.rel).astype(np.float64)


def _mean_inside(places: JudgedPlaces, cut: int | Ints) -> Floats:
    """[j], the chance that the document stands among the first `cut`; 0 when not retrieved."""
    return np.clip(cut - places.above, 0, places.tied) / np.maximum(places.tied, 1)


def _mean_worth(places: JudgedPlaces, worth: Floats) -> Floats:
    """[j], the mean of `worth` [cut] over the places that the document can take; 0 when not retrieved or below."""
    cut = len(worth)
    result = np.append(worth, 0.0)[np.minimum(places.above, cut)]  # not retrieved, -1, reads the 0 at the end
    many = np.flatnonzero((places.tied > 1) & (places.above < cut))
    if len(many):
        above, tied = places.above[many], places.tied[many]
        running = np.concatenate([[0.0], np.cumsum(worth)])
        result[many] = (running[np.minimum(above + tied, cut)] - running[above]) / tied
    return result


def _sum(places: JudgedPlaces, per_row: Floats, rows: NDArray[np.bool_] | slice = slice(None)) -> Floats:
    """[n], the sum of a case's rows, one after the other, so that a case's sum depends on its own rows alone."""
    return np.bincount(places.case[rows], per_row, minlength=len(places.retrieved))


def _ratio(value: Floats, over: Floats | Ints) -> Floats:
    return np.divide(value, over, out=np.zeros(len(value)), where=over > 0)


def _refuse_grade(name: MetricName, places: JudgedPlaces, highest: int) -> None:
    top = int(np.max(places.grade, initial=0))
    if top > highest:
        raise Misconfigured(
            f"metric '{name}'",
            found=f"a judgement of grade {top}",
            expected=f"grades of at most {highest}",
            mend="Mend the judgement, or freeze the suite anew so that its top grade is right.",
        )
