"""Outputs made elsewhere, put under the suite's own case IDs."""

import json
from pathlib import Path

import numpy as np
import pytest

from harness.errors import Misconfigured, NotFound
from harness.output.case import CaseOutput, OutputStatus
from harness.run.given import Given
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.replay import replay

CASES = ("q1", "q2")


def run(path: Path, text: str, format: str = "trec-run", score_type: str = "dot") -> Executed:
    path.write_text(text, encoding="utf-8")
    cut = Cut(10, "expected", False)
    return replay(path, format, score_type, case_ids=CASES, corpus=frozenset({"d1", "d2"}), judged={}, cut=cut)


def documents(output: CaseOutput) -> list[str]:
    assert output.ranking is not None
    return output.ranking.documents.tolist()


class TestScoreType:
    @pytest.mark.parametrize("score_type", ["logit", "probability", "cosine", "dot", "maxsim", "value"])
    def test_higher_is_better(self, tmp_path: Path, score_type: str) -> None:
        """Whatever it is called."""
        assert documents(run(tmp_path / "r", "q1 Q0 d1 1 1 t\nq1 Q0 d2 2 2 t\n", score_type=score_type).outputs[0]) == [
            "d2",
            "d1",
        ]

    @pytest.mark.parametrize("score_type", ["squared-l2", "tags"])
    def test_what_does_not_rank_so_is_refused(self, tmp_path: Path, score_type: str) -> None:
        """A distance read as a score would turn every ranking round, and the shapes would fit."""
        with pytest.raises(Misconfigured, match=score_type) as refused:
            run(tmp_path / "r", "q1 Q0 d1 1 1 t\n", score_type=score_type)
        assert "negative" in refused.value.mend


class TestTrecRun:
    def test_the_score_ranks_and_the_rank_column_does_not(self, tmp_path: Path) -> None:
        found = run(tmp_path / "r", "q1 Q0 d1 1 0.2 t\nq1 Q0 d2 2 0.9 t\nq2\tQ0\td1\t1\t3e-1\tt\r\n")
        assert [documents(each) for each in found.outputs] == [["d2", "d1"], ["d1"]]

    @pytest.mark.parametrize(
        ("score", "value"), [("1", 1.0), ("-.5", -0.5), ("+2.", 2.0), ("1e3", 1000.0), ("-1.5E-2", -0.015)]
    )
    def test_every_form_of_a_number(self, tmp_path: Path, score: str, value: float) -> None:
        output = run(tmp_path / "r", f"q1 Q0 d1 1 {score} t\n").outputs[0]
        assert output.ranking is not None and output.ranking.scores.tolist() == [value]

    @pytest.mark.parametrize("blank", ["\u00a0", "\u2003", "\u2028", "\x0b", "\x1f", "\x85"])
    def test_columns_end_at_blanks_and_tabs_alone(self, tmp_path: Path, blank: str) -> None:
        """Any other white space is part of an ID, as it is in a suite's own files."""
        found = run(tmp_path / "r", f"q1 \tQ0\t d{blank}1 1 0.5 t \n")
        assert documents(found.outputs[0]) == [f"d{blank}1"]

    def test_a_case_that_the_file_lacks_is_missing(self, tmp_path: Path) -> None:
        found = run(tmp_path / "r", "q2 Q0 d1 1 0.2 t\n")
        assert [each.status for each in found.outputs] == [OutputStatus.MISSING, OutputStatus.OK]

    @pytest.mark.parametrize("score", ["nan", "inf", "-inf", "1e999"])
    def test_a_score_that_is_no_number_fails_its_case_by_name(self, tmp_path: Path, score: str) -> None:
        output = run(tmp_path / "r", f"q1 Q0 d1 1 1 t\nq1 Q0 d2 1 {score} t\n").outputs[0]
        assert (output.status, output.non_finite) == (OutputStatus.FAILED, True)
        assert "'d2'" in output.reason

    @pytest.mark.parametrize(
        ("text", "line", "said"),
        [
            ("q1 Q0 d1 1 0.2\n", 1, "5 columns"),
            ("q1 Q0 d1 1 0.2 t\n\nq1 Q0 d 2 2 0.2 t\n", 3, "7 columns"),
            ("q1 Q0 d1 1 high t\n", 1, "'high'"),
            ("q1 Q0 d1 1 1_000 t\n", 1, "'1_000'"),
            ("q1 Q0 d1 1 ١ t\n", 1, "'١'"),
            ("q1 Q0 d1 1 0x10 t\n", 1, "'0x10'"),
            ("q1 Q0 d1 1 . t\n", 1, r"'\.'"),
            ("q1 Q0 d1 1 2 t\nq1 Q0 d2 1 2 t\nq1 Q0 d1 3 1 t\n", 3, "first at line 1"),
        ],
    )
    def test_what_cannot_be_read_is_refused_with_its_line(
        self, tmp_path: Path, text: str, line: int, said: str
    ) -> None:
        with pytest.raises(Misconfigured, match=said) as refused:
            run(tmp_path / "r", text)
        assert refused.value.subject == f"{tmp_path / 'r'} line {line}"

    def test_strangers_are_counted_and_keep_their_place(self, tmp_path: Path) -> None:
        """A document outside the corpus still takes a place of the ranking; rows of other queries are left out."""
        found = run(tmp_path / "r", "q1 Q0 x 1 9 t\nq1 Q0 d1 2 8 t\nq9 Q0 d1 1 1 t\nq9 Q0 d2 1 1 t\n")
        assert documents(found.outputs[0]) == ["x", "d1"]
        assert {each.kind: each.count for each in found.remarks} == {"not-a-case": 2, "not-in-corpus": 1}

    def test_no_file_is_not_found(self, tmp_path: Path) -> None:
        cut = Cut(10, "expected", False)
        with pytest.raises(NotFound):
            replay(tmp_path / "no", "trec-run", "dot", case_ids=CASES, corpus=frozenset(), judged={}, cut=cut)


