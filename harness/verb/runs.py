"""`harness runs`: what the store holds."""

from dataclasses import asdict, dataclass

from harness.identity import Json
from harness.verb.place import find_place


@dataclass(frozen=True, slots=True)
class RunLine:
    """A run in one line; `decision` is `unfinished` until it was decided."""

    run: str
    suite: str
    candidate: str
    parent: str | None
    decision: str
    exploratory: bool
    updated_at: str

    def as_record(self) -> dict[str, Json]:
        return asdict(self)


def runs(*, store: str | None = None) -> tuple[RunLine, ...]:
    """Every run, the latest first. Raises NotFound without a store."""
    with find_place(store=store).store.reading() as connection:
        rows = connection.execute(
            """SELECT run, suite, candidate, parent, coalesce(decision, 'unfinished'), coalesce(exploratory, false),
                      strftime(updated_at, '%Y-%m-%dT%H:%M:%SZ')
               FROM runs ORDER BY updated_at DESC, run"""
        ).fetchall()
    return tuple(RunLine(*row) for row in rows)
