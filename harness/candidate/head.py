"""Heads of transformers: what they read of a case, and the numbers that they give of it.

Their numbers become labels, tags or an answer in `head_output`; here they are as the model gives them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Tokens, Windows, width_of
from harness.candidate.completeness import OF_HEADS
from harness.candidate.open import hold, keys, positions, room_for_text
from harness.candidate.runtime import device, go_offline, go_quiet, one_row_at_a_time, said
from harness.candidate.side import Features, Keys, Piece, go_without_advice, padded, rendered_digest
from harness.candidate.window import in_window, lay_out, parts
from harness.errors import Misconfigured, Stopped
from harness.release.manifest import Manifest, Owner, Tower
from harness.release.open import Release
from harness.rows.windows import word_owners

# Heads that give numbers of every row.
OF_ROWS = ("token-head", "span-head")


class Sample(NamedTuple):
    """What is read at once: a text, two that the tokenizer joins, or the words of one."""

    first: str | tuple[str, ...]
    second: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """What the tokens [r] of a sample stand for: the text (0, 1, or -1 for none), the word (-1 for none), and the
    characters of their own text, [r, 2], end exclusive.
    """

    texts: NDArray[np.int64]
    words: NDArray[np.int64]
    offsets: NDArray[np.int64]


class Loaded(NamedTuple):
    """A model with its head, and its tokenizer, as transformers has them."""

    model: Any
    tokenizer: Any


class HeadModel:
    """A loaded head. Of a sample are kept its numbers: [1, c], or of a head on every row [r, c] of its r tokens,
    without padding. `max_length` in tokens of all that is read at once, special ones included. `core`: what makes the
    `numbers` of a batch. `paired`: whether two texts are read at once.
    """

    side = "text"
    batch_tokens: int | None = None
    wake: Callable[[], None] | None = None
    """Puts the weights in, where they aren't there yet."""

    def __init__(self, loaded: Loaded, *, folder: Path, tower: Tower, width: int, keys: Keys) -> None:
        self.model, self.tokenizer, self.folder, self.keys = loaded.model, loaded.tokenizer, folder, keys
        go_without_advice(self.tokenizer)
        self.window, self.width = tower.input.window, width
        self.max_length = tower.input.max_length if self.window is None else self.window.size
        self.widest = positions(loaded.model.config)
        self._cut, self.family = tower.input.truncation, tower.readout.family
        self.paired = tower.input.template != "single"
        self.core = self._computed

    def digest(self, sample: Sample) -> str:
        """SHA-256 of what is read, the parts apart."""
        first = sample.first if isinstance(sample.first, str) else "\x1f".join(sample.first)
        parts = [first] if sample.second is None else [first, sample.second]
        return rendered_digest("\x1e".join(parts))

    def tokenise(self, samples: Sequence[Sample]) -> list[Tokens]:
        """Tokens of samples, cut at `max_length`, or whole where they are read in windows. One that leaves no room
        for its windows makes this raise.
        """
        return [
            Tokens(each.features, each.lost, windows=self._windows(sample, each.layout))
            for sample, each in zip(samples, self._read(samples), strict=True)
        ]

    def layouts(self, samples: Sequence[Sample]) -> list[Layout]:
        """What the tokens of samples stand for, as they are cut; of a span's sample, those of each of its windows."""
        every = [each.layout for each in self._read(samples)]
        if self.family != "span-head":
            return every
        apart = zip(every, (self._windows(*each) for each in zip(samples, every, strict=True)), strict=True)
        return [part for layout, windows in apart for part in _laid_out(layout, windows)]

    def parts(self, tokens: Tokens) -> list[Tokens]:
        return parts(tokens)

    def join(self, tokens: Tokens, pieces: Sequence[Piece]) -> Piece:
        """The numbers of all windows one after another; those of tokens once, from the window that owns their word."""
        windows = tokens.windows
        if windows is None or len(pieces) == 1:
            return pieces[0]
        if self.family != "token-head":
            return Piece(np.concatenate([piece.values for piece in pieces]))
        policy: Owner = "largest-context"
        if self.window is not None and self.window.owner is not None:
            policy = self.window.owner
        words = windows.words if windows.words is not None else np.full(int(windows.spans[-1, 1]), -1)
        owner = word_owners(windows.spans, words, policy)
        at = windows.head + np.arange(len(owner)) - windows.spans[owner, 0]
        own = np.stack([pieces[window].values[row] for window, row in zip(owner.tolist(), at.tolist(), strict=True)])
        first, last = pieces[0].values, pieces[-1].values
        return Piece(np.concatenate([first[: windows.head], own, last[len(last) - windows.tail :]]))

    def column_count(self, tokens: Tokens) -> int:
        if self.wake is not None:
            self.wake()
        return width_of(len(tokens), self.widest)

    def rows(self, tokens: Sequence[Tokens], width: int, padding_side: str | None = None) -> Features:
        """The whole forward pass: `numbers` [n, c], or [n, width, c] of a head on every row, beside what was given."""
        import torch

        given = padded(self.tokenizer, tokens, width, padding_side, self.model.device)
        with torch.inference_mode():
            return self.core(given)

    def _computed(self, given: Features) -> Features:
        import torch

        choices = self.family == "choice-head"
        # One choice at a time: how many there are, and of what lengths, must not change what one is worth.
        output = self.model(**({key: each[:, None] for key, each in given.items()} if choices else given))
        if self.family == "span-head":
            return {**given, "numbers": torch.stack([output.start_logits, output.end_logits], dim=-1)}
        return {**given, "numbers": output.logits}

    def read_out(self, features: Features, excluded: int = 0) -> list[Piece]:
        numbers: NDArray[np.float32] = features["numbers"].float().cpu().numpy()
        if self.family not in OF_ROWS:
            return [Piece(row[None]) for row in numbers]
        attended = (features["attention_mask"] == 1).cpu().numpy()
        return [Piece(rows[mask]) for rows, mask in zip(numbers, attended, strict=True)]

    def blank(self) -> Piece:
        rows = 0 if self.family in OF_ROWS else 1
        return Piece(np.full((rows, self.width), np.nan, dtype=np.float32))

    def fault(self, piece: Piece) -> str | None:
        return None

    def _windows(self, sample: Sample, layout: Layout) -> Windows | None:
        """Of the one text of a sample, or of that which is long: the other stands around each of its windows."""
        if self.window is None:
            return None
        long = self._long(sample)
        own = layout.texts == long
        if isinstance(sample.first, str):
            return lay_out(self.window, own, layout.offsets, str(sample[long]))
        # The tokenizer counts the characters of each word from 0.
        starts = np.cumsum([0, *(len(word) + 1 for word in sample.first)])
        offsets = layout.offsets + np.where(own, starts[layout.words], 0)[:, None]
        found = lay_out(self.window, own, offsets, " ".join(sample.first))
        return None if found is None else replace(found, words=layout.words[own])

    def _long(self, sample: Sample) -> int:
        """Which text of a sample is read in windows, 0 or 1."""
        return 0 if sample.second is None or (self.window is not None and self.window.text == "first") else 1

    def _read(self, samples: Sequence[Sample]) -> list["_Read"]:
        """Words and texts are never given together, nor pairs and single texts: the tokenizer takes lists of a kind."""
        found: dict[int, _Read] = {}
        for paired in (False, True):
            rows = [row for row, each in enumerate(samples) if (each.second is not None) == paired]
            if rows:
                found |= dict(zip(rows, self._alike([samples[row] for row in rows]), strict=True))
        return [found[row] for row in range(len(samples))]

    def _alike(self, samples: Sequence[Sample]) -> list["_Read"]:
        """As they are cut, or whole: of windows there is something to cut only where their own text has no token."""
        found = list(self._features(samples, truncation=False))
        long = [
            row for row, each in enumerate(found)
            if len(each) > self.max_length
            and not (self.window is not None and (each.layout.texts == self._long(samples[row])).any())
        ]  # fmt: skip
        if long:
            cut = self._features([samples[row] for row in long], truncation=self._cut, max_length=self.max_length)
            for row, each in zip(long, cut, strict=True):
                found[row] = _Read(each.features, each.layout, len(found[row]) - len(each))
        return found

    def _features(self, samples: Sequence[Sample], **options: Any) -> Iterator["_Read"]:
        words = not isinstance(samples[0].first, str)
        first = [each.first if isinstance(each.first, str) else list(each.first) for each in samples]
        second = None if samples[0].second is None else [each.second for each in samples]
        found = self.tokenizer(
            first, second, is_split_into_words=words, padding=False, verbose=False, return_offsets_mapping=True,
            **options,
        )  # fmt: skip
        offsets = found.pop("offset_mapping")
        for row, own in enumerate(offsets):
            layout = Layout(
                _numbered(found.sequence_ids(row)), _numbered(found.word_ids(row)),
                np.array(own, dtype=np.int64).reshape(-1, 2),
            )  # fmt: skip
            yield _Read({key: found[key][row] for key in found}, layout)


