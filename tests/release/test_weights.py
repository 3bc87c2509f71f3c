"""Names, shapes and digests of tensors, read from a file's header and bytes."""

import json
import struct
from pathlib import PurePosixPath
from typing import ClassVar

import pytest

from harness.release.describe.split import split
from harness.release.folder import read_folder
from harness.release.weights import tensors

from .conftest import safetensors


@pytest.fixture
def weights(tmp_path):
    def make(content, name="model.safetensors"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else safetensors(content))
        return path

    return make


class TestTensors:
    def test_names_and_shapes_are_the_headers(self, weights):
        """As the safetensors library reads them."""
        from safetensors import safe_open

        path = weights({"a.weight": [2, 3], "b": [4]})
        with safe_open(path, "np") as stream:
            assert {name: tuple(stream.get_slice(name).get_shape()) for name in stream.keys()} == {  # noqa: SIM118
                name: tensor.shape for name, tensor in tensors(path).items()
            }

    @pytest.mark.parametrize(
        "content",
        [b"", b"short", b"weights of another kind", struct.pack("<Q", 1 << 60) + b"{}", struct.pack("<Q", 2) + b"[]",
         struct.pack("<Q", 5) + b"{bad}", struct.pack("<Q", 13) + b'{"a":{"b":1}}'],
    )  # fmt: skip
    def test_a_header_that_cannot_be_read_gives_none(self, weights, content):
        """Too short, too long, no JSON, no tensors."""
        assert tensors(weights(content)) is None

    def test_bytes_that_are_cut_off_give_none(self, weights):
        """A tensor that ends behind the file is not there."""
        assert tensors(weights(safetensors({"a": [4]})[:-1])) is None


class TestDigest:
    """What a model's weights are, whatever files they lie in."""

    SHAPES: ClassVar[dict[str, list[int]]] = {"encoder.a": [2, 3], "encoder.b": [4], "classifier.weight": [3, 2]}

    @pytest.fixture
    def digests(self, tmp_path):
        """Of the backbone and the head of a folder with these files."""

        def make(name, files):
            place = tmp_path / name
            place.mkdir()
            for file, content in files.items():
                (place / file).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
            found = split(read_folder(place), PurePosixPath(), ["classifier"])
            return found.backbone.value, found.head.value

        return make

    def test_names_of_files_shards_and_order_do_not_matter(self, digests):
        """One file, the same in another order, and in two shards."""
        turned = dict(reversed(self.SHAPES.items()))
        shards = {
            "x-1.safetensors": safetensors({"encoder.b": [4]}),
            "x-2.safetensors": safetensors({"classifier.weight": [3, 2], "encoder.a": [2, 3]}),
            "model.safetensors.index.json": {
                "weight_map": dict(zip(self.SHAPES, ("x-2.safetensors", "x-1.safetensors", "x-2.safetensors"),
                                       strict=True)),
            },
        }  # fmt: skip
        found = {
            digests("one", {"model.safetensors": safetensors(self.SHAPES)}),
            digests("turned", {"model.safetensors": safetensors(turned)}),
            digests("renamed", {"weights.safetensors": safetensors(self.SHAPES)}),
            digests("shards", shards),
        }
        assert len(found) == 1 and None not in found.pop()

    def test_a_head_and_the_rest_are_two(self, digests):
        """A changed number changes the digest of the one that it belongs to."""
        body, head = digests("a", {"model.safetensors": safetensors(self.SHAPES)})
        other = digests("b", {"model.safetensors": safetensors(self.SHAPES, changed=("classifier.weight",))})
        assert other[0] == body and other[1] != head
        other = digests("c", {"model.safetensors": safetensors(self.SHAPES, changed=("encoder.b",))})
        assert other[0] != body and other[1] == head

    def test_name_shape_and_type_are_part_of_a_tensor(self, digests):
        """Equal bytes as [4], as [2, 2], under another name, and read as whole numbers."""
        whole = safetensors({"a": [4]})
        files = [whole, safetensors({"a": [4]}).replace(b'"a"', b'"b"'), whole.replace(b'"F32"', b'"I32"'),
                 whole.replace(b"[4], ", b"[2,2],").replace(b"[4]", b"[4] ")]  # fmt: skip
        assert len({digests(str(at), {"model.safetensors": file})[0] for at, file in enumerate(files)}) == 4

    def test_only_what_the_library_reads_counts(self, digests):
        """Beside one file of the usual name it takes no other."""
        one = {"model.safetensors": safetensors(self.SHAPES)}
        assert digests("a", one) == digests("b", {**one, "consolidated.safetensors": safetensors({"other": [1]})})

    def test_a_file_that_is_not_safetensors_counts_as_a_whole(self, digests):
        """Its tensors aren't known."""
        assert digests("a", {"pytorch_model.bin": b"1"}) != digests("b", {"pytorch_model.bin": b"2"})

    def test_no_weights_have_no_digest(self, digests):
        assert digests("a", {"model.safetensors": safetensors({"encoder.a": [1]})})[1] is None
