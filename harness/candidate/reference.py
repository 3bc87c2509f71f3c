"""From what a manifest says of a tower to the reference's recipe, with the weights that it names."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from harness.errors import NotAdmitted
from harness.identity import Json
from harness.readout.projection import Dense, LayerNorm
from harness.readout.reference import DENOMINATORS, Denominator, Mode, Normalisation, Recipe
from harness.release.describe.split import is_of, split, weight_files
from harness.release.folder import ModelFolder, read_folder
from harness.release.manifest import Projection, Readout, Tower
from harness.rows.mask import Counting

MODES: tuple[Mode, ...] = ("cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
# What the library's LayerNorm module adds to the variance; its configuration has no key for it. A marker holds it.
LAYER_NORM_EPSILON = 1e-5
PREFIXES = {"dense": "linear", "layer-norm": "norm"}


def recipe(tower: Tower, folder: Path) -> Recipe:
    """What a tower's manifest says, and nothing that its files say besides the projections' weights.

    Raises NotAdmitted for a manifest that its files contradict or that the reference cannot compute, Misconfigured
    for one that contradicts itself.
    """
    readout, rows, norm = tower.readout, tower.rows, tower.readout.normalisation
    if readout.family not in ("pooled", "rows"):
        raise refused("readout.family", readout.family, "pooled, or rows")
    if readout.family == "pooled" and (any(rows.skipped.values()) or any(rows.expansion.values())):
        raise refused("rows", "a skip list or a query expansion", "the rows of a pooled text, which have neither")
    if readout.max_active_dims is not None:
        raise refused("readout.max_active_dims", str(readout.max_active_dims), "none, as every value is kept")
    return Recipe(
        counting=Counting(special=rows.special, prompt=rows.prompt, expansion=rows.expansion_counts),
        modes=_modes(readout),
        denominators=_denominators(readout),
        weights=readout.weights,
        projections=tuple(_projection(one, folder) for one in readout.projections),
        normalisation=Normalisation(norm.kind, norm.epsilon, norm.stage),
        truncate_dim=readout.truncate_dim,
        renormalised=readout.renormalised,
        empty=readout.empty,
    )


def token_ids(tokenizer: Any, tokens: Sequence[str], field: str) -> list[int]:
    """Of tokens that a manifest names. Raises NotAdmitted for one that the tokenizer does not have."""
    ids: list[int | None] = [tokenizer.convert_tokens_to_ids(token) for token in tokens]
    for token, found in zip(tokens, ids, strict=True):
        if found is None or (found == tokenizer.unk_token_id and token != tokenizer.unk_token):
            raise refused(field, repr(token), "a token that the tokenizer has")
    return [found for found in ids if found is not None]


def refuse_tokenizer(tokenizer: Any, tower: Tower) -> None:
    """The rows were made by a tokenizer. Raises NotAdmitted for a manifest that says otherwise which tokens it puts
    around a text, or from which side it cuts one.
    """
    about = tower.input
    if (side := tokenizer.truncation_side) != about.truncation_side:
        raise refused("input.truncation_side", about.truncation_side, f"{side}, that of the tokenizer")
    for role, known in about.special_tokens.items():
        if (own := getattr(tokenizer, f"{role}_id", None)) != known:
            raise refused(f"input.special_tokens.{role}", str(known), f"{own}, that of the tokenizer")


def tensors_in(
    model: ModelFolder, place: PurePosixPath, wanted: Callable[[str], bool]
) -> dict[str, NDArray[np.float64]]:
    """The tensors of a place whose names are wanted, as float32 has them, in which models run.

    Raises NotAdmitted for a file that cannot be read.
    """
    from safetensors import SafetensorError, safe_open

    found: dict[str, NDArray[np.float64]] = {}
    for file in weight_files(model, place):
        try:
            # NumPy has no bfloat16.
            with safe_open(model.path / file, framework="pt") as stream:
                names = [name for name in stream.keys() if wanted(name)]  # noqa: SIM118
                found |= {name: stream.get_tensor(name).float().double().numpy() for name in names}
        except SafetensorError as error:
            raise refused(f"weights in {file}", f"a broken file ({error})", "safetensors") from error
    return found


def refused(field: str, found: str, expected: str) -> NotAdmitted:
    """A manifest that says what this model folder does not have."""
    return NotAdmitted(
        f"manifest, {field}", found=found, expected=expected, mend="Describe the model folder again, as it is now."
    )


def _modes(readout: Readout) -> tuple[Mode, ...]:
    if readout.family == "rows":
        if readout.modes:
            raise refused("readout.modes", ", ".join(readout.modes), "none, as every row is kept")
        return ()
    if not readout.modes or not set(readout.modes) <= set(MODES):
        raise refused("readout.modes", ", ".join(readout.modes) or "none", f"one or more of {', '.join(MODES)}")
    return tuple(cast(Mode, mode) for mode in readout.modes)


def _denominators(readout: Readout) -> tuple[Denominator, ...]:
    """One for each mode. The manifest has one in all, that of a mode that averages."""
    own = tuple(DENOMINATORS[mode] for mode in _modes(readout))
    averages = set(own) - {"none"}
    if readout.denominator not in (averages or {"none"}):
        expected = " or ".join(sorted(averages)) or "none"
        raise refused("readout.denominator", readout.denominator, f"{expected}, by the modes")
    return own


def _projection(said: Projection, folder: Path) -> Dense | LayerNorm:
    """In the shape and with the parts that the manifest states."""
    where = f"readout.projections, {said.kind} from {said.width_in} to {said.width_out}"
    if said.kind not in PREFIXES:
        raise refused(where, "no module of a pooled vector", "dense or layer-norm")
    tensors = _tensors(said, folder)
    weight = tensors.get(f"{PREFIXES[said.kind]}.weight")
    bias = tensors.get(f"{PREFIXES[said.kind]}.bias") if said.bias else None
    shape = (said.width_out, said.width_in) if said.kind == "dense" else (said.width_out,)
    if weight is None or weight.shape != shape:
        found = "no weight in its files" if weight is None else f"a weight of shape {list(weight.shape)}"
        raise refused(where, found, f"the shape {list(shape)}")
    if said.bias and bias is None:
        raise refused(where, "no bias in its files", "a bias")
    if said.kind == "layer-norm":
        return LayerNorm(weight, bias, LAYER_NORM_EPSILON)
    residual = None
    if said.residual:
        residual = np.eye(said.width_out) if said.width_in == said.width_out else tensors.get("residual.weight")
        if residual is None:
            raise refused(where, "no residual weight in its files", "a residual map between two widths")
    return Dense(weight, bias, said.activation.rpartition(".")[2].lower(), residual)


def _tensors(said: Projection, folder: Path) -> Mapping[str, NDArray[np.float64]]:
    """Wherever in the folder they are: by their digest."""
    if said.weights is None:
        return {}
    model = read_folder(folder)
    # A module's folder before the whole model's.
    places = sorted({PurePosixPath(file).parent for file in model.files}, key=lambda place: -len(place.parts))
    place = next((place for place in places if said.weights in _digests(model, place, PREFIXES[said.kind])), None)
    if place is None:
        raise refused("readout.projections", "other weights, or none", f"tensors with the digest {said.weights}")
    return tensors_in(model, place, lambda name: is_of(PREFIXES[said.kind], name) or name.startswith("residual."))


def _digests(model: ModelFolder, place: PurePosixPath, group: str) -> tuple[Json, Json]:
    """Of all weights in a place, and of those of one module among a backbone's, as Stanford's ColBERT keeps its map."""
    return split(model, place).backbone.value, split(model, place, (group,)).head.value
