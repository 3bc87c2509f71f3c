"""A text as its words: what two texts have in common once their spelling is left aside."""

import re
import unicodedata

# Characters that are words by themselves, for nothing stands between the words of these scripts.
_ALONE = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF),
)  # fmt: skip
_APOSTROPHES = re.compile(r"(?<=\w)['’ʼ＇](?=\w)")


def words(text: str) -> tuple[str, ...]:
    """The words of a text after NFKC and case folding, without punctuation, invisible characters and blanks.

    An apostrophe within a word goes, other punctuation parts words, so that 1.5 is not 15. A character of a script
    without blanks between words is a word.
    """
    if text.isascii():
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    return tuple(_APOSTROPHES.sub("", folded).translate(_TABLE).split())


class _Table(dict[int, str | None]):
    """What becomes of a character, looked up once each."""

    def __missing__(self, code: int) -> str | None:
        self[code] = found = _kept(chr(code), code)
        return found


_TABLE = _Table()


def _kept(character: str, code: int) -> str | None:
    category = unicodedata.category(character)
    if category == "Cf" or 0xFE00 <= code <= 0xFE0F or 0xE0100 <= code <= 0xE01EF:  # also variation selectors
        return None
    if category[0] in "PZC":
        return " "
    if category[0] in "LN" and any(low <= code <= high for low, high in _ALONE):
        return f" {character} "
    return character
