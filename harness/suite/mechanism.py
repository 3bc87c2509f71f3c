"""Slices by what bears on a result: made of a case's inputs and gold when a suite is frozen, or of what the parent did
with it in a run. Never of what the candidate did: a slice that the outcome chose would say what one wants to hear.
"""

import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from harness.errors import Misconfigured
from harness.metric.tagging import read_tags
from harness.output.parent import ParentCase
from harness.suite.case import Case, Suite
from harness.suite.definition import FROM_PARENT, RANKED, Mechanism
from harness.suite.words import words

Bins: TypeAlias = Mapping[str, tuple[str, ...]]
"""By case ID, the names of the bins in which it stands."""

LENGTHS = ("0", "1-4", "5-8", "9-16", "17-32", "33-64", "65-128", "129+")
SUPPORTS = ("0", "1", "2-4", "5-19", "20-99", "100+")
ENTITY_LENGTHS = ("0", "1", "2", "3-4", "5+")
POSITIONS = ("first-quarter", "second-quarter", "third-quarter", "last-quarter", "none", "unknown")
ALIKE = 1e-4
"""Norms whose spread is no larger a share of the largest are those of unit vectors, but for rounding."""
LANGUAGES = ("language", "lang")
"""Attributes that say a case's language; without one, the script of its letters is told."""

AT_RUN: Mapping[Mechanism, tuple[str, ...]] = {
    "truncation": ("cut", "whole", "unknown"),
    "padding": ("1-16", "17-32", "33-64", "65-128", "129-256", "257-512", "513+", "unknown"),
    "candidate-rank": ("1", "2-3", "4-10", "11-50", "51+", "none"),
    "embedding-norm": ("lowest-quarter", "second-quarter", "third-quarter", "highest-quarter", "alike", "unknown"),
}
"""The bins of what only a run knows, fixed beforehand, so that rules can name them."""

TASKS: Mapping[Mechanism, tuple[str, ...]] = {
    "support": (*RANKED, "classification", "multilabel"),
    "candidate-rank": RANKED,
    "embedding-norm": RANKED,
    "entity-type": ("entity",),
    "entity-length": ("entity",),
    "answer-position": ("answer",),
}
"""Where a mechanism is of some tasks alone."""


def check_mechanism(mechanism: Mechanism, task: str) -> None:
    """Raises Misconfigured for one that the task's cases don't have."""
    tasks = TASKS.get(mechanism)
    if tasks is not None and task not in tasks:
        raise Misconfigured(
            "slices", found=f"mechanism {mechanism!r} in a {task} suite", expected=f"a suite of {' or '.join(tasks)}",
            mend="Take the slice out.",
        )  # fmt: skip


def of_inputs(mechanism: Mechanism, suite: Suite) -> Bins:
    """The bins of every case by inputs and gold. The mechanism is none that is `FROM_PARENT`."""
    return _OF_INPUTS[mechanism](suite)


def of_parent(mechanism: Mechanism, cases: Mapping[str, ParentCase]) -> Bins:
    """The bins of every case by what the parent did. The mechanism is one that is `FROM_PARENT`."""
    if mechanism == "embedding-norm":
        return _norms({name: each.norm for name, each in cases.items()})
    bins = AT_RUN[mechanism]
    found = {}
    for name, each in cases.items():
        if mechanism == "truncation":
            found[name] = ("unknown" if each.cut is None else "cut" if each.cut else "whole",)
        elif mechanism == "padding":
            found[name] = ("unknown" if each.tokens is None else _bin(max(1, each.tokens), bins[:-1]),)
        else:
            found[name] = ("none" if each.rank is None else _bin(each.rank, bins[:-1]),)
    return found


def _norms(norms: Mapping[str, float | None]) -> Bins:
    """By quarters of the run's cases, equal norms together. Of vectors of one length only rounding could tell which is
    the longer, so they are `alike`.
    """
    known = np.array([each for each in norms.values() if each is not None], dtype=np.float64)
    if not len(known):
        return dict.fromkeys(norms, ("unknown",))
    quarters = AT_RUN["embedding-norm"][:4]
    if known.max() - known.min() <= ALIKE * known.max():
        return {name: ("unknown" if each is None else "alike",) for name, each in norms.items()}
    edges = np.quantile(known, (0.25, 0.5, 0.75))
    return {
        name: ("unknown" if each is None else quarters[int(np.searchsorted(edges, each))],)
        for name, each in norms.items()
    }


