"""`harness runs`: what the store holds."""

from harness.store import account
from harness.store.account import RunLine
from harness.verb.place import find_place


def runs(*, store: str | None = None) -> tuple[RunLine, ...]:
    """Every run, the one last run or decided first. Raises NotFound without a store."""
    with find_place(store=store).store.reading() as connection:
        return account.runs(connection)
