"""Two sides are joined by case ID, never by position."""

import numpy as np
import pytest

from harness.compare.align import align, join
from harness.errors import Unpairable
from harness.output.value import CaseValues, Status

NAN = float("nan")


def values(cases: dict[str, float | Status], metric: str = "RR@10") -> CaseValues:
    status = [case if isinstance(case, Status) else Status.SCORED for case in cases.values()]
    numbers = [NAN if isinstance(case, Status) else case for case in cases.values()]
    return CaseValues(metric, np.array(list(cases), dtype=object), np.array(numbers), np.array(status, dtype=object))


class TestJoining:
    def test_cases_meet_by_id(self) -> None:
        """The parent's values follow the candidate's order of cases."""
        aligned = align(values({"a": 0.1, "b": 0.2, "c": 0.3}), values({"c": 3.0, "a": 1.0, "b": 2.0}))
        assert aligned.case_ids.tolist() == ["a", "b", "c"]
        assert aligned.candidate.tolist() == [0.1, 0.2, 0.3]
        assert aligned.parent.tolist() == [1.0, 2.0, 3.0]

    def test_a_pair_needs_both_sides_scored(self) -> None:
        """A case that one side lacks keeps each side's status and is not paired."""
        aligned = align(
            values({"a": 1.0, "b": Status.MISSING, "c": 0.5}), values({"c": Status.FAILED, "b": 1.0, "a": 1.0})
        )
        assert aligned.paired.tolist() == [True, False, False]
        assert aligned.candidate_status.tolist() == [Status.SCORED, Status.MISSING, Status.SCORED]
        assert aligned.parent_status.tolist() == [Status.SCORED, Status.SCORED, Status.FAILED]

    def test_rows_of_any_kind_can_follow(self) -> None:
        """`join` says where each of the candidate's cases stands among the parent's."""
        candidate, parent = np.array(["q2", "q1"], dtype=object), np.array(["q1", "q2"], dtype=object)
        assert parent[join(candidate, parent, "f1_macro")].tolist() == candidate.tolist()


class TestRefusals:
    def test_two_metrics_cannot_be_paired(self) -> None:
        """The error names both metrics."""
        with pytest.raises(Unpairable, match=r"RR@10.*nDCG@10"):
            align(values({"a": 1.0}), values({"a": 1.0}, metric="nDCG@10"))

    def test_a_repeated_case_is_refused(self) -> None:
        """The error names the side and the case."""
        twice = CaseValues("RR@10", np.array(["a", "a"], dtype=object), np.ones(2), np.array([Status.SCORED] * 2))
        with pytest.raises(Unpairable, match=r"parent.*'a'"):
            align(values({"a": 1.0}), twice)

    def test_different_cases_are_refused(self) -> None:
        """The error counts what each side has alone and lists the first few."""
        more = values({f"q{i}": 1.0 for i in range(9)})
        with pytest.raises(Unpairable, match=r"8 case IDs of the candidate alone \('q1', 'q2', 'q3', …\)"):
            align(more, values({"q0": 1.0}))
        with pytest.raises(Unpairable, match=r"1 case IDs of the parent alone \('z'\)"):
            align(values({"a": 1.0}), values({"a": 1.0, "z": 1.0}))
