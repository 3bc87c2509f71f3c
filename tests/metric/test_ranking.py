"""What the ranking metrics say."""

import math
from typing import ClassVar

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.metric.name import parse
from harness.metric.ranking import case_values, values
from harness.output.case import OutputStatus
from harness.output.value import Status

DEPTH = 8
EVERY = (
    "nDCG",
    "nDCG@3",
    "nDCG(dcg='exp-log2')@5",
    "AP",
    "AP(rel=2)@5",
    "RR",
    "RR@2",
    "P@5",
    "R@5",
    "Success@2",
    "Rprec",
    "Bpref",
    "Bpref(rel=2)",
    "ERR",
    "ERR@4",
    "RBP(p=0.8)",
    "RBP(p=0.5,rel=2)@4",
    "Judged",
    "Judged@4",
    "recall_ceiling",
    "recall_ceiling(rel=2)",
)


def measured(text, places, *, depth=DEPTH, top_grade=3):
    return values(parse(text), places, depth=depth, top_grade=top_grade)


class TestByHand:
    """a (grade 2), x (unjudged), b (0), c (1), then d (-1); e (3) and f (0) are judged and not retrieved."""

    RANKING: ClassVar = {"a": 5.0, "x": 4.0, "b": 3.0, "c": 2.0, "d": 1.0}
    GRADES: ClassVar = {"a": 2, "b": 0, "c": 1, "d": -1, "e": 3, "f": 0}

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("nDCG@10", (2 + 1 / math.log2(5)) / (3 + 2 / math.log2(3) + 1 / 2)),
            ("nDCG@2", 2 / (3 + 2 / math.log2(3))),
            ("nDCG(dcg='exp-log2')@10", (3 + 1 / math.log2(5)) / (7 + 3 / math.log2(3) + 1 / 2)),
            ("AP", (1 + 2 / 4) / 3),
            ("AP@3", 1 / 3),
            ("AP(rel=2)", 1 / 2),
            ("RR", 1),
            ("RR(rel=3)", 0),
            ("P@5", 2 / 5),
            ("P@10", 2 / 10),
            ("R@5", 2 / 3),
            ("R@1", 1 / 3),
            ("Success@1", 1),
            ("Success(rel=3)@5", 0),
            ("Rprec", 1 / 3),
            ("Bpref", (1 + (1 - 1 / 2)) / 3),  # R = 3, N = 2; c has b above it, and d is as good as unjudged
            ("Bpref(rel=2)", 1 / 2),
            ("ERR", 3 / 8 + (1 - 3 / 8) * (1 / 8) / 4),  # top grade 3
            ("RBP(p=0.8)", 0.2 * (1 + 0.8**3)),
            ("RBP(p=0.5)@3", 0.5),
            ("Judged@3", 2 / 3),
            ("Judged@10", 3 / 5),
        ],
    )
    def test_value(self, text, wanted, judge):
        places = judge([self.RANKING], [self.GRADES])
        assert measured(text, places, depth=10)[0] == pytest.approx(wanted, abs=1e-15)

    @pytest.mark.parametrize(
        ("text", "wanted"),
        [
            ("RR", (1 + 1 / 2) / 2),
            ("AP", (1 + 1 / 2) / 2),
            ("nDCG@1", 1 / 2),
            ("P@1", 1 / 2),
            ("Success@1", 1 / 2),
            ("R@2", 1),
            ("ERR", 3 / 4 * (1 + 1 / 2) / 2),
            ("Bpref", (1 + 0) / 2),
        ],
    )
    def test_two_tied_documents_count_half_in_each_order(self, text, wanted, judge):
        """One of grade 2, the suite's top, and one of grade 0."""
        places = judge([{"a": 1.0, "b": 1.0}], [{"a": 2, "b": 0}])
        assert measured(text, places, top_grade=2)[0] == pytest.approx(wanted, abs=1e-15)


