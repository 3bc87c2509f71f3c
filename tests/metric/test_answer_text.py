"""Answers as tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.metric.answer_text import ARTICLES, TextRule, compared, normalised, overlap

SQUAD = TextRule(empty="official")
MLQA_CHINESE = TextRule(articles="none", punctuation="unicode", cjk="character")


class TestNormalisation:
    @pytest.mark.parametrize(
        ("text", "tokens"),
        [
            ("The Rhine", ("rhine",)),
            ("  a\tRiver,\n the RIVER ", ("river", "river")),
            ("U.S.A.", ("usa",)),
            ("well-known", ("wellknown",)),
            ("theatre", ("theatre",)),
            ("another an", ("another",)),
            ("A.N. Other", ("other",)),
            ("$3.50", ("350",)),
            ("", ()),
        ],
    )
    def test_case_punctuation_articles_and_whitespace_do_not_count(self, text, tokens):
        """Punctuation goes first and leaves no gap, so that A.N. is an article; articles only go as whole words."""
        assert normalised(text, TextRule()) == tokens

    def test_punctuation_beyond_ascii_counts_unless_declared(self):
        """As in SQuAD's script, where it yet ends a word, so that an article beside it goes."""
        assert normalised("“the Rhine”", TextRule()) == ("“", "rhine”")
        assert normalised("Aare–a–Rhine", TextRule()) == ("aare–", "–rhine")
        assert normalised("“the Rhine”", TextRule(punctuation="unicode")) == ("rhine",)
        assert normalised("€5", TextRule(punctuation="unicode")) == ("€5",)

    @pytest.mark.parametrize(
        ("language", "text", "tokens"),
        [
            ("de", "Der Rhein, the Rhine", ("rhein", "the", "rhine")),
            ("es", "El río", ("río",)),
            ("vi", "những con sông", ("con", "sông")),
            ("ar", "الكتاب في بال", ("كتاب", "في", "ب")),
            ("none", "the a an", ("the", "a", "an")),
        ],
    )
    def test_articles_are_those_of_the_declared_language(self, language, text, tokens):
        assert normalised(text, TextRule(articles=language)) == tokens

    @given(text=st.text(alphabet="aAnteh .,-'é“\t", max_size=12), language=st.sampled_from(sorted(ARTICLES)))
    def test_case_and_outer_whitespace_never_matter(self, text, language):
        rule = TextRule(articles=language)
        assert normalised(f" {text.upper()}\n", rule) == normalised(text, rule)


class TestChineseAndJapanese:
    def test_each_character_stands_alone(self):
        """In between, words stay whole, as in MLQA's script."""
        assert normalised("北京2008年Olympic Games。", MLQA_CHINESE) == ("北", "京", "2008", "年", "olympic", "games")
        assert normalised("東京タワーの3階", MLQA_CHINESE) == (*"東京タワーの", "3", "階")

    def test_by_default_they_stand_in_words(self):
        """An answer that is longer by one character then has nothing in common."""
        assert normalised("北京市", TextRule()) == ("北京市",)
        assert overlap(*(normalised(text, TextRule()) for text in ("北京市", "北京"))) == 0
        assert overlap(*(normalised(text, MLQA_CHINESE) for text in ("北京市", "北京"))) == pytest.approx(4 / 5)

    def test_a_character_beyond_the_first_plane_is_one(self):
        assert normalised("𠮷𠮷", MLQA_CHINESE) == ("𠮷", "𠮷")


class TestNothingLeft:
    @pytest.mark.parametrize(("text", "tokens"), [("An", ("an",)), (" ... ", ("...",)), ("The  A", ("the", "a"))])
    def test_it_is_compared_as_written(self, text, tokens):
        """Lower-cased and trimmed, so that one article is not another."""
        assert compared(text, TextRule()) == tokens

    @pytest.mark.parametrize("text", ["An", "...", "the a"])
    def test_officially_it_is_no_answer(self, text):
        assert compared(text, SQUAD) == ()

    @pytest.mark.parametrize("rule", [TextRule(), SQUAD])
    def test_whitespace_is_no_answer(self, rule):
        assert compared(" \n", rule) == ()

    def test_it_equals_no_answer_of_which_something_is_left(self):
        """Of "the Rhine" no "the" is left to be found in "the"."""
        assert overlap(compared("the", TextRule()), compared("the Rhine", TextRule())) == 0


class TestOverlap:
    @pytest.mark.parametrize(
        ("predicted", "gold", "value"),
        [
            ("rhine", "rhine", 1),
            ("big river rhine", "rhine", 2 / 4),
            ("rhine river", "river rhine", 1),
            ("rhine rhine", "rhine", 2 / 3),
            ("rhine rhine basel", "rhine basel basel", 4 / 6),
            ("rhine", "basel", 0),
            ("", "rhine", 0),
            ("rhine", "", 0),
            ("", "", 1),
        ],
    )
    def test_tokens_are_a_bag(self, predicted, gold, value):
        """Their order doesn't count, how often each stands does."""
        assert overlap(tuple(predicted.split()), tuple(gold.split())) == pytest.approx(value)
