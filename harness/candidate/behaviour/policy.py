"""How an experiment names what it saw: by the known policy whose result came out."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

Facts: TypeAlias = Mapping[str, str]

UNKNOWN = "something that no known policy gives"


def named(found: Any, known: Mapping[str, Any]) -> str:
    """The policy whose result was found."""
    import torch

    for policy, expected in known.items():
        value = torch.as_tensor(expected, dtype=torch.float64).reshape(-1)
        given = found.detach().to(torch.float64).reshape(-1)
        if given.shape == value.shape and torch.allclose(given, value, rtol=1e-4, atol=1e-5, equal_nan=True):
            return policy
    return UNKNOWN


def fixed(make: Callable[[], Any]) -> Any:
    """A module in evaluation mode with weights that are always the same, made without touching the random state."""
    import torch

    with torch.random.fork_rng(devices=[]):
        module = make().eval()
    with torch.no_grad():
        for start, weights in enumerate(module.parameters()):
            weights.copy_(torch.sin(torch.arange(weights.numel()) * 1.7 + start).reshape(weights.shape))
    return module
