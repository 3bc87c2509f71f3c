"""Tasks without a corpus, from recorded outputs to a decision, against referees that never saw this code."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sk

import harness
from harness.errors import Misconfigured
from harness.output.answer import Answer
from harness.output.decision import Outcome

LABELS = ["BILL", "CARD", "REFUND"]
N = 120


@dataclass
class Bench:
    """A project whose one suite has the cases that a test gives it."""

    root: Path

    def suite(
        self, task: str, cases: list[dict[str, Any]], metrics: list[str], *, margin: float = 0.1, more: str = ""
    ) -> None:
        folder = self.root / "suites" / "s"
        folder.mkdir(parents=True, exist_ok=True)
        _lines(folder / "cases.jsonl", cases)
        (folder / "suite.toml").write_text(
            f'schema = "harness.suite.v1"\nname = "s"\ntask = "{task}"\n'
            'source = { format = "jsonl", path = "cases.jsonl" }\n'
            + ('[cases]\nrole = "split"\n' if "split" in cases[0] else "")
            + f"[metrics]\nprimary = {json.dumps(metrics[0])}\nreport = {json.dumps(metrics)}\n"
            "[uncertainty]\ndraws = 1000\n"
            f'[[rules]]\nid = "headline"\nkind = "no-worse"\nmetric = {json.dumps(metrics[0])}\n'
            f"margin = {margin}\n{more}"
        )
        harness.freeze("s")

    def release(self, name: str, key: str, score_type: str, values: dict[str, Any], more: str = "") -> None:
        folder = self.root / "releases" / name
        folder.mkdir(parents=True, exist_ok=True)
        _lines(folder / "out.jsonl", [{"id": case, key: value} for case, value in values.items()])
        (folder / "release.toml").write_text(
            f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "recorded"\n[recorded]\n'
            f'format = "jsonl"\npath = "out.jsonl"\nscore_type = "{score_type}"\n{more}'
        )

    def values(self, found: Answer, side: str = "candidate") -> dict[str, float | None]:
        return {name: summary.value for name, summary in found.metrics[side]["all"].items()}


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain_page: None) -> Bench:
    (tmp_path / "suites").mkdir()
    (tmp_path / "releases").mkdir()
    monkeypatch.chdir(tmp_path)
    return Bench(tmp_path)


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def companions(side: str) -> dict[str, Any]:
    """What stands beside the metrics of a side, by name."""
    rows = harness.sql(f"SELECT name, content FROM companions WHERE side = '{side}'").rows
    return {str(name): json.loads(str(content)) for name, content in rows}


def predictions() -> list[tuple[object, ...]]:
    return list(harness.sql("SELECT case_id, prediction FROM predictions ORDER BY case_id").rows)


def classes(rng: np.random.Generator, quality: float) -> tuple[list[str], dict[str, dict[str, float]]]:
    """Gold labels, the rarest last, and logits that follow them by so much."""
    gold = [LABELS[i] for i in np.minimum(rng.geometric(0.6, N) - 1, 2)]
    logits = rng.normal(size=(N, 3))
    logits[np.arange(N), [LABELS.index(label) for label in gold]] += quality
    return gold, {f"c{i}": dict(zip(LABELS, row.tolist(), strict=True)) for i, row in enumerate(logits)}


def labelled(gold: list[str]) -> list[dict[str, Any]]:
    return [{"id": f"c{i}", "text": f"text {i}", "label": label, "long": i % 2 == 0} for i, label in enumerate(gold)]


class TestClassification:
    NAMES = ("f1_macro", "accuracy", "balanced_accuracy", "matthews_corrcoef", "log_loss", "roc_auc_ovr", "f1[REFUND]")

    def test_the_numbers_are_scikit_learns(self, bench: Bench) -> None:
        """From the file to the answer, through the store: every metric of both sides."""
        gold, good = classes(np.random.default_rng(1), 2.0)
        _, poor = classes(np.random.default_rng(1), 0.5)
        bench.suite("classification", labelled(gold), list(self.NAMES))
        bench.release("good", "logits", "logit", good)
        bench.release("poor", "logits", "logit", poor)
        found = harness.run("s", candidate="poor", parent="good")
        assert found.decision.outcome is Outcome.FAIL
        for side, logits in (("candidate", poor), ("parent", good)):
            scores = np.array([list(row.values()) for row in logits.values()])
            chances = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
            predicted = [LABELS[i] for i in scores.argmax(axis=1)]
            assert bench.values(found, side) == pytest.approx({
                "f1_macro": sk.f1_score(gold, predicted, average="macro"),
                "accuracy": sk.accuracy_score(gold, predicted),
                "balanced_accuracy": sk.balanced_accuracy_score(gold, predicted),
                "matthews_corrcoef": sk.matthews_corrcoef(gold, predicted),
                "log_loss": sk.log_loss(gold, chances, labels=LABELS),
                "roc_auc_ovr": sk.roc_auc_score(gold, chances, multi_class="ovr", labels=LABELS),
                "f1[REFUND]": sk.f1_score(gold, predicted, labels=["REFUND"], average=None)[0],
            }, abs=1e-9)  # fmt: skip

    def test_the_order_of_labels_and_cases_changes_nothing(self, bench: Bench) -> None:
        """A model that has its labels the other way round, and a file that is shuffled, decide alike."""
        gold, good = classes(np.random.default_rng(2), 2.0)
        _, poor = classes(np.random.default_rng(2), 1.0)
        bench.suite("classification", labelled(gold), list(self.NAMES))
        bench.release("good", "logits", "logit", good)
        bench.release("poor", "logits", "logit", poor)
        plain = harness.run("s", candidate="poor", parent="good")
        turned = {case: dict(reversed(row.items())) for case, row in reversed(poor.items())}
        bench.release("turned", "logits", "logit", turned)
        bench.suite("classification", labelled(gold)[::-1], list(self.NAMES))
        found = harness.run("s", candidate="turned", parent="good")
        assert found.metrics == plain.metrics
        assert found.deltas == plain.deltas
        assert [rule.outcome for rule in found.decision.rules] == [rule.outcome for rule in plain.decision.rules]

    def test_every_confusion_is_kept(self, bench: Bench) -> None:
        """Also of more classes than a matrix is shown of: as a list, the largest first."""
        names = [f"c{i:02d}" for i in range(60)]
        gold = [names[i % 60] for i in range(N)]
        wrong = {f"c{i}": {name: float(name == names[(i + 1) % 60]) for name in names} for i in range(N)}
        bench.suite("classification", labelled(gold), ["accuracy"])
        bench.release("a", "logits", "logit", wrong)
        harness.run("s", candidate="a", parent="none")
        rows = companions("candidate")["confusion"]["rows"]
        pairs = Counter((names[i % 60], names[(i + 1) % 60]) for i in range(N))
        assert {(row[0], row[1]): row[2] for row in rows} == dict(pairs)
        assert [row[2] for row in rows] == sorted((row[2] for row in rows), reverse=True)

    def test_a_loss_is_worse_when_it_is_higher(self, bench: Bench) -> None:
        """Rule and guard of a loss fail where it rises, and pass where it falls."""
        gold, good = classes(np.random.default_rng(3), 3.0)
        _, poor = classes(np.random.default_rng(3), 1.0)
        bench.suite(
            "classification", labelled(gold), ["log_loss"],
            more='[guards]\nmetrics = ["log_loss"]\nslices = ["all"]\n',
        )  # fmt: skip
        bench.release("good", "logits", "logit", good)
        bench.release("poor", "logits", "logit", poor)
        worse = {rule.id: rule for rule in harness.run("s", candidate="poor", parent="good").decision.rules}
        assert worse["headline"].outcome is worse["guard:all:log_loss"].outcome is Outcome.FAIL
        better = {rule.id: rule for rule in harness.run("s", candidate="good", parent="poor").decision.rules}
        assert better["headline"].outcome is better["guard:all:log_loss"].outcome is Outcome.PASS

    def test_labels_are_compared_by_name(self, bench: Bench) -> None:
        """A model that lacks a label of the data is refused with both lists; a map says what is called otherwise."""
        gold, good = classes(np.random.default_rng(4), 2.0)
        bench.suite("classification", labelled(gold), ["accuracy"])
        bench.release("good", "logits", "logit", good)
        other = {
            case: {"bill": row["BILL"], "LABEL_1": row["CARD"], "REFUND": row["REFUND"]} for case, row in good.items()
        }
        bench.release("other", "logits", "logit", other)
        with pytest.raises(Misconfigured) as refusal:
            harness.run("s", candidate="other", parent="good")
        assert "'LABEL_1'" in refusal.value.found and "label_map" in refusal.value.mend
        bench.release("other", "logits", "logit", other, 'label_map = { bill = "BILL", LABEL_1 = "CARD" }\n')
        found = harness.run("s", candidate="other", parent="good")
        assert bench.values(found) == bench.values(found, "parent")

    def test_generic_names_of_both_are_explained_by_a_map_to_themselves(self, bench: Bench) -> None:
        """The refusal writes it, and what is measured then are those labels."""
        gold, good = classes(np.random.default_rng(4), 2.0)
        own = {"BILL": "LABEL_0", "CARD": "LABEL_1", "REFUND": "LABEL_2"}
        bench.suite("classification", labelled([own[label] for label in gold]), ["accuracy"])
        renamed = {case: {own[name]: value for name, value in row.items()} for case, row in good.items()}
        bench.release("generic", "logits", "logit", renamed)
        with pytest.raises(Misconfigured, match="say nothing") as refusal:
            harness.run("s", candidate="generic", parent="none")
        bench.release("generic", "logits", "logit", renamed, refusal.value.mend.partition("right: ")[2] + "\n")
        assert bench.values(harness.run("s", candidate="generic", parent="none"))["accuracy"] > 0.5

    def test_a_file_without_outputs_is_refused_by_its_name(self, bench: Bench) -> None:
        gold, _ = classes(np.random.default_rng(4), 2.0)
        bench.suite("classification", labelled(gold), ["accuracy"])
        bench.release("none", "logits", "logit", {})
        with pytest.raises(Misconfigured, match=r"out\.jsonl: no output"):
            harness.run("s", candidate="none", parent="none")

    def test_a_label_that_only_one_side_has(self, bench: Bench) -> None:
        """It is a class without gold: it takes predictions away, and both sides can still be exchanged."""
        gold, good = classes(np.random.default_rng(5), 2.0)
        bench.suite(
            "classification",
            labelled(gold),
            ["f1_macro", "accuracy"],
            more='[guards]\nmetrics = ["f1_macro"]\nslices = ["all"]\n',
        )
        bench.release("good", "logits", "logit", good)
        wide = {case: {**row, "NEW": 9.0 if i % 3 == 0 else -9.0} for i, (case, row) in enumerate(good.items())}
        bench.release("wide", "logits", "logit", wide)
        found = harness.run("s", candidate="wide", parent="good")
        predicted = [max(row, key=row.__getitem__) for row in wide.values()]
        assert bench.values(found)["f1_macro"] == pytest.approx(
            sk.f1_score(gold, predicted, average="macro", labels=[*LABELS, "NEW"], zero_division=0), abs=1e-12
        )
        assert {rule.id: rule.outcome for rule in found.decision.rules}["guard:all:f1_macro"] is Outcome.FAIL

    def test_probabilities_that_are_none_fail_their_case(self, bench: Bench) -> None:
        gold, _ = classes(np.random.default_rng(6), 2.0)
        bench.suite("classification", labelled(gold), ["accuracy"])
        even = {f"c{i}": {"BILL": 0.5, "CARD": 0.25, "REFUND": 0.25} for i in range(N)}
        bench.release("even", "probabilities", "probability", even)
        bench.release(
            "broken", "probabilities", "probability", {**even, "c7": {"BILL": 0.9, "CARD": 0.9, "REFUND": 0.0}}
        )
        found = harness.run("s", candidate="broken", parent="even")
        assert {rule.id: rule.value for rule in found.decision.rules}["always:failed"] == 1
        assert found.decision.outcome is Outcome.FAIL

    def test_a_number_that_no_float_holds_fails_its_case(self, bench: Bench) -> None:
        """Of either sign: it is read as infinite."""
        gold, good = classes(np.random.default_rng(9), 2.0)
        bench.suite("classification", labelled(gold), ["accuracy"])
        huge = {"c3": {**good["c3"], "CARD": 10**400}, "c4": {**good["c4"], "CARD": -(10**400)}}
        bench.release("huge", "logits", "logit", {**good, **huge})
        found = harness.run("s", candidate="huge", parent="none")
        assert (found.counts.failed, found.decision.outcome) == (2, Outcome.FAIL)

    def test_what_is_missing_is_undecided(self, bench: Bench) -> None:
        gold, good = classes(np.random.default_rng(7), 2.0)
        bench.suite("classification", labelled(gold), ["f1_macro"])
        bench.release("good", "logits", "logit", good)
        bench.release("less", "logits", "logit", {case: row for case, row in good.items() if case != "c3"})
        found = harness.run("s", candidate="less", parent="good")
        assert (found.counts.missing, found.decision.outcome) == (1, Outcome.UNDECIDED)
        assert found.metrics["candidate"]["all"]["f1_macro"].n_scored == N - 1

    def test_the_same_bytes_again(self, bench: Bench) -> None:
        """A stored run decided again, and one from the beginning, give the same answer."""
        gold, good = classes(np.random.default_rng(8), 2.0)
        _, poor = classes(np.random.default_rng(8), 1.8)
        bench.suite("classification", labelled(gold), list(self.NAMES))
        bench.release("good", "logits", "logit", good)
        bench.release("poor", "logits", "logit", poor)
        first = harness.run("s", candidate="poor", parent="good").as_record()
        assert harness.decide("latest").as_record() == first


class TestMultilabel:
    def test_the_numbers_are_scikit_learns(self, bench: Bench) -> None:
        """Each label by its own threshold, an empty set beside an empty set is right."""
        rng = np.random.default_rng(11)
        gold = rng.random((N, 3)) < [0.6, 0.3, 0.1]
        logits = rng.normal(size=(N, 3)) + 2 * (gold - 0.5)
        cases = [
            {"id": f"c{i}", "text": "t", "labels": [name for name, held in zip(LABELS, row, strict=True) if held]}
            for i, row in enumerate(gold)
        ]
        names = [
            "f1_macro",
            "f1_micro",
            "f1_samples",
            "subset_accuracy",
            "hamming_loss",
            "label_ranking_average_precision",
            "average_precision_macro",
        ]
        bench.suite("multilabel", cases, names)
        outputs = {f"c{i}": dict(zip(LABELS, row.tolist(), strict=True)) for i, row in enumerate(logits)}
        bench.release("a", "logits", "logit", outputs, "[score]\nthreshold = [-1.0, 0.0, 0.5]\n")
        bench.release("b", "logits", "logit", outputs, "[score]\nthreshold = 2.0\n")
        found = harness.run("s", candidate="a", parent="b")
        predicted = logits >= [-1.0, 0.0, 0.5]
        assert bench.values(found) == pytest.approx({
            "f1_macro": sk.f1_score(gold, predicted, average="macro"),
            "f1_micro": sk.f1_score(gold, predicted, average="micro"),
            "f1_samples": sk.f1_score(gold, predicted, average="samples", zero_division=1),
            "subset_accuracy": sk.accuracy_score(gold, predicted),
            "hamming_loss": sk.hamming_loss(gold, predicted),
            "label_ranking_average_precision": sk.label_ranking_average_precision_score(gold, logits),
            "average_precision_macro": sk.average_precision_score(gold, logits, average="macro"),
        }, abs=1e-9)  # fmt: skip

    def test_a_set_that_cannot_be_read_is_not_shown_as_an_empty_one(self, bench: Bench) -> None:
        """Nor one of a case that has no gold."""
        cases = [{"id": f"c{i}", "text": "t", "labels": None if i == 1 else ["A"]} for i in range(4)]
        bench.suite("multilabel", cases, ["f1_micro"])
        sets = {f"c{i}": {"A": [0.1, 0.9, 1.7, 0.9][i], "B": 0.1} for i in range(4)}
        bench.release("a", "probabilities", "probability", sets)
        harness.run("s", candidate="a", parent="none")
        assert predictions() == [("c0", ""), ("c1", None), ("c2", None), ("c3", "A")]


class TestNumbers:
    def test_regression_against_scikit_learn_and_scipy(self, bench: Bench) -> None:
        """r2 is of all cases; a target that nobody knows is outside every number, and counted."""
        rng = np.random.default_rng(21)
        target = rng.normal(50, 10, N)
        output = target + rng.normal(0, 4, N)
        cases = [{"id": f"c{i}", "text": "t", "value": None if i == 5 else target[i]} for i in range(N)]
        bench.suite("regression", cases, ["mae", "mse", "rmse", "r2", "pearson", "spearman", "kendall"], margin=1.0)
        bench.release("a", "value", "value", {f"c{i}": output[i] for i in range(N)})
        bench.release("b", "value", "value", {f"c{i}": output[i] + rng.normal(0, 4) for i in range(N)})
        found = harness.run("s", candidate="b", parent="a")
        y, x = np.delete(target, 5), np.delete(output, 5)
        assert bench.values(found, "parent") == pytest.approx({
            "mae": sk.mean_absolute_error(y, x), "mse": sk.mean_squared_error(y, x),
            "rmse": sk.root_mean_squared_error(y, x), "r2": sk.r2_score(y, x), "pearson": stats.pearsonr(x, y)[0],
            "spearman": stats.spearmanr(x, y)[0], "kendall": stats.kendalltau(x, y)[0],
        }, abs=1e-9)  # fmt: skip
        assert (found.counts.not_applicable, found.metrics["parent"]["all"]["r2"].n_total) == (1, N - 1)
        assert {rule.id: rule.outcome for rule in found.decision.rules}["headline"] is not Outcome.PASS

    def test_an_end_that_nothing_bounds_is_null(self, bench: Bench) -> None:
        """Every case is wrong by the same amount, so nothing says how wrong others may be."""
        floor = '[[rules]]\nid = "floor"\nkind = "at-most"\nmetric = "mae"\nvalue = 0.7\n'
        bench.suite("regression", [{"id": f"c{i}", "text": "t", "value": i} for i in range(N)], ["mae"], more=floor)
        bench.release("a", "value", "value", {f"c{i}": i + 0.5 for i in range(N)})
        bench.release("b", "value", "value", {f"c{i}": i + 0.5 for i in range(N)}, 'revision = "2"\n')
        found = harness.run("s", candidate="a", parent="b")
        record = json.loads(json.dumps(found.as_record(), allow_nan=False))
        rule = next(each for each in record["rules"] if each["id"] == "floor")
        assert (rule["outcome"], rule["high"]) == ("UNDECIDED", None) and rule["low"] > 0.4
        assert record["metrics"]["candidate"]["all"]["mae"]["high"] is None

    @pytest.mark.parametrize("task", ["regression", "similarity"])
    def test_numbers_whose_squares_no_float_holds_fail_their_case(self, bench: Bench, task: str) -> None:
        """The others are measured without them."""
        cases = [{"id": f"c{i}", "text_a": "a", "text_b": "b", "value": float(i)} for i in range(N)]
        names = ["mse", "rmse", "r2", "pearson"] if task == "regression" else ["pearson"]
        bench.suite(task, cases, names)
        bench.release("a", "value", "value", {f"c{i}": 1e200 if i == 7 else i + 1.0 for i in range(N)})
        found = harness.run("s", candidate="a", parent="none")
        assert found.counts.failed == 1
        assert bench.values(found)["pearson"] == pytest.approx(1.0)
        assert task == "similarity" or bench.values(found)["mse"] == 1.0

    def test_a_threshold_of_pairs_is_fitted_on_calibration_alone(self, bench: Bench) -> None:
        """Promotion cases that would fit another threshold do not move it."""
        rng = np.random.default_rng(22)
        gold = rng.integers(0, 2, N)
        score = gold * 0.3 + rng.random(N) * 0.5
        cases = [
            {
                "id": f"c{i}",
                "text_a": f"a {i}",
                "text_b": "b",
                "value": int(gold[i]),
                "split": "calibration" if i < 40 else "promotion",
            }
            for i in range(N)
        ]
        bench.suite(
            "similarity", cases, ["pair_f1", "pair_accuracy", "pair_average_precision", "spearman"], margin=0.01
        )
        bench.release("a", "value", "cosine", {f"c{i}": score[i] for i in range(N)})
        bench.release("b", "value", "cosine", {f"c{i}": score[i] + (0.4 if i >= 40 else 0.0) for i in range(N)})
        found = harness.run("s", candidate="b", parent="a")
        limits = [(sk.f1_score(gold[:40], score[:40] >= each), each) for each in np.unique(score[:40])]
        limit = max(limits)[1]
        for side, moved in (("parent", 0.0), ("candidate", 0.4)):
            called = score[40:] + moved >= limit
            values = bench.values(found, side)
            assert values["pair_f1"] == pytest.approx(sk.f1_score(gold[40:], called), abs=0.03)
            assert values["pair_average_precision"] == pytest.approx(sk.average_precision_score(gold[40:], score[40:]))
        assert found.deltas["all"]["pair_f1"].delta < -0.05

    def test_pairs_without_a_calibration_case_have_no_threshold(self, bench: Bench) -> None:
        cases = [{"id": f"c{i}", "text_a": "a", "text_b": "b", "value": i % 2} for i in range(N)]
        bench.suite("similarity", cases, ["pair_f1"])
        bench.release("a", "value", "cosine", {f"c{i}": i / N for i in range(N)})
        bench.release("b", "value", "cosine", {f"c{i}": -i / N for i in range(N)})
        with pytest.raises(Misconfigured, match="calibration role"):
            harness.run("s", candidate="b", parent="a")


class TestChoices:
    def test_accuracy_and_loss_over_the_choices(self, bench: Bench) -> None:
        rng = np.random.default_rng(31)
        gold = rng.integers(0, 4, N)
        logits = rng.normal(size=(N, 4)) + 1.5 * np.eye(4)[gold]
        cases = [{"id": f"c{i}", "question": "q", "choices": list("abcd"), "label": int(gold[i])} for i in range(N)]
        bench.suite("multiple-choice", cases, ["choice_accuracy", "choice_log_loss"])
        bench.release("a", "logits", "logit", {f"c{i}": row.tolist() for i, row in enumerate(logits)})
        bench.release(
            "b",
            "logits",
            "logit",
            {f"c{i}": dict(zip("abcd", row.tolist(), strict=True)) for i, row in enumerate(-logits)},
        )
        found = harness.run("s", candidate="b", parent="a")
        assert bench.values(found, "parent") == pytest.approx({
            "choice_accuracy": sk.accuracy_score(gold, logits.argmax(axis=1)),
            "choice_log_loss": sk.log_loss(gold, np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)),
        })  # fmt: skip
        assert found.decision.outcome is Outcome.FAIL


class TestIdentical:
    @pytest.mark.parametrize("metric", ["f1_macro", "accuracy", "brier_sum"])
    def test_the_same_outputs_recorded_anew_are_no_worse(self, bench: Bench, metric: str) -> None:
        """Nothing changed in 120 groups bounds what may change closely enough for a margin of a tenth."""
        gold, good = classes(np.random.default_rng(41), 2.0)
        bench.suite("classification", labelled(gold), [metric], margin=0.1)
        bench.release("old", "logits", "logit", good)
        bench.release("new", "logits", "logit", good, 'revision = "2"\n')
        rules = {rule.id: rule for rule in harness.run("s", candidate="new", parent="old").decision.rules}
        assert rules["headline"].delta == 0
        assert rules["headline"].outcome is Outcome.PASS


class TestReading:
    @pytest.mark.parametrize(
        ("row", "told"),
        [
            ({"id": "c0", "logits": {"BILL": 1}}, "lack 'CARD', 'REFUND'"),
            ({"id": "c0", "logits": [1, 2, 3]}, "do not say of which label"),
            ({"id": "c0", "logits": {"BILL": "1", "CARD": 1, "REFUND": 1}}, "a number"),
            ({"id": "c0", "value": 1}, "`logits` or `probabilities`"),
            ({"id": 0, "logits": {"BILL": 1, "CARD": 1, "REFUND": 1}}, "`id` is a number"),
            ({"id": "c1", "logits": {"BILL": 1, "CARD": 1, "REFUND": 1}}, "appears twice"),
            ({"id": "c0", "probabilities": {"BILL": 1, "CARD": 0, "REFUND": 0}}, "score_type"),
        ],
    )  # fmt: skip
    def test_a_line_that_says_nothing_of_its_case(self, bench: Bench, row: dict[str, Any], told: str) -> None:
        """Refused with its line, and nothing is kept."""
        gold, good = classes(np.random.default_rng(51), 2.0)
        bench.suite("classification", labelled(gold), ["accuracy"])
        bench.release("good", "logits", "logit", good)
        bench.release("bad", "logits", "logit", {case: each for case, each in good.items() if case != "c0"})
        path = bench.root / "releases/bad/out.jsonl"
        path.write_text(path.read_text() + json.dumps(row) + "\n")
        with pytest.raises(Misconfigured) as refusal:
            harness.run("s", candidate="bad", parent="good")
        assert f"out.jsonl line {N}" in refusal.value.subject
        assert told in f"{refusal.value.found}; {refusal.value.expected}"


class TestAnswers:
    def test_a_null_threshold_is_fitted_on_calibration_alone(self, bench: Bench) -> None:
        """Exact match as given, and under a threshold that only calibration cases chose."""
        rng = np.random.default_rng(61)
        answerable = rng.random(N) < 0.7
        difference = np.where(answerable, -1.0, 1.0) + rng.normal(0, 0.8, N)
        cases = [
            {
                "id": f"c{i}", "question": f"q {i}", "context": f"It is here, {i}.",
                "answers": ["The here!"] if answerable[i] else [],
                "split": "calibration" if i < 40 else "promotion",
            }
            for i in range(N)
        ]  # fmt: skip
        names = ["best_exact_match", "exact_match", "answer_f1", "exact_match[answerable]", "exact_match[unanswerable]"]
        bench.suite("answer", cases, names)
        for name, text in (("a", "here"), ("b", "not here")):
            folder = bench.root / "releases" / name
            bench.release(name, "answer", "value", {})
            rows = [{"id": f"c{i}", "answer": text, "score": 0.0, "null_score": difference[i]} for i in range(N)]
            _lines(folder / "out.jsonl", rows)
        found = harness.run("s", candidate="b", parent="a")
        reached = {
            limit: np.mean(np.where(difference[:40] > limit, ~answerable[:40], answerable[:40]))
            for limit in difference[:40]
        }
        best = min(limit for limit, each in reached.items() if each == max(reached.values()))
        behind = min(each for each in difference[:40] if each > best)
        kept = difference[40:] <= (best + behind) / 2
        values = bench.values(found, "parent")
        assert values["best_exact_match"] == pytest.approx(np.mean(np.where(kept, answerable[40:], ~answerable[40:])))
        assert values["exact_match"] == pytest.approx(answerable[40:].mean())
        assert (values["exact_match[answerable]"], values["exact_match[unanswerable]"]) == (1.0, 0.0)
        assert bench.values(found)["answer_f1"] == pytest.approx(2 / 3 * answerable[40:].mean())
        assert found.decision.outcome is Outcome.FAIL

    def test_a_place_that_nothing_can_name_is_refused(self, bench: Bench) -> None:
        bench.suite("answer", [{"id": "c0", "question": "q", "context": "here", "answers": ["here"]}], ["exact_match"])
        bench.release("a", "answer", "value", {})
        _lines(bench.root / "releases/a/out.jsonl", [{"id": "c0", "answer": "here", "start": 10**30, "end": 10**30}])
        with pytest.raises(Misconfigured, match=r"out\.jsonl line 1"):
            harness.run("s", candidate="a", parent="none")

    def test_squads_own_files_give_squads_own_figures(self, bench: Bench, shared_data: Callable[[str], Path]) -> None:
        """1,190 questions in SQuAD's form, answers in the form that its script reads, from the files to the answer."""
        folder = shared_data("xquad_en")
        expected = json.loads((folder / "qa_xquad_en_expected.json").read_text())
        suite = bench.root / "suites" / "xquad"
        suite.mkdir()
        shutil.copy(folder / "xquad.en.json", suite / "data.json")
        (suite / "suite.toml").write_text(
            'schema = "harness.suite.v1"\nname = "xquad"\ntask = "answer"\n'
            'source = { format = "squad", path = "data.json" }\n[metrics]\nprimary = "exact_match"\n'
            'report = ["exact_match", "answer_f1"]\n[uncertainty]\ndraws = 1000\n'
            '[[rules]]\nid = "floor"\nkind = "at-least"\nmetric = "exact_match"\nvalue = 0.5\n'
        )
        harness.freeze("xquad")
        release = bench.root / "releases" / "toy"
        release.mkdir()
        shutil.copy(folder / "qa_xquad_en_predictions.json", release / "out.json")
        (release / "release.toml").write_text(
            'schema = "harness.release.v1"\nname = "toy"\ninteraction = "recorded"\n[recorded]\n'
            'format = "squad"\npath = "out.json"\nscore_type = "value"\n'
        )
        values = bench.values(harness.run("xquad", candidate="toy", parent="none"))
        assert 100 * values["exact_match"] == pytest.approx(expected["exact"], abs=1e-9)
        assert 100 * values["answer_f1"] == pytest.approx(expected["f1"], abs=1e-9)


