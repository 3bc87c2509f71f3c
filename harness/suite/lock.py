"""What `freeze` fixes: `suite.lock.json`."""

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, ValidationError

from harness.errors import NotFound, Tampered
from harness.file.whole import write_bytes
from harness.identity import Json, canonical_json, digest
from harness.suite.definition import Role, SuiteDefinition
from harness.suite.leak import Leak
from harness.suite.slices import DeclaredSlice, declare

LOCK = "suite.lock.json"

Strict = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Dropped(BaseModel):
    """What the suite's own policy left out, counted."""

    model_config = Strict

    dangling: int
    unjudged: int
    candidates: int


class Identifiers(BaseModel):
    """Deduplication: exact duplicates never get in; equal after NFC, case folding and stripping is counted."""

    model_config = Strict

    exact_duplicates: Literal["refuse"] = "refuse"
    near_equal: Literal["warn"] = "warn"
    near_equal_count: int


class Lock(BaseModel):
    """A frozen suite. Lists of cases run in step: `roles[i]`, `groups[i]`, `case_digests[i]` are of `case_ids[i]`.

    `case_digests` are the first 16 digits of SHA-256 over all that a case is judged by: text, attributes, role,
    group, judgements, the texts of judged documents and candidates, or inputs and gold. `slices` holds case IDs of
    every role, in suite order, none of a slice that only a run fixes; `slice_entries` has of which entry of suite.toml
    each one is, and its place among all. `candidates`: document IDs by case; None where the whole corpus is searched.
    `window_parents`: the text of which a case is a window, by case. `leaks`: what of one role stands in another, with
    the waivers under which it may.
    `label_schema`: every label that the data may give. `revision`: of the data, where their format pins one.
    """

    model_config = Strict

    schema_: Annotated[Literal["harness.suite-lock.v1"], Field(alias="schema")]
    definition: SuiteDefinition
    files: dict[str, str]
    case_ids: tuple[str, ...]
    roles: tuple[Role, ...]
    groups: tuple[str, ...]
    case_digests: tuple[str, ...]
    slices: dict[str, tuple[str, ...]]
    slice_entries: dict[str, tuple[int, int]] = {}
    candidates: dict[str, tuple[str, ...]] | None
    documents: int
    grades: tuple[int, ...]
    top_grade: int
    label_schema: tuple[str, ...] | None
    revision: str | None = None
    identifiers: Identifiers
    dropped: Dropped
    window_parents: dict[str, str]
    leaks: tuple[Leak, ...] = ()
    tunes: dict[Role, tuple[str, ...]]
    scorers: dict[str, str]
    _written: Mapping[str, Json] | None = PrivateAttr(default=None)

    @cached_property
    def digest(self) -> str:
        """SHA-256 over the canonical JSON of the whole lock: what results are called by."""
        return digest(self.as_record())

    @cached_property
    def data_digest(self) -> str:
        """Digest of what outputs and gold depend on: unchanged when only rules, margins, slices or draws change."""
        given: dict[str, Json] = {} if self.candidates is None else {"candidates": self.candidates}
        if self.label_schema is not None:
            given["labels"] = self.label_schema
        ranking = self._definition.get("ranking")
        read = ranking.items() if isinstance(ranking, Mapping) else ()
        return digest(
            {
                **given,
                "task": self.definition.task,
                "files": self.files,
                "case_ids": self.case_ids,
                "roles": self.roles,
                "groups": self.groups,
                "case_digests": self.case_digests,
                "ranking": {name: value for name, value in read if name not in ("max_judged_gap", "candidates")},
            }
        )

    @cached_property
    def policy_digest(self) -> str:
        """Digest of everything that was chosen: rules, guards, slices, metrics, draws, scorers, how a ranking is read.

        Ties, depth and the like stand in both digests: they change outputs, and they are a choice.
        """
        policy = ("rules", "guards", "slices", "uncertainty", "metrics", "budget", "ranking")
        return digest(
            {
                "definition": {name: self._definition[name] for name in policy if name in self._definition},
                "members": self.slices,
                "missing": self.definition.cases.missing,
                "scorers": self.scorers,
            }
        )

    def as_record(self) -> Mapping[str, Json]:
        """The lock as JSON, without its own digest: as its file has it, where it was read from one. A version that
        knows more keys than the one that wrote it takes their defaults, and changes no digest.
        """
        if self._written is not None:
            return self._written
        record: dict[str, Json] = self.model_dump(mode="json", by_alias=True)
        return record

    @property
    def _definition(self) -> Mapping[str, Json]:
        definition = self.as_record()["definition"]
        return definition if isinstance(definition, Mapping) else {}

    @property
    def declared(self) -> tuple[DeclaredSlice, ...]:
        """Every slice, in the order of suite.toml."""
        entries = self.definition.slices
        placed = self.slice_entries or {str(each.name): (i, 0) for i, each in enumerate(entries)}
        return tuple(declare(name, i, entries[i]) for name, (i, _) in sorted(placed.items(), key=lambda each: each[1]))

    @property
    def guarded(self) -> tuple[str, ...]:
        """Slices under guard: `every` means every declared one."""
        guards = self.definition.guards
        if guards is None:
            return ()
        return tuple(each.name for each in self.declared) if guards.slices == "every" else tuple(guards.slices)

    def to_json(self) -> bytes:
        """The bytes of `suite.lock.json`: canonical JSON and a line feed, the lock's own digest beside the rest."""
        return canonical_json({**self.as_record(), "digest": self.digest}) + b"\n"


class _Written(Lock):
    """The lock as it stands in its file."""

    written_digest: Annotated[str, Field(alias="digest")]


def parse_lock(data: bytes, subject: str) -> Lock:
    """A lock from its bytes. Raises Tampered (naming `subject`) for what `to_json` cannot have written."""
    try:
        written = _Written.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        keys = ".".join(str(key) for key in first["loc"])
        raise _no_lock(subject, f"{keys}: {first['msg']}" if keys else first["msg"]) from error
    lock = Lock.model_validate({name: getattr(written, name) for name in Lock.model_fields})
    lock._written = {name: value for name, value in json.loads(data).items() if name != "digest"}
    if len({len(lock.case_ids), len(lock.roles), len(lock.groups), len(lock.case_digests)}) > 1:
        raise _no_lock(subject, "lists of cases that differ in length")
    if lock.digest != written.written_digest:
        raise _no_lock(subject, f"its contents have digest {lock.digest[:12]}…, it says {written.written_digest[:12]}…")
    return lock


def read_lock(folder: Path) -> Lock:
    """The lock in a suite's folder. Raises NotFound where there is none, Tampered as `parse_lock`."""
    path = folder / LOCK
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise NotFound(
            str(path), found="the suite is not frozen: no lock", expected="a frozen suite",
            mend=f"Run `harness freeze {folder}`.",
        ) from None  # fmt: skip
    except OSError as error:
        raise _no_lock(str(path), error.strerror or str(error)) from error
    return parse_lock(data, str(path))


def write_lock(lock: Lock, folder: Path) -> Path:
    """Puts the lock into the suite's folder, whole or not at all. Raises Stopped where it can't be written."""
    path = folder / LOCK
    write_bytes(path, lock.to_json())
    return path


def _no_lock(subject: str, found: str) -> Tampered:
    return Tampered(
        subject, found=found, expected="a lock as `harness freeze` wrote it",
        mend="Restore the file from version control, or freeze the suite again.",
    )  # fmt: skip
