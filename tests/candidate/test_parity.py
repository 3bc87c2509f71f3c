"""A release's vectors held against what its manifest says, in float64 and by hand-readable steps."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Dense, LayerNorm, Normalize

from harness.candidate.load import load
from harness.candidate.parity import parity, stale
from harness.candidate.probe import probe_texts
from harness.candidate.reference import recipe
from harness.errors import NotAdmitted
from harness.identity import file_digest

from .conftest import manifest_with, projection_of, save_tiny
from .test_marker import physical_weighted_mean

NONE = {"kind": "none", "epsilon": None, "stage": "none"}
AFTER_PROJECTION = {"kind": "l2", "epsilon": 1e-12, "stage": "after-projection"}
WEIGHTED = {"readout.modes": ["weightedmean"], "readout.denominator": "sum of weights",
            "readout.weights": "content-relative"}  # fmt: skip
CLS = {"readout.modes": ["cls"], "readout.denominator": "none", "readout.empty": "fallback-row"}
INSTRUCTOR = '[prompts]\nquery = "the: flow "\ndocument = "a: "\n'
PROMPTS = {"query": "the: flow ", "document": "a: "}


def dense(out, activation, bias=True, residual=False):
    torch.manual_seed(out)
    module = Dense(32, out, bias=bias, activation_function=activation, use_residual=residual)
    if bias:
        torch.nn.init.normal_(module.linear.bias)
    return module


def layer_norm():
    torch.manual_seed(5)
    module = LayerNorm(32)
    torch.nn.init.normal_(module.norm.weight)
    torch.nn.init.normal_(module.norm.bias)
    return module


@pytest.fixture
def shown(encoder):
    """Parity of a saved folder under a manifest that departs from the tiny one's in some fields."""

    def make(folder: Path, changes, extra: str = "", texts=None):
        manifest = manifest_with(changes)
        return parity(encoder(extra, folder), manifest, probe_texts(48) if texts is None else texts)

    return make


