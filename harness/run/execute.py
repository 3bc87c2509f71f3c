"""One side of a run: its outputs on every case, from a model or from a recording, in suite order."""

from dataclasses import dataclass

from harness.output.case import CaseOutput
from harness.run.ranking import Cut
from harness.run.replay import Remark, replay
from harness.suite.freeze import FrozenSuite


@dataclass(frozen=True, slots=True)
class CutDocument:
    """A document that the model did not see whole, in the model's own tokens."""

    document_id: str
    tokens_kept: int
    tokens_lost: int


@dataclass(frozen=True, slots=True)
class Executed:
    """Everything that is kept of one side. `remarks`: what was met besides, counted."""

    outputs: tuple[CaseOutput, ...]
    remarks: tuple[Remark, ...]
    cut_documents: tuple[CutDocument, ...] = ()
