"""One side's encoder: from texts to tokens, from tokens to contextual rows, from rows to what is kept of a text.

The library's modules compute; what is set here is what they are given and in which company. An encoder is given texts
and nothing else.
"""

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import OWNED, Tokens, width_of
from harness.candidate.runtime import said
from harness.candidate.window import lay_out, parts
from harness.errors import Stopped
from harness.release.manifest import Tower, Window

Side: TypeAlias = Literal["query", "document"]
SIDES: tuple[Side, ...] = ("query", "document")
# What modules hand on to one another, by the library's names: tensors, and here and there a number.
Features: TypeAlias = dict[str, Any]
# The library's name for the tokens that fill up a query, 1 where one stands.
FILLED = "query_expansion_positions"
# What the tokenizer pads not, and what it is of a text that does not say it.
BESIDE = {FILLED: 0, OWNED: 1}


@dataclass(frozen=True, slots=True)
class Piece:
    """What is kept of one text. Shapes: values [l, d] float32, one row for a single vector; indices [l] of a sparse
    vector, whose values are [l, 1], and else None. `counts` [k]: of several sparse vectors one behind another, how many
    weights each has.
    """

    values: NDArray[np.float32]
    indices: NDArray[np.int32] | None = None
    counts: NDArray[np.int64] | None = None

    def dense(self, width: int) -> NDArray[np.float32]:
        """[l, width], a sparse vector as one row with its zeros, several as one each."""
        if self.indices is None:
            return self.values
        counts = np.array([len(self.indices)]) if self.counts is None else self.counts
        rows = np.zeros((len(counts), width), dtype=np.float32)
        rows[np.repeat(np.arange(len(counts)), counts), self.indices] = self.values[:, 0]
        return rows


@dataclass(frozen=True, slots=True)
class Forwarded:
    """One batch of n texts in r columns, as the model was given it and what came of it.

    Shapes: rows [n, r, d] float32, the contextual rows before the readout; attended [n, r], False where padding
    stands; filled [n, r], True where a row fills up its text, attended or not; ids [n, r], the tokens; `pieces` [n],
    what is kept of each.
    """

    rows: NDArray[np.float32]
    attended: NDArray[np.bool_]
    filled: NDArray[np.bool_]
    ids: NDArray[np.int64]
    pieces: tuple[Piece, ...]

    @property
    def vectors(self) -> NDArray[np.float32]:
        """[n, w], of texts of which one vector is kept."""
        return np.concatenate([piece.values for piece in self.pieces])


@dataclass(frozen=True, slots=True)
class Keys:
    """What a side's tokens, contextual rows and vectors depend on: equal keys, equal results for equal input.

    `source` covers how a text becomes tokens; `rows` all that stands between tokens and contextual rows; `vector`
    that and the readout.
    """

    source: str
    rows: str
    vector: str


def rendered_digest(text: str) -> str:
    """SHA-256 of a text as the model is given it, though half a surrogate pair stand in it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def go_without_advice(tokenizer: Any) -> None:
    """The warning's advice, to pad while tokenizing, would pad all texts to one width."""
    tokenizer.deprecation_warnings["Asking-to-pad-a-fast-tokenizer"] = True


