"""What projections and activations say."""

import math
from importlib import import_module

import numpy as np
import pytest

from harness.errors import Misconfigured
from harness.readout.projection import ACTIVATIONS, Dense, LayerNorm, activate, project
from harness.release.describe.modules import ACTIVATIONS as PATHS

torch = pytest.importorskip("torch")
X = np.random.default_rng(3).normal(size=(4, 3))


class TestByHand:
    def test_dense(self):
        """(1, 2) through [[1, 1], [2, -1], [0, -3]] with bias (0, 1, 0): (3, 1, -6), and relu leaves (3, 1, 0)."""
        by = Dense(np.array([[1.0, 1], [2, -1], [0, -3]]), np.array([0.0, 1, 0]), "relu")
        assert project(np.array([1.0, 2]), by).tolist() == [3, 1, 0]

    def test_a_residual_is_added_after_the_activation(self):
        """relu(-3) + 3 is 3."""
        by = Dense(np.array([[-1.0]]), None, "relu", residual=np.eye(1))
        assert project(np.array([3.0]), by).tolist() == [3]

    def test_layer_norm(self):
        """(1, 3) has mean 2 and variance 1: (-1, 1), times 2 plus 1."""
        by = LayerNorm(np.array([2.0, 2]), np.array([1.0, 1]), 0.0)
        assert project(np.array([1.0, 3]), by).tolist() == [-1, 3]

    @pytest.mark.parametrize(
        ("name", "wanted"),
        [
            ("identity", -1),
            ("tanh", math.tanh(-1)),
            ("relu", 0),
            ("gelu", -0.15865525393145707),
            ("gelu-tanh", -0.15880800939172324),
            ("sigmoid", 1 / (1 + math.e)),
            ("silu", -1 / (1 + math.e)),
            ("softplus", math.log(1 + 1 / math.e)),
            ("mish", -math.tanh(math.log(1 + 1 / math.e))),
            ("elu", 1 / math.e - 1),
            ("leaky-relu", -0.01),
            ("softmax", 1),
        ],
    )
    def test_activations_at_minus_one(self, name, wanted):
        """GELU is -Φ(-1); its tanh approximation is another function."""
        assert activate(name, np.array([-1.0])) == pytest.approx([wanted], abs=1e-15)

    def test_sigmoid_does_not_overflow(self):
        """Far out it is 0 and 1."""
        assert activate("sigmoid", np.array([-1e4, 1e4])).tolist() == [0, 1]


class TestReferee:
    @pytest.mark.parametrize(
        ("name", "module"),
        [
            ("identity", torch.nn.Identity()),
            ("tanh", torch.nn.Tanh()),
            ("relu", torch.nn.ReLU()),
            ("gelu", torch.nn.GELU()),
            ("gelu-tanh", torch.nn.GELU(approximate="tanh")),
            ("sigmoid", torch.nn.Sigmoid()),
            ("silu", torch.nn.SiLU()),
            ("softplus", torch.nn.Softplus()),
            ("mish", torch.nn.Mish()),
            ("elu", torch.nn.ELU()),
            ("leaky-relu", torch.nn.LeakyReLU()),
            ("softmax", torch.nn.Softmax(dim=-1)),
        ],
    )
    def test_every_activation_is_torchs(self, name, module):
        """In float64, to the last digits."""
        assert activate(name, X) == pytest.approx(module(torch.tensor(X)).numpy(), abs=1e-14)

    def test_the_table_holds_no_other(self):
        """Each name has its referee above."""
        assert set(ACTIVATIONS) == {
            "identity", "tanh", "relu", "gelu", "gelu-tanh", "sigmoid", "silu", "softplus", "mish", "elu", "leaky-relu",
            "softmax",
        }  # fmt: skip

    @pytest.mark.parametrize("path", sorted(PATHS))
    @pytest.mark.filterwarnings("ignore:Implicit dimension choice")
    def test_a_path_that_a_configuration_names_is_what_it_is_taken_for(self, path):
        """Made as Sentence Transformers makes it, without arguments, and given a batch of vectors."""
        module = import_module(path.rpartition(".")[0])
        found = getattr(module, path.rpartition(".")[2])()(torch.tensor(X))
        assert activate(PATHS[path], X) == pytest.approx(found.numpy(), abs=1e-14)

    @pytest.mark.parametrize("bias", [True, False])
    @pytest.mark.parametrize("residual", [True, False])
    @pytest.mark.parametrize("width", [2, 3])
    def test_sentence_transformers_dense(self, bias, residual, width):
        """With and without bias, with the input itself or a map of it added."""
        from sentence_transformers.base.modules import Dense as Module

        module = Module(3, width, bias=bias, activation_function=torch.nn.Tanh(), use_residual=residual).double()
        added = None
        if residual:
            added = np.eye(3) if width == 3 else module.residual.weight.detach().numpy()
        by = Dense(
            module.linear.weight.detach().numpy(),
            module.linear.bias.detach().numpy() if bias else None,
            "tanh",
            residual=added,
        )
        wanted = module({"sentence_embedding": torch.tensor(X)})["sentence_embedding"].detach().numpy()
        assert project(X, by) == pytest.approx(wanted, abs=1e-14)

    def test_layer_norm(self):
        """With weights, and the epsilon under the root."""
        module = torch.nn.LayerNorm(3, eps=0.1).double()
        torch.nn.init.normal_(module.weight)
        torch.nn.init.normal_(module.bias)
        by = LayerNorm(module.weight.detach().numpy(), module.bias.detach().numpy(), 0.1)
        assert project(X, by) == pytest.approx(module(torch.tensor(X)).detach().numpy(), abs=1e-14)


class TestRefusals:
    @pytest.mark.parametrize("by", [Dense(np.ones((3, 2)), None, "identity"), LayerNorm(np.ones(2), None, 1e-5)])
    def test_another_width(self, by):
        """Three numbers into weights for two."""
        with pytest.raises(Misconfigured, match="width 3"):
            project(X, by)

    def test_a_name_that_is_code(self):
        """A dotted path does not say what it computes."""
        with pytest.raises(Misconfigured, match="identity, tanh"):
            activate("my_models.activation.Swish", X)
