"""Given documents in a release's order: pairs scored each by itself, once for all who want them."""

from collections.abc import Callable, Mapping
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from harness.candidate.cross import PairEncoder
from harness.errors import Misconfigured
from harness.output.case import OutputStatus
from harness.release.open import Release
from harness.run.given import Given, given_of, shared
from harness.run.output import Executed
from harness.run.ranking import Cut
from harness.run.rerank import Reranking, rerank
from harness.run.retrieve import Retrieval, retrieve
from harness.run.search import score_pairs
from harness.suite.case import Candidate

from ..candidate.tiny import save_sparse
from .conftest import QUERIES, TEXTS, suite_of

GRID = 1e-6
CUT = Cut(100, "expected", False)
EVERY = tuple(f"d{i:02}" for i in range(len(TEXTS)))


def lists(*documents: str, cases: tuple[str, ...] = ("q0", "q1", "q2", "q3")) -> dict[str, Given]:
    return {case: Given(np.array(documents, dtype=object), np.full(len(documents), np.nan)) for case in cases}


def reranked(release: Release, given: Mapping[str, Given], cut: Cut = CUT) -> Executed:
    return rerank({"a": Reranking(release, given, cut)}, suite_of(), {}, GRID)["a"]


def scores(executed: Executed) -> dict[str, dict[str, float]]:
    return {
        each.case_id: dict(zip(each.candidates.documents, each.candidates.scores, strict=True))
        for each in executed.outputs
        if each.candidates is not None
    }


class TestCross:
    def test_scores_and_raw_numbers_are_the_librarys(self, releases, models) -> None:
        """The library's own sigmoid over its own logits, in its own batches."""
        found = reranked(releases("cross"), lists(*EVERY))
        library = CrossEncoder(str(models["cross"]), device="cpu", local_files_only=True)
        for output, query in zip(found.outputs, QUERIES, strict=True):
            pairs = [(query, text) for text in TEXTS]
            np.testing.assert_allclose(output.candidates.scores, library.predict(pairs), atol=1e-5)
            raw = library.predict(pairs, activation_fn=torch.nn.Identity())
            np.testing.assert_allclose(output.candidates.logits[:, 0], raw, atol=1e-4)
            best = output.candidates.documents[np.argmax(output.candidates.scores)]
            assert output.ranking.documents[0] == best and len(output.ranking.documents) == len(TEXTS)

    def test_a_pairs_score_does_not_depend_on_what_else_is_given(self, releases) -> None:
        """All twelve, three of them, and all backwards: the same bits."""
        release = releases("cross")
        whole, some = scores(reranked(release, lists(*EVERY))), scores(reranked(release, lists("d03", "d01", "d07")))
        assert all(some[case][document] == whole[case][document] for case in some for document in some[case])
        assert scores(reranked(release, lists(*EVERY[::-1]))) == whole

    def test_what_was_cut_is_told_by_pair_and_text(self, releases) -> None:
        """Eight tokens of which three are special: of the longest document the most is lost."""
        found = reranked(releases("cross", extra="[input]\nmax_length = 8\n"), lists("d05", "d09"))
        first = found.outputs[0].candidates
        assert first.kept.tolist() == [[4, 1], [2, 3]] and first.lost.tolist() == [[0, 0], [2, 7]]
        assert (found.outputs[0].tokens_kept, found.outputs[0].tokens_lost) == (8, 9)
        assert [remark.kind for remark in found.remarks] == ["cut-pair"]

    def test_cases_without_a_list_have_no_output(self, releases) -> None:
        """And an empty list is an empty ranking."""
        found = reranked(releases("cross"), lists("d01", cases=("q2",)) | lists(cases=("q0",)))
        assert [(each.case_id, len(each.ranking.documents)) for each in found.outputs] == [("q0", 0), ("q2", 1)]


