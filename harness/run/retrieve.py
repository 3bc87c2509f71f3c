"""Live releases over a suite: encode in chunks, search exactly, scatter back to case IDs.

A model is given texts and a side, nothing else: no judgement, label, role or slice. Several releases read the same
texts together, so that what they share is computed once.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.candidate.encoder import Encoded, Encoder, Pieces, encode
from harness.candidate.load import load_to_run
from harness.candidate.window import InWindows
from harness.errors import Misconfigured
from harness.output.case import CaseOutput, OutputStatus
from harness.release.bi import SCORE_TYPES
from harness.release.open import Release
from harness.release.window import best_of_windows
from harness.rows.ragged import Ragged
from harness.run.best import search_best
from harness.run.index import Index, Part, cut_rows
from harness.run.inverted import SparseChunk, SparseVectors, search_sparse
from harness.run.maxsim import RaggedChunk, Reduce, search_rows
from harness.run.output import CutDocument, Executed, Remark, uncovered_remark
from harness.run.ranking import WHOLE_GROUP, Cut, cut_ranking
from harness.run.sample import VectorSample, lengths, sampled
from harness.run.search import Chunk, Found, search
from harness.run.windowed import windowed, windowed_remarks
from harness.suite.case import Document, Suite

# Documents encoded together; what is kept of all others lies on disk.
CHUNK = {"bi": 8192, "late": 512, "sparse": 4096}


@dataclass(frozen=True, slots=True)
class Retrieval:
    """A release that is to rank the whole corpus for every query, and how its rankings are cut."""

    release: Release
    cut: Cut


@dataclass(frozen=True, slots=True)
class Sought:
    """What a search must give: so many places, scores on a grid, and of a tied group across the last place that is
    larger than `keep_limit` at least the documents in `must_keep`, rows by query.
    """

    depth: int
    grid: float
    keep_limit: int
    must_keep: Sequence[NDArray[np.int64]]


Search = Callable[[Release, Encoded, Index, Sought], Found]


def retrieve(
    wanted: Mapping[str, Retrieval],
    suite: Suite,
    judged: Mapping[str, set[str]],
    grid: float,
    kept: Pieces | None = None,
) -> dict[str, Executed]:
    """By name, every query's ranking of the corpus. An empty document is left out of the index, and counted.

    `kept`: pieces of earlier runs. Raises Stopped where a model does not load or the disk is full.
    """
    if not wanted:
        return {}
    encoders = {name: load_encoder(each.release, suite) for name, each in wanted.items()}
    filled = [each for each in suite.documents if each.text]
    texts = [case.text for case in suite.cases]
    queries = encode([encoder.sides["query"] for encoder in encoders.values()], texts, kept)
    found = {}
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        size = min(CHUNK[each.release.definition.interaction] for each in wanted.values())
        indices = _index(encoders, filled, size, Path(folder), kept)
        for (name, each), asked in zip(wanted.items(), queries, strict=True):
            found[name] = _ranked(each, suite, judged, grid, asked, filled, indices[name])
    return found


def load_encoder(release: Release, suite: Suite) -> Encoder:
    """The encoder of a release under its prompts on this suite. Raises Misconfigured where texts have no sides."""
    prompts = release.prompts_for(suite.definition.name)
    if prompts is None:
        raise Misconfigured(
            f"release {release.name!r}",
            found=f"interaction {release.definition.interaction!r}",
            expected="a release that encodes queries and documents",
            mend="Record the release's outputs instead.",
        )
    return load_to_run(release, prompts)


def _index(
    encoders: Mapping[str, Encoder], documents: Sequence[Document], size: int, folder: Path, kept: Pieces | None
) -> dict[str, Index]:
    indices = {name: Index(folder / str(place)) for place, name in enumerate(encoders)}
    sides = [encoder.sides["document"] for encoder in encoders.values()]
    for start in range(0, len(documents), size):
        texts = [each.text for each in documents[start : start + size]]
        for index, encoded in zip(indices.values(), encode(sides, texts, kept), strict=True):
            index.add(encoded)
    return indices


def _dense(release: Release, queries: Encoded, index: Index, sought: Sought) -> Found:
    if best_of_windows(release.manifest.meaning):
        return search_best(
            Ragged(queries.values, queries.offsets),
            [RaggedChunk(part.start, Ragged(part.values, part.offsets)) for part in index.parts],
            depth=sought.depth,
            grid=sought.grid,
            score_type=SCORE_TYPES[release.score_type],
            keep_limit=sought.keep_limit,
            must_keep=sought.must_keep,
        )
    return search(
        queries.vectors,
        [Chunk(part.start, part.values) for part in index.parts],
        depth=sought.depth,
        grid=sought.grid,
        score_type=SCORE_TYPES[release.score_type],
        keep_limit=sought.keep_limit,
        must_keep=sought.must_keep,
    )


def _sparse(release: Release, queries: Encoded, index: Index, sought: Sought) -> Found:
    return search_sparse(
        sparse_of(release, queries),
        (SparseChunk(part.start, sparse_of(release, part)) for part in index.parts),
        depth=sought.depth,
        grid=sought.grid,
        score_type=SCORE_TYPES[release.score_type],
        keep_limit=sought.keep_limit,
        must_keep=sought.must_keep,
    )


def sparse_of(release: Release, made: Encoded | Part) -> SparseVectors:
    """What was made of some texts, as vectors over the release's vocabulary."""
    indices = np.empty(0, dtype=np.int32) if made.indices is None else made.indices
    width, several = release.manifest.meaning.output.dimension, made.several
    if several is None:
        return SparseVectors(made.offsets, indices, made.values[:, 0], width)
    return SparseVectors(several.vectors, indices, made.values[:, 0], width, several.texts)


