"""Plain heads of transformers: sequence, token, question answering, multiple choice."""

from collections.abc import Mapping
from typing import Literal

from harness.errors import Misconfigured
from harness.identity import Json
from harness.release.definition import ReleaseDefinition
from harness.release.describe.backbone import Backbone, artifact, input_of, read_backbone, rows, state
from harness.release.describe.beside import Beside
from harness.release.describe.heads import Task, groups, head_of, readout, task_of
from harness.release.describe.labels import Labels, labels_of, output_kind
from harness.release.describe.pooled import interaction, output
from harness.release.describe.split import split
from harness.release.describe.told import DECLARED, DERIVED, LIBRARY, Told, Tree, each_from
from harness.release.folder import ModelFolder

TEMPLATES: Mapping[Task, Literal["pair", "choices"]] = {"question": "pair", "choice": "choices"}
KINDS: Mapping[Task, str] = {"token": "tags", "question": "span", "choice": "choice"}
DECODERS = {"classes": "argmax", "multilabel": "sigmoid-threshold", "value": "none", "tags": "argmax",
            "span": "span-search", "choice": "argmax"}  # fmt: skip
# transformers' run_ner and run_qa, where release.toml does not say.
PIECES, LONGEST = "first", 30
NULL_ROW = "first row"
PROBABILITIES = {"classes": "softmax", "multilabel": "sigmoid", "tags": "softmax", "choice": "softmax"}


def head(definition: ReleaseDefinition, folder: ModelFolder, beside: Beside) -> Tree:
    """The meaning of a head on a model's own rows.

    Raises NotAdmitted for a head that isn't known, Misconfigured for what release.toml has to say and doesn't.
    """
    backbone = read_backbone(definition, folder, "")
    task = task_of(backbone)
    maps = head_of(backbone, task)
    kind = output_kind(definition, backbone) if task == "sequence" else _fixed(definition, backbone, task)
    labels = _labels(backbone, task)
    weights = split(folder, backbone.place, groups(maps))
    tower: Tree = {
        "artifact": artifact(backbone, weights.backbone, weights.head),
        "input": input_of(
            backbone, prompts=Told({}, DERIVED), suite_prompts=Told({}, DERIVED),
            template=TEMPLATES.get(task, "single"),
        ),
        "rows": rows(backbone),
        "state": state(backbone),
        "readout": readout(backbone, task, maps, labels.count),
    }  # fmt: skip
    return {
        "interaction": interaction("head"),
        "towers": {"pair" if task == "question" else "text": tower},
        "output": _output(definition, kind, labels, beside),
        "score": _score(definition, kind),
        "recording": Told(None, DERIVED),
    }


def _fixed(definition: ReleaseDefinition, backbone: Backbone, task: Task) -> Told:
    """The one kind that a task has."""
    kind, said = KINDS[task], definition.output.kind
    if said is not None and said != kind:
        raise Misconfigured(
            f"release {definition.name}", found=f"[output] kind {said!r}", expected=f"{kind!r}, of a {task} head",
            mend="Take `kind` out of release.toml.",
        )  # fmt: skip
    return Told(kind, f"{backbone.at('config.json')}#/architectures/0")


def _labels(backbone: Backbone, task: Task) -> Labels:
    if task == "question":
        return Labels(Told(["start", "end"], LIBRARY), Told(2, LIBRARY), Told(False, DERIVED))
    if task == "choice":
        return Labels(Told(None, LIBRARY), Told(1, LIBRARY), Told(False, DERIVED))
    return labels_of(backbone)


def _output(definition: ReleaseDefinition, kind: Told, labels: Labels, beside: Beside) -> Tree:
    said = definition.output
    if kind.value == "value" and said.regression is None:
        raise Misconfigured(
            f"release {definition.name}", found="a regression head", expected="what its numbers are in",
            mend="Add [output.regression] with `units`, `scale` and `shift` to release.toml.",
        )  # fmt: skip
    _decoding(definition, str(kind.value))
    usual = Told(DECODERS[str(kind.value)], LIBRARY)
    tree = output(
        "value", labels.count, labels=Told(None, DERIVED) if kind.value == "value" else labels.names,
        generic_labels=Told(False, DERIVED) if kind.value == "value" else labels.generic,
        null=Told(said.null, DECLARED), decoder=usual if said.decoder is None else Told(said.decoder, DECLARED),
        pieces=_usual(said.pieces, PIECES, kind.value == "tags"),
        longest=_usual(said.longest, LONGEST, kind.value == "span"),
        transitions=Told(beside.transitions, DECLARED),
    )  # fmt: skip
    regression: Tree = Told(None, DECLARED)
    if said.regression is not None:
        regression = each_from(said.regression.model_dump(), DECLARED)
    return {**tree, "kind": kind, "regression": regression}


def _usual(said: Json, usual: Json, applies: bool) -> Told:
    if said is not None:
        return Told(said, DECLARED)
    return Told(usual, LIBRARY) if applies else Told(None, DERIVED)


def _decoding(definition: ReleaseDefinition, kind: str) -> None:
    """Raises Misconfigured for a way of decoding that the head's kind does not have."""
    said, of = definition.output, f"of a head of {kind}"
    tags, span = kind == "tags", kind == "span"
    faults = {
        f"decoder {said.decoder!r} {of}": said.decoder is not None and not tags,
        f"pieces {said.pieces!r} {of}": said.pieces is not None and not tags,
        f"longest {said.longest} {of}": said.longest is not None and not span,
        f"null {said.null!r} {of}": span and said.null not in (None, NULL_ROW),
        f"pieces 'all-agree' and decoder {said.decoder!r}": said.pieces == "all-agree" and said.decoder is not None,
    }
    for found, broken in faults.items():
        if broken:
            raise Misconfigured(
                f"release {definition.name}", found=f"[output] {found}",
                expected="`decoder` and `pieces` of tags (a decoder needs a number for every tag of a word, which "
                f"'all-agree' does not give), `longest` of spans, and of those no null but {NULL_ROW!r}",
                mend="Take it out of release.toml.",
            )  # fmt: skip


def _score(definition: ReleaseDefinition, kind: Told) -> Tree:
    """Logits, or where release.toml says so the probabilities that they are read as."""
    said, of = definition.score, str(kind.value)
    if of == "multilabel" and said.threshold is None:
        raise Misconfigured(
            f"release {definition.name}", found="a head of several labels at once", expected="when a label counts",
            mend="Add `threshold` (one, or one for each label, in the scale of the score) to [score] in release.toml.",
        )  # fmt: skip
    probable = said.type == "probability"
    if probable and of not in PROBABILITIES:
        raise Misconfigured(
            f"release {definition.name}", found=f"[score] type 'probability' of a {of}", expected="'logit'",
            mend="Take `type` out of [score] in release.toml.",
        )  # fmt: skip
    applied = PROBABILITIES[of] if probable else "identity"
    usual = {"value": "value", "tags": "tags"}.get(of, "logit")
    return {
        "type": Told("probability", DECLARED) if probable else Told(usual, DERIVED),
        "low": Told(0.0 if probable else None, DERIVED),
        "high": Told(1.0 if probable else None, DERIVED),
        "higher_is_better": Told(True, LIBRARY),
        "sums_to": Told(1.0 if applied == "softmax" else None, DERIVED),
        "probability": Told(probable, DERIVED),
        "activation": Told(applied, DECLARED if probable else LIBRARY),
        "label": Told(None, DERIVED),
        "temperature": Told(said.temperature, DECLARED),
        "index": Told("none", DERIVED),
        "threshold": Told(said.threshold, DECLARED),
        "ties": Told("label-order", LIBRARY),
    }
