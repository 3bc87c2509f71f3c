"""Rows from ONNX Runtime or OpenVINO in place of torch, for a release for which that is proven."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoder
from harness.candidate.export import (
    MASK,
    OPSET,
    ROWS,
    Backend,
    Export,
    Quantised,
    as_arrays,
    export_rows,
    graph_path,
    inputs_of,
    read_record,
    record_path,
    require,
    write_record,
)
from harness.candidate.probe import ADDED, LONGEST, Padding, probe_texts, relative_difference
from harness.candidate.runtime import LIBRARIES
from harness.candidate.side import Features, SideEncoder
from harness.errors import NotAdmitted
from harness.identity import file_digest
from harness.release.item import item_keys
from harness.release.open import Release

# Float32 sums in another order differ by less; weights in eight bits by a thousand times as much.
TOLERANCE = 1e-5
Session = Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float32]]


class BackendRows:
    """Stands in the place of a side's first module. `model` has the configuration and device of the one it replaces."""

    def __init__(self, session: Session, names: Sequence[str], first: Any, longest: int) -> None:
        self.model = SimpleNamespace(config=first.model.config, device=first.model.device)
        self._session, self._names, self.longest = session, names, longest

    def __call__(self, features: Features) -> Features:
        import torch

        if features["input_ids"].shape[1] > self.longest:
            raise ValueError(f"{features['input_ids'].shape[1]} columns, and the export is proven for {self.longest}")
        rows = self._session(as_arrays(features, self._names))
        return {**features, ROWS: torch.from_numpy(rows).to(self.model.device)}


def session(backend: Backend, file: Path) -> Session:
    """Runs a graph on one thread a call, and may be called by several at a time."""
    return _onnx(file) if backend == "onnx" else _openvino(file)


def _onnx(file: Path) -> Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    found = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return lambda inputs: found.run([ROWS], dict(inputs))[0]


