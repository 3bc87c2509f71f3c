"""A release's rows and scores held against what its manifest says, in float64 and by hand-readable steps."""

import copy
import string
from pathlib import Path

import pytest
import torch
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

from harness.candidate.late_parity import late_parity
from harness.candidate.load import load
from harness.candidate.probe import probe_texts, probes
from harness.release.manifest import Manifest
from harness.release.open import open_release

from .late_folder import save_late, save_pylate, save_stanford

# Short, cut at either length, of several scripts, and empty.
TEXTS = {name: probe_texts(48)[name] for name in ("short", "two sentences", "unicode", "truncated", "empty")}
PUNCTUATION = list(string.punctuation)
LEAST = {"strategy": "min", "attend": True, "length": 12, "token": "[SEP]"}


@pytest.fixture
def opened(release):
    """An opened release of a folder, with its loaded encoder."""

    def make(folder, extra=""):
        found = release(str(folder) if str(folder).startswith("package:") else f"path:{folder}", extra, "late")
        return found, load(found, found.prompts_for())

    return make


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Filled up queries, skipped punctuation, a map with a bias, and prompts."""
    return save_late(tmp_path_factory.mktemp("own"), bias=True, activation="Tanh")


@pytest.fixture
def shown(opened, folder):
    """Parity of the folder under a manifest that departs from its own in some fields."""
    found, encoder = opened(folder)

    def make(changes):
        return late_parity(encoder, departing(found.manifest, changes), TEXTS)

    return make


def departing(manifest, changes):
    """With other values at some dotted paths of the meaning; `query` and `document` begin at that tower."""
    written = copy.deepcopy(manifest.model_dump(mode="json", by_alias=True))
    for path, value in changes.items():
        keys = path.split(".")
        *above, last = ["towers", *keys] if keys[0] in ("query", "document") else keys
        at = written["meaning"]
        for key in above:
            at = at[int(key)] if isinstance(at, list) else at[key]
        at[last] = value
    return Manifest.model_validate(written)


class TestADescribedFolder:
    @pytest.mark.parametrize("save", [save_late, save_pylate, save_stanford])
    def test_every_layout_does_what_its_files_say(self, opened, tmp_path, save):
        """Rows, masks and scores, on texts short, long, cut, empty and of every script; and in any company."""
        found, encoder = opened(save(tmp_path / "saved"))
        shown = late_parity(encoder, found.manifest, probe_texts(48))
        assert shown.ok and shown.largest_difference <= shown.tolerance == 1e-5, shown.text
        by_name = {probe.name: probe for probe in probes(encoder, found.manifest)}
        assert all(probe.ok and probe.policy is None for probe in by_name.values() if probe.fatal)
        assert by_name["left padding"].policy == "absolute positions under left padding"

    @pytest.mark.parametrize(
        "saved",
        [
            {"expansion": LEAST, "query_length": 30, "similarity": "meanmaxsim"},
            {"expansion": None, "skip": ["[CLS]", "[SEP]", "the", "."], "skip_tasks": ["query", "document"]},
            {"dense": False, "expansion": {"strategy": "fixed", "attend": True, "length": 12}},
            {"padding_side": "left"},
        ],
        ids=("at least, and a mean", "texts without a row", "attended, without a map", "filled up on the left"),
    )
    def test_so_does_every_policy(self, opened, tmp_path, saved):
        """An empty text may have no row: then the release keeps nothing of it, and neither does the reference."""
        found, encoder = opened(save_late(tmp_path / "saved", **saved))
        shown = late_parity(encoder, found.manifest, TEXTS)
        assert shown.ok, shown.text

    @pytest.mark.usefixtures("minilm")
    def test_a_bi_encoders_own_rows_are_rebuilt(self):
        """The release of MiniLM's: real weights, rows of 384, and every mark among 30522 tokens."""
        found = open_release(Path(__file__).parents[2] / "releases" / "minilm-rows")
        encoder = load(found, found.prompts_for())
        shown = late_parity(encoder, found.manifest, TEXTS)
        assert shown.ok, shown.text
        without = {"document.rows.skipped": {"document": [mark for mark in PUNCTUATION if mark != "~"]}}
        wrong = late_parity(encoder, departing(found.manifest, without), TEXTS)
        assert not wrong.ok and "rows.skipped" in wrong.text


