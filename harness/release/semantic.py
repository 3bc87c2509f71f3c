"""The semantic tuple of a release: what it means, as values and as a graph."""

from collections.abc import Mapping
from dataclasses import dataclass

from harness.identity import Json
from harness.release.graph import Graph, graph
from harness.release.manifest import Manifest, Meaning


@dataclass(frozen=True, slots=True)
class SemanticTuple:
    """A release as it is held against another: its manifest, those of the releases it is composed of, its graph."""

    manifest: Manifest
    parts: Mapping[str, Manifest]
    graph: Graph

    @property
    def name(self) -> str:
        return self.manifest.identity.name

    @property
    def content_id(self) -> str:
        return self.manifest.identity.content_id

    @property
    def meaning(self) -> Meaning:
        return self.manifest.meaning

    @property
    def runtime(self) -> Mapping[str, Json]:
        """What computes: as observed, where it was, else as declared."""
        return {**self.manifest.runtime.declared, **self.manifest.runtime.observed}


def semantic_tuple(
    manifest: Manifest, parts: Mapping[str, Manifest] | None = None, corpus: str | None = None
) -> SemanticTuple:
    """A release with its graph.

    `parts`: by role, the releases that a two-stage or fused one is composed of. `corpus`: the digest of the documents
    that it searches, where they are known.
    """
    parts = parts or {}
    meanings = {role: part.meaning for role, part in parts.items()}
    return SemanticTuple(manifest, parts, graph(manifest.meaning, meanings, corpus))
