"""Two spellings of one text are one; two texts stay two."""

import pytest

from harness.suite.words import words


class TestWords:
    @pytest.mark.parametrize(
        "other",
        [
            "how do i reset my password",
            "  How do I\treset\nmy password?! ",
            "How do I reset my\u00a0pass\u00adword",
            "Ｈｏｗ do I reset my password",
            "«How» do I — reset my “password”…",
            "How do I re\u200bset my password",
            "How do I re\u034fset my pass\u180eword",
            "\u115fHow do I\u3164reset my\u2800password\uffa0\u3164",
            "<How> do | I ~reset~ my `password` ==",
        ],
    )
    def test_spelling_is_left_aside(self, other: str) -> None:
        """Case, blanks, punctuation, markup, full width, soft hyphens and invisible characters."""
        assert words(other) == ("how", "do", "i", "reset", "my", "password")

    @pytest.mark.parametrize(
        ("plain", "hidden"),
        [
            ("don't", "don\u200b't"),
            ("don't", "don'\u2060t"),
            ("café", "cafe\u200d\u0301"),
            ("가", "\u1100\u034f\u1161"),
        ],
    )
    def test_nor_do_invisible_characters_part_an_accent_or_an_apostrophe_from_its_letter(
        self, plain: str, hidden: str
    ) -> None:
        assert words(hidden) == words(plain)

    def test_unicode_forms_are_one(self) -> None:
        """Composed and decomposed, ligatures, German ß, and apostrophes of either kind."""
        assert words("Café") == words("Cafe\u0301") == ("café",)
        assert words("ﬁnd Straße") == words("FIND STRASSE") == ("find", "strasse")
        assert words("don't") == words("don’t") == ("dont",)

    def test_what_differs_stays_apart(self) -> None:
        """A decimal point is no blank spot, accents and vowel signs are letters, symbols count."""
        assert words("costs 1.5") != words("costs 15")
        assert words("resume") != words("résumé")
        assert words("C++") != words("C")
        assert words("की") != words("कु")

    def test_scripts_without_blanks_are_read_by_character(self) -> None:
        """Else a whole sentence would be one word."""
        assert words("你好吗？") == ("你", "好", "吗")
        assert words("  \u200b…") == ()
