"""A sparse encoder's weights held against what its manifest says, in float64 and by hand-readable steps."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.candidate.load import load
from harness.candidate.parity import Parity
from harness.candidate.probe import probe_texts, probes
from harness.candidate.prove import proofs
from harness.candidate.sparse_parity import sparse_parity, weight_difference
from harness.release.manifest import Manifest
from harness.release.open import Release

from .test_sparse import opened
from .tiny import save_sparse

FEW = {name: text for name, text in probe_texts(48).items() if name in ("short", "unicode", "truncated", "empty")}


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """The largest weight of each entry, with a prompt for queries."""
    root = tmp_path_factory.mktemp("usual")
    return opened(root / "release", save_sparse(root), '[prompts]\nquery = "the: "\n')


@pytest.fixture(scope="module")
def loaded(usual: Release):
    return load(usual, usual.prompts_for())


def proven(release: Release, manifest: Manifest | None = None) -> Parity:
    return sparse_parity(load(release, release.prompts_for()), manifest or release.manifest, FEW)


def changed(manifest: Manifest, changes: dict[str, Any]) -> Manifest:
    """With other values at dotted paths of its tower, or from a leading dot on of its meaning."""
    written = manifest.model_dump(mode="json", by_alias=True)
    for path, value in changes.items():
        *above, last = path[1:].split(".") if path.startswith(".") else ["towers", "both", *path.split(".")]
        at = written["meaning"]
        for key in above:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[last] = value
    return Manifest.model_validate(written)


class TestATrueManifest:
    @pytest.mark.parametrize(
        "saved",
        [
            {"pooling": "sum"},
            {"activation": "log1p_relu", "keep": 5},
            {"pooling": "sum", "activation": "log1p_relu", "similarity": "cosine", "legacy": True},
            {"tie_word_embeddings": False},
            {"hidden_act": "gelu_new", "layer_norm_eps": 1e-3},
            {"padding_side": "left"},
        ],
        ids=str,
    )
    def test_every_pooling_and_activation_is_rebuilt(self, tmp_path: Path, saved: dict[str, Any]) -> None:
        """On texts short, cut, empty and of every script; with a table of embeddings for the last map, or its own."""
        found = proven(opened(tmp_path / "release", save_sparse(tmp_path / "saved", **saved)))
        assert found.ok, found.text
        assert found.largest_difference <= found.tolerance == 1e-5

    @pytest.mark.parametrize(
        ("model_type", "config"),
        [
            ("distilbert", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}),
            ("roberta", {}),
            ("mpnet", {}),
            ("electra", {"embedding_size": 24}),
            ("albert", {"embedding_size": 24}),
            ("modernbert", {"global_attn_every_n_layers": 2, "cls_token_id": 2, "sep_token_id": 3}),
        ],
    )
    def test_every_known_language_model_is_rebuilt(self, tmp_path: Path, model_type: str, config: Any) -> None:
        """Each has its head under names of its own."""
        model = save_sparse(tmp_path / "saved", model_type=model_type, **config)
        found = proven(opened(tmp_path / "release", model))
        assert found.ok, found.text

    def test_padding_batches_and_order_change_nothing(self, usual: Release, loaded) -> None:
        """Every probe for which it answers; the other padding side is evidence."""
        assert sparse_parity(loaded, usual.manifest, FEW).ok
        found = {probe.name: probe for probe in probes(loaded, usual.manifest)}
        assert all(probe.ok for probe in found.values() if probe.fatal) and found["as evaluated"].fatal
        assert found["left padding"].policy == "absolute positions under left padding"

    def test_it_is_proven_under_every_set_of_prompts(self, tmp_path: Path) -> None:
        model = save_sparse(tmp_path / "saved")
        release = opened(tmp_path / "release", model, '[prompts.help]\nquery = "flow "\n')
        found = [each for each in proofs(release, load(release, release.prompts_for())) if isinstance(each, Parity)]
        assert [each.name for each in found] == ["parity", "parity: prompts on help"] and all(e.ok for e in found)


class TestAFalseManifest:
    def test_another_pooling_is_named_with_the_one_that_fits(self, usual: Release, loaded) -> None:
        """Where, how far off, and what would be right."""
        found = sparse_parity(loaded, changed(usual.manifest, {"readout.modes": ["sum"]}), FEW)
        assert not found.ok and found.largest_difference > 0.1
        assert ", text '" in found.text and found.text.endswith("; with max pooling it would be right")

    @pytest.mark.parametrize(
        "changes",
        [
            {"readout.projections.0.activation": "log1p-log1p-relu"},
            {"readout.projections.0.activation": "relu"},
            {"readout.projections.0.bias": False},
            {"readout.projections.0.residual": True},
            {"readout.projections.0.kind": "dense"},
            {"readout.projections.0.width_in": 16},
            {"readout.projections.0.width_out": 52},
            {"readout.projections": []},
            {"readout.modes": []},
            {"readout.modes": ["max", "sum"]},
            {"readout.modes": ["mean"]},
            {"readout.max_active_dims": 4},
            {"readout.empty": "reject"},
            {"readout.empty": "fallback-row"},
            {"readout.family": "pooled"},
            {"readout.denominator": "counted rows"},
            {"readout.weights": "content-relative"},
            {"readout.normalisation": {"kind": "l2", "epsilon": 1e-12, "stage": "after-pooling"}},
            {"readout.truncate_dim": 8, "readout.renormalised": False},
            {"rows.special": False},
            {"rows.prompt": False},
            {"rows.skipped": {"document": ["the"]}},
            {"rows.expansion": {"query": 32}},
            {"state.width": 16},
            {"state.layers": [1]},
            {"state.scale": 2.0},
            {"artifact.model_type": "deberta-v2"},
            {"artifact.model_type": "roberta"},
            {"input.prompts": {"query": "a: ", "document": ""}},
            {"input.max_length": 12},
            {".output.dimension": 52},
        ],
        ids=str,
    )
    def test_every_value_that_matters_is_found(self, usual: Release, loaded, changes: dict[str, Any]) -> None:
        assert not sparse_parity(loaded, changed(usual.manifest, changes), FEW).ok

    def test_other_weights_are_not_those_that_it_names(self, usual: Release, loaded) -> None:
        """By digest, before anything is computed."""
        found = sparse_parity(loaded, changed(usual.manifest, {"readout.projections.0.weights": "0" * 64}), FEW)
        assert not found.ok and "other weights" in found.text

    def test_a_file_that_changed_since_is_named(self, tmp_path: Path) -> None:
        release = opened(tmp_path / "release", save_sparse(tmp_path / "saved"))
        model = load(release, release.prompts_for())
        with (release.model_folder / "1_SpladePooling/config.json").open("a") as stream:
            stream.write(" ")
        found = sparse_parity(model, release.manifest, FEW)
        assert not found.ok and "1_SpladePooling/config.json" in found.text

    @pytest.mark.parametrize("keep", [4, 6, 53])
    def test_another_number_of_weights_is_found(self, tmp_path: Path, keep: int) -> None:
        """Five are kept."""
        release = opened(tmp_path / "release", save_sparse(tmp_path / "saved", keep=5))
        assert not proven(release, changed(release.manifest, {"readout.max_active_dims": keep})).ok

    def test_weights_that_are_not_finite_are_no_proof(self, usual: Release) -> None:
        model = load(usual, usual.prompts_for())
        with torch.no_grad():
            model.sides["query"].modules[0].model.cls.predictions.bias[3] = torch.nan
        found = sparse_parity(model, usual.manifest, FEW)
        assert not found.ok and found.largest_difference == float("inf")

    def test_a_library_that_pools_padding_is_found_out(self, usual: Release, loaded, monkeypatch) -> None:
        """Only rows behind padding tell, for a text alone has none."""
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        def careless(self, features):
            features["sentence_embedding"] = features["token_embeddings"].relu().log1p().max(dim=1)[0]
            return features

        monkeypatch.setattr(SpladePooling, "forward", careless)
        found = sparse_parity(
            loaded, usual.manifest, {"long": "the flow of heat along the plate and the wing of a jet"}
        )
        assert not found.ok and "behind padding" in found.text


class TestWhatDoesNotMatter:
    @pytest.mark.parametrize(
        "changes",
        [{"readout.stored": "int8"}, {"rows.offsets": False}, {"input.lower_case": None}, {".score.threshold": 2.0},
         {"input.suite_prompts": {"other": {"query": "a "}}}],
        ids=str,
    )  # fmt: skip
    def test_other_fields_leave_parity_alone(self, usual: Release, loaded, changes: dict[str, Any]) -> None:
        assert sparse_parity(loaded, changed(usual.manifest, changes), FEW).ok


class TestTheLastThatIsKept:
    WHOLE = np.array([3.0, 2.0, 2.0 - 1e-7, 1.0])

    def test_which_of_two_equals_stays_is_open(self) -> None:
        """Float32 may turn them round; what is kept instead must be as large."""
        one, other = np.array([3, 2, 0, 0], dtype=np.float32), np.array([3, 0, 2, 0], dtype=np.float32)
        assert weight_difference(one, self.WHOLE, 2, 1e-5) < 1e-6 > weight_difference(other, self.WHOLE, 2, 1e-5)

    @pytest.mark.parametrize("found", [[3, 0, 0, 1], [3, 0, 0, 0], [3, 2, 2, 0], [0, 2, 2, 0]])
    def test_anything_else_is_not(self, found: list[float]) -> None:
        """A smaller one, one too few, one too many, and the wrong one left out."""
        assert weight_difference(np.array(found, dtype=np.float32), self.WHOLE, 2, 1e-5) > 0.3
