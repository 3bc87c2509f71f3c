"""Parity of heads: logits against the reference, from the model's own rows."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.candidate.head_parity import head_parity, provable
from harness.candidate.probe import probe_texts
from harness.release.open import Release, open_release

from .conftest import WORDS


def saved(root: Path, kind: str, labels: int) -> Release:
    """A BERT of random weights with a head, and a release of it."""
    import torch
    import transformers

    torch.manual_seed(5)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    folder = root / "model"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(tokens))
    transformers.BertTokenizer(str(folder / "vocab.txt"), model_max_length=48).save_pretrained(folder)
    config = transformers.BertConfig(
        vocab_size=len(tokens), hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=48, initializer_range=0.5, num_labels=labels,
        id2label={i: f"kind {i}" for i in range(labels)}, label2id={f"kind {i}": i for i in range(labels)},
    )  # fmt: skip
    model = getattr(transformers, f"BertFor{kind}")(config).eval()
    for name, weights in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weights)
    model.save_pretrained(folder)
    interaction = "cross" if kind == "SequenceClassification" and labels == 1 else "head"
    written = json.loads((folder / "config.json").read_text())
    if interaction == "head" and kind == "SequenceClassification":
        (folder / "config.json").write_text(json.dumps({**written, "problem_type": "single_label_classification"}))
    release = root / "release"
    release.mkdir()
    (release / "release.toml").write_text(
        f'schema = "harness.release.v1"\nname = "tiny"\ninteraction = "{interaction}"\n'
        '[model]\nsource = "path:../model"\n'
    )
    return open_release(release)


@pytest.mark.parametrize(
    ("kind", "labels"), [("SequenceClassification", 1), ("SequenceClassification", 3), ("TokenClassification", 3),
                         ("QuestionAnswering", 2), ("MultipleChoice", 2)],
)  # fmt: skip
class TestHeads:
    def test_a_true_manifest_is_rebuilt(self, tmp_path: Path, kind: str, labels: int) -> None:
        release = saved(tmp_path, kind, labels)
        assert provable(release.manifest)
        found = head_parity(release.model_folder, release.manifest, probe_texts(48))
        assert found.ok, found.text

    def test_another_activation_is_found(self, tmp_path: Path, kind: str, labels: int) -> None:
        """The last map is said to end in a tanh that the model does not have."""
        release = saved(tmp_path, kind, labels)
        manifest = release.manifest.model_copy(deep=True)
        [tower] = manifest.meaning.towers.values()
        object.__setattr__(tower.readout.projections[-1], "activation", "tanh")
        assert not head_parity(release.model_folder, manifest, probe_texts(48)).ok

    def test_another_tokenizer_is_found(self, tmp_path: Path, kind: str, labels: int) -> None:
        """Cut from the other side, or with another token before the text, by the manifest alone."""
        release = saved(tmp_path, kind, labels)
        for field, value in (("truncation_side", "left"), ("special_tokens", {"cls_token": 3})):
            manifest = release.manifest.model_copy(deep=True)
            [tower] = manifest.meaning.towers.values()
            object.__setattr__(tower.input, field, value)
            found = head_parity(release.model_folder, manifest, probe_texts(48))
            assert not found.ok and f"input.{field}" in found.text


SMALL = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
    "max_position_embeddings": 48, "initializer_range": 0.5,
}  # fmt: skip
MODERN = {"bos_token_id": 2, "cls_token_id": 2, "eos_token_id": 3, "sep_token_id": 3, "global_attn_every_n_layers": 2}
QWEN = {"num_key_value_heads": 2, "head_dim": 8}
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "deberta-v2": ("deberta-v2", {"pooler_hidden_size": 32, "relative_attention": True, "pos_att_type": ["c2p"]}),
    "modernbert, the first row": ("modernbert", MODERN),
    "modernbert, the mean": ("modernbert", {**MODERN, "classifier_pooling": "mean"}),
    "modernbert, every bias": ("modernbert", {**MODERN, "classifier_bias": True, "norm_bias": True}),
    "qwen3": ("qwen3", QWEN),
}


def saved_pairs(root: Path, model_type: str, labels: int, **config: Any) -> Release:
    """A cross-encoder of random weights of another architecture than BERT, and a release of it."""
    import torch
    import transformers

    torch.manual_seed(5)
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    folder = root / "model"
    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(tokens))
    transformers.BertTokenizer(
        str(folder / "vocab.txt"), model_max_length=48, model_input_names=["input_ids", "attention_mask"]
    ).save_pretrained(folder)
    made = transformers.AutoConfig.for_model(
        model_type, **{"vocab_size": len(tokens), "pad_token_id": 0, "num_labels": labels, **SMALL, **config}
    )
    model = transformers.AutoModelForSequenceClassification.from_config(made).eval()
    for name, weights in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(weights)
    model.save_pretrained(folder)
    release = root / "release"
    release.mkdir()
    (release / "release.toml").write_text(
        'schema = "harness.release.v1"\nname = "tiny"\ninteraction = "cross"\n[model]\nsource = "path:../model"\n'
    )
    return open_release(release)


@pytest.mark.parametrize(("model_type", "config"), ARCHITECTURES.values(), ids=ARCHITECTURES)
class TestArchitectures:
    @pytest.mark.parametrize("labels", [1, 3])
    def test_the_head_of_each_is_rebuilt(
        self, tmp_path: Path, model_type: str, config: dict[str, Any], labels: int
    ) -> None:
        release = saved_pairs(tmp_path, model_type, labels, **config)
        assert provable(release.manifest)
        found = head_parity(release.model_folder, release.manifest, probe_texts(48))
        assert found.ok, found.text

    def test_a_row_or_an_activation_that_is_not_its_own_is_found(
        self, tmp_path: Path, model_type: str, config: dict[str, Any]
    ) -> None:
        release = saved_pairs(tmp_path, model_type, 1, **config)
        [mode] = release.manifest.meaning.towers["pair"].readout.modes
        for change in ({"modes": ["cls" if mode == "mean" else "mean"]}, {"activation": "relu"}):
            manifest = release.manifest.model_copy(deep=True)
            at = manifest.meaning.towers["pair"].readout
            for key, value in change.items():
                object.__setattr__(at if key == "modes" else at.projections[0], key, value)
            assert not head_parity(release.model_folder, manifest, probe_texts(48)).ok


def test_a_layer_norm_with_another_epsilon_is_not_taken_for_the_usual_one(tmp_path: Path) -> None:
    """A manifest has no place for it, so such a head has no reference."""
    release = saved_pairs(tmp_path, "modernbert", 1, **MODERN, norm_eps=0.1)
    assert not head_parity(release.model_folder, release.manifest, probe_texts(48)).ok


class TestChoices:
    """Each text with three others to choose from, of other lengths, so that some are padded."""

    @pytest.fixture
    def release(self, tmp_path: Path) -> Release:
        return saved(tmp_path, "MultipleChoice", 2)

    @pytest.mark.parametrize(
        "change",
        [("modes", ["lasttoken"]), ("projections.0.activation", "identity"), ("projections.0.bias", False),
         ("projections.1.width_out", 2), ("projections.1.bias", False)],
        ids=str,
    )  # fmt: skip
    def test_a_false_row_or_map_is_found(self, release: Release, change: tuple[str, object]) -> None:
        """Another row than the first, no tanh behind the pooler, a map without its bias, or of another width."""
        manifest = release.manifest.model_copy(deep=True)
        [tower] = manifest.meaning.towers.values()
        at: object = tower.readout
        *above, last = change[0].split(".")
        for key in above:
            at = at[int(key)] if isinstance(at, list) else getattr(at, key)
        object.__setattr__(at, last, change[1])
        assert head_parity(release.model_folder, release.manifest, probe_texts(48)).ok
        assert not head_parity(release.model_folder, manifest, probe_texts(48)).ok
