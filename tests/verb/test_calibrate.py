"""From a run's raw scores to a calibrator, and from it to another decision over the same outputs."""

import json
from typing import Any

import numpy as np
import pytest
from sklearn import metrics as sk

import harness
from harness.calibration import fit as fitting
from harness.errors import Leaked, Misconfigured, NotAdmitted, NotFound, Tampered
from harness.file.sealed import own_digest

from .test_task import LABELS, Bench, N
from .test_task import bench as bench

RNG = np.random.default_rng(5)
GOLD = RNG.integers(0, 3, N)
# Right as often as not, and far too sure of it.
LOGITS = 8 * (RNG.normal(size=(N, 3)) + np.eye(3)[GOLD])
OUTPUTS = {f"c{i}": dict(zip(LABELS, row.tolist(), strict=True)) for i, row in enumerate(LOGITS)}
SETS = (RNG.random((N, 3)) < 0.4).astype(int)


def cases(split: Any = lambda i: "calibration" if i < 60 else "promotion") -> list[dict[str, Any]]:
    return [{"id": f"c{i}", "text": f"text {i}", "label": LABELS[GOLD[i]], "split": split(i)} for i in range(N)]


def resealed(said: dict[str, Any]) -> str:
    """A record with the digest of what it says now, as if it had been fitted so."""
    return json.dumps({**said, "own_digest": own_digest(said)})


def calibrated(bench: Bench, **changes: Any) -> None:
    harness.calibrate("latest", family="temperature", save=bench.root / "calibrator.json")
    said = json.loads((bench.root / "calibrator.json").read_text())
    bench.release("warm", "logits", "logit", OUTPUTS, '[calibrator]\npath = "calibrator.json"\n')
    (bench.root / "releases/warm/calibrator.json").write_text(resealed({**said, **changes}))


@pytest.fixture
def ran(bench: Bench) -> Bench:
    bench.suite("classification", cases(), ["log_loss", "accuracy"], margin=0.5)
    bench.release("raw", "logits", "logit", OUTPUTS)
    harness.run("s", candidate="raw", parent="none")
    return bench


class TestCalibrate:
    def test_it_is_fitted_on_calibration_and_judged_on_promotion(self, ran: Bench) -> None:
        """One temperature, by hand on the first 60 cases, gives the loss of the others; no label changes."""
        calibrated(ran)
        found = harness.run("s", candidate="warm", parent="raw")
        t = json.loads((ran.root / "calibrator.json").read_text())["maps"][0]["temperature"]
        losses = {each: sk.log_loss(GOLD[:60], _softmax(LOGITS[:60] / each)) for each in (t, t * 1.05, t / 1.05)}
        assert min(losses, key=losses.__getitem__) == t
        values = ran.values(found)
        assert values["log_loss"] == pytest.approx(sk.log_loss(GOLD[60:], _softmax(LOGITS[60:] / t)), abs=1e-9)
        assert values["log_loss"] < ran.values(found, "parent")["log_loss"]
        assert values["accuracy"] == ran.values(found, "parent")["accuracy"]

    def test_it_says_what_it_is(self, ran: Bench) -> None:
        record = harness.calibrate("latest", family="vector").as_record()["calibrator"]
        assert (record["family"], record["labels"], record["score_type"]) == ("vector", LABELS, "logit")
        assert record["fitted_on"]["n"] == 60 and record["fitted_on"]["role"] == "calibration"
        assert harness.calibrate("latest", family="vector").as_record()["calibrator"] == record

    def test_under_other_scores_it_is_refused(self, ran: Bench) -> None:
        """With both keys."""
        calibrated(ran, fitted_under="0" * 64)
        with pytest.raises(NotAdmitted, match="0000"):
            harness.run("s", candidate="warm", parent="raw")

    def test_one_that_saw_promotion_cases_is_refused(self, ran: Bench) -> None:
        """By what the cases hold, not by what they or their suite are called."""
        calibrated(ran)
        digests = json.loads((ran.root / "suites/s/suite.lock.json").read_text())["case_digests"]
        said = json.loads((ran.root / "calibrator.json").read_text())
        said["fitted_on"]["case_digests"] = [digests[-1]]
        (ran.root / "releases/warm/calibrator.json").write_text(resealed(said))
        with pytest.raises(Leaked, match="1 promotion cases"):
            harness.run("s", candidate="warm", parent="raw")

    @pytest.mark.parametrize("family", ["platt", "isotonic"])
    def test_a_family_of_single_labels_is_none_of_classes(self, ran: Bench, family: Any) -> None:
        with pytest.raises(Misconfigured, match="temperature"):
            harness.calibrate("latest", family=family)

    def test_without_calibration_cases_there_is_nothing_to_fit_on(self, bench: Bench) -> None:
        bench.suite("classification", cases(lambda i: "promotion"), ["log_loss"])
        bench.release("raw", "logits", "logit", OUTPUTS)
        harness.run("s", candidate="raw", parent="none")
        with pytest.raises(Misconfigured, match="calibration role"):
            harness.calibrate("latest", family="temperature")


