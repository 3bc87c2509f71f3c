"""Exact means over all orders of tied documents, for the metrics that aren't a sum over single documents.

All work on `Groups`: the tied groups that hold a relevant document and begin above the cut. In a group of t
documents whose first q places lie above the cut, each order is equally likely.
Source: McSherry and Najork, Computing information retrieval performance measures efficiently in the presence of
tied scores, ECIR 2008, for precision, recall, reciprocal rank, average precision and nDCG; the others are derived
here from the same assumption.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.metric.place import Floats, Ints, JudgedPlaces, case_sums, group_starts


@dataclass(frozen=True, slots=True)
class Groups:
    """Tied groups by case, then by place; all [g], but for `gain` [rows], which `first` [g] cuts into groups.

    `relevant` of the group's `tied` documents are relevant, `before` are relevant in the case's groups above.
    `inside` of its places, which begin below `above` documents, lie above the cut.
    """

    case: Ints
    above: Ints
    tied: Ints
    relevant: Ints
    before: Ints
    inside: Ints
    first: Ints
    gain: Floats

    @classmethod
    def of(cls, places: JudgedPlaces, gain: Floats, cut: int) -> "Groups":
        """The groups of the documents with a gain above 0."""
        rows = np.flatnonzero((gain > 0) & (places.above >= 0) & (places.above < cut))
        owner, above = places.case[rows], places.above[rows]
        first = group_starts(owner, above)
        case, above, tied = owner[first], above[first], places.tied[rows][first]
        return cls(
            case=case,
            above=above,
            tied=tied,
            relevant=np.diff(np.append(first, len(rows))),
            before=first - np.searchsorted(owner, case),
            inside=np.minimum(tied, cut - above),
            first=first,
            gain=gain[rows],
        )


def first_relevant(groups: Groups, worth: Floats, n: int) -> Floats:
    """[n], the mean of `worth` [cut] at the place of a case's first relevant document, 0 where it lies below.

    In the first group that holds one, the chance that places 1 to s hold none falls by (t-m-s)/(t-s) with each.
    """
    head = np.flatnonzero(groups.before == 0)
    above, tied, relevant, inside = (x[head] for x in (groups.above, groups.tied, groups.relevant, groups.inside))
    total = np.zeros(len(head))
    single = tied == 1
    total[single] = worth[above[single]]
    active = np.flatnonzero(~single)
    none_yet = np.ones(len(head))
    for s in range(int(np.max(inside[active], initial=0))):
        active = active[(inside[active] > s) & (none_yet[active] > 0)]
        left = tied[active] - s
        total[active] += none_yet[active] * (relevant[active] / left) * worth[above[active] + s]
        none_yet[active] *= (left - relevant[active]) / left
    result = np.zeros(n)
    result[groups.case[head]] = total
    return result


def precision_sum(groups: Groups, cut: int, n: int) -> Floats:
    """[n], the sum of the precision at each relevant document's place above the cut."""
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, cut + 1))])
    above, tied, inside = groups.above, groups.tied, groups.inside
    # Given a relevant document at place s of its group, each of the s - 1 above it is relevant with chance `also`.
    also = (groups.relevant - 1) / np.maximum(tied - 1, 1)
    steady = groups.before + 1 - also * (above + 1)
    share = groups.relevant / tied
    mean = share * (steady * (harmonic[above + inside] - harmonic[above]) + also * inside)
    mean = np.where(tied == 1, (groups.before + 1) / (above + 1), mean)
    return case_sums(groups.case, mean, n)


