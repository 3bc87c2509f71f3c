"""Names, shapes and digests of tensors, read from a file's header and bytes."""

import struct

import pytest

from harness.release.weights import group_digest, tensors

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


class TestGroups:
    def test_other_tensors_and_their_order_do_not_matter(self, weights):
        """The same head beside another body, in another order, has the same digest."""
        path = weights({"head": [3], "body": [2]}, "one")
        other = weights(safetensors({"body": [2], "head": [3]}, changed=("body",)), "other")
        assert group_digest(path, ["head"]) == group_digest(other, ["head"])
        assert group_digest(path, ["body"]) != group_digest(other, ["body"])

    def test_a_tensor_of_another_shape_is_another(self, weights):
        """Equal bytes as [4] and as [2, 2]."""
        digests = {
            group_digest(weights({name: shape}, f"{name}{len(shape)}"), [name])
            for name, shape in (("a", [4]), ("a", [2, 2]))
        }
        assert len(digests) == 2

    def test_an_unknown_name_is_an_error(self, weights):
        """Nothing is digested in its place."""
        with pytest.raises(KeyError):
            group_digest(weights({"a": [1]}), ["b"])
