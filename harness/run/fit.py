"""Whether releases can do what a suite asks of them, and whether two of them can be compared in it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from harness.errors import Misconfigured
from harness.release.open import Release
from harness.run.replay import RANKINGS
from harness.run.replay_cases import require_recorded
from harness.suite.definition import RANKED, SuiteDefinition

TASKS: Mapping[str, tuple[str, ...]] = {
    "classes": ("classification",),
    "multilabel": ("multilabel",),
    "value": ("regression", "similarity"),
    "tags": ("entity",),
    "span": ("answer",),
    "choice": ("multiple-choice",),
    "bi": ("similarity",),
    "cross": ("similarity", "regression"),
}
"""What is judged of a head, by the kind of its output, and of other releases without a corpus."""

EXPECTED: Mapping[str, str] = {
    "classification": "a head of classes",
    "multilabel": "a head of multilabel",
    "regression": "a head of value, a cross-encoder of one number",
    "similarity": "a head of value, a bi-encoder of both texts, a cross-encoder of one number",
    "entity": "a head of tags",
    "answer": "a head of span",
    "multiple-choice": "a head of choice",
}


def require_fit(releases: Mapping[str, Release], suite: SuiteDefinition) -> None:
    """Raises Misconfigured for releases by side that this version cannot run, that the suite's task is not for, or
    whose last stages would be given different documents where the suite does not allow it.
    """
    for release in releases.values():
        if suite.task not in RANKED:
            _require_judged(release, suite)
            continue
        _require_runnable(release)
        for part in _parts(release):
            if part.release.definition.interaction == "head":
                _refuse_head(release, part)
            if suite.task == "retrieval" and part.searching and part.release.definition.interaction == "cross":
                _refuse_searching_cross(release, part)
            if suite.task == "reranking":
                _require_reranking(release, part)
    if suite.task == "retrieval" and suite.ranking.candidates == "shared" and len(releases) > 1:
        _require_shared(releases)


def _require_judged(release: Release, suite: SuiteDefinition) -> None:
    """A task without a corpus takes recorded outputs, a head of its own kind, and of numbers what scores two texts."""
    if release.recorded is not None:
        require_recorded(release.recorded, suite.task)
        return
    output, kind = release.manifest.meaning.output, release.definition.interaction
    tasks = TASKS.get(output.kind if kind == "head" else kind, ())
    found = f"a {kind} release of {output.kind}" if kind == "head" else f"a {kind} release"
    if suite.task not in tasks:
        raise Misconfigured(
            f"release {release.name!r}", found=f"{found} in a suite of {suite.task}",
            expected=f"{EXPECTED[suite.task]}, or recorded outputs",
            mend=f"Judge it in a suite of {' or '.join(tasks)}." if tasks else "Record its outputs as JSON Lines.",
        )  # fmt: skip
    if kind == "bi" and not release.manifest.meaning.interaction.tied:
        raise Misconfigured(
            f"release {release.name!r}", found="an encoder for each side", expected="one encoder for both texts, which "
            "are alike whichever stands first", mend="Record its outputs as JSON Lines.",
        )  # fmt: skip
    if output.dimension != 1 and (kind == "cross" or output.kind == "value"):
        raise Misconfigured(
            f"release {release.name!r}", found=f"a head of {output.dimension} numbers in a suite of {suite.task}",
            expected="one number", mend="Record its outputs as JSON Lines.",
        )  # fmt: skip
    if release.cannot_run:
        raise Misconfigured(
            f"release {release.name!r}", found=f"{release.cannot_run}, which this version cannot run",
            expected=f"{EXPECTED[suite.task]}, or recorded outputs", mend="Record its outputs as JSON Lines.",
        )  # fmt: skip


class _Part(NamedTuple):
    """A release, or one that it is made of by `role`; `searching` where it is to rank the whole corpus."""

    release: Release
    role: str
    searching: bool


class _First(NamedTuple):
    """A first stage as far as it decides what a last one is given."""

    content_id: str
    depth: int


def _parts(release: Release, role: str = "", searching: bool = True) -> Iterator[_Part]:
    yield _Part(release, role, searching)
    for name, member in release.members.items() if release.is_composed else ():
        yield from _parts(member, name, searching and name != "reranker")


def _require_runnable(release: Release) -> None:
    recorded = release.recorded
    if recorded is not None and recorded.format not in RANKINGS:
        raise Misconfigured(
            f"release {release.name!r}", found=f"outputs recorded as {recorded.format!r}, which rank no documents",
            expected=f"one of {', '.join(RANKINGS)}", mend="Record them as a TREC run.",
        )  # fmt: skip
    if release.cannot_run:
        raise Misconfigured(
            f"release {release.name!r}", found=f"{release.cannot_run}, which this version cannot run",
            expected="a bi-encoder, a cross-encoder, two stages or a fusion of such, or recorded outputs",
            mend="It can be admitted and compared; to judge it, record its outputs as a TREC run.",
        )  # fmt: skip
    if release.unranked:
        raise Misconfigured(
            f"release {release.name!r}", found=release.unranked, expected="the class by whose number documents rank",
            mend='Add `label = "…"` to [score] in its release.toml.',
        )  # fmt: skip


def _refuse_searching_cross(whole: Release, part: _Part) -> None:
    where = f" as its {part.role}" if part.role else ""
    raise Misconfigured(
        f"release {whole.name!r}", found=f"a cross release{where}, which reads pairs and searches no corpus",
        expected="a first stage that finds what it is to read",
        mend='Make it the `reranker` of a release with interaction = "two-stage", or judge it in a suite with '
        'task = "reranking".',
    )  # fmt: skip


def _refuse_head(whole: Release, part: _Part) -> None:
    where, kind = f" as its {part.role}" if part.role else "", part.release.manifest.meaning.output.kind
    raise Misconfigured(
        f"release {whole.name!r}", found=f"a head release of {kind}{where}, which ranks no documents",
        expected="a release that ranks documents", mend=f"Judge it in a suite of {' or '.join(TASKS[kind])}.",
    )  # fmt: skip


def _require_reranking(whole: Release, part: _Part) -> None:
    from harness.run.apart import SCORERS
    from harness.run.rerank import JOINT

    kind = part.release.definition.interaction
    where = f" as its {part.role}" if part.role else ""
    if kind == "two-stage":
        raise Misconfigured(
            f"release {whole.name!r}", found=f"a two-stage release{where}, which finds its own candidates",
            expected="a release that ranks those of the suite",
            mend=f"Judge its reranker, {part.release.members['reranker'].name!r}, here, and the whole in a retrieval "
            "suite.",
        )  # fmt: skip
    if kind not in (*JOINT, *SCORERS, "fusion", "recorded"):
        raise Misconfigured(
            f"release {whole.name!r}", found=f"a {kind} release{where}, which scores no given documents",
            expected=f"one of {', '.join((*JOINT, *SCORERS, 'fusion', 'recorded'))}",
            mend="Record its outputs as a TREC run.",
        )  # fmt: skip


def _require_shared(releases: Mapping[str, Release]) -> None:
    """The same first stages, so that what differs is what the last stages make of the same documents."""
    first = {side: set(_first_stages(release)) for side, release in releases.items()}
    candidate, parent = first.get("candidate", set()), first.get("parent", set())
    if not candidate or not parent or candidate == parent:
        return
    raise Misconfigured(
        f"candidate {releases['candidate'].name!r} and parent {releases['parent'].name!r}",
        found=f"first stages {_shown(candidate)} and {_shown(parent)}",
        expected="the same candidates for both last stages, from one retriever at one depth",
        mend='To compare the two from end to end, write candidates = "own" under [ranking] in suite.toml.',
    )


def _first_stages(release: Release) -> Iterator[_First]:
    stages = release.definition.stages
    if stages is not None:
        yield _First(release.members["retriever"].content_id, stages.depth)
    for member in release.members.values() if release.is_composed else ():
        yield from _first_stages(member)


def _shown(stages: set[_First]) -> str:
    return ", ".join(f"{each.content_id[:12]} at depth {each.depth}" for each in sorted(stages))
