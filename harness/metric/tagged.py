"""What the data and a release say of the entities of each case: read from one tag per token, or given as spans."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.errors import Misconfigured
from harness.metric.form import Bools, Ints, Objects, case_status, objects, scored
from harness.metric.label import one_class
from harness.metric.span import Illegal, Span, SpansRead, read_spans
from harness.metric.tagging import Reading, SchemeName, read_tags, renamed, require_legal
from harness.output.value import Status

Spans = tuple[Span, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Tagged:
    """Gold and predicted spans of every case, by rising start and none twice; predicted ones only of scored cases.

    `declared`: the data's types; `own`: the model's further ones, by name. `illegal`: where a scored output breaks its
    scheme, `gold_illegal` where the data do. Shapes: case_ids, status and reason [n], why a case failed; lengths [n] of
    the sources and read_to [n], where outputs end, in the spans' unit; right_tokens [n], tokens whose tag is written as
    in the gold, None where there are no tags.
    """

    case_ids: Objects
    declared: tuple[str, ...]
    own: tuple[str, ...]
    gold: tuple[Spans, ...]
    predicted: tuple[Spans, ...]
    illegal: tuple[tuple[Illegal, ...], ...]
    gold_illegal: tuple[tuple[Illegal, ...], ...]
    lengths: Ints
    read_to: Ints
    right_tokens: Ints | None
    status: Objects
    reason: Objects

    @property
    def types(self) -> tuple[str, ...]:
        return self.declared + self.own

    @property
    def short(self) -> Bools:
        """[n], True where a scored output ends before its source."""
        return np.asarray(scored(self.status) & (self.read_to < self.lengths))

    @property
    def right(self) -> Bools:
        """[n], True where a scored case has its gold spans and no others, also where that is none."""
        alike = [gold == found for gold, found in zip(self.gold, self.predicted, strict=True)]
        return np.asarray(scored(self.status) & np.array(alike, dtype=bool))


def with_types(outputs: Tagged, types: Iterable[str]) -> Tagged:
    """The same outputs of a model that may also find `types`.

    Rows of averages have a column for each type, so two sides that are compared each need the other's.
    """
    return replace(outputs, own=_further(outputs.declared, (*outputs.own, *types)))


def tagged(
    case_ids: Objects,
    gold: Sequence[Sequence[str] | None],
    types: Sequence[str],
    predicted: Sequence[Sequence[str] | None],
    output_status: Objects,
    *,
    scheme: SchemeName,
    reading: Reading = "strict",
    label_map: Mapping[str, str] | None = None,
) -> Tagged:
    """Reads one tag per token, gold and predicted in one scheme; None where there is no gold, or no output.

    `types`: what gold spans may be; `label_map`: model type → data type. A case without gold is not-applicable. An
    output with fewer tags than tokens is short, and the rest counts as O, as does an empty tag; one with more has
    failed. Illegal tags and
    sequences count as `read_tags` says, and are kept.
    Raises Misconfigured for a gold tag that the scheme doesn't have, a gold type that isn't declared, gold that breaks
    the scheme where the reading is strict (it would lose entities), and a map to a type that isn't declared.
    """
    gold_read = [read_tags(tags or (), scheme, reading) for tags in gold]
    for case_id, each in zip(case_ids, gold_read, strict=True):
        require_legal(f"gold tags of case {case_id!r}", each, scheme, reading)
    lengths, given = (np.array([len(tags or ()) for tags in side], dtype=np.int64) for side in (gold, predicted))
    status = case_status(output_status, applicable=_given(gold), usable=_given(predicted) & (given <= lengths))
    counted = scored(status)
    outputs = [
        (*(tags or ()), *["O"] * int(missing)) if ok else ()
        for tags, missing, ok in zip(predicted, lengths - given, counted, strict=True)
    ]
    right = [
        sum(renamed(tag or "O", label_map) == own for tag, own in zip(tags, (held or ()) if ok else (), strict=True))
        for tags, held, ok in zip(outputs, gold, counted, strict=True)
    ]
    return _collected(
        case_ids,
        types,
        gold_read,
        [read_tags(tags, scheme, reading, label_map) for tags in outputs],
        lengths=lengths,
        read_to=np.where(counted, given, 0),
        right_tokens=np.array(right, dtype=np.int64),
        status=status,
        too_long=np.where((status == Status.FAILED) & (given > lengths), given, -1),
        label_map=label_map,
    )


def spanned(
    case_ids: Objects,
    gold: Sequence[Sequence[Span] | None],
    types: Sequence[str],
    predicted: Sequence[Sequence[Span] | None],
    output_status: Objects,
    *,
    lengths: Ints,
    read_to: Ints | None = None,
    label_map: Mapping[str, str] | None = None,
) -> Tagged:
    """Takes spans as they are, also nested ones, all in one unit: tokens, or characters of the source (`in_source`).

    Shapes: lengths [n] of the sources; read_to [n], where the model stopped reading, left out where it read everything.
    Illegal spans (`read_spans`) don't count, and are kept.
    Raises Misconfigured for illegal gold, a gold type that isn't declared, a map to a type that isn't, and a `read_to`
    that is not within its source.
    """
    ends = lengths if read_to is None else read_to
    _refuse_bad_ends(case_ids, lengths, ends)
    status = case_status(output_status, applicable=_given(gold), usable=_given(predicted))
    counted = scored(status)
    gold_read = [read_spans(spans or (), int(length)) for spans, length in zip(gold, lengths, strict=True)]
    for case_id, each in zip(case_ids, gold_read, strict=True):
        _refuse_bad_spans(case_id, each.illegal)
    return _collected(
        case_ids,
        types,
        gold_read,
        [
            read_spans((spans or ()) if ok else (), int(length), label_map)
            for spans, length, ok in zip(predicted, lengths, counted, strict=True)
        ],
        lengths=lengths,
        read_to=np.where(counted, ends, 0),
        right_tokens=None,
        status=status,
        too_long=np.full(len(case_ids), -1),
        label_map=label_map,
    )


def _collected(
    case_ids: Objects,
    types: Sequence[str],
    gold: Sequence[SpansRead],
    outputs: Sequence[SpansRead],
    *,
    lengths: Ints,
    read_to: Ints,
    right_tokens: Ints | None,
    status: Objects,
    too_long: Ints,
    label_map: Mapping[str, str] | None,
) -> Tagged:
    for target in (label_map or {}).values():
        one_class(types, target, "label_map")
    for case_id, each in zip(case_ids, gold, strict=True):
        for span in each.spans:
            one_class(types, span.type, f"gold spans of case {case_id!r}")
    return Tagged(
        case_ids=case_ids,
        declared=tuple(types),
        own=_further(types, (span.type for each in outputs for span in each.spans)),
        gold=tuple(each.spans for each in gold),
        predicted=tuple(each.spans for each in outputs),
        illegal=tuple(each.illegal for each in outputs),
        gold_illegal=tuple(each.illegal for each in gold),
        lengths=lengths,
        read_to=read_to,
        right_tokens=right_tokens,
        status=status,
        reason=objects([
            f"{given} tags for {length} tokens" if given >= 0 else ""
            for given, length in zip(too_long.tolist(), lengths.tolist(), strict=True)
        ]),
    )  # fmt: skip


def _further(declared: Sequence[str], types: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(types) - set(declared)))


def _given(each: Sequence[object]) -> Bools:
    return np.array([one is not None for one in each], dtype=bool)


def _refuse_bad_spans(case_id: str, illegal: Sequence[Illegal]) -> None:
    if illegal:
        raise Misconfigured(
            f"gold spans of case {case_id!r}",
            found=f"{illegal[0].found} ({illegal[0].why})",
            expected="each span once, with a type, its start below its end, both within the source",
            mend="Mend the case.",
        )


def _refuse_bad_ends(case_ids: Objects, lengths: Ints, ends: Ints) -> None:
    bad = np.flatnonzero((ends < 0) | (ends > lengths))
    if len(bad):
        raise Misconfigured(
            f"what was read of case {case_ids[bad[0]]!r}",
            found=f"up to {ends[bad[0]]}",
            expected=f"within the source's {lengths[bad[0]]}",
            mend="Give lengths, ends and spans in one unit.",
        )