class TestBounds:
    @pytest.mark.parametrize("text", EVERY)
    def test_an_empty_ranking_scores_zero(self, text, judge):
        assert measured(text, judge([{}], [{"a": 3, "b": 0}])).tolist() == [0.0]

    @pytest.mark.parametrize("text", [text for text in EVERY if not text.startswith("Judged")])
    def test_without_relevant_documents_the_score_is_zero(self, text, judge):
        assert measured(text, judge([{"a": 1.0}, {"b": 1.0}], [{"a": 0, "c": -1}, {}])).tolist() == [0.0, 0.0]

    @pytest.mark.parametrize(
        "text", ["nDCG", "nDCG(dcg='exp-log2')@5", "AP", "RR", "R@60", "Success@2", "Rprec", "Bpref", "recall_ceiling"]
    )
    def test_the_ideal_ranking_scores_exactly_one(self, text, judge):
        """Sixty documents of grades 3, 2 and 1, in that order, then one of grade 0."""
        grades = {f"d{i:02}": 3 - i // 20 for i in range(61)}
        ranking = {document: -float(i) for i, document in enumerate(grades)}
        assert measured(text, judge([ranking], [grades]), depth=100).tolist() == [1.0]

    @pytest.mark.parametrize("text", ["nDCG", "AP", "RR", "Success@2", "RBP(p=0.3)"])
    def test_rounding_never_carries_a_value_above_one(self, text, judge):
        """Rankings of 1 to 60 relevant documents, all tied."""
        rankings = [{f"d{i}": 1.0 for i in range(size)} for size in range(1, 61)]
        places = judge(rankings, [dict.fromkeys(row, 3) for row in rankings])
        assert measured(text, places, depth=100).max() <= 1

    def test_a_cutoff_below_the_depth_kept_is_refused(self, judge):
        with pytest.raises(Misconfigured, match="depth 8"):
            measured("nDCG@9", judge([{"a": 1.0}], [{"a": 1}]))

    def test_err_refuses_a_grade_above_the_top_one(self, judge):
        with pytest.raises(Misconfigured, match="grade 4"):
            measured("ERR", judge([{"a": 1.0}], [{"a": 4}]), top_grade=3)

    def test_exponential_gains_refuse_a_grade_that_overflows(self, judge):
        with pytest.raises(Misconfigured, match="grade 5000"):
            measured("nDCG(dcg='exp-log2')", judge([{"a": 1.0}], [{"a": 5000}]))


@pytest.fixture(scope="module")
def collection():
    """Thirty rankings of up to twenty documents with many ties, and judgements of every kind."""
    rng = np.random.default_rng(11)
    rankings, judgements = [], []
    for _ in range(30):
        size = rng.integers(1, 21)
        rankings.append({f"d{i}": float(score) for i, score in enumerate(rng.integers(8, size=size) / 3)})
        judgements.append({f"d{i}": int(rng.integers(-1, 4)) for i in rng.permutation(25)[: rng.integers(15)]})
    return rankings, judgements


@pytest.mark.parametrize("text", EVERY)
class TestLaws:
    def test_renaming_documents_never_changes_a_value(self, text, collection, judge):
        """To the last bit, though names decide in which order tied documents are stored."""
        rankings, judgements = collection
        rng = np.random.default_rng(5)
        renamed = {f"d{i}": f"n{j:02}" for i, j in enumerate(rng.permutation(25))}

        def rename(table):
            return [dict(sorted((renamed[document], x) for document, x in row.items())) for row in table]

        again = measured(text, judge(rename(rankings), rename(judgements)))
        np.testing.assert_array_equal(again, measured(text, judge(rankings, judgements)))

    def test_shuffling_cases_never_changes_a_value(self, text, collection, judge):
        rankings, judgements = collection
        shuffled = np.random.default_rng(6).permutation(len(rankings))
        again = measured(text, judge([rankings[i] for i in shuffled], [judgements[i] for i in shuffled]))
        np.testing.assert_array_equal(again, measured(text, judge(rankings, judgements))[shuffled])

    def test_a_case_is_worth_the_same_alone(self, text, collection, judge):
        rankings, judgements = collection
        together = measured(text, judge(rankings, judgements))
        alone = [measured(text, judge([r], [g]))[0] for r, g in zip(rankings, judgements, strict=True)]
        np.testing.assert_array_equal(alone, together)

    @pytest.mark.parametrize("ties", ["expected", "trec"])
    def test_unjudged_documents_below_the_depth_never_change_a_value(self, text, ties, collection, judge):
        rankings = [row for row in collection[0] if len(row) >= DEPTH]
        judgements = [grades for row, grades in zip(*collection, strict=True) if len(row) >= DEPTH]
        longer = [row | {f"new{i}": -1.0 - i % 2 for i in range(9)} for row in rankings]
        again = measured(text, judge(longer, judgements, ties=ties))
        np.testing.assert_array_equal(again, measured(text, judge(rankings, judgements, ties=ties)))

    def test_without_ties_both_policies_agree(self, text, collection, judge):
        rng = np.random.default_rng(8)
        rankings = [dict(zip(row, rng.permutation(len(row)).astype(float), strict=True)) for row in collection[0]]
        expected = measured(text, judge(rankings, collection[1]))
        np.testing.assert_array_equal(expected, measured(text, judge(rankings, collection[1], ties="trec")))

    def test_scaling_scores_never_changes_a_value(self, text, collection, judge):
        rankings, judgements = collection
        scaled = [{document: score * 4 - 1 for document, score in row.items()} for row in rankings]
        again = measured(text, judge(scaled, judgements))
        np.testing.assert_array_equal(again, measured(text, judge(rankings, judgements)))


class TestNothing:
    @pytest.mark.parametrize("text", EVERY)
    def test_no_cases_have_no_values(self, text, judge):
        assert measured(text, judge([], [])).shape == (0,)

    @pytest.mark.parametrize("text", EVERY)
    def test_cases_without_judgements_score_zero(self, text, judge):
        assert measured(text, judge([{"a": 1.0}, {}], [{}, {}])).tolist() == [0, 0]


class TestCaseValues:
    CASES = np.array(["ok", "lost", "broken", "empty", "none", "none-lost"], dtype=object)
    OUTPUT = np.array(
        [
            OutputStatus.OK,
            OutputStatus.MISSING,
            OutputStatus.FAILED,
            OutputStatus.OK,
            OutputStatus.OK,
            OutputStatus.MISSING,
        ],
        dtype=object,
    )

    def ask(self, text, judge, *, no_relevant="not-applicable"):
        places = judge([{"a": 1.0}, {}, {}, {}, {"a": 1.0}, {}], [{"a": 1}] * 4 + [{"a": 0}] * 2)
        return case_values(
            parse(text),
            places,
            case_ids=self.CASES,
            output_status=self.OUTPUT,
            depth=10,
            top_grade=1,
            no_relevant=no_relevant,
        )

    def test_status_says_why_a_case_has_no_value(self, judge):
        """What the data alone decide comes before what the run did; an empty ranking is scored."""
        found = self.ask("recall_at_10", judge)
        assert found.metric == "R@10"
        assert found.status.tolist() == [
            Status.SCORED,
            Status.MISSING,
            Status.FAILED,
            Status.SCORED,
            Status.NOT_APPLICABLE,
            Status.NOT_APPLICABLE,
        ]
        np.testing.assert_array_equal(found.values, [1, np.nan, np.nan, 0, np.nan, np.nan])

    def test_zero_scores_a_case_without_relevant_documents(self, judge):
        found = self.ask("R@10", judge, no_relevant="zero")
        assert found.status[4:].tolist() == [Status.SCORED, Status.MISSING]
        np.testing.assert_array_equal(found.values[4:], [0, np.nan])

    def test_the_judged_share_needs_no_relevant_document(self, judge):
        found = self.ask("Judged@10", judge)
        assert found.status[4:].tolist() == [Status.SCORED, Status.MISSING]
        assert found.values[4] == 1

    def test_relevance_starts_where_the_metric_says(self, judge):
        """No document has grade 2, so AP(rel=2) has no value anywhere."""
        assert set(self.ask("AP(rel=2)", judge).status) == {Status.NOT_APPLICABLE}

    def test_plain_text_statuses_are_understood(self, judge):
        """A store hands over text, not members of the enumeration."""
        plain = type(self)()
        plain.OUTPUT = np.array([str(status) for status in self.OUTPUT], dtype=object)
        assert plain.ask("R@10", judge).status.tolist() == self.ask("R@10", judge).status.tolist()
