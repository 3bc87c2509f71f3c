"""Which files of a model folder count, and which folders may not be run."""

import os

import pytest

from harness.errors import NotAdmitted
from harness.release.folder import open_model_folder


def refusal(folder) -> NotAdmitted:
    with pytest.raises(NotAdmitted) as caught:
        open_model_folder(folder.path / "model")
    assert caught.value.exit_code == 4
    return caught.value


class TestFilesThatCount:
    def test_a_complete_folder_counts_what_the_libraries_read(self, bi):
        """Also without the folder of Normalize, which has nothing in it."""
        assert list(open_model_folder(bi().path / "model").files) == [
            "1_Pooling/config.json", "config.json", "model.safetensors", "modules.json", "sentence_bert_config.json",
            "tokenizer.json", "tokenizer_config.json",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        "name",
        ["README.md", "LICENSE", ".gitattributes", ".cache/x.json", "__pycache__/x.json", "train.py", "onnx/model.onnx",
         "openvino/model.xml", "pytorch_model.bin", "tf_model.h5", "data_config.json"],
    )  # fmt: skip
    def test_what_they_do_not_read_does_not(self, bi, name):
        """Words, code, other backends, and pickles beside safetensors."""
        plain, other = bi("a"), bi("b").write(f"model/{name}", "anything")
        assert open_model_folder(plain.path / "model").files == open_model_folder(other.path / "model").files

    def test_a_link_out_of_the_folder_is_followed(self, bi, tmp_path):
        """As in a download cache, where every file is a link; what counts is what it leads to."""
        plain, linked = bi("a"), bi("b")
        for name in ("model.safetensors", "1_Pooling"):
            target = tmp_path / f"blob-{name}"
            (linked.path / "model" / name).rename(target)
            (linked.path / "model" / name).symlink_to(target)
        assert open_model_folder(plain.path / "model").files == open_model_folder(linked.path / "model").files

    def test_a_ring_of_links_ends(self, bi):
        """A folder that links to itself, or to one below, is read once."""
        folder = bi()
        (folder.path / "model" / "again").symlink_to(folder.path / "model")
        (folder.path / "model" / "1_Pooling" / "again").symlink_to(folder.path / "model" / "1_Pooling")
        assert len(open_model_folder(folder.path / "model").files) == 7

    def test_a_changed_file_is_digested_again(self, bi):
        """Digests are remembered, but not past a change of the file, also to one of equal size."""
        folder = bi()
        weights = folder.path / "model" / "model.safetensors"
        before = open_model_folder(folder.path / "model").files["model.safetensors"]
        folder.write("model/model.safetensors", "WEIGHTS")
        os.utime(weights, ns=(0, weights.stat().st_mtime_ns + 1_000_000_000))
        assert open_model_folder(folder.path / "model").files["model.safetensors"] != before


class TestWeights:
    @pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "model.ckpt", "model.pkl"])
    def test_only_pickled_weights_are_refused_with_the_way_to_convert_them(self, bi, name):
        """A pickle can run code."""
        said = refusal(bi().remove("model/model.safetensors").write(f"model/{name}", "x"))
        assert "safetensors" in said.mend and name in said.found

    def test_missing_weights_are_refused(self, bi):
        """Nothing is downloaded in their place."""
        assert "model.safetensors" in refusal(bi().remove("model/model.safetensors")).subject

    def test_a_projection_needs_its_own_weights(self, bi):
        """The root's safetensors don't cover a pickled Dense."""
        folder = bi().write("model/modules.json", [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
            {"path": "2_Dense", "type": "sentence_transformers.models.Dense"},
        ])  # fmt: skip
        folder.write("model/2_Dense/config.json", {"in_features": 8, "out_features": 8})
        folder.write("model/2_Dense/pytorch_model.bin", "x")
        assert "pickled" in refusal(folder).found

    def test_a_git_lfs_pointer_is_not_the_file(self, bi):
        """The mend is `git lfs pull`."""
        pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 90868376\n"
        said = refusal(bi().write("model/model.safetensors", pointer))
        assert "git lfs pull" in said.mend and said.subject.endswith("model.safetensors")

    def test_every_shard_of_an_index_must_be_there(self, bi):
        """One of two is missing; with both the folder is whole."""
        folder = bi().remove("model/model.safetensors").write("model/model-1.safetensors", "x")
        index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
        folder.write("model/model.safetensors.index.json", index)
        assert "model-2.safetensors" in refusal(folder).found
        open_model_folder(folder.write("model/model-2.safetensors", "y").path / "model")

    def test_an_adapter_alone_is_refused(self, bi):
        """Its base model lies elsewhere."""
        assert "Merge" in refusal(bi().write("model/adapter_config.json", {})).mend

    def test_a_link_that_leads_nowhere_is_refused(self, bi, tmp_path):
        """A cache whose blob is gone."""
        folder = bi().remove("model/tokenizer.json")
        (folder.path / "model" / "tokenizer.json").symlink_to(tmp_path / "gone")
        assert "leads nowhere" in refusal(folder).found


