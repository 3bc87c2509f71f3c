"""Two stages: a retriever's first documents in a reranker's order, exactly so many, each pair scored once."""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sentence_transformers import CrossEncoder, SentenceTransformer

from harness.output.case import OutputStatus
from harness.release.open import Release
from harness.run import compose
from harness.run.compose import Task, carry_out, node_of
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.suite.case import Case, Suite

from .conftest import QUERIES, TEXTS, suite_of

GRID = 1e-6
CUT = Cut(100, "expected", False)


def two(retriever: str = "bi", reranker: str = "cross", depth: int = 4) -> str:
    return f'interaction = "two-stage"\nretriever = "{retriever}"\nreranker = "{reranker}"\ndepth = {depth}\n'


def executed(release: Release, suite: Suite | None = None, cut: Cut = CUT) -> Executed:
    return together({"a": release}, suite, cut)["a"]


def together(releases: Mapping[str, Release], suite: Suite | None = None, cut: Cut = CUT) -> dict[str, Executed]:
    nodes = {name: node_of(release, cut) for name, release in releases.items()}
    return carry_out(nodes, Task(suite or suite_of(), {}, GRID))


@pytest.fixture
def staged(releases):
    """Opens a two-stage release over a bi-encoder and a cross-encoder."""

    def make(name: str = "both", *, depth: int = 4, retriever: str = "bi", reranker: str = "cross") -> Release:
        for member in (retriever, reranker):
            if member in ("bi", "other", "cross", "third"):
                releases(member)
        return releases(name, two(retriever, reranker, depth))

    return make


class TestTwoStages:
    def test_it_is_the_librarys_encode_then_predict(self, staged, models) -> None:
        """By brute force over everything, for each of four queries."""
        found = executed(staged())
        bi = SentenceTransformer(str(models["bi"]), device="cpu", local_files_only=True)
        cross = CrossEncoder(str(models["cross"]), device="cpu", local_files_only=True)
        near = bi.similarity(bi.encode(list(QUERIES)), bi.encode(list(TEXTS))).numpy()
        for row, (output, query) in enumerate(zip(found.outputs, QUERIES, strict=True)):
            first = np.argsort(-near[row], kind="stable")[:4]
            assert output.candidates.documents.tolist() == [f"d{i:02}" for i in first]
            np.testing.assert_allclose(output.candidates.first_scores, near[row][first], atol=1e-5)
            judged = cross.predict([(query, TEXTS[i]) for i in first])
            expected = [f"d{first[i]:02}" for i in np.argsort(-judged, kind="stable")]
            assert output.ranking.documents.tolist() == expected
            np.testing.assert_allclose(output.ranking.scores, np.sort(judged)[::-1], atol=1e-5)

    def test_a_tied_group_across_the_depth_is_cut_by_name(self, staged) -> None:
        """Six texts alike and two places: the first two by ID, whatever the order in which they stand."""
        suite = suite_of(("a wing",) * 6 + ("the flow",), ("a wing",))
        assert executed(staged(depth=2), suite).outputs[0].candidates.documents.tolist() == ["d00", "d01"]
        trec = executed(staged(depth=2), suite, Cut(100, "trec", False)).outputs[0]
        assert trec.candidates.documents.tolist() == ["d05", "d04"]

    def test_judgements_do_not_choose_the_candidates(self, staged) -> None:
        """A tied group of two thousand is not cut down to those that were judged."""
        suite = suite_of(("a wing",) * 2000, ("a wing",))
        task = Task(suite, {"q0": {"d1999", "d1500"}}, GRID)
        found = carry_out({"a": node_of(staged(depth=2), CUT)}, task)["a"]
        assert found.outputs[0].candidates.documents.tolist() == ["d00", "d01"]

    def test_the_reranker_may_read_texts_apart(self, staged) -> None:
        """A second bi-encoder, by its own scores."""
        found = executed(staged(reranker="other"))
        alone = executed(staged("o", reranker="other", depth=12))
        for output, whole in zip(found.outputs, alone.outputs, strict=True):
            known = dict(zip(whole.ranking.documents, whole.ranking.scores, strict=True))
            assert len(output.ranking.documents) == 4
            assert all(known[each] == score for each, score in zip(*_pairs(output), strict=True))

    def test_the_own_document_of_a_query_takes_no_place(self, staged) -> None:
        """Where it is to be dropped, so many others are given."""
        suite = replace(suite_of(), cases=(Case("d06", "the wing", "promotion", "g", True, {}),))
        found = executed(staged(), suite, Cut(100, "expected", True)).outputs[0]
        assert len(found.candidates.documents) == 4 and "d06" not in found.candidates.documents


def _pairs(output) -> tuple[list[str], list[float]]:
    return output.ranking.documents.tolist(), output.ranking.scores.tolist()


