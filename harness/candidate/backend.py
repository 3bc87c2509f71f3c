"""ONNX Runtime or OpenVINO in place of torch, for a release for which that is proven."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Tokens
from harness.candidate.cross import PairEncoder
from harness.candidate.encoder import Encoder
from harness.candidate.export import (
    OPSET,
    ROWS,
    Backend,
    Export,
    Quantised,
    Source,
    as_arrays,
    export_graph,
    graph_path,
    read_record,
    record_path,
    require,
    write_record,
)
from harness.candidate.graphed import Graphed, Loaded, graphed
from harness.candidate.head import HeadModel
from harness.candidate.probe import ADDED, LONGEST, Padding, relative_difference
from harness.candidate.runtime import LIBRARIES
from harness.candidate.side import Features
from harness.errors import NotAdmitted
from harness.identity import file_digest
from harness.release.open import Release

# Float32 sums in another order differ by less; weights in eight bits by a thousand times as much.
TOLERANCE = 1e-5
AnyLoaded = TypeVar("AnyLoaded", Encoder, PairEncoder, HeadModel)
Session = Callable[[Mapping[str, NDArray[Any]]], NDArray[np.float32]]


class BackendRows:
    """Stands in the place of what a graph was made of, and gives its output beside what it was given.

    `model` has the configuration and device of the one that it replaces, and where there is one, that part of it below
    a language model's head, by which a sparse encoder is proven.
    """

    def __init__(self, session: Session, names: Sequence[str], part: Graphed, longest: int) -> None:
        first = part.module.model if part.output == ROWS else None
        if first is not None:
            below = {"base_model": first.base_model} if part.kind == "row-logits" else {}
            self.model = SimpleNamespace(config=first.config, device=first.device, **below)
        self._session, self._names, self._output, self.longest = session, names, part.output, longest

    def __call__(self, features: Features) -> Features:
        import torch

        given = features["input_ids"]
        if given.shape[1] > self.longest:
            raise ValueError(f"{given.shape[1]} columns, and the export is proven for {self.longest}")
        found = self._session(as_arrays(features, self._names))
        return {**features, self._output: torch.from_numpy(found).to(given.device)}


def session(backend: Backend, file: Path, output: str = ROWS) -> Session:
    """Runs a graph on one thread a call, and may be called by several at a time."""
    return _onnx(file, output) if backend == "onnx" else _openvino(file, output)


def _onnx(file: Path, output: str) -> Session:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    found = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    return lambda inputs: found.run([output], dict(inputs))[0]


def _openvino(file: Path, output: str) -> Session:
    import openvino

    core = openvino.Core()
    # By default it computes in the lower precision that the machine is fastest in.
    options = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1}
    compiled, own = core.compile_model(core.read_model(str(file)), "CPU", options), threading.local()

    def run(inputs: Mapping[str, NDArray[Any]]) -> NDArray[np.float32]:
        if not hasattr(own, "request"):
            own.request = compiled.create_infer_request()
        rows: NDArray[np.float32] = own.request.infer(dict(inputs))[output].copy()
        return rows

    return run


def versions(backend: str) -> dict[str, str]:
    """What decides the backend's bits."""
    return {name: version(name) for name in ("torch", "transformers", "onnx", "onnxscript", LIBRARIES[backend])}


@dataclass(frozen=True, slots=True)
class Proven:
    """A part of a release, the record of its graph, and why it may not stand for the library's; None where it may."""

    name: str
    record: Export
    fault: str | None


def prove(release: Release, loaded: Loaded) -> list[Proven]:
    """Exports each part of a loaded release where that isn't done, and holds its output against the library's.

    A graph that is there already is held as it stands, whoever made it: one for which no record stands, by every entry
    of the vocabulary, too. The records are written beside it whatever they say. Raises Misconfigured where packages
    are missing, Stopped where the exporter cannot.
    """
    found = []
    for part in graphed(release, loaded):
        owner = part.owner
        if owner.backend is None:
            continue
        require(owner.backend)
        file = graph_path(owner.folder, part.name)
        own = owner.quantised is not None or not file.is_file()
        if own:
            export_graph(_source(part), file, owner.quantised)
        record = _record(part, owner.backend, file, owner.quantised)
        if not own and not _vouched(read_record(record_path(owner.folder, part.name, owner.backend)), record):
            record = _by_every_entry(part, record, file)
        write_record(record_path(owner.folder, part.name, owner.backend), record)
        found.append(Proven(part.name if owner is release else f"{owner.name}, {part.name}", record, _fault(part)))
    return found


def backed(release: Release, loaded: AnyLoaded) -> AnyLoaded:
    """What was loaded, with all that the release's backend computes from there.

    Raises NotAdmitted unless the parity run has passed for these very files, versions, length and padding side.
    """
    for part in graphed(release, loaded) if not release.on_torch else ():
        owner = part.owner
        if owner.backend is None:
            continue
        require(owner.backend)
        record = _record_of(part)
        run = session(owner.backend, graph_path(owner.folder, part.name), part.output)
        part.replace(BackendRows(run, list(record.inputs), part, record.max_length))
    return loaded


def require_proven(release: Release, loaded: Loaded) -> None:
    """Raises NotAdmitted where `backed` would, of a release that may be loaded without its weights."""
    for part in graphed(release, loaded) if not release.on_torch else ():
        if part.owner.backend is not None:
            _record_of(part)


