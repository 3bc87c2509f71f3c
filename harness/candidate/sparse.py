"""Learned sparse encoders: one weight for each entry of the vocabulary, from a masked language model's logits."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Tokens
from harness.candidate.encoder import Encoder
from harness.candidate.open import hold, keys, loaded, pipelines, positions, room_for_text
from harness.candidate.runtime import device
from harness.candidate.side import Features, Piece, Side, SideEncoder
from harness.candidate.window import room_for_windows
from harness.errors import Misconfigured
from harness.identity import Json, digest
from harness.release.field import sides_of
from harness.release.manifest import Tower
from harness.release.open import Release
from harness.release.prompts import Prompts

# Logits in a batch: 64 MiB on a CPU, a few times over while they are pooled, and for each thread.
LOGITS = {"cpu": 1 << 24, "cuda": 1 << 28}
ACTIVATIONS = {"log1p-relu": "relu", "log1p-log1p-relu": "log1p_relu"}


class SparseSide(SideEncoder):
    """One side of a sparse encoder, whose first module's rows are logits. `keep`: how many weights, None for all; of a
    text in windows those of what they are joined to, so of a window all are kept, unless each is a vector of its own.
    """

    def __init__(self, *arguments: Any, keep: int | None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._keep = keep
        if self._joins and keep is not None:
            self.keys = replace(self.keys, vector=digest({"vector": self.keys.vector, "without": keep}))

    @property
    def _joins(self) -> bool:
        """Whether windows become one vector."""
        return self.window is not None and self.window.aggregation != "best"

    def pieces(self, features: Features) -> list[Piece]:
        keep = None if self._joins else self._keep
        return [_piece(vector) for vector in _largest(features["sentence_embedding"], keep)]

    def join(self, tokens: Tokens, pieces: Sequence[Piece]) -> Piece:
        """The largest weight that any window gives an entry, or the mean of all windows' weights; or the vectors of
        all windows one behind another.
        """
        if len(pieces) == 1 and not (self._joins and self._keep is not None):
            return pieces[0]
        if self.window is None or not self._joins:
            return _behind_one_another(pieces)
        import torch

        vector = pieces[0].dense(self.width)
        if len(pieces) > 1 and self.window.aggregation == "max":
            for piece in pieces[1:]:
                vector = np.maximum(vector, piece.dense(self.width))
        elif len(pieces) > 1:
            total = np.zeros(self.width)
            for piece in pieces:
                total += piece.dense(self.width)[0]
            vector = (total / len(pieces)).astype(np.float32)[None]
        return _piece(_largest(torch.from_numpy(vector), self._keep)[0])

    def blank(self) -> Piece:
        return Piece(np.full((1, 1), np.nan, dtype=np.float32), np.zeros(1, dtype=np.int32))

    def states(self, ids: NDArray[np.int64], attended: NDArray[np.bool_]) -> NDArray[np.float32]:
        """The rows [n, r, d] below the language model's head. Shapes: ids and attended [n, r], as in Forwarded."""
        import torch

        model = self.modules[0].model
        given = {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(attended.astype(np.int64))}
        with torch.inference_mode():
            below = model.base_model(**{name: value.to(model.device) for name, value in given.items()})
        found: NDArray[np.float32] = below.last_hidden_state.float().cpu().numpy()
        return found


def _behind_one_another(pieces: Sequence[Piece]) -> Piece:
    indices = [piece.indices for piece in pieces if piece.indices is not None]
    return Piece(
        np.concatenate([piece.values for piece in pieces]), np.concatenate(indices),
        np.array([len(piece.values) for piece in pieces], dtype=np.int64),
    )  # fmt: skip


def load_sparse(release: Release, prompts: Prompts) -> Encoder:
    """The encoders of both sides of an opened release.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for a maximum length that leaves no room for text.
    """
    meaning, folder = release.manifest.meaning, release.model_folder
    if meaning.interaction.kind != "sparse" or folder is None:
        raise Misconfigured(
            f"release {release.name}", found=f"a {meaning.interaction.kind} release", expected="a sparse encoder",
            mend="Only a sparse encoder weighs the vocabulary.",
        )  # fmt: skip
    model = loaded(release, "SparseEncoder")
    sides: dict[Side, SideEncoder] = {}
    for side, modules in pipelines(model).items():
        tower, prompt = sides_of(meaning)[side], prompts.of(side)
        _hold(release, tower, model, modules)
        room_for_text(release.name, tower.input.max_length, modules[0].tokenizer)
        sides[side] = SparseSide(
            modules,
            modules[0].tokenizer,
            folder=folder,
            prompt=prompt,
            width=meaning.output.dimension,
            max_length=tower.input.max_length,
            widest=positions(modules[0].model.config),
            keys=keys(release, side, prompt),
            side=side,
            window=tower.input.window,
            batch_tokens=max(1, LOGITS[device()] // meaning.output.dimension),
            keep=tower.readout.max_active_dims,
        )
        if tower.input.window is not None:
            room_for_windows(release.name, tower.input.window, sides[side].around(prompt))
    return Encoder(sides)


def _largest(vectors: Any, keep: int | None) -> NDArray[np.float32]:
    """[n, v], of vectors of the library, no more weights of each than are kept."""
    from sentence_transformers.util import select_max_active_dims

    found: NDArray[np.float32] = select_max_active_dims(vectors, keep).float().cpu().numpy()
    return found


def _piece(vector: NDArray[np.float32]) -> Piece:
    """What isn't a number counts as a weight, so that it is seen."""
    there = np.flatnonzero(vector)
    return Piece(vector[there, None], there.astype(np.int32))


def _hold(release: Release, tower: Tower, model: Any, modules: Sequence[Any]) -> None:
    """Holds what was loaded against the release's meaning."""
    transformer, pooling = modules
    readout = tower.readout
    expected: dict[str, Json] = {
        "task": "fill-mask",
        "pooling": "+".join(readout.modes),
        "activation": ACTIVATIONS[readout.projections[0].activation],
        "width": release.manifest.meaning.output.dimension,
        "max_active_dims": readout.max_active_dims,
        "score": release.score_type,
    }
    found = {
        "task": transformer.transformer_task,
        "pooling": pooling.pooling_strategy,
        "activation": pooling.activation_function,
        "width": transformer.model.get_output_embeddings().weight.shape[0],
        "max_active_dims": model.max_active_dims,
        "score": model.similarity_fn_name,
    }
    hold(f"release {release.name}", found, expected)
