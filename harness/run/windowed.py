"""Texts that a side read in several windows, by the IDs that they go by."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.candidate.window import InWindows
from harness.run.output import Remark

Names: TypeAlias = NDArray[np.object_]
Reads: TypeAlias = Literal["query", "document", "pair", "case"]
PLURALS = {"query": "queries", "document": "documents", "pair": "pairs", "case": "cases"}


@dataclass(frozen=True, slots=True, eq=False)
class WindowedTexts:
    """Queries, documents, pairs of both of which the document is in windows, or cases of a task without a corpus.

    Shapes: case_ids and document_ids [t], None of what has none; readings [t], of a case that is read several times
    which of them, from 1. `member`: who read them, in a release that is composed of others.
    """

    reads: Reads
    laid: InWindows
    case_ids: Names | None = None
    document_ids: Names | None = None
    readings: NDArray[np.int64] | None = None
    member: str | None = None


def windowed(
    reads: Reads, laid: InWindows | None, *, cases: Sequence[str] | None = None, documents: Sequence[str] | None = None,
    readings: NDArray[np.int64] | None = None,
) -> Iterator[WindowedTexts]:  # fmt: skip
    """Nothing where no text has several windows. `cases`, `documents` and `readings` are of all texts, by row."""
    if laid is not None:
        yield WindowedTexts(
            reads, laid, _named(cases, laid), _named(documents, laid), None if readings is None else readings[laid.rows]
        )


def of_member(role: str, some: Iterable[WindowedTexts]) -> Iterator[WindowedTexts]:
    """A member's, with who it is."""
    for each in some:
        yield replace(each, member=role if each.member is None else f"{role}/{each.member}")


def windowed_remarks(some: Sequence[WindowedTexts]) -> Iterator[Remark]:
    """How many of what were read in several windows, and in how many."""
    for reads, plural in PLURALS.items():
        mine = [each for each in some if each.reads == reads]
        if mine:
            count, windows = (
                sum(len(each.laid.rows) for each in mine),
                sum(int(each.laid.counts.sum()) for each in mine),
            )
            yield Remark(
                f"windowed-{reads}", count, f"{count} {plural if count > 1 else reads} read in {windows} windows, the "
                f"first {_first(mine[0])}",
            )  # fmt: skip


def _first(some: WindowedTexts) -> str:
    names = [each[0] for each in (some.case_ids, some.document_ids) if each is not None]
    return " with ".join(repr(name) for name in names)


def _named(names: Sequence[str] | None, laid: InWindows) -> Names | None:
    return None if names is None else np.array([names[row] for row in laid.rows.tolist()], dtype=object)
