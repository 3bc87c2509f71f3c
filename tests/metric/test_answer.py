"""Answers to questions."""

import json
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.compare.form import statistic
from harness.errors import Misconfigured
from harness.metric.answer import AnswerPart, answer_table, answered, contribution, fit_null_threshold
from harness.metric.answer_text import TextRule
from harness.metric.name import parse
from harness.output.case import OutputStatus
from harness.output.value import Status

from .outputs import ids, ok

OFFICIAL = TextRule(empty="official")
WORDS = st.lists(st.sampled_from(["the", "An", "a", "Rhine", "river", "U.S.", "...", "rhine,"]), max_size=4)
TEXTS = WORDS.map(" ".join)


def read(gold, answers, status=None, score=None, null_score=None, **rest):
    n = len(gold)
    score, null_score = (None if each is None else np.array(each, float) for each in (score, null_score))
    return answered(
        ids(n), gold, answers, ok(n) if status is None else status, score=score, null_score=null_score, **rest
    )


def with_difference(gold, answers, difference, **rest):
    """As `read`, by null score minus score alone."""
    return read(gold, answers, score=np.zeros(len(gold)), null_score=difference, **rest)


def values(name, outputs, threshold=None):
    return contribution(parse(name), outputs, threshold).values.tolist()


def golds_of(*sizes):
    """Golds of so many tokens, the first of them Rhine; 0 for a question without gold. `Rhine` is worth 2/(k + 1)."""
    return [[" ".join(["Rhine", *"bcdefgh"[: size - 1]])] if size else [] for size in sizes]


def calibration(n):
    return np.full(n, "calibration", dtype=object)


class TestByHand:
    def test_exact_match_and_shared_tokens(self):
        """`river Rhine Basel` shares one of its three tokens with `the Rhine`, which has one: 2 · 1 / 4."""
        outputs = read([["the Rhine"]] * 3, ["Rhine!", "river Rhine Basel", "Aare"])
        assert values("exact_match", outputs) == [1, 0, 0]
        assert values("answer_f1", outputs) == [1, 0.5, 0]

    def test_the_best_of_several_golds_counts(self):
        """For each metric by itself."""
        outputs = read([["Basel", "Rhine", "Rhine at Basel"]], ["Rhine in Basel"])
        assert values("exact_match", outputs) == [0]
        assert values("answer_f1", outputs) == [pytest.approx(4 / 6)]

    @pytest.mark.parametrize("name", ["exact_match", "answer_f1"])
    def test_without_gold_only_an_abstention_is_right(self, name):
        """And where there is gold, an abstention is wrong."""
        assert values(name, read([[], [], [], ["Rhine"], ["Rhine"]], [None, " ", "Rhine", None, ""])) == [1, 1, 0, 0, 0]


class TestNothingLeft:
    """Golds and answers of articles and punctuation alone."""

    def test_an_article_is_not_another(self):
        outputs = read([["an"], ["an"], ["..."], []], ["An ", "the", "...", "the"])
        assert values("exact_match", outputs) == [1, 0, 1, 0]
        assert values("answer_f1", outputs) == [1, 0, 1, 0]

    def test_officially_they_are_all_no_answer(self):
        """And such a gold goes where there is another."""
        outputs = read(
            [["an"], ["an"], ["the"], [], ["the", "Rhine"]], ["an", "the", "Rhine", "the", "the"], rule=OFFICIAL
        )
        assert values("exact_match", outputs) == [1, 1, 0, 1, 0]
        assert values("answer_f1", outputs) == [1, 1, 0, 1, 0]
        assert outputs.abstained.tolist() == [True, True, False, True, True]

    @pytest.mark.parametrize("rule", [TextRule(), OFFICIAL])
    def test_such_golds_are_counted(self, rule):
        status = np.array(["ok", "ok", "ok", "missing"], dtype=object)
        gold = [["the", "Rhine"], ["...", "a"], [], ["the"]]
        table = answer_table(read(gold, ["Rhine", None, None, None], status, rule=rule))
        assert (table.n_golds, table.n_empty_golds, table.rule) == (4, 3, rule)

    def test_a_gold_without_text_is_refused(self):
        """No gold is an empty list, not an empty text."""
        with pytest.raises(Misconfigured, match=r"'case-1'.*without text"):
            read([["Rhine"], [" "]], ["Rhine", None])


