"""From a head's numbers to what a release says of a case: labels' or choices' scores, a number, tags, or an answer."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from harness.candidate.head import Layout, Sample
from harness.errors import Misconfigured
from harness.output.task import Number, Scores, Span, Stretch, Tags, TaskOutput
from harness.readout.head import SpanLogits, best_span
from harness.readout.probability import scaled, sigmoid, softmax
from harness.readout.tag import agreed, constrained, largest, legal, word_chances
from harness.release.manifest import Meaning, Output
from harness.rows.mask import Floats
from harness.rows.word import Characters, characters

Numbers = NDArray[np.float32]
APPLIED = {"softmax": softmax, "sigmoid": sigmoid, "identity": scaled}


def require_decoder(name: str, output: Output) -> None:
    """Raises Misconfigured for tags that have no null tag, or that the decoder has no rules for."""
    if output.kind != "tags":
        return
    labels, null = output.labels or [], output.null or "O"
    if null not in labels:
        raise Misconfigured(
            f"release {name!r}", found=f"the tags {', '.join(labels)}, none of which is {null}",
            expected="a tag for words that nothing is said of", mend='Name it as `null = "…"` in [output].',
        )  # fmt: skip
    if output.decoder == "constrained":
        legal(labels)


def said_of(meaning: Meaning, samples: Sequence[Sample], numbers: Sequence[Numbers], layouts: Sequence[Layout],
            lost: int) -> TaskOutput:  # fmt: skip
    """What is said of one case. Shapes: numbers, layouts [k], of its samples [k]: one, or as many as there are choices;
    of a sample [1, c], or [r, c] with a layout. A sample that is read in windows has [w, c] of them, or of spans the
    rows of one after another, with a layout each. `lost`: tokens that were cut.
    """
    output = meaning.output
    match output.kind:
        case "value":
            return Number(float(numbers[0][:, 0].mean(dtype=np.float64)))
        case "tags":
            return Tags(_tags(output, samples[0], numbers[0], layouts[0], lost))
        case "span":
            return _span(output, samples[0], numbers[0], layouts)
        case "choice":
            return Scores(_applied(meaning, np.array([_of_choice(meaning, each) for each in numbers])))
        case _:
            return Scores(_of_windows(meaning, numbers[0]))


def _of_windows(meaning: Meaning, numbers: Numbers) -> Floats:
    """[c], from those of its windows [w, c]: what the mean of their logits comes to, or the mean of what each does."""
    [tower] = meaning.towers.values()
    if tower.input.window is not None and tower.input.window.aggregation == "mean-of-probabilities":
        return np.asarray(_applied(meaning, numbers).mean(axis=0))
    return _applied(meaning, numbers.mean(axis=0, dtype=np.float64))


def _of_choice(meaning: Meaning, numbers: Numbers) -> float:
    """Of one choice, from those of the windows [w, 1] of its context: the highest, or their mean."""
    [tower] = meaning.towers.values()
    if tower.input.window is not None and tower.input.window.aggregation == "best":
        return float(numbers.max())
    return float(numbers[:, 0].mean(dtype=np.float64))


def _applied(meaning: Meaning, numbers: NDArray[np.floating]) -> Floats:
    return APPLIED[meaning.score.activation](numbers, meaning.score.temperature or 1.0)


def _tags(output: Output, sample: Sample, numbers: Numbers, layout: Layout, lost: int) -> tuple[str, ...]:
    """One for each word down to the last one that was read. A word between, of which the tokenizer leaves nothing, has
    the null tag.
    """
    labels, n_words = output.labels or [], len(sample.first)
    null = labels.index(output.null or "O")
    if lost:
        n_words = int(layout.words.max(initial=-1)) + 1
    if output.pieces == "all-agree":
        codes = agreed(numbers, layout.words, n_words, labels, null)
    else:
        chances = word_chances(numbers, layout.words, n_words, output.pieces or "first", null)
        codes = constrained(chances, labels) if output.decoder == "constrained" else largest(chances)
    return tuple(labels[code] for code in codes)


def _span(output: Output, sample: Sample, numbers: Numbers, layouts: Sequence[Layout]) -> Span:
    """The best answer among the context's own rows. `null_score` is what the first row says of there being none; where
    the release has that rule and it says more, the text is None, and the best answer's place and score stand by.

    Each window is searched by itself, so no answer joins two. Of equals the shorter, then the earlier. There is no
    answer as far as the window says so that doubts it most, as in SQuAD's own script for BERT.
    """
    ends = np.cumsum([len(layout.texts) for layout in layouts])
    apart = np.split(numbers.astype(np.float64), ends[:-1])
    null_score = min(float(each[0].sum()) for each in apart)
    found = [_best(output, one, layout) for one, layout in zip(apart, layouts, strict=True)]
    there = [each for each in found if each is not None]
    read = tuple(_read(layout) for layout in layouts if (layout.texts == 1).any())
    if not there:
        return Span(None, null_score=null_score, read=read)
    best = min(there, key=lambda each: (-each.score, each.length, each.at.start))
    abstains = output.null is not None and null_score > best.score
    text = None if abstains else str(sample.second)[best.at.start : best.at.end]
    return Span(text, best.at.start, best.at.end, best.score, null_score, read)


def _read(layout: Layout) -> Stretch:
    """What a window shows of the context."""
    own = layout.offsets[layout.texts == 1]
    return Stretch(int(own[:, 0].min()), int(own[:, 1].max()))


class _Best(NamedTuple):
    """The best answer of one window, `length` in rows."""

    at: Characters
    length: int
    score: float


def _best(output: Output, numbers: Floats, layout: Layout) -> _Best | None:
    start, end = numbers.T
    rows = np.flatnonzero((layout.texts == 1) & (layout.offsets[:, 0] < layout.offsets[:, 1]))
    if not len(rows):
        return None
    best = best_span(SpanLogits(rows, start[rows], end[rows]), output.longest or len(start))
    return _Best(characters(layout.offsets, best.first, best.last), best.last - best.first, best.score)
