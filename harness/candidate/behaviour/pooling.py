"""What becomes of the rows of a text: pooling, and the modules that may follow it."""

from collections.abc import Sequence
from typing import Any

from harness.candidate.behaviour.policy import Facts, fixed, named

# One text with padding on both sides, so that no position means two things.
ROWS = [[[3.0, -2.0], [1.0, 5.0], [-7.0, 4.0], [11.0, -6.0]]]
INNER = [[0, 1, 1, 0]]
LATE = [[0, 1, 1, 1]]
EARLY = [[1, 1, 1, 0]]
NONE = [[0, 0, 0, 0]]


def _pooled(mode: str, mask: Sequence[Sequence[int]], rows: Any = ROWS, **features: Any) -> Any:
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling

    given = {"token_embeddings": torch.as_tensor(rows), "attention_mask": torch.tensor(mask), **features}
    pooling = Pooling(2, mode, include_prompt="prompt_length" not in features)
    return pooling(given)["sentence_embedding"]


def cls() -> Facts:
    import torch

    first, counted = ROWS[0][0], ROWS[0][1]
    supplied = _pooled("cls", INNER, cls_token_embeddings=torch.tensor([[8.0, 9.0]]))
    known = {"the first row whose mask is 1": counted, "the physical first row": first}
    return {
        "reads": named(_pooled("cls", INNER), known),
        "prefers": named(supplied, {"a CLS row that is supplied": [8.0, 9.0], "the rows": counted}),
        "gives a text without counted rows": named(_pooled("cls", NONE), {"the physical first row": first}),
    }


def maximum() -> Facts:
    import torch

    below = -torch.tensor(ROWS).abs()
    nothing = float("-inf")
    return {
        "treats padding as": named(
            _pooled("max", INNER, below), {"minus infinity": [-1.0, -4.0], "zero": [0.0, 0.0], "rows": [-1.0, -2.0]}
        ),
        "gives a text without counted rows": named(
            _pooled("max", NONE), {"minus infinity": [nothing, nothing], "zero": [0.0, 0.0]}
        ),
    }


def mean() -> Facts:
    total = [-6.0, 9.0]
    by_count = {"how many rows count": [total[0] / 2, total[1] / 2], "the width": [total[0] / 4, total[1] / 4]}
    return {
        "divides by": named(_pooled("mean", INNER), by_count),
        "gives a text without counted rows": named(_pooled("mean", NONE), {"zero": [0.0, 0.0]}),
        "sums half-precision rows in": _half("mean"),
    }


def mean_sqrt() -> Facts:
    total, root = [-6.0, 9.0], 2**0.5
    known = {"the square root of how many rows count": [total[0] / root, total[1] / root]}
    return {
        "divides by": named(_pooled("mean_sqrt_len_tokens", INNER), known),
        "gives a text without counted rows": named(_pooled("mean_sqrt_len_tokens", NONE), {"zero": [0.0, 0.0]}),
        "sums half-precision rows in": _half("mean_sqrt_len_tokens"),
    }


def _half(mode: str) -> str:
    """Two rows whose sum is beyond float16, and 257 rows, more than bfloat16 can count, in one answer."""
    import torch

    root = mode == "mean_sqrt_len_tokens"
    tall = torch.full((1, 2, 2), 40000.0, dtype=torch.float16)
    long = torch.full((1, 257, 2), 3.0, dtype=torch.bfloat16)
    found = [_pooled(mode, [[1, 1]], tall), _pooled(mode, [[1] * 257], long)]
    if [vector.dtype for vector in found] != [torch.float16, torch.bfloat16]:
        return "another type, and leaves the result in it"
    exact = [40000.0 * (2**0.5 if root else 1), 3.0 * (257**0.5 if root else 1)]
    cast = torch.tensor([exact[0]]).half(), torch.tensor([exact[1]]).bfloat16()
    counted = torch.tensor([771.0]).bfloat16(), torch.tensor([257.0]).bfloat16()
    own = counted[0] / (counted[1].sqrt() if root else counted[1])
    known = {
        "float32, and casts the result back": [float(cast[0])] * 2 + [float(cast[1])] * 2,
        "their own type": [float("inf")] * 2 + [float(own)] * 2,
    }
    return named(torch.cat([vector.double() for vector in found], dim=1), known)


