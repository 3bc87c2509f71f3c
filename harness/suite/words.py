"""A text as its words: what two texts have in common once their spelling is left aside."""

import re
import unicodedata

# Characters that are words by themselves, for nothing stands between the words of these scripts.
_ALONE = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
# Characters that nothing is drawn for: Unicode's Default_Ignorable_Code_Point, where that is not the category Cf.
_INVISIBLE = (
    (0x034F, 0x034F), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0xFE00, 0xFE0F), (0xFFF0, 0xFFF8),
    (0xE0000, 0xE0FFF),
)  # fmt: skip
# Symbols that mark a text up as punctuation does, and letters and patterns that are drawn as blanks.
_MARKS = "`^~|<>=\u115f\u1160\u2800\u3164\uffa0"
_APOSTROPHES = re.compile(r"(?<=\w)['’ʼ＇](?=\w)")


def words(text: str) -> tuple[str, ...]:
    """The words of a text after NFKC and case folding, without punctuation, invisible characters and blanks.

    Marks as those of code and of markup are punctuation; other symbols count. An apostrophe within a word goes, other
    punctuation parts words, so that 1.5 is not 15. A character of a script without blanks between words is a word.
    """
    if text.isascii():
        folded = text.lower()
    else:
        # First of all, for an accent or an apostrophe counts by what stands beside it.
        seen = text.translate(_SEEN)
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", seen).casefold())
    return tuple(_APOSTROPHES.sub("", folded).translate(_TABLE).split())


class _Table(dict[int, str | None]):
    """What becomes of a character, looked up once each."""

    def __missing__(self, code: int) -> str | None:
        self[code] = found = _kept(chr(code), code)
        return found


_TABLE = _Table()


class _Seen(dict[int, str | None]):
    """A character itself, or nothing of one that is invisible, looked up once each."""

    def __missing__(self, code: int) -> str | None:
        self[code] = found = None if _invisible(chr(code), code) else chr(code)
        return found


_SEEN = _Seen()


def _invisible(character: str, code: int) -> bool:
    return unicodedata.category(character) == "Cf" or any(low <= code <= high for low, high in _INVISIBLE)


def _kept(character: str, code: int) -> str | None:
    if _invisible(character, code):
        return None
    category = unicodedata.category(character)
    if category[0] in "PZC" or character in _MARKS:
        return " "
    if category[0] in "LN" and any(low <= code <= high for low, high in _ALONE):
        return f" {character} "
    return character
