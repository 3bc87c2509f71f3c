"""What padding, batches and order do to a vector, and which policy a change reveals."""

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling

from harness.candidate.load import load
from harness.candidate.probe import PROBE_TEXTS, probe_texts, probes, relative_difference, sides
from harness.errors import Misconfigured

from .conftest import manifest_with, save_tiny
from .test_marker import physical_first_row, physical_weighted_mean

BATCHES = ("batches of 1", "batches of 2", "batches of 8", "batches of mixed size", "another order")


def by_name(found):
    return {probe.name: probe for probe in found}


class TestAHealthyRelease:
    def test_its_own_padding_batches_and_order_change_nothing(self, encoder):
        """Every probe for which it answers is within the tolerance."""
        found = by_name(probes(encoder(), manifest_with({})))
        assert {name for name, probe in found.items() if probe.fatal} == {
            *BATCHES, "right padding", "padding to a multiple of 8", "as evaluated",
        }  # fmt: skip
        assert all(probe.ok and probe.policy is None for probe in found.values() if probe.fatal)
        assert all(probe.largest_difference <= probe.tolerance == 1e-4 for probe in found.values() if probe.fatal)

    def test_the_other_side_is_evidence_that_names_absolute_positions(self, encoder):
        """A BERT counts positions by column; mean pooling does not, so nothing else is named."""
        left = by_name(probes(encoder(), manifest_with({})))["left padding"]
        assert not left.ok and not left.fatal and left.largest_difference > 0.01
        assert left.policy == "absolute positions under left padding"

    def test_the_packaged_minilm_answers_for_right_padding_alone(self, release, minilm):
        """Real weights, and texts of 512 positions at most."""
        opened = release(minilm)
        changes = {"input.max_length": 256, "state.width": 384, "state.layers": [6]}
        found = by_name(probes(load(opened, opened.prompts_for("any")), manifest_with(changes)))
        assert all(probe.ok for probe in found.values() if probe.fatal)
        assert found["left padding"].policy == "absolute positions under left padding"

    def test_every_side_is_probed_where_the_prompts_differ(self, encoder):
        """And once where they don't."""
        prompts = {"query": "the: ", "document": ""}
        assert list(sides(manifest_with({"input.prompts": prompts}))) == ["query", "document"]
        assert list(sides(manifest_with({}))) == ["query"]
        model = encoder('[prompts]\nquery = "the: "\n')
        assert all(probe.ok for probe in probes(model, manifest_with({"input.prompts": prompts})) if probe.fatal)


class TestPoliciesThatCountByColumn:
    @pytest.mark.parametrize(
        ("mode", "patch", "named"),
        [
            ("weightedmean", physical_weighted_mean, "weighted mean over physical positions"),
            ("cls", physical_first_row, "physical first row"),
        ],
    )
    def test_they_are_named_beside_the_positions(self, encoder, tmp_path, monkeypatch, mode, patch, named):
        """The library's own mode counts from the text, and names nothing; one that counts by column is named."""
        model = encoder(folder=save_tiny(tmp_path, pooling=mode))
        manifest = manifest_with({"readout.modes": [mode]})
        assert by_name(probes(model, manifest))["left padding"].policy == "absolute positions under left padding"
        patch(monkeypatch)
        found = by_name(probes(model, manifest))
        assert found["left padding"].policy == f"absolute positions under left padding; {named}"
        assert found["right padding"].ok and found["right padding"].policy is None

    def test_a_pooling_that_counts_padding_refuses_the_release(self, encoder, monkeypatch):
        """Then right padding, batches and widths all change the vector."""

        def careless(self, features, **options):
            features["sentence_embedding"] = features["token_embeddings"].mean(dim=1)
            return features

        model = encoder()
        monkeypatch.setattr(Pooling, "forward", careless)
        found = by_name(probes(model, manifest_with({})))
        assert not found["right padding"].ok and found["right padding"].fatal
        assert found["right padding"].policy == "padding counts in the readout"
        assert not found["batches of 2"].ok and not found["padding to a multiple of 8"].ok

    def test_a_release_that_pads_left_answers_for_the_left(self, encoder, tmp_path):
        """A BERT padded on the left is refused, and its right side is evidence."""
        model = encoder(folder=save_tiny(tmp_path, padding_side="left"))
        found = by_name(probes(model, manifest_with({"input.padding_side": "left"})))
        assert found["left padding"].fatal and not found["left padding"].ok
        assert not found["right padding"].fatal and found["right padding"].ok


class TestCompany:
    @pytest.mark.parametrize(
        ("company", "spared", "hit"),
        [
            (lambda rows: rows.mean(dim=0, keepdim=True), "batches of 1", "batches of 2"),
            (lambda rows: torch.arange(len(rows))[:, None] / 10, "batches of 1", "another order"),
        ],
    )
    def test_a_model_that_looks_at_its_batch_is_refused(self, encoder, monkeypatch, company, spared, hit):
        """Alone it gives what it gives; with others, or elsewhere in the batch, another vector."""
        model = encoder()
        forward = Pooling.forward

        def looking(self, features, **options):
            found = forward(self, features, **options)
            found["sentence_embedding"] = found["sentence_embedding"] + company(found["sentence_embedding"])
            return found

        monkeypatch.setattr(Pooling, "forward", looking)
        found = by_name(probes(model, manifest_with({})))
        assert found[spared].ok and not found[hit].ok and found[hit].fatal

    def test_vectors_that_are_not_finite_are_no_match(self, encoder):
        """NaN beside NaN proves nothing."""
        model = encoder()
        with torch.no_grad():
            model.sides["query"].modules[0].model.embeddings.word_embeddings.weight.fill_(torch.nan)
        found = probes(model, manifest_with({}))
        assert all(probe.largest_difference == float("inf") and not probe.ok for probe in found)


class TestWhatIsAsked:
    def test_the_texts_cover_lengths_marks_and_nothing(self, encoder):
        """One word, long, Unicode, empty after stripping; and one that is cut at any length."""
        assert {"one word", "short", "long", "unicode", "empty after stripping"} <= set(PROBE_TEXTS)
        assert not PROBE_TEXTS["empty after stripping"].strip() and len(PROBE_TEXTS["one word"].split()) == 1
        for length in (16, 48):
            texts = probe_texts(length)
            encoded = encoder(f"[input]\nmax_length = {length}\n").encode([texts["truncated"]], "query")
            assert encoded.tokens_lost[0] > 0

    def test_a_difference_is_relative_to_the_largest_value(self):
        """Off by .02 where the largest value is 4: .005."""
        found, expected = np.array([4.0, -1.0]), np.array([4.0, -1.02])
        assert relative_difference(found, expected) == pytest.approx(0.005)
        assert relative_difference(np.zeros(2), np.zeros(2)) == 0
        assert relative_difference(np.zeros(2), np.zeros(3)) == float("inf")

    def test_a_release_without_a_pooled_tower_cannot_be_probed(self, encoder):
        """Rows of late interaction are another matter."""
        with pytest.raises(Misconfigured, match="Only such an encoder"):
            probes(encoder(), manifest_with({"readout.family": "token-head"}))
