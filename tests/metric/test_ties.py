"""The mean over all orders of tied documents, against the orders themselves, one by one."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

from harness.metric.name import METRICS, MetricName, parse
from harness.metric.ranking import values

Grade = int | None  # None: unjudged
TOP = 3

NAMES = (
    "nDCG",
    "nDCG(dcg='exp-log2')",
    "AP",
    "AP(rel=2)",
    "RR",
    "RR(rel=2)",
    "P",
    "P(rel=2)",
    "R",
    "Success",
    "Rprec",
    "Rprec(rel=2)",
    "Bpref",
    "Bpref(rel=2)",
    "ERR",
    "RBP(p=0.8)",
    "RBP(p=0.4,rel=2)",
    "Judged",
    "recall_ceiling",
    "recall_ceiling(rel=2)",
)


def base_of(text: str) -> str:
    return text.partition("(")[0]


def plain(name: MetricName, ranked: list[Grade], judged: list[int], cut: int) -> float:
    """The metric of one order of documents, as its definition reads."""
    top = ranked[:cut]
    hit = [grade is not None and grade >= name.rel for grade in top]
    relevant = sum(grade >= name.rel for grade in judged)
    if name.base == "Judged":
        return sum(grade is not None and grade >= 0 for grade in top) / len(top) if top else 0.0
    if relevant == 0:
        return 0.0
    match name.base:
        case "nDCG":
            linear = name.param("dcg") == "log2"
            gains = [max(grade or 0, 0) if linear else 2 ** max(grade or 0, 0) - 1 for grade in top]
            best = sorted((max(g, 0) if linear else 2 ** max(g, 0) - 1 for g in judged), reverse=True)[:cut]
            return sum(g / math.log2(i + 2) for i, g in enumerate(gains)) / sum(
                g / math.log2(i + 2) for i, g in enumerate(best)
            )
        case "AP":
            return sum(sum(hit[: i + 1]) / (i + 1) for i in range(len(top)) if hit[i]) / relevant
        case "RR":
            return next((1 / (i + 1) for i in range(len(top)) if hit[i]), 0.0)
        case "P":
            return sum(hit) / cut
        case "R" | "recall_ceiling":
            return sum(hit) / relevant
        case "Success":
            return float(any(hit))
        case "Rprec":
            return sum(hit[:relevant]) / relevant
        case "Bpref":
            other = sum(0 <= grade < name.rel for grade in judged)
            total, above = 0.0, 0
            for i, grade in enumerate(top):
                if hit[i]:
                    total += 1 - min(above, relevant) / min(other, relevant) if above else 1
                elif grade is not None and grade >= 0:
                    above += 1
            return total / relevant
        case "ERR":
            total, arrives = 0.0, 1.0
            for i, grade in enumerate(top):
                stops = (2 ** max(grade or 0, 0) - 1) / 2**TOP
                total += arrives * stops / (i + 1)
                arrives *= 1 - stops
            return total
        case "RBP":
            p = float(name.param("p"))
            return sum((1 - p) * p**i for i in range(len(top)) if hit[i])
    raise AssertionError(name)


def orders(groups: list[list[Grade]]) -> Iterator[list[Grade]]:
    """Every order of the tied documents, each as likely as the next; documents of one grade look alike."""
    for chosen in product(*(sorted(set(permutations(group)), key=str) for group in groups)):
        yield [grade for group in chosen for grade in group]


def mean_over_orders(name: MetricName, groups: list[list[Grade]], judged: list[int], cut: int) -> float:
    found = [plain(name, ranked, judged, cut) for ranked in orders(groups)]
    return sum(found) / len(found)


def draw(rng: np.random.Generator) -> tuple[list[list[Grade]], list[int]]:
    """Tied groups of graded documents, six in all, and the grades of all judged ones, retrieved or not."""
    sizes = [[6], [1, 5], [2, 4], [3, 3], [4, 2], [1, 2, 3], [2, 2, 2], [1, 1, 4], [1] * 6, [1], [3]][rng.integers(11)]
    pool: list[Grade] = [None, None, -1, 0, 0, 1, 2, 3]
    groups = [[pool[i] for i in rng.integers(len(pool), size=size)] for size in sizes]
    lost = rng.integers(-1, TOP + 1, size=rng.integers(3)).tolist()
    return groups, [grade for group in groups for grade in group if grade is not None] + lost


def written(groups: list[list[Grade]], lost: list[int]) -> tuple[dict[str, float], dict[str, int]]:
    ranking: dict[str, float] = {}
    grades: dict[str, int] = {}
    for level, group in enumerate(groups):
        for grade in group:
            document = f"d{len(ranking)}"
            ranking[document] = -level / 7
            if grade is not None:
                grades[document] = grade
    return ranking, grades | {f"lost{i}": grade for i, grade in enumerate(lost)}


@pytest.fixture(scope="module")
def cases():
    rng = np.random.default_rng(7)
    drawn = [draw(rng) for _ in range(60)]
    return [groups for groups, _ in drawn], [judged for _, judged in drawn]


class TestMeanOverOrders:
    @pytest.mark.parametrize("text", NAMES)
    def test_every_metric_is_the_mean_over_all_orders(self, text, cases, judge):
        """At every cut from 1 to 6, groups that cross the cut among them."""
        rankings, judgements = [], []
        for groups, judged in zip(*cases, strict=True):
            retrieved = sum(grade is not None for group in groups for grade in group)
            ranking, grades = written(groups, judged[retrieved:])
            rankings.append(ranking)
            judgements.append(grades)
        places = judge(rankings, judgements)
        for cut in range(1, 7):
            name = parse(f"{text}@{cut}" if METRICS[base_of(text)].cutoff == "required" else text)
            found = values(name, places, depth=cut, top_grade=TOP)
            wanted = [mean_over_orders(name, groups, judged, cut) for groups, judged in zip(*cases, strict=True)]
            np.testing.assert_allclose(found, wanted, atol=1e-13, err_msg=f"{name} down to {cut}")

    @pytest.mark.parametrize("text", [name for name in NAMES if METRICS[base_of(name)].cutoff == "allowed"])
    def test_a_cutoff_says_the_same_as_that_depth(self, text, cases, judge):
        """`nDCG@3` at depth 6 is `nDCG` at depth 3."""
        both = [written(groups, []) for groups in cases[0]]
        places = judge([ranking for ranking, _ in both], [grades for _, grades in both])
        cut = values(parse(f"{text}@3"), places, depth=6, top_grade=TOP)
        np.testing.assert_array_equal(cut, values(parse(text), places, depth=3, top_grade=TOP))


class TestCrossingGroup:
    @pytest.mark.parametrize("text", NAMES)
    def test_judged_documents_and_size_say_as_much_as_the_whole_group(self, text, judge):
        """A group of 40 that crosses depth 5, stored as its three judged documents, scores as if stored whole."""
        head = {"a": 3.0, "b": 2.0}
        tail = {f"t{i:02}": 1.0 for i in range(40)}
        grades = {"a": 0, "b": 1, "t03": 2, "t17": 0, "t20": 3, "gone": 1}
        kept = {document: score for document, score in (head | tail).items() if score > 1 or document in grades}
        name = parse(f"{text}@5" if METRICS[base_of(text)].cutoff == "required" else text)
        whole = values(name, judge([head | tail], [grades]), depth=5, top_grade=TOP)
        short = values(name, judge([kept], [grades], crossing=[40]), depth=5, top_grade=TOP)
        np.testing.assert_array_equal(short, whole)

    def test_a_group_without_judged_documents_leaves_the_one_above_as_it_is(self, judge):
        """The last stored group holds an unjudged document, so it is whole, and nothing of the crossing one is here."""
        places = judge([{"a": 3.0, "b": 2.0, "c": 2.0}], [{"a": 1, "b": 1}], crossing=[500])
        assert places.tied.tolist() == [1, 2]
        assert places.retrieved.tolist() == [503]


class TestLargeGroups:
    """t = 3000 documents tied from the top, m = 4 of them relevant, against whole-number binomials."""

    T, M, CUT = 3000, 4, 1000

    @pytest.fixture
    def places(self, judge):
        grades = {f"d{i:04}": 2 for i in range(0, 2800, 700)}
        return judge([{f"d{i:04}": 0.5 for i in range(self.T)}], [grades])

    def test_reciprocal_rank(self, places):
        wanted = sum(
            Fraction(math.comb(self.T - s, self.M - 1), math.comb(self.T, self.M) * s) for s in range(1, self.CUT + 1)
        )
        found = values(parse("RR"), places, depth=self.CUT, top_grade=2)
        assert found[0] == pytest.approx(float(wanted), rel=1e-12)

    def test_success(self, places):
        wanted = 1 - Fraction(math.comb(self.T - self.CUT, self.M), math.comb(self.T, self.M))
        found = values(parse("Success@1000"), places, depth=self.CUT, top_grade=2)
        assert found[0] == pytest.approx(float(wanted), rel=1e-12)

    def test_expected_reciprocal_rank(self, places):
        """All stop with chance 3/4: passing i documents takes the mean of (1/4)^x, x relevant ones among them."""

        def passes(i: int) -> Fraction:
            ways = (math.comb(self.M, x) * math.comb(self.T - self.M, i - x) for x in range(min(i, self.M) + 1))
            return sum((Fraction(w, 4**x) for x, w in enumerate(ways)), start=Fraction(0)) / math.comb(self.T, i)

        chain = [float(passes(i)) for i in range(51)]
        wanted = sum((chain[i - 1] - chain[i]) / i for i in range(1, 51))
        found = values(parse("ERR@50"), places, depth=self.CUT, top_grade=2)
        assert found[0] == pytest.approx(wanted, rel=1e-10)

    @pytest.mark.parametrize("text", ["ERR", "AP", "RR", "nDCG"])
    def test_documents_of_one_grade_score_as_if_untied(self, text, judge):
        """1,500 tied documents, all of grade 1: every order is the same."""
        grades = {f"d{i:04}": 1 for i in range(1500)}
        ranking = dict.fromkeys(grades, 0.5)
        tied = values(parse(text), judge([ranking], [grades]), depth=2000, top_grade=2)
        untied = values(parse(text), judge([ranking], [grades], ties="trec"), depth=2000, top_grade=2)
        assert tied == pytest.approx(untied, rel=1e-11)

    def test_bpref_where_the_group_crosses_the_depth(self, judge):
        """900 nonrelevant documents tied with 2 relevant ones in a group of 2000, seen down to depth 1000."""
        t, other, depth = 2000, 900, 1000
        grades = {f"d{i:04}": int(i < 2) for i in range(other + 2)}
        places = judge([{f"d{i:04}": 0.5 for i in range(t)}], [grades])
        # A relevant document at place s + 1 with x nonrelevant among the s above it counts 1 - min(x, 2)/2.
        wanted = Fraction(0)
        for s in range(depth):
            for x, share in ((0, Fraction(1)), (1, Fraction(1, 2))):
                if x <= s:
                    ways = math.comb(other, x) * math.comb(t - 1 - other, s - x)
                    wanted += share * Fraction(ways, math.comb(t - 1, s) * t)
        found = values(parse("Bpref"), places, depth=depth, top_grade=1)
        assert found[0] == pytest.approx(float(wanted), rel=1e-9)