def _openvino(file: Path) -> Session:
    import openvino

    core = openvino.Core()
    # By default it computes in the lower precision that the machine is fastest in.
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    compiled, own = core.compile_model(core.read_model(str(file)), "CPU", options), threading.local()

    def run(inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        rows: NDArray[np.float32] = own.request.infer(dict(inputs))[ROWS].copy()
        return rows

    return run


def versions(backend: str) -> dict[str, str]:
    """What decides the backend's bits."""
    return {name: version(name) for name in ("torch", "transformers", "onnx", "onnxscript", LIBRARIES[backend])}


def prove(release: Release, encoder: Encoder) -> list[Export]:
    """Exports each distinct side of a loaded release where that isn't done, and holds its rows against the library's.

    A graph that is there already is held as it stands, whoever made it. The records are written beside it whatever
    they say. Raises Misconfigured where packages are missing, Stopped where the exporter cannot.
    """
    backend, quantised = release.backend, release.quantised
    if backend is None:
        return []
    require(backend)
    found = []
    for name, side in _distinct(encoder).items():
        file = graph_path(release.folder, name)
        if quantised is not None or not file.is_file():
            export_rows(side, file, quantised)
        record = _proven(side, backend, file, _rows_key(release, name), quantised)
        write_record(record_path(release.folder, name, backend), record)
        found.append(record)
    return found


def backed(release: Release, encoder: Encoder) -> Encoder:
    """The encoder with its rows from the release's backend, where it has one.

    Raises NotAdmitted unless the parity run has passed for these very files, versions, length and padding side.
    """
    if (backend := release.backend) is None:
        return encoder
    require(backend)
    instead: dict[int, BackendRows] = {}
    for name, fault in faults(release, encoder).items():
        side, record = _distinct(encoder)[name], read_record(record_path(release.folder, name, backend))
        if record is None or fault is not None:
            raise NotAdmitted(
                f"release {release.name}, [runtime] backend = {backend!r}", found=str(fault),
                expected="an export whose rows are proven to be the library's", mend=f"harness admit {release.name}",
            )  # fmt: skip
        run = session(backend, graph_path(release.folder, name))
        instead[id(side.modules[0])] = BackendRows(run, list(record.inputs), side.modules[0], record.max_length)
    for side in encoder.sides.values():
        rows = instead[id(side.modules[0])]
        side.modules[0], side.widest = rows, min(side.widest, rows.longest)
    return encoder


def faults(release: Release, encoder: Encoder) -> dict[str, str | None]:
    """For each distinct side, why its export may not stand for the library's rows, in words; None where it may."""
    if (backend := release.backend) is None:
        return {}
    found: dict[str, str | None] = {}
    for name, side in _distinct(encoder).items():
        record = read_record(record_path(release.folder, name, backend))
        found[name] = "no parity run" if record is None else _fault(release, name, side, record)
    return found


def _fault(release: Release, name: str, side: SideEncoder, record: Export) -> str | None:
    file, now = graph_path(release.folder, name), versions(record.backend)
    if not file.is_file() or file_digest(file) != record.model:
        return f"{file.name} is gone or another one than was proven"
    if record.of != _rows_key(release, name) or record.quantised != release.quantised:
        return "the export is of another model"
    if record.quantised is None and not record.largest_difference <= record.tolerance:
        return f"rows are off by {record.largest_difference:.2g} of their largest value, over {record.tolerance:g}"
    if side.tokenizer.padding_side not in record.padding_sides:
        return f"proven for padding on the {' and '.join(record.padding_sides) or 'no side'} alone"
    if side.max_length > record.max_length:
        return f"proven for {record.max_length} tokens, and the release reads {side.max_length}"
    moved = [f"{each} {record.versions.get(each)}" for each in now if record.versions.get(each) != now[each]]
    return f"proven with {', '.join(moved)}" if moved else None


def _proven(side: SideEncoder, backend: Backend, file: Path, of: str, quantised: Quantised | None) -> Export:
    names = inputs_of(side)
    run = session(backend, file)
    paddings: tuple[Padding, ...] = ("left", "right")
    widths: list[int] = []
    worst = {padding: max(_differences(side, run, names, padding, widths)) for padding in paddings}
    declared: Padding = side.tokenizer.padding_side
    sides = [each for each in paddings if worst[each] <= TOLERANCE] if quantised is None else [declared]
    return Export(
        schema_="harness.export.v1",
        backend=backend,
        model=file_digest(file),
        of=of,
        quantised=quantised,
        opset=OPSET,
        inputs={name: ["batch", "width"] for name in names},
        output={ROWS: ["batch", "width", "row"]},
        kind="rows",
        mask=MASK,
        outside=[type(module).__name__ for module in side.modules[1:]],
        max_length=max(widths),
        padding_sides=sides,
        versions=versions(backend),
        tolerance=TOLERANCE,
        largest_difference=max(worst[each] for each in sides or [declared]),
    )


def _differences(
    side: SideEncoder, run: Session, names: Sequence[str], padding: Padding, widths: list[int]
) -> Iterator[float]:
    """Of every probe text's rows: alone without padding, alone with some, and all short ones in one batch."""
    texts = side.tokenise(list(probe_texts(side.max_length).values()))
    tokens = [part for text in texts for part in side.parts(text)]
    shorter = [each for each in tokens if len(each) <= min(LONGEST, side.max_length) // 2]
    padded = [([each], min(len(each) + ADDED, side.widest)) for each in tokens]
    for batch, width in [*(([each], len(each)) for each in tokens), *padded, (shorter, max(map(len, shorter)))]:
        widths.append(width)
        features = side.rows(batch, width, padding)
        expected, attended = features[ROWS].cpu().numpy(), features[MASK].cpu().numpy() == 1
        found = run(as_arrays(features, names))
        for mine, theirs, mask in zip(found, expected, attended, strict=True):
            yield relative_difference(mine[mask], theirs[mask])


def _rows_key(release: Release, name: str) -> str:
    return item_keys(release.manifest.meaning, "document" if name == "both" else name).rows


def _distinct(encoder: Encoder) -> dict[str, SideEncoder]:
    """The sides by name, both under one where they share their first module."""
    query, document = encoder.sides["query"], encoder.sides["document"]
    if query.modules[0] is document.modules[0]:
        return {"both": document}
    return {"query": query, "document": document}
