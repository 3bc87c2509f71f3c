"""Answers to questions, of which some may have none."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import cast

import numpy as np

from harness.calibration.record import applied_to_score
from harness.errors import Misconfigured
from harness.metric import answer
from harness.metric.answer import Answered, AnswerPart, fit_null_threshold
from harness.metric.answer_span import coverage, wrong_offsets
from harness.metric.answer_text import TextRule
from harness.metric.calibration import Sample
from harness.metric.form import Bools, Floats, Ints, scored
from harness.metric.name import MetricName
from harness.output.companion import Cell, Companion
from harness.verb.task.calibration import reliability_companion, slice_companion
from harness.verb.task.side import Asked, Judged, number, parsed

NONE = "(no answer)"


def judge_answers(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of answers; where an answer stands only under a threshold, the release's own or one from calibration."""
    outputs, metrics = _answered(asked), parsed(names)
    # In the order of the metrics: a set's would change from process to process, and the report's bytes with it.
    aims = [aim for aim in dict.fromkeys(_aim(each) for each in metrics.values()) if aim is not None]
    limits: dict[answer.Aim | None, float | None] = {aim: _limit(asked, outputs, aim) for aim in aims}
    said = zip(asked.said.answer, asked.said.status, strict=True)
    return Judged(
        contributions={
            name: replace(answer.contribution(metric, outputs, limits.get(_aim(metric))), metric=name)
            for name, metric in metrics.items()
        },
        prediction=[text or (NONE if status == "ok" else None) for text, status in said],
        gold=[None if each is None else " / ".join(each) or NONE for each in asked.gold.answers],
        probability=_answerable(asked),
        flags=_abstained(asked, outputs),
        companions=tuple(_companions(asked.promotion, next(iter(limits.values()), None))),
    )


def _answered(asked: Asked) -> Answered:
    policy = asked.policy
    return answer.answered(
        asked.said.case_ids,
        asked.gold.answers,
        asked.said.answer,
        asked.said.status,
        score=asked.said.score,
        null_score=asked.said.null_score,
        rule=TextRule(policy.articles, policy.punctuation, policy.cjk, policy.empty_answer),
    )


def _answerable(asked: Asked) -> Floats:
    """How likely there is an answer [n], by the release's calibrator of the gap between score and null score."""
    gap = asked.said.score - asked.said.null_score
    return np.full(len(gap), np.nan) if asked.calibrator is None else applied_to_score(asked.calibrator, gap)


def _abstained(asked: Asked, outputs: Answered) -> dict[str, Bools]:
    """Which cases the release's own rule leaves without an answer; no flag where it has none."""
    decided = asked.of("score", "decision")
    if not isinstance(decided, Mapping) or decided.get("ground") != "gap":
        return {}
    gap = asked.said.score - asked.said.null_score
    return {"abstained": scored(outputs.status) & (gap < float(cast(float, decided["below"])))}


def _aim(metric: MetricName) -> answer.Aim | None:
    """What a metric's threshold is fitted for; None for one that takes answers as they are."""
    if not metric.base.startswith("best_"):
        return None
    return "exact_match" if metric.base == "best_exact_match" else "answer_f1"


def _limit(asked: Asked, outputs: Answered, aim: answer.Aim | None) -> float:
    decided = asked.of("score", "decision")
    if isinstance(decided, Mapping) and decided.get("ground") is not None:
        if decided["ground"] != "gap":
            raise Misconfigured(
                "[decision] abstain", found=f"the ground {decided['ground']} of answers, which give no probability",
                expected="gap", mend="Say below which gap between score and null score nothing is answered.",
            )  # fmt: skip
        # Null score minus score above a threshold is score minus null score below its opposite.
        return -float(cast(float, decided["below"]))
    declared = asked.of("score", "threshold")
    if isinstance(declared, int | float):
        return float(declared)
    return fit_null_threshold(outputs, asked.roles, aim or "answer_f1").value


def _companions(asked: Asked, limit: float | None) -> Iterator[Companion]:
    outputs = _answered(asked)
    plain = answer.answer_table(outputs)
    rows = [_row("as given", "answerable", plain.answerable), _row("as given", "unanswerable", plain.unanswerable)]
    note = (
        f"{plain.n_golds} gold answers, {plain.n_empty_golds} of articles and punctuation alone; articles "
        f"{plain.rule.articles}, CJK by {plain.rule.cjk}, {plain.rule.empty}."
    )
    if limit is not None:
        under = answer.answer_table(outputs, limit)
        rows += [
            _row(f"abstaining above {limit:.6g}", "answerable", under.answerable),
            _row(f"abstaining above {limit:.6g}", "unanswerable", under.unanswerable),
        ]
        if under.n_undecided:
            note += f" {under.n_undecided} of the answers lack a score beside the threshold."
    columns = ("answers", "questions", "cases", "abstained", "exact match", "F1")
    yield Companion("answers", "Questions with and without an answer", note, columns, tuple(rows))
    if any(each is not None for each in asked.said.read):
        yield _coverage(asked)
    if asked.calibrator is not None:
        said = _answerable(asked)
        held = np.array([np.nan if each is None else float(bool(each)) for each in asked.gold.answers])
        there = np.isfinite(said + held)
        if there.any():
            of = "whether a question is answerable"
            yield reliability_companion(Sample(said[there], held[there]), of, asked.calibrator.valid_for)
            yield slice_companion(Sample(said[:, None], held[:, None]), there, asked.slices)
    contexts = [str(each["context"]) for each in asked.gold.inputs]
    wrong = wrong_offsets(asked.said.case_ids, asked.said.answer, *_places(asked), contexts)
    if wrong:
        told: list[tuple[Cell, ...]] = [(each.case_id, each.start, each.end, each.answer, each.found) for each in wrong]
        yield Companion(
            "offsets", "Answers that do not stand at their offsets", f"{len(wrong)} answers.",
            ("case", "start", "end", "answer", "stands there"), tuple(told),
        )  # fmt: skip


def _coverage(asked: Asked) -> Companion:
    """Which gold answers the windows showed at all; one that none shows is a miss, and says why."""
    told = [i for i, read in enumerate(asked.said.read) if read is not None]
    golds = [
        np.array(
            [
                (start, start + len(text))
                for text, start in zip(asked.gold.answers[i] or (), asked.gold.starts[i] or (), strict=True)
                if start is not None
            ],
            dtype=np.int64,
        ).reshape(-1, 2)
        for i in told
    ]
    windows = [read for read in asked.said.read if read is not None]
    found = coverage(asked.said.case_ids[told], golds, windows)
    rows: list[tuple[Cell, ...]] = [(each.case_id, each.start, each.end, each.reason) for each in found.lost]
    return Companion(
        "golds", "Gold answers that were read",
        f"{found.n_inside} inside a window, {found.n_outside} outside ({found.n_truncated} truncated); "
        f"{found.n_unreachable} questions with none inside. Each stays in every mean.",
        ("case", "start", "end", "why"), tuple(rows),
    )  # fmt: skip


def _places(asked: Asked) -> tuple[Ints, Ints]:
    starts, ends = (
        np.array([-1 if each is None else each for each in places], dtype=np.int64)
        for places in (asked.said.span_start, asked.said.span_end)
    )
    both = (starts >= 0) & (ends >= 0)
    return np.where(both, starts, -1), np.where(both, ends, -1)


def _row(answers: str, questions: str, part: AnswerPart) -> tuple[Cell, ...]:
    return (answers, questions, part.n, part.n_abstained, number(part.exact_match), number(part.answer_f1))
