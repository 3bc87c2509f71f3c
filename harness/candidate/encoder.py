"""Texts through one encoder or several: equal texts once, equal tokens through equal encoders once.

Where two releases give a text the same tokens and share what makes contextual rows of them, the rows are computed
once and each readout is applied to them. So a changed pooling, projection or normalisation costs one encode, not two.
"""

import copy
import hashlib
import time
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from harness.candidate.batch import Tokens, Tried, batched, in_portions
from harness.candidate.passes import Pass, Spent, shared_out, tell
from harness.candidate.runtime import said, threads, wait_for_device
from harness.candidate.side import Features, Keys, Piece, Side, SideEncoder
from harness.candidate.window import InWindows
from harness.release.manifest import Window

Text = TypeVar("Text", bound=Hashable)
# Characters that are tokenised at a time: of what is cut away, each costs a hundred bytes until it is.
CHARACTERS = 1 << 20
Text_contra = TypeVar("Text_contra", bound=Hashable, contravariant=True)


class Pieces(Protocol):
    """Where pieces are kept by what they depend on: a vector's key, and the digest of the model's input."""

    def get(self, key: str, items: Sequence[str]) -> Mapping[str, Piece]: ...

    def put(self, key: str, pieces: Mapping[str, Piece]) -> None: ...


class Reads(Protocol[Text_contra]):
    """What is asked of an encoder of single texts, or of texts that are read together."""

    keys: Keys
    window: Window | None
    """How a longer text is read; None where it is cut."""
    batch_tokens: int | None
    """Padded tokens that a batch may have at most; None for as many as any."""

    @property
    def side(self) -> str:
        """Of its texts: query, document, pair, or text where there are no sides."""
        ...

    def tokenise(self, texts: Sequence[Text_contra], /) -> Sequence[Tokens]: ...

    def digest(self, text: Text_contra, /) -> str:
        """SHA-256 of a text as it is rendered."""
        ...

    def column_count(self, tokens: Tokens, /) -> int:
        """Columns of a padded text."""
        ...

    def rows(self, tokens: Sequence[Tokens], width: int, /) -> Features:
        """What the model makes of a batch, as far as readouts share it."""
        ...

    def read_out(self, features: Features, excluded: int, /) -> Sequence[Piece]: ...

    def blank(self) -> Piece:
        """What stands for a text that failed."""
        ...

    def fault(self, piece: Piece, /) -> str | None:
        """Why a text of which this is kept has failed all the same; None where it hasn't."""
        ...

    def parts(self, tokens: Tokens, /) -> Sequence[Tokens]:
        """What the model is given of a text: the whole of it, or its windows."""
        ...

    def join(self, tokens: Tokens, pieces: Sequence[Piece], /) -> Piece:
        """What is kept of a text, from what is kept of its parts."""
        ...


@dataclass(frozen=True, slots=True)
class Several:
    """Sparse vectors of which a text may have several. Shapes: texts [n + 1], from where on each text's vectors stand
    among all; vectors [v + 1], from where on each vector's weights do.
    """

    texts: NDArray[np.int64]
    vectors: NDArray[np.int64]

    @classmethod
    def of(cls, pieces: Sequence[Piece]) -> "Several | None":
        """None where each has one."""
        if all(piece.counts is None for piece in pieces):
            return None
        counts = [np.array([len(each.values)]) if each.counts is None else each.counts for each in pieces]
        return cls(
            np.cumsum([0, *map(len, counts)], dtype=np.int64), np.cumsum([0, *np.concatenate(counts)], dtype=np.int64)
        )


