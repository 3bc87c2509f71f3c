"""Heads over the cases of a suite without a corpus: what several of them read alike is tokenised and computed once.

A head is given the inputs of a case and nothing else: no gold, role or slice.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from harness.candidate.encoder import Encoded, Pieces, encode
from harness.candidate.head import HeadModel, Layout, Sample
from harness.candidate.head_output import require_decoder, said_of
from harness.candidate.load import load_head_to_run
from harness.errors import Misconfigured
from harness.output.case import CaseOutput, OutputStatus
from harness.release.open import Release
from harness.run.output import Executed, Remark, uncovered_remark
from harness.run.replay_cases import NOT_FINITE, settled
from harness.run.windowed import WindowedTexts, windowed, windowed_remarks
from harness.suite.case import Case, Inputs, Suite

LAID_OUT = ("tags", "span")
NAMED = ("classes", "multilabel")


def run_heads(releases: Mapping[str, Release], suite: Suite, kept: Pieces | None = None) -> dict[str, Executed]:
    """By name, every case's output in suite order. A case that makes a model raise, or whose numbers are not finite,
    fails alone. `kept`: numbers of earlier runs. Raises Stopped where a model does not load.
    """
    if not releases:
        return {}
    for release in releases.values():
        require_decoder(release.name, release.manifest.meaning.output)
    models = {name: load_head_to_run(release) for name, release in releases.items()}
    for release in releases.values():
        _refuse_other_windows(release, suite)
    samples = [samples_of(case.inputs) for case in suite.cases]
    flat = [sample for some in samples for sample in some]
    starts = np.cumsum([0, *(len(some) for some in samples)]).tolist()
    found = {}
    for (name, model), encoded in zip(models.items(), encode(list(models.values()), flat, kept), strict=True):
        output = releases[name].manifest.meaning.output
        outputs = (
            _output(case, releases[name], model, flat[start:end], encoded, start)
            for case, start, end in zip(suite.cases, starts, starts[1:], strict=False)
        )
        labels = tuple(output.labels or ()) if output.kind in NAMED else ()
        several = tuple(_windowed(suite, starts, encoded))
        remarks = (*_remarks(suite, starts, encoded), *windowed_remarks(several))
        found[name] = Executed(tuple(outputs), remarks, labels=labels, windowed=several)
    return found


def _windowed(suite: Suite, starts: Sequence[int], encoded: Encoded) -> Iterator[WindowedTexts]:
    counts = np.diff(starts)
    cases = [case.id for case, count in zip(suite.cases, counts.tolist(), strict=True) for _ in range(count)]
    readings = np.arange(starts[-1]) - np.repeat(starts[:-1], counts) + 1
    yield from windowed("case", encoded.in_windows, cases=cases, readings=readings)


def _refuse_other_windows(release: Release, suite: Suite) -> None:
    """Of a question and its context it is the context that is long, of two texts with a label the one that is named.

    Raises Misconfigured for cases of which nobody says what is long.
    """
    [tower] = release.manifest.meaning.towers.values()
    kind, window = release.manifest.meaning.output.kind, tower.input.window
    if window is None or kind in LAID_OUT:
        return
    for case in suite.cases:
        two, choices = "text_b" in case.inputs, "choices" in case.inputs
        if choices and "context" not in case.inputs:
            found, expected = "without a context", "a `context` in every case, for question and choices are never cut"
        elif two and window.text is None:
            found = "of two texts"
            expected = '`text = "first"` or `text = "second"` in [input.window], which says the one that is long'
        elif not choices and not two and window.text is not None:
            found, expected = f"of one text, where the {window.text} of two is long", "two texts in every case"
        else:
            continue
        raise Misconfigured(
            f"release {release.name!r}", found=f"a {kind} release that reads texts in windows, and cases {found}, the "
            f"first {case.id!r}", expected=expected,
            mend="Correct [input.window] in release.toml, or take it out.",
        )  # fmt: skip


def _remarks(suite: Suite, starts: Sequence[int], encoded: Encoded) -> Iterator[Remark]:
    hidden = np.add.reduceat(np.append(encoded.uncovered, 0), starts[:-1]) if len(starts) > 1 else encoded.uncovered
    yield from uncovered_remark(hidden, [case.id for case in suite.cases], "case")


def samples_of(inputs: Inputs) -> list[Sample]:
    """What is read of a case: one sample, or of choices one for each. A context stands before question and choice."""
    texts = {name: str(value) for name, value in inputs.items()}
    if "tokens" in inputs:
        return [Sample(tuple(inputs["tokens"]))]
    if "choices" in inputs:
        if "context" in inputs:
            return [Sample(texts["context"], f"{texts['question']} {choice}") for choice in inputs["choices"]]
        return [Sample(texts["question"], choice) for choice in inputs["choices"]]
    if "question" in inputs:
        return [Sample(texts["question"], texts["context"])]
    return [Sample(texts["text"])] if "text" in inputs else [Sample(texts["text_a"], texts["text_b"])]


def _output(
    case: Case, release: Release, model: HeadModel, samples: list[Sample], encoded: Encoded, start: int
) -> CaseOutput:
    """Of the samples that stand from `start` on among all."""
    places = range(start, start + len(samples))
    if not places:
        return CaseOutput(case.id, OutputStatus.FAILED, "it has nothing to read")
    most = max(places, key=lambda at: encoded.tokens_lost[at])
    read = CaseOutput(
        case.id, OutputStatus.FAILED, input_digest=_digest(encoded, places), tokens_kept=int(encoded.tokens_kept[most]),
        tokens_lost=int(encoded.tokens_lost[most]),
    )  # fmt: skip
    for reason in _reasons(encoded, places):
        return replace(read, reason=reason)
    numbers = [encoded.piece(at).values for at in places]
    if not all(np.isfinite(each).all() for each in numbers):
        return replace(read, reason=NOT_FINITE, non_finite=True)
    meaning = release.manifest.meaning
    layouts: list[Layout] = model.layouts(samples) if meaning.output.kind in LAID_OUT else []
    found = settled(case, said_of(meaning, samples, numbers, layouts, int(encoded.tokens_lost[most])))
    return replace(read, status=found.status, reason=found.reason, non_finite=found.non_finite, output=found.output)


def _reasons(encoded: Encoded, places: range) -> Iterator[str]:
    return (encoded.failed[at] for at in places if at in encoded.failed)


def _digest(encoded: Encoded, places: range) -> str:
    every = [encoded.input_digests[at] for at in places]
    return every[0] if len(every) == 1 else hashlib.sha256(" ".join(every).encode()).hexdigest()
