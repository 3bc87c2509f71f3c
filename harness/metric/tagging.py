"""From one tag per token to spans, under a declared scheme, and every place where the tags break it.

A scheme is three sets of neighbours, written `previous relation tag`: of one type (=), of another (!), whatever (>);
O is of no type and * is any prefix. `opens`: an entity may start at the tag. `continues`: the entity goes on.
`closes`: an entity that ends with the previous tag is whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Literal, TypeAlias

from harness.errors import Misconfigured
from harness.metric.span import Illegal, Span, SpansRead, Why

SchemeName: TypeAlias = Literal["IOB1", "IOB2", "IOE1", "IOE2", "IOBES", "BILOU"]
Reading: TypeAlias = Literal["strict", "conlleval"]
Neighbours: TypeAlias = frozenset[tuple[str, bool, str]]


@dataclass(frozen=True, slots=True)
class Scheme:
    """The prefixes of a scheme, and which neighbours (previous prefix, of one type, prefix) open, continue, close."""

    prefixes: str
    opens: Neighbours
    continues: Neighbours
    closes: Neighbours


def _scheme(prefixes: str, *, opens: str, continues: str, closes: str) -> Scheme:
    def spelled_out(rules: str) -> Iterator[tuple[str, bool, str]]:
        for rule in rules.split():
            left, right = ("O" + prefixes if each == "*" else each for each in (rule[0], rule[2]))
            alike = {"=": (True,), "!": (False,), ">": (True, False)}[rule[1]]
            yield from product(left, alike, right)

    return Scheme(prefixes, *(frozenset(spelled_out(rules)) for rules in (opens, continues, closes)))


SCHEMES: Mapping[SchemeName, Scheme] = {
    "IOB1": _scheme("IB", opens="O>I I!I B>I I=B B=B", continues="B=I I=I", closes="I!I I>O I>B B>O B!I B=B"),
    "IOB2": _scheme("IB", opens="*>B", continues="B=I I=I", closes="I!I I>O I>B B!I B>O B>B"),
    "IOE1": _scheme("IE", opens="O>I I!I E>I O>E I!E E>E", continues="I=I I=E", closes="I!I I>O I!E E=I E=E"),
    "IOE2": _scheme("IE", opens="O>I O>E E>I E>E I!I I!E", continues="I=I I=E", closes="E>*"),
    "IOBES": _scheme("IBES", opens="*>B *>S", continues="B=I B=E I=I I=E", closes="E>* S>*"),
    "BILOU": _scheme("IBLU", opens="*>B *>U", continues="B=I B=L I=I I=L", closes="L>* U>*"),
}
"""IOB1 marks an entity's first token, IOE1 its last, only where it touches another of its type.

