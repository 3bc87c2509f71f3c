"""Who has seen the promotion outcomes: a test set that is read again and again is no longer one.

`exposures.jsonl` lies in the suite's folder; one line for each run, written before its promotion outcomes are read.
All of its lines count, whatever data they were read on: else a changed judgement would make every reading the first,
and every change of rules an innocent one. A new set of promotion cases is a new suite, with a ledger of its own.
The store remembers exposures too, and what a ledger lacks of them is written into it again.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.errors import Tampered
from harness.file import ledger

LEDGER = "exposures.jsonl"


@dataclass(frozen=True, slots=True)
class Exposure:
    """One run that read promotion outcomes: on which data, of which contents, under which policy.

    `outcomes` is the digest of the candidate's own rankings: a release that answers alike is no other candidate.
    """

    run: str
    data: str
    policy: str
    candidate: str
    parent: str | None
    outcomes: str


@dataclass(frozen=True, slots=True)
class Reading:
    """`ordinal`: how many runs have read these promotion outcomes, this one included.

    `changed_policy`: outcomes of this very candidate were read before, under other rules, slices or margins.
    """

    ordinal: int
    changed_policy: bool


def record(suite_folder: Path, exposure: Exposure, remembered: Sequence[Exposure] = ()) -> Reading:
    """Writes a run's exposure, once, and says what it means for the decision.

    `remembered`: what the store knows of readings of the same data, first first; they count before the ledger's, so
    that a ledger which lost or changed a line changes nothing.
    Raises Tampered for a line that is no exposure.
    """
    path = suite_folder / LEDGER
    for each in (*remembered, exposure):
        ledger.append(path, asdict(each))
    entries = list(dict.fromkeys((*remembered, *_entries(path))))
    runs = list(dict.fromkeys(entry.run for entry in entries))
    first = next(each for each in entries if exposure.candidate == each.candidate or exposure.outcomes == each.outcomes)
    return Reading(ordinal=runs.index(exposure.run) + 1, changed_policy=first.policy != exposure.policy)


def _entries(path: Path) -> list[Exposure]:
    names = {field.name for field in fields(Exposure)}
    found = []
    for number, entry in enumerate(ledger.read(path), start=1):
        if set(entry) != names or not all(
            isinstance(value, str) or (key, value) == ("parent", None) for key, value in entry.items()
        ):
            raise Tampered(
                f"{path} line {number}", found="a line that is no exposure", expected="one line a run, as written here",
                mend="Restore the file from version control.",
            )  # fmt: skip
        found.append(Exposure(**entry))  # type: ignore[arg-type]  # text, but for a parent that may be null, as just checked
    return found
