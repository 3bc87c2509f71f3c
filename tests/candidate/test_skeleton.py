"""Models whose weights are read only when a text has to be computed."""

from pathlib import Path

import numpy as np
import pytest
from transformers import PreTrainedModel

from harness.candidate.cross import Pair
from harness.candidate.encoder import encode
from harness.candidate.head import Sample
from harness.candidate.load import load, load_cross_to_run, load_head_to_run, load_numbers, load_to_run
from harness.candidate.skeleton import is_bare, without_weights
from harness.release.open import open_release

from .conftest import Memory, write_release
from .test_bi import texts

MODELS = Path(__file__).parents[2] / "fixtures" / "models"
KINDS = {"bi": "bi", "causal": "bi", "late": "late", "sparse": "sparse", "cross": "cross", "classification": "head",
         "entity": "head", "choice": "head"}  # fmt: skip


@pytest.fixture
def opened(tmp_path):
    def make(model, more=""):
        folder = tmp_path / f"{model}{len(more)}"
        return open_release(write_release(folder, f'[model]\nsource = "path:{MODELS / model}"\n{more}', KINDS[model]))

    return make


@pytest.fixture
def no_weights(monkeypatch):
    """From when it is called, weights that are read fail the test."""

    def forbid():
        monkeypatch.setattr(PreTrainedModel, "from_pretrained", lambda *_, **__: pytest.fail("weights were read"))

    return forbid


def lazily(release):
    kind = release.definition.interaction
    if kind in ("cross", "head"):
        return [load_cross_to_run(release) if kind == "cross" else load_head_to_run(release)]
    return list(load_to_run(release, release.prompts_for()).sides.values())


def at_once(release):
    numbers = release.definition.interaction in ("cross", "head")
    return [load_numbers(release)] if numbers else list(load(release, release.prompts_for()).sides.values())


def given(reader):
    words = texts(12)
    if hasattr(reader, "scores"):
        return [Pair(*both) for both in zip(words, words[::-1], strict=True)]
    if hasattr(reader, "paired"):
        return [Sample(one, other if reader.paired else None) for one, other in zip(words, words[::-1], strict=True)]
    return words


class TestWithoutWeights:
    @pytest.mark.parametrize("model", KINDS)
    def test_what_is_known_is_taken_and_no_weight_is_read(self, opened, no_weights, model):
        """To the bit what the model gave, tokens and digests included."""
        release, memory = opened(model), Memory()
        expected = [encode([each], given(each), memory)[0] for each in at_once(release)]
        no_weights()
        found = [encode([each], given(each), memory)[0] for each in lazily(release)]
        for mine, theirs in zip(found, expected, strict=True):
            assert mine.values.tobytes() == theirs.values.tobytes() and mine.items == theirs.items
            assert mine.tokens_kept.tolist() == theirs.tokens_kept.tolist()

    @pytest.mark.parametrize("model", KINDS)
    def test_what_is_not_known_is_computed_as_ever(self, opened, model):
        release = opened(model)
        for lazy, whole in zip(lazily(release), at_once(release), strict=True):
            assert lazy.keys == whole.keys
            mine, theirs = (encode([each], given(each))[0] for each in (lazy, whole))
            assert not mine.failed and mine.values.tobytes() == theirs.values.tobytes() and lazy.wake is None
            assert np.isfinite(mine.values).all()

    def test_both_sides_wake_together(self, opened):
        query, document = lazily(opened("bi"))
        encode([query], ["a text"])
        assert document.wake is None and document.modules[0] is query.modules[0]

    def test_windows_after_whose_mean_something_stands(self, opened, no_weights):
        """The normalisation that joins windows has no weights to wait for."""
        window = '[input.window]\nsize = 12\nstride = 5\naggregation = "mean"\nnormalise = "after"\n'
        release, memory = opened("bi", window), Memory()
        [expected, _] = [encode([each], texts(9), memory)[0] for each in at_once(release)]
        no_weights()
        found = encode([lazily(release)[0]], texts(9), memory)[0]
        assert found.values.tobytes() == expected.values.tobytes()

    def test_outside_of_it_models_are_loaded_whole(self, opened):
        before = PreTrainedModel.__dict__["from_pretrained"]
        with without_weights():
            assert is_bare()
        assert not is_bare() and PreTrainedModel.__dict__["from_pretrained"] is before
