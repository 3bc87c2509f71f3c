"""A live bi-encoder over a suite: encode in chunks, search exactly, scatter back to case IDs.

The model is given texts and a side, nothing else: no judgement, label, role or slice.
"""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from harness.candidate.bi import BiEncoder, Encoded, load
from harness.errors import Misconfigured, Stopped
from harness.output.case import CaseOutput, OutputStatus
from harness.release.open import Release
from harness.run.execute import CutDocument, Executed
from harness.run.ranking import WHOLE_GROUP, Cut, cut_ranking
from harness.run.replay import Remark
from harness.run.search import Chunk, Found, require_faiss, search
from harness.suite.case import Suite

# Documents encoded together; the vectors of all others lie on disk.
CHUNK = 8192


def encode_and_search(
    release: Release, suite: Suite, judged: Mapping[str, set[str]], cut: Cut, grid: float
) -> Executed:
    """Every query's ranking of the corpus. An empty document is left out of the index, and counted.

    Raises Stopped where the model does not load or the disk is full.
    """
    prompts = release.prompts_for(suite.definition.name)
    if prompts is None or release.bi is None:
        raise Misconfigured(
            f"release {release.name!r}",
            found=f"interaction {release.definition.interaction!r}",
            expected="a bi-encoder",
            mend="Record the release's outputs instead.",
        )
    require_faiss()
    model = load(release, prompts)
    filled = [each for each in suite.documents if each.text]
    ids = np.array([each.id for each in filled], dtype=object)
    place = {each.id: index for index, each in enumerate(filled)}
    queries = model.encode([case.text for case in suite.cases], "query")
    with tempfile.TemporaryDirectory(prefix="harness-") as folder:
        index = _encode_documents(model, [each.text for each in filled], release.bi.width, Path(folder))
        found = search(
            queries.vectors,
            index.chunks,
            # One more, for the query's own document may be left out.
            depth=cut.depth + cut.drop_self,
            grid=grid,
            score_type=release.bi.score_type,
            keep_limit=WHOLE_GROUP if cut.ties == "expected" else len(filled),
            must_keep=[_places(place, judged.get(case.id, set()), case.id) for case in suite.cases],
        )
    broken = _broken(ids, index, found)
    outputs = tuple(
        _output(case.id, position, queries, found, ids, broken, judged.get(case.id, set()), cut)
        for position, case in enumerate(suite.cases)
    )
    cut_documents = tuple(
        CutDocument(str(ids[row]), int(index.kept[row]), int(index.lost[row])) for row in np.flatnonzero(index.lost)
    )
    return Executed(outputs, tuple(_remarks(suite, found, ids, cut_documents)), cut_documents)


@dataclass(frozen=True, slots=True)
class _Index:
    """The documents' vectors on disk, tokens kept and lost [n], and why a document failed, by row."""

    chunks: Sequence[Chunk]
    kept: NDArray[np.int64]
    lost: NDArray[np.int64]
    failed: Mapping[int, str]


def _encode_documents(model: BiEncoder, texts: Sequence[str], width: int, folder: Path) -> _Index:
    kept, lost = np.zeros(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.int64)
    failed: dict[int, str] = {}
    chunks = []
    for start in range(0, len(texts), CHUNK):
        part = model.encode(texts[start : start + CHUNK], "document")
        kept[start : start + CHUNK], lost[start : start + CHUNK] = part.tokens_kept, part.tokens_lost
        failed |= {start + row: reason for row, reason in part.failed.items()}
        file = folder / f"{start}.npy"
        try:
            np.save(file, part.vectors)
        except OSError as refusal:
            raise Stopped(
                str(file),
                found=refusal.strerror or str(refusal),
                expected=f"room for {len(texts)} vectors of width {width}",
                mend="Free some space, or point TMPDIR at a larger disk, and give the same command again.",
            ) from refusal
        chunks.append(Chunk(start, np.load(file, mmap_mode="r")))
    return _Index(chunks, kept, lost, failed)


def _places(place: Mapping[str, int], judged: set[str], case_id: str) -> NDArray[np.int64]:
    """Rows that must stay in a reduced tied group: judged documents, and the one that has the query's own ID."""
    return np.array(sorted(place[each] for each in {*judged, case_id} if each in place), dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Broken:
    """Why no query can be ranked. `raised`: the model raised on a document, rather than giving no finite number."""

    reason: str
    raised: bool


def _broken(ids: NDArray[np.object_], index: _Index, found: Found) -> _Broken | None:
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
) -> CaseOutput:
    told = CaseOutput(
        case_id,
        OutputStatus.OK,
        input_digest=queries.input_digests[position],
        tokens_kept=int(queries.tokens_kept[position]),
        tokens_lost=int(queries.tokens_lost[position]),
    )
    hits = found.hits[position]
    if hits is None or broken:
        raised = queries.failed.get(position)
        reason = raised or (broken.reason if broken else "the query's vector isn't finite")
        non_finite = raised is None and not (broken and broken.raised)
        return replace(told, status=OutputStatus.FAILED, reason=reason, non_finite=non_finite)
    ranking = cut_ranking(case_id, ids[hits.documents], hits.scores, cut, judged=judged, crossing=hits.crossing)
    return replace(told, ranking=ranking)


def _remarks(suite: Suite, found: Found, ids: NDArray[np.object_], cut: Sequence[CutDocument]) -> list[Remark]:
    empty = [each.id for each in suite.documents if not each.text]
    zero = [str(ids[row]) for row in found.zero_documents]
    cases = [suite.cases[row].id for row in found.zero_queries]
    told = (
        ("empty-document", empty, "documents have no text and are left out of the index"),
        ("zero-vector", zero, "documents have a vector without a direction, taken as similar to nothing"),
        ("zero-query", cases, "queries have a vector without a direction, taken as similar to nothing"),
        ("cut-document", [each.document_id for each in cut], "documents are longer than the model reads"),
    )
    return [
        Remark(kind, len(names), f"{len(names)} {what}, the first {names[0]!r}") for kind, names, what in told if names
    ]
