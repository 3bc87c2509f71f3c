"""Classification and sets of labels."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from harness.calibration.record import applied
from harness.errors import Misconfigured
from harness.metric import classification, multilabel
from harness.metric.boundary import near_class, near_set
from harness.metric.classification import Classified
from harness.metric.form import Policy, scored
from harness.metric.label import ClassTable, explained
from harness.metric.multilabel import Multilabelled
from harness.metric.probability import separate
from harness.output.companion import Cell, Companion
from harness.verb.task.calibration import abstained, calibration_companions
from harness.verb.task.side import NEAR, Asked, Judged, number, parsed

SHOWN = 40
"""Classes up to which there is a confusion matrix; beyond, a list of the confusions, the largest first."""


def judge_classes(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of one label per case."""
    outputs = _classified(asked)
    widened = _widened(outputs, asked.classes)
    return Judged(
        contributions={
            name: replace(classification.contribution(metric, widened, asked.words(metric)), metric=name)
            for name, metric in parsed(names).items()
        },
        prediction=[None if code < 0 else outputs.classes[code] for code in outputs.predicted],
        gold=list(asked.gold.label),
        probability=_of_predicted(outputs),
        flags={"tied": outputs.tied, NEAR: _near(asked, outputs)} | abstained(classification.forecasts(outputs)),
        companions=_class_companions(
            asked.promotion, outputs if asked.promotion is asked else _classified(asked.promotion)
        ),
    )


def judge_sets(asked: Asked, names: tuple[str, ...]) -> Judged:
    """Metrics of any number of labels per case. A mean over labels is over those of the data and of this model."""
    outputs = _multilabelled(asked)
    widened = _widened_sets(outputs, asked.classes)
    return Judged(
        contributions={
            name: replace(
                multilabel.contribution(metric, outputs if metric.form == "mean" else widened, asked.words(metric)),
                metric=name,
            )
            for name, metric in parsed(names).items()
        },
        prediction=[
            _set(outputs, row) if each else None
            for row, each in zip(outputs.predicted, scored(outputs.status), strict=True)
        ],
        gold=[None if each is None else ", ".join(sorted(each)) for each in asked.gold.labels],
        probability=np.full(len(outputs.case_ids), np.nan),
        flags=abstained(multilabel.forecasts(outputs)) | {NEAR: near_set(outputs, asked.policy.boundary_gap)},
        companions=_set_companions(
            outputs if asked.promotion is asked else _multilabelled(asked.promotion), asked.promotion.slices
        ),
    )


def _classified(asked: Asked) -> Classified:
    found = classification.classified(
        asked.said.case_ids,
        asked.gold.label,
        asked.labels,
        _given(asked),
        asked.said.labels,
        asked.said.status,
        kind=_kind(asked),
        label_map=explained(asked.labels, asked.said.labels),
    )
    return replace(_by_threshold(asked, found), abstain=asked.abstain)


def _by_threshold(asked: Asked, outputs: Classified) -> Classified:
    """Of two classes, the positive one is given from a threshold on; it is the last by name."""
    if asked.of("score", "threshold") is None:
        return outputs
    limit = _limits(asked)
    positive = classification.forecasts(outputs).positive
    if positive is None or isinstance(limit, Mapping):
        raise Misconfigured(
            "[score] threshold", found=f"a threshold over {len(outputs.classes)} classes", expected="one, over two",
            mend="Take it out: of more classes the likeliest is given; [decision] abstain says when none is.",
        )  # fmt: skip
    given = np.where(outputs.probabilities[:, positive] >= limit, positive, 1 - positive)
    return replace(outputs, predicted=np.where(outputs.predicted < 0, -1, given))


def _near(asked: Asked, outputs: Classified) -> NDArray[np.bool_]:
    limit = None if asked.of("score", "threshold") is None else _limits(asked)
    return near_class(outputs, asked.policy.boundary_gap, limit if isinstance(limit, float) else None)


def _multilabelled(asked: Asked) -> Multilabelled:
    own = asked.said.labels
    found = multilabel.multilabelled(
        asked.said.case_ids,
        asked.gold.labels,
        asked.labels,
        _given(asked),
        own,
        asked.said.status,
        kind=_kind(asked),
        thresholds=_limits(asked),
        label_map=explained(asked.labels, own),
    )
    return replace(found, abstain=asked.abstain)