class TestAFalseManifest:
    def test_the_true_one_is_rebuilt(self, shown):
        """What departs below departs from this."""
        found = shown({})
        assert found.ok and found.largest_difference <= found.tolerance, found.text

    @pytest.mark.parametrize(
        "changes",
        [
            {"query.rows.expansion": {"query": 10}},
            {"query.rows.expansion": {}},
            {"query.rows.expansion_counts": False},
            {"query.rows.expansion_counts": None},
            {"query.rows.expansion_strategy": "min"},
            {"query.rows.expansion_strategy": None},
            {"query.rows.expansion_token": "[SEP]"},
            {"query.rows.expansion_token": "nowhere"},
            {"query.rows.expansion_token": None},
            {"query.rows.expansion_attended": True},
            {"query.rows.expansion_attended": None},
            {"query.rows.skipped": {"query": ["the"]}},
            {"query.input.max_length": 10},
            {"query.input.max_length": 24},
            {"query.input.prompts": {"query": ""}},
            {"query.input.padding_side": "left"},
            {"document.rows.skipped": {}},
            {"document.rows.skipped": {"document": [mark for mark in PUNCTUATION if mark != "~"]}},
            {"document.rows.skipped": {"document": [*PUNCTUATION, "jet"]}},
            {"document.rows.skipped": {"document": ["nowhere"]}},
            {"document.rows.special": False},
            {"document.rows.prompt": False},
            {"document.rows.expansion": {"document": 24}},
            {"document.input.max_length": 20},
            {"document.input.max_length": 48},
            {"document.input.prompts": {"document": "the "}},
            {"document.input.padding_side": "left"},
        ],
        ids=str,
    )
    def test_every_field_that_says_which_rows_there_are_is_held(self, shown, changes):
        """Twelve rows a query, of masks that the others don't see; documents of 24 tokens without punctuation."""
        found = shown(changes)
        assert not found.ok and found.largest_difference > found.tolerance, changes

    @pytest.mark.parametrize(
        "changes",
        [
            {"document.state.width": 16},
            {"document.state.layers": [1]},
            {"document.state.layers": [1, 2]},
            {"document.state.mixture": [0.5, 0.5]},
            {"document.state.scale": 2.0},
            {"document.readout.family": "pooled"},
            {"document.readout.modes": ["mean"]},
            {"document.readout.denominator": "counted rows"},
            {"document.readout.weights": "content-relative"},
            {"document.readout.projections": []},
            {"document.readout.projections.0.kind": "layer-norm"},
            {"document.readout.projections.0.width_in": 16},
            {"document.readout.projections.0.width_out": 32},
            {"document.readout.projections.0.bias": False},
            {"document.readout.projections.0.activation": "identity"},
            {"document.readout.projections.0.residual": True},
            {"document.readout.projections.0.weights": None},
            {"document.readout.projections.0.weights": "0" * 64},
            {"document.readout.normalisation": {"kind": "none", "epsilon": None, "stage": "none"}},
            {"document.readout.normalisation.stage": "after-projection"},
            {"document.readout.truncate_dim": 8, "document.readout.renormalised": False},
            {"document.readout.renormalised": True},
            {"document.readout.max_active_dims": 8},
            {"document.readout.empty": "zero"},
            {"output.dimension": 32},
        ],
        ids=str,
    )
    def test_so_is_every_field_that_says_what_a_row_becomes(self, shown, changes):
        """A map with tanh and a bias, from 32 to 16, and unit length."""
        assert not shown(changes).ok

    def test_so_is_the_smallest_length_divided_by(self, opened, tmp_path):
        """Without a bias, rows of almost no length stay so short that it shows."""
        found, encoder = opened(save_late(tmp_path / "saved"))
        assert late_parity(encoder, found.manifest, TEXTS).ok
        other = departing(found.manifest, {"document.readout.normalisation.epsilon": 1e-3})
        assert "almost no length" in late_parity(encoder, other, TEXTS).text

    @pytest.mark.parametrize(
        "changes",
        [
            {"interaction.maxsim": "mean"},
            {"interaction.maxsim": None},
            {"interaction.maxsim_ties": None},
            {"interaction.token_schema": "float32 [width, row]"},
            {"output.kind": "vector"},
            {"score.type": "dot"},
        ],
        ids=str,
    )
    def test_so_is_every_field_that_says_what_rows_are_worth_to_each_other(self, shown, changes):
        """A sum over the query's rows."""
        assert not shown(changes).ok

    def test_a_mean_that_is_said_to_be_a_sum_is_refused_with_the_pair(self, opened, tmp_path):
        """By query and document, and how far off."""
        found, encoder = opened(save_late(tmp_path / "saved", similarity="meanmaxsim"))
        shown = late_parity(encoder, departing(found.manifest, {"interaction.maxsim": "sum"}), TEXTS)
        assert (
            not shown.ok
            and shown.text.startswith("query '")
            and "the score is off by 0.92 of the largest" in shown.text
        )

    def test_a_row_too_many_is_told_as_that(self, shown):
        """How many there are, and how many there should be."""
        assert (
            "12 rows of 16 dimensions, by the manifest 10 rows" in shown({"query.rows.expansion": {"query": 10}}).text
        )


