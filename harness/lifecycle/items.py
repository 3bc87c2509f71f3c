"""Single items of an invalid namespace that still hold, because the model reads the same for them as before."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.lifecycle.compatibility import Moved
from harness.release.field import Kind


@dataclass(frozen=True, slots=True)
class Items:
    """How many of a namespace's items the model reads otherwise than before.

    `tokens`: how many it reads for those; None where that is not known. `told_by` is what tells it: the very `inputs`
    of both releases, or where the texts were `cut`, which tells nothing about any change but of the maximum length.
    """

    of: int
    changed: int
    tokens: int | None
    told_by: Literal["inputs", "cut"]

    def hold_under(self, moved: Sequence[Moved]) -> bool:
        """Whether this tells anything under those changes: all later fields must agree."""
        if not moved or any(each.kind is not Kind.SOURCE for each in moved):
            return False
        return self.told_by == "inputs" or all(each.field.name == "input.max_length" for each in moved)


def items_by_input(
    parent: Mapping[str, str], candidate: Mapping[str, str], tokens: Mapping[str, int] | None = None
) -> Items:
    """By item ID, the digest of everything the model reads under either release: token IDs, segments, positions, masks.

    `tokens`: by item ID, how many the candidate reads. An item that one of the two lacks counts as changed.
    """
    return _items([name for name in candidate if candidate[name] != parent.get(name)], candidate, tokens, "inputs")


def items_by_cut(
    parent: Mapping[str, int], candidate: Mapping[str, int], tokens: Mapping[str, int] | None = None
) -> Items:
    """By item ID, how many tokens the maximum length took away; where it took as many before, the model reads the same.

    `tokens`: by item ID, how many the candidate reads. An item that one of the two lacks counts as changed.
    """
    return _items([name for name in candidate if candidate[name] != parent.get(name)], candidate, tokens, "cut")


def _items(
    changed: Sequence[str],
    every: Mapping[str, object],
    tokens: Mapping[str, int] | None,
    told_by: Literal["inputs", "cut"],
) -> Items:
    read = None if tokens is None else sum(tokens[name] for name in changed)
    return Items(len(every), len(changed), read, told_by)
