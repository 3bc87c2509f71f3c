"""What reading texts was measured to take, and what a plan asks to be read: clocks, in nothing that is digested."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Pace:
    """What one run measured a forward pass to take over texts of one `side`: one row of `passes`.

    `tokens` are the texts' own, special ones included; `seconds` of the passes alone, by the wall; `measured_at` is in
    UTC.
    """

    run: str
    pass_key: str
    side: str
    measured_at: datetime
    texts: int
    tokens: int
    seconds: float
    threads: int
    backend: str
    machine: str

    @property
    def rate(self) -> float:
        """Tokens per second."""
        return self.tokens / self.seconds


@dataclass(frozen=True, slots=True)
class Encoding:
    """An action of the plan for which texts are encoded: one row of `plans`, without its run.

    `made_from`: the namespace whose rows it is made of instead. `pass_key` None where no model of the candidate reads
    the texts; `items` of so many, None where not known; `tokens` of those, None where the plan doesn't know them.
    """

    position: int
    action: str
    namespace: str
    made_from: str | None
    pass_key: str | None
    side: str | None
    items: int | None
    of_items: int | None
    tokens: int | None
