"""IDs that are easily taken for one another."""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from harness.file.lines import shown


@dataclass(frozen=True, slots=True)
class NearEqual:
    """IDs that are equal to another one only after NFC, case folding and stripping; `example` names two."""

    count: int
    example: tuple[str, str] | None


def near_equal(identifiers: Iterable[str]) -> NearEqual:
    """How many of these distinct IDs share their normal form with another."""
    ids = list(identifiers)
    forms = [_normal(each) for each in ids]
    if len(set(forms)) == len(forms):
        return NearEqual(0, None)
    counts = Counter(forms)
    alike = [each for each, form in zip(ids, forms, strict=True) if counts[form] > 1]
    first = _normal(alike[0])
    return NearEqual(len(alike), (alike[0], next(each for each in alike[1:] if _normal(each) == first)))


def near_equal_warnings(found: NearEqual, what: str) -> list[str]:
    """The sentence about near-equal ones, if there are any; `what` they are."""
    if found.example is None:
        return []
    one, other = found.example
    return [f"{found.count} {what} differ only in case, blanks or Unicode form, as {shown(one)} and {shown(other)}"]


def _normal(identifier: str) -> str:
    if identifier.isascii():
        return identifier.strip().lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", identifier).casefold()).strip()
