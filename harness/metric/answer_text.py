"""Answers as tokens: what is left of a text where case, punctuation, articles and whitespace do not count."""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

Tokens: TypeAlias = tuple[str, ...]
Language: TypeAlias = Literal["en", "de", "es", "vi", "ar", "none"]

ARTICLES: Mapping[Language, Tokens] = {
    "en": ("a", "an", "the"),
    "de": ("ein", "eine", "einen", "einem", "eines", "einer", "der", "die", "das", "den", "dem", "des"),
    "es": ("un", "una", "unos", "unas", "el", "la", "los", "las"),
    "vi": ("của", "là", "cái", "chiếc", "những"),
    "ar": ("ال",),
    "none": (),
}
"""Words that do not count. English: SQuAD's evaluation script; the others: MLQA's."""
WITHIN = ("ar",)
"""Languages whose article is no word of its own: MLQA's script takes it out wherever its letters stand."""

ALONE = re.compile(
    r"[\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
)
"""Han characters and kana. MLQA's script, which has no Japanese, sets apart those from U+4E00 to U+9FA5."""


@dataclass(frozen=True, slots=True)
class TextRule:
    """How answers are compared. The defaults are SQuAD's, but for answers of which nothing is left.

    `articles`: the language whose articles do not count. `punctuation`: what doesn't count of it, ASCII's (SQuAD) or
    Unicode's too (MLQA). `cjk`: whether Han characters and kana stand in words, or each alone as in MLQA's Chinese.
    `empty`: an answer of articles and punctuation alone is compared `as-written`, lower-cased and trimmed, so that
    "an" is not "the". `official` is SQuAD 2.0's rule: as a prediction it is no answer, as gold it is left out, and a
    question that has no other gold takes no answer for right.
    """

    articles: Language = "en"
    punctuation: Literal["ascii", "unicode"] = "ascii"
    cjk: Literal["word", "character"] = "word"
    empty: Literal["as-written", "official"] = "as-written"


def normalised(text: str, rule: TextRule) -> Tokens:
    """The tokens of a text that count, lower-cased; none where it is all articles, punctuation and whitespace.

    Unicode is taken as it is written: composed and decomposed letters differ.
    """
    kept = "".join(each for each in text.lower() if not _is_punctuation(each, rule))
    if rule.articles != "none":
        kept = _articles(rule.articles).sub(" ", kept)
    return _split(kept, rule)


def compared(text: str, rule: TextRule) -> Tokens:
    """The tokens by which an answer is compared; none is no answer."""
    found = normalised(text, rule)
    return _split(text.lower(), rule) if not found and rule.empty == "as-written" else found


def overlap(predicted: Tokens, gold: Tokens) -> float:
    """F1 of two bags of tokens: 2 · shared / all. Two without tokens are equal (SQuAD 2.0; 1.1 gives them 0)."""
    if not predicted or not gold:
        return float(predicted == gold)
    shared = sum((Counter(predicted) & Counter(gold)).values())
    return 2 * shared / (len(predicted) + len(gold))


@cache
def _articles(language: Language) -> re.Pattern[str]:
    any_of = "|".join(ARTICLES[language])
    return re.compile(any_of if language in WITHIN else rf"\b(?:{any_of})\b")


def _is_punctuation(character: str, rule: TextRule) -> bool:
    if character in string.punctuation:
        return True
    return rule.punctuation == "unicode" and unicodedata.category(character).startswith("P")


def _split(text: str, rule: TextRule) -> Tokens:
    return tuple((ALONE.sub(r" \g<0> ", text) if rule.cjk == "character" else text).split())
