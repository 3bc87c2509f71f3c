"""Who has seen the promotion outcomes: a test set that is read again and again is no longer one.

`exposures.jsonl` lies in the suite's folder; one line for each run, written before its promotion outcomes are read.
All of its lines count, whatever data they were read on: else a changed judgement would make every reading the first,
and every change of rules an innocent one. A new set of promotion cases is a new suite, with a ledger of its own.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from harness.file import ledger

LEDGER = "exposures.jsonl"


@dataclass(frozen=True, slots=True)
class Exposure:
    """One run that read promotion outcomes: on which data, of which contents, under which policy."""

    run: str
    data: str
    policy: str
    candidate: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class Reading:
    """`ordinal`: how many runs have read these promotion outcomes, this one included.

    `changed_policy`: outcomes of this very candidate were read before, under other rules, slices or margins.
    """

    ordinal: int
    changed_policy: bool


def record(suite_folder: Path, exposure: Exposure) -> Reading:
    """Writes a run's exposure, once, and says what it means for the decision."""
    path = suite_folder / LEDGER
    ledger.append(path, asdict(exposure))
    entries = ledger.read(path)
    runs = list(dict.fromkeys(entry.get("run") for entry in entries))
    first = next(entry for entry in entries if entry.get("candidate") == exposure.candidate)
    return Reading(ordinal=runs.index(exposure.run) + 1, changed_policy=first.get("policy") != exposure.policy)