class TestATrueManifest:
    @pytest.mark.parametrize(
        ("pooling", "changes"),
        [
            ("mean", {}),
            ("cls", CLS),
            ("max", {"readout.modes": ["max"], "readout.denominator": "none", "readout.empty": "reject"}),
            ("mean_sqrt_len_tokens", {"readout.modes": ["mean_sqrt_len_tokens"],
                                      "readout.denominator": "square root of counted rows"}),
            ("weightedmean", WEIGHTED),
            ("lasttoken", {"readout.modes": ["lasttoken"], "readout.denominator": "none"}),
            (["max", "mean"], {"readout.modes": ["max", "mean"], ".meaning.output.dimension": 64}),
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("normalise", [True, False])
    def test_every_pooling_is_rebuilt(self, shown, tmp_path, pooling, changes, normalise):
        """With unit length and without, on texts short, long, cut, empty, of one word and of every script."""
        folder = save_tiny(tmp_path, pooling=pooling, normalise=normalise)
        found = shown(folder, changes if normalise else {**changes, "readout.normalisation": NONE})
        assert found.ok, found.text
        assert found.largest_difference <= found.tolerance == 1e-5

    def test_projections_normalisation_and_truncation_are_rebuilt(self, shown, tmp_path):
        """Mean, LayerNorm, a residual Dense, unit length, and the first ten dimensions, of less than unit length."""

        def tail():
            return [layer_norm(), dense(16, torch.nn.GELU(), residual=True), Normalize()]

        folder = save_tiny(tmp_path, tail=tail, truncate_dim=10)
        norm = projection_of(folder, "2_LayerNorm", "layer-norm", (32, 32))
        wide = projection_of(folder, "3_Dense", "dense", (32, 16), activation="gelu", residual=True)
        found = shown(folder, {
            "readout.projections": [norm, wide], "readout.normalisation": AFTER_PROJECTION,
            "readout.truncate_dim": 10, "readout.renormalised": False, ".meaning.output.dimension": 10,
        })  # fmt: skip
        assert found.ok, found.text

    def test_prompts_are_put_before_each_side_and_left_out_of_the_pooling(self, shown, tmp_path):
        """Weighted by where rows stand in the whole text, so that the prompt leaves them their weights."""
        folder = save_tiny(tmp_path, include_prompt=False, pooling="weightedmean")
        found = shown(folder, {**WEIGHTED, "input.prompts": PROMPTS, "rows.prompt": False}, INSTRUCTOR)
        assert found.ok, found.text

    def test_a_declared_length_and_a_left_side_are_followed(self, shown, tmp_path):
        """Seven tokens, padded on the left."""
        folder = save_tiny(tmp_path, padding_side="left")
        changes = {"input.padding_side": "left", "input.max_length": 7}
        found = shown(folder, changes, "[input]\nmax_length = 7\n")
        assert found.ok, found.text

    def test_the_packaged_minilm_is_rebuilt(self, release, minilm):
        """Real weights: 6 layers, width 384, 256 tokens, mean and unit length."""
        opened = release(minilm)
        changes = {"input.max_length": 256, "state.width": 384, "state.layers": [6], ".meaning.output.dimension": 384,
                   "input.special_tokens": {"cls_token": 101, "sep_token": 102}}  # fmt: skip
        model = load(opened, opened.prompts_for())
        found = parity(model, manifest_with(changes), probe_texts(256))
        assert found.ok, found.text
        wrong = parity(model, manifest_with(changes | CLS), probe_texts(256))
        assert not wrong.ok and wrong.largest_difference > 0.1


class TestADescribedFolder:
    @pytest.mark.parametrize(
        ("saved", "written"),
        [
            ({"pooling": ["cls", "max"]}, ""),
            ({"pooling": "weightedmean", "include_prompt": False}, INSTRUCTOR),
            ({"truncate_dim": 10, "tail": lambda: [layer_norm(), dense(16, torch.nn.GELU()), Normalize()]}, ""),
            ({"padding_side": "left"}, "[input]\nmax_length = 9\n"),
            ({}, '[override.readout]\npooling = "cls"\n'),
        ],
        ids=("joined", "prompt excluded", "projected", "left padding", "overridden"),
    )
    def test_what_its_files_say_is_what_it_does(self, release, tmp_path, saved, written):
        """Read from the folder, not written by hand."""
        opened = release(f"path:{save_tiny(tmp_path / 'saved', **saved)}", written)
        found = parity(load(opened, opened.prompts_for()), opened.manifest, probe_texts(48))
        assert found.ok, found.text


class TestAFalseManifest:
    def test_mean_where_the_folder_does_cls_is_refused_with_the_figure(self, shown, tmp_path):
        """The side and text, how far off, and what would be right."""
        found = shown(save_tiny(tmp_path, pooling="cls"), {})
        assert not found.ok and found.largest_difference > 0.1
        assert f"off by {found.largest_difference:.2g} of its largest value" in found.text
        assert found.text.startswith("query, text ") and found.text.endswith("; with cls pooling it would be right")

    @pytest.mark.parametrize(
        "changes",
        [
            CLS,
            {"readout.modes": ["max"], "readout.denominator": "none"},
            {"readout.modes": ["lasttoken"], "readout.denominator": "none"},
            {"readout.modes": ["mean", "max"]},
            {"readout.modes": []},
            {"readout.modes": ["sum"], "readout.denominator": "none"},
            WEIGHTED,
            {"readout.denominator": "square root of counted rows"},
            {"readout.denominator": "none"},
            {"readout.weights": "content-relative"},
            {"readout.normalisation": NONE},
            {"readout.normalisation.kind": "none"},
            {"readout.normalisation.stage": "per-row"},
            {"readout.normalisation.epsilon": 1e-3},
            {"readout.truncate_dim": 16, "readout.renormalised": False},
            {"readout.truncate_dim": 16, "readout.renormalised": True},
            {"readout.renormalised": True},
            {"readout.empty": "fallback-row"},
            {"readout.empty": "reject"},
            {"readout.empty": "learned"},
            {"readout.family": "rows"},
            {"rows.special": False},
            {"rows.skipped": {"document": ["."]}},
            {"rows.expansion": {"query": 32}},
            {"state.width": 16},
            {"state.layers": [1]},
            {"state.layers": [1, 2]},
            {"state.mixture": [0.5, 0.5]},
            {"state.scale": 2.0},
            {"input.max_length": 24},
            {"input.max_length": 96},
            {"input.prompts": {"query": "", "document": "flow "}},
            {"input.prompts": {"query": "the: ", "document": ""}},
            {"input.padding_side": "left"},
            {"input.truncation_side": "left"},
            {"input.special_tokens.cls_token": 3},
            {"input.special_tokens.mask_token": 5},
            {"input.special_tokens.eos_token": 3},
            {".meaning.output.dimension": 64},
        ],
        ids=str,
    )
    def test_every_field_that_the_vector_depends_on_is_held(self, shown, tiny, changes):
        """Mean, unit length, no prompt, 48 tokens: and each said otherwise in turn."""
        found = shown(tiny, changes)
        assert not found.ok and found.largest_difference > found.tolerance, changes

    @pytest.mark.parametrize(
        "changes",
        [
            {"readout.weights": "physical-position"},
            {"rows.prompt": True},
            {"input.prompts": {"query": "the: flow wing ", "document": "a: "}},
            {"input.prompts": {"query": "the: flow ", "document": ""}},
        ],
        ids=str,
    )
    def test_so_are_prompt_rows_and_the_weights_of_positions(self, shown, tmp_path, changes):
        """A weighted mean that leaves out the prompt; under right padding alone both policies would look the same."""
        folder = save_tiny(tmp_path, include_prompt=False, pooling="weightedmean")
        true = {**WEIGHTED, "input.prompts": PROMPTS, "rows.prompt": False}
        assert shown(folder, true, INSTRUCTOR).ok
        assert not shown(folder, true | changes, INSTRUCTOR).ok

    @pytest.mark.parametrize(
        "changes",
        [
            {"activation": "identity"},
            {"activation": "relu"},
            {"activation": "swoosh"},
            {"bias": False},
            {"width_out": 8},
            {"width_in": 16},
            {"residual": True},
            {"kind": "layer-norm"},
            {"kind": "pooler"},
            {"weights": None},
            {"weights": "0" * 64},
        ],
        ids=str,
    )
    def test_so_is_every_part_of_a_projection(self, shown, tmp_path, changes):
        """A Dense with tanh and a bias, from 32 to 16, and then unit length."""
        folder = save_tiny(tmp_path, tail=lambda: [dense(16, torch.nn.Tanh()), Normalize()])
        said = projection_of(folder, "2_Dense", "dense", (32, 16), activation="tanh")
        true = {"readout.normalisation": AFTER_PROJECTION, ".meaning.output.dimension": 16}
        assert shown(folder, {**true, "readout.projections": [said]}).ok
        assert not shown(folder, {**true, "readout.projections": [said | changes]}).ok

    def test_so_are_the_stage_and_the_order_of_projections(self, shown, tmp_path):
        """Unit length before the Dense or after it; LayerNorm before the Dense or after it."""
        folder = save_tiny(tmp_path, tail=lambda: [layer_norm(), dense(32, torch.nn.ReLU()), Normalize()])
        norm = projection_of(folder, "2_LayerNorm", "layer-norm", (32, 32))
        wide = projection_of(folder, "3_Dense", "dense", (32, 32), activation="relu")
        true = {"readout.projections": [norm, wide], "readout.normalisation": AFTER_PROJECTION}
        assert shown(folder, true).ok
        assert not shown(folder, {**true, "readout.projections": [wide, norm]}).ok
        assert not shown(folder, {**true, "readout.projections": [wide]}).ok
        assert not shown(folder, {**true, "readout.normalisation.stage": "after-pooling"}).ok

    def test_a_library_that_weighs_otherwise_is_found_out(self, shown, tmp_path, monkeypatch):
        """The manifest and the folder as before, and the pinned weighted mean in the library."""
        folder = save_tiny(tmp_path, pooling="weightedmean")
        physical_weighted_mean(monkeypatch)
        found = shown(folder, WEIGHTED)
        assert not found.ok and "behind padding" in found.text
        assert shown(folder, {**WEIGHTED, "readout.weights": "physical-position"}).ok

    def test_vectors_that_are_not_finite_are_no_proof(self, encoder, tiny):
        """Neither beside others nor beside themselves."""
        model = encoder()
        with torch.no_grad():
            model.sides["query"].modules[0].model.embeddings.word_embeddings.weight.fill_(torch.nan)
        found = parity(model, manifest_with({}), probe_texts(48))
        assert not found.ok and found.largest_difference == float("inf")

    def test_a_text_that_makes_the_model_raise_fails_with_its_reason(self, shown, tiny):
        """Half of a surrogate pair is no text."""
        found = shown(tiny, {}, texts={"half": "\ud800"})
        assert not found.ok and "half" in found.text


class TestWhatDoesNotMatter:
    @pytest.mark.parametrize(
        "changes",
        [
            {"readout.normalisation.stage": "after-projection"},
            {"readout.stored": "int8"},
            {"rows.prompt": False},
            {"rows.segments": False},
            {"rows.offsets": False},
            {"input.lower_case": None},
            {"input.suite_prompts": {"other": {"query": "the: "}}},
            {"artifact.revision": "a"},
            {".meaning.score.type": "dot"},
            {".meaning.score.threshold": 0.5},
            {".identity.name": "other"},
            {".runtime.declared": {"threads": 2}},
        ],
        ids=str,
    )
    def test_other_fields_leave_parity_alone(self, shown, tiny, changes):
        """Names, scores and storage; a stage after no projection; a prompt that isn't there."""
        found = shown(tiny, changes)
        assert found.ok, found.text


class TestAStaleManifest:
    def test_a_file_that_changed_since_is_named(self, shown, tmp_path):
        """By the digests that the manifest recorded, before anything is computed."""
        folder = save_tiny(tmp_path)
        names = ["1_Pooling/config.json", "model.safetensors", "tokenizer.json"]
        files = {name: file_digest(folder / name) for name in names}
        recorded = {".evidence.files": files}
        assert shown(folder, recorded).ok and stale(manifest_with(recorded), folder) == ()
        with (folder / "1_Pooling/config.json").open("a") as stream:
            stream.write(" ")
        assert stale(manifest_with(recorded), folder) == ("1_Pooling/config.json",)
        found = shown(folder, recorded)
        assert not found.ok and "stale" in found.text and "1_Pooling/config.json" in found.text
        (folder / "tokenizer.json").unlink()
        assert stale(manifest_with(recorded), folder) == ("1_Pooling/config.json", "tokenizer.json")


class TestTheRecipe:
    def test_weights_are_found_by_their_digest(self, tmp_path):
        """In float64, also where they are stored in bfloat16."""
        from safetensors.torch import save_file

        weight = torch.arange(6.0).reshape(2, 3)
        save_file({"linear.weight": weight.bfloat16(), "linear.bias": torch.ones(2)}, tmp_path / "model.safetensors")
        said = projection_of(tmp_path, ".", "dense", (3, 2), activation="tanh")
        made = recipe(manifest_with({"readout.projections": [said]}).meaning.towers["both"], tmp_path).projections[0]
        np.testing.assert_array_equal(made.weight, weight.numpy())
        assert made.weight.dtype == np.float64 and made.bias.tolist() == [1, 1] and made.activation == "tanh"

    def test_a_broken_file_is_refused(self, tmp_path):
        """As what it is."""
        (tmp_path / "model.safetensors").write_bytes(b"not weights")
        said = projection_of(tmp_path, ".", "dense", (3, 2))
        with pytest.raises(NotAdmitted, match="broken file"):
            recipe(manifest_with({"readout.projections": [said]}).meaning.towers["both"], tmp_path)
