"""Bi-encoders: one vector for each text, pooled from its rows."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.open import keys, loaded, positions, room_for_text
from harness.candidate.side import Features, Piece, Side, SideEncoder
from harness.errors import Misconfigured, NotAdmitted
from harness.release.bi import BiMeaning
from harness.release.open import Release
from harness.release.prompts import Prompts


class PooledSide(SideEncoder):
    """One side of a bi-encoder. `truncate_dim` cuts vectors after all modules."""

    def __init__(self, *arguments: Any, include_prompt: bool, truncate_dim: int | None, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._include_prompt, self._truncate_dim = include_prompt, truncate_dim

    def excluded(self, prompt: str) -> int:
        return 0 if self._include_prompt else self.prompt_length(prompt)

    def pieces(self, features: Features) -> list[Piece]:
        vectors: NDArray[np.float32] = features["sentence_embedding"][:, : self._truncate_dim].float().cpu().numpy()
        return [Piece(vector[None]) for vector in vectors]

    def blank(self) -> Piece:
        return Piece(np.full((1, self.width), np.nan, dtype=np.float32))


def load_bi(release: Release, prompts: Prompts) -> Encoder:
    """The encoder of both sides of an opened release.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for a maximum length that leaves no room for text.
    """
    meaning, folder = release.bi, release.model_folder
    if meaning is None or folder is None:
        raise Misconfigured(
            f"release {release.name}", found=f"a {release.definition.interaction} release", expected="a bi-encoder",
            mend="Only a bi-encoder can encode texts.",
        )  # fmt: skip
    model = loaded(release, "SentenceTransformer")
    modules = list(model.children())
    _apply(release.name, meaning, modules, model)
    room_for_text(release.name, meaning.max_length.value, model.tokenizer)
    said: dict[Side, str] = {"query": prompts.query, "document": prompts.document}
    sides = {
        side: PooledSide(
            modules,
            model.tokenizer,
            folder=folder,
            prompt=prompt,
            width=meaning.width,
            max_length=meaning.max_length.value,
            widest=positions(modules[0].model.config),
            keys=keys(release, side, prompt),
            include_prompt=meaning.include_prompt,
            truncate_dim=meaning.truncate_dim,
        )
        for side, prompt in said.items()
    }
    return Encoder(sides)


def _apply(name: str, meaning: BiMeaning, modules: Sequence[Any], model: Any) -> None:
    """Puts the override in place, and holds what was loaded against the release's meaning."""
    pooling = modules[1]
    if meaning.pooling.source == "declared":
        pooling.pooling_mode = meaning.pooling.value
        pooling.pooling_output_dimension = pooling.embedding_dimension
    modes = [pooling.pooling_mode] if isinstance(pooling.pooling_mode, str) else list(pooling.pooling_mode)
    expected = (meaning.pooling.value, meaning.include_prompt, meaning.width)
    found = ("+".join(modes), bool(pooling.include_prompt), model.get_embedding_dimension())
    if found != expected:
        raise NotAdmitted(
            f"release {name}", found="pooling {}, include_prompt {}, width {}".format(*found),
            expected="pooling {}, include_prompt {}, width {}".format(*expected),
            mend="The installed library reads the folder otherwise; install the version it was made for.",
        )  # fmt: skip
