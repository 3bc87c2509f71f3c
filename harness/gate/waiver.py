"""Waivers: a named person's reason for letting one finding pass, until a date.

`waivers.toml` lies in the suite's folder. A waiver that is expired, blank or matches no finding is an error: it
would otherwise stand there and be forgotten.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from harness.errors import Misconfigured
from harness.file.toml import place, read_toml
from harness.gate.rule import Written
from harness.output.decision import Outcome, RuleResult

FILE = "waivers.toml"
Said = Annotated[str, Field(pattern=r"\S")]


class Waiver(BaseModel):
    """`expires` is exclusive; `finding` is the digest that the report prints beside a FAIL."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    rule: Said
    slice: Said
    reason: Written
    approver: Written
    expires: AwareDatetime
    finding: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Waivers(BaseModel):
    """The whole of `waivers.toml`."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_: Annotated[Literal["harness.waivers.v1"], Field(alias="schema")]
    waivers: list[Waiver] = []


def read(suite_folder: Path, now: datetime) -> tuple[Waiver, ...]:
    """The suite's waivers; none where there is no file. Raises Misconfigured for an expired one."""
    path = suite_folder / FILE
    if not path.exists():
        return ()
    waivers = tuple(read_toml(path, Waivers).waivers)
    for position, waiver in enumerate(waivers):
        subject = f"{place(path, 'waivers', position, 'expires')}: the waiver of {waiver.rule}"
        try:
            expired = waiver.expires <= now
            waiver.expires.astimezone(UTC)
        except OverflowError as refusal:
            raise Misconfigured(
                subject, found=f"it expires at {waiver.expires.isoformat()}",
                expected="a time between the years 1 and 9999 in UTC", mend="Write a date near enough to come.",
            ) from refusal  # fmt: skip
        if expired:
            raise Misconfigured(
                subject,
                found=f"it expired at {waiver.expires.astimezone(UTC).isoformat()}",
                expected="waivers that hold now",
                mend="Take it out, or have it approved again with a later date.",
            )
    return waivers


def places(suite_folder: Path, waivers: Sequence[Waiver]) -> tuple[str, ...]:
    """Where each of the suite's waivers names its finding: file and line."""
    return tuple(place(suite_folder / FILE, "waivers", position, "finding") for position in range(len(waivers)))


def apply(
    results: Sequence[RuleResult], waivers: Sequence[Waiver], others: Collection[str], where: Sequence[str]
) -> tuple[RuleResult, ...]:
    """The results with each waived FAIL reported WAIVED. `where`: file and line of each waiver.

    `others` are findings of other runs: a suite judges many candidates, and a waiver is for one of them.
    Raises Misconfigured for a waiver that meets no FAIL here and none of theirs, and for one that names a finding of
    this run by another rule or slice.
    """
    unmatched = dict(enumerate(waivers))
    waived = []
    for result in results:
        fail = (result.id, result.slice, result.finding) if result.outcome is Outcome.FAIL else None
        met = next((at for at, each in unmatched.items() if (each.rule, each.slice, each.finding) == fail), None)
        if met is not None:
            waiver = unmatched.pop(met)
            until = waiver.expires.astimezone(UTC).date()
            reason = f"waived by {waiver.approver} until {until}: {waiver.reason} ({result.reason})"
            result = replace(result, outcome=Outcome.WAIVED, reason=reason)
        waived.append(result)
    named = {result.finding: result for result in results if result.outcome is Outcome.FAIL}
    for at, left in unmatched.items():
        subject = f"{where[at]}: the waiver of {left.rule} on {left.slice}"
        meant = named.get(left.finding)
        if meant and (meant.id, meant.slice) != (left.rule, left.slice):
            raise Misconfigured(
                subject, found=f"its finding is that of {meant.id} on {meant.slice}",
                expected="the rule and the slice of the finding",
                mend=f'Write rule = "{meant.id}" and slice = "{meant.slice}".',
            )  # fmt: skip
        if meant or left.finding not in others:
            found = "another waiver of the same finding" if meant else f"no FAIL with the finding {left.finding[:16]}"
            raise Misconfigured(
                subject, found=found, expected="a waiver for each finding it names",
                mend="Take it out, or copy rule, slice and finding from the report.",
            )  # fmt: skip
    return tuple(waived)