def _limits(asked: Asked) -> float | Mapping[str, float]:
    """The probability from which a label is given: one, or one a label. A threshold is of the score's own type."""
    said, own = asked.of("score", "threshold"), asked.said.labels
    if said is None:
        return 0.5
    given = np.array(cast(list[float], said if isinstance(said, list) else [said]), dtype=np.float64)
    limits = separate(given[None], _kind(asked)).probabilities[0].tolist()
    if not np.isfinite(limits).all():
        raise Misconfigured(
            "[score] threshold", found=", ".join(f"{each:g}" for each in given),
            expected="probabilities, which scores behind a calibrator are",
            mend="Give thresholds from 0 to 1, or choose them with `harness calibrate RUN --threshold RULE`.",
        )  # fmt: skip
    if not isinstance(said, list):
        return float(limits[0])
    if len(limits) != len(own):
        raise Misconfigured(
            "[score] threshold", found=f"{len(limits)} thresholds for {len(own)} labels",
            expected="one, or one for each label in the model's order", mend=f"The labels are {', '.join(own)}.",
        )  # fmt: skip
    return dict(zip(own, limits, strict=True))


def _given(asked: Asked) -> NDArray[np.float64]:
    """Scores [n, k] as they are, or what the release's calibrator makes of them."""
    scores = asked.said.matrix(len(asked.said.labels))
    calibrator = asked.calibrator
    if calibrator is None:
        return scores
    if sorted(calibrator.labels) != sorted(asked.said.labels):
        raise Misconfigured(
            "calibrator", found=f"one of the labels {', '.join(calibrator.labels)}",
            expected=f"one of {', '.join(asked.said.labels)}", mend="Fit it again on a run of this release.",
        )  # fmt: skip
    order = [calibrator.labels.index(name) for name in asked.said.labels]
    return applied(calibrator, scores[:, np.argsort(order)])[:, order]


def _kind(asked: Asked) -> Literal["logit", "probability"]:
    if asked.calibrator is not None:
        return "probability"
    if asked.kind not in ("logit", "probability"):
        raise Misconfigured(
            "score type", found=f"{asked.kind!r}, which gives labels no probability",
            expected="logit or probability", mend="Correct score_type under [recorded] in release.toml.",
        )  # fmt: skip
    return cast(Literal["logit", "probability"], asked.kind)


def _widened(outputs: Classified, classes: tuple[str, ...]) -> Classified:
    """The same outputs over more classes, of which none is ever given."""
    place = np.array([classes.index(name) for name in outputs.classes], dtype=np.int64)
    chances = np.where(np.isnan(outputs.probabilities[:, :1]), np.nan, np.zeros((1, len(classes))))
    chances[:, place] = outputs.probabilities
    return replace(
        outputs,
        classes=classes,
        gold=np.where(outputs.gold < 0, -1, place[outputs.gold]),
        predicted=np.where(outputs.predicted < 0, -1, place[outputs.predicted]),
        probabilities=chances,
    )


def _widened_sets(outputs: Multilabelled, classes: tuple[str, ...]) -> Multilabelled:
    place = [classes.index(name) for name in outputs.classes]
    shape = (len(outputs.case_ids), len(classes))
    gold, predicted = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    chances = np.where(np.isnan(outputs.probabilities[:, :1]), np.nan, np.zeros((1, len(classes))))
    limits = np.ones(len(classes))
    gold[:, place], predicted[:, place], chances[:, place] = outputs.gold, outputs.predicted, outputs.probabilities
    limits[place] = outputs.thresholds
    return replace(outputs, classes=classes, gold=gold, predicted=predicted, probabilities=chances, thresholds=limits)


def _of_predicted(outputs: Classified) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    at = np.maximum(outputs.predicted, 0)[:, None]
    found = np.take_along_axis(outputs.probabilities, at, axis=1)[:, 0]
    return np.where(outputs.predicted < 0, np.nan, found)