def order_of(mechanism: Mechanism, names: Sequence[str]) -> list[str]:
    """The names of bins in their own order: rising, or by name where they have none."""
    known = [*LENGTHS, *SUPPORTS, *ENTITY_LENGTHS, *POSITIONS]
    if mechanism in FROM_PARENT:
        return [name for name in AT_RUN[mechanism] if name in names]
    if mechanism in ("language", "entity-type"):
        return sorted(names)
    return sorted(names, key=lambda name: (_least(name), known.index(name)))


def _least(name: str) -> int:
    digits = name.rstrip("+").partition("-")[0]
    return int(digits) if digits.isdigit() else 0


def _bin(number: int, bins: Sequence[str]) -> str:
    """The bin in which a whole number stands: each is `n`, `n-m` or `n+`."""
    return [name for name in bins if _least(name) <= number][-1]


def _lengths(suite: Suite) -> Bins:
    return {case.id: (_bin(len(words(case.text)), LENGTHS),) for case in suite.cases}


def _languages(suite: Suite) -> Bins:
    name = next((name for name in LANGUAGES if any(name in case.attributes for case in suite.cases)), None)
    if name is not None:
        return {case.id: (str(case.attributes[name]),) for case in suite.cases if name in case.attributes}
    return {case.id: (f"script-{_script(case.text)}",) for case in suite.cases}


def _script(text: str) -> str:
    """The script of most letters, as Unicode's names of characters begin; of equally many, the first by name."""
    letters = Counter(unicodedata.name(each, "unknown").split()[0].lower() for each in text if each.isalpha())
    return min(letters, key=lambda name: (-letters[name], name)) if letters else "none"


def _supports(suite: Suite) -> Bins:
    """Of a query its relevant documents; of a label the cases that have it, of several those of the rarest."""
    if suite.definition.task in RANKED:
        relevant = Counter(row.case_id for row in suite.judgements if row.grade > 0)
        return {case.id: (_bin(relevant[case.id], SUPPORTS),) for case in suite.cases}
    labels = {case.id: _labels(case) for case in suite.cases}
    counts = Counter(label for each in labels.values() for label in each)
    return {name: (_bin(min((counts[label] for label in each), default=0), SUPPORTS),) for name, each in labels.items()}


def _labels(case: Case) -> tuple[str, ...]:
    gold = case.gold
    if gold is None:
        return ()
    return gold.labels or () if gold.label is None else (gold.label,)


def _entity_types(suite: Suite) -> Bins:
    return {name: tuple(dict.fromkeys(kind for kind, _ in spans)) or ("none",) for name, spans in _spans(suite).items()}


def _entity_lengths(suite: Suite) -> Bins:
    """Of the longest entity, in tokens."""
    return {
        name: (_bin(max((size for _, size in spans), default=0), ENTITY_LENGTHS),)
        for name, spans in _spans(suite).items()
    }


def _spans(suite: Suite) -> dict[str, list[tuple[str, int]]]:
    policy = suite.definition.metrics.policy
    read = {
        case.id: read_tags(case.gold.tags, policy.scheme, policy.reading).spans
        for case in suite.cases
        if case.gold is not None and case.gold.tags is not None
    }
    return {name: [(span.type, span.end - span.start) for span in spans] for name, spans in read.items()}


def _answer_positions(suite: Suite) -> Bins:
    return {case.id: (_position(case),) for case in suite.cases}


def _position(case: Case) -> str:
    """In which quarter of the context the first gold answer begins."""
    if case.gold is None or case.gold.answers is None:
        return "unknown"
    if not case.gold.answers:
        return "none"
    context = str(case.inputs["context"])
    first = case.gold.answers[0]
    start = context.find(first.text) if first.start is None else first.start
    return "unknown" if start < 0 or not context else POSITIONS[min(3, 4 * start // len(context))]


_OF_INPUTS: Mapping[Mechanism, Callable[[Suite], Bins]] = {
    "length": _lengths,
    "language": _languages,
    "support": _supports,
    "entity-type": _entity_types,
    "entity-length": _entity_lengths,
    "answer-position": _answer_positions,
}
