"""Long documents in live runs: what stands behind the first window is found."""

from collections.abc import Mapping

import numpy as np
import pytest

from harness.output.case import OutputStatus
from harness.release.definition import Fusion
from harness.release.open import Release
from harness.run.fuse import fuse
from harness.run.given import Given
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.rerank import Reranking, rerank
from harness.run.retrieve import CHUNK, Retrieval, retrieve
from harness.run.stage import lists_of, staged

from ..candidate.conftest import WORDS
from ..candidate.late_folder import save_late
from ..candidate.tiny import save_sparse
from .conftest import TEXTS, suite_of

GRID = 1e-6
CUT = Cut(5, "expected", False)
QUERY = "jet jet wave jet wave jet"
# What the query says stands in the last of the windows of 57 words alone; the model reads 46 at once.
LONG = " ".join(["the wing heat", *WORDS[:6] * 8, QUERY])
WINDOW = '[input.window]\nsize = 8\nstride = 3\naggregation = "{}"\n'
BEST, MEAN = WINDOW.format("best"), WINDOW.format("mean") + 'normalise = "after"\n'


def ranked(release: Release, texts: tuple[str, ...] = (LONG, *TEXTS), queries: tuple[str, ...] = (QUERY,)) -> Executed:
    return retrieve({"a": Retrieval(release, CUT)}, suite_of(texts, queries), {}, GRID)["a"]


def ranking(executed: Executed) -> Mapping[str, float]:
    [output] = executed.outputs
    return dict(zip(output.ranking.documents, output.ranking.scores.tolist(), strict=True))


class TestBest:
    def test_a_document_is_found_by_its_last_third(self, releases) -> None:
        """The window that says what the query says is as near as can be; cut, the document is not seen at all."""
        found, cut = ranked(releases("bi", extra=BEST)), ranked(releases("bi", extra=""))
        assert next(iter(ranking(found))) == "d00" and ranking(found)["d00"] == pytest.approx(1.0, abs=1e-5)
        assert next(iter(ranking(cut))) != "d00" and ranking(cut).get("d00", 0.0) < 0.95

    def test_nothing_is_cut(self, releases) -> None:
        assert ranked(releases("bi", extra=BEST)).cut_documents == ()
        assert [each.document_id for each in ranked(releases("bi", extra="")).cut_documents] == ["d00"]

    def test_a_long_query_is_searched_by_every_window(self, releases) -> None:
        """The two are one text: its best pair of windows is a window and itself."""
        assert ranking(ranked(releases("bi", extra=BEST), queries=(LONG,)))["d00"] == pytest.approx(1.0, abs=1e-5)

    def test_texts_that_fit_rank_as_without_windows(self, releases) -> None:
        """To the bit."""
        texts = ("wing heat", "the shock layer", "drag", "plate wave body speed jet lift", "the jet", "wave wave")
        found, plain = (ranked(releases("bi", extra=extra), texts) for extra in (BEST, ""))
        assert ranking(found) == ranking(plain)

    def test_given_documents_have_the_scores_of_the_search(self, releases) -> None:
        release, suite = releases("bi", extra=BEST), suite_of((LONG, *TEXTS), (QUERY, LONG))
        every = np.array([each.id for each in suite.documents], dtype=object)
        given = {case.id: Given(every, np.full(len(every), np.nan)) for case in suite.cases}
        again = rerank({"a": Reranking(release, given, CUT)}, suite, {}, GRID)["a"]
        searched = retrieve({"a": Retrieval(release, CUT)}, suite, {}, GRID)["a"]
        for one, other in zip(again.outputs, searched.outputs, strict=True):
            assert one.ranking.documents.tolist() == other.ranking.documents.tolist()
            assert one.ranking.scores.tolist() == other.ranking.scores.tolist()