class TestReferee:
    def test_public_answers(self, shared_data):
        """1,190 questions, each to its printed digits, and both means; so too where "an" is not "the"."""
        folder = shared_data("xquad_en")
        data = json.loads((folder / "xquad.en.json").read_text())["data"]
        given = json.loads((folder / "qa_xquad_en_predictions.json").read_text())
        expected = json.loads((folder / "qa_xquad_en_expected.json").read_text())
        questions = [q for article in data for paragraph in article["paragraphs"] for q in paragraph["qas"]]
        gold = [[each["text"] for each in question["answers"]] for question in questions]
        figures = np.array([expected["per_question"][question["id"]] for question in questions])
        for rule in (TextRule(), OFFICIAL):
            outputs = read(gold, [given[question["id"]] for question in questions], rule=rule)
            exact, f1 = (contribution(parse(name), outputs) for name in ("exact_match", "answer_f1"))
            assert exact.values.tolist() == figures[:, 0].tolist()
            np.testing.assert_allclose(f1.values, figures[:, 1], rtol=0, atol=0.5e-6 + 1e-12)
            assert 100 * statistic(exact).value() == pytest.approx(expected["exact"], abs=1e-9)
            assert 100 * statistic(f1).value() == pytest.approx(expected["f1"], abs=1e-9)
            assert exact.scored.sum() == expected["total"] == 1190

    @settings(max_examples=150, deadline=None)
    @given(gold=st.lists(TEXTS.filter(str.strip), max_size=3), answer=TEXTS)
    def test_torchmetrics_number(self, gold, answer):
        """It leaves nothing out: no gold is one of no text there, and golds of articles alone are not given to it."""
        squad = pytest.importorskip("torchmetrics.functional.text").squad
        outputs = read([gold], [answer], rule=OFFICIAL)
        kept = [text for text in gold if set(text.lower().split()) - {"the", "an", "a", "..."}]
        theirs = squad(
            [{"id": "0", "prediction_text": answer}],
            [{"id": "0", "answers": {"text": kept or [""], "answer_start": [0]}}],
        )
        assert 100 * values("exact_match", outputs)[0] == pytest.approx(theirs["exact_match"].item(), abs=1e-4)
        assert 100 * values("answer_f1", outputs)[0] == pytest.approx(theirs["f1"].item(), abs=1e-4)


class TestParts:
    def test_the_other_questions_are_not_applicable(self):
        outputs = read([["Rhine"], [], None], ["Rhine", "Rhine", "Rhine"])
        whole, with_answer, without = (
            contribution(parse(name), outputs)
            for name in ("answer_f1", "answer_f1[answerable]", "answer_f1[unanswerable]")
        )
        none = Status.NOT_APPLICABLE
        assert list(whole.status) == [Status.SCORED, Status.SCORED, none]
        assert list(with_answer.status) == [Status.SCORED, none, none]
        assert list(without.status) == [none, Status.SCORED, none]
        assert [statistic(each).value() for each in (whole, with_answer, without)] == [0.5, 1, 0]

    def test_a_missing_output_is_missing_in_its_own_part_alone(self):
        status = np.array([OutputStatus.MISSING, OutputStatus.OK], dtype=object)
        outputs = read([["Rhine"], []], [None, None], status)
        assert list(contribution(parse("exact_match[answerable]"), outputs).status) == [
            Status.MISSING,
            Status.NOT_APPLICABLE,
        ]


class TestStatuses:
    def test_why_a_case_has_no_value(self):
        """A missing output is no abstention, though it has no text."""
        status = np.array(["ok", "missing", "failed", "ok", "ok"], dtype=object)
        outputs = read([[], [], [], None, ["Rhine"]], [None] * 5, status, score=[0, 0, 0, 0, np.inf])
        assert list(outputs.status) == ["scored", "missing", "failed", "not-applicable", "failed"]
        assert outputs.abstained.tolist() == [True, False, False, False, False]

    def test_scores_that_are_not_given_change_nothing(self):
        """A difference beyond all floats is an infinite one."""
        assert list(read([["Rhine"]], ["Rhine"], score=[np.nan]).status) == [Status.SCORED]
        assert list(read([["Rhine"]], ["Rhine"], score=[-1e308], null_score=[1e308]).status) == [Status.FAILED]


class TestUnderAThreshold:
    def test_answers_above_it_become_abstentions(self):
        """At the threshold an answer stands."""
        outputs = with_difference([["Rhine"], ["Rhine"], [], []], ["Rhine"] * 4, [1, 1.5, 1, 1.5])
        assert values("best_exact_match", outputs, 1.0) == [1, 0, 0, 1]
        assert values("best_answer_f1[answerable]", outputs, 1.5)[:2] == [1, 1]
        assert values("exact_match", outputs) == [1, 1, 0, 0]

    def test_an_abstention_stays_one(self):
        """Whatever the scores say, and without them."""
        outputs = read([[], ["Rhine"]], [None, None], score=[5, np.nan], null_score=[-5, np.nan])
        assert values("best_answer_f1", outputs, 0.0) == [1, 0]

    def test_an_answer_that_lacks_a_score_is_undefined(self):
        outputs = read([["Rhine"]] * 2, ["Rhine"] * 2, score=[0, 0], null_score=[np.nan, 0])
        assert list(contribution(parse("best_answer_f1"), outputs, 0.0).status) == [Status.UNDEFINED, Status.SCORED]

    @pytest.mark.parametrize("threshold", [None, np.nan, np.inf])
    def test_a_metric_that_needs_one_says_so(self, threshold):
        with pytest.raises(Misconfigured, match="no threshold"):
            contribution(parse("best_exact_match"), with_difference([[]], ["Rhine"], [0]), threshold)


