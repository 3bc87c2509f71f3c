"""A suite in memory: its cases, documents and judgements."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from harness.identity import canonical_json
from harness.output.judgement import Judgement
from harness.suite.definition import Role, SuiteDefinition

Attribute: TypeAlias = str | int | float | bool
Inputs: TypeAlias = Mapping[str, str | tuple[str, ...]]
"""What a model reads of a case, by name: text; text_a, text_b; question, context; question, choices; tokens."""


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A right answer; `start` is its first character in the context, None where the data don't say."""

    text: str
    start: int | None = None


@dataclass(frozen=True, slots=True)
class Gold:
    """What holds of a case: the one that its task asks for, all None where the data say that nobody knows.

    `tags` one a token; `answers` empty where the question has none; `choice` counts from 0.
    """

    label: str | None = None
    labels: tuple[str, ...] | None = None
    value: float | None = None
    tags: tuple[str, ...] | None = None
    answers: tuple[GoldAnswer, ...] | None = None
    choice: int | None = None


@dataclass(frozen=True, slots=True)
class Case:
    """One query, example, pair or question. `attributes` are its further keys, each of one type throughout the suite;
    absent where null.

    Cases of one `group` depend on one another. `answerable` is False where no document is meant to be relevant, or a
    question has no answer. `inputs` and `gold` are those of tasks without a corpus.
    """

    id: str
    text: str
    role: Role
    group: str
    answerable: bool
    attributes: Mapping[str, Attribute]
    inputs: Inputs = field(default_factory=dict)
    gold: Gold | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """One document of the corpus; an empty text keeps its ID."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """A document that is to be ranked for a case, with the first stage's score where it is known."""

    document_id: str
    score: float | None


@dataclass(frozen=True, slots=True)
class Counts:
    """What was left out by the suite's own policy, and what deserves a look."""

    dangling_dropped: int
    unjudged_dropped: int
    candidates_dropped: int
    empty_documents: int
    near_equal_ids: int
    shared_ids: int


@dataclass(frozen=True, slots=True)
class Suite:
    """A loaded suite. Cases, documents and judgements stand in the order of their files.

    `files` are the SHA-256 digests of every data file by its path from `folder`, with forward slashes. `candidates` by
    case, each case's in the order of their file; None where the whole corpus is searched. `labels`: every label that
    the data may give, in their order; None where the task has none. `revision`: of the data, where their format pins
    one. `places`: file and line of each case, as far as they are known.
    """

    definition: SuiteDefinition
    folder: Path
    cases: tuple[Case, ...]
    documents: tuple[Document, ...]
    judgements: tuple[Judgement, ...]
    files: Mapping[str, str]
    counts: Counts
    warnings: tuple[str, ...]
    candidates: Mapping[str, tuple[Candidate, ...]] | None = None
    labels: tuple[str, ...] | None = None
    revision: str | None = None
    places: Mapping[str, str] = field(default_factory=dict)


def as_text(value: Attribute) -> str:
    """An attribute that is text as it is, any other as canonical JSON."""
    return value if isinstance(value, str) else canonical_json(value).decode()