`strict` reads what seqeval 1.2.2 reads in its strict mode, also of illegal sequences, save in IOE1: there seqeval loses
an entity of one token before another of its type, which the scheme writes as E.
"""

FIRST, LAST = frozenset("BSU"), frozenset("ESLU")


@dataclass(frozen=True, slots=True)
class _Tag:
    prefix: str = "O"
    type: str = ""
    well_formed: bool = True


OUTSIDE = _Tag()


def read_tags(
    tags: Sequence[str], scheme: SchemeName, reading: Reading = "strict", label_map: Mapping[str, str] | None = None
) -> SpansRead:
    """The spans of one text's tags, in tokens, under new names where `label_map` has them.

    `strict`: only whole chunks of the scheme count. `conlleval`: an entity is a run of tags of one type, wherever it
    starts and ends, cut before first tags and behind last ones. The type is all that stands behind the first '-'. A tag
    that the scheme doesn't have, or an empty one, is illegal and counts as O. What is illegal is so in both readings.
    Raises Misconfigured for an unknown scheme or reading.
    Source of conlleval: Tjong Kim Sang and Buchholz, Introduction to the CoNLL-2000 shared task: chunking, 2000.
    """
    rules = _named(scheme)
    if reading not in ("strict", "conlleval"):
        raise Misconfigured(
            "reading of tags", found=f"{reading!r}", expected="'strict' or 'conlleval'", mend="Write one of them."
        )
    parsed = [_parsed(renamed(tag, label_map), rules) for tag in tags]
    spans = _strict(parsed, rules) if reading == "strict" else _lenient(parsed)
    return SpansRead(tuple(spans), tuple(_illegal(tags, parsed, rules)))


def require_legal(subject: str, gold: SpansRead, scheme: SchemeName, reading: Reading) -> None:
    """Raises Misconfigured for gold with a tag that the scheme doesn't have and, where the reading is strict (it would
    lose entities), for gold that breaks the scheme.
    """
    for bad in gold.illegal:
        if bad.why == "malformed" or reading == "strict":
            found = "the text's end" if bad.found is None else repr(bad.found)
            behind = "" if bad.previous is None else f" behind {bad.previous!r}"
            raise Misconfigured(
                subject,
                found=f"{found} at token {bad.position}{behind} ({bad.why})",
                expected=f"tags of {scheme}",
                mend="Mend the case, or declare the scheme in which the data are tagged."
                if bad.why == "malformed"
                else "Mend the case, declare the scheme in which the data are tagged, or read tags as conlleval does.",
            )


def renamed(tag: str, label_map: Mapping[str, str] | None) -> str:
    """The tag with its type as `label_map` calls it."""
    prefix, dash, kind = tag.partition("-")
    return f"{prefix}{dash}{label_map[kind]}" if dash and label_map and kind in label_map else tag


def _named(name: str) -> Scheme:
    for known, scheme in SCHEMES.items():
        if known == name:
            return scheme
    raise Misconfigured(
        "tag scheme", found=f"{name!r}", expected=f"one of {', '.join(SCHEMES)}", mend="Declare the scheme of the tags."
    )


def _parsed(tag: str, scheme: Scheme) -> _Tag:
    if tag == "O":
        return OUTSIDE
    prefix, _, kind = tag.partition("-")
    if len(prefix) != 1 or prefix not in scheme.prefixes or not kind.strip():
        return _Tag(well_formed=False)
    return _Tag(prefix, kind)


def _among(rules: Neighbours, previous: _Tag, tag: _Tag) -> bool:
    return (previous.prefix, previous.type == tag.type, tag.prefix) in rules


def _strict(tags: list[_Tag], scheme: Scheme) -> Iterator[Span]:
    padded = [*tags, OUTSIDE]
    start = 0
    while start < len(tags):
        end = start + 1
        if _among(scheme.opens, padded[start - 1], padded[start]):
            while _among(scheme.continues, padded[end - 1], padded[end]):
                end += 1
            if _among(scheme.closes, padded[end - 1], padded[end]):
                yield Span(start, end, padded[start].type)
        start = end


def _lenient(tags: list[_Tag]) -> Iterator[Span]:
    start = 0
    for i, (previous, tag) in enumerate(pairwise([OUTSIDE, *tags, OUTSIDE])):
        if previous.type != tag.type or tag.prefix in FIRST or previous.prefix in LAST:
            if previous.type:
                yield Span(start, i, previous.type)
            start = i


def _illegal(written: Sequence[str], tags: list[_Tag], scheme: Scheme) -> Iterator[Illegal]:
    for i, (previous, tag) in enumerate(pairwise([OUTSIDE, *tags, OUTSIDE])):
        why: Why | None = None
        if not tag.well_formed:
            why = "malformed" if written[i] else "lacking"
        elif not _among(scheme.continues, previous, tag):
            if tag.type and not _among(scheme.opens, previous, tag):
                why = "cannot-start"
            elif previous.type and not _among(scheme.closes, previous, tag):
                why = "cannot-end"
        if why:
            yield Illegal(i, written[i] if i < len(tags) else None, written[i - 1] if i else None, why)
