"""What a configuration says of the model's sizes, held against itself and the shapes in the weights' headers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from harness.release.admit.check import Check
from harness.release.admit.tower import EMBEDDINGS, Seen, over

HEADS = ("num_attention_heads", "n_heads", "n_head", "num_heads")
# Where the width of a head is said by itself, the heads need not divide the model's.
WIDTH_OF_A_HEAD = ("head_dim", "d_kv")
MEND = "Restore config.json, or the weights that it was saved with: they don't belong together."


@dataclass(frozen=True, slots=True)
class Size:
    """Keys of a configuration that say how many rows some tensor has; `times`: how often it is in there."""

    check: str
    keys: tuple[str, ...]
    tensors: tuple[str, ...]
    times: int = 1
    least: int = 1


# As modeling_NAME.py of transformers 5.24 builds them; of a tensor or key that isn't here, the library's own report on
# what it loaded tells.
SIZES = (
    Size("vocabulary-size", ("vocab_size",), EMBEDDINGS),
    Size("position-rows", ("max_position_embeddings", "n_positions"), ("position_embeddings.weight", "wpe.weight")),
    Size("segment-rows", ("type_vocab_size",), ("token_type_embeddings.weight",), least=0),
    Size(
        "inner-width", ("intermediate_size", "hidden_dim", "d_ff"),
        (
            "intermediate.dense.weight", "ffn.lin1.weight", "mlp.gate_proj.weight", "mlp.up_proj.weight",
            "albert_layers.0.ffn.weight", "DenseReluDense.wi.weight", "DenseReluDense.wi_0.weight",
        ),
    ),
    # ModernBERT's gate and value stand in one matrix.
    Size("inner-width", ("intermediate_size",), ("mlp.Wi.weight",), times=2),
)  # fmt: skip


def shape_findings(towers: tuple[Seen, ...]) -> tuple[Check, ...]:
    """One check for each size, and one for the heads."""
    return (
        *(
            over(towers, check, partial(_sizes, check=check), "the size that config.json says", MEND)
            for check in dict.fromkeys(size.check for size in SIZES)
        ),
        over(towers, "heads-divide", _heads, "heads that share the model's width evenly", MEND),
    )


def _sizes(seen: Seen, check: str) -> Iterator[str]:
    for size in SIZES:
        if size.check == check:
            yield from _size(seen, size)


def _size(seen: Seen, size: Size) -> Iterator[str]:
    key = next((key for key in size.keys if key in seen.config), None)
    if key is None:
        return
    said = seen.config[key]
    if isinstance(said, bool) or not isinstance(said, int) or said < size.least:
        yield f"{key} {said!r}"
        return
    for name, tensor in sorted(seen.tensors.items()):
        if f".{name}".endswith(tuple(f".{each}" for each in size.tensors)) and tensor.shape[:1] != (said * size.times,):
            yield f"{key} {said} in config.json, {name} of the shape {list(tensor.shape)}"


def _heads(seen: Seen) -> Iterator[str]:
    key = next((key for key in HEADS if key in seen.config), None)
    if key is None:
        return
    heads, width = seen.config[key], seen.tower.state.width
    if isinstance(heads, bool) or not isinstance(heads, int) or heads < 1:
        yield f"{key} {heads!r}"
    elif width % heads and not any(key in seen.config for key in WIDTH_OF_A_HEAD):
        yield f"{heads} heads in a width of {width}"