class TestJsonLines:
    def line(self, **keys: object) -> str:
        return json.dumps(keys) + "\n"

    def test_scores_by_document(self, tmp_path: Path) -> None:
        found = run(tmp_path / "r", self.line(id="q1", scores={"d1": 1, "d2": 2.5}, note="x"), "jsonl")
        assert documents(found.outputs[0]) == ["d2", "d1"]

    def test_an_empty_ranking_is_an_output(self, tmp_path: Path) -> None:
        output = run(tmp_path / "r", self.line(id="q1", scores={}), "jsonl").outputs[0]
        assert (output.status, documents(output)) == (OutputStatus.OK, [])

    def test_nan_fails_its_case(self, tmp_path: Path) -> None:
        output = run(tmp_path / "r", '{"id": "q1", "scores": {"d1": NaN}}\n', "jsonl").outputs[0]
        assert (output.status, output.non_finite) == (OutputStatus.FAILED, True)

    @pytest.mark.parametrize("sign", ["", "-"])
    def test_an_integer_beyond_every_float_fails_its_case(self, tmp_path: Path, sign: str) -> None:
        """400 digits: no number that can rank, and no fault of ours."""
        text = f'{{"id": "q1", "scores": {{"d1": {sign}{"9" * 400}}}}}\n{{"id": "q2", "scores": {{"d1": 1}}}}\n'
        first, second = run(tmp_path / "r", text, "jsonl").outputs
        assert (first.status, first.non_finite, second.status) == (OutputStatus.FAILED, True, OutputStatus.OK)

    @pytest.mark.parametrize(
        "text",
        [
            '{"id": 7, "scores": {}}',
            '{"id": "q1"}',
            '{"id": "q1", "scores": {"d1": "2"}}',
            '{"id": "q1", "scores": {"d1": true}}',
            '{"id": "q1", "scores": {"d1": 1, "d1": 2}}',
            '{"id": "q1", "scores": {}}\n{"id": "q1", "scores": {}}',
            "[]",
            "{",
        ],
    )
    def test_what_cannot_be_read_is_refused_with_its_line(self, tmp_path: Path, text: str) -> None:
        with pytest.raises(Misconfigured, match="line"):
            run(tmp_path / "r", text + "\n", "jsonl")


class TestGivenDocuments:
    def test_only_given_documents_are_ranked_and_all_others_counted(self, tmp_path: Path) -> None:
        """Of three recorded ones d3 was not given; d2 was given to q2 and is not recorded."""
        (tmp_path / "r").write_text("q1 Q0 d3 1 9 t\nq1 Q0 d1 2 8 t\nq2 Q0 d1 1 7 t\n")
        given = {"q1": lists("d1"), "q2": lists("d2", "d1")}
        cut = Cut(10, "expected", False)
        found = replay(
            tmp_path / "r", "trec-run", "dot", case_ids=CASES, corpus=frozenset({"d1", "d2"}), judged={}, cut=cut,
            given=given,
        )  # fmt: skip
        assert [documents(each) for each in found.outputs] == [["d1"], ["d1"]]
        second = found.outputs[1].candidates
        assert second is not None and second.documents.tolist() == ["d2", "d1"]
        assert np.isnan(second.scores).tolist() == [True, False] and second.scores[1] == 7
        assert [(each.kind, each.count) for each in found.remarks] == [
            ("not-a-candidate", 1), ("candidate-not-recorded", 1),
        ]  # fmt: skip

    def test_a_case_that_is_not_recorded_keeps_its_candidates(self, tmp_path: Path) -> None:
        """It is missing all the same, and not counted twice."""
        (tmp_path / "r").write_text("q1 Q0 d1 1 9 t\n")
        given = {"q1": lists("d1"), "q2": lists("d1")}
        found = replay(
            tmp_path / "r", "trec-run", "dot", case_ids=CASES, corpus=frozenset({"d1"}), judged={},
            cut=Cut(10, "expected", False), given=given,
        )  # fmt: skip
        assert found.outputs[1].status is OutputStatus.MISSING and found.outputs[1].candidates is not None
        assert found.remarks == ()


def lists(*names: str) -> Given:
    return Given(np.array(names, dtype=object), np.full(len(names), np.nan))
