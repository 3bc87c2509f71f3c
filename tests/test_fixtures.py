"""The committed models are those that fixtures/build.py made, they load, and they rank in a known order."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

from fixtures.quality import Questions, ndcg, pair_scores, read_questions, vector_scores
from harness.identity import file_digest

MODELS = Path(__file__).parents[1] / "fixtures" / "models"
KINDS = {
    "bi": SentenceTransformer, "late": MultiVectorEncoder, "sparse": SparseEncoder, "causal": SentenceTransformer,
    "cross": CrossEncoder,
}  # fmt: skip
HEADS = ("classification", "multilabel", "regression", "entity", "answer", "choice")
MOST = 1_000_000


@pytest.fixture(scope="module")
def questions() -> Questions:
    return read_questions(("promotion", "calibration", "development"))


@pytest.fixture(scope="module")
def quality(questions: Questions) -> dict[str, float]:
    """nDCG@10 over the suite's questions; the cross-encoder's, of the articles that the bi-encoder puts first."""
    scores = {
        name: vector_scores(kind(str(MODELS / name), device="cpu", local_files_only=True), questions)
        for name, kind in KINDS.items()
        if name != "cross"
    }
    cross = CrossEncoder(str(MODELS / "cross"), device="cpu", local_files_only=True)
    scores["cross"] = pair_scores(cross, questions, scores["bi"])
    return {name: float(ndcg(each, questions.gains).mean()) for name, each in scores.items()}


class TestFiles:
    def test_every_file_is_the_one_that_was_built(self) -> None:
        """None more, none less, each by its digest."""
        known = json.loads((MODELS / "digests.json").read_text())
        there = [path for path in MODELS.rglob("*") if path.is_file() and path.name != "digests.json"]
        assert {path.relative_to(MODELS).as_posix(): file_digest(path) for path in there} == known

    @pytest.mark.parametrize("name", [*KINDS, *HEADS])
    def test_a_model_is_small_and_in_float32(self, name: str) -> None:
        """Below a megabyte, its largest file the weights."""
        from safetensors.torch import load_file

        assert sum(path.stat().st_size for path in (MODELS / name).rglob("*") if path.is_file()) < MOST
        tensors = [each for file in (MODELS / name).rglob("*.safetensors") for each in load_file(file).values()]
        assert tensors and all(each.dtype == torch.float32 for each in tensors)


class TestQuality:
    def test_each_ranks_far_better_than_chance(self, quality: dict[str, float], questions: Questions) -> None:
        """An order drawn at random is near .06; a cross-encoder trained from scratch would stay there."""
        chance = ndcg(np.random.default_rng(1).random(questions.gains.shape), questions.gains).mean()
        assert chance < 0.1
        assert all(value > 0.3 for value in quality.values()), quality

    def test_their_order_is_known_with_room_between(self, quality: dict[str, float]) -> None:
        """The bi-encoder, from which the others start, is best; the cross-encoder ranks its first articles worse."""
        assert quality["bi"] > quality["late"] + 0.01 > quality["cross"] + 0.02
