"""What a folder must be before anything in it is believed."""

import pytest

from ..conftest import BODY, broken, checks, safetensors

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"


class TestSound:
    def test_every_kind_of_folder_keeps_every_invariant(self, bi, dense, sequence, recorded):
        """Each of the tests below breaks one of these."""
        head = sequence("head", 3, "head", '[output]\nkind = "classes"\n')
        for folder in (bi("a"), dense("b"), sequence(name="c"), head, recorded()):
            assert broken(folder) == []

    def test_names_are_stable_and_in_kebab_case(self, bi):
        """Others wait for them."""
        assert all(name == name.lower() and " " not in name for name in checks(bi()))


class TestWeights:
    @pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt", "model.pkl"])
    def test_only_pickled_weights_are_refused_with_the_way_to_convert_them(self, bi, name):
        """A pickle can run code."""
        found = checks(bi().remove("model/model.safetensors").write(f"model/{name}", "x"))["weights-safe"]
        assert not found.ok and name in found.found and "safe_serialization" in found.mend

    def test_a_pickle_beside_safetensors_is_not_read(self, bi):
        """So it does no harm."""
        assert broken(bi().write("model/pytorch_model.bin", "x")) == []

    def test_missing_weights_are_refused(self, bi):
        """Nothing is downloaded in their place."""
        assert broken(bi().remove("model/model.safetensors")) == ["weights-there"]

    def test_a_projection_needs_its_own_weights(self, dense):
        """The root's safetensors don't cover a pickled Dense, or one without any."""
        folder = dense().remove("model/2_Dense/model.safetensors")
        assert "2_Dense/model.safetensors" in checks(folder)["weights-there"].found
        assert "weights-safe" in broken(folder.write("model/2_Dense/pytorch_model.bin", "x"))

    def test_a_git_lfs_pointer_is_not_the_file(self, bi):
        """The mend is `git lfs pull`."""
        found = checks(bi().write("model/model.safetensors", POINTER))["files-whole"]
        assert not found.ok and "model.safetensors" in found.found and "git lfs pull" in found.mend

    @pytest.mark.parametrize(
        "file",
        ["config.json", "tokenizer.json", "tokenizer_config.json", "modules.json", "1_Pooling/config.json",
         "sentence_bert_config.json", "model.safetensors", "vocab.txt", "config_sentence_transformers.json"],
    )  # fmt: skip
    def test_no_file_may_be_a_pointer(self, bi, file):
        """Also one without which nothing can be described; then the refusal says why it cannot be read, too."""
        found = checks(bi().write(f"model/{file}", POINTER))
        assert file in found["files-whole"].found and "git lfs pull" in found["files-whole"].mend
        if "described" in found:
            assert "Git LFS pointer" in found["described"].found

    def test_every_shard_of_an_index_must_be_there(self, bi):
        """One of two is missing; with both the folder is whole."""
        folder = bi().remove("model/model.safetensors").write("model/model-1.safetensors", safetensors(BODY))
        folder.write(
            "model/model.safetensors.index.json",
            {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}},
        )
        assert "model-2.safetensors" in checks(folder)["weights-there"].found
        assert broken(folder.write("model/model-2.safetensors", safetensors({"other": [1]}))) == []

    def test_an_adapter_whose_base_lies_elsewhere_is_refused(self, bi):
        """Also beside whole weights, for the library would look for the base."""
        assert "Merge" in checks(bi().write("model/adapter_config.json", {}))["adapter-merged"].mend

    def test_a_link_that_leads_nowhere_is_refused(self, bi, tmp_path):
        """A cache whose blob is gone."""
        folder = bi().remove("model/tokenizer.json")
        (folder.path / "model" / "tokenizer.json").symlink_to(tmp_path / "gone")
        assert "leads nowhere" in checks(folder)["files-there"].found


class TestRemoteCode:
    @pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
    def test_an_auto_map_is_refused(self, bi, file):
        """It names code in the folder that would have to be run."""
        found = checks(bi().change(f"model/{file}", auto_map={"AutoModel": "modeling.Model"}))["no-remote-code"]
        assert not found.ok and file in found.found


class TestModules:
    def test_a_key_that_a_module_does_not_have_is_refused(self, bi):
        """The library would not load it, or not as it is meant."""
        found = checks(bi().change("model/1_Pooling/config.json", median=True))["module-settings"]
        assert not found.ok and found.found == "1_Pooling/config.json#/median"
