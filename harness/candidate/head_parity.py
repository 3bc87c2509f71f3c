"""Parity of a head: are a model's numbers those that its manifest says, computed from its own contextual rows?

The rows are the library's, before any head. Which row is read, which maps follow and what stands between them is the
manifest's; the maps' weights are read from the files that it names.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from harness.candidate.completeness import OF_HEADS
from harness.candidate.head import open_head
from harness.candidate.parity import TOLERANCE, Parity, measured, unprovable
from harness.candidate.probe import relative_difference
from harness.candidate.reference import LAYER_NORM_EPSILON, refuse_tokenizer, refused, tensors_in
from harness.errors import HarnessError, Stopped
from harness.readout.pooling import first, last, mean
from harness.readout.projection import Dense, LayerNorm, project
from harness.release.describe.heads import DECODERS, groups_of
from harness.release.describe.split import is_of, split
from harness.release.folder import read_folder
from harness.release.manifest import Manifest, Tower

# Heads that read one row of a text, or of each choice, or the mean of its rows.
OF_ONE_ROW = ("cls-head", "choice-head")
CHOICES = 3
# Architectures whose rows are what the model below the head gives last.
PROVEN = (
    "bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "albert", "mpnet", "deberta-v2",
    "modernbert", *DECODERS,
)  # fmt: skip
ROW = {"cls": first, "lasttoken": last, "mean": mean}


def provable(manifest: Manifest) -> bool:
    """Whether this is one tower with a head whose every step is known here."""
    towers = list(manifest.meaning.towers.values())
    return len(towers) == 1 and towers[0].readout.family in OF_HEADS and towers[0].artifact.model_type in PROVEN


def head_parity(folder: Path, manifest: Manifest, texts: Mapping[str, str], tolerance: float = TOLERANCE) -> Parity:
    """Holds a model's logits against the reference's, on texts by ID, on each text paired with the next, or on each
    with several others to choose from.

    A manifest that contradicts its files fails as one whose numbers differ does.
    Raises Stopped for a model that does not load.
    """
    [tower] = manifest.meaning.towers.values()
    try:
        maps = maps_of(tower, folder)
        found = {
            one.name: relative_difference(one.logits, rebuilt(one, tower, maps))
            for one in _answers(folder, tower, texts)
        }
    except Stopped:
        raise
    except HarnessError as refusal:
        return unprovable(refusal, tolerance)
    worst = max(found, key=lambda name: found[name])
    return measured(found[worst], tolerance, f"text {worst!r}: a logit", "of the largest")


@dataclass(frozen=True, slots=True)
class Answered:
    """One text, beside c − 1 others where it is one of c choices, padded to one width.

    Shapes: rows [c, r, d], counted [c, r]; logits [n] of a sequence head, [r, n] of one on every row, [c] of choices.
    """

    name: str
    rows: NDArray[np.float32]
    counted: NDArray[np.bool_]
    logits: NDArray[np.float32]


def maps_of(tower: Tower, folder: Path) -> list[Dense | LayerNorm]:
    """The maps from a row to the head's numbers, with the weights in its files. Raises NotAdmitted where they differ
    from the manifest's.
    """
    tensors = _head(tower, folder)
    return [_map(tower, at, tensors) for at in range(len(tower.readout.projections))]


def _answers(folder: Path, tower: Tower, texts: Mapping[str, str]) -> Iterator[Answered]:
    import torch

    model, tokenizer = open_head(folder, tower)
    refuse_tokenizer(tokenizer, tower)
    model = model.cpu()
    several = CHOICES if tower.input.template == "choices" else 1
    every = list(texts.values())
    for at, name in enumerate(texts):
        second = [every[(at + step) % len(every)] for step in range(1, several + 1)]
        given = tokenizer(
            [every[at]] * several, None if tower.input.template == "single" else second, padding=True,
            truncation=True, max_length=tower.input.max_length, return_tensors="pt",
        )  # fmt: skip
        with torch.inference_mode():
            rows = model.base_model(**given).last_hidden_state
            output = model(**(given if several == 1 else {key: value[None] for key, value in given.items()}))
        if tower.readout.family == "span-head":
            logits = torch.stack([output.start_logits[0], output.end_logits[0]], dim=-1)
        else:
            logits = output.logits[0]
        yield Answered(name, rows.numpy(), given["attention_mask"].bool().numpy(), logits.numpy())


def rebuilt(one: Answered, tower: Tower, maps: Sequence[Dense | LayerNorm]) -> NDArray[np.float64]:
    """The answer's logits, in their shape."""
    if tower.readout.family in OF_ONE_ROW:
        [mode] = tower.readout.modes
        read = [ROW[mode](rows, counted) for rows, counted in zip(one.rows, one.counted, strict=True)]
    else:
        read = list(one.rows[0].astype(np.float64))
    result = []
    for row in read:
        for each in maps:
            row = project(row, each)
        result.append(row)
    every = np.array(result)
    if tower.readout.family == "cls-head":
        return np.asarray(every[0])
    return every.ravel() if tower.readout.family == "choice-head" else every


def _head(tower: Tower, folder: Path) -> Mapping[str, Mapping[str, NDArray[np.float64]]]:
    """By module, the tensors of what turns rows into numbers; a pooler counts as a part of it.

    Raises NotAdmitted where they are not those of the manifest.
    """
    model, place, groups = read_folder(folder), PurePosixPath(), groups_of(tower)
    if split(model, place, groups).head.value != tower.artifact.head:
        raise refused("artifact.head", "other weights, or none", f"tensors with the digest {tower.artifact.head}")
    every = tensors_in(model, place, lambda name: any(is_of(group, name) for group in groups))
    return {group: {name: each for name, each in every.items() if is_of(group, name)} for group in groups}


def _map(tower: Tower, at: int, head: Mapping[str, Mapping[str, NDArray[np.float64]]]) -> Dense | LayerNorm:
    """One step with its weights, found in its group by their shape; of two alike, the one that stands at its place."""
    said = tower.readout.projections[at]
    norm = said.kind == "layer-norm"
    wanted = (said.width_out,) if norm else (said.width_out, said.width_in)
    for named in head.values():
        fitting = sorted(name for name, each in named.items() if name.endswith(".weight") and each.shape == wanted)
        if fitting:
            name = fitting[min(at, len(fitting) - 1)]
            bias = named.get(f"{name.removesuffix('.weight')}.bias") if said.bias else None
            if said.bias and bias is None:
                raise refused(f"readout.projections, {name}", "no bias in its files", "a bias")
            if norm:
                # Another epsilon is no part of a manifest: where the model has one, its numbers tell.
                return LayerNorm(named[name], bias, LAYER_NORM_EPSILON)
            return Dense(named[name], bias, said.activation)
    where = f"readout.projections, {said.kind} to {said.width_out}"
    raise refused(where, "no such weight in its files", f"a weight of shape {list(wanted)}")
