"""Source markers: does the installed library still mean what a manifest takes it to mean?

What each symbol does is found by running it, and held against `markers.json`, a reviewed file that says what it did
at the pinned revision and what this version of the harness relies on. A digest of its source tells two more things
apart: a source that changed and does the same, and a known source that was patched while running.
"""

import hashlib
import importlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from harness.candidate.behaviour import observe
from harness.release.manifest import Digest, Manifest, Tower

Kind: TypeAlias = Literal["policy moved", "behaves otherwise", "source changed", "not reviewed at the pins"]
REVIEWED = Path(__file__).with_name("markers.json")
UNANSWERED = "no answer"
Strict = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


class Fact(BaseModel):
    """A policy: at the pinned revision, None where it was not reviewed there, and as reviewed in the version that the
    harness is made for.
    """

    model_config = Strict

    fact: str
    pinned: str | None
    reviewed: str


class Symbol(BaseModel):
    """`at`: module and class, or function. `serves`: the manifest's fields whose meaning it holds up."""

    model_config = Strict

    symbol: str
    at: str
    serves: list[str]
    facts: list[Fact]


class Source(BaseModel):
    """A file of a library, by the SHA-256 over its bytes with CRLF turned to LF, and the revision that has it."""

    model_config = Strict

    file: str
    digest: Digest
    known_as: str


class Reviewed(BaseModel):
    """The whole of `markers.json`."""

    model_config = Strict

    schema_: Annotated[Literal["harness.markers.v1"], Field(alias="schema")]
    pinned: dict[str, str]
    reviewed: dict[str, str]
    sources: list[Source]
    symbols: list[Symbol]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to tell about a symbol. `fatal`: the reference no longer computes what the library does."""

    symbol: str
    kind: Kind
    fatal: bool
    text: str


@dataclass(frozen=True, slots=True)
class Marker:
    """One symbol, and what it does here.

    `contract`: the manifest's fields that it serves. `pinned`, `expected` and `observed`: its facts at the pinned
    revision (None where nobody reviewed it), as relied on, and as found by running it. `digest` is its source's (None
    where it has none to read), `known_as` the revision that has this source, None for an unknown one.
    """

    symbol: str
    contract: tuple[str, ...]
    pinned: Mapping[str, str | None]
    expected: Mapping[str, str]
    observed: Mapping[str, str]
    digest: str | None
    known_as: str | None

    @property
    def behaves(self) -> bool:
        """Whether it does all that is relied on. Only this decides; a digest never does."""
        return self.observed == self.expected

    @property
    def moved(self) -> tuple[str, ...]:
        """The policies that are no longer those of the pinned revision, in words."""
        return tuple(
            f"policy moved: {self.symbol} {fact} {found} (at the pinned revision: {self.pinned[fact]})"
            for fact, found in self.observed.items()
            if self.pinned.get(fact) is not None and found == self.expected[fact] != self.pinned[fact]
        )

    @property
    def findings(self) -> tuple[Finding, ...]:
        otherwise = [self._otherwise(fact) for fact in self.expected if self.observed.get(fact) != self.expected[fact]]
        found = [Finding(self.symbol, "behaves otherwise", True, text) for text in otherwise]
        found += [Finding(self.symbol, "policy moved", False, text) for text in self.moved]
        if self.behaves and None in self.pinned.values():
            text = f"{self.symbol}: behaves as relied on; not reviewed at the pinned revision"
            found.append(Finding(self.symbol, "not reviewed at the pins", False, text))
        if self.known_as is None:
            does = "the behaviour the same" if self.behaves else "and its behaviour"
            found.append(Finding(self.symbol, "source changed", False, f"{self.symbol}: source changed, {does}"))
        return tuple(found)

    def _otherwise(self, fact: str) -> str:
        found = self.observed.get(fact)
        if found is None:
            found = "; ".join(f"{key} {value}" for key, value in self.observed.items()) or UNANSWERED
        elif found == self.pinned[fact]:
            found += ", as at the pinned revision"
        return f"behaves otherwise: {self.symbol} {fact} {found} (relied on: {self.expected[fact]})"


@cache
def reviewed() -> Reviewed:
    """The reviewed facts. Raises ValueError for a file that departs from its schema."""
    return Reviewed.model_validate_json(REVIEWED.read_bytes())


def markers() -> tuple[Marker, ...]:
    """Every symbol relied on, run here and now: a second or less, and nothing is loaded but the libraries."""
    known = {source.digest: source.known_as for source in reviewed().sources}
    found = []
    for symbol in reviewed().symbols:
        digest = source_digest(symbol.at)
        found.append(
            Marker(
                symbol.symbol,
                tuple(symbol.serves),
                {fact.fact: fact.pinned for fact in symbol.facts},
                {fact.fact: fact.reviewed for fact in symbol.facts},
                observe(symbol.symbol),
                digest,
                None if digest is None else known.get(digest),
            )
        )
    return tuple(found)


def source_digest(at: str) -> str | None:
    """SHA-256 over the file that defines a class or function, CRLF turned to LF; `at` is `module:name`. None without a
    file.
    """
    module, _, name = at.partition(":")
    try:
        defined = getattr(importlib.import_module(module), name).__module__
        file = sys.modules[defined].__file__
        text = Path(str(file)).read_bytes()
    except (AttributeError, ImportError, KeyError, OSError):
        return None
    return hashlib.sha256(text.replace(b"\r\n", b"\n")).hexdigest()


def relied_on(manifest: Manifest) -> frozenset[str]:
    """The symbols on which this release's outputs depend.

    Heads are looked up for BERT alone: other architectures have classes of their own, which are not reviewed.
    """
    found: set[str] = set()
    for tower in manifest.meaning.towers.values():
        found |= _relied_on(tower)
    scored = {"cross": "CrossEncoder.predict", "late": "maxsim"}.get(manifest.meaning.interaction.kind)
    if scored is not None:
        found.add(scored)
    return frozenset(found)


def _relied_on(tower: Tower) -> set[str]:
    readout = tower.readout
    found = {f"Pooling {mode}" for mode in readout.modes} if readout.family == "pooled" else set()
    if readout.family == "pooled" and not tower.rows.prompt:
        found.add("Pooling prompt")
    found |= {"rows": {"MultiVectorMask"}, "sparse": {"SpladePooling"}}.get(readout.family, set())
    if readout.normalisation.kind != "none":
        found.add("Normalize")
    kinds = {projection.kind for projection in readout.projections}
    found |= {name for kind, name in (("dense", "Dense"), ("pooler", "BertPooler")) if kind in kinds}
    if readout.family == "pooled" and "layer-norm" in kinds:
        found.add("LayerNorm")
    heads = {
        "cls-head": {"BertForSequenceClassification", "BertPooler"},
        "token-head": {"BertForTokenClassification"},
        "span-head": {"BertForQuestionAnswering"},
    }
    return found | (heads.get(readout.family, set()) if tower.artifact.model_type == "bert" else set())