class TestRecordedRetriever:
    def test_its_documents_are_read_and_strangers_left_out(self, staged, recorded) -> None:
        """Two of the first three are in the corpus; a case that is not recorded is missing, and not zero."""
        recorded("bm25", "q0 d03 9", "q0 gone 8", "q0 d01 7", "q0 d02 6", "q1 d05 1", "q3 d00 nan")
        found = executed(staged(retriever="bm25", depth=3))
        q0, q1, q2, q3 = found.outputs
        assert q0.candidates.documents.tolist() == ["d03", "d01"] and q0.candidates.first_scores.tolist() == [9, 7]
        assert q1.ranking.documents.tolist() == ["d05"]
        assert (q2.status, q2.reason.partition(":")[0]) == (OutputStatus.MISSING, "retriever")
        assert (q3.status, q3.non_finite, q3.candidates) == (OutputStatus.FAILED, True, None)
        assert any(each.detail.startswith("retriever: rows with 1 documents") for each in found.remarks)


class TestRecordedReranker:
    def test_it_orders_the_candidates_by_what_it_recorded_of_them(self, staged, releases, recorded) -> None:
        """What it recorded besides is no candidate, and a candidate that it lacks stands nowhere."""
        first = [each.ranking.documents.tolist() for each in executed(releases("bi")).outputs]
        beyond = first[0][4]
        recorded("old", f"q0 {first[0][2]} 1", f"q0 {first[0][0]} 9", f"q0 {beyond} 10", f"q1 {first[1][0]} 1")
        found = executed(staged(reranker="old"))
        q0, q1, q2, _ = found.outputs
        assert q0.ranking.documents.tolist() == [first[0][0], first[0][2]]
        assert q0.candidates.documents.tolist() == first[0][:4] and len(q1.ranking.documents) == 1
        assert (q2.status, q2.candidates.documents.tolist()) == (OutputStatus.MISSING, first[2][:4])
        assert q2.reason.startswith("reranker: the recorded outputs have no line")
        assert {each.kind for each in found.remarks} == {"not-a-candidate", "candidate-not-recorded"}


class TestTogether:
    def test_what_two_releases_share_is_made_once(self, staged, counted: SimpleNamespace) -> None:
        """One retriever: 16 texts. Of 4 × 4 pairs by one head and as many by another: 32."""
        one, other = staged("one"), staged("two", reranker="third")
        found = together({"a": one, "b": other})
        assert (counted.texts, counted.pairs) == (16, 32)
        assert [each.candidates.documents.tolist() for each in found["a"].outputs] == [
            each.candidates.documents.tolist() for each in found["b"].outputs
        ]
        assert _all(found["a"]) == _all(executed(one)) and _all(found["b"]) == _all(executed(other))

    def test_one_retriever_of_two_releases_searches_once(self, staged, monkeypatch) -> None:
        """Equal rankings are one; at another depth it is another."""
        asked, search = [], compose.retrieve
        monkeypatch.setattr(
            compose, "retrieve", lambda wanted, *more: asked.append(len(wanted)) or search(wanted, *more)
        )
        together({"a": staged("one"), "b": staged("two", reranker="third")})
        together({"a": staged("one"), "b": staged("two", depth=6)})
        assert [count for count in asked if count] == [1, 2]

    def test_pairs_that_two_depths_share_are_read_once(self, staged, counted: SimpleNamespace) -> None:
        """The first four of six: six pairs a query, and the texts once."""
        together({"a": staged("one"), "b": staged("two", depth=6)})
        assert (counted.texts, counted.pairs) == (16, 24)

    def test_a_release_beside_its_own_retriever(self, staged, releases, counted: SimpleNamespace) -> None:
        """What is searched to one depth and to another is encoded once."""
        found = together({"a": staged(), "b": releases("bi")})
        assert counted.texts == 16
        assert len(found["b"].outputs[0].ranking.documents) == 12

    def test_what_either_stage_did_not_see_is_told(self, releases) -> None:
        """The bi-encoder cuts two documents at six tokens; the pair that lost most stands for its case."""
        releases("bi", extra="[input]\nmax_length = 6\n"), releases("cross", extra="[input]\nmax_length = 9\n")
        found = executed(releases("both", two(depth=12)))
        assert {each.document_id for each in found.cut_documents} >= {"d09"}
        kinds = [(each.kind, each.detail.partition(":")[0]) for each in found.remarks]
        assert kinds == [("cut-document", "retriever"), ("cut-pair", "reranker")]
        lost = max(found.outputs[0].candidates.lost.sum(axis=1))
        assert found.outputs[0].tokens_lost == lost > 0


def _all(executed: Executed) -> list[tuple[list[str], list[float]]]:
    return [_pairs(each) for each in executed.outputs]
