"""Cases of two roles that are one: the same text, nearly the same text, windows of one source.

Between promotion and the roles that fit something (train, calibration) a leak is an error: what is judged was seen.
Between other roles it is a warning: a choice or a fit is the better for it, and no promotion number.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import Leaked, Misconfigured
from harness.file.lines import shown
from harness.file.toml import place
from harness.identity import digest
from harness.suite.case import Attribute, Case, Suite
from harness.suite.definition import Role
from harness.suite.nearness import near
from harness.suite.role import ROLES
from harness.suite.words import words

FITTING: frozenset[Role] = frozenset({"train", "calibration"})
NAMED = 20
"""Pairs that a refusal names; a suite has more only where its roles were not made with care."""

Text = tuple[tuple[str, ...], ...]
KINDS = {
    "duplicate": "have one text",
    "near-duplicate": "have nearly one text",
    "window": "are windows of one source",
}


class Leak(BaseModel):
    """A finding: two cases, the first one's role never later than the second's in the order of roles.

    `similarity`: the Jaccard likeness of two texts, 1 for equal ones and for windows. `finding`: what a waiver names,
    the digest of kind, cases, roles and texts. `waived`: the reason for which it may stand.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: Literal["duplicate", "near-duplicate", "window"]
    cases: Annotated[tuple[str, ...], Field(min_length=2, max_length=2)]
    roles: tuple[Role, ...]
    places: tuple[str, ...]
    similarity: float
    severity: Literal["error", "warning"]
    finding: str
    waived: str | None = None

    def told(self) -> str:
        """The pair in words."""
        sides = [
            f"{shown(case)} ({role}{f', {at}' if at else ''})"
            for case, role, at in zip(self.cases, self.roles, self.places, strict=True)
        ]
        likeness = f" (likeness {self.similarity:.2f})" if self.kind == "near-duplicate" else ""
        return f"cases {sides[0]} and {sides[1]} {KINDS[self.kind]}{likeness}"


def leaks(suite: Suite) -> tuple[Leak, ...]:
    """Every finding, waivers applied: duplicates, near-duplicates, windows, each in the order of the suite.

    Raises Misconfigured for a waiver that meets none.
    """
    found = [*_duplicates(suite), *_windows(suite)]
    waivers = {each.finding: each.reason for each in suite.definition.leakage.waivers if each.release is None}
    path = suite.folder / "suite.toml"
    known = {each.finding for each in found}
    for position, waiver in enumerate(suite.definition.leakage.waivers):
        if waiver.release is None and waiver.finding not in known:
            raise Misconfigured(
                place(path, "leakage", "waivers", position, "finding"),
                found=f"a waiver of {waiver.finding[:16]}, which is no finding of this suite",
                expected="a waiver for each finding it names",
                mend="Take it out, or copy the digest that `harness freeze` prints.",
            )  # fmt: skip
    return tuple(each.model_copy(update={"waived": waivers.get(each.finding)}) for each in found)


def refuse_leaks(suite: Suite, found: Sequence[Leak]) -> None:
    """Raises Leaked, naming the pairs, for errors that nobody waived."""
    left = [each for each in found if each.severity == "error" and each.waived is None]
    if left:
        named = "; ".join(f"{each.told()} [{each.finding}]" for each in left[:NAMED])
        more = f"; and {len(left) - NAMED} pairs more" if len(left) > NAMED else ""
        stand = "1 pair stands" if len(left) == 1 else f"{len(left)} pairs stand"
        raise Leaked(
            str(suite.folder), found=f"{stand} in two roles: {named}{more}",
            expected="promotion cases that no role which fits something has seen",
            mend="Give both the same role, take one out, or add [[leakage.waivers]] to suite.toml with the finding's "
            "digest and a reason.",
        )  # fmt: skip


def leak_warnings(found: Sequence[Leak]) -> list[str]:
    """What `freeze` and `check` say of findings that did not refuse the suite."""
    warnings = [f"waived leak: {each.told()}: {each.waived}" for each in found if each.waived is not None]
    rest = [each for each in found if each.waived is None]
    warnings += [f"leak: {each.told()} [{each.finding}]" for each in rest[:NAMED]]
    if len(rest) > NAMED:
        warnings.append(f"leak: {len(rest) - NAMED} pairs more; the lock has them all")
    return warnings


