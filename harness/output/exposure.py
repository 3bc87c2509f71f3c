"""A reading of promotion outcomes, as the suite's ledger and the store both remember it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Exposure:
    """One run that read promotion outcomes: on which data, of which contents, under which policy.

    `outcomes` is the digest of the candidate's own rankings: a release that answers alike is no other candidate.
    `parameters`: what it makes of these outcomes, as canonical JSON; None where it has nothing of the kind.
    """

    run: str
    data: str
    policy: str
    candidate: str
    parent: str | None
    outcomes: str
    parameters: str | None = None
