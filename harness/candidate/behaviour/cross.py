"""What a cross-encoder's `predict` does to its pairs before the model, and to its scores after it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.candidate.behaviour.policy import UNKNOWN, Facts, fixed, named

LENGTHS = (3, 12, 7, 20, 5)
IN_ORDER = "in the order asked"


@dataclass(frozen=True, slots=True)
class _Predicted:
    """`scores` as returned, `logits` of the pairs in the order asked, and what the input module saw."""

    scores: Any
    logits: Any
    batches: list[list[int]]
    training: list[bool]


def predict() -> Facts:
    import torch

    one, three = _predicted(1), _predicted(3)
    asked, single = _predicted(3, softmax=True), _predicted(1, softmax=True)
    falling = sorted(LENGTHS, reverse=True)
    seen = [length for batch in one.batches for length in batch]
    return {
        "runs in": "training mode" if any(one.training) else "evaluation mode",
        "batches": {tuple(falling): "the longest pairs first", LENGTHS: IN_ORDER}.get(tuple(seen), UNKNOWN),
        "returns scores": named(
            one.scores,
            {IN_ORDER: one.logits[:, 0].sigmoid(), "the longest first": _longest_first(one.logits[:, 0].sigmoid())},
        ),
        "activates one label by default with": named(
            one.scores, {"sigmoid": one.logits[:, 0].sigmoid(), "nothing": one.logits[:, 0]}
        ),
        "activates several labels by default with": named(
            three.scores,
            {"nothing": three.logits, "softmax": three.logits.softmax(1), "sigmoid": three.logits.sigmoid()},
        ),
        "asked for softmax, gives several labels": named(
            asked.scores, {"softmax over the labels": asked.logits.softmax(1), "no softmax": asked.logits}
        ),
        "asked for softmax, gives one label": named(
            single.scores,
            {
                "its activation alone, being squeezed before": single.logits[:, 0].sigmoid(),
                "1 for every pair, being squeezed after": torch.ones(len(LENGTHS)),
            },
        ),
    }


def _longest_first(scores: Any) -> Any:
    return scores[sorted(range(len(LENGTHS)), key=lambda row: -LENGTHS[row])]


def _predicted(labels: int, *, softmax: bool = False) -> _Predicted:
    import torch
    from sentence_transformers import CrossEncoder
    from sentence_transformers.sentence_transformer.modules import Dense

    first = _length_module()
    last = fixed(lambda: Dense(1, labels, activation_function=torch.nn.Identity(), module_output_name="scores"))
    model = CrossEncoder(modules=[first, last], device="cpu").train()
    pairs = [["q", "d" * (length - 1)] for length in LENGTHS]
    scores = model.predict(
        pairs, batch_size=2, apply_softmax=softmax, convert_to_tensor=True, show_progress_bar=False
    )  # fmt: skip
    logits = last.linear(torch.tensor([[length / 10] for length in LENGTHS]))
    return _Predicted(scores, logits, first.batches, first.modes)


def _length_module() -> Any:
    """An input module whose one feature of a pair is how many characters its texts have, in tenths."""
    import torch

    class Lengths(torch.nn.Module):
        modalities = ("text", ("text", "text"))

        def __init__(self) -> None:
            super().__init__()
            self.batches: list[list[int]] = []
            self.modes: list[bool] = []

        def preprocess(self, inputs: Sequence[Sequence[str]], prompt: str | None = None) -> dict[str, Any]:
            self.batches.append([len(first) + len(second) for first, second in inputs])
            return {"sentence_embedding": torch.tensor([[length / 10] for length in self.batches[-1]])}

        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            self.modes.append(self.training)
            return features

    return Lengths()