def _set(outputs: Multilabelled, row: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> str:
    return ", ".join(sorted(name for name, held in zip(outputs.classes, row, strict=True) if held))


def _class_companions(asked: Asked, outputs: Classified) -> tuple[Companion, ...]:
    told = calibration_companions(classification.forecasts(outputs), asked.slices)
    return (*_class_tables(asked, outputs), *told)


def _class_tables(asked: Asked, outputs: Classified) -> Iterator[Companion]:
    words = Policy(asked.policy.absent, asked.policy.division or "zero", asked.policy.empty)
    yield _table_of(classification.support(outputs, words))
    found = classification.confusion(outputs)
    note = f"{found.n_scored} scored cases, {found.n_left_out} left out, {found.n_tied} decided by a tie"
    if len(found.classes) <= SHOWN:
        rows = [(name, *counts) for name, counts in zip(found.classes, found.counts.tolist(), strict=True)]
        yield Companion(
            "confusion",
            "Confusion",
            f"Gold in rows, predicted in columns; {note}.",
            ("gold", *found.classes),
            tuple(rows),
        )
    else:
        off = found.counts - np.diag(np.diagonal(found.counts))
        largest = np.argsort(-off, axis=None, kind="stable")[: np.count_nonzero(off)]
        pairs = [(found.classes[i // len(off)], found.classes[i % len(off)], int(off.flat[i])) for i in largest]
        yield Companion("confusion", "Largest confusions", f"{note}.", ("gold", "predicted", "cases"), tuple(pairs))
    costs = {(gold, predicted): cost for gold, row in asked.policy.costs.items() for predicted, cost in row.items()}
    if costs:
        paid = classification.costs(outputs, costs)
        k = range(len(paid.classes))
        cells: list[tuple[Cell, ...]] = [
            (paid.classes[i], paid.classes[j], float(paid.each[i, j]), int(paid.counts[i, j]), float(paid.total[i, j]))
            for i in k for j in k if i != j and paid.counts[i, j]
        ]  # fmt: skip
        mean = float(np.nanmean(paid.per_case.values)) if paid.per_case.scored.any() else None
        told = "no case" if mean is None else f"{mean:.4f} a case"
        yield Companion(
            "costs",
            "Costs",
            f"What the confusions cost: {told}.",
            ("gold", "predicted", "each", "cases", "total"),
            tuple(cells),
        )
    losses = classification.clipped(outputs)
    if losses.n_clipped:
        yield Companion(
            "clipped",
            "Clipped losses",
            f"Probabilities below {losses.least:.3g} cost as much as that one.",
            ("cases",),
            ((losses.n_clipped,),),
        )


def _table_of(table: ClassTable) -> Companion:
    rows = tuple(
        (row.name, row.support, row.predicted, row.right, number(row.precision), number(row.recall), number(row.f1))
        for row in table.rows
    )
    note = (
        f"Classes neither gold nor predicted: {table.n_absent} ({table.absent}); without gold: {table.n_without_gold}; "
        f"never predicted: {table.n_never_predicted} (0/0: {table.division})."
    )
    return Companion(
        "classes", "Classes", note, ("class", "support", "predicted", "right", "precision", "recall", "f1"), rows
    )


def _set_companions(outputs: Multilabelled, slices: Mapping[str, NDArray[np.bool_]]) -> tuple[Companion, ...]:
    return (*_set_tables(outputs), *calibration_companions(multilabel.forecasts(outputs), slices))


def _set_tables(outputs: Multilabelled) -> Iterator[Companion]:
    table = multilabel.label_table(outputs)
    rows = tuple(
        (
            row.name,
            row.support,
            number(p),
            row.predicted,
            number(rate),
            number(limit),
            number(row.precision),
            number(row.recall),
            number(row.f1),
        )
        for row, p, rate, limit in zip(
            table.classes.rows, table.prevalence, table.predicted_rate, table.thresholds, strict=True
        )
    )
    columns = ("label", "support", "prevalence", "predicted", "rate", "threshold", "precision", "recall", "f1")
    yield Companion("labels", "Labels", "A label is given where its probability reaches the threshold.", columns, rows)
    sizes = multilabel.labels_per_case(outputs)
    last = int(max(np.flatnonzero(sizes.gold + sizes.predicted), default=0))
    cells = tuple((i, int(sizes.gold[i]), int(sizes.predicted[i])) for i in range(last + 1))
    note = (
        f"Means {sizes.mean_gold:.3f} and {sizes.mean_predicted:.3f}; {sizes.n_both_empty} cases have neither, "
        f"each worth {sizes.empty}."
    )
    yield Companion("sizes", "Labels per case", note, ("labels", "gold", "predicted"), cells)