@dataclass(frozen=True, slots=True)
class Encoded:
    """What an encoder made of n texts, in their order.

    Shapes: values [sum of rows, d] float32 with offsets [n + 1], one row a text for single vectors, of which a text
    has several where the best of its windows counts; indices [sum of rows] where the vectors are sparse, a row being a
    weight, and `several` where a text may have more than one such vector. A text that failed has a row of NaN, or none
    where a text may have any number. `input_digests` [n], SHA-256 of the rendered
    text; `items` [n], digest of what the model reads of it; tokens_kept and tokens_lost [n], special tokens included,
    lost by truncation. `failed`: position to reason.
    A vector that isn't finite is left as the model gave it. `shares_kept` and `shares_lost` [n, p]: tokens of each of
    the p texts that are read together, without special ones; None where each is read by itself. `uncovered` [n]:
    characters that no window shows; `in_windows`: those texts that have several, None where none has.
    """

    values: NDArray[np.float32]
    offsets: NDArray[np.int64]
    indices: NDArray[np.int32] | None
    input_digests: tuple[str, ...]
    items: tuple[str, ...]
    tokens_kept: NDArray[np.int64]
    tokens_lost: NDArray[np.int64]
    failed: Mapping[int, str]
    uncovered: NDArray[np.int64]
    shares_kept: NDArray[np.int64] | None = None
    shares_lost: NDArray[np.int64] | None = None
    several: Several | None = None
    in_windows: InWindows | None = None

    @property
    def vectors(self) -> NDArray[np.float32]:
        """[n, d], of texts of which one vector is kept."""
        return self.values

    def piece(self, position: int) -> Piece:
        """What is kept of one text."""
        mine = slice(self.offsets[position], self.offsets[position + 1])
        counts = None
        if self.several is not None:
            vectors = self.several.vectors[self.several.texts[position] : self.several.texts[position + 1] + 1]
            counts = np.diff(vectors)
        return Piece(self.values[mine], None if self.indices is None else self.indices[mine], counts)


class Encoder:
    """A loaded encoder of queries and documents."""

    def __init__(self, sides: Mapping[Side, SideEncoder]) -> None:
        self.sides = sides

    def alone(self) -> "Encoder":
        """This encoder as it reads one window."""
        found = copy.copy(self)
        found.sides = {side: own.alone() for side, own in self.sides.items()}
        return found

    def encode(self, texts: Sequence[str], side: Side) -> Encoded:
        """What it makes of texts. A text that makes the model raise fails alone."""
        return encode([self.sides[side]], texts)[0]


def encode(encoders: Sequence[Reads[Text]], texts: Sequence[Text], kept: Pieces | None = None) -> list[Encoded]:
    """What each encoder makes of the same texts. `kept`: where pieces are taken from and put."""
    tokenised: dict[str, Tried[Tokens]] = {}
    once: dict[Text, int] = {}
    rows = np.array([once.setdefault(text, len(once)) for text in texts], dtype=np.int64)
    readings = []
    for encoder in encoders:
        source = encoder.keys.source
        if source not in tokenised:
            tokenised[source] = in_portions(encoder.tokenise, list(once), [_size(text) for text in once], CHARACTERS)
        readings.append(_Reading.of(encoder, tokenised[source]))
    answers = _answers(readings, kept)
    return [_encoded(reading, list(once), rows, answers) for reading in readings]


def _size(text: object) -> int:
    """Characters of a text, or of all that are read together."""
    return len(text) if isinstance(text, str) else sum(map(_size, text)) if isinstance(text, tuple) else 0


@dataclass(frozen=True, slots=True)
class _Reading:
    """One encoder's tokens of the distinct texts by position, the parts in which it reads each, and the digests of
    those as items of its vectors.
    """

    encoder: Reads[Any]
    tokens: Tried[Tokens]
    parts: Mapping[int, Sequence[Tokens]]
    items: Mapping[int, tuple[str, ...]]

    @classmethod
    def of(cls, encoder: Reads[Any], tokens: Tried[Tokens]) -> "_Reading":
        parts = {row: encoder.parts(text) for row, text in tokens.results.items()}
        items = {
            row: tuple(f"{one.digest()}-{one.excluded}" if one.excluded else one.digest() for one in some)
            for row, some in parts.items()
        }
        return cls(encoder, tokens, parts, items)

    def wanted(self) -> dict["_Want", Tokens]:
        key = self.encoder.keys.vector
        return {
            _Want(key, item): part
            for row, items in self.items.items()
            for item, part in zip(items, self.parts[row], strict=True)
        }

    def item(self, row: int) -> str:
        """Of a text as a whole; of one that could not be tokenised, none."""
        items = self.items.get(row, ("",))
        return items[0] if len(items) == 1 else hashlib.sha256(" ".join(items).encode()).hexdigest()