def window_parents(cases: Sequence[Case], name: str | None) -> dict[str, str]:
    """The text of which a case is a window, by case ID, for those that say so."""
    if name is None:
        return {}
    return {case.id: _as_text(case.attributes[name]) for case in cases if name in case.attributes}


def text_of(case: Case) -> Text:
    """All that a model reads of a case, as words: its fields without an order, for a pair may stand the other way."""
    fields: list[str] = []
    for value in case.inputs.values() if case.inputs else (case.text,):
        if isinstance(value, str):
            fields.append(value)
        else:
            fields += [" ".join(value)] if "tokens" in case.inputs else list(value)
    return tuple(sorted(each for each in map(words, fields) if each))


def _duplicates(suite: Suite) -> Iterator[Leak]:
    """Of equal texts every case, with one of the other role; of nearly equal ones each text with its nearest."""
    if len({case.role for case in suite.cases}) < 2:
        return
    by_text: dict[Text, dict[Role, list[Case]]] = {}
    for case in suite.cases:
        if text := text_of(case):
            by_text.setdefault(text, {}).setdefault(case.role, []).append(case)
    for text, by_role in by_text.items():
        for one, other in _stars(by_role):
            yield _leak(suite, "duplicate", one, other, 1.0, text, text)
    distinct = [(text, role, held[0]) for text, by_role in by_text.items() for role, held in by_role.items()]
    sides = [ROLES.index(role) for _, role, _ in distinct]
    policy = suite.definition.leakage
    best: dict[tuple[int, int], tuple[float, int]] = {}
    for pair in near([text for text, _, _ in distinct], sides, size=policy.shingle, threshold=policy.threshold):
        if distinct[pair.first][0] == distinct[pair.second][0]:
            continue
        for own, partner in ((pair.first, pair.second), (pair.second, pair.first)):
            key = (own, sides[partner])
            best[key] = min(best.get(key, (0.0, 0)), (-pair.similarity, partner))
    named = {(min(own, mate), max(own, mate)): -likeness for (own, _), (likeness, mate) in best.items()}
    for (first, second), likeness in sorted(named.items()):
        (one_text, one_role, _), (other_text, other_role, _) = distinct[first], distinct[second]
        for one, other in _stars({one_role: by_text[one_text][one_role], other_role: by_text[other_text][other_role]}):
            texts = (one_text, other_text) if one.role == one_role else (other_text, one_text)
            yield _leak(suite, "near-duplicate", one, other, likeness, *texts)


def _windows(suite: Suite) -> Iterator[Leak]:
    cases = {case.id: case for case in suite.cases}
    by_source: dict[str, dict[Role, list[Case]]] = {}
    for case_id, source in window_parents(suite.cases, suite.definition.cases.window_parent).items():
        case = cases[case_id]
        by_source.setdefault(_folded(source), {}).setdefault(case.role, []).append(case)
    for source, by_role in by_source.items():
        for one, other in _stars(by_role):
            yield _leak(suite, "window", one, other, 1.0, source, source)


def _stars(by_role: Mapping[Role, Sequence[Case]]) -> Iterator[tuple[Case, Case]]:
    """Pairs of two roles in which every case stands, and no more of them than there are cases."""
    for one, other in combinations([role for role in ROLES if role in by_role], 2):
        mine, theirs = by_role[one], by_role[other]
        yield from ((mine[0], case) for case in theirs)
        yield from ((case, theirs[0]) for case in mine[1:])


def _leak(
    suite: Suite,
    kind: Literal["duplicate", "near-duplicate", "window"],
    one: Case,
    other: Case,
    similarity: float,
    one_text: Text | str,
    other_text: Text | str,
) -> Leak:
    said = sorted([(one, one_text), (other, other_text)], key=lambda each: (ROLES.index(each[0].role), each[0].id))
    roles: tuple[Role, ...] = tuple(case.role for case, _ in said)
    return Leak(
        kind=kind,
        cases=tuple(case.id for case, _ in said),
        roles=roles,
        places=tuple(suite.places.get(case.id, "") for case, _ in said),
        similarity=round(similarity, 6),
        severity="error" if "promotion" in roles and FITTING.intersection(roles) else "warning",
        finding=digest({"kind": kind, "cases": [[case.id, case.role, text] for case, text in said]}),
    )


def _folded(source: str) -> str:
    """A source's name as `harness freeze` takes names for one: after NFKC, case folding and stripping."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", source).casefold()).strip()


def _as_text(value: Attribute) -> str:
    return value if isinstance(value, str) else str(value)
