"""Tags of short texts: those that a scheme writes of entities, and any others."""

from hypothesis import strategies as st

from harness.metric.span import Span
from harness.metric.tagging import SCHEMES

TYPES = ("PER", "creative-work")


def tag_lists(scheme):
    tags = [f"{prefix}-{kind}" for prefix in SCHEMES[scheme].prefixes for kind in TYPES]
    return st.lists(st.sampled_from(["O", *tags]), max_size=9)


@st.composite
def texts(draw):
    """Entities that don't overlap, and the length of their text."""
    found, place = [], 0
    for gap, length, kind in draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from(TYPES)), max_size=5)
    ):
        found.append(Span(place + gap, place + gap + length, kind))
        place += gap + length
    return found, place + draw(st.integers(0, 2))


def written(found, length, scheme):
    """The tags of entities, by the words of each scheme's definition."""
    tags = ["O"] * length
    for i, span in enumerate(found):
        size = span.end - span.start
        touches_before = any(other.end == span.start and other.type == span.type for other in found[:i])
        touches_after = any(other.start == span.end and other.type == span.type for other in found[i + 1 :])
        first, last, single = {
            "IOB1": ("B" if touches_before else "I", "I", "B" if touches_before else "I"),
            "IOB2": ("B", "I", "B"),
            "IOE1": ("I", "E" if touches_after else "I", "E" if touches_after else "I"),
            "IOE2": ("I", "E", "E"),
            "IOBES": ("B", "E", "S"),
            "BILOU": ("B", "L", "U"),
        }[scheme]
        prefixes = [single] if size == 1 else [first, *["I"] * (size - 2), last]
        tags[span.start : span.end] = [f"{prefix}-{span.type}" for prefix in prefixes]
    return tags
