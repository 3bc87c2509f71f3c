"""What a release says of a case in tasks without a corpus, as it said it."""

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """One number [k] a label, in the order of the side's labels, or one a choice, in the order of the data."""

    values: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Number:
    """A predicted number, before any inverse transform, or how much two texts are alike."""

    value: float


@dataclass(frozen=True, slots=True)
class Tags:
    """One tag a token, as many as there are."""

    tags: tuple[str, ...]


class Stretch(NamedTuple):
    """Characters of a text, `end` behind the last one."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Span:
    """An answer; `text` is None where the model abstains. `start` and `end` are characters of the context, `end` behind
    the last one. `score` is the span's, `null_score` that of there being no answer.
    `read`: what of the context each window showed the model; None where the release does not tell.
    """

    text: str | None
    start: int | None = None
    end: int | None = None
    score: float | None = None
    null_score: float | None = None
    read: tuple[Stretch, ...] | None = None


TaskOutput: TypeAlias = Scores | Number | Tags | Span