def tokens_around(tokenizer: Any, prompt: str, *, pair: bool = False) -> int:
    """Tokens that stand around a text, or a `pair` of them, whatever it is: special ones and a prompt's."""
    special: int = tokenizer.num_special_tokens_to_add(pair=pair)
    return special + len(tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"])


def padded(tokenizer: Any, tokens: Sequence[Tokens], width: int, padding_side: str | None, device: Any) -> Features:
    """A batch of texts, each filled up to `width` columns on the given side, the tokenizer's own where None."""
    options = {"padding": "max_length", "max_length": width, "return_tensors": "pt", "padding_side": padding_side}
    plain = [{key: value for key, value in text.features.items() if key not in BESIDE} for text in tokens]
    found: Features = dict(tokenizer.pad(plain, **options))
    for name, usual in BESIDE.items():
        if any(name in text.features for text in tokens):
            found[name] = _padded_beside(tokens, width, padding_side or tokenizer.padding_side, name, usual)
    return {key: value.to(device) for key, value in found.items()}


def _padded_beside(tokens: Sequence[Tokens], width: int, padding_side: str, name: str, usual: int) -> Any:
    import torch

    rows = []
    for text in tokens:
        own, blank = list(text.features.get(name, [usual] * len(text))), [0] * (width - len(text))
        rows.append(blank + own if padding_side == "left" else own + blank)
    return torch.tensor(rows)


class SideEncoder(ABC):
    """The modules of one side, the first of which gives contextual rows.

    `width`: columns of what is kept. `max_length` of what is read at once, in tokens, special ones included;
    `widest`: columns that a batch may have, for padding may pass the maximum length, but not the model's positions.
    `batch_tokens`: padded tokens that a batch may have, where its rows are so wide that the usual number would be
    too many. `task` is handed to modules that ask for it. `window`: how a longer text is read, None where it is
    cut. `wake`: puts the weights in, where they aren't there yet.
    """

    def __init__(
        self,
        modules: Sequence[Any],
        tokenizer: Any,
        *,
        folder: Path,
        prompt: str,
        width: int,
        max_length: int,
        widest: int,
        keys: Keys,
        side: Side,
        batch_tokens: int | None = None,
        task: Side | None = None,
        window: Window | None = None,
    ) -> None:
        self.modules, self.tokenizer, self.folder = list(modules), tokenizer, folder
        self.prompt, self.width, self.max_length, self.keys = prompt, width, max_length, keys
        self.side, self.widest, self.batch_tokens = side, widest, batch_tokens
        self._task, self.window = task, window
        self.wake: Callable[[], None] | None = None
        if window is not None:
            self.max_length = window.size
        go_without_advice(tokenizer)

    def waken(self, real: "SideEncoder") -> None:
        """Takes the modules of the same side, loaded with its weights."""
        self.modules, self.widest, self.wake = real.modules, real.widest, None

    @property
    def layers(self) -> int | None:
        """Layers of the encoder, as its configuration says."""
        count = getattr(self.modules[0].model.config, "num_hidden_layers", None)
        return count if isinstance(count, int) else None

    def digest(self, text: str) -> str:
        """SHA-256 of a text as it is rendered."""
        return rendered_digest(self.prompt + text)

    def excluded(self, prompt: str) -> int:
        """Tokens at the start that the readout leaves out."""
        return 0

    def said_by(self, tower: Tower) -> "SideEncoder":
        """This encoder, giving a text those rows besides its own that a manifest says."""
        return self

    def alone(self) -> "SideEncoder":
        """This encoder as it reads one window: a longer text is cut to the size of one."""
        if self.window is None:
            return self
        found = copy.copy(self)
        found.window = None
        return found

    def parts(self, tokens: Tokens) -> list[Tokens]:
        """What the model is given of a text: the whole of it, or its windows. Whoever made the tokens, the prompt's
        are left out as this encoder does.
        """
        return [replace(part, excluded=self._left_out) for part in parts(tokens)]

    @cached_property
    def _left_out(self) -> int:
        return self.excluded(self.prompt)

    def join(self, tokens: Tokens, pieces: Sequence[Piece]) -> Piece:
        """What is kept of a text, from what is kept of its parts."""
        return pieces[0] if len(pieces) == 1 else Piece(np.concatenate([piece.values for piece in pieces]))

    @abstractmethod
    def pieces(self, features: Features) -> list[Piece]:
        """What is kept of each text of a batch, once all modules are done."""

    @abstractmethod
    def blank(self) -> Piece:
        """What stands for a text that failed."""

    def fault(self, piece: Piece) -> str | None:
        """Why a text of which this is kept has failed all the same; None where it hasn't."""
        return None

    def tokenise(self, texts: Sequence[str], prompt: str | None = None, limit: int | None = None) -> list[Tokens]:
        """Tokens of texts behind the side's prompt, or another, cut at `max_length`, or at another length; whole where
        they are read in windows.
        """
        prompt = self.prompt if prompt is None else prompt
        if self.window is not None:
            return [self._whole(self.window, text, prompt) for text in texts]
        limit = limit or self.max_length
        rendered = [prompt + text for text in texts]
        whole = self._features(rendered, truncation=False)
        excluded = self.excluded(prompt)
        found = [Tokens(features, excluded=excluded) for features in whole]
        long = [row for row, features in enumerate(whole) if len(features["input_ids"]) > limit]
        if long:
            cut = self._features([rendered[row] for row in long], truncation="longest_first", max_length=limit)
            for row, features in zip(long, cut, strict=True):
                found[row] = Tokens(features, len(found[row]) - len(features["input_ids"]), excluded)
        return found

    def column_count(self, tokens: Tokens) -> int:
        """Columns of a padded text, which is asked only of what is computed now."""
        if self.wake is not None:
            self.wake()
        return width_of(len(tokens), self.widest)

    def rows(self, tokens: Sequence[Tokens], width: int, padding_side: str | None = None) -> Features:
        """Contextual rows of a batch as `token_embeddings` [n, width, d], beside all that the model was given."""
        import torch

        features = self._padded(tokens, width, padding_side)
        with torch.inference_mode():
            found: Features = self._run(self.modules[:1], features)
        return found

    def read_out(self, features: Features, excluded: int = 0) -> list[Piece]:
        """What the modules behind the first make of contextual rows. The features are used up."""
        import torch

        if excluded:
            features["prompt_length"] = excluded
        with torch.inference_mode():
            return self.pieces(self._run(self.modules[1:], features))

    def prompt_length(self, prompt: str) -> int:
        """Tokens that a prompt takes up at the start of a text, special ones before it included."""
        if not prompt:
            return 0
        [features] = self._features([prompt], truncation="longest_first", max_length=self.max_length)
        ids = features["input_ids"]
        return len(ids) - (ids[-1] in self.tokenizer.all_special_ids)

    def around(self, prompt: str) -> int:
        """Tokens around every text: special ones and a prompt's."""
        return tokens_around(self.tokenizer, prompt)

    def forward(
        self,
        texts: Sequence[str],
        prompt: str | None = None,
        *,
        width: int | None = None,
        padding_side: Literal["left", "right"] | None = None,
        max_length: int | None = None,
    ) -> Forwarded:
        """One batch exactly as asked, for whoever probes the model.

        `width` in columns, at least that of the longest text; that of an evaluation where None. `prompt`,
        `padding_side` and `max_length` as the release has them where None. Raises Stopped where the model raises.
        """
        return self._forward(lambda: self.tokenise(texts, prompt, max_length), width, padding_side)

    def forward_tokens(self, tokens: Sequence[Tokens], padding_side: Literal["left", "right"] | None) -> Forwarded:
        """As `forward`, of texts that are tokens already."""
        return self._forward(lambda: tokens, None, padding_side)

    def _forward(
        self, tokenise: Callable[[], Sequence[Tokens]], width: int | None, padding_side: str | None
    ) -> Forwarded:
        try:
            tokens = tokenise()
            longest = max(tokens, key=len)
            columns = self.column_count(longest) if width is None else max(width, len(longest))
            features = self.rows(tokens, columns, padding_side)
            rows, ids = features["token_embeddings"].float().cpu().numpy(), features["input_ids"].cpu().numpy()
            attended = (features["attention_mask"] == 1).cpu().numpy()
            filled = (features[FILLED] == 1).cpu().numpy() if FILLED in features else np.zeros_like(attended)
            pieces = self.read_out(features, longest.excluded)
        except Exception as error:
            raise Stopped(
                f"model {self.folder}", found=f"texts make it raise {said(error)}", expected="a vector for each",
                mend="Try them by hand with the library's own encode(…).",
            ) from error  # fmt: skip
        return Forwarded(rows.copy(), attended, filled, ids, tuple(pieces))

    def read(
        self,
        rows: NDArray[np.float32],
        attended: NDArray[np.bool_],
        prompt: str | None = None,
        ids: NDArray[np.int64] | None = None,
        filled: NDArray[np.bool_] | None = None,
    ) -> list[Piece]:
        """What the modules behind the first make of contextual rows [n, r, d], moved or made up by whoever probes.

        Shapes of attended, ids and filled: [n, r], as in Forwarded; no text is filled up where `filled` is None.
        """
        import torch

        on = self.modules[0].model.device
        features: Features = {
            "token_embeddings": torch.from_numpy(rows.copy()).to(on),
            "attention_mask": torch.from_numpy(attended.astype(np.int64)).to(on),
        }
        if ids is not None:
            features["input_ids"] = torch.from_numpy(ids).to(on)
        if filled is not None:
            features[FILLED] = torch.from_numpy(filled.astype(np.int64)).to(on)
        return self.read_out(features, self.excluded(self.prompt if prompt is None else prompt))

    def _whole(self, window: Window, text: str, prompt: str) -> Tokens:
        [features] = self._features(
            [prompt + text], truncation=False, return_offsets_mapping=True, return_special_tokens_mask=True
        )
        told = dict(features)
        offsets = np.array(told.pop("offset_mapping"), dtype=np.int64).reshape(-1, 2) - len(prompt)
        special = np.array(told.pop("special_tokens_mask"), dtype=np.bool_)
        own = ~special & (offsets[:, 1] > 0) if prompt else ~special
        windows = lay_out(window, own, np.maximum(offsets, 0), text)
        return Tokens(told, excluded=self.excluded(prompt), windows=windows)

    def _padded(self, tokens: Sequence[Tokens], width: int, padding_side: str | None) -> Features:
        return padded(self.tokenizer, tokens, width, padding_side, self.modules[0].model.device)

    def _run(self, modules: Sequence[Any], features: Features) -> Features:
        for module in modules:
            asks = "task" in getattr(module, "forward_kwargs", ())
            features = module(features, task=self._task) if asks else module(features)
        return features

    def _features(self, texts: Sequence[str], **options: Any) -> list[Mapping[str, list[int]]]:
        found = self.tokenizer(list(texts), padding=False, verbose=False, **options)
        return [{key: found[key][row] for key in found} for row in range(len(texts))]