def _of_rows(release: Release, queries: Encoded, index: Index, sought: Sought) -> Found:
    return search_rows(
        Ragged(queries.values, queries.offsets),
        (RaggedChunk(part.start, Ragged(part.values, part.offsets)) for part in index.parts),
        depth=sought.depth,
        grid=sought.grid,
        reduce=reduce_of(release),
        keep_limit=sought.keep_limit,
        must_keep=sought.must_keep,
    )


def reduce_of(release: Release) -> Reduce:
    """What becomes of the query rows' largest similarities."""
    return release.manifest.meaning.interaction.maxsim or "sum"


SEARCHES: Mapping[str, Search] = {"bi": _dense, "late": _of_rows, "sparse": _sparse}


def _ranked(
    wanted: Retrieval,
    suite: Suite,
    judged: Mapping[str, set[str]],
    grid: float,
    queries: Encoded,
    documents: Sequence[Document],
    index: Index,
) -> Executed:
    """One release's outputs from what it made of queries and documents."""
    cut, ids = wanted.cut, np.array([each.id for each in documents], dtype=object)
    place = {each.id: row for row, each in enumerate(documents)}
    sought = Sought(
        # One more, for the query's own document may be left out.
        depth=cut.depth + cut.drop_self,
        grid=grid,
        keep_limit=WHOLE_GROUP if cut.ties == "expected" and not cut.exact else len(documents),
        must_keep=[_places(place, judged.get(case.id, set()), case.id) for case in suite.cases],
    )
    found = SEARCHES[wanted.release.definition.interaction](wanted.release, queries, index, sought)
    broken = _broken(ids, index, found)
    sample = _sample(wanted.release, suite, documents, queries, index)
    norms = [None] * len(suite.cases) if sample is None else lengths(queries.vectors)
    outputs = tuple(
        _output(case.id, position, queries, found, ids, broken, judged.get(case.id, set()), cut, norms[position])
        for position, case in enumerate(suite.cases)
    )
    cut_documents = tuple(CutDocument(str(ids[row]), index.kept[row], index.lost[row]) for row in cut_rows(index))
    several = (
        *windowed("query", queries.in_windows, cases=[case.id for case in suite.cases]),
        *windowed("document", InWindows.joined(index.in_windows), documents=ids.tolist()),
    )
    remarks = (*_remarks(suite, queries, index, found, ids, cut_documents), *windowed_remarks(several))
    return Executed(outputs, remarks, cut_documents, sample=sample, windowed=several)


def _sample(
    release: Release, suite: Suite, documents: Sequence[Document], queries: Encoded, index: Index
) -> VectorSample | None:
    """Some vectors, where a text has one; None where it has rows, windows or sparse weights."""
    if release.definition.interaction != "bi" or best_of_windows(release.manifest.meaning):
        return None
    return sampled(suite, documents, queries, index)


def _places(place: Mapping[str, int], judged: set[str], case_id: str) -> NDArray[np.int64]:
    """Rows that must stay in a reduced tied group: judged documents, and the one that has the query's own ID."""
    return np.array(sorted(place[each] for each in {*judged, case_id} if each in place), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Broken:
    """Why no query can be ranked. `raised`: the model raised on a document, rather than giving no finite number."""

    reason: str
    raised: bool


def _broken(ids: NDArray[np.object_], index: Index, found: Found) -> _Broken | None:
    """One document without a finite vector could stand anywhere in every ranking."""
    if not len(found.bad_documents):
        return None
    row = int(found.bad_documents[0])
    why = index.failed.get(row, "its vector isn't finite")
    reason = f"{len(found.bad_documents)} documents have no vector, the first {ids[row]!r}: {why}"
    return _Broken(reason, row in index.failed)


def _output(
    case_id: str,
    position: int,
    queries: Encoded,
    found: Found,
    ids: NDArray[np.object_],
    broken: _Broken | None,
    judged: set[str],
    cut: Cut,
    norm: float | None,
) -> CaseOutput:
    told = CaseOutput(
        case_id,
        OutputStatus.OK,
        input_digest=queries.input_digests[position],
        tokens_kept=int(queries.tokens_kept[position]),
        tokens_lost=int(queries.tokens_lost[position]),
        norm=norm,
    )
    hits = found.hits[position]
    if hits is None or broken:
        raised = queries.failed.get(position)
        reason = raised or (broken.reason if broken else "the query's vector isn't finite")
        non_finite = raised is None and not (broken and broken.raised)
        return replace(told, status=OutputStatus.FAILED, reason=reason, non_finite=non_finite)
    ranking = cut_ranking(case_id, ids[hits.documents], hits.scores, cut, judged=judged, crossing=hits.crossing)
    return replace(told, ranking=ranking)


def _remarks(
    suite: Suite,
    queries: Encoded,
    index: Index,
    found: Found,
    ids: NDArray[np.object_],
    cut: Sequence[CutDocument],
) -> list[Remark]:
    empty = [each.id for each in suite.documents if not each.text]
    zero = [str(ids[row]) for row in found.zero_documents]
    cases = [suite.cases[row].id for row in found.zero_queries]
    told = (
        ("empty-document", empty, "documents have no text and are left out of the index"),
        ("zero-vector", zero, "documents have a vector without a direction, taken as similar to nothing"),
        ("zero-query", cases, "queries have a vector without a direction, taken as similar to nothing"),
        ("cut-document", [each.document_id for each in cut], "documents are longer than the model reads"),
    )
    remarks = [
        Remark(kind, len(names), f"{len(names)} {what}, the first {names[0]!r}") for kind, names, what in told if names
    ]
    remarks += uncovered_remark(queries.uncovered, [case.id for case in suite.cases], "query")
    return [*remarks, *uncovered_remark(np.array(index.uncovered, dtype=np.int64), ids.tolist(), "document")]