class TestBestOfSparse:
    """Six words at once, every three: the last window of 57 is what the query says."""

    TEXT = '[input.window]\nsize = 8\nstride = 3\naggregation = "best"\n'

    @pytest.fixture
    def made(self, releases, tmp_path):
        folder = save_sparse(tmp_path / "sparse")
        return lambda name, extra="": releases(
            name, f'interaction = "sparse"\n[model]\nsource = "path:{folder}"\n{extra}'
        )

    def test_a_document_is_worth_what_its_best_window_is(self, made) -> None:
        """Each window is searched as a text of its own; cut, two that differ in their ends alone are one document."""
        texts = (LONG, LONG.removesuffix(QUERY) + "plate plate drag plate drag plate", "jet")
        found = ranking(ranked(made("a", self.TEXT), texts))
        cut = ranking(ranked(made("b"), texts))
        assert found["d00"] > found["d01"] and cut["d00"] == cut["d01"]
        for name, text in (("d00", texts[0]), ("d01", texts[1])):
            words = text.split()
            windows = tuple(" ".join(words[at : at + 6]) for at in range(0, len(words) - 3, 3))
            apart = [ranking(ranked(made("b"), windows[at : at + 5])) for at in range(0, len(windows), 5)]
            assert found[name] == max(score for some in apart for score in some.values())

    def test_given_documents_have_the_scores_of_the_search(self, made) -> None:
        """To the bit, and a long query by its best window, too."""
        release, suite = made("a", self.TEXT), suite_of((LONG, *TEXTS), (QUERY, LONG))
        every = np.array([each.id for each in suite.documents], dtype=object)
        given = {case.id: Given(every, np.full(len(every), np.nan)) for case in suite.cases}
        again = rerank({"a": Reranking(release, given, CUT)}, suite, {}, GRID)["a"]
        searched = retrieve({"a": Retrieval(release, CUT)}, suite, {}, GRID)["a"]
        for one, other in zip(again.outputs, searched.outputs, strict=True):
            assert one.ranking.documents.tolist() == other.ranking.documents.tolist()
            assert one.ranking.scores.tolist() == other.ranking.scores.tolist()

    def test_texts_that_fit_rank_as_without_windows(self, made) -> None:
        texts = ("wing heat", "the shock layer", "drag", "plate wave body speed jet lift", "the jet", "wave wave")
        assert ranking(ranked(made("a", self.TEXT), texts)) == ranking(ranked(made("b"), texts))


class TestMean:
    def test_a_document_is_nearer_by_what_its_end_says(self, releases) -> None:
        """Two documents that differ in their last third alone are one to a model that cuts."""
        texts = (LONG, LONG.removesuffix(QUERY) + "plate plate drag plate drag plate", "lift")
        found, cut = (ranking(ranked(releases("bi", extra=extra), texts)) for extra in (MEAN, ""))
        assert found["d00"] > found["d01"] + 0.01
        assert cut["d00"] == cut["d01"]

    def test_the_order_of_documents_changes_nothing(self, releases) -> None:
        release = releases("bi", extra=MEAN)
        one = ranking(ranked(release))
        other = ranking(ranked(release, (*TEXTS[::-1], LONG)))
        assert list(one.values()) == list(other.values())


class TestRows:
    def test_a_document_is_found_by_its_last_third(self, releases, tmp_path) -> None:
        """Its last window is what the query is, so each of the query's nine rows meets itself."""
        prompts = {"query": "the ", "document": "the "}
        folder = save_late(tmp_path / "late", expansion=None, document_length=24, prompts=prompts)
        text = f'interaction = "late"\n[model]\nsource = "path:{folder}"\n'
        window = '[input.window]\nsize = 9\nstride = 6\naggregation = "rows"\n'
        texts = (" ".join([*WORDS[:6] * 8, QUERY]), *TEXTS)
        found, cut = (ranked(releases(name, text + extra), texts) for name, extra in (("a", window), ("b", "")))
        assert next(iter(ranking(found))) == "d00" and ranking(found)["d00"] == pytest.approx(9.0, abs=1e-4)
        assert ranking(cut).get("d00", 0.0) < 8.9
        assert found.cut_documents == () and len(cut.cut_documents) == 1


class TestCross:
    """Given documents, each read behind the whole query: two tokens of it and three special ones leave seven."""

    TEXT = '[input.window]\nsize = 12\nstride = 6\naggregation = "best"\n'

    def reranked(self, release: Release, texts: tuple[str, ...]) -> Executed:
        suite = suite_of(texts, ("the jet",))
        every = np.array([each.id for each in suite.documents], dtype=object)
        given = {"q0": Given(every, np.full(len(every), np.nan))}
        return rerank({"a": Reranking(release, given, CUT)}, suite, {}, GRID)["a"]

    def test_a_document_is_worth_what_its_best_window_is(self, releases) -> None:
        """Cut, two that differ in their ends alone are one document."""
        ends = ("wave jet", "lift drag")
        texts = tuple(" ".join(["the wing heat", *WORDS[:6] * 8, end]) for end in ends)
        cut = ranking(self.reranked(releases("cross"), texts))
        found = ranking(self.reranked(releases("third", model="cross", extra=self.TEXT), texts))
        assert cut["d00"] == cut["d01"] and found.keys() == cut.keys()
        model, words = releases("cross"), [text.split() for text in texts]
        for name, each in zip(("d00", "d01"), words, strict=True):
            pieces = tuple(" ".join(each[at : at + 7]) for at in range(0, len(each) - 1, 6))
            assert found[name] == pytest.approx(max(ranking(self.reranked(model, pieces)).values()), abs=1e-5)

    def test_what_was_read_is_told(self, releases) -> None:
        """Nothing is cut; a control character stands in no token, in whichever pairs the document is."""
        found = self.reranked(releases("cross", extra=self.TEXT), (f"{LONG} \x07", "jet"))
        [output] = found.outputs
        assert output.tokens_lost == 0 and not output.candidates.lost.any()
        assert output.candidates.kept.tolist() == [[2, 57], [2, 1]]
        assert [each.detail for each in found.remarks] == [
            "1 characters stand in no token, the first in document 'd00'",
            "1 pair read in 10 windows, the first 'q0' with 'd00'",
        ]

    def test_texts_that_are_read_apart_tell_it_too(self, releases) -> None:
        suite = suite_of((f"{LONG} \x07", "jet"), ("the\x07 jet",))
        given = {"q0": Given(np.array(["d00", "d01"], dtype=object), np.full(2, np.nan))}
        found = rerank({"a": Reranking(releases("bi", extra=BEST), given, CUT)}, suite, {}, GRID)["a"]
        told = {each.detail.split()[-2]: each.count for each in found.remarks if each.kind == "uncovered-character"}
        assert told == {"query": 1, "document": 1}