class TestWhatDoesNotMatter:
    @pytest.mark.parametrize(
        "changes",
        [
            {"query.rows.segments": False},
            {"document.rows.offsets": False},
            {"document.readout.stored": "int8"},
            {"document.artifact.revision": "a"},
            {"document.input.suite_prompts": {"other": {"document": "the "}}},
            {"score.threshold": 0.5},
            {"interaction.tied": False},
        ],
        ids=str,
    )
    def test_other_fields_leave_parity_alone(self, shown, changes):
        """Names, storage, and what is asked of other texts."""
        found = shown(changes)
        assert found.ok, found.text


class TestALibraryThatDoesOtherwise:
    def test_a_skip_list_that_is_read_for_queries_is_found_out(self, opened, folder, monkeypatch):
        """The manifest and the folder as before, and another mask in the library."""
        found, encoder = opened(folder)
        forward = MultiVectorMask.forward
        monkeypatch.setattr(MultiVectorMask, "forward", lambda self, features, task=None: forward(self, features))
        assert not late_parity(encoder, found.manifest, TEXTS).ok

    def test_a_score_that_takes_the_largest_on_the_other_side_is_found_out(self, opened, folder, monkeypatch):
        """For each document row its nearest query row."""
        found, encoder = opened(folder)
        similarity = type(encoder).similarity
        monkeypatch.setattr(type(encoder), "similarity", lambda self, some, others: similarity(self, others, some).T)
        assert "the score is off" in late_parity(encoder, found.manifest, TEXTS).text

    def test_rows_that_are_not_finite_are_no_proof(self, opened, folder):
        """Neither beside others nor beside themselves."""
        found, encoder = opened(folder)
        with torch.no_grad():
            encoder.sides["query"].modules[0].model.embeddings.word_embeddings.weight.fill_(torch.nan)
        assert late_parity(encoder, found.manifest, TEXTS).largest_difference == float("inf")

    def test_a_text_that_makes_the_model_raise_fails(self, opened, folder):
        """Half of a surrogate pair is no text."""
        found, encoder = opened(folder)
        assert not late_parity(encoder, found.manifest, {"half": "\ud800"}).ok
