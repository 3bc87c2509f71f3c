"""`harness diff`: what changed between two releases, what stays valid, what must be thrown away."""

from dataclasses import dataclass
from pathlib import Path

from harness.identity import Json
from harness.lifecycle.compatibility import Scoring
from harness.release.open import open_release
from harness.suite.freeze import scorers
from harness.verb.place import Place, find_place
from harness.verb.plan import Prepared, prepare


@dataclass(frozen=True, slots=True)
class Difference:
    """Two releases by name, and all that follows from how they differ."""

    parent: str
    candidate: str
    prepared: Prepared

    def as_record(self) -> dict[str, Json]:
        return {
            "changes": [change.as_record() for change in self.prepared.changes],
            "namespaces": [state.as_record() for state in self.prepared.states],
            "plan": self.prepared.plan.rows(),
            "switched": list(self.prepared.plan.switched),
        }


def diff(parent: str | Path, candidate: str | Path, *, store: str | None = None) -> Difference:
    """Holds a candidate against its parent; no model is loaded, and that they differ is no error.

    Raises NotFound, Misconfigured or NotAdmitted for a release that cannot be opened, NotAdmitted for labels and head
    rows that do not move together, or a training of the head alone that moved more.
    """
    place = find_place(store=store)
    old, new = (open_release(place.release(str(each))) for each in (parent, candidate))
    return Difference(old.name, new.name, prepare(place, old, new, suites_now(place)))


def suites_now(place: Place) -> tuple[Scoring, ...]:
    """The locks of the project's suites and the scorers of this version, by which stored baselines are held."""
    return tuple(Scoring(lock.digest, scorers(lock.definition.task)) for lock in place.locks())
