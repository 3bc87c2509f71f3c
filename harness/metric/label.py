"""Labels are matched by name: the model's order may differ from the data's, its names may not."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

import numpy as np

from harness.errors import Misconfigured
from harness.metric.form import (
    UNDEFINED,
    WORTH,
    Bools,
    Floats,
    Ints,
    Objects,
    Policy,
    Word,
    divided,
    finish_of,
    ordered_mean,
    ordered_sum,
    rank_of,
)
from harness.metric.name import MetricName
from harness.output.contribution import CaseRanks, CaseRows, RankKind

ONE_AGAINST_REST: dict[str, RankKind] = {
    "roc_auc_ovr": "auroc",
    "average_precision_macro": "average_precision",
    "average_precision": "average_precision",
}
"""Rank statistics of each class against all others, and the mean over those classes that have both, or of the one that
is named.
"""

GENERIC = re.compile(r"LABEL_\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Classes and where the model has them. `classes`: the data's labels as declared, then the model's own by name.

    Shapes: columns [k], the model's column of each class.
    """

    classes: tuple[str, ...]
    columns: Ints


def match_labels(data: Sequence[str], model: Sequence[str], label_map: Mapping[str, str] | None = None) -> Matched:
    """Where the model has each of the data's labels; `label_map` says model label → data label.

    A label of the model that the data don't know is a class without gold.
    Raises Misconfigured for a label that stands twice, one that the model lacks, a generic name (`LABEL_0`) that no
    map explains, and a map that speaks of labels that aren't there.
    """
    label_map = label_map or {}
    _refuse_repeated("the data's labels", data)
    _refuse_repeated("the model's labels", model)
    strange = sorted((set(label_map) - set(model)) | (set(label_map.values()) - set(data)))
    if strange:
        raise _refusal(data, model, f"a label_map with {_listed(strange)}, which neither side has there")
    generic = [name for name in model if GENERIC.fullmatch(name) and name not in label_map]
    if generic:
        raise _refusal(data, model, f"the model names {_listed(generic)}, which say nothing")
    names = [label_map.get(name, name) for name in model]
    _refuse_repeated("the model's labels under label_map", names)
    lacking = [name for name in data if name not in names]
    if lacking:
        raise _refusal(data, model, f"the model lacks {_listed(lacking)}")
    classes = (*data, *sorted(set(names) - set(data)))
    return Matched(classes, np.array([names.index(name) for name in classes], dtype=np.int64))


def explained(data: Sequence[str], model: Sequence[str]) -> dict[str, str]:
    """The map that explains generic names which both sides have, once somebody said that they mean the same."""
    return {name: name for name in model if GENERIC.fullmatch(name) and name in data}