class TestNullThreshold:
    def test_by_hand(self):
        """Right at -2 and 1, wrong without gold at 0 and 3: kept up to 1 it is two of three and the last abstention."""
        outputs = with_difference([["Rhine"], [], ["Rhine"], []], ["Rhine"] * 4, [-2, 0, 1, 3])
        found = fit_null_threshold(outputs, calibration(4), "exact_match")
        assert (found.value, found.reached, found.n, found.aim) == (-1, 0.75, 4, "exact_match")

    def test_it_is_fitted_on_the_calibration_role_alone(self):
        """What the promotion cases say doesn't move it, though they would be better off with another."""
        roles = np.array(["calibration", "calibration", "promotion", "promotion"], dtype=object)
        gold, answers = [["Rhine"], [], [], ["Rhine"]], ["Rhine"] * 4
        outputs = with_difference(gold, answers, [0, 2, 0, 2])
        found = fit_null_threshold(outputs, roles)
        assert (found.value, found.reached, found.n) == (1, 1, 2)
        assert values("best_exact_match", outputs, found.value) == [1, 1, 0, 0]
        assert fit_null_threshold(with_difference(gold, answers, [0, 2, 0.9, 0.8]), roles) == found

    def test_each_aim_has_its_own(self):
        """At 1 the answer is worth .8 of an F1 but no exact match, and without gold at 0 it costs one."""
        gold, answers = [["Rhine at Basel"], ["Rhine"], []], ["Rhine Basel", "Rhine", "Rhine"]
        outputs = with_difference(gold, answers, [2, 1, 3])
        assert fit_null_threshold(outputs, calibration(3), "answer_f1").value == 2.5
        assert fit_null_threshold(outputs, calibration(3), "exact_match").value == 1.5

    def test_of_equally_good_ones_the_lowest(self):
        """To lose a right answer or to give a wrong one comes to the same."""
        outputs = with_difference([["Rhine"], [], ["Rhine"]], ["Rhine"] * 3, [0, 1, 2])
        assert fit_null_threshold(outputs, calibration(3)).value == 0.5

    def test_equally_good_is_meant_but_for_rounding(self):
        """Kept up to 4 or up to 6 comes to 3 + 2/5 - 1 + 2/7 + 1/3 + 2/5 of eight, but not in floats."""
        outputs = with_difference(golds_of(4, 0, 6, 5, 4, 0, 1, 0), ["Rhine"] * 8, range(8))
        means = [np.mean(values("best_answer_f1", outputs, kept)) for kept in (4, 6)]
        found = fit_null_threshold(outputs, calibration(8))
        assert found.value == 4.5
        assert found.reached == pytest.approx(means[0], abs=1e-12) == pytest.approx(means[1], abs=1e-12)

    def test_order_of_cases_never_changes_a_bit(self):
        """1 + 1 + 1/3 is another float than 1/3 + 1 + 1."""
        assert 1 + 1 + 1 / 3 != 1 / 3 + 1 + 1
        fits = [
            fit_null_threshold(with_difference(golds_of(*order), ["Rhine"] * 3, [0, 0, 0]), calibration(3))
            for order in permutations([1, 1, 5])
        ]
        assert len(set(fits)) == 1

    def test_what_it_reached_is_the_metric_of_its_cases(self):
        """Also where an answer is officially none, and right."""
        outputs = with_difference([["the"], ["Rhine"], []], ["a", "Rhine", "Rhine"], [9, 0, 9], rule=OFFICIAL)
        assert fit_null_threshold(outputs, calibration(3)).reached == 1
        assert values("best_answer_f1", outputs, 4.5) == [1, 1, 1]

    def test_all_or_none_may_be_best(self):
        right = with_difference([["Rhine"]] * 2, ["Rhine"] * 2, [1, 2])
        wrong = with_difference([[], []], ["Rhine"] * 2, [1, 2])
        assert fit_null_threshold(right, calibration(2)).value == 2
        below = fit_null_threshold(wrong, calibration(2)).value
        assert below == np.nextafter(1, 0)

    def test_what_is_abstained_from_counts_but_gives_no_threshold(self):
        """The difference 1 of an abstention doesn't part 0 and 4."""
        outputs = with_difference([["Rhine"], [], []], ["Rhine", "Rhine", None], [0, 4, 1])
        found = fit_null_threshold(outputs, calibration(3))
        assert (found.value, found.reached, found.n) == (2, 1, 3)

    def test_an_answer_that_lacks_a_score_is_left_out(self):
        outputs = read([["Rhine"], []], ["Rhine", "Rhine"], score=[0, 0], null_score=[1, np.nan])
        assert fit_null_threshold(outputs, calibration(2)).n == 1

    @pytest.mark.parametrize(
        ("roles", "difference", "answer"),
        [("promotion", 0, "Rhine"), ("calibration", np.nan, "Rhine"), ("calibration", 0, None)],
    )
    def test_nothing_to_fit_it_on(self, roles, difference, answer):
        with pytest.raises(Misconfigured, match="null threshold"):
            fit_null_threshold(with_difference([["Rhine"]], [answer], [difference]), np.array([roles], dtype=object))

    @pytest.mark.parametrize("aim", ["exact_match", "answer_f1"])
    @settings(max_examples=60, deadline=None)
    @given(
        cases=st.lists(
            st.tuples(
                st.sampled_from([(), ("Rhine",), ("Rhine at Basel",)]),
                st.sampled_from(["Rhine", "Basel", None]),
                st.sampled_from([-1.0, 0.1, np.nextafter(0.1, 1), 0.3, 2.0]),
            ),
            min_size=1,
        ),
        seed=st.integers(0, 1000),
    )
    def test_no_other_threshold_reaches_more(self, aim, cases, seed):
        """It splits no tied group, is the lowest of its worth, and doesn't hang on the order of cases."""
        cases = [(("Rhine",), "Rhine", 0.1), *cases]
        gold, answers, difference = zip(*cases, strict=True)
        outputs = with_difference(gold, answers, difference)
        found = fit_null_threshold(outputs, calibration(len(cases)), aim)

        def reach(threshold):
            return np.mean(values(f"best_{aim}", outputs, threshold))

        def kept(threshold):
            return sum(a is not None and d <= threshold for a, d in zip(answers, difference, strict=True))

        candidates = [-9.0, *sorted(set(difference))]
        highest = max(reach(each) for each in candidates)
        assert reach(found.value) == pytest.approx(highest)
        assert found.reached == pytest.approx(highest)
        assert kept(found.value) == min(kept(each) for each in candidates if reach(each) == pytest.approx(highest))
        order = np.random.default_rng(seed).permutation(len(cases))
        moved = with_difference(*zip(*(cases[i] for i in order), strict=True))
        assert fit_null_threshold(moved, calibration(len(cases)), aim) == found


