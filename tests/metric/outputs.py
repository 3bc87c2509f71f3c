"""Small outputs of every task, made from a seed, and what a metric says of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.compare.form import statistic
from harness.metric import answer, chance, choice, classification, entity, multilabel, regression, similarity
from harness.metric.calibration import sureness
from harness.metric.name import parse
from harness.metric.tagged import tagged
from harness.metric.task import TASK_METRICS
from harness.output.case import OutputStatus
from harness.output.contribution import Contribution

BARE_OF_TWO = {("classification", "ece_positive")}
"""A metric that is bare of two classes alone."""
LABELS = ("refund", "Order", "étranger", "other")


def ids(n: int) -> np.ndarray:
    return np.array([f"case-{i}" for i in range(n)], dtype=object)


def ok(n: int) -> np.ndarray:
    return np.full(n, OutputStatus.OK, dtype=object)


def names(task: str) -> list[str]:
    """Every metric of a task, those of one class for each class that the small outputs have, those of a part too."""
    found = {
        base: m
        for base, m in TASK_METRICS.items()
        if task in m.tasks and not (base == "brier_binary" and task == "classification")
    }
    return [
        name
        for base, m in found.items()
        for name in (
            *([str(parse(base))] if m.label is not True and (task, base) not in BARE_OF_TWO else []),
            *([f"{base}[{c}]" for c in LABELS] if m.label and task not in ("multiple-choice", "similarity") else []),
            *(f"{base}[{part}]" for part in m.parts),
            *([f"{base}(by='mass')"] if "by" in m.params and (task, base) not in BARE_OF_TWO else []),
            *([f"{base}(ground='margin')", f"{base}(ground='entropy')"] if base == "aurc" else []),
        )
    ]


@dataclass(frozen=True)
class Raw:
    """What a recorded run and the data say of n cases, before any of it is read."""

    task: str
    gold: Sequence
    scores: Sequence
    columns: tuple[str, ...] = LABELS

    def take(self, index: Sequence[int]) -> "Raw":
        return Raw(self.task, [self.gold[i] for i in index], [self.scores[i] for i in index], self.columns)

    def relabelled(self, order: Sequence[int]) -> "Raw":
        """The same outputs by a model that has its labels in another order."""
        scores = [np.asarray(row)[list(order)] for row in self.scores]
        return Raw(self.task, self.gold, scores, tuple(self.columns[i] for i in order))

    def contribution(self, name: str, labels: tuple[str, ...] = LABELS) -> Contribution:
        n = len(self.gold)
        match self.task:
            case "classification":
                read = classification.classified(
                    ids(n), self.gold, labels, np.array(self.scores), self.columns, ok(n), kind="logit"
                )
                return classification.contribution(parse(name), read)
            case "multilabel":
                read = multilabel.multilabelled(
                    ids(n), self.gold, labels, np.array(self.scores), self.columns, ok(n), kind="logit"
                )
                return multilabel.contribution(parse(name), read)
            case "regression":
                read = regression.regressed(ids(n), np.array(self.gold), np.array(self.scores), ok(n))
                return regression.contribution(parse(name), read)
            case "similarity":
                read = similarity.scored_pairs(ids(n), np.array(self.gold), np.array(self.scores), ok(n))
                if parse(name).base in chance.MEASURED:
                    return chance.contribution(parse(name), _stated(read))
                return similarity.contribution(parse(name), read, threshold=0.5)
            case "multiple-choice":
                read = choice.chosen(ids(n), np.array(self.gold), self.scores, ok(n), kind="logit")
                return choice.contribution(parse(name), read)
            case "entity":
                return entity.contribution(
                    parse(name), tagged(ids(n), self.gold, labels, self.scores, ok(n), scheme="IOB2")
                )
            case "answer":
                answers, score, null_score = zip(*self.scores, strict=True)
                there = [each is None or isinstance(each, str) for each in answers]
                read = answer.answered(
                    ids(n),
                    self.gold,
                    [each if has else None for each, has in zip(answers, there, strict=True)],
                    np.where(there, ok(n), OutputStatus.MISSING).astype(object),
                    score=np.array(score),
                    null_score=np.array(null_score),
                )
                return answer.contribution(parse(name), read, null_threshold=0.0)
            case other:
                raise ValueError(other)

    def value(self, name: str, labels: tuple[str, ...] = LABELS) -> float | None:
        """None where it is undefined: of a class that is never predicted, say."""
        brought = self.contribution(name, labels)
        return statistic(brought).value() if brought.scored.any() else None


def _stated(read: similarity.Scored) -> chance.Stated:
    """Scores from 0 to 1 as probabilities, from one half on the same."""
    both = np.stack([read.score, 1 - read.score], axis=1)
    loss = ((read.score >= 0.5) != (read.gold == 1)).astype(float)
    return chance.Stated(read.case_ids, read.score, read.gold, sureness(both), loss, read.status)


def raw(task: str, seed: int, n: int = 30) -> Raw:
    """Outputs with ties, and with every class among the gold and the predictions."""
    rng = np.random.default_rng(seed)
    match task:
        case "classification":
            gold = [LABELS[i] for i in np.append(np.arange(4), rng.integers(0, 4, n - 4))]
            scores = rng.integers(-4, 5, (n, 4)) / 3
            scores[4:8] += 9 * np.eye(4)  # a class that is never predicted has no precision
            return Raw(task, gold, scores)
        case "multilabel":
            held = rng.random((n, 4)) < 0.4
            held[0], held[1] = True, False
            gold = [{c for c, has in zip(LABELS, row, strict=True) if has} for row in held]
            return Raw(task, gold, rng.integers(-4, 5, (n, 4)) / 3)
        case "regression":
            return Raw(task, rng.integers(0, 11, n) / 7, rng.integers(0, 21, n) / 9)
        case "similarity":
            return Raw(task, np.append([0.0, 1.0], rng.integers(0, 2, n - 2)), rng.integers(0, 11, n) / 10)
        case "multiple-choice":
            sizes = rng.integers(2, 6, n)
            return Raw(task, [int(rng.integers(size)) for size in sizes], [rng.integers(0, 4, k) / 3 for k in sizes])
        case "entity":
            words = ["O", *(f"{prefix}-{c}" for prefix in "BI" for c in LABELS)]
            gold = [[f"B-{c}" for c in LABELS], *([words[i] for i in row] for row in rng.integers(0, 5, (n - 1, 6)))]
            tags = [[words[i] for i in row] for row in rng.integers(0, 9, (n, 6))]
            return Raw(task, gold, [row[: len(held)] for row, held in zip(tags, gold, strict=True)])
        case "answer":
            words = ["the", "Rhine", "river", "in", "Basel", "an"]
            gold = [[" ".join(rng.choice(words, 1 + k)) for k in range(size)] for size in rng.integers(0, 4, n)]
            given = [" ".join(rng.choice(words, size)) if size else None for size in rng.integers(0, 4, n)]
            gold[:4] = [["the Rhine", "Rhine in Basel"], [], ["river"], []]
            given[:4] = ["Rhine", "Basel", "river in Basel", None]
            return Raw(task, gold, list(zip(given, *(rng.integers(0, 5, (2, n)) / 3), strict=True)))
        case other:
            raise ValueError(other)
