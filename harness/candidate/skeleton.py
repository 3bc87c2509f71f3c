"""Models without their weights: all that texts need to become tokens, and to be found in the cache.

The libraries build everything as they always do, but for the tensors of the model itself, which stay on torch's device
without memory. The weights are read when the first text has to be computed, and never where every one is known.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

_BARE: ContextVar[bool] = ContextVar("bare", default=False)


def is_bare() -> bool:
    """Whether what is loaded now is loaded without weights."""
    return _BARE.get()


@contextmanager
def without_weights() -> Iterator[None]:
    """Within it, models of transformers are built from their configuration alone."""
    import torch
    from transformers import PreTrainedModel

    def build(cls: Any, _place: Any, /, *_: Any, config: Any = None, **more: Any) -> Any:
        if config is None:
            config = cls.config_class.from_pretrained(_place, local_files_only=True)
        with torch.device("meta"):
            model = cls(config)
        model.to = lambda *_, **__: model
        return model

    token, reading = _BARE.set(True), PreTrainedModel.__dict__["from_pretrained"]
    PreTrainedModel.from_pretrained = classmethod(build)
    try:
        yield
    finally:
        PreTrainedModel.from_pretrained = reading
        _BARE.reset(token)
