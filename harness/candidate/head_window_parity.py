"""Parity of heads and cross-encoders that read a long text in windows: are the numbers of the whole joined as declared?

The tokenizer is asked anew, windows are laid by the characters of the tokens, each goes through the model by itself,
and the head's maps, with the weights in the files, make its numbers. What joins them is computed here the plain way.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from harness.candidate.cross import RISING, Pair, PairEncoder, load_cross
from harness.candidate.encoder import encode
from harness.candidate.head import HeadModel, Sample, load_head, open_head
from harness.candidate.head_output import said_of
from harness.candidate.head_parity import Answered, maps_of, rebuilt
from harness.candidate.parity import TOLERANCE, Parity, measured, unprovable
from harness.candidate.probe import relative_difference
from harness.candidate.reference import refused
from harness.candidate.window_parity import NAME
from harness.errors import HarnessError, Stopped
from harness.output.task import Number, Scores
from harness.readout.head import windows_by_mean_logits, windows_by_mean_probabilities
from harness.readout.probability import sigmoid, softmax
from harness.readout.projection import Dense, LayerNorm, activate
from harness.release.manifest import Meaning, Tower, Window
from harness.release.open import Release
from harness.rows.mask import Floats
from harness.rows.windows import Cut, cut, word_owners

# What stands beside the long text: short, so that there is room for windows.
SHORT, OTHER = "a", "b c"
OF_EVERY_ROW = ("tags", "span")


def head_window_parity(release: Release, texts: Mapping[str, str], tolerance: float = TOLERANCE) -> Parity | None:
    """Holds what is made of texts by ID, each as the long one of its sample; None for a release without windows.

    Raises Stopped for a model that does not load.
    """
    meaning, folder = release.manifest.meaning, release.model_folder
    [tower] = meaning.towers.values()
    if tower.input.window is None or folder is None:
        return None
    try:
        maps, loaded = maps_of(tower, folder), open_head(folder, tower)
        reference = _Reference(
            loaded.model.cpu(), loaded.tokenizer, tower, tower.input.window, maps, meaning.interaction.kind == "cross"
        )
        found = dict(_differences(release, reference, texts))
    except Stopped:
        raise
    except HarnessError as refusal:
        return replace(unprovable(refusal, tolerance), name=NAME)
    worst = max(found, key=lambda name: found[name])
    return replace(measured(found[worst], tolerance, f"text {worst!r}: a number", "of the largest"), name=NAME)


@dataclass(frozen=True, slots=True)
class _Laid:
    """A sample's windows as the reference lays them, and the numbers of each: [n] of it, or [r, n] of its rows.

    `head`: tokens before its own, `words` [t] of its own tokens, -1 for none.
    """

    cut: Cut
    numbers: list[NDArray[np.float64]]
    head: int
    words: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Reference:
    model: Any
    tokenizer: Any
    tower: Tower
    window: Window
    maps: Sequence[Dense | LayerNorm]
    crosses: bool

    def read(self, sample: Sample) -> _Laid:
        """Raises EmptySlice for a long text without a token."""
        words = isinstance(sample.first, tuple)
        told = self.tokenizer(
            list(sample.first) if words else sample.first, sample.second, is_split_into_words=words, truncation=False,
            verbose=False, return_offsets_mapping=True,
        )  # fmt: skip
        long = 0 if sample.second is None or self.window.text == "first" else 1
        mine = np.flatnonzero([each == long for each in told.sequence_ids()])
        offsets = np.array(told.pop("offset_mapping"))
        ids = np.arange(len(offsets))
        head = ids[: mine[0]] if len(mine) else ids
        tail = ids[mine[-1] + 1 :] if len(mine) else ids[:0]
        room = self.window.size - len(head) - len(tail)
        made = cut(
            "" if words else str(sample[long]), offsets[mine] if not words else np.zeros((len(mine), 2), dtype=int),
            source="", release="", size=room, stride=min(self.window.stride, room), special=len(head) + len(tail),
        )  # fmt: skip
        at = [np.concatenate([head, mine[0] + np.arange(*span), tail]) for span in made.windows.tolist()]
        of_words = np.array([-1 if each is None else each for each in told.word_ids()])[mine]
        return _Laid(made, [self._numbers(told, rows) for rows in at], len(head), of_words)

    def _numbers(self, told: Mapping[str, list[int]], at: NDArray[np.int64]) -> NDArray[np.float64]:
        import torch

        given = {name: torch.tensor([[values[row] for row in at]]) for name, values in told.items()}
        with torch.inference_mode():
            rows = self.model.base_model(**given).last_hidden_state.numpy()
        one = Answered("", rows, given["attention_mask"].bool().numpy(), np.empty(0, dtype=np.float32))
        return rebuilt(one, self.tower, self.maps)


def _differences(release: Release, reference: _Reference, texts: Mapping[str, str]) -> Iterator[tuple[str, float]]:
    """A long text without a token has no window to lie in, and is passed over."""
    meaning, several = release.manifest.meaning, 0
    give = _of_cross(load_cross(release), meaning) if reference.crosses else _of_head(load_head(release), meaning)
    for name, text in texts.items():
        samples = _samples(reference.tower, meaning, text)
        if not samples[0].first:
            continue
        try:
            laid = [reference.read(sample) for sample in samples]
        except HarnessError:
            continue
        several += len(laid[0].numbers) > 1
        yield name, _difference(give(samples), _expected(meaning, reference.window, laid), meaning, laid)
    if not several:
        raise refused("input.window", f"no text that is longer than {reference.window.size} tokens", "one that is")


def _difference(found: Floats, expected: Floats, meaning: Meaning, laid: Sequence[_Laid]) -> float:
    """Relative to the largest number of any window, for those of several may cancel out; of chances to the largest."""
    largest = np.abs(expected).max(initial=0)
    [tower] = meaning.towers.values()
    raw = meaning.interaction.kind == "cross" and not _of_chances(tower.input.window)
    if not meaning.score.probability or raw:
        largest = max(largest, *(np.abs(numbers).max() for one in laid for numbers in one.numbers))
    return relative_difference(np.append(found, largest), np.append(expected, largest))


def _samples(tower: Tower, meaning: Meaning, text: str) -> list[Sample]:
    window = tower.input.window
    if meaning.output.kind == "tags":
        return [Sample(tuple(text.split()))]
    if tower.readout.family == "choice-head":
        return [Sample(text, SHORT), Sample(text, OTHER)]
    if window is None or window.text is None:
        return [Sample(text)]
    if window.text == "first":
        return [Sample(text, SHORT)]
    return [Sample(tower.input.prompts.get("pair", "") + SHORT, text)]


def _of_cross(model: PairEncoder, meaning: Meaning) -> Callable[[Sequence[Sample]], Floats]:
    """[1], what ranks a pair: before an activation that never turns two numbers round, unless its values are joined."""

    def give(samples: Sequence[Sample]) -> Floats:
        pairs = [Pair(str(each.first).removeprefix(model.prompt), str(each.second)) for each in samples]
        return _ranks(meaning, model.encode(pairs).values.astype(np.float64))

    return give


def _ranks(meaning: Meaning, logits: Floats) -> Floats:
    """[w], of the numbers [w, n] of windows."""
    column = 0 if meaning.score.label is None else (meaning.output.labels or []).index(meaning.score.label)
    [tower] = meaning.towers.values()
    plain = meaning.score.activation in RISING and not _of_chances(tower.input.window)
    return (logits if plain else activate(meaning.score.activation, logits))[:, column]


def _of_chances(window: Window | None) -> bool:
    return window is not None and window.aggregation == "mean-of-probabilities"


def _of_head(model: HeadModel, meaning: Meaning) -> Callable[[Sequence[Sample]], Floats]:
    """What is said of a case, as numbers; of tags and spans those that it is said by, row after row."""

    def give(samples: Sequence[Sample]) -> Floats:
        [encoded] = encode([model], samples)
        pieces = [encoded.piece(at).values for at in range(len(samples))]
        if meaning.output.kind in OF_EVERY_ROW:
            return pieces[0].astype(np.float64)
        said = said_of(meaning, samples, pieces, [], 0)
        return (
            said.values if isinstance(said, Scores) else np.array([said.value if isinstance(said, Number) else np.nan])
        )

    return give


def _expected(meaning: Meaning, window: Window, laid: Sequence[_Laid]) -> NDArray[np.float64]:
    best, kind = window.aggregation == "best", meaning.output.kind
    if kind == "span":
        return np.concatenate(laid[0].numbers)
    if kind == "tags":
        return _tags(laid[0], window)
    if kind == "choice":
        each = np.array([np.max(one.numbers) if best else np.mean(one.numbers) for one in laid])
        return softmax(each, 1.0) if meaning.score.probability else each
    numbers = np.array(laid[0].numbers)
    if meaning.interaction.kind != "cross":
        return _labels(meaning, window, numbers)
    if _of_chances(window):
        return np.asarray(_ranks(meaning, numbers).mean(keepdims=True))
    return _ranks(meaning, numbers).max(keepdims=True) if best else _ranks(meaning, numbers.mean(axis=0)[None])


def _labels(meaning: Meaning, window: Window, numbers: Floats) -> Floats:
    """[n], of those of windows [w, n], which no temperature stands beside."""
    chances = _of_chances(window)
    if not meaning.score.probability:
        return np.asarray(numbers.mean(axis=0))
    if meaning.score.activation == "sigmoid":
        return np.asarray(sigmoid(numbers, 1.0).mean(axis=0) if chances else sigmoid(numbers.mean(axis=0), 1.0))
    return (windows_by_mean_probabilities if chances else windows_by_mean_logits)(numbers, 1.0)


def _tags(laid: _Laid, window: Window) -> Floats:
    """[r, n], the rows around every window from the first and the last, each other from the one that owns its word."""
    owner = word_owners(laid.cut.windows, laid.words, window.owner or "largest-context")
    own = [laid.numbers[w][laid.head + at - laid.cut.windows[w, 0]] for at, w in enumerate(owner.tolist())]
    last = laid.numbers[-1]
    behind = laid.head + int(np.diff(laid.cut.windows[-1])[0])
    return np.concatenate([laid.numbers[0][: laid.head], np.array(own), last[behind:]])
