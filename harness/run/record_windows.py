"""Texts that a side read in several windows, into the store: a row each, with a list of what every window shows."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from harness.store.connection import Connection
from harness.store.write import append, remove

if TYPE_CHECKING:
    from harness.run.windowed import WindowedTexts


def record_windows(connection: Connection, key: Mapping[str, str], some: "Sequence[WindowedTexts]") -> None:
    """All that one side read in windows; nothing of a side that had none."""
    remove(connection, "texts_in_windows", key)
    for each in some:
        append(connection, "texts_in_windows", key, _columns(each))


def _columns(of: "WindowedTexts") -> dict[str, pa.Array]:
    laid, count = of.laid, len(of.laid.rows)
    ends = pa.array(np.concatenate([[0], np.cumsum(laid.counts)]), pa.int32())
    lists = {"token": laid.tokens, "character": laid.characters, "owned": laid.owned}
    return {
        "member": pa.array([of.member] * count, pa.string()),
        "reads": pa.array([of.reads] * count, pa.string()),
        "case_id": pa.array([None] * count if of.case_ids is None else of.case_ids, pa.string()),
        "document_id": pa.array([None] * count if of.document_ids is None else of.document_ids, pa.string()),
        "reading": pa.array(np.ones(count, dtype=np.int64) if of.readings is None else of.readings, pa.int64()),
        "size": pa.array(np.full(count, laid.window.size), pa.int64()),
        "aggregation": pa.array([laid.window.aggregation] * count, pa.string()),
        "owner": pa.array([laid.window.owner] * count, pa.string()),
        "around": pa.array(laid.around, pa.int64()),
        "uncovered": pa.array(laid.uncovered, pa.int64()),
        **{
            f"{name}_{end}": pa.nulls(count, pa.list_(pa.int32()))
            if values is None
            else pa.ListArray.from_arrays(ends, pa.array(np.ascontiguousarray(values[:, column]), pa.int32()))
            for name, values in lists.items()
            for column, end in enumerate(("start", "end"))
        },
    }
