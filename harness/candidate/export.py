"""A model as an ONNX graph, and the record of what was exported, from what, and how far it is proven.

An encoder's graph ends at its rows: pooling, projections and normalisation stay outside and are named in the record,
beside the mask that says which rows are a text's. That of a model with a head of numbers ends at those, raw.
"""

import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.candidate.runtime import said
from harness.candidate.side import Features
from harness.errors import Misconfigured, Stopped
from harness.file.whole import write_bytes
from harness.identity import canonical_json, file_digest
from harness.release.manifest import Digest

Backend: TypeAlias = Literal["onnx", "openvino"]
Quantised: TypeAlias = Literal["int8"]
# Contextual rows; raw numbers of every row, such as one for each entry of a vocabulary; those of a text or a pair.
Kind: TypeAlias = Literal["rows", "row-logits", "logits"]

OPSET = 20
ROWS, MASK = "token_embeddings", "attention_mask"
# Weights that share a scale.
BLOCK = 32
NEEDED = {"onnx": ("onnx", "onnxscript", "onnxruntime"), "openvino": ("onnx", "onnxscript", "openvino")}


class Export(BaseModel):
    """What an exported graph is and what was proven of it; anything else is refused.

    `of`: the key of the output that it stands for. Axes by input and output. `mask`: which of the output's rows are a
    text's, `filled`: which fill it up, None where there are none of those. `outside`: the modules that read the output,
    by class. `largest_difference` of a text's output from that of the library, relative to its largest value, over all
    of `padding_sides` and lengths up to `max_length`; of numbers without rows, relative to the largest of any
    text.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)

    schema_: Annotated[Literal["harness.export.v1"], Field(alias="schema")]
    backend: Backend
    model: Digest
    of: Digest
    quantised: Quantised | None
    opset: int
    inputs: dict[str, list[str]]
    output: dict[str, list[str]]
    kind: Kind
    mask: str | None
    filled: str | None = None
    outside: list[str]
    max_length: int
    padding_sides: list[Literal["left", "right"]]
    versions: dict[str, str]
    tolerance: float
    largest_difference: float


def record_path(folder: Path, side: str, backend: str) -> Path:
    """Where the record of a side's graph lies: what it was proven against."""
    return folder / "export" / f"{side}.{backend}.json"


def graph_path(folder: Path, side: str) -> Path:
    """Where a side's graph lies."""
    return folder / "export" / f"{side}.onnx"


def graphs(folder: Path) -> dict[str, str]:
    """SHA-256 of a release's graphs, by file."""
    return {file.name: file_digest(file) for file in sorted((folder / "export").glob("*.onnx"))}


def read_record(file: Path) -> Export | None:
    """The record of an export; None where there is none. Raises Misconfigured for one that cannot be read."""
    if not file.is_file():
        return None
    try:
        return Export.model_validate_json(file.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise Misconfigured(
            str(file), found=f"{'.'.join(str(key) for key in first['loc'])}: {first['msg']}",
            expected="the record of an export as `harness admit` writes it",
            mend="Delete it and admit the release again.",
        ) from error  # fmt: skip


def write_record(file: Path, record: Export) -> None:
    """As canonical JSON, one line."""
    write_bytes(file, canonical_json(record.model_dump(by_alias=True)) + b"\n")


def require(backend: Backend) -> None:
    """Raises Misconfigured where a backend's packages are not installed."""
    import importlib.util

    lacking = [name for name in NEEDED[backend] if importlib.util.find_spec(name) is None]
    if lacking:
        raise Misconfigured(
            f"[runtime] backend = {backend!r}", found=f"no package {', '.join(lacking)}", expected="all of them",
            mend=f"Install them: pip install 'retrieval-harness[{backend}]'.",
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Source:
    """What is exported: `module` has the weights, `compute` makes `output` of `inputs` with them. `widest`: columns
    that a batch may have.
    """

    folder: Path
    module: Any
    compute: Callable[[Features], Features]
    inputs: Sequence[str]
    output: str
    widest: int


def export_graph(source: Source, file: Path, quantised: Quantised | None) -> None:
    """Writes the graph from token IDs, masks and segments to the output, whole or not at all.

    `int8`: the weights of matrix products in 8 bits, blocks of 32 sharing a scale; activations stay float32, so that a
    text's output does not depend on its company. Raises Stopped where the exporter cannot.
    """
    import torch

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = source.module

        def forward(self, *arguments: Any) -> Any:
            return source.compute(dict(zip(source.inputs, arguments, strict=True)))[source.output]

    batch, width = torch.export.Dim("batch"), torch.export.Dim("width", max=source.widest)
    shape = (2, min(8, source.widest))
    example = tuple(torch.ones(shape, dtype=torch.long) for _ in source.inputs)
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(".part")
    try:
        with _quiet():
            program = torch.onnx.export(
                Whole().eval(), example, dynamo=True, verbose=False, opset_version=OPSET,
                dynamic_shapes=(tuple({0: batch, 1: width} for _ in source.inputs),), input_names=list(source.inputs),
                output_names=[source.output],
            )  # fmt: skip
            if program is None:
                raise RuntimeError("the exporter gave nothing")
            if quantised is None:
                program.save(str(beside))
            else:
                _quantise(program.model_proto, beside)
    except Exception as error:
        beside.unlink(missing_ok=True)
        raise Stopped(
            f"model {source.folder}", found=f"it cannot be exported ({said(error)})", expected="an ONNX graph",
            mend='Run it with [runtime] backend = "torch".',
        ) from error  # fmt: skip
    beside.replace(file)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the exporter's advice on packages and names that nothing here needs, and the quantiser's account of every
    node, for which it turns on the whole process's log where it is imported.
    """
    root, logs = logging.getLogger(), [logging.getLogger(name) for name in ("torch.onnx", "onnxruntime.quantization")]
    handlers, levels = list(root.handlers), [log.level for log in (root, *logs)]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        root.handlers[:] = handlers
        for log, level in zip((root, *logs), levels, strict=True):
            log.setLevel(level)


def _quantise(model: Any, file: Path) -> None:
    from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

    quantiser = MatMulNBitsQuantizer(model, bits=8, block_size=BLOCK, is_symmetric=True, accuracy_level=1)
    quantiser.process()
    quantiser.model.save_model_to_file(str(file))


def as_arrays(features: dict[str, Any], names: Sequence[str]) -> dict[str, np.ndarray[Any, Any]]:
    """The features that a graph is given, by name, as NumPy has them."""
    return {name: features[name].cpu().numpy() for name in names}
