"""Bi-encoders: one vector for each text, pooled from its rows, by one encoder of both sides or by one for each."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import OWNED, Tokens
from harness.candidate.encoder import Encoder
from harness.candidate.open import Pipelines, hold, keys, loaded, pipelines, positions, room_for_text
from harness.candidate.side import SIDES, Features, Piece, Side, SideEncoder
from harness.candidate.window import owning, room_for_windows
from harness.errors import Misconfigured
from harness.identity import Json, digest
from harness.release.bi import BiMeaning, bi_meaning
from harness.release.field import sides_of
from harness.release.open import Release
from harness.release.prompts import Prompts
from harness.rows.mask import Counting, Masks, counted


class PooledSide(SideEncoder):
    """One side of a bi-encoder. `truncate_dim` cuts vectors after all modules.

    Where windows are joined and modules or a cut stand behind that, what is kept of a window is what precedes them: of
    a mean of vectors that behind which alone it is normalised, of rows the mean of those that count, and how many.
    """

    def __init__(self, *arguments: Any, include_prompt: bool, truncate_dim: int | None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._include_prompt, self._truncate_dim = include_prompt, truncate_dim
        self._after: list[Any] = []
        behind: Json = []
        if self._pools:
            self.modules, self._after, behind = self.modules[:2], self.modules[2:], ["pooling"]
        elif self.window is not None and self.window.normalise == "after":
            self.modules, self._after, behind = self.modules[:-1], self.modules[-1:], ["normalisation"]
        if behind or (self._averages and truncate_dim is not None):
            self.keys = replace(
                self.keys, vector=digest({"vector": self.keys.vector, "without": [behind, truncate_dim]})
            )

    @property
    def _averages(self) -> bool:
        """Whether the vectors of windows become one."""
        return self.window is not None and self.window.aggregation == "mean"

    @property
    def _pools(self) -> bool:
        """Whether the rows of windows become one vector."""
        return self.window is not None and self.window.aggregation == "rows"

    def alone(self) -> SideEncoder:
        found = super().alone()
        if isinstance(found, PooledSide) and found is not self:
            found.modules, found._after = [*self.modules, *self._after], []
        return found

    def waken(self, real: SideEncoder) -> None:
        super().waken(real)
        if isinstance(real, PooledSide):
            self._after = real._after

    def parts(self, tokens: Tokens) -> list[Tokens]:
        found = super().parts(tokens)
        return owning(self.window, tokens, found) if self.window is not None and self._pools else found

    def read_out(self, features: Features, excluded: int = 0) -> list[Piece]:
        """Of a window whose rows are to be joined, the rows of tokens that it does not own count as padding does."""
        if not self._pools:
            return super().read_out(features, excluded)
        attended = features["attention_mask"]
        if OWNED in features:
            features["attention_mask"] = attended * features[OWNED]
        counts = [_count(mask == 1, excluded) for mask in features["attention_mask"].cpu().numpy()]
        found = super().read_out(features, excluded)
        return [
            Piece(np.concatenate([piece.values, np.array([[count]], dtype=np.float32)], axis=1))
            for piece, count in zip(found, counts, strict=True)
        ]

    def join(self, tokens: Tokens, pieces: Sequence[Piece]) -> Piece:
        if not (self._averages or self._pools):
            return super().join(tokens, pieces)
        import torch

        every = np.concatenate([piece.values for piece in pieces])
        vector = _mean_of_rows(every) if self._pools else _mean(every)
        if self._after:
            if self.wake is not None and any(True for module in self._after for _ in module.parameters()):
                self.wake()
            with torch.inference_mode():
                features = self._run(self._after, {"sentence_embedding": torch.from_numpy(vector.copy())})
            vector = features["sentence_embedding"].float().cpu().numpy()
        return Piece(np.ascontiguousarray(vector[:, : self._truncate_dim]))

    def excluded(self, prompt: str) -> int:
        return 0 if self._include_prompt else self.prompt_length(prompt)

    def pieces(self, features: Features) -> list[Piece]:
        kept = None if self._averages or self._pools else self._truncate_dim
        vectors: NDArray[np.float32] = features["sentence_embedding"][:, :kept].float().cpu().numpy()
        return [Piece(vector[None]) for vector in vectors]

    def blank(self) -> Piece:
        return Piece(np.full((1, self.width), np.nan, dtype=np.float32))


def _mean(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """[1, d], of those of windows [w, d]; of a single one, itself."""
    if len(vectors) == 1:
        return vectors
    return np.asarray(vectors.mean(axis=0, dtype=np.float64, keepdims=True), dtype=np.float32)


def _mean_of_rows(means: NDArray[np.float32]) -> NDArray[np.float32]:
    """[1, d], the mean of all rows, from the windows' means and numbers of rows [w, d + 1]; of no row zeros, as of a
    single window.
    """
    vectors, counts = means[:, :-1], means[:, -1].astype(np.float64)
    if len(means) == 1:
        return vectors
    total = counts @ vectors.astype(np.float64)
    return np.asarray(total[None] / max(counts.sum(), 1), dtype=np.float32)


def _count(attended: NDArray[np.bool_], excluded: int) -> int:
    """How many rows [r] of a text its pooling takes, without those at its start that are left out."""
    masks = Masks(attended, prompt_length=excluded)
    return int(counted(masks, Counting(special=True, prompt=False, expansion=None)).sum())


def load_bi(release: Release, prompts: Prompts) -> Encoder:
    """The encoders of both sides of an opened release, each from the folder that its side has.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for a maximum length that leaves no room for text.
    """
    models: dict[Path, Pipelines] = {}
    sides: dict[Side, SideEncoder] = {}
    for side in SIDES:
        owner = release.encoder_of(side)
        if owner.folder not in models:
            models[owner.folder] = pipelines(loaded(owner, "SentenceTransformer"))
        sides[side] = _side(release, owner, side, prompts.of(side), models[owner.folder][side])
    return Encoder(sides)


def _side(release: Release, owner: Release, side: Side, prompt: str, modules: Sequence[Any]) -> PooledSide:
    meaning, folder = bi_meaning(owner.manifest, side), owner.model_folder
    if meaning is None or folder is None:
        raise Misconfigured(
            f"release {owner.name}", found=f"a {owner.definition.interaction} release", expected="a bi-encoder",
            mend="Only a bi-encoder can encode texts.",
        )  # fmt: skip
    _apply(owner.name, meaning, modules)
    room_for_text(owner.name, meaning.max_length.value, modules[0].tokenizer)
    window = sides_of(owner.manifest.meaning)[side].input.window
    if window is not None and window.normalise == "after":
        _hold_last(owner.name, modules)
    found = PooledSide(
        modules,
        modules[0].tokenizer,
        folder=folder,
        prompt=prompt,
        width=meaning.width,
        max_length=meaning.max_length.value,
        widest=positions(modules[0].model.config),
        keys=keys(release, side, prompt),
        side=side,
        window=window,
        include_prompt=meaning.include_prompt,
        truncate_dim=meaning.truncate_dim,
    )
    if window is not None:
        room_for_windows(owner.name, window, found.around(prompt))
    return found


def _hold_last(name: str, modules: Sequence[Any]) -> None:
    """A normalisation that is to stand after the mean of windows is the last module of each."""
    last = type(modules[-1]).__name__
    hold(f"release {name}", {"last module": last}, {"last module": "Normalize"})


def _apply(name: str, meaning: BiMeaning, modules: Sequence[Any]) -> None:
    """Puts the override in place, and holds what was loaded against the release's meaning."""
    pooling = modules[1]
    if meaning.pooling.source == "declared":
        pooling.pooling_mode = meaning.pooling.value
        pooling.pooling_output_dimension = pooling.embedding_dimension
    modes = [pooling.pooling_mode] if isinstance(pooling.pooling_mode, str) else list(pooling.pooling_mode)
    hold(
        f"release {name}",
        {
            "pooling": "+".join(modes),
            "include_prompt": bool(pooling.include_prompt),
            "width": _width(modules, meaning.truncate_dim),
        },
        {"pooling": meaning.pooling.value, "include_prompt": meaning.include_prompt, "width": meaning.width},
    )


def _width(modules: Sequence[Any], truncate_dim: int | None) -> int:
    """By the last module that says one, and then cut."""
    asked = [module.get_embedding_dimension() for module in modules if hasattr(module, "get_embedding_dimension")]
    said = [int(width) for width in asked if width is not None]
    return min(said[-1], truncate_dim or said[-1])