class _Want(NamedTuple):
    """A vector's key, and the item that it is of."""

    key: str
    item: str


def _input(item: str) -> str:
    """The digest of what the model is given, without what its readout leaves out."""
    return item.partition("-")[0]


class _Reader(NamedTuple):
    encoder: Reads[Any]
    excluded: int


@dataclass(frozen=True, slots=True)
class _Job:
    """Tokens of which an encoder computes rows once, and who reads those rows."""

    encoder: Reads[Any]
    tokens: Tokens
    readers: dict[_Want, _Reader]


# By the key of their rows, and the digest of what is read.
_Jobs: TypeAlias = dict[tuple[str, str], _Job]
# A piece, or the reason why there is none.
_Answer: TypeAlias = Piece | str


def _answers(readings: Sequence[_Reading], kept: Pieces | None) -> dict[_Want, _Answer]:
    """For all that is wanted: taken from what is kept, or computed."""
    found: dict[_Want, _Answer] = {}
    jobs: _Jobs = {}
    for reading in readings:
        encoder, wanted = reading.encoder, reading.wanted()
        if kept is not None:
            missing = [want.item for want in wanted if want not in found]
            known = kept.get(encoder.keys.vector, missing)
            found |= {_Want(encoder.keys.vector, item): piece for item, piece in known.items()}
        for want, tokens in wanted.items():
            if want not in found:
                place = (encoder.keys.rows, _input(want.item))
                job = jobs.setdefault(place, _Job(encoder, tokens, {}))
                job.readers.setdefault(want, _Reader(encoder, tokens.excluded))
    todo = list(jobs.values())
    widths = [(job.encoder.keys.rows, job.encoder.column_count(job.tokens)) for job in todo]
    most = {job.encoder.keys.rows: job.encoder.batch_tokens for job in todo if job.encoder.batch_tokens is not None}
    spent: list[Spent] = []
    started = time.perf_counter()
    tried = batched(lambda batch: _compute(batch, spent), todo, widths, most)
    _tell(time.perf_counter() - started, spent, readings, jobs)
    computed: dict[str, dict[str, Piece]] = {}
    for position, job in enumerate(todo):
        answers = tried.results.get(position) or dict.fromkeys(job.readers, tried.reasons.get(position, ""))
        found |= answers
        for want, answer in answers.items():
            if isinstance(answer, Piece):
                computed.setdefault(want.key, {})[want.item] = answer
    if kept is not None:
        for key, pieces in computed.items():
            kept.put(key, pieces)
    return found


def _tell(wall: float, spent: Sequence[Spent], readings: Sequence[_Reading], jobs: _Jobs) -> None:
    """What the passes took. A text counts where any part of it was computed, and as often as it was cut otherwise."""
    texts: dict[str, set[tuple[str, ...]]] = {}
    for reading in readings:
        key = reading.encoder.keys.rows
        computed = (items for items in reading.items.values() if any((key, _input(item)) in jobs for item in items))
        texts.setdefault(key, set()).update(computed)
    sides = {job.encoder.keys.rows: job.encoder.side for job in jobs.values()}
    for key, took in shared_out(wall, spent).items():
        tell(Pass(key, sides[key], len(texts[key]), took.tokens, took.seconds, threads()))


