"""Maps from one width to another: dense with an activation, and layer norm. Each acts on the last axis."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from harness.errors import Misconfigured
from harness.readout.probability import sigmoid, softmax
from harness.rows.mask import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Dense:
    """`activation(x Wᵀ + b)`, and where there is a `residual` map R, `+ x Rᵀ` after the activation.

    Shapes: weight [w_out, w_in], bias [w_out], residual [w_out, w_in] (the unit matrix where x itself is added).
    """

    weight: NDArray[np.floating]
    bias: NDArray[np.floating] | None
    activation: str
    residual: NDArray[np.floating] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LayerNorm:
    """`(x - mean) / sqrt(variance + epsilon) * weight + bias`, the variance divided by the width.

    Shapes: weight and bias [w].
    """

    weight: NDArray[np.floating]
    bias: NDArray[np.floating] | None
    epsilon: float


def _gelu(x: Floats) -> Floats:
    """By the normal distribution function itself, not by its tanh approximation."""
    erf = np.vectorize(math.erf, otypes=[np.float64])
    return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))))


def _gelu_tanh(x: Floats) -> Floats:
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))))


def _softplus(x: Floats) -> Floats:
    return np.logaddexp(x, 0.0)


ACTIVATIONS: Mapping[str, Callable[[Floats], Floats]] = MappingProxyType(
    {
        "identity": lambda x: x,
        "tanh": np.tanh,
        "relu": lambda x: np.maximum(x, 0),
        "gelu": _gelu,
        "gelu-tanh": _gelu_tanh,
        "sigmoid": lambda x: sigmoid(x, 1.0),
        "silu": lambda x: x * sigmoid(x, 1.0),
        "softplus": _softplus,
        "mish": lambda x: x * np.tanh(_softplus(x)),
        "elu": lambda x: np.where(x > 0, x, np.expm1(np.minimum(x, 0))),
        "leaky-relu": lambda x: np.where(x > 0, x, 0.01 * x),
        "softmax": lambda x: softmax(x, 1.0),
    }
)


def activate(name: str, x: NDArray[np.floating]) -> Floats:
    """The named activation of each value, `softmax` that of the last axis.

    Raises Misconfigured for a name that isn't in ACTIVATIONS.
    """
    if name not in ACTIVATIONS:
        raise Misconfigured(
            f"activation '{name}'",
            found="no function of that name",
            expected=f"one of {', '.join(ACTIVATIONS)}",
            mend="Name what the code computes; a dotted path is code and says nothing by itself.",
        )
    return ACTIVATIONS[name](x.astype(np.float64))


def project(x: NDArray[np.floating], projection: Dense | LayerNorm) -> Floats:
    """The projection of x [..., w_in], as [..., w_out]. Raises Misconfigured when the widths don't fit."""
    width = projection.weight.shape[-1]
    if x.shape[-1] != width:
        raise Misconfigured(
            f"{type(projection).__name__} projection",
            found=f"an input of width {x.shape[-1]}",
            expected=f"width {width}, that of its weights",
            mend="Put the projections in the order of the modules.",
        )
    return dense(x, projection) if isinstance(projection, Dense) else layer_norm(x, projection)


def dense(x: NDArray[np.floating], by: Dense) -> Floats:
    """[..., w_out], see Dense."""
    linear = x.astype(np.float64) @ by.weight.astype(np.float64).T
    out = activate(by.activation, linear if by.bias is None else linear + by.bias)
    if by.residual is not None:
        out = out + x.astype(np.float64) @ by.residual.astype(np.float64).T
    return out


def layer_norm(x: NDArray[np.floating], by: LayerNorm) -> Floats:
    """[..., w], see LayerNorm."""
    x = x.astype(np.float64)
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled: Floats = centred / np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + by.epsilon) * by.weight
    if by.bias is not None:
        scaled = scaled + by.bias
    return scaled
