"""Cross-encoders: a query and a document are read together, and the model gives numbers of the two.

A pair's numbers are the head's own; the activation and the class that ranks are the release's, and applied after them.
A document that is longer than a window is read in several, each behind the whole query, whose numbers become one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Share, Tokens, Windows, width_of
from harness.candidate.cut import Kept, cut_pair, longest_first
from harness.candidate.encoder import Encoded, encode
from harness.candidate.open import hold, keys, loaded, positions, room_for_text
from harness.candidate.side import Features, Keys, Piece, go_without_advice, padded, rendered_digest
from harness.candidate.window import lay_out, parts, room_for_windows
from harness.errors import Misconfigured
from harness.readout.probability import log_softmax, sigmoid_mean_logits, softmax_mean_logits
from harness.readout.projection import activate
from harness.release.manifest import Score, Tower
from harness.release.open import Release
from harness.rows.windows import best

# Activations by which a larger raw number is never a smaller score.
RISING = ("identity", "tanh", "relu", "sigmoid", "softplus", "elu", "leaky-relu")
# From the raw numbers of windows to those that have the mean of their probabilities.
MEAN_PROBABILITIES = {"sigmoid": sigmoid_mean_logits, "softmax": softmax_mean_logits}


class Pair(NamedTuple):
    """Two texts that are read together, the query first."""

    query: str
    document: str


class PairEncoder:
    """A loaded cross-encoder. What is kept of a pair are its raw numbers, [1, l] for a head of `labels`.

    `prompt` stands before the query; `max_length` in tokens, special ones included, of what is read at once. `width`:
    raw numbers of a pair. `window`: how a longer document is read, None where both texts are cut. `core`: what makes
    the `scores` of a batch.
    """

    side = "pair"
    batch_tokens: int | None = None
    wake: Callable[[], None] | None = None
    """Puts the weights in, where they aren't there yet."""

    def __init__(
        self, model: Any, *, folder: Path, tower: Tower, score: Score, labels: Sequence[str], keys: Keys
    ) -> None:
        self.model, self.tokenizer, self.folder, self.keys = model, model.tokenizer, folder, keys
        go_without_advice(self.tokenizer)
        self.prompt, self.window = tower.input.prompts.get("pair", ""), tower.input.window
        self.max_length = tower.input.max_length if self.window is None else self.window.size
        self.core: Callable[[Features], Features] = model
        self.widest = positions(model[0].model.config)
        self._strategy, self._score, self._labels = tower.input.truncation, score, list(labels)
        self.width = int(model.num_labels)

    def encode(self, pairs: Sequence[Pair]) -> Encoded:
        """The raw numbers of pairs. A pair that makes the model raise fails alone."""
        return encode([self], pairs)[0]

    def digest(self, pair: Pair) -> str:
        """SHA-256 of both texts as they are rendered, a unit separator between them."""
        return rendered_digest(f"{self.prompt}{pair.query}\x1f{pair.document}")

    def query_digest(self, query: str) -> str:
        """SHA-256 of a query as it is rendered."""
        return rendered_digest(self.prompt + query)

    def tokenise(self, pairs: Sequence[Pair]) -> list[Tokens]:
        """Tokens of pairs with what each of the two texts keeps and loses: cut at `max_length`, or whole where the
        document is read in windows. A query that leaves no room for them makes this raise.
        """
        found = []
        for row, whole in enumerate(self._features(pairs)):
            cut = whole
            if whole.windows is None and len(whole) > self.max_length:
                cut = self._cut(whole, pairs[row])
            both = zip(cut.of_texts, whole.of_texts, strict=True)
            shares = tuple(Share(kept, every - kept) for kept, every in both)
            found.append(
                Tokens(cut.features, sum(share.lost for share in shares), shares=shares, windows=whole.windows)
            )
        return found

    def column_count(self, tokens: Tokens) -> int:
        if self.wake is not None:
            self.wake()
        return width_of(len(tokens), self.widest)

    def rows(self, tokens: Sequence[Tokens], width: int, padding_side: str | None = None) -> Features:
        """The whole forward pass: from a pair's rows the head makes `scores` [n, l] at once."""
        import torch

        features = padded(self.tokenizer, tokens, width, padding_side, self.model[0].model.device)
        with torch.inference_mode():
            return self.core(features)

    def read_out(self, features: Features, excluded: int = 0) -> list[Piece]:
        logits: NDArray[np.float32] = features["scores"].float().cpu().numpy()
        return [Piece(row[None]) for row in logits]

    def blank(self) -> Piece:
        return Piece(np.full((1, self.width), np.nan, dtype=np.float32))

    def fault(self, piece: Piece) -> str | None:
        return None

    def parts(self, tokens: Tokens) -> list[Tokens]:
        return parts(tokens)

    def join(self, tokens: Tokens, pieces: Sequence[Piece]) -> Piece:
        """[1, l]: the numbers of the window that ranks a pair highest, the earliest of equals, or the mean of all, or
        those of which the probabilities are the mean of all. What isn't finite in any of them stays so.
        """
        if len(pieces) == 1 or self.window is None:
            return pieces[0]
        every = np.concatenate([piece.values for piece in pieces])
        bad = np.flatnonzero(~np.isfinite(every).all(axis=1))
        if len(bad):
            return Piece(every[bad[:1]])
        if self.window.aggregation == "best":
            return Piece(every[best(self._telling(every)), None])
        if self.window.aggregation == "mean-of-probabilities":
            return Piece(MEAN_PROBABILITIES[self._score.activation](every)[None].astype(np.float32))
        return Piece(every.mean(axis=0, dtype=np.float64, keepdims=True).astype(np.float32))

    def _telling(self, logits: NDArray[np.float32]) -> NDArray[np.float64]:
        """[w], rising with the score of each window [w, l], and telling windows apart that the activation would not."""
        column = 0 if self._score.label is None else self._labels.index(self._score.label)
        if self._score.activation == "softmax":
            return log_softmax(logits, 1.0)[:, column]
        rising = self._score.activation in RISING
        return logits[:, column].astype(np.float64) if rising else activate(self._score.activation, logits)[:, column]

    def scores(self, logits: NDArray[np.floating], grid: float) -> NDArray[np.float64]:
        """What ranks, [n], from the raw numbers [n, l]: higher is better; NaN where one of them isn't finite.

        The raw numbers are put on the grid before the activation, which would crowd them together: most pairs that a
        sigmoid takes to nearly 1 are no ties.
        """
        finite = np.isfinite(logits).all(axis=1)
        # Adding 0 makes −0 into 0.
        steps = np.where(finite[:, None], np.rint(logits.astype(np.float64) / grid), 0.0) * grid + 0.0
        applied = activate(self._score.activation, steps)
        column = 0 if self._score.label is None else self._labels.index(self._score.label)
        return np.where(finite, applied[:, column], np.nan)

    def _cut(self, whole: "_Joined", pair: Pair) -> "_Joined":
        """A pair that is longer than `max_length`, cut to it."""
        if self._strategy != "longest_first":
            return self._features([pair], truncation=self._strategy, max_length=self.max_length)[0]
        special = len(whole) - sum(whole.of_texts)
        kept = longest_first(*whole.of_texts, self.max_length - special)
        features = cut_pair(whole.features, whole.texts, kept, self.tokenizer.truncation_side)
        return _Joined(features, (), kept, None)

    def _features(self, pairs: Sequence[Pair], **options: Any) -> list["_Joined"]:
        first, second = [self.prompt + pair.query for pair in pairs], [pair.document for pair in pairs]
        found = self.tokenizer(
            first, second, padding=False, verbose=False, return_offsets_mapping=self.window is not None,
            **{"truncation": False, **options},
        )  # fmt: skip
        offsets = found.pop("offset_mapping") if self.window is not None else None
        joined = []
        for row, pair in enumerate(pairs):
            texts = found.sequence_ids(row)
            windows = None if offsets is None or options else self._windows(pair, texts, offsets[row])
            features = {key: found[key][row] for key in found}
            joined.append(_Joined(features, texts, Kept(texts.count(0), texts.count(1)), windows))
        return joined

    def _windows(
        self, pair: Pair, texts: Sequence[int | None], offsets: Sequence[tuple[int, int]]
    ) -> Windows | None:  # fmt: skip
        """Of the document; None of one without a token."""
        if self.window is None:
            return None
        own = np.array([each == 1 for each in texts])
        return lay_out(self.window, own, np.array(offsets, dtype=np.int64).reshape(-1, 2), pair.document)