def weighted_mean() -> Facts:
    import torch

    rows = torch.tensor(ROWS)[0]
    by_content = (1 * rows[1] + 2 * rows[2]) / 3
    by_column = (2 * rows[1] + 3 * rows[2]) / 5
    behind = {
        "as without the exclusion": (2 * rows[1] + 3 * rows[2]) / 5,
        "from 1 again": (1 * rows[1] + 2 * rows[2]) / 3,
    }
    return {
        "weights count from": named(
            _pooled("weightedmean", INNER),
            {"the first row that isn't padding": by_content, "the physical first column": by_column},
        ),
        "weights behind an excluded prompt count": named(_pooled("weightedmean", EARLY, prompt_length=1), behind),
        "gives a text without counted rows": named(_pooled("weightedmean", NONE), {"zero": [0.0, 0.0]}),
    }


def last_token() -> Facts:
    last, counted = ROWS[0][3], ROWS[0][2]
    known = {"the last row whose mask is 1": counted, "the physical last row": last}
    return {
        "reads": named(_pooled("lasttoken", INNER), known),
        "gives a text without counted rows": named(_pooled("lasttoken", NONE), {"zero": [0.0, 0.0], "a row": last}),
    }


def prompt() -> Facts:
    import torch
    from sentence_transformers.sentence_transformer.modules import Pooling

    rows = torch.tensor(ROWS)
    left_out = {
        "as many rows as it has, from the first that isn't padding": rows[0, 2:].mean(0),
        "as many columns as it has": rows[0, 1:].mean(0),
    }
    given = {"token_embeddings": rows, "attention_mask": torch.tensor(LATE), "prompt_length": 1}
    after = Pooling(2, "mean", include_prompt=False)(dict(given))["attention_mask"]
    unless_told = Pooling(2, "mean")(dict(given, attention_mask=torch.tensor(LATE)))["sentence_embedding"]
    return {
        "leaves out": named(_pooled("mean", LATE, prompt_length=1), left_out),
        "counts its rows": named(unless_told, {"unless told otherwise": rows[0, 1:].mean(0)}),
        "shows later modules": named(after, {"the original mask": LATE, "the narrowed mask": [[0, 0, 1, 1]]}),
    }


def normalize() -> Facts:
    import torch
    from sentence_transformers.sentence_transformer.modules import Normalize

    def unit(vectors: Any) -> Any:
        return Normalize()({"sentence_embedding": torch.tensor(vectors)})["sentence_embedding"]

    given = torch.tensor([[3.0, 4.0], [6.0, 8.0]])
    by_vector = {
        "L2, of each sentence vector": [[0.6, 0.8], [0.6, 0.8]],
        "L2, of each dimension over the batch": given / given.norm(dim=0),
        "L1, of each sentence vector": given / given.sum(dim=1, keepdim=True),
    }
    tiny = unit([[1e-14, 0.0]])
    return {
        "scales to length 1 by": named(unit([[3.0, 4.0], [6.0, 8.0]]), by_vector),
        "divides at least by": named(tiny, {"1e-12": [[0.01, 0.0]], "the length, however small": [[1.0, 0.0]]}),
    }


def layer_norm() -> Facts:
    import torch
    from sentence_transformers.sentence_transformer.modules import LayerNorm

    norm = fixed(lambda: LayerNorm(2))
    # Of variance 1e-5, so that what is added to it shows.
    given = torch.tensor([[1.0, 1.0 + 2 * 1e-5**0.5]], dtype=torch.float64)
    found = norm.double()({"sentence_embedding": given})["sentence_embedding"]
    centred = given - given.mean(dim=1, keepdim=True)

    def scaled(by: Any) -> Any:
        return centred / by * norm.norm.weight + norm.norm.bias

    variance = centred.pow(2).mean()
    known = {
        name: scaled((variance + epsilon).sqrt())
        for name, epsilon in (("1e-5", 1e-5), ("1e-12", 1e-12), ("1e-6", 1e-6), ("nothing", 0.0))
    }
    return {"adds to the variance": named(found, known)}


def dense() -> Facts:
    import torch
    from sentence_transformers.sentence_transformer.modules import Dense

    dense = fixed(lambda: Dense(2, 2, activation_function=torch.nn.ReLU()))
    given = torch.tensor([[0.5, -2.0]])
    linear = given @ dense.linear.weight.T + dense.linear.bias
    after = {"linear, then its activation": linear.relu(), "linear alone": linear}
    usual = fixed(lambda: Dense(2, 2, bias=False))
    straight = given @ usual.linear.weight.T
    return {
        "maps by": named(dense({"sentence_embedding": given})["sentence_embedding"], after),
        "activates by default with": named(
            usual({"sentence_embedding": given})["sentence_embedding"], {"tanh": straight.tanh(), "nothing": straight}
        ),
    }