class TestRemarks:
    def test_characters_that_no_token_shows_are_told(self, releases) -> None:
        """In documents and in queries."""
        release = releases("bi", extra=BEST)
        found = ranked(release, (LONG, f"the \x07\x00wing \x07{LONG}"), (QUERY, "the \x07flow"))
        told = {each.detail: each.count for each in found.remarks if each.kind == "uncovered-character"}
        assert told == {
            "3 characters stand in no token, the first in document 'd01'": 3,
            "1 characters stand in no token, the first in query 'q1'": 1,
        }
        assert all(each.status is OutputStatus.OK for each in found.outputs)


def told(executed: Executed) -> list[tuple[object, ...]]:
    """Of all that was read in windows: what, by whom, whose it is, and how many windows each has."""
    return [
        (each.reads, each.member, each.case_ids is not None and each.case_ids.tolist(),
         each.document_ids is not None and each.document_ids.tolist(), each.laid.counts.tolist())
        for each in executed.windowed
    ]  # fmt: skip


class TestWindowed:
    """Which texts were read in several windows; those that fit into one are not among them."""

    @pytest.fixture(autouse=True, params=[8192, 2])
    def together(self, request, monkeypatch) -> None:
        """How many documents are encoded together."""
        monkeypatch.setitem(CHUNK, "bi", request.param)

    def test_queries_and_documents(self, releases) -> None:
        """57 words in windows of six, every three, are eighteen; what is read in parts is told in suite order."""
        found = ranked(releases("bi", extra=BEST), ("jet", LONG, "wing", LONG), (QUERY, LONG))
        assert told(found) == [
            ("query", None, ["q1"], False, [18]), ("document", None, False, ["d01", "d03"], [18, 18]),
        ]  # fmt: skip
        assert [each.detail for each in found.remarks] == [
            "1 query read in 18 windows, the first 'q1'", "2 documents read in 36 windows, the first 'd01'",
        ]  # fmt: skip
        assert ranked(releases("other"), (LONG,)).windowed == ()

    def test_given_documents_and_pairs(self, releases) -> None:
        """A pair is told by both; seven words of a document stand behind a query of two, eight behind one of one."""
        suite = suite_of((LONG, "jet", LONG), ("the jet", "wing"))
        given = {"q1": Given(np.array(["d02", "d01"], dtype=object), np.full(2, np.nan)),
                 "q0": Given(np.array(["d00", "d02"], dtype=object), np.full(2, np.nan))}  # fmt: skip
        cross = releases("cross", extra=TestCross.TEXT)
        apart = rerank({"a": Reranking(releases("bi", extra=BEST), given, CUT)}, suite, {}, GRID)["a"]
        joint = rerank({"a": Reranking(cross, given, CUT)}, suite, {}, GRID)["a"]
        assert told(apart) == [("document", None, False, ["d00", "d02"], [18, 18])]
        assert told(joint) == [("pair", None, ["q0", "q0", "q1"], ["d00", "d02", "d02"], [10, 10, 10])]
        laid = joint.windowed[0].laid
        assert laid.around.tolist() == [5, 5, 4] and laid.tokens[[0, 10, 20], 1].tolist() == [7, 7, 8]

    def test_members_say_who_they_are(self, releases) -> None:
        suite = suite_of((LONG, "jet"), ("the jet",))
        first = retrieve({"a": Retrieval(releases("bi", extra=BEST), CUT)}, suite, {}, GRID)["a"]
        given = lists_of(first, suite)
        second = rerank({"a": Reranking(releases("cross", extra=TestCross.TEXT), given, CUT)}, suite, {}, GRID)["a"]
        both = staged(first, second)
        assert [row[:2] for row in told(both)] == [("document", "retriever"), ("pair", "reranker")]
        said = Fusion(weights={"x": 1.0, "y": 1.0}, scales={"x": "none", "y": "none"})
        fused = fuse(said, {"x": both, "y": first}, CUT, {})
        assert [row[1] for row in told(fused)] == ["x/retriever", "x/reranker", "y"]
