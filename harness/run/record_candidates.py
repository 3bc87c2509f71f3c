"""What a last stage was given, and what it made of every pair, into the store."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from harness.identity import digest
from harness.output.case import Candidates, CaseOutput
from harness.store.connection import Connection
from harness.store.write import Column, replace

READ = ("query", "document")


class _Pair(NamedTuple):
    case_id: str
    given: Candidates
    row: int


def record_candidates(connection: Connection, key: Mapping[str, str], outputs: Sequence[CaseOutput]) -> None:
    """Every candidate of one side, and the digest of them all; nothing for a side that was given none."""
    some = [(each.case_id, each.candidates) for each in outputs if each.candidates is not None]
    pairs = [_Pair(case_id, given, row) for case_id, given in some for row in range(len(given.documents))]
    replace(connection, "candidates", key, {
        "case_id": pa.array([each.case_id for each in pairs], pa.string()),
        "position": pa.array([each.row + 1 for each in pairs], pa.int32()),
        "document_id": pa.array([each.given.documents[each.row] for each in pairs], pa.string()),
        "first_score": _known([each.given.first_scores[each.row] for each in pairs]),
        "score": _known([each.given.scores[each.row] for each in pairs]),
        "logits": pa.array(
            [None if each.given.logits is None else each.given.logits[each.row] for each in pairs],
            pa.list_(pa.float32()),
        ),
        **{name: column for side, text in enumerate(READ) for name, column in _tokens(pairs, side, text).items()},
    })  # fmt: skip
    told = [[case_id, list(given.documents)] for case_id, given in some]
    replace(connection, "candidate_sets", key, {
        "digest": pa.array([digest(told)] if some else [], pa.string()),
        "cases": pa.array([len(some)] if some else [], pa.int64()),
        "pairs": pa.array([len(pairs)] if some else [], pa.int64()),
    })  # fmt: skip


def _known(scores: Sequence[float]) -> pa.Array:
    """NULL where there is none."""
    values = np.array(scores, dtype=np.float64)
    return pa.array(values, pa.float64(), mask=np.isnan(values))


def _tokens(pairs: Sequence[_Pair], side: int, text: str) -> Mapping[str, Column]:
    kept = [None if each.given.kept is None else int(each.given.kept[each.row, side]) for each in pairs]
    lost = [None if each.given.lost is None else int(each.given.lost[each.row, side]) for each in pairs]
    return {f"{text}_tokens_kept": pa.array(kept, pa.int64()), f"{text}_tokens_lost": pa.array(lost, pa.int64())}