@dataclass(frozen=True, slots=True)
class _Read:
    """A sample's features, what they stand for, and how many tokens were cut."""

    features: dict[str, list[int]]
    layout: Layout
    lost: int = 0

    def __len__(self) -> int:
        return len(self.features["input_ids"])


def _laid_out(layout: Layout, windows: Windows | None) -> list[Layout]:
    if windows is None or len(windows.spans) == 1:
        return [layout]
    rows = [np.array(in_window(windows, range(len(layout.texts)), at)) for at in range(len(windows.spans))]
    return [Layout(layout.texts[at], layout.words[at], layout.offsets[at]) for at in rows]


def _numbered(given: Sequence[int | None]) -> NDArray[np.int64]:
    return np.array([-1 if each is None else each for each in given], dtype=np.int64)


def load_head(release: Release) -> HeadModel:
    """The head of an opened release.

    Raises Stopped where the library cannot load it, NotAdmitted where what it loads isn't what the release means,
    Misconfigured for another interaction, and for a maximum length that leaves no room for text.
    """
    manifest, folder = release.manifest, release.model_folder
    if folder is None or manifest.meaning.interaction.kind != "head":
        raise Misconfigured(
            f"release {release.name}", found=f"a {manifest.meaning.interaction.kind} release", expected="a head",
            mend="Only a head gives labels, tags, spans and choices.",
        )  # fmt: skip
    [(side, tower)] = manifest.meaning.towers.items()
    loaded = open_head(folder, tower)
    one_row_at_a_time(loaded.model, heads=True)
    _hold(release.name, loaded, manifest, tower)
    found = keys(release, "pair" if side == "pair" else "text", "")
    # Rows are not kept apart from the numbers that the head makes of them.
    return HeadModel(
        loaded, folder=folder, tower=tower, width=manifest.meaning.output.dimension,
        keys=Keys(found.source, found.vector, found.vector),
    )  # fmt: skip


