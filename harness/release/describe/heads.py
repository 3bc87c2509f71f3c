"""The heads of transformers' own models: which rows they read, and the maps from there to their numbers.

Each was read in transformers 5.24, models/NAME/modeling_NAME.py and modeling_layers.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.identity import Json
from harness.release.describe.backbone import Backbone
from harness.release.describe.modules import unsupported
from harness.release.describe.pooled import normalisation, plain_vector
from harness.release.describe.told import DERIVED, LIBRARY, Told, Tree
from harness.release.manifest import Tower

Task: TypeAlias = Literal["sequence", "token", "question", "choice"]
FAMILIES: Mapping[Task, str] = {
    "sequence": "cls-head", "token": "token-head", "question": "span-head", "choice": "choice-head"
}  # fmt: skip
TASKS = {family: task for task, family in FAMILIES.items()}
SUFFIXES: Mapping[str, Task] = {
    "ForSequenceClassification": "sequence",
    "ForTokenClassification": "token",
    "ForQuestionAnswering": "question",
    "ForMultipleChoice": "choice",
}


@dataclass(frozen=True, slots=True)
class Step:
    """A map of a head. `group`: the module that holds its tensors. `activation` and `bias`: a value, or the
    configuration's key of that name where it begins with #.
    """

    kind: Literal["pooler", "dense", "layer-norm"]
    group: str
    activation: str = "identity"
    bias: bool | str = True


@dataclass(frozen=True, slots=True)
class Head:
    """`row`: the mode by which one row is taken (#KEY where the configuration says it); None where every row counts."""

    steps: tuple[Step, ...]
    row: str | None = None


def _dense(group: str, activation: str = "identity", bias: bool | str = True) -> Step:
    return Step("dense", group, activation, bias)


LAST = _dense("classifier")
POOLED = Head((Step("pooler", "pooler", "tanh"), LAST), "cls")
IN_ONE = Head((_dense("classifier", "tanh"), LAST), "cls")
CONTEXT = Head((Step("pooler", "pooler", "#pooler_hidden_act"), LAST), "cls")
DISTIL = Head((_dense("pre_classifier", "relu"), LAST), "cls")
MODERN = (
    _dense("head", "#classifier_activation", "#classifier_bias"), Step("layer-norm", "head", bias="#norm_bias"), LAST,
)  # fmt: skip
EVERY_ROW = Head((LAST,))
SPAN = Head((_dense("qa_outputs"),))
BERTS = ("bert", "albert", "roberta", "xlm-roberta", "camembert", "mpnet", "distilbert", "electra", "deberta-v2")
DECODERS = ("qwen2", "qwen3", "llama", "mistral", "gemma", "gemma2", "gemma3_text", "phi3")

HEADS: Mapping[Task, Mapping[str, Head]] = {
    "sequence": {
        "bert": POOLED, "albert": POOLED, "roberta": IN_ONE, "xlm-roberta": IN_ONE, "camembert": IN_ONE,
        "mpnet": IN_ONE, "electra": Head((_dense("classifier", "gelu"), LAST), "cls"), "distilbert": DISTIL,
        "deberta-v2": CONTEXT, "modernbert": Head(MODERN, "#classifier_pooling"),
        **dict.fromkeys(DECODERS, Head((_dense("score", bias=False),), "lasttoken")),
    },
    "token": {
        **dict.fromkeys(BERTS, EVERY_ROW), "modernbert": Head(MODERN),
        **dict.fromkeys(DECODERS, Head((_dense("score"),))),
    },
    "question": {
        **dict.fromkeys((*BERTS, *DECODERS), SPAN), "modernbert": Head(MODERN),
    },
    "choice": {
        **dict.fromkeys(("bert", "albert", "roberta", "xlm-roberta", "camembert", "mpnet"), POOLED),
        "distilbert": DISTIL, "deberta-v2": CONTEXT,
    },
}  # fmt: skip


def task_of(backbone: Backbone) -> Task:
    """By the first of the configuration's architectures. Raises NotAdmitted for one without a head that is known."""
    named = backbone.config.get("architectures")
    first = str(named[0]) if isinstance(named, list) and named else ""
    for suffix, task in SUFFIXES.items():
        if first.endswith(suffix):
            return task
    raise unsupported(
        str(backbone.config_file), f"the architecture {first or None!r}",
        f"one that ends in {', '.join(SUFFIXES)}",
    )  # fmt: skip


def head_of(backbone: Backbone, task: Task) -> Head:
    """Raises NotAdmitted for a head that isn't known."""
    head = HEADS[task].get(str(backbone.config.get("model_type")))
    if head is None:
        raise unsupported(
            str(backbone.config_file),
            f"the {task} head of a {backbone.config.get('model_type')!r}, which is not known here",
            f"one of {', '.join(sorted(HEADS[task]))}",
        )  # fmt: skip
    return head


def groups(head: Head) -> tuple[str, ...]:
    """The modules whose tensors are the head's."""
    return tuple(dict.fromkeys(step.group for step in head.steps))


def groups_of(tower: Tower) -> tuple[str, ...]:
    """The modules that a tower's head is made of; none where it has no head of transformers that is known."""
    task = TASKS.get(tower.readout.family)
    head = None if task is None else HEADS[task].get(tower.artifact.model_type)
    return () if head is None else groups(head)


def readout(backbone: Backbone, task: Task, head: Head, count: Told) -> Tree:
    """From contextual rows to `count` numbers: of one row, or of each."""
    row = None if head.row is None else _configured(backbone, head.row, "cls")
    mean = row is not None and row.value == "mean"
    steps = [_projection(backbone, step, count if step is head.steps[-1] else backbone.width) for step in head.steps]
    return {
        "family": Told(FAMILIES[task], DERIVED),
        "modes": Told([], DERIVED) if row is None else Told([row.value], row.source),
        "denominator": Told("counted rows" if mean else "none", LIBRARY),
        "weights": Told("none", LIBRARY),
        "projections": tuple(steps),
        "normalisation": normalisation(Told("none", LIBRARY), "none"),
        "truncate_dim": Told(None, LIBRARY),
        "renormalised": Told(None, LIBRARY),
        # One row is taken by its place, whatever the mask says.
        "empty": Told("reject" if row is None or mean else "fallback-row", LIBRARY),
        **plain_vector(),
    }


def _projection(backbone: Backbone, step: Step, out: Told) -> Tree:
    bias = _configured(backbone, step.bias, False) if isinstance(step.bias, str) else Told(step.bias, LIBRARY)
    return {
        "kind": Told(step.kind, LIBRARY),
        "width_in": backbone.width,
        "width_out": out,
        "bias": bias,
        "activation": _configured(backbone, step.activation, "gelu"),
        "residual": Told(False, LIBRARY),
        "weights": Told(None, DERIVED),
    }


def _configured(backbone: Backbone, said: str, usual: Json) -> Told:
    """A value, or what the configuration says under a #KEY, or where it doesn't, the library's usual value."""
    if not said.startswith("#"):
        return Told(said, LIBRARY)
    value = backbone.config.get(said[1:])
    return Told(usual, LIBRARY) if value is None else Told(value, f"{backbone.at('config.json')}#/{said[1:]}")
