"""Who has seen the promotion outcomes: a test set that is read again and again is no longer one.

`exposures.jsonl` lies in the suite's folder; one line for each run, written before its promotion outcomes are read.
All of its lines count, whatever data they were read on: else a changed judgement would make every reading the first,
and every change of rules an innocent one. A new set of promotion cases is a new suite, with a ledger of its own.
The store remembers exposures too, and what a ledger lacks of them is written into it again.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.errors import Tampered
from harness.file import ledger
from harness.identity import Json, canonical_json
from harness.output.exposure import Exposure

LEDGER = "exposures.jsonl"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A calibrator, threshold or rule of abstention: what it is, by value or digest, and whether a record shows that it
    was fitted on the calibration role; a number that someone wrote has no such record.
    """

    value: Json
    fitted: bool


def parameters_text(parameters: Mapping[str, Parameter]) -> str | None:
    """As a ledger keeps it: canonical JSON by name; None for none."""
    record: dict[str, Json] = {name: asdict(each) for name, each in parameters.items()}
    return canonical_json(record).decode("utf-8") if record else None


@dataclass(frozen=True, slots=True)
class Reading:
    """`ordinal`: how many runs have read these promotion outcomes, this one included.

    `changed_policy`: outcomes of this very candidate were read before, under other rules, slices or margins.
    `changed_parameters`: they were read before under another threshold, calibrator or rule of abstention, or under none
    where the present one was not fitted on the calibration role.
    """

    ordinal: int
    changed_policy: bool
    changed_parameters: bool = False

    @property
    def exploratory(self) -> bool:
        return self.changed_policy or self.changed_parameters


def record(suite_folder: Path, exposure: Exposure, remembered: Sequence[Exposure] = ()) -> Reading:
    """Writes a run's exposure, once, and says what it means for the decision.

    `remembered`: what the store knows of readings of the same data, first first; they count before the ledger's, so
    that a ledger which lost or changed a line changes nothing.
    Raises Tampered for a line that is no exposure.
    """
    path = suite_folder / LEDGER
    for each in (*remembered, exposure):
        ledger.append(path, _as_entry(each))
    entries = list(dict.fromkeys((*remembered, *_entries(path))))
    runs = list(dict.fromkeys(entry.run for entry in entries))
    first = next(each for each in entries if exposure.candidate == each.candidate or exposure.outcomes == each.outcomes)
    earlier = entries[: next(i for i, each in enumerate(entries) if each.run == exposure.run)]
    return Reading(
        ordinal=runs.index(exposure.run) + 1,
        changed_policy=first.policy != exposure.policy,
        changed_parameters=any(
            _chosen_after(each.parameters, exposure.parameters)
            for each in earlier
            if each.outcomes == exposure.outcomes
        ),
    )


def _chosen_after(before: str | None, now: str | None) -> bool:
    """Whether what decides now may have been chosen by what was read before: any other value may, but for one that is
    fitted on the calibration role where there was none.
    """
    old, new = (json.loads(each) if each else {} for each in (before, now))
    return any(
        old.get(name, {}).get("value") != new.get(name, {}).get("value")
        and not (name not in old and new[name]["fitted"] is True)
        for name in old.keys() | new.keys()
    )


def _as_entry(exposure: Exposure) -> dict[str, Json]:
    """A line says nothing of parameters where there are none."""
    return {name: value for name, value in asdict(exposure).items() if (name, value) != ("parameters", None)}


def _entries(path: Path) -> list[Exposure]:
    names = {field.name for field in fields(Exposure)}
    found = []
    for number, entry in enumerate(ledger.read(path), start=1):
        if set(entry) | {"parameters"} != names or not all(
            isinstance(value, str) or (key, value) == ("parent", None) for key, value in entry.items()
        ):
            raise Tampered(
                f"{path} line {number}", found="a line that is no exposure", expected="one line a run, as written here",
                mend="Restore the file from version control.",
            )  # fmt: skip
        found.append(Exposure(**entry))  # type: ignore[arg-type]  # text, but for a parent that may be null, as just checked
    return found
