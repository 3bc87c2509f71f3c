"""Cross-encoders: a query and a document are read together, and the model gives numbers of the two.

A pair's numbers are the head's own; the activation and the class that ranks are the release's, and applied after them.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Share, Tokens, width_of
from harness.candidate.encoder import Encoded, encode
from harness.candidate.open import hold, keys, loaded, positions, room_for_text
from harness.candidate.side import Features, Keys, Piece, go_without_advice, padded, rendered_digest
from harness.errors import Misconfigured
from harness.readout.projection import activate
from harness.release.manifest import Score, Tower
from harness.release.open import Release


class Pair(NamedTuple):
    """Two texts that are read together, the query first."""

    query: str
    document: str


class PairEncoder:
    """A loaded cross-encoder. What is kept of a pair are its raw numbers, [1, l] for a head of `labels`.

    `prompt` stands before the query; `max_length` in tokens, special ones included, of both texts together. `width`:
    raw numbers of a pair.
    """

    side = "pair"
    batch_tokens: int | None = None

    def __init__(
        self, model: Any, *, folder: Path, tower: Tower, score: Score, labels: Sequence[str], keys: Keys
    ) -> None:
        self.model, self.tokenizer, self.folder, self.keys = model, model.tokenizer, folder, keys
        go_without_advice(self.tokenizer)
        self.prompt, self.max_length = tower.input.prompts.get("pair", ""), tower.input.max_length
        self.widest = positions(model[0].model.config)
        self._cut, self._score, self._labels = tower.input.truncation, score, list(labels)
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
        """Tokens of pairs, cut at `max_length`, with what each of the two texts keeps and loses."""
        whole = self._features(pairs)
        found = [Tokens(each.features, shares=tuple(Share(kept, 0) for kept in each.of_texts)) for each in whole]
        long = [row for row, each in enumerate(whole) if len(each.features["input_ids"]) > self.max_length]
        if long:
            cut = self._features([pairs[row] for row in long], truncation=self._cut, max_length=self.max_length)
            for row, each in zip(long, cut, strict=True):
                before = whole[row].of_texts
                shares = tuple(Share(kept, all_ - kept) for kept, all_ in zip(each.of_texts, before, strict=True))
                found[row] = Tokens(each.features, sum(share.lost for share in shares), shares=shares)
        return found

    def column_count(self, tokens: Tokens) -> int:
        return width_of(len(tokens), self.widest)

    def rows(self, tokens: Sequence[Tokens], width: int) -> Features:
        """The whole forward pass: from a pair's rows the head makes `scores` [n, l] at once."""
        import torch

        features = padded(self.tokenizer, tokens, width, None, self.model[0].model.device)
        with torch.inference_mode():
            found: Features = self.model(features)
        return found

    def read_out(self, features: Features, excluded: int = 0) -> list[Piece]:
        logits: NDArray[np.float32] = features["scores"].float().cpu().numpy()
        return [Piece(row[None]) for row in logits]

    def blank(self) -> Piece:
        return Piece(np.full((1, self.width), np.nan, dtype=np.float32))

    def fault(self, piece: Piece) -> str | None:
        return None

    def parts(self, tokens: Tokens) -> list[Tokens]:
        return [tokens]

    def join(self, tokens: Tokens, pieces: Sequence[Piece]) -> Piece:
        return pieces[0]

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

    def _features(self, pairs: Sequence[Pair], **options: Any) -> list["_Joined"]:
        first, second = [self.prompt + pair.query for pair in pairs], [pair.document for pair in pairs]
        found = self.tokenizer(first, second, padding=False, verbose=False, **{"truncation": False, **options})
        return [
            _Joined({key: found[key][row] for key in found}, _counts(found.sequence_ids(row)))
            for row in range(len(pairs))
        ]


class _Joined(NamedTuple):
    """A pair's features, and how many tokens each of the two texts has of them."""

    features: dict[str, list[int]]
    of_texts: tuple[int, int]


def _counts(sequences: Sequence[int | None]) -> tuple[int, int]:
    return sequences.count(0), sequences.count(1)


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
