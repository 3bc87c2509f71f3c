"""What a state asks for: `gate.toml` at the project's root, and the evidence without which no state moves."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from harness.file import ledger
from harness.file.toml import read_toml
from harness.identity import Json
from harness.lifecycle.state import LEDGER, ORDER, State
from harness.lifecycle.state import evidence as evidence_of

FILE = "gate.toml"
# What the ledger's line of a state must tell. RECONCILED is proven by its checks, or so far by the files' digests.
EVIDENCE: Mapping[State, tuple[str, ...]] = {
    State.DRAFT: (),
    State.RECONCILED: ("checks",),
    State.EVALUATED: ("run", "suite"),
    State.CANDIDATE: ("run", "bundle"),
}


class GateDefinition(BaseModel):
    """`gate.toml`. `suites`: those that a CANDIDATE has passed; without them, the one that ran.

    `parent`: how well the rollback parent must be known, `declared` or as a CANDIDATE here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_: Annotated[Literal["harness.gate.v1"], Field(alias="schema")] = "harness.gate.v1"
    suites: list[Annotated[str, Field(min_length=1)]] = []
    parent: Literal["declared", "candidate"] = "declared"


def read(root: Path) -> GateDefinition:
    """The project's gate.toml; without one, a candidate passes the suite that ran, against a declared parent."""
    path = root / FILE
    return read_toml(path, GateDefinition) if path.exists() else GateDefinition()


def missing(
    gate: GateDefinition,
    *,
    ran: str,
    passed: Mapping[str, Collection[str]],
    locks: Mapping[str, str],
    parent: State | None,
    parent_name: str = "its parent",
) -> tuple[str, ...]:
    """What stands between a release and CANDIDATE, in words; empty where nothing does.

    `ran`: the suite of this run, whose lock is the one that decided. `passed`: by suite, the digests of the locks under
    which this content has passed it. `locks`: by suite, the digest of the lock that it has now, where that is at hand.
    `parent`: the state of the rollback parent's content, None where there was none.
    """
    found = []
    for suite in dict.fromkeys(gate.suites or [ran]):
        under = passed.get(suite, ())
        if not under:
            found.append(f"a PASS on the suite {suite}")
        elif suite != ran and locks.get(suite, next(iter(under))) not in under:
            found.append(f"a PASS on the suite {suite} as it is frozen now ({locks[suite][:12]})")
    if parent is None:
        found.append("a rollback parent")
    elif gate.parent == "candidate" and parent is not State.CANDIDATE:
        found.append(f"a parent that is CANDIDATE here: {parent_name} is {parent}")
    return tuple(found)


def unproven(to: State, evidence: Mapping[str, Json]) -> tuple[str, ...]:
    """What the evidence for a state does not tell, in words; a failed check is named."""
    found = [f"`{name}`" for name in EVIDENCE[to] if not evidence.get(name)]
    checks = evidence.get("checks")
    if to is State.RECONCILED and isinstance(checks, Mapping):
        found += [f"the check {name}" for name, ok in sorted(checks.items()) if ok is not True]
    return tuple(found)


def proven_state(folder: Path, content_id: str) -> State:
    """The furthest state of a content whose line tells all that the state asks for; a bare word proves nothing."""
    reached = [
        to for to in ORDER if any(not unproven(to, shown) for shown in evidence_of(folder, content_id, to))
    ]  # fmt: skip
    return reached[-1] if reached else State.DRAFT


def proven_scores(folder: Path, scores: str) -> str | None:
    """A content of this folder whose proofs were of these scores, by their key; None where there is none."""
    for line in ledger.read(folder / LEDGER):
        shown = line.get("evidence")
        if line.get("state") != State.RECONCILED or not isinstance(shown, Mapping):
            continue
        if shown.get("scores") == scores and not unproven(State.RECONCILED, shown):
            return str(line["content_id"])
    return None