@dataclass(frozen=True, slots=True)
class _Joined:
    """A pair's features, which text each token is of, how many each of the two has, and the windows of the document."""

    features: dict[str, list[int]]
    texts: Sequence[int | None]
    of_texts: Kept
    windows: Windows | None

    def __len__(self) -> int:
        return len(self.features["input_ids"])


def load_cross(release: Release) -> PairEncoder:
    """A cross-encoder from an opened release.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for a maximum length that leaves no room for text, and where a head of several numbers ranks by none.
    """
    meaning, folder = release.manifest.meaning, release.model_folder
    tower = meaning.towers.get("pair")
    if folder is None or tower is None or meaning.interaction.kind != "cross":
        raise Misconfigured(
            f"release {release.name}", found=f"a {meaning.interaction.kind} release", expected="a cross-encoder",
            mend="Only a cross-encoder reads pairs.",
        )  # fmt: skip
    if reason := release.unranked:
        raise Misconfigured(
            f"release {release.name}", found=reason, expected="the class whose number is the score",
            mend='Add `label = "…"` to [score] in release.toml.',
        )  # fmt: skip
    model = loaded(release, "CrossEncoder")
    _hold(release, model)
    room_for_text(release.name, tower.input.max_length, model.tokenizer, pair=True)
    if tower.input.window is not None:
        prompt = tower.input.prompts.get("pair", "")
        around = model.tokenizer.num_special_tokens_to_add(pair=True) + len(
            model.tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"]
        )
        room_for_windows(release.name, tower.input.window, around)
    return PairEncoder(
        model, folder=folder, tower=tower, score=meaning.score, labels=meaning.output.labels or (),
        keys=_keys(release, tower),
    )  # fmt: skip


def _keys(release: Release, tower: Tower) -> Keys:
    """Rows are not kept apart from the numbers that the head makes of them."""
    found = keys(release, "pair", tower.input.prompts.get("pair", ""))
    return Keys(found.source, found.vector, found.vector)


def _hold(release: Release, model: Any) -> None:
    """What was loaded against the release's meaning."""
    meaning = release.manifest.meaning
    hold(
        f"release {release.name}",
        {
            "numbers": int(model.num_labels),
            "activation": type(model.activation_fn).__name__.lower(),
            "texts of tokens": "told" if model.tokenizer.is_fast else "none",
        },
        {"numbers": meaning.output.dimension, "activation": meaning.score.activation, "texts of tokens": "told"},
    )