class TestEntities:
    TOKENS = ("Ada", "Larkin", "rides", "to", "Linden", "Heights")
    GOLD = ("B-NAME", "I-NAME", "O", "O", "B-PLACE", "I-PLACE")

    def cases(self) -> list[dict[str, Any]]:
        return [{"id": f"c{i}", "tokens": self.TOKENS, "tags": self.GOLD if i % 3 else ["O"] * 6} for i in range(N)]

    def test_an_entity_is_right_only_as_a_whole(self, bench: Bench) -> None:
        """A boundary that is one token short loses the entity, and half of its partial score."""
        names = [
            "entity_f1",
            "entity_partial_f1",
            "entity_type_f1",
            "entity_f1[NAME]",
            "token_accuracy",
            "sequence_accuracy",
        ]
        bench.suite("entity", self.cases(), names)
        good = {row["id"]: list(row["tags"]) for row in self.cases()}
        short = {case: [*tags[:5], "O"] if tags[4] != "O" else tags for case, tags in good.items()}
        bench.release("good", "tags", "tags", good)
        bench.release("short", "tags", "tags", short)
        found = harness.run("s", candidate="short", parent="good")
        assert set(bench.values(found, "parent").values()) == {1.0}
        assert bench.values(found) == pytest.approx({
            "entity_f1": 0.5, "entity_partial_f1": 0.75, "entity_type_f1": 1.0, "entity_f1[NAME]": 1.0,
            "token_accuracy": 8 / 9, "sequence_accuracy": 1 / 3,
        })  # fmt: skip
        assert found.decision.outcome is Outcome.FAIL

    def test_illegal_tags_are_counted_where_a_rule_names_them(self, bench: Bench) -> None:
        """An I- that nothing opened is no entity; the invariant over them is exact."""
        rule = '[[rules]]\nid = "legal"\nkind = "invariant"\nmetric = "illegal"\nvalue = 0\n'
        bench.suite("entity", self.cases(), ["entity_f1", "illegal_sequences"], margin=0.5, more=rule)
        good = {row["id"]: list(row["tags"]) for row in self.cases()}
        bench.release("good", "tags", "tags", good)
        bench.release("bad", "tags", "tags", {**good, "c1": ["I-NAME", *self.GOLD[1:]]})
        rules = {each.id: each for each in harness.run("s", candidate="bad", parent="good").decision.rules}
        assert (rules["legal"].outcome, rules["legal"].value) == (Outcome.FAIL, 1)
        told = harness.explain("latest", rule="legal").splitlines()
        assert [line.split()[0] for line in told[told.index("  the first of them:") + 1 :]] == ["c1"]

    def test_every_illegal_tag_and_every_lost_entity_is_located(self, bench: Bench) -> None:
        """In the store there are all of them, whatever a page shows."""
        bench.suite("entity", self.cases(), ["entity_f1"])
        good = {row["id"]: list(row["tags"]) for row in self.cases()}
        bench.release("good", "tags", "tags", good)
        spoilt = {case: ["I-NAME", "O", "O", "O"] if tags[4] != "O" else tags for case, tags in good.items()}
        bench.release("bad", "tags", "tags", spoilt)
        harness.run("s", candidate="bad", parent="good")
        bad = sum(tags[4] != "O" for tags in good.values())
        assert bad > 20
        found = companions("candidate")
        assert [len(found[name]["rows"]) for name in ("illegal", "cut-off")] == [bad, bad]

    def test_a_tag_that_is_lacking_is_o_and_flagged(self, bench: Bench) -> None:
        """Where gold is O it is right as a token, and yet no tag: the case is told with the place."""
        bench.suite("entity", self.cases(), ["entity_f1", "token_accuracy", "illegal_sequences"])
        good = {row["id"]: list(row["tags"]) for row in self.cases()}
        bench.release("good", "tags", "tags", good)
        bench.release("gaps", "tags", "tags", {**good, "c1": ["B-NAME", None, None, "O", "B-PLACE", "I-PLACE"]})
        found = harness.run("s", candidate="gaps", parent="good")
        right = 2 * 80 - 1
        assert bench.values(found) == pytest.approx({
            "entity_f1": right / (2 * 80), "token_accuracy": 1 - 1 / (6 * N), "illegal_sequences": 2 / N,
            "sequence_accuracy": 1 - 1 / N,
        })  # fmt: skip
        assert companions("candidate")["illegal"]["rows"] == [
            ["c1", "output", 1, "", "B-NAME", "lacking"], ["c1", "output", 2, "", "", "lacking"]
        ]  # fmt: skip

    def test_fewer_tags_than_tokens_are_o_and_more_have_failed(self, bench: Bench) -> None:
        bench.suite("entity", self.cases(), ["entity_f1"])
        good = {row["id"]: list(row["tags"]) for row in self.cases()}
        bench.release("good", "tags", "tags", good)
        bench.release("cut", "tags", "tags", {**good, "c1": good["c1"][:4], "c2": [*good["c2"], "O"]})
        found = harness.run("s", candidate="cut", parent="good")
        right = 2 * 80 - 1 - 2
        assert bench.values(found)["entity_f1"] == pytest.approx(2 * right / (right + 2 * 79))
        assert (found.counts.failed, found.decision.outcome) == (1, Outcome.FAIL)

    def test_a_case_without_gold_shows_no_entities(self, bench: Bench) -> None:
        """As if none had been found there."""
        gold = [{**row, "tags": None if row["id"] == "c1" else row["tags"]} for row in self.cases()[:3]]
        bench.suite("entity", gold, ["entity_f1"])
        bench.release("a", "tags", "tags", {row["id"]: list(self.GOLD) for row in gold})
        harness.run("s", candidate="a", parent="none")
        found = "NAME: Ada Larkin; PLACE: Linden Heights"
        assert predictions() == [("c0", found), ("c1", None), ("c2", found)]

    def test_one_systems_tags_give_conllevals_figures(self, bench: Bench, shared_data: Callable[[str], Path]) -> None:
        """1,287 sentences in columns, read strictly and as conlleval does; both stand beside the decided one."""
        folder = shared_data("wnut17")
        for reading, f1 in (("strict", 0.3730), ("conlleval", 0.3706)):
            suite = bench.root / "suites" / reading
            suite.mkdir()
            shutil.copy(folder / "mic-cis.gold_pred.tsv", suite / "data.tsv")
            (suite / "suite.toml").write_text(
                f'schema = "harness.suite.v1"\nname = "{reading}"\ntask = "entity"\n'
                'source = { format = "conll", path = "data.tsv", columns = { tokens = 1, tags = 2 }, '
                'separator = "tab" }\n'
                f'[metrics]\nprimary = "entity_f1"\npolicy = {{ reading = "{reading}" }}\n[uncertainty]\ndraws = 1000\n'
                '[[rules]]\nid = "floor"\nkind = "at-least"\nmetric = "entity_f1"\nvalue = 0.1\n'
            )
            harness.freeze(reading)
            release = bench.root / "releases" / f"mic-{reading}"
            release.mkdir()
            shutil.copy(folder / "mic-cis.gold_pred.tsv", release / "out.tsv")
            (release / "release.toml").write_text(
                f'schema = "harness.release.v1"\nname = "mic-{reading}"\ninteraction = "recorded"\n[recorded]\n'
                'format = "conll"\npath = "out.tsv"\ncolumn = 3\nscore_type = "tags"\n'
            )
            found = harness.run(reading, candidate=f"mic-{reading}", parent="none")
            assert bench.values(found)["entity_f1"] == pytest.approx(f1, abs=5e-5)
