"""Late interaction: which rows of a text count, and what becomes of the rows of two texts."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

from harness.candidate.behaviour.policy import Facts, named

# Three tokens, the second of which is skipped, a row that fills up, and padding.
IDS, SKIPPED = [[11, 12, 13, 4, 0]], 12
ATTENDED, FILLED = [[1, 1, 1, 0, 0]], [[0, 0, 0, 1, 0]]
OWN, OWN_AND_FILLED, EVERY = [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]
# Similarities of two query rows with three rows of a document: 3, -2, 1 and -2, 8, 2.
QUERY = [[1.0, 0.0], [0.0, 2.0]]
DOCUMENT = [[3.0, -1.0], [-2.0, 4.0], [1.0, 1.0]]


def _counted(task: str | None, *, skipping: bool, filled: bool = True) -> Any:
    import torch
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    mask = MultiVectorMask(["comma"] if skipping else None)
    vocabulary = {"comma": SKIPPED}
    mask.resolve_with_tokenizer(SimpleNamespace(unk_token_id=1, unk_token="?", convert_tokens_to_ids=vocabulary.get))
    features = {"input_ids": torch.tensor(IDS), "attention_mask": torch.tensor(ATTENDED)}
    if filled:
        features["query_expansion_positions"] = torch.tensor(FILLED)
    return mask(features, task=task)["attention_mask"].reshape(-1)


def mask() -> Facts:
    import torch

    query, document, untold = (_counted(task, skipping=True) for task in ("query", "document", None))
    bare = [_counted(task, skipping=False, filled=False) for task in ("query", "document", None)]
    without = [1, 0, 1, 0, 0]
    sides = {
        "documents alone": OWN_AND_FILLED + without,
        "queries and documents": [1, 0, 1, 1, 0, *without],
        "queries alone": [1, 0, 1, 1, 0, *OWN],
        "neither": OWN_AND_FILLED + OWN,
    }
    rows = {
        "its own rows and those that fill it up, attended or not": OWN_AND_FILLED,
        "its own rows alone": OWN,
        "every row": EVERY,
    }
    return {
        "counts of a query": named(_counted("query", skipping=False), rows),
        "counts of a document": named(_counted("document", skipping=False), rows),
        "counts padding": named(
            torch.cat(bare), {"never": OWN * 3, "always": EVERY * 3, "in queries": EVERY + OWN * 2}
        ),
        "skips the listed tokens of": named(torch.cat([query, document]), sides),
        "takes a text without a task for": named(untold, {"a document": without, "a query": OWN_AND_FILLED}),
    }


def maxsim() -> Facts:
    import torch
    from sentence_transformers.util import similarity

    query, document = torch.tensor([QUERY]), torch.tensor([DOCUMENT])
    score = {
        "the sum of the query rows' greatest similarities": [11.0],
        "the mean of the query rows' greatest similarities": [5.5],
        "the sum of the document rows' greatest similarities": [13.0],
        "the sum of all similarities": [10.0],
    }
    # Every similarity is below 0, in a batch where another document is longer, and beside a masked row of 9.
    below, longer = torch.tensor([[-3.0, 0.0], [-5.0, 0.0]]), torch.full((3, 2), -1.0)
    first = query[:, :1]
    padded = similarity.maxsim(first, [below, longer])[:, :1]
    masked = similarity.maxsim(first, torch.tensor([[[9.0, 0.0], [-3.0, 0.0]]]), b_mask=torch.tensor([[0, 1]]))
    counts = {"those that are not masked": [8.0], "all of them": [11.0]}
    only_second = {"a_mask": torch.tensor([[0, 1]])}
    ones = torch.ones((1, 257, 1), dtype=torch.bfloat16)
    with _without_advice(similarity.__name__):
        empty = [
            similarity.maxsim(first, document, b_mask=torch.zeros((1, 3))),
            similarity.maxsim(first, [torch.empty((0, 2)), document[0]])[:, :1],
        ]
    return {
        "gives": named(similarity.maxsim(query, document), score),
        "asked for the mean, divides by": named(
            similarity.mean_maxsim(query, document, **only_second),
            {"how many query rows count": [8.0], "how many query rows there are": [4.0]},
        ),
        "takes of the query's rows": named(similarity.maxsim(query, document, **only_second), counts),
        "takes a document's padding for": named(
            torch.cat([padded, masked]),
            {"no row": [-3.0, -3.0], "a row of similarity 0": [0.0, 0.0], "the row that stands there": [0.0, 9.0]},
        ),
        "sums half-precision similarities in": named(
            similarity.maxsim(ones, ones[:, :1]), {"float32": [257.0], "their own type": [256.0]}
        ),
        "gives a document without counted rows": _empty(torch.cat(empty)),
    }


@contextmanager
def _without_advice(module: str) -> Iterator[None]:
    """The library warns of documents without rows; here they are meant."""
    logger = logging.getLogger(module)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _empty(scores: Any) -> str:
    """Far below what unit vectors or those of any real width come to, whatever the library's own number is."""
    if bool((scores < -1e6).all()):
        return "a score below every real one"
    return named(scores, {"zero": [0.0, 0.0]})