def _record_of(part: Graphed) -> Export:
    owner = part.owner
    record = None if owner.backend is None else read_record(record_path(owner.folder, part.name, owner.backend))
    if (fault := _fault(part)) is not None or record is None:
        raise NotAdmitted(
            f"release {owner.name}, [runtime] backend = {owner.backend!r}", found=str(fault),
            expected="an export whose output is proven to be the library's", mend=f"harness admit {owner.name}",
        )  # fmt: skip
    return record


def _fault(part: Graphed) -> str | None:
    """Why an export may not stand for what the library gives, in words; None where it may."""
    owner, reader = part.owner, part.reader
    record = None if owner.backend is None else read_record(record_path(owner.folder, part.name, owner.backend))
    if record is None:
        return "no parity run"
    file, now = graph_path(owner.folder, part.name), versions(record.backend)
    if not file.is_file() or file_digest(file) != record.model:
        return f"{file.name} is gone or another one than was proven"
    if record.of != part.of or record.kind != part.kind or record.quantised != owner.quantised:
        return "the export is of another model"
    if record.quantised is None and not record.largest_difference <= record.tolerance:
        what = "rows" if part.kind == "rows" else "numbers"
        return f"{what} are off by {record.largest_difference:.2g} of their largest value, over {record.tolerance:g}"
    if reader.tokenizer.padding_side not in record.padding_sides:
        return f"proven for padding on the {' and '.join(record.padding_sides) or 'no side'} alone"
    longest = max(each.max_length for each in part.readers)
    if longest > record.max_length:
        return f"proven for {record.max_length} tokens, and the release reads {longest}"
    moved = [f"{each} {record.versions.get(each)}" for each in now if record.versions.get(each) != now[each]]
    return f"proven with {', '.join(moved)}" if moved else None


def _source(part: Graphed) -> Source:
    return Source(part.reader.folder, part.module, part.compute, part.inputs, part.output, part.reader.widest)


def _vouched(before: Export | None, now: Export) -> bool:
    """Whether a graph was proven before, as the one that it is."""
    same = before is not None and (before.model, before.of, before.kind) == (now.model, now.of, now.kind)
    return same and before is not None and before.largest_difference <= before.tolerance


def _by_every_entry(part: Graphed, record: Export, file: Path) -> Export:
    """The record of a graph that nobody here made: no weight of its vocabulary may lie beyond what the probes read."""
    run, padding = session(record.backend, file, part.output), part.reader.tokenizer.padding_side
    entries = list(part.entries())
    largest = _largest(part, [row for batch in entries for row in batch])
    apart = (each for batch in entries for each in _apart(part, run, batch, len(batch[0]), padding, largest))
    return record.model_copy(update={"largest_difference": max(record.largest_difference, *apart)})


def _record(part: Graphed, backend: Backend, file: Path, quantised: Quantised | None) -> Export:
    run = session(backend, file, part.output)
    paddings: tuple[Padding, ...] = ("left", "right")
    widths: list[int] = []
    worst = {padding: max(_differences(part, run, padding, widths)) for padding in paddings}
    declared: Padding = part.reader.tokenizer.padding_side
    sides = [each for each in paddings if worst[each] <= TOLERANCE] if quantised is None else [declared]
    return Export(
        schema_="harness.export.v1",
        backend=backend,
        model=file_digest(file),
        of=part.of,
        quantised=quantised,
        opset=OPSET,
        inputs={name: ["batch", "width"] for name in part.inputs},
        output={part.output: list(part.axes)},
        kind=part.kind,
        mask=part.mask,
        filled=part.filled,
        outside=list(part.outside),
        max_length=max(widths),
        padding_sides=sides,
        versions=versions(backend),
        tolerance=TOLERANCE,
        largest_difference=max(worst[each] for each in sides or [declared]),
    )


def _differences(part: Graphed, run: Session, padding: Padding, widths: list[int]) -> Iterator[float]:
    """Of every probe text's output: alone without padding, alone with some, and all short ones in one batch."""
    reader, tokens = part.reader, part.probes()
    largest = _largest(part, tokens)
    shorter = [each for each in tokens if len(each) <= min(LONGEST, max(map(len, tokens))) // 2] or tokens[:1]
    padded = [([each], min(len(each) + ADDED, reader.widest)) for each in tokens]
    for batch, width in [*(([each], len(each)) for each in tokens), *padded, (shorter, max(map(len, shorter)))]:
        widths.append(width)
        yield from _apart(part, run, batch, width, padding, largest)


def _apart(
    part: Graphed, run: Session, batch: Sequence[Tokens], width: int, padding: Padding, largest: float
) -> Iterator[float]:
    """How far a graph's output of each text of a batch is from the library's; `largest`, as `_largest` gives it."""
    features = part.reader.rows(batch, width, padding)
    expected, found = features[part.output].cpu().numpy(), run(as_arrays(features, part.inputs))
    if part.mask is None:
        both = np.concatenate([found, expected]).reshape(2, -1)
        yield relative_difference(np.append(both[0], largest), np.append(both[1], largest))
        return
    read = features[part.mask].cpu().numpy() == 1
    if part.filled in features:
        read |= features[part.filled].cpu().numpy() == 1
    for mine, theirs, mask in zip(found, expected, read, strict=True):
        yield relative_difference(mine[mask], theirs[mask])


def _largest(part: Graphed, tokens: Sequence[Tokens]) -> float:
    """Of the numbers of all texts: the only one of a single text may be as good as nothing. 0 of an output in rows."""
    if part.mask is not None:
        return 0.0
    return max(float(part.reader.rows([each], len(each))[part.output].abs().max()) for each in tokens)
