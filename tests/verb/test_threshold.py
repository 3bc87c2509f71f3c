"""Thresholds and abstention: fitted on the calibration role, typed, and in force from release.toml on."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

import harness
from harness.calibration.fit import sigmoid
from harness.errors import Leaked, Misconfigured, NotAdmitted
from harness.release.threshold import converted

from ..test_cli import call
from .test_task import Bench
from .test_task import bench as bench

N = 160
RNG = np.random.default_rng(31)
NAMES = ["bill", "card", "refund"]
HELD = (RNG.random((N, 3)) < 0.4).astype(int)
LOGITS = 2 * RNG.normal(size=(N, 3)) + 2 * HELD - 1
YES = HELD[:, 0]


def role(i: int) -> str:
    return "calibration" if i < 80 else "promotion"


def rows_of(matrix: np.ndarray, names: list[str]) -> dict[str, dict[str, float]]:
    return {f"c{i}": dict(zip(names, row.tolist(), strict=True)) for i, row in enumerate(matrix)}


@pytest.fixture
def sets(bench: Bench) -> Bench:
    cases = [
        {"id": f"c{i}", "text": f"t{i}", "labels": [NAMES[c] for c in np.flatnonzero(HELD[i])], "split": role(i)}
        for i in range(N)
    ]  # fmt: skip
    bench.suite("multilabel", cases, ["f1_micro", "subset_accuracy", "answered_accuracy"], margin=0.9)
    bench.release("raw", "logits", "logit", rows_of(LOGITS, NAMES))
    harness.run("s", candidate="raw", parent="none")
    return bench


@pytest.fixture
def two(bench: Bench) -> Bench:
    cases = [{"id": f"c{i}", "text": f"t{i}", "label": ["no", "yes"][YES[i]], "split": role(i)} for i in range(N)]
    names = ["accuracy", "recall[yes]", "answered_accuracy", "risk_at_coverage(0.5)"]
    bench.suite("classification", cases, names, margin=0.9)
    bench.release("raw", "logits", "logit", binary())
    harness.run("s", candidate="raw", parent="none")
    return bench


def binary() -> dict[str, dict[str, float]]:
    return {f"c{i}": {"no": 0.0, "yes": float(LOGITS[i, 0])} for i in range(N)}


def saved(bench: Bench, **asked: Any) -> dict[str, Any]:
    return dict(
        json.loads(
            json.dumps(
                harness.threshold("latest", save=bench.root / "releases/t.json", **asked).as_record()["threshold"]
            )
        )
    )


DECIDED = '[decision]\npath = "../t.json"\n'


class TestOfLabels:
    def test_costs_give_the_probability_from_which_it_pays(self, sets: Bench) -> None:
        """C_FP / (C_FP + C_FN) = .8, of a logit its log odds; one label has costs of its own."""
        record = saved(sets, rule="costs", false_positive=4, false_negative=1, label_costs={"card": (1, 1)})
        assert record["type"] == "logit"
        assert record["threshold"] == pytest.approx([np.log(4), 0.0, np.log(4)])
        assert record["fitted_on"]["role"] == "calibration" and record["fitted_on"]["n"] == 80
        sets.release("strict", "logits", "logit", rows_of(LOGITS, NAMES), DECIDED)
        found = harness.run("s", candidate="strict", parent="raw")
        given = sigmoid(LOGITS[80:]) >= np.array([0.8, 0.5, 0.8])
        assert sets.values(found)["f1_micro"] == pytest.approx(sk.f1_score(HELD[80:], given, average="micro"))
        assert not found.decision.exploratory
        assert any("threshold of strict (by costs) was fitted on 80 cases" in each for each in found.remarks)

    def test_capacity_and_f1_go_by_label(self, sets: Bench) -> None:
        record = saved(sets, rule="capacity", capacity=0.25)
        assert ((LOGITS[:80] >= np.array(record["threshold"])).mean(axis=0) == 0.25).all()
        record = saved(sets, rule="f1")
        for c in range(3):
            every = [sk.f1_score(HELD[:80, c], LOGITS[:80, c] >= t) for t in LOGITS[:80, c]]
            reached = sk.f1_score(HELD[:80, c], LOGITS[:80, c] >= record["threshold"][c])
            assert reached == pytest.approx(max(every))

    def test_of_two_classes_the_positive_one_has_one(self, two: Bench) -> None:
        record = saved(two, rule="costs", false_positive=1, false_negative=3)
        assert (record["labels"], record["threshold"]) == (["yes"], pytest.approx(np.log(1 / 3)))
        two.release("eager", "logits", "logit", binary(), DECIDED)
        found = harness.run("s", candidate="eager", parent="raw")
        given = sigmoid(LOGITS[80:, 0]) >= 0.25
        assert two.values(found)["recall[yes]"] == pytest.approx(sk.recall_score(YES[80:], given))

    def test_behind_a_calibrator_it_is_of_its_probabilities(self, sets: Bench) -> None:
        """And is refused without it, with what it would be of a logit."""
        harness.calibrate("latest", family="platt", save=sets.root / "releases/c.json")
        calibrator = '[calibrator]\npath = "../c.json"\n'
        sets.release("warm", "logits", "logit", rows_of(LOGITS, NAMES), calibrator)
        harness.run("s", candidate="warm", parent="none")
        record = saved(sets, rule="costs", false_positive=4, false_negative=1)
        assert (record["type"], record["threshold"]) == ("probability", 0.8)
        sets.release("both", "logits", "logit", rows_of(LOGITS, NAMES), calibrator + DECIDED)
        harness.run("s", candidate="both", parent="raw")
        sets.release("bare", "logits", "logit", rows_of(LOGITS, NAMES), DECIDED)
        with pytest.raises(
            NotAdmitted, match=r"threshold of probability, 0\.8, that meets a logit; the same .* is 1\.386"
        ):
            harness.run("s", candidate="bare", parent="raw")

    def test_moved_to_another_release_it_is_refused_by_name(self, sets: Bench) -> None:
        """With both keys (exit 4)."""
        record = saved(sets, rule="f1")
        sets.release("other", "logits", "logit", rows_of(LOGITS + 1, NAMES), DECIDED)
        with pytest.raises(NotAdmitted, match=record["fitted_under"]) as refusal:
            harness.run("s", candidate="other", parent="raw")
        assert refusal.value.exit_code == 4
        assert "release 'raw'" in str(refusal.value) and "release 'other'" in str(refusal.value)

    def test_what_a_rule_needs_is_asked_for(self, sets: Bench) -> None:
        for asked, word in (({"rule": "costs"}, "--false-positive"), ({"rule": "capacity"}, "--capacity")):
            with pytest.raises(Misconfigured, match=word):
                harness.threshold("latest", **asked)
        with pytest.raises(Misconfigured, match="bill"):
            harness.threshold("latest", rule="costs", false_positive=1, false_negative=1, label_costs={"bil": (1, 2)})


class TestAbstention:
    def test_so_much_is_answered_as_was_asked_for(self, two: Bench) -> None:
        record = saved(two, rule="coverage", coverage=0.6)
        sure = np.maximum(sigmoid(LOGITS[:, 0]), sigmoid(-LOGITS[:, 0]))
        assert (sure[:80] >= record["below"]).mean() == record["reached"]["coverage"] == 0.6
        two.release("shy", "logits", "logit", binary(), DECIDED)
        found = harness.run("s", candidate="shy", parent="raw")
        answered, right = sure[80:] >= record["below"], (LOGITS[80:, 0] > 0) == YES[80:]
        values = two.values(found)
        assert values["coverage"] == pytest.approx(answered.mean())
        assert values["answered_accuracy"] == pytest.approx(right[answered].mean())
        assert two.values(found, "parent")["coverage"] == 1
        flagged = harness.sql("SELECT count(*) FROM predictions WHERE list_contains(flags, 'abstained')").rows
        assert list(flagged) == [(int((sure < record["below"]).sum()),)]

    def test_no_more_risk_than_was_asked_for(self, two: Bench) -> None:
        record = saved(two, rule="risk", risk=0.1, ground="margin")
        margin = np.abs(2 * sigmoid(LOGITS[:80, 0]) - 1)
        wrong = (LOGITS[:80, 0] > 0) != YES[:80]
        assert wrong[margin >= record["below"] - 1e-12].mean() <= 0.1
        assert record["reached"]["risk"] == pytest.approx(wrong[margin >= record["below"] - 1e-12].mean())

    @pytest.mark.parametrize(
        ("more", "words"),
        [
            (
                {"rule": "coverage", "coverage": 0.6, "risk": 0.1},
                "--risk: an option that the rule coverage does not read",
            ),
            ({"rule": "f1", "ground": "margin"}, "--ground: an option that the rule f1 does not read"),
            ({"rule": "costs", "false_positive": 1}, "Give --false-negative"),
        ],
    )
    def test_an_option_that_is_not_read_is_refused_and_one_that_lacks_is_named(
        self, two: Bench, more: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(Misconfigured, match=words):
            harness.threshold("latest", **more)

    def test_accuracy_of_the_answered_never_stands_without_coverage(self, sets: Bench) -> None:
        """Though the suite did not name it."""
        found = harness.run("s", candidate="raw", parent="none")
        assert set(found.metrics["candidate"]["all"]) >= {"answered_accuracy", "coverage"}

    def test_by_hand_in_release_toml(self, two: Bench) -> None:
        two.release("shy", "logits", "logit", binary(), '[decision]\nabstain = { ground = "entropy", below = -0.5 }\n')
        found = harness.run("s", candidate="shy", parent="raw")
        p = sigmoid(LOGITS[80:, 0])
        entropy = -(p * np.log(p) + (1 - p) * np.log(1 - p))
        assert two.values(found)["coverage"] == pytest.approx((entropy <= 0.5).mean())
        assert found.decision.exploratory  # nobody can say that it was not chosen by what was read


class TestTyped:
    def test_a_converted_threshold_lets_the_same_pass(self) -> None:
        """cos ≥ .8 where d² ≤ .4, of unit vectors alone."""
        assert converted(0.8, "cosine", "squared-l2", unit=True) == pytest.approx(0.4)
        assert converted(0.4, "squared-l2", "cosine", unit=True) == pytest.approx(0.8)
        assert converted(0.8, "cosine", "squared-l2", unit=False) is None
        assert converted(0.8, "cosine", "logit", unit=True) is None
        vectors = RNG.normal(size=(200, 5))
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosine, distance = unit @ unit[0], ((unit - unit[0]) ** 2).sum(axis=1)
        assert ((cosine >= 0.3) == (distance <= converted(0.3, "cosine", "squared-l2", unit=True))).all()
        assert converted(0.25, "probability", "logit", unit=False) == pytest.approx(np.log(1 / 3))

    @pytest.mark.parametrize(
        ("own", "of", "words"),
        [
            ("logit", "cosine", "a threshold of cosine, 0.8, that meets a logit"),
            ("cosine", "squared-l2", "a cosine is 0.6"),
        ],
    )
    def test_one_of_another_score_is_refused(self, bench: Bench, own: str, of: str, words: str) -> None:
        rows = [{"id": f"c{i}", "text_a": f"a{i}", "text_b": f"b{i}", "value": i % 2} for i in range(40)]
        bench.suite("similarity", rows, ["pair_accuracy"], margin=0.9)
        more = f'[score]\nthreshold = 0.8\n[decision]\ntype = "{of}"\n'
        bench.release("odd", "value", own, {f"c{i}": 0.5 for i in range(40)}, more)
        with pytest.raises(NotAdmitted, match=words) as refusal:
            harness.run("s", candidate="odd", parent="none")
        assert refusal.value.exit_code == 4
        bench.release("even", "value", own, {f"c{i}": 0.5 for i in range(40)}, more.replace(of, own))
        assert {check.name: check.ok for check in harness.admit("even").checks}["threshold-type"]


class TestRoles:
    def test_one_that_saw_promotion_cases_is_refused(self, sets: Bench) -> None:
        saved(sets, rule="f1")
        path = sets.root / "suites/s/cases.jsonl"
        turned = {"calibration": "promotion", "promotion": "calibration"}
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        path.write_text("".join(json.dumps({**row, "split": turned[row["split"]]}) + "\n" for row in rows))
        harness.freeze("s")
        sets.release("tuned", "logits", "logit", rows_of(LOGITS, NAMES), DECIDED)
        with pytest.raises(Leaked, match="threshold of release 'tuned'"):
            harness.run("s", candidate="tuned", parent="none")

    def test_a_second_one_after_its_outcomes_were_read_is_exploratory(self, sets: Bench) -> None:
        saved(sets, rule="f1")
        sets.release("tuned", "logits", "logit", rows_of(LOGITS, NAMES), DECIDED)
        assert not harness.run("s", candidate="tuned", parent="raw").decision.exploratory
        saved(sets, rule="capacity", capacity=0.5)
        found = harness.run("s", candidate="tuned", parent="raw")
        assert found.decision.exploratory and found.exit_code == 3 and found.bundle is None


class TestCommandLine:
    def test_a_threshold_and_a_map_are_two(
        self, sets: Bench, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        costs = ("--threshold", "costs", "--false-positive", "4", "--false-negative", "1", "--label-costs")
        code, out, _ = call(capsys, monkeypatch, "calibrate", "latest", *costs, "card=1:1", "--json")
        assert code == 0, out
        assert json.loads(out)["threshold"]["by"]["label_costs"] == {"card": [1, 1]}
        for words, said in (
            ((), "neither"),
            (("--family", "platt", "--threshold", "f1"), "both"),
            ((*costs, "card=1"), "card=1"),
        ):
            code, _, err = call(capsys, monkeypatch, "calibrate", "latest", *words)
            assert code == 2 and said in err
