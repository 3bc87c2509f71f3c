"""What computes: the device, the threads, and how the libraries are made to behave."""

import os
import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from harness.identity import Json

# What runs a graph, by backend.
LIBRARIES = {"onnx": "onnxruntime", "openvino": "openvino"}


def runtime(backend: str | None = None) -> Mapping[str, Json]:
    """What computes, as far as it can change a bit of an output. The number of threads cannot.

    `backend`: what makes the contextual rows, torch where None.
    """
    go_offline()
    import torch

    on = device()
    return {
        "device": on,
        "unit": torch.cuda.get_device_name() if on == "cuda" else torch.backends.cpu.get_cpu_capability(),
        "dtype": "float32",
        **{name: version(name) for name in ("sentence-transformers", "transformers", "tokenizers", "torch", "numpy")},
        **({} if backend is None else {"backend": backend, LIBRARIES[backend]: version(LIBRARIES[backend])}),
    }


def device() -> Literal["cpu", "cuda"]:
    """CUDA where there is one. Loads torch."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def go_offline() -> None:
    """No library reaches the network from here on, whatever a folder asks for."""
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        os.environ[name] = "1"


def go_quiet() -> None:
    """No progress bars and no advice of transformers on stderr."""
    import transformers

    transformers.utils.logging.disable_progress_bar()
    transformers.utils.logging.set_verbosity_error()


def threads() -> int:
    """Batches that are computed side by side."""
    import torch

    return torch.get_num_threads() if device() == "cpu" else 1


def wait_for_device() -> None:
    """Until what was asked of it is done, for it computes while the caller goes on."""
    if device() == "cuda":
        import torch

        torch.cuda.synchronize()


def machine() -> str:
    """What computes here, in words: processor and how many of them, by no host's name."""
    import torch

    if device() == "cuda":
        return str(torch.cuda.get_device_name())
    names = []
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    name = names[0] if names else platform.processor() or platform.machine()
    return f"{name or 'an unknown processor'}, {os.cpu_count() or 1} of them seen, {platform.system()}"


@contextmanager
def one_thread_each() -> Iterator[int]:
    """One thread for each batch; gives how many threads there were, so that as many batches can run at once."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield threads
    finally:
        torch.set_num_threads(threads)


def one_row_at_a_time(model: Any, *, heads: bool) -> None:
    """Makes a model's linear maps take vectors [n, d] one by one; rows [n, r, d] go through as they did.

    A product's rounding follows from how many rows it has, and those of vectors are as many as a batch has texts.
    `heads`: also those inside the transformer, of which rows need none.
    """
    import torch
    from transformers import PreTrainedModel

    within = [each for each in model.modules() if isinstance(each, PreTrainedModel)]
    spared = set() if heads else {id(inner) for each in within for inner in each.modules()}

    def alone(linear: Any) -> None:
        whole = linear.forward

        def forward(given: Any) -> Any:
            # A graph cannot go through rows one by one, and ONNX Runtime rounds each as in any company.
            if torch.compiler.is_exporting():
                return whole(given)
            if given.ndim != 2 or not len(given) or given.device.type != "cpu":
                return whole(given)
            # Copied, for rounding may follow from where in memory a row begins.
            return torch.cat([whole(row[None].clone()) for row in given])

        linear.forward = forward

    for module in model.modules():
        if isinstance(module, torch.nn.Linear) and id(module) not in spared:
            alone(module)


def said(error: Exception) -> str:
    """An exception's kind and first line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
