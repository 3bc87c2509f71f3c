"""Single items of an invalid namespace that still hold, because the model reads the same for them as before."""

from collections.abc import Sequence
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