class TestRemoteCode:
    @pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
    def test_an_auto_map_is_refused(self, bi, file):
        """It names code in the folder that would have to be run."""
        said = refusal(bi().change(f"model/{file}", auto_map={"AutoModel": "modeling.Model"}))
        assert "remote code" in said.found and said.subject.endswith(file)

    def test_a_module_of_someone_elses_is_refused(self, bi):
        """Only the library's own modules are run."""
        modules = [{"path": "", "type": "custom_st.Transformer"}]
        assert (
            "custom_st.Transformer, which asks for remote code"
            in refusal(bi().write("model/modules.json", modules)).found
        )

    def test_a_module_that_is_not_supported_is_refused_by_name(self, bi):
        """The library's own Router runs other modules for each side."""
        modules = [{"path": "", "type": "sentence_transformers.base.modules.router.Router"}]
        assert "Router" in refusal(bi().write("model/modules.json", modules)).found

    def test_a_published_model_with_remote_code_is_refused(self, bi, shared_data):
        """Its config.json has an auto_map, and its projection's weights are pointers."""
        source = shared_data("model_configs") / "stella_en_1.5B_v5"
        folder = bi().write("model/config.json", (source / "config.json").read_text())
        assert "auto_map" in refusal(folder).found


class TestBrokenFolders:
    @pytest.mark.parametrize("file", ["modules.json", "config.json", "1_Pooling/config.json"])
    def test_a_file_that_is_absent_is_named(self, bi, file):
        """Without modules.json the library would guess the pooling."""
        assert refusal(bi().remove(f"model/{file}")).subject.endswith(file)

    @pytest.mark.parametrize("content", ["{", "[]", "null", '[{"path": 1}]', "[1]"])
    def test_a_modules_file_that_is_broken_is_named(self, bi, content):
        """No JSON, or not a list of modules."""
        assert refusal(bi().write("model/modules.json", content)).subject.endswith("modules.json")

    @pytest.mark.parametrize("content", ["{", "[]", '"x"'])
    def test_a_configuration_that_is_broken_is_named(self, bi, content):
        """No JSON, or no object."""
        assert refusal(bi().write("model/config.json", content)).subject.endswith("config.json")

    @pytest.mark.parametrize("place", ["../1_Pooling", "/etc"])
    def test_a_module_outside_the_folder_is_refused(self, bi, place):
        """A path cannot leave the model."""
        modules = [
            {"path": "", "type": "sentence_transformers.models.Transformer"},
            {"path": place, "type": "sentence_transformers.models.Pooling"},
        ]
        assert "inside the model folder" in refusal(bi().write("model/modules.json", modules)).expected

    def test_a_folder_without_pooling_is_refused(self, bi):
        """Its vectors would have no stated meaning."""
        modules = [{"path": "", "type": "sentence_transformers.models.Transformer"}]
        assert "Pooling" in refusal(bi().write("model/modules.json", modules)).expected