class TestFailures:
    @pytest.fixture
    def wingless(self, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
        """Makes every pair with a wing do something."""

        def make(does: Callable[[], object]) -> None:
            whole = PairEncoder.rows

            def rows(self, tokens, width):
                wing = self.tokenizer.convert_tokens_to_ids("wing")
                features = whole(self, tokens, width)
                if any(wing in each.features["input_ids"] for each in tokens):
                    features["scores"] = features["scores"].clone()
                    features["scores"][(features["input_ids"] == wing).any(1)] = does()
                return features

            monkeypatch.setattr(PairEncoder, "rows", rows)

        return make

    def test_a_pair_that_raises_fails_its_case_by_name(self, releases, wingless) -> None:
        """Of documents 1 and 6 the first is named; a case that wasn't given them is whole."""

        def raises() -> object:
            raise RuntimeError("no wings")

        wingless(raises)
        found = reranked(releases("cross"), lists("d00", "d01", "d06", cases=("q0",)) | lists("d00", cases=("q2",)))
        first, second = found.outputs
        assert (first.status, first.non_finite) == (OutputStatus.FAILED, False)
        assert first.reason == "document 'd01': RuntimeError: no wings" and first.ranking is None
        assert np.isnan(first.candidates.scores).tolist() == [False, True, True]
        assert second.status is OutputStatus.OK

    def test_a_score_that_is_no_number_fails_its_case_by_name(self, releases, wingless) -> None:
        """It could stand anywhere."""
        wingless(lambda: float("nan"))
        [first] = reranked(releases("cross"), lists("d00", "d06", cases=("q0",))).outputs
        assert (first.status, first.non_finite) == (OutputStatus.FAILED, True)
        assert first.reason == "document 'd06': its score is no finite number"


class TestApart:
    @pytest.mark.parametrize("model", ["bi", "other"])
    def test_a_given_document_has_the_score_of_the_search(self, releases, model) -> None:
        """To the bit, by cosine of unit vectors and of others; and the library's within rounding."""
        release, suite = releases(model), suite_of()
        searched = retrieve({"a": Retrieval(release, CUT)}, suite, {}, GRID)["a"]
        given = scores(reranked(release, lists("d04", "d00", "d11")))
        for output in searched.outputs:
            known = dict(zip(output.ranking.documents, output.ranking.scores, strict=True))
            assert {document: known[document] for document in given[output.case_id]} == given[output.case_id]
        library = SentenceTransformer(str(release.model_folder), device="cpu", local_files_only=True)
        expected = library.similarity(library.encode(list(QUERIES)), library.encode([TEXTS[i] for i in (4, 0, 11)]))
        np.testing.assert_allclose([list(each.values()) for each in given.values()], expected.numpy(), atol=1e-5)

    def test_sparse_vectors_have_the_score_of_the_search(self, releases, tmp_path) -> None:
        """To the bit, over the whole vocabulary."""
        model = save_sparse(tmp_path / "splade")
        release = releases("splade", f'interaction = "sparse"\n[model]\nsource = "path:{model}"\n')
        searched = retrieve({"a": Retrieval(release, CUT)}, suite_of(), {}, GRID)["a"]
        given = scores(reranked(release, lists(*EVERY)))
        for output in searched.outputs:
            known = dict(zip(output.ranking.documents, output.ranking.scores, strict=True))
            assert known == given[output.case_id] and len(set(known.values())) > 1

    def test_a_document_that_raises_fails_the_cases_that_were_given_it(self, releases, monkeypatch) -> None:
        from harness.candidate.side import SideEncoder

        whole = SideEncoder.rows

        def rows(self, tokens, *more):
            if any(self.tokenizer.convert_tokens_to_ids("jet") in each.features["input_ids"] for each in tokens):
                raise RuntimeError("no jets")
            return whole(self, tokens, *more)

        monkeypatch.setattr(SideEncoder, "rows", rows)
        found = reranked(releases("bi"), lists("d00", "d05", cases=("q0",)) | lists("d00", cases=("q1", "q3")))
        assert [each.reason for each in found.outputs] == [
            "document 'd05': RuntimeError: no jets", "", "the query: RuntimeError: no jets",
        ]  # fmt: skip

    def test_an_interaction_without_a_scorer_is_refused(self, recorded) -> None:
        with pytest.raises(Misconfigured, match="a recorded release, which scores no given documents"):
            reranked(recorded("old", "q0 d00 1"), lists("d00"))


class TestTogether:
    def test_pairs_of_two_releases_are_read_once(self, releases, counted: SimpleNamespace) -> None:
        """Two names of one model, lists of two and of three that share two, four cases: 12 pairs and not 20."""
        a, b = releases("a", model="cross"), releases("b", model="cross")
        wanted = {
            "a": Reranking(a, lists("d00", "d01"), CUT),
            "b": Reranking(b, lists("d01", "d02", "d00"), CUT),
        }
        found = rerank(wanted, suite_of(), {}, GRID)
        assert counted.pairs == 12
        alone = {name: scores(reranked(each.release, each.given)) for name, each in wanted.items()}
        assert {name: scores(each) for name, each in found.items()} == alone

    def test_documents_of_two_encoders_are_read_once(self, releases, counted: SimpleNamespace) -> None:
        """Four queries and three documents, whoever asks."""
        a, b = releases("a", model="bi"), releases("b", model="bi")
        wanted = {"a": Reranking(a, lists("d00", "d01"), CUT), "b": Reranking(b, lists("d01", "d02"), CUT)}
        rerank(wanted, suite_of(), {}, GRID)
        assert counted.texts == 7

    def test_joint_and_separate_readers_stand_side_by_side(self, releases) -> None:
        wanted = {name: Reranking(releases(name), lists("d00", "d01"), CUT) for name in ("bi", "cross", "third")}
        found = rerank(wanted, suite_of(), {}, GRID)
        assert {name: scores(each) for name, each in found.items()} == {
            name: scores(reranked(each.release, each.given)) for name, each in wanted.items()
        }

    def test_what_is_shared_is_parted_by_who_wants_it(self) -> None:
        """Numbers 1 to 5 among three; no part is larger than two, and every number has its own wishers."""
        wanted = {"a": np.array([3, 1, 2]), "b": np.array([2, 3, 4]), "c": np.array([5])}
        parts = [(part.names, part.numbers.tolist()) for part in shared(wanted, 1 << 10)]
        assert sorted(parts) == [(("a",), [1]), (("a", "b"), [2, 3]), (("b",), [4]), (("c",), [5])]
        small = list(shared({"a": np.arange(5)}, 2))
        assert [part.numbers.tolist() for part in small] == [[0, 1], [2, 3], [4]]
        assert list(shared({}, 2)) == []


class TestLists:
    def test_a_suites_lists_keep_order_and_scores(self) -> None:
        """The query's own document goes where it is to be dropped."""
        candidates = {"q0": (Candidate("d02", 0.5), Candidate("q0", None))}
        kept, dropped = (given_of(candidates, drop_self=drop)["q0"] for drop in (False, True))
        assert kept.documents.tolist() == ["d02", "q0"] and kept.scores[0] == 0.5 and np.isnan(kept.scores[1])
        assert dropped.documents.tolist() == ["d02"]

    def test_a_ranking_is_cut_at_the_suites_depth_and_the_scores_are_not(self, releases) -> None:
        [first, *_] = reranked(releases("cross"), lists(*EVERY), Cut(3, "expected", False)).outputs
        assert len(first.ranking.documents) == 3 and np.isfinite(first.candidates.scores).all()

    def test_an_empty_document_is_scored_and_counted(self, releases) -> None:
        """It was given."""
        suite = suite_of(("the flow", ""), ("heat",))
        wanted = {"a": Reranking(releases("cross"), lists("d00", "d01", cases=("q0",)), CUT)}
        found = rerank(wanted, suite, {}, GRID)["a"]
        assert len(found.outputs[0].ranking.documents) == 2
        assert [(each.kind, each.count) for each in found.remarks] == [("empty-candidate", 1)]


class TestScorePairs:
    def test_dot_and_cosine_by_hand(self) -> None:
        """(3, 4) and (4, 3): 24, and 24 / 25 as cosine."""
        queries, documents = np.array([[3, 4]], np.float32), np.array([[0, 2], [4, 3]], np.float32)
        pairs = np.array([[0, 1], [0, 0]])
        found = {kind: score_pairs(queries, documents, pairs, grid=1e-6, score_type=kind) for kind in ("dot", "cosine")}
        np.testing.assert_allclose(found["dot"], [24, 8])
        np.testing.assert_allclose(found["cosine"], [0.96, 0.8])

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    @pytest.mark.parametrize("kind", ["dot", "cosine"])
    def test_a_vector_that_is_not_finite_has_no_score(self, bad: float, kind: str) -> None:
        """Of either side, and a neighbour keeps its own."""
        vectors = np.array([[bad, 1], [1, 0]], np.float32)
        found = score_pairs(vectors, vectors, np.array([[0, 1], [1, 0], [1, 1]]), grid=1e-6, score_type=kind)
        assert np.isnan(found).tolist() == [True, True, False]
