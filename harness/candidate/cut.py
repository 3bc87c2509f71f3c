"""How two texts that are too long together are cut: of their tokens, once they are there.

The library would tokenise them a second time, and make of all that it cuts away every pair of overflowing parts: two
texts of a million characters need more memory than a machine has.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Kept(NamedTuple):
    """Tokens that are left of each of two texts."""

    first: int
    second: int


def longest_first(first: int, second: int, room: int) -> Kept:
    """What is left of two texts of so many tokens where there is room for `room` in all.

    The longer one is cut until it is as long as the other, then both are: of an odd number the longer has one more, of
    two alike the second. Source: tokenizers 0.22, src/utils/truncation.rs, LongestFirst.
    """
    if first + second <= room:
        return Kept(first, second)
    shorter, longer = min(first, second), max(first, second)
    longer = max(shorter, room - shorter)
    if shorter + longer > room:
        shorter, longer = room // 2, room - room // 2
    return Kept(longer, shorter) if first > second else Kept(shorter, longer)


def cut_pair(
    features: Mapping[str, Sequence[int]], texts: Sequence[int | None], kept: Kept, truncation_side: str
) -> dict[str, list[int]]:
    """Features of a pair with so many tokens of each text, and all special ones.

    `texts`: by token, which text it is of, None of a special one. `truncation_side`: where a text loses its tokens.
    """
    places: list[list[int]] = [[], []]
    for position, text in enumerate(texts):
        if text is not None:
            places[text].append(position)
    lost = [
        own[count:] if truncation_side == "right" else own[: len(own) - count]
        for own, count in zip(places, kept, strict=True)
    ]
    gone = set(lost[0] + lost[1])
    left = [position for position in range(len(texts)) if position not in gone]
    return {name: [values[position] for position in left] for name, values in features.items()}
