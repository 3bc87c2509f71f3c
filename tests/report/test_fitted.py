"""What `harness calibrate` prints: a few lines, never the digests of every case."""

from collections.abc import Mapping

from harness.identity import Json
from harness.report.fitted import fitted_lines

ON: dict[str, Json] = {
    "suite": "pairs", "n": 40, "n_cases": 20, "n_groups": 1, "left_out": 1, "included": "scored pairs with gold",
    "case_digests": ["0ad46773b8099e23"], "case_ids": ["082312c8925debba"], "case_inputs": ["04a92d89fc060d94"],
}  # fmt: skip


def said(key: str, record: Mapping[str, Json], path: str | None = None) -> str:
    full = {"release": "head", "fitted_on": ON, "labels": [], **record}
    return "\n".join(fitted_lines({key: full, "path": path}))


def calibrator(maps: list[Json], labels: list[Json], **more: Json) -> str:
    base: dict[str, Json] = {
        "family": "platt", "of": "labels", "score_type": "logit", "maps": maps, "labels": labels, **more,
    }  # fmt: skip
    return said("calibrator", base)


class TestCalibrator:
    def test_cases_are_counted_and_not_listed(self) -> None:
        lines = calibrator([{"slope": 2.0, "intercept": -0.5}], ["same"])
        assert "fitted on 20 calibration cases in 1 group, 40 rows, of pairs: scored pairs with gold" in lines
        assert "1 calibration case left out" in lines
        assert "0ad46773b8099e23" not in lines and "082312c8925debba" not in lines and "04a92d89fc060d94" not in lines

    def test_each_label_has_its_own_map(self) -> None:
        lines = calibrator([{"slope": 2.0, "intercept": -0.5}, {"slope": 3.0, "intercept": 0.25}], ["a", "b"])
        assert "  a: slope 2, intercept -0.5\n  b: slope 3, intercept 0.25" in lines

    def test_a_long_list_of_labels_is_cut_and_counted(self) -> None:
        lines = calibrator([{"slope": 2.0, "intercept": 0.0}] * 15, [f"l{i}" for i in range(15)])
        assert "l11:" in lines and "l12:" not in lines
        assert "and 3 more" in lines

    def test_a_map_of_many_numbers_is_told_by_their_number_and_ends(self) -> None:
        assert "map: 3 steps, from 0.1 to 0.9" in calibrator([{"at": [0.0, 1.0, 2.0], "values": [0.1, 0.5, 0.9]}], [""])
        weights: list[Json] = [[1.0, 0.0], [0.0, 1.0]]
        assert "map: a matrix and a bias of 2 labels" in calibrator(
            [{"weights": weights, "bias": [0.0, 0.0]}], ["a", "b"]
        )

    def test_the_curve_has_a_line_for_each_score(self) -> None:
        point: Json = {"score": 0.5, "probability": 0.25, "low": 0.125, "high": 0.5}
        lines = calibrator([{"slope": 2.0, "intercept": 0.0}], ["same"], curve=[point], reported=["Few cases."])
        assert "what a logit comes to:\n    0.5: 0.25 [0.125, 0.5]" in lines
        assert "Remark: Few cases." in lines


class TestThreshold:
    def test_abstention_names_its_ground_and_what_is_reached(self) -> None:
        lines = said("threshold", {
            "rule": "coverage", "by": {"coverage": 0.9}, "type": "logit", "ground": "confidence", "below": 0.75,
            "reached": {"coverage": 0.95, "risk": 0.0},
        })  # fmt: skip
        assert lines.startswith("a threshold by coverage (coverage 0.9), for head\n")
        assert "nothing is said where confidence is below 0.75\n  on these cases: coverage 0.95, risk 0" in lines

    def test_one_threshold_of_many_labels_stands_beside_what_each_reaches(self) -> None:
        lines = said("threshold", {
            "rule": "costs", "by": {"false_positive": 1.0}, "type": "probability", "threshold": 0.25,
            "labels": ["a", "b"], "reached": {"recall[a]": 1.0, "recall[b]": 0.5},
        })  # fmt: skip
        assert "  a: from probability 0.25 on: recall 1\n  b: from probability 0.25 on: recall 0.5" in lines


class TestEnding:
    def test_a_saved_file_comes_with_the_line_that_puts_it_to_use(self) -> None:
        lines = said(
            "threshold", {"rule": "f1", "by": {}, "type": "cosine", "threshold": 0.5, "reached": {}}, "r/d.json"
        )
        assert "wrote r/d.json" in lines
        assert '[decision] path = "d.json"' in lines

    def test_without_a_file_it_says_how_to_keep_it(self) -> None:
        assert "Nothing was written: --save FILE" in calibrator([{"temperature": 2.0}], ["a", "b"])
