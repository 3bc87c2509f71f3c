"""One invariant of a release: whether it holds, and what is to be done where it does not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.errors import HarnessError, NotAdmitted


@dataclass(frozen=True, slots=True)
class Check:
    """`name` is stable, in kebab-case. `mend` is empty where there is nothing to mend."""

    name: str
    ok: bool
    found: str
    expected: str
    mend: str = ""


def held(name: str, found: str, expected: str) -> Check:
    """A check that holds."""
    return Check(name, True, found, expected)


def broken(name: str, found: str, expected: str, mend: str) -> Check:
    """A check that does not, and how to mend it."""
    return Check(name, False, found, expected, mend)


def refused(refusal: HarnessError) -> Check:
    """Why a folder cannot be described at all."""
    return broken("described", f"{refusal.subject}: {refusal.found}", refusal.expected, refusal.mend)


def listed(name: str, faults: Iterable[str], *, sound: str, expected: str, mend: str) -> Check:
    """Broken where there is any fault, with all of them; else it holds, as `sound` says."""
    found = list(faults)
    return broken(name, "; ".join(found), expected, mend) if found else held(name, sound, expected)


def in_words(checks: Iterable[Check]) -> str:
    """Name and finding of each, in one line."""
    return "; ".join(f"{check.name}: {check.found}" for check in checks)


def not_admitted(subject: str, broken: Sequence[Check], mend: str) -> NotAdmitted:
    """Every broken invariant in one refusal."""
    expected = "; ".join(check.expected for check in broken)
    return NotAdmitted(subject, found=in_words(broken), expected=expected, mend=mend)
