"""Parity of a head: are a model's numbers those that its manifest says, computed from its own contextual rows?

The rows are the library's, before any head. Which row is read, which maps follow and what stands between them is the
manifest's; the maps' weights are read from the files that it names.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.parity import TOLERANCE, Parity
from harness.candidate.probe import relative_difference
from harness.candidate.runtime import go_offline, said
from harness.errors import HarnessError, NotAdmitted, Stopped
from harness.readout.pooling import first, last
from harness.readout.projection import Dense, LayerNorm, project
from harness.release.describe.heads import groups_of
from harness.release.describe.split import is_of, split, weight_files
from harness.release.folder import read_folder
from harness.release.manifest import Manifest, Tower

CLASSES = {
    "cls-head": "AutoModelForSequenceClassification",
    "token-head": "AutoModelForTokenClassification",
    "span-head": "AutoModelForQuestionAnswering",
}
# Architectures whose rows are what the model below the head gives last.
PROVEN = ("bert", "roberta", "xlm-roberta", "camembert", "distilbert", "electra", "albert", "mpnet")
ROW = {"cls": first, "lasttoken": last}


def provable(manifest: Manifest) -> bool:
    """Whether this is one tower with a head whose every step is known here."""
    towers = list(manifest.meaning.towers.values())
    return len(towers) == 1 and towers[0].readout.family in CLASSES and towers[0].artifact.model_type in PROVEN


def head_parity(folder: Path, manifest: Manifest, texts: Mapping[str, str], tolerance: float = TOLERANCE) -> Parity:
    """Holds a model's logits against the reference's, on texts by ID, or on each text paired with the next.

    A manifest that contradicts its files fails as one whose numbers differ does.
    Raises Stopped for a model that does not load.
    """
    [tower] = manifest.meaning.towers.values()
    try:
        tensors = _head(tower, folder)
        maps = [_map(tower, at, tensors) for at in range(len(tower.readout.projections))]
        found = {
            name: relative_difference(logits, _computed(rows, tower, maps))
            for name, rows, logits in _answers(folder, tower, texts)
        }
    except Stopped:
        raise
    except HarnessError as refusal:
        text = f"{refusal.subject}: {refusal.found}; expected: {refusal.expected}"
        return Parity("parity", float("inf"), tolerance, False, text)
    worst = max(found, key=lambda name: found[name])
    largest = found[worst]
    text = f"text {worst!r}: a logit is off by {largest:.2g} of the largest"
    return Parity("parity", largest, tolerance, bool(largest <= tolerance), text)


def _answers(
    folder: Path, tower: Tower, texts: Mapping[str, str]
) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.float32]]]:
    """By text, its rows [r, d] and what the model makes of them: [n] of a sequence head, else [r, n]."""
    go_offline()
    import torch
    import transformers

    options = {"local_files_only": True, "trust_remote_code": False}
    build: Any = getattr(transformers, CLASSES[tower.readout.family])
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(str(folder), **options)
        model = build.from_pretrained(str(folder), dtype=torch.float32, use_safetensors=True, **options).float().eval()
    except Exception as error:
        raise Stopped(
            f"model {folder}", found=f"it does not load ({said(error)})",
            expected="a folder that transformers loads offline",
            mend=f"Try it by hand: {CLASSES[tower.readout.family]}.from_pretrained({str(folder)!r}).",
        ) from error  # fmt: skip
    named = list(texts.items())
    for at, (name, text) in enumerate(named):
        paired = named[(at + 1) % len(named)][1] if tower.input.template == "pair" else None
        features = tokenizer(text, paired, truncation=True, max_length=tower.input.max_length, return_tensors="pt")
        with torch.inference_mode():
            rows = model.base_model(**features).last_hidden_state[0]
            output = model(**features)
        if tower.readout.family == "span-head":
            logits = torch.stack([output.start_logits[0], output.end_logits[0]], dim=-1)
        else:
            logits = output.logits[0]
        yield name, rows.numpy(), logits.numpy()


def _computed(rows: NDArray[np.float32], tower: Tower, maps: list[Dense | LayerNorm]) -> NDArray[np.float64]:
    every = rows.astype(np.float64)
    if tower.readout.family == "cls-head":
        [mode] = tower.readout.modes
        every = ROW[mode](every, np.ones(len(every), dtype=bool))[None]
    result = []
    for row in every:
        for each in maps:
            row = project(row, each)
        result.append(row)
    return np.array(result[0] if tower.readout.family == "cls-head" else result)


def _head(tower: Tower, folder: Path) -> Mapping[str, Mapping[str, NDArray[np.float32]]]:
    """By module, the tensors of what turns rows into numbers; a pooler counts as a part of it.

    Raises NotAdmitted where they are not those of the manifest.
    """
    from safetensors.torch import load_file  # NumPy has no bfloat16

    model, place, groups = read_folder(folder), PurePosixPath(), groups_of(tower)
    if split(model, place, groups).head.value != tower.artifact.head:
        raise NotAdmitted(
            "artifact.head", found="other weights, or none", expected=f"tensors with the digest {tower.artifact.head}",
            mend="Describe the model folder again, as it is now.",
        )  # fmt: skip
    every = {
        name: each.float().numpy()
        for file in weight_files(model, place)
        for name, each in load_file(folder / file).items()
        if any(is_of(group, name) for group in groups)
    }
    return {group: {name: each for name, each in every.items() if is_of(group, name)} for group in groups}


def _map(tower: Tower, at: int, head: Mapping[str, Mapping[str, NDArray[np.float32]]]) -> Dense | LayerNorm:
    """One step with its weights, found in its group by their shape; of two alike, the one that stands at its place."""
    said = tower.readout.projections[at]
    wanted = (said.width_out, said.width_in)
    for named in head.values():
        fitting = sorted(name for name, each in named.items() if name.endswith(".weight") and each.shape == wanted)
        if said.kind in ("dense", "pooler") and fitting:
            name = fitting[min(at, len(fitting) - 1)]
            bias = named.get(f"{name.removesuffix('.weight')}.bias") if said.bias else None
            return Dense(named[name], bias, said.activation)
    raise NotAdmitted(
        f"readout.projections, {said.kind} to {said.width_out}", found="no such weight in its files",
        expected=f"a weight of shape {list(wanted)}", mend="Describe the model folder again, as it is now.",
    )  # fmt: skip
