"""From vectors to a metric: a tied group too large to be kept says all that the whole group would have said."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.metric.name import parse
from harness.metric.place import place
from harness.metric.ranking import case_values
from harness.output.case import OutputStatus
from harness.run import ranking as room
from harness.run.ranking import Cut, cut_ranking
from harness.run.search import Chunk, search

METRICS = ("RR@5", "nDCG@5", "P@5", "AP@5", "R@5", "Judged@5", "AP", "RR", "Rprec", "Success@1")


def measured(
    scores: list[float],
    judged: dict[int, int],
    *,
    depth: int,
    metrics: tuple[str, ...] = METRICS,
    drop: bool = False,
    own: int | None = None,
) -> list[float]:
    """Metrics of one query: document i has score i of `scores` and perhaps a grade; `own` has the query's own ID."""
    ids = np.array([f"d{i}" for i in range(len(scores))], dtype=object)
    case = "q" if own is None else f"d{own}"
    grades = {f"d{i}": grade for i, grade in judged.items()}
    must = np.array(sorted({*judged, *([] if own is None else [own])}), dtype=np.int64)
    chunks = [Chunk(0, np.array(scores, dtype=np.float32)[:, None])]
    found = search(
        np.ones((1, 1), np.float32), chunks, depth=depth + drop, grid=1e-6, score_type="dot",
        keep_limit=room.WHOLE_GROUP, must_keep=[must],
    ).hits[0]  # fmt: skip
    assert found is not None
    cut = Cut(depth, "expected", drop)
    kept = cut_ranking(case, ids[found.documents], found.scores, cut, judged=set(grades), crossing=found.crossing)
    at = {document: position for position, document in enumerate(kept.documents)}
    positions = np.array([at.get(document, -1) for document in grades], dtype=np.int64)
    places = place(
        np.array([0, len(kept.scores)]), kept.scores, np.array([0, len(grades)]),
        np.array(list(grades.values()), dtype=np.int64),
        np.array([kept.scores[each] if each >= 0 else np.nan for each in positions], dtype=np.float64), positions,
        np.array([kept.crossing]), ties="expected",
    )  # fmt: skip
    return [
        float(
            case_values(
                parse(name), places, case_ids=np.array([case], dtype=object),
                output_status=np.array([OutputStatus.OK], dtype=object), depth=depth, top_grade=2,
                no_relevant="zero",
            ).values[0]
        )
        for name in metrics
    ]  # fmt: skip


class TestThreeThousandDuplicates:
    """Four documents, a relevant one alone at rank 5, and 3000 that share a score below it."""

    SCORES = (10.0, 9.0, 8.0, 7.0, 6.0, *[5.0] * 3000)

    def reciprocal(self, judged: dict[int, int], *, drop: bool = False, own: int | None = None) -> float:
        (found,) = measured(list(self.SCORES), judged, depth=10, metrics=("RR@10",), drop=drop, own=own)
        return found

    @pytest.mark.parametrize("drop", [False, True])
    @pytest.mark.parametrize("own", [None, 5, 1500, 3004])
    def test_a_relevant_document_alone_above_them_keeps_its_rank(self, drop: bool, own: int | None) -> None:
        """1/5: it is no member of the group, whether or not the query's own document is, and is left out or not."""
        assert self.reciprocal({4: 1}, drop=drop, own=own) == 0.2

    @pytest.mark.parametrize(("drop", "value"), [(False, 1 / 5), (True, 1 / 4)])
    def test_the_querys_own_document_above_it(self, drop: bool, value: float) -> None:
        """Left out, it makes room for one; the depth is filled from behind."""
        assert self.reciprocal({4: 1}, drop=drop, own=0) == value

    @pytest.mark.parametrize(
        ("drop", "own", "size"), [(False, None, 3000), (False, 9, 3000), (True, None, 3000), (True, 9, 2999)]
    )
    def test_a_relevant_document_among_them(self, drop: bool, own: int | None, size: int) -> None:
        """At rank 6 to 10 in one of `size` orders each, else below the cut."""
        value = sum(1 / rank for rank in range(6, 11)) / size
        assert self.reciprocal({2000: 1}, drop=drop, own=own) == pytest.approx(value, rel=1e-12)

    def test_judged_documents_above_and_among_them(self) -> None:
        """The one above decides; an irrelevant one among them changes nothing."""
        assert self.reciprocal({4: 1, 2000: 1, 2001: 0}) == 0.2
        assert self.reciprocal({4: 0, 2001: 0}) == 0.0


@st.composite
def crowds(draw: st.DrawFn) -> tuple[list[float], dict[int, int], int, bool, int | None]:
    """Documents from four scores, a few judged, a depth, and perhaps a document with the query's own ID."""
    scores = draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 4.0]), min_size=1, max_size=40))
    places = st.integers(0, len(scores) - 1)
    judged = draw(st.dictionaries(places, st.integers(-1, 2), min_size=1, max_size=6))
    return scores, judged, draw(st.integers(5, 12)), draw(st.booleans()), draw(st.none() | places)


class TestAnyCrowd:
    @settings(max_examples=200, deadline=None)
    @given(crowds())
    def test_reducing_a_group_changes_no_metric(
        self, crowd: tuple[list[float], dict[int, int], int, bool, int]
    ) -> None:
        """Groups of more than three against groups that are always whole."""
        scores, judged, depth, drop, own = crowd
        whole = measured(scores, judged, depth=depth, drop=drop, own=own)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(room, "WHOLE_GROUP", 3)
            reduced = measured(scores, judged, depth=depth, drop=drop, own=own)
        assert reduced == pytest.approx(whole, abs=1e-12, nan_ok=True)
