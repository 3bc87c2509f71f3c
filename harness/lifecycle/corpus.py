"""Namespaces against the texts as they are now: which were made of others, and which only lack the latest."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from harness.lifecycle.compatibility import Behind, NamespaceState, Reuse
from harness.lifecycle.namespace import Corpus

# What holds one item for each document.
OF_TEXTS = ("contextual", "vector", "token-vector", "index")


def as_of(states: Sequence[NamespaceState], corpus: Corpus | None) -> tuple[NamespaceState, ...]:
    """States under the corpus that is declared; as they are without one, and where a namespace says nothing of its own.

    One that would be reusable is so still where its watermark is older, and the texts since are to be added; where it
    was made of other texts and no watermark tells which, it is unproven.
    """
    return tuple(states if corpus is None else (_as_of(state, corpus) for state in states))


def _as_of(state: NamespaceState, corpus: Corpus) -> NamespaceState:
    namespace = state.namespace
    if state.state is Reuse.INVALID or namespace.side not in (None, "document") or namespace.kind not in OF_TEXTS:
        return state
    if state.node is not None and "document" not in state.node:
        return state
    if _older(namespace.watermark, corpus.watermark):
        items = None if namespace.count is None or corpus.count is None else corpus.count - namespace.count
        items = None if items is None or items < 0 else items
        words = f"it follows the texts up to {namespace.watermark}, and they go to {corpus.watermark}"
        return replace(state, reason=f"{state.reason}; {words}", behind=Behind(items, corpus.count, words))
    if _other(namespace.watermark, corpus.watermark):
        words = f"it follows the texts up to {namespace.watermark}, which is not before {corpus.watermark}"
    elif _other(namespace.corpus, corpus.digest):
        words = f"it was made of the texts {str(namespace.corpus)[:16]}…, and they are {str(corpus.digest)[:16]}… now"
    else:
        return state
    return replace(state, state=Reuse.UNPROVEN, reason=f"{state.reason}, but {words}: hold its items against the texts")


def _older(one: str | datetime | None, other: str | datetime | None) -> bool:
    """Only times tell which is the earlier; of any other word, only whether it is the same."""
    if not isinstance(one, datetime) or not isinstance(other, datetime):
        return False
    return (one.tzinfo is None) == (other.tzinfo is None) and one < other


def _other(one: str | datetime | None, other: str | datetime | None) -> bool:
    return one is not None and other is not None and one != other
