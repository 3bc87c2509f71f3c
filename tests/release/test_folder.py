"""Which files of a model folder count."""

import os

import pytest

from harness.errors import NotAdmitted
from harness.release.folder import read_folder

from .conftest import safetensors


def files(folder) -> dict[str, str]:
    return dict(read_folder(folder.path / "model").files)


class TestFilesThatCount:
    def test_a_complete_folder_counts_what_the_libraries_read(self, bi):
        """Also without the folder of Normalize, which has nothing in it."""
        assert list(files(bi())) == [
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
        assert files(bi("a")) == files(bi("b").write(f"model/{name}", "anything"))

    def test_a_link_out_of_the_folder_is_followed(self, bi, tmp_path):
        """As in a download cache, where every file is a link; what counts is what it leads to."""
        plain, linked = bi("a"), bi("b")
        for name in ("model.safetensors", "1_Pooling"):
            target = tmp_path / f"blob-{name}"
            (linked.path / "model" / name).rename(target)
            (linked.path / "model" / name).symlink_to(target)
        assert files(plain) == files(linked)

    def test_a_ring_of_links_ends(self, bi):
        """A folder that links to itself, or to one below, is read once."""
        folder = bi()
        (folder.path / "model" / "again").symlink_to(folder.path / "model")
        (folder.path / "model" / "1_Pooling" / "again").symlink_to(folder.path / "model" / "1_Pooling")
        assert len(files(folder)) == 7

    def test_what_is_no_file_is_not_waited_for(self, bi):
        """A pipe that nobody writes to would be read for ever."""
        folder = bi()
        os.mkfifo(folder.path / "model" / "pipe.json")
        assert len(files(folder)) == 7

    def test_a_changed_file_is_digested_again(self, bi):
        """Digests are remembered, but not past a change of the file, also to one of equal size."""
        folder = bi()
        weights = folder.path / "model" / "model.safetensors"
        before = files(folder)["model.safetensors"]
        content = weights.read_bytes()
        weights.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        os.utime(weights, ns=(0, weights.stat().st_mtime_ns + 1_000_000_000))
        assert files(folder)["model.safetensors"] != before

    def test_pointers_and_broken_links_are_told_apart_from_files(self, bi, tmp_path):
        """Neither is judged here; a broken link has no digest."""
        folder = bi().write("model/model.safetensors", "version https://git-lfs.github.com/spec/v1\noid sha256:00\n")
        folder.remove("model/tokenizer.json")
        (folder.path / "model" / "tokenizer.json").symlink_to(tmp_path / "gone")
        read = read_folder(folder.path / "model")
        assert (read.pointers, read.broken) == (("model.safetensors",), ("tokenizer.json",))
        assert "tokenizer.json" not in read.files


class TestJson:
    def test_an_object_is_read_and_an_absent_file_is_none(self, bi):
        """Whether it has to be there is for others to say."""
        read = read_folder(bi().path / "model")
        assert read.json("config.json")["model_type"] == "bert" and read.json("nothing.json") is None

    @pytest.mark.parametrize("content", ["{", "[]", '"x"', "null"])
    def test_anything_else_is_refused_with_its_path(self, bi, content):
        """No JSON, or no object."""
        read = read_folder(bi().write("model/config.json", content).path / "model")
        with pytest.raises(NotAdmitted, match=r"config\.json"):
            read.json("config.json")

    @pytest.mark.parametrize(
        "value", ["NaN", "-Infinity", "1e999", '"\\ud800"', "9" * 5000, '{"a": 1, "a": 2}'], ids=lambda text: text[:12]
    )
    def test_what_cannot_be_digested_or_reads_in_two_ways_is_refused(self, bi, value):
        """No digest says NaN or half a character, and of a key that stands twice each library may take another."""
        read = read_folder(bi().write("model/config.json", f'{{"x": {value}}}').path / "model")
        with pytest.raises(NotAdmitted, match=r"config\.json: no JSON"):
            read.json("config.json")

    def test_a_number_beyond_all_counting_is_a_double(self, bi):
        """As tokenizers say that they have no limit; canonical JSON has no such whole number."""
        read = read_folder(bi().write("model/config.json", f'{{"x": {10**30}, "y": {2**53 - 1}}}').path / "model")
        x, y = read.json("config.json").values()
        assert (x, type(x), y, type(y)) == (1e30, float, 2**53 - 1, int)


class TestDigestsByPlace:
    def test_only_files_right_in_the_place_are_given(self, bi):
        """Those of a module's folder are that module's."""
        folder = bi().write("model/2_Dense/model.safetensors", safetensors({"linear.weight": [1]}))
        read = read_folder(folder.path / "model")
        assert list(read.digests(read.path.relative_to(read.path), "*.safetensors")) == ["model.safetensors"]