def open_head(folder: Path, tower: Tower) -> Loaded:
    """A folder as transformers loads it: offline, without remote code, in float32, dropout off. Raises Stopped."""
    go_offline()
    go_quiet()
    import torch
    import transformers

    options = {"local_files_only": True, "trust_remote_code": False}
    build: Any = getattr(transformers, OF_HEADS[tower.readout.family])
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **options)
        model = build.from_pretrained(str(folder), dtype=torch.float32, use_safetensors=True, **options)
        return Loaded(model.float().eval().to(device()), tokenizer)
    except Exception as error:
        raise Stopped(
            f"model {folder}", found=f"it does not load ({said(error)})",
            expected="a folder that transformers loads offline",
            mend=f"Try it by hand: {OF_HEADS[tower.readout.family]}.from_pretrained({str(folder)!r}).",
        ) from error  # fmt: skip


def _hold(name: str, loaded: Loaded, manifest: Manifest, tower: Tower) -> None:
    """What was loaded against the release's meaning."""
    # Of choices there is one number each, whatever labels the configuration has.
    numbers = 1 if tower.readout.family == "choice-head" else int(loaded.model.num_labels)
    hold(
        f"release {name}",
        {"numbers": numbers, "words of tokens": "told" if loaded.tokenizer.is_fast else "none"},
        {"numbers": manifest.meaning.output.dimension, "words of tokens": "told"},
    )
    window = tower.input.window
    room = tower.input.max_length if window is None else window.size
    room_for_text(name, room, loaded.tokenizer, pair=tower.input.template != "single")
