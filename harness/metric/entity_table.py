"""What stands beside the metrics of entities: by type, what went wrong and where, illegal places, entities cut off."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from harness.errors import Misconfigured
from harness.metric.entity import credit_rows, exact, type_rows
from harness.metric.form import Policy, scored
from harness.metric.label import ClassTable, class_scores, class_table
from harness.metric.span import Illegal, Span, aligned, overlapping, overlapping_alike, same_boundary
from harness.metric.tagged import Tagged

ErrorKind: TypeAlias = Literal["wrong-type", "wrong-boundary", "both", "spurious", "missed"]
KINDS: tuple[ErrorKind, ...] = ("wrong-type", "wrong-boundary", "both", "spurious", "missed")


def type_table(outputs: Tagged, policy: Policy | None = None) -> ClassTable:
    """Every type with its support, also 0: that of a type that the model alone has."""
    right, predicted, gold = np.split(type_rows(outputs).sum(axis=0).astype(np.int64), 3)
    return class_table(outputs.types, right, predicted, gold, policy or Policy())


@dataclass(frozen=True, slots=True)
class EntityError:
    """One entity that is not right. `gold` is None where it is spurious, `predicted` where it is missed.

    `cut_off`: the gold span reaches behind the output's end.
    """

    case_id: str
    kind: ErrorKind
    gold: Span | None
    predicted: Span | None
    cut_off: bool


@dataclass(frozen=True, slots=True)
class EntityErrors:
    """How the entities of the scored cases fare: `right`, and each that isn't, by case, kind and place.

    A wrong type has the right boundaries, a wrong boundary overlaps and has the right type, `both` overlaps alone.
    """

    right: int
    errors: tuple[EntityError, ...]

    def count(self, kind: ErrorKind) -> int:
        return sum(error.kind == kind for error in self.errors)


def entity_errors(outputs: Tagged) -> EntityErrors:
    """Every gold and predicted span in one place: right, or one of five errors, the mildest that fits first."""
    right, errors = 0, list[EntityError]()
    for i in np.flatnonzero(scored(outputs.status)):
        found = aligned(outputs.gold[i], outputs.predicted[i], same_boundary, overlapping_alike, overlapping)
        right += len(found.right)
        wrong: list[tuple[ErrorKind, Span | None, Span | None]] = [
            (kind, pair.gold, pair.predicted)
            for kind, pairs in zip(KINDS[:3], found.stages, strict=True)
            for pair in pairs
        ]
        wrong += [("spurious", None, span) for span in found.spurious]
        wrong += [("missed", span, None) for span in found.missed]
        case_id, end = str(outputs.case_ids[i]), int(outputs.read_to[i])
        errors += [EntityError(case_id, kind, gold, span, _behind(gold, end)) for kind, gold, span in wrong]
    return EntityErrors(right, tuple(errors))


@dataclass(frozen=True, slots=True)
class CutOff:
    """A gold entity that reaches behind `read_to`, where its case's output stops, before the source's `length`."""

    case_id: str
    gold: Span
    read_to: int
    length: int


@dataclass(frozen=True, slots=True)
class CutOffs:
    """Gold entities lost to truncation, of `n_gold` in the scored cases; `n_short` outputs end before their source."""

    rows: tuple[CutOff, ...]
    n_gold: int
    n_short: int


def cut_offs(outputs: Tagged) -> CutOffs:
    """Every gold entity that reaches behind its case's output: a miss, because nothing was read there."""
    rows, n_gold = list[CutOff](), 0
    for i in np.flatnonzero(scored(outputs.status)):
        end, n_gold = int(outputs.read_to[i]), n_gold + len(outputs.gold[i])
        rows += [
            CutOff(str(outputs.case_ids[i]), span, end, int(outputs.lengths[i]))
            for span in outputs.gold[i]
            if _behind(span, end)
        ]
    return CutOffs(tuple(rows), n_gold, int(outputs.short.sum()))


def _behind(span: Span | None, end: int) -> bool:
    return span is not None and span.end > end


@dataclass(frozen=True, slots=True)
class IllegalRow:
    """One place where a side breaks the scheme."""

    case_id: str
    side: Literal["gold", "output"]
    place: Illegal


@dataclass(frozen=True, slots=True)
class IllegalTable:
    """Illegal places by case, the data's (read as conlleval does) before the output's; outputs of scored cases."""

    rows: tuple[IllegalRow, ...]
    n_gold: int
    n_output: int
    n_cases: int


def illegal_table(outputs: Tagged) -> IllegalTable:
    """Where tags break their scheme, or spans are none. `n_cases` outputs have such a place."""
    rows = list[IllegalRow]()
    for case_id, held, found in zip(outputs.case_ids, outputs.gold_illegal, outputs.illegal, strict=True):
        rows += [IllegalRow(str(case_id), "gold", place) for place in held]
        rows += [IllegalRow(str(case_id), "output", place) for place in found]
    n_gold = sum(len(each) for each in outputs.gold_illegal)
    return IllegalTable(tuple(rows), n_gold, len(rows) - n_gold, sum(bool(each) for each in outputs.illegal))


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """Micro figures under one reading of the tags; NaN where nothing is gold and nothing predicted."""

    right: int
    predicted: int
    gold: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class Readings:
    """The same tags under both readings."""

    strict: ReadingRow
    conlleval: ReadingRow


def readings(strict: Tagged, conlleval: Tagged) -> Readings:
    """The figures of both readings beside one another. Raises Misconfigured where the cases differ."""
    if strict.case_ids.tolist() != conlleval.case_ids.tolist() or (strict.status != conlleval.status).any():
        raise Misconfigured(
            "readings of tags",
            found="two readings that don't have the same cases",
            expected="the same outputs, read strictly and as conlleval does",
            mend="Read the same tags twice with `tagged`.",
        )
    return Readings(_reading(strict), _reading(conlleval))


def _reading(outputs: Tagged) -> ReadingRow:
    right, predicted, gold = credit_rows(outputs, exact).sum(axis=0)
    scores = (class_scores(metric, right, predicted, gold, Policy()) for metric in ("precision", "recall", "f1"))
    return ReadingRow(int(right), int(predicted), int(gold), *(float(score) for score in scores))
