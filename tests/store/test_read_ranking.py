"""Rankings and candidates as arrays in suite order, whatever the order in which rows were written or IDs sort."""

import numpy as np

from harness.store import read_ranking, write
from harness.store.connection import Store

from .conftest import RUN, SUITE

ORDER = ["q-b", "q-a", "q-c", "q-d"]


class TestRankings:
    def test_the_candidates_arrays(self, small: Store) -> None:
        """q-b ranks d1 .9, d4 .8; q-a d9 .7, d3 .6; q-c nothing; q-d d1 .5.

        Judged, by document ID: q-b d1 (2), d2 (1, not retrieved); q-a d3 (1), d9 (-1); q-c none; q-d d1 (1).
        """
        with small.reading() as connection:
            found = read_ranking.rankings(connection, RUN, "candidate")
        assert list(found.case_ids) == ORDER
        assert list(found.status) == ["ok", "ok", "missing", "ok"]
        assert list(found.truncated) == [False, True, False, False]
        assert list(found.non_finite) == [False] * 4
        assert list(found.crossing) == [7, 0, 0, 0]
        assert list(found.offsets) == [0, 2, 4, 4, 5]
        assert list(found.scores) == [0.9, 0.8, 0.7, 0.6, 0.5]
        assert list(found.judged_offsets) == [0, 2, 4, 4, 5]
        assert list(found.judged_grade) == [2, 1, 1, -1, 1]
        np.testing.assert_array_equal(found.judged_score, [0.9, np.nan, 0.6, 0.7, 0.5])
        assert list(found.judged_position) == [0, -1, 1, 0, 0]

    def test_the_parents_arrays(self, small: Store) -> None:
        """The same judgements beside other rankings; a failed case keeps its judgements and ranks nothing."""
        with small.reading() as connection:
            found = read_ranking.rankings(connection, RUN, "parent")
        assert list(found.status) == ["ok", "ok", "ok", "failed"]
        assert list(found.non_finite) == [False, False, False, True]
        assert list(found.offsets) == [0, 1, 2, 3, 3]
        assert list(found.scores) == [0.9, 0.8, 0.4]
        np.testing.assert_array_equal(found.judged_score, [np.nan, 0.9, 0.8, np.nan, np.nan])
        assert list(found.judged_position) == [-1, 0, 0, -1, -1]

    def test_types_do_not_depend_on_content(self, small: Store) -> None:
        """A side without a single row has arrays of the same types."""
        with small.reading() as connection:
            full, nothing = (read_ranking.rankings(connection, RUN, side) for side in ("candidate", "nobody"))
        for name in read_ranking.RankingRows.__dataclass_fields__:
            assert getattr(full, name).dtype == getattr(nothing, name).dtype, name
        assert list(nothing.offsets) == [0] == list(nothing.judged_offsets)

    def test_runs_do_not_mix(self, small: Store) -> None:
        """The other run put d2 first."""
        with small.reading() as connection:
            found = read_ranking.rankings(connection, "cd34", "candidate")
            first = read_ranking.first_documents(connection, RUN)
        assert list(found.case_ids) == ["q-b"]
        assert list(found.judged_position) == [-1, 0]
        assert first == {
            ("candidate", "q-b"): "d1", ("candidate", "q-a"): "d9", ("candidate", "q-d"): "d1",
            ("parent", "q-b"): "d2", ("parent", "q-a"): "d3", ("parent", "q-c"): "d5",
        }  # fmt: skip

    def test_judged_documents_stand_in_the_order_of_their_bytes(self, empty: Store) -> None:
        """Not in that of a language: B, a, ä, an emoji."""
        ids = ["ä", "a", "😀", "B"]
        with empty.writing() as connection:
            write.append(connection, "runs", {"run": RUN, "suite_digest": SUITE}, {
                "suite": ["s"], "suite_place": ["p"], "candidate": ["c"], "version": ["1"],
                "updated_at": [np.datetime64("2026-01-01", "us")],
            })  # fmt: skip
            write.append(connection, "cases", {"suite_digest": SUITE, "case_id": "q"}, {
                "position": [0], "role": ["promotion"], "case_group": ["g"], "answerable": [True], "text": [""],
            })  # fmt: skip
            write.append(connection, "outputs", {"run": RUN, "side": "candidate", "release": "c", "case_id": "q"}, {
                "status": ["ok"], "reason": [""], "non_finite": [False], "retrieved": [0], "crossing": [0],
            })  # fmt: skip
            judged = {"document_id": ids, "grade": [3, 2, 4, 1]}
            write.append(connection, "judgements", {"suite_digest": SUITE, "case_id": "q"}, judged)
        with empty.reading() as connection:
            assert list(read_ranking.rankings(connection, RUN, "candidate").judged_grade) == [1, 2, 3, 4]


class TestCandidates:
    def test_how_many_each_case_was_given_and_which_judged_ones(self, small: Store) -> None:
        """In suite order q-b, q-a, q-c, q-d; judgements by document: d1 and not d2 of q-b, d9 and not d3 of q-a."""
        with small.reading() as connection:
            found = read_ranking.candidates(connection, RUN, "candidate")
            rows = read_ranking.rankings(connection, RUN, "candidate")
        assert found is not None
        assert found.counts.tolist() == [2, 1, 0, 0]
        assert rows.judged_offsets.tolist() == [0, 2, 4, 4, 5]
        assert found.given.tolist() == [True, False, False, True, False]

    def test_a_side_without_a_last_stage_has_none(self, small: Store) -> None:
        with small.reading() as connection:
            assert read_ranking.candidates(connection, RUN, "parent") is None
            found = read_ranking.candidate_sets(connection, RUN)
        assert {side: (each.cases, each.pairs) for side, each in found.items()} == {"candidate": (2, 3)}