def cascade(groups: Groups, n: int) -> Floats:
    """[n], the mean reciprocal of the place where a reader stops, who stops at a document with chance `gain`."""
    stop = np.zeros(len(groups.case))
    single = groups.tied == 1
    stop[single] = groups.gain[groups.first[single]] / (groups.above[single] + 1)
    for g in np.flatnonzero(~single):
        chances = groups.gain[groups.first[g] : groups.first[g] + groups.relevant[g]]
        stop[g] = _tied_cascade(chances, int(groups.above[g]), int(groups.tied[g]), int(groups.inside[g]))
    goes_on = np.multiply.reduceat(1 - groups.gain, groups.first) if len(groups.first) else np.ones(0)
    nth = np.arange(len(groups.case)) - np.searchsorted(groups.case, groups.case)
    by_nth = np.argsort(nth, kind="stable")
    total, arrives = np.zeros(n), np.ones(n)
    for step in np.split(by_nth, np.cumsum(np.bincount(nth))[:-1]) if len(nth) else ():
        case = groups.case[step]
        total[case] += arrives[case] * stop[step]
        arrives[case] *= goes_on[step]
    return total


def _tied_cascade(chances: Floats, above: int, tied: int, inside: int) -> float:
    """The mean of 1 / (place of the stop) over the group's places above the cut.

    `passes[i]` is the mean, over which i of the group's documents come first, of the chance to pass all i. Adding a
    document to a group of n - 1: it is among the first i with chance i/n. Documents without gain need no step.
    """
    passes = np.ones(inside + 1)
    i = np.arange(inside + 1)
    for n, chance in enumerate(chances, start=tied - len(chances) + 1):
        among = np.minimum(i, n) / n
        shifted = np.concatenate([[0.0], passes[:-1]])
        passes = (1 - among) * passes + among * (1 - chance) * shifted
    return float(np.sum((passes[:-1] - passes[1:]) / (above + i[1:])))


def preference_sum(
    groups: Groups, places: JudgedPlaces, nonrelevant: NDArray[np.bool_], *, most: Ints, over: Ints
) -> Floats:
    """[n], Bpref's sum over relevant documents of 1 - min(x, most) / over, x judged nonrelevant ones standing above.

    `nonrelevant` [j] marks the judged nonrelevant rows; `most` and `over` [n], over at least 1.
    A relevant document's rank among its group's m nonrelevant ones is uniform on 0 to m.
    """
    rows = np.flatnonzero(nonrelevant & (places.above >= 0))
    width = int(np.max(places.above, initial=0)) + 2
    key = places.case[rows] * width + places.above[rows]
    own = groups.case * width
    start = np.searchsorted(key, own)
    earlier = np.searchsorted(key, own + groups.above) - start
    within = np.searchsorted(key, own + groups.above, side="right") - start - earlier
    most, over = most[groups.case], over[groups.case]
    lost = (_capped_sum(earlier + within, most) - _capped_sum(earlier - 1, most)) / (within + 1) / over
    mean = 1 - lost
    for g in np.flatnonzero(groups.inside < groups.tied):
        seen = _seen_at_rank(int(groups.tied[g]), int(within[g]), int(groups.inside[g]))
        worth = 1 - np.minimum(earlier[g] + np.arange(within[g] + 1), most[g]) / over[g]
        mean[g] = np.mean(seen * worth)
    return case_sums(groups.case, groups.relevant * mean, len(places.retrieved))


def _capped_sum(x: Ints, most: Ints) -> Ints:
    """The sum of min(i, most) for i from 0 to x."""
    low: Ints = np.minimum(x, most)
    return low * (low + 1) // 2 + (x - low) * most


def _seen_at_rank(tied: int, nonrelevant: int, inside: int) -> Floats:
    """[nonrelevant+1], the chance that a relevant document with x of the group's nonrelevant above it is inside.

    It is the (x+1)th of nonrelevant + 1 documents, so at least x + 1 of them must be among the first `inside`.
    """
    from scipy.special import gammaln

    drawn = np.arange(max(0, inside + nonrelevant + 1 - tied), min(inside, nonrelevant + 1) + 1)
    others = tied - nonrelevant - 1
    left = inside - drawn
    log = -(gammaln(drawn + 1) + gammaln(nonrelevant + 2 - drawn) + gammaln(left + 1) + gammaln(others - left + 1))
    chance = np.zeros(nonrelevant + 2)
    chance[drawn] = np.exp(log - log.max())
    chance /= chance.sum()
    return np.cumsum(chance[::-1])[::-1][1:]
