"""How much two texts are alike: read apart by a bi-encoder, or together by a cross-encoder."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from harness.candidate.cross import Pair
from harness.candidate.encoder import Encoded, Pieces, encode
from harness.candidate.load import load_cross_to_run
from harness.errors import Misconfigured
from harness.output.case import CaseOutput, OutputStatus
from harness.output.task import Number
from harness.release.open import Release
from harness.release.window import best_of_windows
from harness.run.apart import SCORERS
from harness.run.given import Floats
from harness.run.output import Executed, uncovered_remark
from harness.run.replay_cases import settled
from harness.run.retrieve import load_encoder
from harness.run.sample import sampled_pairs
from harness.run.windowed import windowed, windowed_remarks
from harness.suite.case import Case, Suite


def run_alike(releases: Mapping[str, Release], suite: Suite, kept: Pieces | None = None) -> dict[str, Executed]:
    """By name, one number for every case, in suite order: the first text as the query, the second as the document.

    Scores are put on the suite's grid, as those of rankings are. Raises Stopped where a model does not load,
    Misconfigured for cases of a single text.
    """
    if not releases:
        return {}
    pairs = [_pair(case, releases) for case in suite.cases]
    apart = {name: each for name, each in releases.items() if each.definition.interaction == "bi"}
    joint = {name: each for name, each in releases.items() if name not in apart}
    return {**_apart(apart, pairs, suite, kept), **_joint(joint, pairs, suite, kept)}


def _pair(case: Case, releases: Mapping[str, Release]) -> Pair:
    if "text_b" not in case.inputs:
        first = next(iter(releases.values()))
        raise Misconfigured(
            f"release {first.name!r}", found=f"a {first.definition.interaction} release; case {case.id!r} has one text",
            expected="`text_a` and `text_b` in every case", mend="Judge a regression head on this suite.",
        )  # fmt: skip
    return Pair(str(case.inputs["text_a"]), str(case.inputs["text_b"]))


class _Reading(NamedTuple):
    """What was read of each case [n], in one or two texts, and the score that it came to."""

    texts: tuple[Encoded, ...]
    scores: Floats


def _apart(
    releases: Mapping[str, Release], pairs: Sequence[Pair], suite: Suite, kept: Pieces | None
) -> dict[str, Executed]:
    if not releases:
        return {}
    encoders = {name: load_encoder(release, suite) for name, release in releases.items()}
    queries = encode([each.sides["query"] for each in encoders.values()], [pair.query for pair in pairs], kept)
    documents = encode([each.sides["document"] for each in encoders.values()], [pair.document for pair in pairs], kept)
    at = np.arange(len(pairs))
    found = {}
    for (name, release), first, second in zip(releases.items(), queries, documents, strict=True):
        scores = SCORERS["bi"](release, first, second, np.stack([at, at], axis=1), suite.definition.ranking.grid)
        made = _executed(_Reading((first, second), scores), suite)
        # Of a text in windows there are several vectors.
        if not best_of_windows(release.manifest.meaning):
            made = replace(made, sample=sampled_pairs([case.id for case in suite.cases], pairs, first, second))
        found[name] = made
    return found


def _joint(
    releases: Mapping[str, Release], pairs: Sequence[Pair], suite: Suite, kept: Pieces | None
) -> dict[str, Executed]:
    models = {name: load_cross_to_run(release) for name, release in releases.items()}
    found = {}
    for (name, model), encoded in zip(models.items(), encode(list(models.values()), pairs, kept), strict=True):
        scores = model.scores(encoded.values, suite.definition.ranking.grid)
        found[name] = _executed(_Reading((encoded,), scores), suite)
    return found


def _executed(reading: _Reading, suite: Suite) -> Executed:
    hidden = np.sum([each.uncovered for each in reading.texts], axis=0)
    names = [case.id for case in suite.cases]
    several = tuple(
        each for number, encoded in enumerate(reading.texts, 1)
        for each in windowed("case", encoded.in_windows, cases=names, readings=np.full(len(names), number))
    )  # fmt: skip
    remarks = (*uncovered_remark(hidden, names, "case"), *windowed_remarks(several))
    outputs = tuple(_output(case, reading, row) for row, case in enumerate(suite.cases))
    return Executed(outputs, remarks, windowed=several)


def _output(case: Case, reading: _Reading, row: int) -> CaseOutput:
    reasons = [each.failed[row] for each in reading.texts if row in each.failed]
    found = settled(case, Number(float(reading.scores[row])))
    if reasons:
        found = CaseOutput(case.id, OutputStatus.FAILED, reasons[0])
    return replace(
        found,
        input_digest=_digest([each.input_digests[row] for each in reading.texts]),
        tokens_kept=sum(int(each.tokens_kept[row]) for each in reading.texts),
        tokens_lost=sum(int(each.tokens_lost[row]) for each in reading.texts),
    )


def _digest(digests: Sequence[str]) -> str:
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()