class TestTable:
    GOLD = (["Rhine"], ["Rhine at Basel"], ["Rhine"], [], [], None)
    ANSWERS = ("Rhine", "Basel", None, None, "Rhine", "Rhine")

    def test_both_kinds_apart(self):
        """Basel shares one token with `Rhine at Basel`: 2 · 1 / 4, so (1 + .5 + 0) / 3."""
        table = answer_table(read(self.GOLD, self.ANSWERS))
        assert table.answerable == AnswerPart(3, 1, pytest.approx(1 / 3), pytest.approx(0.5))
        assert table.unanswerable == AnswerPart(2, 1, 0.5, 0.5)
        assert table.answerable.abstained == pytest.approx(1 / 3)
        assert table.null_threshold is None

    def test_under_a_threshold(self):
        """Basel and the last question's Rhine become abstentions."""
        outputs = with_difference(self.GOLD, self.ANSWERS, [0, 2, 0, 0, 2, 2])
        table = answer_table(outputs, 1.0)
        assert table.answerable == AnswerPart(3, 2, pytest.approx(1 / 3), pytest.approx(1 / 3))
        assert table.unanswerable == AnswerPart(2, 2, 1, 1)
        assert (table.null_threshold, table.n_undecided) == (1.0, 0)

    def test_an_answer_that_lacks_a_score_is_in_neither_part(self):
        outputs = with_difference(self.GOLD, self.ANSWERS, [np.nan, 0, np.nan, np.nan, 0, np.nan])
        table = answer_table(outputs, 1.0)
        assert (table.answerable.n, table.unanswerable.n, table.n_undecided) == (2, 2, 1)
        assert answer_table(outputs).answerable.n == 3

    def test_none_of_a_kind_is_no_number(self):
        part = answer_table(read([["Rhine"]], ["Rhine"])).unanswerable
        assert (part.n, part.n_abstained) == (0, 0)
        assert np.isnan([part.exact_match, part.answer_f1, part.abstained]).all()

    def test_order_of_cases_never_changes_a_bit(self):
        answers, difference = ["Rhine"] * 3, [0, 0, 0]
        tables = [
            answer_table(with_difference([*golds_of(*order), []], [*answers, None], [*difference, 1]), 1.0)
            for order in permutations([1, 1, 5])
        ]
        assert all(table == tables[0] for table in tables)
