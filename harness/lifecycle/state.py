"""DRAFT, RECONCILED, EVALUATED, CANDIDATE: the states this product may give, kept in `lifecycle.jsonl`.

What comes after CANDIDATE belongs to the deployment process.
"""

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

from harness.errors import NotAdmitted, Tampered
from harness.file import ledger
from harness.identity import Json

LEDGER = "lifecycle.jsonl"


class State(StrEnum):
    """How far a release has come, in this order; each rests on the one before."""

    DRAFT = "DRAFT"
    RECONCILED = "RECONCILED"
    EVALUATED = "EVALUATED"
    CANDIDATE = "CANDIDATE"


ORDER = tuple(State)


def state(folder: Path, content_id: str) -> State:
    """The furthest of our states that this content has reached; changed files are another content, and DRAFT again.

    States that a deployment process added are its own, and passed over.
    """
    entries = [entry for entry in ledger.read(folder / LEDGER) if entry.get("content_id") == content_id]
    reached = [State(str(entry["state"])) for entry in entries if entry.get("state") in ORDER]
    return max(reached, key=ORDER.index, default=State.DRAFT)


def advance(folder: Path, content_id: str, to: State, evidence: Mapping[str, Json]) -> State:
    """Records a step with its evidence; the same evidence twice appends nothing.

    Raises NotAdmitted when a state in between has not been reached, or when there is no evidence at all.
    """
    if not evidence:
        raise NotAdmitted(
            str(folder), found=f"no evidence for {to}", expected="what proves it",
            mend="Run `harness run` on it again; a state moves on evidence only.",
        )  # fmt: skip
    now = state(folder, content_id)
    if ORDER.index(to) > ORDER.index(now) + 1:
        raise NotAdmitted(
            str(folder), found=f"state {now}", expected=f"state {ORDER[ORDER.index(to) - 1]} before {to}",
            mend="Run `harness run` on it again; each state needs the evidence of the one before.",
        )  # fmt: skip
    ledger.append(folder / LEDGER, {"state": str(to), "content_id": content_id, "evidence": dict(evidence)})
    return state(folder, content_id)


def evidence(folder: Path, content_id: str, of: State) -> tuple[Mapping[str, Json], ...]:
    """What was shown for one state of this content, first first."""
    lines = ledger.read(folder / LEDGER)
    shown = [line["evidence"] for line in lines if (line.get("content_id"), line.get("state")) == (content_id, of)]
    return tuple(each for each in shown if isinstance(each, Mapping))


def refuse_changed(folder: Path, *, then: str, now: str) -> None:
    """Raises Tampered where a release's files have another content than what a step was shown for."""
    if then != now:
        raise Tampered(
            str(folder), found=f"content {now[:16]}, shown for {then[:16]}", expected="the files that were run",
            mend="Restore them, or run the release again as it is now.",
        )  # fmt: skip
