"""What of a loaded release a graph stands for, and in whose folder it lies."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from harness.candidate.batch import Tokens, each
from harness.candidate.cross import Pair, PairEncoder
from harness.candidate.encoder import Encoder
from harness.candidate.export import MASK, ROWS, Kind
from harness.candidate.head import OF_ROWS, HeadModel, Sample
from harness.candidate.late import LateSide
from harness.candidate.probe import probe_texts
from harness.candidate.side import FILLED, SIDES, Features, SideEncoder
from harness.candidate.sparse import SparseSide
from harness.identity import digest
from harness.release.item import item_keys
from harness.release.open import Release

# Tokens of a row of the vocabulary's entries, and how many rows are read together.
ENTRIES, TOGETHER = 16, 32

Loaded: TypeAlias = Encoder | PairEncoder | HeadModel
Reader: TypeAlias = SideEncoder | PairEncoder | HeadModel


@dataclass(frozen=True, slots=True)
class Graphed:
    """Some of a loaded release's computation: from tokens to `output`, by a name of the libraries.

    `owner`: the release whose model it is, in whose folder the graph lies under `name`. `reader`: who is given the
    output; all of `readers` share it. `module` has the weights, and `compute` uses them. `axes` of the output. `mask`:
    which of its rows are a text's, those of tokens that fill it up under `filled`; None where it has no rows. `of`:
    the key of what the output depends on.
    """

    owner: Release
    name: str
    kind: Kind
    output: str
    axes: tuple[str, ...]
    mask: str | None
    filled: str | None
    outside: tuple[str, ...]
    of: str
    readers: tuple[Reader, ...]
    module: Any
    compute: Callable[[Features], Features]

    @property
    def reader(self) -> Reader:
        return self.readers[-1]

    @property
    def inputs(self) -> Sequence[str]:
        """What the model reads, by the tokenizer's names."""
        return tuple(self.reader.tokenizer.model_input_names)

    def probes(self) -> list[Tokens]:
        """Texts of all lengths as the model is given them, windows one by one. What leaves no room is left out."""
        reader, texts = self.reader, list(probe_texts(self.reader.max_length).values())
        after = [*texts[1:], texts[0]]
        if isinstance(reader, SideEncoder):
            found = list(reader.tokenise(texts))
        elif isinstance(reader, PairEncoder):
            found = list(
                each(reader.tokenise, [Pair(*both) for both in zip(texts, after, strict=True)]).results.values()
            )
        else:
            second: Sequence[str | None] = after if reader.paired else [None] * len(texts)
            samples = [Sample(*both) for both in zip(texts, second, strict=True)]
            found = list(each(reader.tokenise, samples).results.values())
        return [part for tokens in found for part in reader.parts(tokens)]

    def entries(self) -> Iterator[list[Tokens]]:
        """Every entry of the vocabulary once, in batches of rows of one length that no text need have."""
        reader = self.reader
        every = sorted(set(reader.tokenizer.get_vocab().values()))
        rows = [every[start : start + ENTRIES] for start in range(0, len(every), ENTRIES)]
        tokens = [
            Tokens({name: row if name == "input_ids" else [int(name == MASK)] * len(row) for name in self.inputs})
            for row in rows
        ]
        for start in range(0, len(tokens) - 1, TOGETHER):
            yield tokens[start : min(start + TOGETHER, len(tokens) - 1)]
        yield tokens[-1:]

    def replace(self, instead: Any) -> None:
        """Puts what computes the same in the place of the model, in all that read it."""
        for reader in self.readers:
            if isinstance(reader, SideEncoder):
                reader.modules[0] = instead
            else:
                reader.core = instead
            reader.widest = min(reader.widest, instead.longest)


def graphed(release: Release, loaded: Loaded) -> list[Graphed]:
    """What of a loaded release another backend may compute, the sides of a shared encoder together."""
    if isinstance(loaded, PairEncoder):
        key = item_keys(release.manifest.meaning, "pair").vector
        return [_numbers(release, loaded, "pair", "scores", key)]
    if isinstance(loaded, HeadModel):
        [side] = release.manifest.meaning.towers
        key = item_keys(release.manifest.meaning, "pair" if side == "pair" else "text").vector
        return [_numbers(release, loaded, side, "numbers", key)]
    if release.members:
        return [_rows(release.encoder_of(side), _named(release.encoder_of(side), side), [loaded.sides[side]])
                for side in SIDES]  # fmt: skip
    query, document = (loaded.sides[side] for side in SIDES)
    if query.modules[0] is document.modules[0]:
        return [_rows(release, "both", [query, document])]
    return [_rows(release, "query", [query]), _rows(release, "document", [document])]


def _named(owner: Release, side: str) -> str:
    """Of a pair's member, under which name it has the graph of one side: what it shares between both goes by that."""
    return "both" if "both" in owner.manifest.meaning.towers else side


def _rows(owner: Release, name: str, sides: Sequence[SideEncoder]) -> Graphed:
    side, keys = sides[-1], item_keys(owner.manifest.meaning, "document" if name == "both" else name)
    logits, module = isinstance(side, SparseSide), side.modules[0]
    filled = any(isinstance(each, LateSide) and each.filling is not None for each in sides)
    return Graphed(
        owner,
        name,
        "row-logits" if logits else "rows",
        ROWS,
        ("batch", "width", "entry" if logits else "row"),
        MASK,
        FILLED if filled else None,
        tuple(type(other).__name__ for other in side.alone().modules[1:]),
        # The map to the vocabulary is part of what a sparse encoder reads out, and of the graph.
        digest({"rows": keys.rows, "vector": keys.vector}) if logits else keys.rows,
        tuple(sides),
        module,
        module,
    )


def _numbers(release: Release, reader: PairEncoder | HeadModel, name: str, output: str, key: str) -> Graphed:
    of_rows = isinstance(reader, HeadModel) and reader.family in OF_ROWS
    return Graphed(
        release,
        name,
        "row-logits" if of_rows else "logits",
        output,
        ("batch", "width", "number") if of_rows else ("batch", "number"),
        MASK if of_rows else None,
        None,
        (),
        key,
        (reader,),
        reader.model,
        reader.core,
    )