def _compute(jobs: Sequence[_Job], spent: list[Spent]) -> list[dict[_Want, _Answer]]:
    """One batch: its rows once, then each readout on those of them that it is to read."""
    first, started = jobs[0], time.perf_counter()
    width = first.encoder.column_count(first.tokens)
    features = first.encoder.rows([job.tokens for job in jobs], width)
    wait_for_device()
    through = time.perf_counter()
    groups: dict[tuple[str, int], list[tuple[int, _Want, Reads[Any]]]] = {}
    for position, job in enumerate(jobs):
        for want, reader in job.readers.items():
            groups.setdefault((want.key, reader.excluded), []).append((position, want, reader.encoder))
    answers: list[dict[_Want, _Answer]] = [{} for _ in jobs]
    for (_, excluded), members in groups.items():
        alone = len(groups) == 1 and len(members) == len(jobs)
        mine = features if alone else _picked(features, [position for position, _, _ in members], len(jobs))
        try:
            pieces: Sequence[_Answer] = members[0][2].read_out(mine, excluded)
        except Exception as error:
            if len(jobs) > 1:
                raise
            pieces = [said(error)] * len(members)
        for (position, want, _), piece in zip(members, pieces, strict=True):
            answers[position][want] = piece
    whole = time.perf_counter() - started
    spent.append(Spent(first.encoder.keys.rows, sum(job.tokens.kept for job in jobs), through - started, whole))
    return answers


def _picked(features: Features, rows: Sequence[int], count: int) -> Features:
    """Copies of some texts' features, for modules write into what they are given."""
    return {
        name: value[list(rows)] if getattr(value, "ndim", 0) and len(value) == count else value
        for name, value in features.items()
    }


def _encoded(
    reading: _Reading, texts: Sequence[Hashable], rows: NDArray[np.int64], answers: Mapping[_Want, _Answer]
) -> Encoded:
    encoder, tokens = reading.encoder, reading.tokens
    blank, reasons = encoder.blank(), dict(tokens.reasons)
    pieces = [blank] * len(texts)
    kept, lost, uncovered = np.zeros((3, len(texts)), dtype=np.int64)
    for row, text in tokens.results.items():
        kept[row], lost[row] = text.kept, text.lost
        uncovered[row] = text.windows.uncovered if text.windows is not None else 0
        answer = _joined(encoder, text, [answers[_Want(encoder.keys.vector, item)] for item in reading.items[row]])
        reason = encoder.fault(answer) if isinstance(answer, Piece) else answer
        if isinstance(answer, Piece):
            pieces[row] = answer
        if reason is not None:
            reasons[row] = reason
    digests = [encoder.digest(text) for text in texts]
    every = [pieces[row] for row in rows]
    shares = _shares(tokens, len(texts))
    return Encoded(
        np.concatenate([blank.values[:0], *(piece.values for piece in every)]),
        np.cumsum([0, *(len(piece.values) for piece in every)], dtype=np.int64),
        None
        if blank.indices is None
        else np.concatenate([blank.indices[:0], *(piece.indices for piece in every if piece.indices is not None)]),
        tuple(digests[row] for row in rows),
        tuple(reading.item(row) for row in rows.tolist()),
        kept[rows],
        lost[rows],
        {position: reasons[row] for position, row in enumerate(rows.tolist()) if row in reasons},
        uncovered[rows],
        None if shares is None else shares[0][rows],
        None if shares is None else shares[1][rows],
        Several.of(every),
        _in_windows(encoder, tokens, rows),
    )


def _in_windows(encoder: Reads[Any], tokens: Tried[Tokens], rows: NDArray[np.int64]) -> InWindows | None:
    if encoder.window is None:
        return None
    laid = {row: text.windows for row, text in tokens.results.items() if text.windows is not None}
    return InWindows.of(encoder.window, {at: laid[row] for at, row in enumerate(rows.tolist()) if row in laid})


def _joined(encoder: Reads[Any], tokens: Tokens, answers: Sequence[_Answer]) -> _Answer:
    """A text of which one part failed has failed."""
    pieces: list[Piece] = []
    for answer in answers:
        if not isinstance(answer, Piece):
            return answer
        pieces.append(answer)
    return encoder.join(tokens, pieces)


def _shares(tokens: Tried[Tokens], count: int) -> NDArray[np.int64] | None:
    """[2, n, p], tokens kept and lost by the parts of each text; zero for one that could not be tokenised."""
    parts = max((len(text.shares) for text in tokens.results.values()), default=0)
    if not parts:
        return None
    found = np.zeros((2, count, parts), dtype=np.int64)
    for row, text in tokens.results.items():
        found[0, row] = [share.kept for share in text.shares]
        found[1, row] = [share.lost for share in text.shares]
    return found
