"""The main job with late interaction, of a BERT of random weights as the library saves it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.output.decision import Outcome

from ..candidate.late_folder import save_late

DOCUMENTS = {
    "d1": "the flow of heat over a plate", "d2": "a shock wave, a jet.", "d3": "lift and drag of a wing",
    "d4": "the body at speed: heat!", "d5": "the layer on a flat plate", "d6": "a shock wave, a jet.",
    "d7": "heat " * 40, "empty": "",
}  # fmt: skip
QUERIES = {"q1": "heat over a plate", "q2": "shock wave", "q3": "drag of the wing", "long": "the layer " * 30}
GRID = 1e-6


def suite(root: Path, documents: dict[str, str], queries: dict[str, str]) -> None:
    folder = root / "suites" / "live"
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", documents), ("queries", queries)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    (folder / "qrels" / "test.tsv").write_text("".join(f"{query}\td1\t1\n" for query in queries))
    (folder / "suite.toml").write_text(
        'schema = "harness.suite.v1"\nname = "live"\ntask = "retrieval"\nsource = { format = "beir" }\n'
        '[metrics]\nprimary = "RR@10"\n[uncertainty]\ndraws = 200\n'
        '[[rules]]\nid = "h"\nkind = "no-worse"\nmetric = "RR@10"\nmargin = 0.5\n'
    )


@pytest.fixture(scope="module")
def admitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sum over filled up queries, a mean over queries as they are, and one that counts no special token and no mark:
    each proven once.
    """
    root = tmp_path_factory.mktemp("admitted")
    bare = ["[CLS]", "[SEP]", ".", ","]
    saved = {
        "sum": save_late(root / "models/sum"),
        "mean": save_late(root / "models/mean", expansion=None, query_length=20, similarity="meanmaxsim"),
        "bare": save_late(
            root / "models/bare", expansion=None, skip=bare, skip_tasks=["query", "document"],
            prompts={"query": ".", "document": ""},
        ),
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name, model in saved.items():
            (root / "releases" / name).mkdir(parents=True)
            (root / "releases" / name / "release.toml").write_text(
                f'schema = "harness.release.v1"\nname = "{name}"\ninteraction = "late"\n'
                f'[model]\nsource = "path:../../{model.relative_to(root)}"\n'
            )
            found = harness.admit(name)
            assert found.ok and found.state == "RECONCILED", [check for check in found.checks if not check.ok]
    return root


@pytest.fixture
def live(tmp_path: Path, admitted: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(admitted, tmp_path, dirs_exist_ok=True)
    return tmp_path


def rankings(side: str) -> dict[str, list[tuple[str, float]]]:
    found: dict[str, list[tuple[str, float]]] = {}
    rows = harness.sql(
        f"SELECT case_id, document_id, score FROM rankings WHERE side = '{side}' ORDER BY case_id, position"
    ).rows
    for case_id, document_id, score in rows:
        found.setdefault(str(case_id), []).append((str(document_id), float(score)))
    return found


def failed() -> dict[str, str]:
    return dict(harness.sql("SELECT case_id, reason FROM cases_without_output WHERE side = 'candidate'").rows)


@pytest.mark.usefixtures("plain_page")
class TestLate:
    @pytest.mark.parametrize("chunk", [512, 3])
    def test_rankings_are_brute_force_by_the_librarys_own_similarity(
        self, live: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
    ) -> None:
        """To the grid, a sum on one side and a mean on the other; the empty document is left out, duplicates tie."""
        from sentence_transformers import MultiVectorEncoder

        from harness.run import retrieve

        monkeypatch.setitem(retrieve.CHUNK, "late", chunk)
        suite(live, DOCUMENTS, QUERIES)
        harness.freeze("live")
        harness.run("live", candidate="sum", parent="mean")
        filled = {key: text for key, text in DOCUMENTS.items() if text}
        for side, name in (("candidate", "sum"), ("parent", "mean")):
            model = MultiVectorEncoder(str(live / "models" / name / "model"), device="cpu", local_files_only=True)
            documents = model.encode_document([text.strip() for text in filled.values()])
            scores = model.similarity(model.encode_query([text.strip() for text in QUERIES.values()]), documents)
            for (query, ranked), expected in zip(sorted(rankings(side).items()), _sorted(scores.numpy()), strict=True):
                by_name = dict(zip(filled, expected, strict=True))
                assert dict(ranked) == pytest.approx(by_name, abs=1e-5), query
                assert [score for _, score in ranked] == sorted((score for _, score in ranked), reverse=True)
                assert dict(ranked)["d2"] == dict(ranked)["d6"] and len(ranked) == 7
                assert all(score == np.rint(score / GRID) * GRID for _, score in ranked)

    def test_given_documents_are_scored_as_by_the_search(self, live: Path) -> None:
        """To the bit, sum and mean; the empty document is read too, for it is given."""
        suite(live, DOCUMENTS, QUERIES)
        harness.freeze("live")
        harness.run("live", candidate="sum", parent="mean")
        searched = {side: rankings(side) for side in ("candidate", "parent")}
        shutil.rmtree(live / ".harness")
        pairs = [f"{query}\t{document}\n" for query in QUERIES for document in DOCUMENTS]
        (live / "suites/live/candidates.tsv").write_text("".join(pairs))
        toml = live / "suites/live/suite.toml"
        given = toml.read_text().replace('"retrieval"', '"reranking"')
        toml.write_text(f'{given}[candidates]\npath = "candidates.tsv"\n')
        harness.freeze("live")
        harness.run("live", candidate="sum", parent="mean")
        for side, found in searched.items():
            given_too = {
                case: [each for each in ranked if each[0] != "empty"] for case, ranked in rankings(side).items()
            }
            assert given_too == found and all(len(ranked) == 8 for ranked in rankings(side).values())

    def test_what_was_cut_is_told_of_its_text(self, live: Path) -> None:
        """A query of 61 words' tokens keeps twelve; a document of 40 words keeps 24."""
        suite(live, DOCUMENTS, QUERIES)
        harness.freeze("live")
        found = harness.run("live", candidate="sum", parent="none")
        assert harness.sql("SELECT case_id, tokens_kept, tokens_lost FROM cut_cases").rows == (("long", 12, 51),)
        assert found.counts.truncated == 1 and any("'d7'" in remark for remark in found.remarks)

    def test_a_query_without_a_row_that_counts_fails_by_name(self, live: Path) -> None:
        """A mark, where marks are skipped."""
        suite(live, {"d1": "the flow", "d2": "a wing"}, {"q1": "the flow", "q2": ","})
        harness.freeze("live")
        assert harness.run("live", candidate="bare", parent="none").decision.outcome is Outcome.FAIL
        assert failed() == {"q2": "none of its rows counts"}

    def test_a_document_without_one_fails_every_case_and_is_named(self, live: Path) -> None:
        """It could stand anywhere in every ranking."""
        suite(live, {"d1": "the flow", "d2": ".,."}, {"q1": "the flow", "q2": "a wing"})
        harness.freeze("live")
        assert harness.run("live", candidate="bare", parent="none").decision.outcome is Outcome.FAIL
        reason = "1 documents have no vector, the first 'd2': none of its rows counts"
        assert failed() == {"q1": reason, "q2": reason}

    def test_a_case_whose_rows_are_no_numbers_fails_by_name(self, live: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """One value of one row is enough."""
        from harness.run import retrieve

        whole = retrieve.encode

        def broken(encoders, texts, kept):
            encoded = whole(encoders, texts, kept)
            if len(texts) == len(QUERIES):
                encoded[0].values[encoded[0].offsets[1], 0] = np.nan
            return encoded

        suite(live, DOCUMENTS, QUERIES)
        harness.freeze("live")
        monkeypatch.setattr(retrieve, "encode", broken)
        assert harness.run("live", candidate="sum", parent="none").decision.outcome is Outcome.FAIL
        assert list(failed()) == ["q2"] and "finite" in failed()["q2"]


def _sorted(scores: np.ndarray) -> np.ndarray:
    """Rows in the order of the queries' names."""
    return scores[np.argsort(list(QUERIES))]
