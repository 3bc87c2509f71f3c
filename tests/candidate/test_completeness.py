"""Whether a model's weights are all there, by the library's own report."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.candidate.completeness import completeness
from harness.release.admit import Check

from .conftest import manifest_with

SMALL = {
    "hidden_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 12,
    "max_position_embeddings": 16,
}  # fmt: skip
OTHERS: dict[str, dict[str, Any]] = {
    "distilbert": {"dim": 8, "n_layers": 2, "n_heads": 2, "hidden_dim": 8},
    "albert": {"embedding_size": 4},
    "modernbert": {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2},
    "qwen3": {"num_key_value_heads": 1, "head_dim": 4},
    "llama": {"num_key_value_heads": 1},
    "t5": {"d_model": 8, "d_kv": 4, "d_ff": 8, "num_layers": 2, "num_heads": 2},
}
ENCODERS = [
    "bert", "roberta", "xlm-roberta", "distilbert", "mpnet", "electra", "albert", "modernbert", "qwen3", "llama", "t5",
]  # fmt: skip


def saved(folder: Path, model_type: str, auto: str = "AutoModel", **config: Any) -> Path:
    """A model of random weights."""
    import transformers

    if model_type == "t5" and auto == "AutoModel":
        auto = "T5EncoderModel"
    made = transformers.AutoConfig.for_model(model_type, **{**SMALL, **OTHERS.get(model_type, {}), **config})
    build = getattr(transformers, auto)
    model = build.from_config(made) if auto.startswith("Auto") else build(made)
    model.save_pretrained(folder)
    return folder


def change(folder: Path, edit: Callable[[dict[str, Any]], None]) -> Path:
    """Rewrites a folder's weights."""
    from safetensors.numpy import load_file, save_file

    tensors = load_file(folder / "model.safetensors")
    edit(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    return folder


def found(folder: Path, model_type: str = "bert", family: str = "pooled") -> Check:
    return completeness(folder, manifest_with({"artifact.model_type": model_type, "readout.family": family}))


class TestWhole:
    @pytest.mark.parametrize("model_type", ENCODERS)
    def test_a_backbone_as_it_was_saved_is_whole(self, tmp_path: Path, model_type: str) -> None:
        check = found(saved(tmp_path, model_type), model_type)
        assert check.ok, check.found

    @pytest.mark.parametrize("model_type", ["bert", "roberta", "albert", "electra"])
    def test_a_backbone_beside_another_tasks_head_is_whole(self, tmp_path: Path, model_type: str) -> None:
        """Its tensors stand under a prefix, and some are tied; the pooler was never saved and is not read."""
        check = found(saved(tmp_path, model_type, "AutoModelForMaskedLM"), model_type)
        assert check.ok, check.found

    @pytest.mark.parametrize(
        ("family", "auto"),
        [("sparse", "AutoModelForMaskedLM"), ("cls-head", "AutoModelForSequenceClassification"),
         ("token-head", "AutoModelForTokenClassification"), ("span-head", "AutoModelForQuestionAnswering"),
         ("choice-head", "AutoModelForMultipleChoice")],
    )  # fmt: skip
    def test_a_head_as_it_was_saved_is_whole(self, tmp_path: Path, family: str, auto: str) -> None:
        check = found(saved(tmp_path, "bert", auto), family=family)
        assert check.ok, check.found

    def test_a_pooler_counts_where_it_is_read(self, tmp_path: Path) -> None:
        """By a sequence head, and not by a pooling of rows."""

        def without(tensors: dict[str, Any]) -> None:
            del tensors["bert.pooler.dense.weight"]

        folder = change(saved(tmp_path, "bert", "AutoModelForSequenceClassification"), without)
        assert found(folder).ok
        assert found(folder, family="cls-head").found == "no bert.pooler.dense.weight"


class TestBroken:
    @pytest.mark.parametrize(
        "tensor", ["encoder.layer.1.output.LayerNorm.bias", "encoder.layer.0.attention.self.query.weight"]
    )
    def test_a_tensor_that_is_not_there_is_named(self, tmp_path: Path, tensor: str) -> None:
        """The library would fill it with random numbers."""
        check = found(change(saved(tmp_path, "bert"), lambda tensors: tensors.pop(tensor)))
        assert (check.name, check.ok, check.found) == ("weights-complete", False, f"no {tensor}")

    def test_another_shape_is_named_with_both(self, tmp_path: Path) -> None:
        import numpy as np

        name = "encoder.layer.0.output.dense.weight"
        check = found(
            change(saved(tmp_path, "bert"), lambda tensors: tensors.update({name: np.ones((8, 6), np.float32)}))
        )
        assert check.found == f"{name} has the shape [8, 6], the model [8, 8]"

    def test_a_layer_that_the_configuration_does_not_count_is_named(self, tmp_path: Path) -> None:
        """What was trained would be left out without a word."""
        folder = saved(tmp_path, "bert")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 1}))
        check = found(folder)
        assert not check.ok and "encoder.layer.1." in check.found and "no place for" in check.found

    def test_a_configuration_that_no_model_can_have_is_a_broken_check(self, tmp_path: Path) -> None:
        """Three heads of width eight: no traceback, and no refusal of another kind."""
        folder = saved(tmp_path, "bert")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"num_attention_heads": 3}))
        check = found(folder)
        assert not check.ok and check.found.startswith("the model does not load (ValueError")

    def test_a_head_that_was_never_trained_is_named(self, tmp_path: Path) -> None:
        """A masked language model taken for a classifier."""
        check = found(saved(tmp_path, "bert", "AutoModelForMaskedLM"), family="cls-head")
        assert not check.ok and "no classifier.bias" in check.found
