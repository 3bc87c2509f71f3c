"""Are a model's weights all there? By the library's own report of what it found in the files, and what it made up.

Whatever a checkpoint lacks, the library fills with random numbers and a warning. Nothing later can tell: the model
that is proven against the reference is then that same model.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from harness.candidate.runtime import go_offline, go_quiet, said
from harness.release.admit import Check
from harness.release.manifest import Manifest, Tower

# What the library builds for a tower, by what is read out of it.
BACKBONE = "AutoModel"
OF_HEADS = {
    "cls-head": "AutoModelForSequenceClassification",
    "token-head": "AutoModelForTokenClassification",
    "span-head": "AutoModelForQuestionAnswering",
    "choice-head": "AutoModelForMultipleChoice",
}
CLASSES = {"sparse": "AutoModelForMaskedLM", **OF_HEADS}
# Of these the library runs the encoder alone.
ENCODERS = {"t5": "T5EncoderModel", "mt5": "MT5EncoderModel", "umt5": "UMT5EncoderModel"}
# A backbone's pooler stands behind the rows that are read.
UNREAD = ("pooler.",)
NAME = "weights-complete"
EXPECTED = "every tensor of the model in the files, in its shape, and none that the model leaves unused"
MEND = "Fetch the weights again, or the configuration that they were saved with: what is missing would be random."
SHOWN = 3


def completeness(folder: Path, manifest: Manifest) -> Check:
    """Whether the model that the library makes of a folder has all its weights from there, and uses all it could.

    Loads the model once and lets go of it. A model that does not load is a broken check too.
    """
    faults: dict[str, None] = {}
    for name, tower in manifest.meaning.towers.items():
        faults |= dict.fromkeys(_faults(folder / manifest.place(name), tower))
    found = list(faults)
    if not found:
        return Check(NAME, True, "every tensor is the files' own", EXPECTED)
    more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
    return Check(NAME, False, "; ".join(found[:SHOWN]) + more, EXPECTED, MEND)


def _faults(folder: Path, tower: Tower) -> Iterator[str]:
    go_offline()
    import transformers

    name = CLASSES.get(tower.readout.family) or ENCODERS.get(tower.artifact.model_type, BACKBONE)
    go_quiet()
    try:
        model, report = getattr(transformers, name).from_pretrained(
            str(folder), output_loading_info=True, ignore_mismatched_sizes=True, use_safetensors=True,
            local_files_only=True, trust_remote_code=False,
        )  # fmt: skip
    except Exception as error:  # whatever the library raises of a folder, the folder is at fault
        yield f"the model does not load ({said(error)})"
        return
    read_whole = name != BACKBONE
    for tensor in sorted(report["missing_keys"]):
        if read_whole or not tensor.startswith(UNREAD):
            yield f"no {tensor}"
    for tensor, there, wanted in sorted(report["mismatched_keys"]):
        yield f"{tensor} has the shape {list(there)}, the model {list(wanted)}"
    yield from (f"{tensor}, which the model has no place for" for tensor in _unplaced(model, report))


def _unplaced(model: Any, report: Any) -> list[str]:
    """Tensors inside a part that the model has. Those of other parts, such as another task's head, are not its own."""
    parts = {name for name, _ in model.named_children()} | {name for name, _ in model.base_model.named_children()}
    prefix = f"{model.base_model_prefix}."
    return sorted(
        name for name in report["unexpected_keys"] if name.removeprefix(prefix).partition(".")[0] in parts - {"pooler"}
    )
