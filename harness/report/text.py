"""Text that others wrote, made safe to stand in a report: no control characters, not too long."""

import re
import unicodedata

LONGEST = 300
LONGEST_NAME = 100
LONGEST_REASON = 1200
REPLACEMENT = "\ufffd"

# Control characters, surrogates, noncharacters, and the marks that turn the direction of what follows them.
_UNFIT = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufff9-\ufffb"
    + "".join(chr(plane + end) for plane in range(0, 0x110000, 0x10000) for end in (0xFFFE, 0xFFFF))
    + "]"
)
# What begins another line somewhere, or moves to another column; a backslash stays as it is.
_BREAK = re.compile("[\t\n\v\f\r\x85\u2028\u2029]")
ESCAPES = {
    "\t": r"\t", "\n": r"\n", "\v": r"\v", "\f": r"\f", "\r": r"\r", "\x85": r"\x85", "\u2028": r"\u2028",
    "\u2029": r"\u2029",
}  # fmt: skip
_SPACE = re.compile(r"[\s\x85]+")
_BLANKS = re.compile(r"^ +| +$| {2,}")


def clean(text: str) -> str:
    """One line: white space as single blanks, every character that may not be shown as U+FFFD."""
    return _SPACE.sub(" ", visible(text)).strip()


def visible(text: str) -> str:
    """Every character that may not be shown as U+FFFD, white space as it is."""
    return _UNFIT.sub(REPLACEMENT, text)


def in_one_line(text: str) -> str:
    """As `visible`, with line ends and tabs written as in code, so that a row stays a line and a cell a cell."""
    return visible(_BREAK.sub(lambda found: ESCAPES[found.group()], text))


def exact(value: str) -> str:
    """A setting whose white space means something: blanks at its ends or in a row, and line ends, are drawn."""
    shown = _BLANKS.sub(lambda found: "␣" * len(found.group()), value)
    return clipped(shown.replace("\t", "⇥").replace("\r", "").replace("\n", "⏎")) or '""'


def clipped(text: str, longest: int = LONGEST) -> str:
    """Cleaned, and cut with an ellipsis to at most `longest` characters, never before a combining mark."""
    text = clean(text)
    if len(text) <= longest:
        return text
    end = longest - 1
    while end > longest // 2 and unicodedata.combining(text[end]):
        end -= 1
    return text[:end].rstrip() + "…"


def short(digest: str) -> str:
    """The first twelve characters of a digest, which name it among a project's own."""
    return clean(digest)[:12]
