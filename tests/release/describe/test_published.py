"""Nine folders that others have published, without their weights: each is described, or refused with its fault."""

import pytest

from harness.errors import NotAdmitted
from harness.release.admit import findings
from harness.release.definition import ReleaseDefinition
from harness.release.describe import describe, interaction_of
from harness.release.folder import read_folder


@pytest.fixture
def published(shared_data):
    """The folder by name, with its definition, which says nothing that the folder could."""

    def read(name):
        folder = read_folder(shared_data("model_configs") / name)
        definition = ReleaseDefinition.model_validate({
            "schema": "harness.release.v1", "name": "published", "interaction": interaction_of(folder),
            "model": {"source": "path:model"},
        })  # fmt: skip
        return definition, folder

    return read


class TestDescribed:
    def test_two_versions_of_a_cross_encoders_file_mean_the_same(self, published):
        """Saved by 4.1 and 5.2: one pair, one logit, identity."""
        manifests = [describe(*published(f"ms-marco-MiniLM-L-6-v2_{version}")) for version in ("ST4", "ST5")]
        assert len({manifest.identity.content_id for manifest in manifests}) == 1
        meaning = manifests[0].meaning
        assert (meaning.interaction.kind, meaning.score.type, meaning.score.activation) == (
            "cross",
            "logit",
            "identity",
        )
        assert meaning.towers["pair"].state.width == 384 and meaning.towers["pair"].state.layers == [6]

    def test_labse_takes_the_first_row_through_a_dense_and_normalises(self, published):
        """Its 1_Pooling is a file, and its Normalize has no folder."""
        meaning = describe(*published("multilingual_labse")).meaning
        readout = meaning.towers["both"].readout
        assert (readout.modes, readout.normalisation.stage) == (["cls"], "after-projection")
        assert [(step.width_in, step.width_out, step.activation) for step in readout.projections] == [
            (768, 768, "tanh")
        ]
        assert meaning.towers["both"].input.max_length == 256 and meaning.towers["both"].input.lower_case is False

    def test_an_mpnet_is_cut_at_384_of_its_512_positions(self, published):
        """Empty prompts are prompts; mean and unit length."""
        definition, folder = published("techarena_biencoder")
        manifest = describe(definition, folder)
        found = manifest.meaning.towers["both"]
        assert (found.input.max_length, found.readout.modes) == (384, ["mean"])
        assert found.input.special_tokens["mask_token"] == 30526
        assert manifest.evidence.sources["towers.both.input.prompts.query"].endswith("#/prompts/query")

    def test_a_decoder_with_a_dense_of_8192_is_described(self, published):
        """Causal, with a final norm; from 1536 to 8192 without an activation."""
        meaning = describe(*published("stella_en_1.5B_v5")).meaning
        found = meaning.towers["both"]
        assert (found.artifact.visibility, found.state.final_norm, meaning.output.dimension) == ("causal", True, 8192)


class TestFaults:
    def test_pointers_code_and_unused_prompts_are_all_named_at_once(self, published):
        """LFS pointers in three places, `auto_map` in two files, two prompts for no side."""
        definition, folder = published("stella_en_1.5B_v5")
        broken = {check.name: check for check in findings(describe(definition, folder), folder) if not check.ok}
        assert {"files-whole", "no-remote-code", "tokenizer-there", "prompt-names"} <= set(broken)
        assert (
            broken["files-whole"].found.count("Git LFS pointer") == 3 and "git lfs pull" in broken["files-whole"].mend
        )
        assert "s2p_query" in broken["prompt-names"].found
        assert broken["no-remote-code"].found.count("auto_map") == 2

    def test_a_pooling_that_is_a_file_cannot_be_loaded(self, published):
        """The mend says what to move where."""
        definition, folder = published("multilingual_labse")
        broken = {check.name: check for check in findings(describe(definition, folder), folder) if not check.ok}
        assert set(broken) == {"weights-there", "tokenizer-there", "module-folders"}
        assert "config.json" in broken["module-folders"].mend

    @pytest.mark.parametrize(
        ("name", "file"),
        [
            ("bge-m3_ST55", "modules.json"),
            ("lodestone_minimal_pooling", "modules.json"),
            ("instructor_hkunlp", "1_Pooling/config.json"),
            ("colbert_legal_artifact", "config.json"),
        ],
    )
    def test_a_folder_that_lacks_what_says_its_meaning_is_refused_by_that_file(self, published, name, file):
        """Nothing is put in its place."""
        with pytest.raises(NotAdmitted) as refusal:
            describe(*published(name))
        assert refusal.value.subject.endswith(file) and refusal.value.found == "no such file"
