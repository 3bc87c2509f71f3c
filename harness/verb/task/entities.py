"""Named entities, from tags."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from harness.metric import entity
from harness.metric.entity_table import KINDS, cut_offs, entity_errors, illegal_table, readings, type_table
from harness.metric.form import Policy, scored
from harness.metric.span import Span
from harness.metric.tagged import Tagged, tagged, with_types
from harness.metric.tagging import Reading
from harness.output.companion import Cell, Companion
from harness.verb.task.side import Asked, Judged, number, parsed

NONE = "(no entity)"


def judge_entities(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of entities. Types that only one side has are types of both, for rows to be exchanged."""
    own = _tagged(asked, asked.policy.reading)
    outputs = with_types(own, asked.beyond)
    tokens = [each["tokens"] for each in asked.gold.inputs]
    given = [spans if ok else None for ok, spans in zip(scored(own.status), own.predicted, strict=True)]
    held = [None if tags is None else spans for tags, spans in zip(asked.gold.tags, own.gold, strict=True)]
    return Judged(
        contributions={
            name: replace(entity.contribution(metric, outputs, asked.words(metric)), metric=name)
            for name, metric in parsed(names).items()
        },
        prediction=[_shown(spans, words) for spans, words in zip(given, tokens, strict=True)],
        gold=[_shown(spans, words) for spans, words in zip(held, tokens, strict=True)],
        probability=np.full(len(own.case_ids), np.nan),
        flags={"illegal": np.array([bool(each) for each in own.illegal], dtype=bool), "short": own.short}
        | _mistaken(own),
        companions=tuple(_companions(asked.promotion)),
    )


def _mistaken(outputs: Tagged) -> dict[str, NDArray[np.bool_]]:
    """Which cases have an entity under another type, and which one with other ends."""
    errors = entity_errors(outputs).errors
    return {
        flag: np.isin(outputs.case_ids.astype(str), [each.case_id for each in errors if each.kind in (flag, "both")])
        for flag in ("wrong-type", "wrong-boundary")
    }


def types_of(asked: Asked) -> set[str]:
    """The types that a side's own tags have, as the data call them."""
    return set(_tagged(asked, asked.policy.reading).types)


def _tagged(asked: Asked, reading: Reading) -> Tagged:
    said = asked.of("recording", "label_map")
    return tagged(
        asked.said.case_ids,
        asked.gold.tags,
        asked.labels,
        asked.said.tags,
        asked.said.status,
        scheme=asked.policy.scheme,
        reading=reading,
        label_map=cast(Mapping[str, str], said) if said else None,
    )


def _shown(spans: tuple[Span, ...] | None, tokens: str | list[str]) -> str | None:
    if spans is None:
        return None
    return "; ".join(f"{span.type}: {' '.join(tokens[span.start : span.end])}" for span in spans) or NONE


def _companions(asked: Asked) -> Iterator[Companion]:
    outputs = _tagged(asked, asked.policy.reading)
    tokens = dict(zip(asked.said.case_ids, (each["tokens"] for each in asked.gold.inputs), strict=True))
    policy = asked.policy
    yield _types(outputs, Policy(policy.absent, policy.division or "zero", policy.empty))
    yield _both_readings(asked, outputs)
    found = entity_errors(outputs)
    counts = tuple((kind, found.count(kind)) for kind in KINDS)
    yield Companion(
        "errors", "What went wrong", "Every entity of gold and output in one place: right, or the mildest error that "
        "fits.", ("kind", "entities"), (("right", found.right), *counts),
    )  # fmt: skip
    places = illegal_table(outputs)
    if places.rows:
        rows: list[tuple[Cell, ...]] = [
            (row.case_id, row.side, row.place.position, row.place.found, row.place.previous, row.place.why)
            for row in places.rows
        ]
        yield Companion(
            "illegal", "Illegal tags", f"{places.n_output} in {places.n_cases} outputs, {places.n_gold} in the data "
            f"({policy.scheme}). Tokens count from 0.",
            ("case", "side", "token", "tag", "before it", "why"), tuple(rows),
        )  # fmt: skip
    lost = cut_offs(outputs)
    if lost.n_short:
        cells: list[tuple[Cell, ...]] = [
            (row.case_id, row.gold.type, " ".join(tokens[row.case_id][row.gold.start : row.gold.end]), row.read_to,
             row.length)
            for row in lost.rows
        ]  # fmt: skip
        yield Companion(
            "cut-off", "Entities lost to truncation", f"{len(lost.rows)} of {lost.n_gold} gold entities reach behind "
            f"their output; {lost.n_short} outputs end before their source. Each is a miss.",
            ("case", "type", "entity", "tokens read", "tokens"), tuple(cells),
        )  # fmt: skip


def _types(outputs: Tagged, policy: Policy) -> Companion:
    rows = tuple(
        (row.name, row.support, row.predicted, row.right, number(row.precision), number(row.recall), number(row.f1))
        for row in type_table(outputs, policy).rows
    )
    columns = ("type", "support", "predicted", "right", "precision", "recall", "f1")
    return Companion("types", "Types", "A type without support is one that only a model has.", columns, rows)


def _both_readings(asked: Asked, outputs: Tagged) -> Companion:
    """Strictly, and as conlleval reads; the one that decides is named."""
    reading = asked.policy.reading
    rows: list[tuple[Cell, ...]] = []
    if reading == "strict":
        both = readings(outputs, _tagged(asked, "conlleval"))
        told = {"strict": both.strict, "conlleval": both.conlleval}
    else:
        # Read strictly, gold that breaks the scheme would be refused.
        told = {"conlleval": readings(outputs, outputs).conlleval}
    for name, row in told.items():
        rows.append(
            (name, row.gold, row.predicted, row.right, number(row.precision), number(row.recall), number(row.f1))
        )
    title = "Two readings of the tags" if len(told) > 1 else "How the tags were read"
    return Companion(
        "readings", title, f"Decided on: {reading}, {asked.policy.scheme}. conlleval lets an I- open an entity.",
        ("reading", "gold", "predicted", "right", "precision", "recall", "f1"), tuple(rows),
    )  # fmt: skip