def codes(labels: Sequence[str | None], classes: Sequence[str], known: int, subject: str) -> Ints:
    """[n], each label's place among the first `known` classes, -1 for None. Raises Misconfigured for another one."""
    place = {name: i for i, name in enumerate(classes[:known])}
    strange = sorted({name for name in labels if name is not None and name not in place})
    if strange:
        raise Misconfigured(
            subject,
            found=f"labels {_listed(strange)}",
            expected=f"one of the declared labels: {_listed(classes[:known])}",
            mend="Declare the label in the suite, or mend the case.",
        )
    return np.array([-1 if name is None else place[name] for name in labels], dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Top:
    """The class with the highest score. Shapes: index [n], tied [n] where several share it."""

    index: Ints
    tied: Bools


def top_class(scores: Floats, classes: Sequence[str]) -> Top:
    """The best class of scores [n, k]. Among equals it is the first by name: no order of labels changes a number."""
    best = scores == scores.max(axis=1, keepdims=True)
    by_name = np.argsort(np.array(classes))
    return Top(by_name[np.argmax(best[:, by_name], axis=1)], best.sum(axis=1) > 1)


def class_scores(
    metric: str, right: Floats | Ints, predicted: Floats | Ints, gold: Floats | Ints, policy: Policy
) -> Floats:
    """Precision, recall or F1 of classes from counts of any one shape; NaN where it is left out."""
    if metric == "f1":
        value = divided(2 * right, predicted + gold)
    else:
        value = divided(right, predicted if metric == "precision" else gold, WORTH[policy.division])
    return np.where(predicted + gold > 0, value, WORTH[policy.absent])


def average(metric: str, how: str, counts: Floats, policy: Policy) -> Floats:
    """A finish: counts [..., 3k] of right, predicted and gold by class → [...].

    `how`: macro, the mean over classes; weighted, that by gold; micro, of the counts' sums over classes.
    """
    right, predicted, gold = np.split(counts, 3, axis=-1)
    if how == "micro":
        right, predicted, gold = (each.sum(axis=-1) for each in (right, predicted, gold))
        return class_scores(metric, right, predicted, gold, policy)
    values = class_scores(metric, right, predicted, gold, policy)
    if how == "macro":
        return ordered_mean(values)
    weight = np.where(np.isnan(values), 0.0, gold)
    return divided(ordered_sum(np.nan_to_num(values) * weight), ordered_sum(weight))


def against_rest(
    name: MetricName, case_ids: Objects, classes: Sequence[str], chances: Floats, gold: Floats, status: Objects
) -> CaseRanks:
    """A rank statistic of chances and gold [n, k], of all classes or one. Raises Misconfigured for an unknown class."""
    if name.label is not None:
        c = one_class(classes, name.label, f"metric '{name}'")
        chances, gold = chances[:, [c]], gold[:, [c]]
    return rank_of(str(name), case_ids, chances, gold, ONE_AGAINST_REST[name.base], status)


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """Which classes cases have: predicted and gold [n, k], 1 or 0, columns in the order of `classes`."""

    classes: tuple[str, ...]
    predicted: Floats
    gold: Floats

    @property
    def rows(self) -> Floats:
        """[n, 3k], what a case adds to the counts of right, predicted and gold by class."""
        return np.hstack([self.predicted * self.gold, self.predicted, self.gold])


def from_counts(
    name: MetricName, case_ids: Objects, members: Membership, status: Objects, policy: Policy | None
) -> CaseRows:
    """Precision, recall or F1 of one class, or its average over classes. Raises Misconfigured for an unknown class."""
    base, _, how = name.base.partition("_")
    if name.label is None:
        settled = policy or Policy()
        return finish_of(str(name), case_ids, members.rows, lambda sums: average(base, how, sums, settled), status)
    single = policy or UNDEFINED
    k = len(members.classes)
    c = one_class(members.classes, name.label, f"metric '{name}'")
    return finish_of(
        str(name),
        case_ids,
        members.rows[:, [c, k + c, 2 * k + c]],
        lambda sums: class_scores(base, sums[..., 0], sums[..., 1], sums[..., 2], single),
        status,
    )


def refuse_task(name: MetricName, task: str) -> None:
    """Raises Misconfigured for a metric that doesn't read what the task's cases have."""
    if task not in name.tasks:
        raise Misconfigured(
            f"metric '{name}'",
            found=f"a metric of {' and '.join(name.tasks)}",
            expected=f"a metric of {task}",
            mend=f"Name one of {task}.",
        )


@dataclass(frozen=True, slots=True)
class ClassRow:
    """One class: how many scored cases have it as gold, how many are given it, how many rightly. NaN: left out."""

    name: str
    support: int
    predicted: int
    right: int
    precision: float
    recall: float
    f1: float


@dataclass(frozen=True, slots=True)
class ClassTable:
    """Every class, also those that no case has. `n_absent` are neither gold nor predicted; `absent` is their policy."""

    rows: tuple[ClassRow, ...]
    n_absent: int
    n_without_gold: int
    n_never_predicted: int
    absent: Word
    division: Word


def class_table(classes: Sequence[str], right: Ints, predicted: Ints, gold: Ints, policy: Policy) -> ClassTable:
    """The table of classes from their counts [k]."""
    scores = [class_scores(metric, right, predicted, gold, policy) for metric in ("precision", "recall", "f1")]
    rows = zip(classes, *(each.tolist() for each in (gold, predicted, right, *scores)), strict=True)
    return ClassTable(
        rows=tuple(ClassRow(*row) for row in rows),
        n_absent=int(((predicted + gold) == 0).sum()),
        n_without_gold=int((gold == 0).sum()),
        n_never_predicted=int((predicted == 0).sum()),
        absent=policy.absent,
        division=policy.division,
    )


def one_class(classes: Sequence[str], label: str, subject: str) -> int:
    """The place of a class that is named. Raises Misconfigured where there is none."""
    if label not in classes:
        raise Misconfigured(
            subject,
            found=f"no class {label!r}",
            expected=f"one of {_listed(classes)}",
            mend="Name one of them, as the data spell it.",
        )
    return list(classes).index(label)


def _refuse_repeated(subject: str, names: Sequence[str]) -> None:
    twice = [name for name, n in Counter(names).items() if n > 1]
    if twice:
        raise Misconfigured(
            subject, found=f"{_listed(twice)} more than once", expected="each label once", mend="Name each label once."
        )


def _refusal(data: Sequence[str], model: Sequence[str], found: str) -> Misconfigured:
    plain = {_plain(name): name for name in data}
    # A generic name that the data have too is explained by a line of its own.
    open_ = [name for name in model if name not in data or GENERIC.fullmatch(name)]
    lines = [f'"{name}" = "{plain.get(_plain(name), "?")}"' for name in open_]
    written = ", ".join(lines or ['"model label" = "data label"'])
    return Misconfigured(
        "labels",
        found=f"{found}; the data's labels are {_listed(data)}, the model's {_listed(model)}",
        expected="every label of the data among the model's, by name",
        mend=f"Write which is which, with the data's labels at the right: label_map = {{ {written} }}",
    )


def _plain(name: str) -> str:
    return normalize("NFC", normalize("NFC", name).casefold()).strip()


def _listed(names: Sequence[str]) -> str:
    return ", ".join(repr(name) for name in names)
