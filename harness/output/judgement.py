"""What a person said of a document for a case."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Judgement:
    """How relevant a document is to a case: grades above 0 are relevant."""

    case_id: str
    document_id: str
    grade: int
