"""What running shows of a release that encodes texts: parity under each set of its prompts, and the probes."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from harness.candidate.encoder import Encoder
from harness.candidate.late_parity import late_parity
from harness.candidate.load import load_proven
from harness.candidate.parity import Parity, parity
from harness.candidate.probe import Probe, probe_texts, probes
from harness.candidate.side import SIDES, Side
from harness.candidate.sparse_parity import sparse_parity
from harness.candidate.sparse_window_parity import sparse_window_parity
from harness.candidate.window_parity import window_parity
from harness.release.manifest import Manifest
from harness.release.open import Release
from harness.release.prompts import Prompts

# A suite's own prompts change tokens and masks alone, so a few texts tell: short, cut, and empty.
ALSO = ("short", "truncated", "empty")


class Proof(Protocol):
    """Holds a loaded release against its manifest."""

    def __call__(
        self,
        encoder: Encoder,
        manifest: Manifest,
        texts: Mapping[str, str],
        *,
        suite: str | None = None,
        members: Mapping[Side, Manifest] | None = None,
    ) -> Parity: ...


PROOFS: Mapping[str, Proof] = {"bi": parity, "late": late_parity, "sparse": sparse_parity}


def proofs(release: Release, encoder: Encoder) -> Iterator[Parity | Probe]:
    """Parity with the usual prompts, which the encoder has, then for each suite with other ones, then every probe.

    Raises Stopped where the model does not load or raises, NotAdmitted where it is loaded otherwise than described.
    """
    manifest, proof = release.manifest, PROOFS[release.definition.interaction]
    texts = probe_texts(max(tower.input.max_length for tower in manifest.meaning.towers.values()))
    members = {side: release.encoder_of(side).manifest for side in SIDES}
    yield proof(encoder, manifest, texts, members=members)
    proven = sparse_window_parity if release.definition.interaction == "sparse" else window_parity
    joined = proven(encoder, manifest, texts)
    if joined is not None:
        yield joined
    few = {name: texts[name] for name in ALSO}
    for suite, prompts in suites_apart(release).items():
        shown = proof(load_proven(release, prompts), manifest, few, suite=suite, members=members)
        yield replace(shown, name=f"{shown.name}: prompts on {suite}")
    yield from probes(encoder, manifest)


def suites_apart(release: Release) -> Mapping[str, Prompts]:
    """Suites with prompts of their own, of several with the same ones the first by name."""
    named = sorted({suite for tower in release.manifest.meaning.towers.values() for suite in tower.input.suite_prompts})
    usual, found = release.prompts_for(), dict[str, Prompts]()
    for suite in named:
        prompts = release.prompts_for(suite)
        if prompts is not None and prompts not in (usual, *found.values()):
            found[suite] = prompts
    return found
