"""What is deployed: the stores of reusable state that `releases/<name>/namespaces.toml` declares."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from harness.errors import Misconfigured
from harness.file.toml import place, read_toml
from harness.identity import Json
from harness.release.definition import Text
from harness.release.field import RERANKER, Kind
from harness.release.graph import Graph, Node
from harness.release.manifest import Digest, Side

FILE = "namespaces.toml"
NamespaceKind: TypeAlias = Literal[
    "contextual", "vector", "token-vector", "index", "pair-score", "calibrated", "decision", "baseline"
]
NODE_KIND: Mapping[NamespaceKind, Kind] = {
    "contextual": Kind.CONTEXTUAL,
    "vector": Kind.VECTOR,
    "token-vector": Kind.VECTOR,
    "index": Kind.INDEX,
    "pair-score": Kind.RAW_SCORE,
    "calibrated": Kind.CALIBRATED,
    "decision": Kind.DECISION,
}
OF_BASELINE = ("run", "suite_lock", "scorers")

Amount = Annotated[int, Field(ge=0)]


class Namespace(BaseModel):
    """One named store.

    `node` names the node of the release's graph that it keeps, where kind and side do not tell; `key` is that node's
    key, where another release than this one wrote it. `corpus`: digest of the texts it was made of; `watermark`: up to
    where it follows them. `count` in items, `bytes` as it lies there. `location`: an address, or a path from the
    release's folder, whose content may be fixed by `digest`. `runtime`: what wrote it, where that is not what the
    release says; `tolerance`: by how much a value may differ under another runtime.

    A `baseline` is a stored run of this release: its `run`, the digest of its suite's lock, its scorers' versions.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    name: Text
    kind: NamespaceKind
    side: Side | None = None
    node: Text | None = None
    key: Digest | None = None
    corpus: Text | None = None
    watermark: Text | datetime | None = None
    count: Amount | None = None
    bytes: Amount | None = None
    location: Text | None = None
    digest: Digest | None = None
    runtime: dict[str, JsonValue] = {}
    tolerance: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    run: Text | None = None
    suite_lock: Digest | None = None
    scorers: dict[str, str] | None = None

    @model_validator(mode="after")
    def _of_its_kind(self) -> "Namespace":
        for name in OF_BASELINE:
            if (getattr(self, name) is None) == (self.kind == "baseline"):
                raise ValueError(f"a {self.kind} namespace {'needs' if self.kind == 'baseline' else 'has no'} `{name}`")
        if self.kind == "baseline" and (self.node or self.key):
            raise ValueError("a baseline has neither `node` nor `key`: its suite's lock and its scorers tell it")
        return self

    def as_record(self) -> dict[str, Json]:
        """As it is written, without what is not said."""
        return self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)


class Corpus(BaseModel):
    """The texts as they are now: their digest, up to where they go, and how many they are, as far as it is known."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    digest: Text | None = None
    watermark: Text | datetime | None = None
    count: Amount | None = None


class Namespaces(BaseModel):
    """The whole of `namespaces.toml`. `corpus` is held against what each namespace says that it was made of."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    schema_: Annotated[Literal["harness.namespaces.v1"], Field(alias="schema")] = "harness.namespaces.v1"
    corpus: Corpus | None = None
    namespaces: list[Namespace] = []


def read(release_folder: Path) -> tuple[Namespace, ...]:
    """The namespaces that a release has in deployment; none where there is no file.

    Raises Misconfigured for a file that is not of this form, or a name that stands twice.
    """
    path = release_folder / FILE
    if not path.exists():
        return ()
    namespaces = read_toml(path, Namespaces).namespaces
    seen: set[str] = set()
    for position, namespace in enumerate(namespaces):
        if namespace.name in seen:
            raise Misconfigured(
                place(path, "namespaces", position, "name"), found=f"a second namespace {namespace.name!r}",
                expected="each name once", mend="Give it another name.",
            )  # fmt: skip
        seen.add(namespace.name)
    return tuple(namespaces)


def corpus_now(release_folder: Path) -> Corpus | None:
    """The texts as a deployment says that they are; None where it does not. Raises Misconfigured as `read` does."""
    path = release_folder / FILE
    return read_toml(path, Namespaces).corpus if path.exists() else None


def node_of(namespace: Namespace, graph: Graph) -> Node | None:
    """The node of a release's graph that a namespace keeps; None where it states a key that the graph lacks.

    Raises Misconfigured where the graph has no such node, or several and the namespace does not say which.
    """
    kind = NODE_KIND[namespace.kind]
    if namespace.key is not None:
        held = graph.holding(namespace.key)
        if held is not None and (held.kind is not kind or namespace.side not in (held.side, None)):
            raise Misconfigured(
                f"namespace {namespace.name!r}", found=f"the key of {held.name}",
                expected=f"a {namespace.kind} key" + (f" of the side {namespace.side}" if namespace.side else ""),
                mend="Give the key of the node that it keeps, as `harness admit` prints it.",
            )  # fmt: skip
        return held
    if namespace.node is not None:
        node = graph.find(namespace.node)
        if node is not None and node.kind is kind and namespace.side in (node.side, None):
            return node
    alike = [
        node
        for node in graph.nodes
        if node.kind is kind and (namespace.side is None or node.side in (namespace.side, None))
    ]
    if namespace.node is None:
        # A pair is scored by the second stage, and a release's own node goes before its parts'.
        for name in (f"{kind}:{namespace.side}", str(kind), f"{kind}:{RERANKER}"):
            found = next((node for node in alike if node.name == name), None)
            if found is not None:
                return found
        if len(alike) == 1:
            return alike[0]
    names = ", ".join(node.name for node in alike)
    raise Misconfigured(
        f"namespace {namespace.name!r}",
        found=f"no node {namespace.node!r}" if namespace.node else f"{len(alike)} nodes of kind {str(kind)!r}"
        + (f" on the side {namespace.side!r}" if namespace.side else ""),
        expected=f"one of {names}" if alike else "a node that the release has",
        mend="Say which with `node = …`, or give the `key` it was written under." if alike
        else "Correct its kind and side, or give the `key` it was written under.",
    )  # fmt: skip