class TestALabelThatAllowsNoFit:
    def test_without_a_calibration_case_is_named(self, bench: Bench) -> None:
        """A temperature has no number of one label, and is fitted all the same."""
        bench.suite(
            "classification", cases(lambda i: "calibration" if i < 60 and GOLD[i] else "promotion"), ["log_loss"]
        )
        bench.release("raw", "logits", "logit", OUTPUTS)
        harness.run("s", candidate="raw", parent="none")
        with pytest.raises(Misconfigured, match=f"no calibration case of {LABELS[0]}"):
            harness.calibrate("latest", family="vector")
        harness.calibrate("latest", family="temperature")

    def test_of_sets_is_named(self, bench: Bench) -> None:
        rows = [
            {"id": f"c{i}", "text": f"t {i}", "split": "calibration" if i < 60 else "promotion",
             "labels": [name for c, name in enumerate(LABELS) if SETS[i, c] and (c or i >= 60)]}
            for i in range(N)
        ]  # fmt: skip
        bench.suite("multilabel", rows, ["f1_micro"])
        bench.release("raw", "logits", "logit", OUTPUTS)
        harness.run("s", candidate="raw", parent="none")
        with pytest.raises(Misconfigured, match=f"calibration cases of label '{LABELS[0]}'"):
            harness.calibrate("latest", family="isotonic")


class TestWhatIsSaved:
    def test_a_number_changed_by_hand_is_refused(self, ran: Bench) -> None:
        """With the file and both digests (exit 4), before any score is taken through it."""
        calibrated(ran)
        path = ran.root / "releases/warm/calibrator.json"
        said = json.loads(path.read_text())
        said["maps"][0]["temperature"] *= 2
        path.write_text(json.dumps(said))
        with pytest.raises(Tampered, match=r"warm/calibrator\.json") as refusal:
            harness.run("s", candidate="warm", parent="raw")
        assert refusal.value.exit_code == 4
        assert said["own_digest"] in str(refusal.value) and own_digest(said) in str(refusal.value)
        assert "Fit it again" in str(refusal.value)

    def test_one_without_its_digest_is_refused(self, ran: Bench) -> None:
        calibrated(ran)
        path = ran.root / "releases/warm/calibrator.json"
        said = json.loads(path.read_text())
        path.write_text(json.dumps({name: value for name, value in said.items() if name != "own_digest"}))
        with pytest.raises(Misconfigured, match="without `own_digest`"):
            harness.run("s", candidate="warm", parent="raw")

    def test_laid_out_otherwise_it_says_the_same(self, ran: Bench) -> None:
        calibrated(ran)
        path = ran.root / "releases/warm/calibrator.json"
        path.write_text(json.dumps(json.loads(path.read_text()), indent=4))
        harness.run("s", candidate="warm", parent="raw")

    def test_into_a_folder_that_is_not_there_nothing_is_saved(self, ran: Bench) -> None:
        """A release that isn't there is a slip of the pen."""
        for save in (
            lambda path: harness.calibrate("latest", family="temperature", save=path),
            lambda path: harness.threshold("latest", rule="coverage", coverage=0.5, save=path),
        ):
            with pytest.raises(NotFound, match=r"no folder .*releases/warn"):
                save(ran.root / "releases/warn/calibrator.json")
            with pytest.raises(Misconfigured, match="the file to write"):
                save(ran.root / "releases/raw")
        assert not (ran.root / "releases/warn").exists()


class TestLabelSets:
    @pytest.mark.parametrize("family", ["platt", "isotonic", "beta", "histogram"])
    def test_each_label_has_its_own_map(self, bench: Bench, family: Any) -> None:
        """The threshold beside a calibrator is of its probabilities."""
        logits = 6 * (RNG.normal(size=(N, 3)) + SETS)
        outputs = {f"c{i}": dict(zip(LABELS, row.tolist(), strict=True)) for i, row in enumerate(logits)}
        rows = [
            {**row, "labels": [name for name, held in zip(LABELS, SETS[i], strict=True) if held]}
            for i, row in enumerate(cases())
        ]
        bench.suite("multilabel", [{k: v for k, v in row.items() if k != "label"} for row in rows], ["f1_micro"])
        bench.release("raw", "logits", "logit", outputs)
        harness.run("s", candidate="raw", parent="none")
        harness.calibrate("latest", family=family, save=bench.root / "releases/calibrator.json")
        bench.release("warm", "logits", "logit", outputs, '[calibrator]\npath = "../calibrator.json"\n')
        found = harness.run("s", candidate="warm", parent="raw")
        fit = getattr(fitting, f"fit_{family}")
        read = 1 / (1 + np.exp(-logits)) if family == "beta" else logits
        chances = [fit(read[:60, c], SETS[:60, c]).probabilities(read[60:, c]) for c in range(3)]
        wanted = sk.f1_score(SETS[60:], np.stack(chances, axis=1) >= 0.5, average="micro")
        assert bench.values(found)["f1_micro"] == pytest.approx(wanted)
        assert bench.values(found, "parent")["f1_micro"] != pytest.approx(wanted)
        more = '[calibrator]\npath = "../calibrator.json"\n[score]\nthreshold = [1.5, 0.5, 0.5]\n'
        bench.release("unfit", "logits", "logit", outputs, more)
        with pytest.raises(Misconfigured, match=r"\[score\] threshold: 1\.5, 0\.5, 0\.5\. Expected: probabilities"):
            harness.run("s", candidate="unfit", parent="raw")


def _softmax(logits: np.ndarray) -> np.ndarray:
    grown = np.exp(logits - logits.max(axis=1, keepdims=True))
    return grown / grown.sum(axis=1, keepdims=True)
