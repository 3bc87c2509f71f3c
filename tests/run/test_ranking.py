"""The ranking that is kept: in the suite's order, cut at its depth, never inside a tie."""

import numpy as np
import pytest

from harness.output.case import Ranking
from harness.run import ranking as room
from harness.run.ranking import Cut, cut_ranking


def kept(scores: dict[str, float], *, depth: int = 3, ties: str = "expected", **more: object) -> Ranking:
    documents = np.array(list(scores), dtype=object)
    cut = Cut(depth, ties, bool(more.pop("drop_self", False)))
    return cut_ranking(str(more.pop("case_id", "q")), documents, np.array(list(scores.values())), cut, **more)


def rows(ranking: Ranking) -> list[tuple[str, float]]:
    return list(zip(ranking.documents.tolist(), ranking.scores.tolist(), strict=True))


class TestExpected:
    def test_documents_stand_by_falling_score(self) -> None:
        assert rows(kept({"a": 1.0, "b": 3.0, "c": 2.0})) == [("b", 3.0), ("c", 2.0), ("a", 1.0)]

    def test_the_tied_group_across_the_depth_stays_whole(self) -> None:
        """Depth 3 falls into the four that share a score; the one below is cut."""
        found = kept({"a": 9, "b": 5, "c": 5, "d": 5, "e": 5, "f": 1})
        assert (found.documents.tolist(), found.crossing) == (["a", "b", "c", "d", "e"], 0)

    def test_a_tie_that_ends_at_the_depth_brings_nothing_more(self) -> None:
        assert kept({"a": 9, "b": 5, "c": 5, "d": 4}).documents.tolist() == ["a", "b", "c"]

    def test_a_group_past_the_limit_is_kept_by_its_size_and_its_judged(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "WHOLE_GROUP", 4)
        scores = {"a": 9.0, **{f"t{i}": 5.0 for i in range(6)}, "z": 1.0}
        found = kept(scores, judged={"t4", "t1", "z"})
        assert (found.documents.tolist(), found.crossing) == (["a", "t1", "t4"], 6)

    def test_one_of_a_reduced_group_stays_where_none_is_judged(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Else the group above would be taken for the reduced one."""
        monkeypatch.setattr(room, "WHOLE_GROUP", 4)
        found = kept({"a": 9.0, **{f"t{i}": 5.0 for i in range(6)}}, judged={"a"})
        assert (found.documents.tolist(), found.crossing) == (["a", "t0"], 6)

    def test_a_large_group_inside_the_depth_is_no_crossing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(room, "WHOLE_GROUP", 2)
        assert kept({"a": 5, "b": 5, "c": 5, "d": 1}).crossing == 0

    def test_a_group_that_came_in_reduced_keeps_its_size(self) -> None:
        found = kept({"a": 9, "b": 5, "c": 5}, judged={"b", "c"}, crossing=2000)
        assert (found.documents.tolist(), found.crossing) == (["a", "b", "c"], 2000)

    def test_an_empty_ranking_is_one(self) -> None:
        assert rows(kept({})) == []


class TestTrec:
    def test_the_cut_is_exact_and_ties_fall_by_document(self) -> None:
        assert kept({"a": 5, "b": 5, "c": 5, "d": 5}, ties="trec").documents.tolist() == ["d", "c", "b"]

    def test_scores_are_kept_as_trec_eval_sees_them(self) -> None:
        """Equal in float32 is a tie there, whatever float64 says."""
        found = kept({"a": 0.30000000001, "b": 0.3}, ties="trec")
        assert found.documents.tolist() == ["b", "a"]
        assert found.scores[0] == found.scores[1] == np.float64(np.float32(0.3))


class TestSelfMatch:
    def test_the_querys_own_document_goes_before_the_cut(self) -> None:
        found = kept({"q": 9, "a": 5, "b": 4, "c": 3, "d": 2}, drop_self=True)
        assert found.documents.tolist() == ["a", "b", "c"]

    def test_it_is_no_part_of_a_reduced_group(self) -> None:
        found = kept({"a": 9, "q": 5, "b": 5}, drop_self=True, judged={"b"}, crossing=2000)
        assert (found.documents.tolist(), found.crossing) == (["a", "b"], 1999)

    def test_by_default_it_stays(self) -> None:
        assert kept({"q": 9, "a": 5}).documents.tolist() == ["q", "a"]
