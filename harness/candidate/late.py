"""Late interaction: a vector for each row of a text that counts."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import OWNED, Tokens
from harness.candidate.encoder import Encoder
from harness.candidate.open import hold, keys, loaded, positions, room_for_text
from harness.candidate.reference import refused, token_ids
from harness.candidate.side import FILLED, SIDES, Features, Piece, Side, SideEncoder
from harness.candidate.window import owning, room_for_windows
from harness.errors import Misconfigured
from harness.identity import Json
from harness.release.manifest import Tower
from harness.release.open import Release
from harness.release.prompts import Prompts

MAXSIM = {"maxsim": "sum", "meanmaxsim": "mean"}
NO_ROW = "none of its rows counts"


@dataclass(frozen=True, slots=True)
class Filling:
    """How a query gets more rows than it has tokens: `token` is put on one side of it until it has `length` of them.

    `attended`: whether the text's own rows see those. `strategy`: `fixed` where no query is longer, else `min`.
    """

    length: int
    strategy: Literal["fixed", "min"]
    token: int
    attended: bool
    side: Literal["left", "right"]

    def of(self, tokens: Tokens) -> Tokens:
        missing = max(0, self.length - len(tokens))
        fillers = {"input_ids": self.token, "attention_mask": int(self.attended), FILLED: 1}
        features = {}
        for name, values in {**tokens.features, FILLED: [0] * len(tokens)}.items():
            own, more = list(values), [fillers.get(name, 0)] * missing
            features[name] = more + own if self.side == "left" else own + more
        return replace(tokens, features=features, filled=missing)


class LateSide(SideEncoder):
    """One side of a late interaction. A text of which no row counts has failed."""

    def __init__(self, *arguments: Any, side: Side, filling: Filling | None, **options: Any) -> None:
        super().__init__(*arguments, side=side, task=side, **options)
        self.filling = filling

    def tokenise(self, texts: Sequence[str], prompt: str | None = None, limit: int | None = None) -> list[Tokens]:
        found = super().tokenise(texts, prompt, limit)
        return found if self.filling is None else [self.filling.of(tokens) for tokens in found]

    def said_by(self, tower: Tower) -> "LateSide":
        said = copy.copy(self)
        said.filling = filling_of(tower, self.side, self.tokenizer)
        mine, other = (each and each.strategy for each in (self.filling, said.filling))
        if mine != other:
            # Where no query may be longer than the least width, both do the same, and only the setting tells.
            raise refused("rows.expansion_strategy", str(other), str(mine))
        return said

    def parts(self, tokens: Tokens) -> list[Tokens]:
        """Each window keeps the rows of the tokens that it owns, and those of what stands around every one."""
        return super().parts(tokens) if self.window is None else owning(self.window, tokens, super().parts(tokens))

    def pieces(self, features: Features) -> list[Piece]:
        rows: NDArray[np.float32] = features["token_embeddings"].float().cpu().numpy()
        counted: NDArray[np.bool_] = features["attention_mask"].bool().cpu().numpy()
        if OWNED in features:
            counted &= features[OWNED].bool().cpu().numpy()
        return [Piece(every[mask]) for every, mask in zip(rows, counted, strict=True)]

    def blank(self) -> Piece:
        return Piece(np.empty((0, self.width), dtype=np.float32))

    def fault(self, piece: Piece) -> str | None:
        return None if len(piece.values) else NO_ROW


class LateEncoder(Encoder):
    """Both sides, and the library's own score of their rows."""

    def __init__(self, sides: Mapping[Side, LateSide], model: Any) -> None:
        super().__init__(sides)
        self._model = model

    def similarity(
        self, queries: Sequence[NDArray[np.float32]], documents: Sequence[NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """[q, k], each query's score with each document, from the rows [r, w] of each."""
        import torch

        with torch.inference_mode():
            sides = [[torch.from_numpy(rows) for rows in texts] for texts in (queries, documents)]
            scores: NDArray[np.float32] = self._model.similarity(*sides).cpu().numpy()
        return scores


def load_late(release: Release, prompts: Prompts) -> LateEncoder:
    """The encoder of both sides of an opened release.

    Raises Stopped where the libraries cannot load it, NotAdmitted where what they load isn't what the release means,
    Misconfigured for a maximum length that leaves no room for text.
    """
    meaning, folder = release.manifest.meaning, release.model_folder
    if meaning.interaction.kind != "late" or folder is None:
        raise Misconfigured(
            f"release {release.name}", found=f"a {meaning.interaction.kind} release", expected="late interaction",
            mend="Only late interaction keeps rows of texts.",
        )  # fmt: skip
    model = loaded(release, "MultiVectorEncoder") if release.definition.late is None else _own_rows(release)
    modules = list(model.children())
    sides = {}
    for side in SIDES:
        tower, prompt = meaning.towers[side], prompts.of(side)
        _hold(release, side, tower, model)
        room_for_text(release.name, tower.input.max_length, model.tokenizer)
        sides[side] = LateSide(
            modules,
            model.tokenizer,
            folder=folder,
            prompt=prompt,
            width=meaning.output.dimension,
            max_length=tower.input.max_length,
            widest=positions(modules[0].model.config),
            keys=keys(release, side, prompt),
            window=tower.input.window,
            side=side,
            filling=filling_of(tower, side, model.tokenizer),
        )
        if tower.input.window is not None:
            room_for_windows(release.name, tower.input.window, sides[side].around(prompt))
    return LateEncoder(sides, model)


def filling_of(tower: Tower, side: Side, tokenizer: Any) -> Filling | None:
    """How a side's texts are filled up by its manifest; None where they aren't.

    Raises NotAdmitted for half a policy, or a token that the tokenizer does not have.
    """
    rows = tower.rows
    length, strategy, token = rows.expansion.get(side, 0), rows.expansion_strategy, rows.expansion_token
    if not length:
        return None
    if strategy is None or token is None or rows.expansion_attended is None:
        raise refused("rows.expansion", f"{length} rows, strategy {strategy}, token {token}", "a whole policy, or none")
    [token_id] = token_ids(tokenizer, [token], "rows.expansion_token")
    # The library fills a fixed width where it would pad, and widens a least one at its end.
    place = tower.input.padding_side if strategy == "fixed" else "right"
    return Filling(length, strategy, token_id, rows.expansion_attended, place)


def _own_rows(release: Release) -> Any:
    """A bi-encoder's contextual rows as late interaction: the library alone would give them a random projection."""
    plain = loaded(release, "SentenceTransformer")
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    words = release.manifest.meaning.towers["document"].rows.skipped.get("document", [])
    modules = [plain[0], MultiVectorMask(list(words)), Normalize(module_input_name="token_embeddings")]
    on = str(next(plain.parameters()).device)
    return MultiVectorEncoder(modules=modules, device=on, similarity_fn_name="maxsim").float().eval()


def _hold(release: Release, side: Side, tower: Tower, model: Any) -> None:
    """Holds what was loaded against what the release means of one side."""
    declared = release.manifest.evidence.sources[f"towers.{side}.input.max_length"] == "declared"
    found, expected = _loaded(model, side), _said(release, side, tower, model.tokenizer)
    if declared or found["length"] is None:
        found = {**found, "length": expected["length"]}
    hold(f"release {release.name}, {side}", found, expected)


def _loaded(model: Any, side: Side) -> dict[str, Json]:
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    transformer, *rest = model.children()
    masks = [module for module in rest if isinstance(module, MultiVectorMask)]
    skipped = {
        token
        for mask in masks
        if side in mask.skiplist_tasks and mask._skiplist_ids is not None
        for token in mask._skiplist_ids.tolist()
    }
    filled = transformer.query_expansion if side == "query" else None
    length = transformer.query_length if side == "query" else transformer.document_length
    if filled is not None:
        length = filled["length"] if filled["strategy"] == "fixed" else length and max(length, filled["length"])
    token = filled and (filled["token"] or model.tokenizer.mask_token or model.tokenizer.eos_token)
    return {
        "maxsim": MAXSIM[model.similarity_fn_name],
        "width": model.get_embedding_dimension(),
        "projections": sum(isinstance(module, Dense) for module in rest),
        "unit length": any(isinstance(m, Normalize) and m.module_output_name == "token_embeddings" for m in rest),
        "masked": bool(masks),
        "kept by ID": any(mask.keep_only_token_ids for mask in masks),
        "skipped": sorted(skipped),
        "filled up": filled and [filled["strategy"], filled["length"], token, filled["attend"]],
        "length": length and min(length, positions(transformer.model.config)),
    }


def _said(release: Release, side: Side, tower: Tower, tokenizer: Any) -> dict[str, Json]:
    meaning, rows = release.manifest.meaning, tower.rows
    policy: list[Json] = [
        rows.expansion_strategy, rows.expansion.get(side), rows.expansion_token, rows.expansion_attended
    ]  # fmt: skip
    return {
        "maxsim": meaning.interaction.maxsim,
        "width": meaning.output.dimension,
        "projections": len(tower.readout.projections),
        "unit length": tower.readout.normalisation.kind == "l2",
        "masked": True,
        "kept by ID": False,
        "skipped": sorted(token_ids(tokenizer, rows.skipped.get(side, []), "rows.skipped")),
        "filled up": policy if rows.expansion.get(side) else None,
        "length": tower.input.max_length,
    }
