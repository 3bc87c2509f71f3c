"""What a run keeps of one side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from harness.output.case import CaseOutput

if TYPE_CHECKING:
    from harness.run.sample import VectorSample
    from harness.run.windowed import WindowedTexts


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a side's outputs were found to hold besides, counted, with an example."""

    kind: str
    count: int
    detail: str


def uncovered_remark(characters: NDArray[np.int64], names: Sequence[str], what: str) -> Iterator[Remark]:
    """One where texts in windows have characters that no window shows. Shapes: characters [n], of the texts `names`."""
    there = np.flatnonzero(characters)
    if len(there):
        count, first = int(characters.sum()), names[int(there[0])]
        yield Remark(
            "uncovered-character", count, f"{count} characters stand in no token, the first in {what} {first!r}"
        )


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document that the model did not see whole, in the model's own tokens."""

    document_id: str
    tokens_kept: int
    tokens_lost: int


@dataclass(frozen=True, slots=True)
class Executed:
    """Everything that is kept of one side. `remarks`: what was met besides, counted. `labels`: what the columns of
    class scores are called, in their order, and `named` what the data call those that they name otherwise. `sample`: of
    a release with one vector a text that searched the corpus, or compared two texts, some of its vectors, which are not
    kept. `windowed`: texts that were read in several windows.
    """

    outputs: tuple[CaseOutput, ...]
    remarks: tuple[Remark, ...]
    cut_documents: tuple[CutDocument, ...] = ()
    labels: tuple[str, ...] = ()
    named: Mapping[str, str] = field(default_factory=dict)
    sample: "VectorSample | None" = None
    windowed: "tuple[WindowedTexts, ...]" = ()
