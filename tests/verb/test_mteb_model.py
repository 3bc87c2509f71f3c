"""A release as a model of MTEB: the same vectors, the same scores, the same rankings."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

import harness
from harness.errors import Misconfigured, NotAdmitted, NotFound, Stopped
from harness.release.admit import Check
from harness.verb.mteb_model import SearchModel, TextModel

from ..candidate.conftest import WORDS, save_cross, save_tiny, write_release
from ..candidate.late_folder import save_late
from ..candidate.tiny import save_router

with_mteb = pytest.mark.skipif(importlib.util.find_spec("mteb") is None, reason="the package mteb is not installed")
TASK = SimpleNamespace(name="Tiny")
PLACE: dict[str, Any] = {"task_metadata": TASK, "hf_split": "test", "hf_subset": "default"}
rng = np.random.default_rng(11)
DOCUMENTS = {f"d{i}": " ".join(rng.choice(WORDS, 3 + i % 9)) for i in range(30)} | {"empty": ""}
QUERIES = {f"q{i}": " ".join(rng.choice(WORDS, 3)) for i in range(12)}
GIVEN = {query: [f"d{each}" for each in rng.choice(30, 8, replace=False)] for query in QUERIES}
RELEVANT = {query: {GIVEN[query][0]: 1, GIVEN[query][5]: 2} for query in QUERIES}
PROMPTS = '[prompts]\nquery = "the: "\ndocument = "flow "\n[prompts.Tiny]\nquery = "heat: "\n'
SCORE = '[override.score]\ntype = "%s"\n'
WINDOWS = '[input.window]\nsize = 7\nstride = 3\naggregation = "best"\n'
FUSION = '[fusion]\nweights = { cosine = 1.0, late = 0.5 }\nscales = { cosine = "none", late = "min-max" }\n'


def suite(root: Path, task: str) -> None:
    """The data as a BEIR collection: the suite is called as MTEB's task, so that its prompts are meant in both."""
    folder = root / "suites" / task
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("corpus", DOCUMENTS), ("queries", QUERIES)):
        lines = [json.dumps({"_id": key, "text": text}) + "\n" for key, text in texts.items()]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    judged = [f"{query}\t{document}\t{grade}\n" for query in QUERIES for document, grade in RELEVANT[query].items()]
    (folder / "qrels" / "test.tsv").write_text("".join(judged))
    (folder / "candidates.tsv").write_text("".join(f"{query}\t{each}\n" for query in QUERIES for each in GIVEN[query]))
    lists = '[candidates]\npath = "candidates.tsv"\n' if task == "reranking" else ""
    (folder / "suite.toml").write_text(
        f'schema = "harness.suite.v1"\nname = "Tiny"\ntask = "{task}"\nsource = {{ format = "beir" }}\n{lists}'
        '[ranking]\ndepth = 31\n[metrics]\nprimary = "nDCG@10"\nreport = ["nDCG@10", "AP@10", "RR@10"]\n'
        '[uncertainty]\ndraws = 200\n[[rules]]\nid = "h"\nkind = "at-least"\nmetric = "nDCG@10"\nvalue = 0\n'
    )
    harness.freeze(task)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Frozen suites, and releases of tiny models of random weights, each proven once."""
    root = tmp_path_factory.mktemp("made")
    models = {
        "cosine": (
            save_tiny(root / "models/bi", normalise=False),
            "bi",
            PROMPTS + '[override.score]\ntype = "cosine"\n',
        ),
        "dot": (root / "models/bi/model", "bi", '[override.score]\ntype = "dot"\n'),
        "cut": (save_tiny(root / "models/cut", truncate_dim=16), "bi", ""),
        "windows": (root / "models/bi/model", "bi", SCORE % "cosine" + WINDOWS),
        "router": (save_router(root / "models/router"), "bi", ""),
        "cross": (save_cross(root / "models/cross"), "cross", ""),
        "late": (save_late(root / "models/late"), "late", ""),
    }
    (root / "suites").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        for name, (model, interaction, more) in models.items():
            write_release(root / "releases" / name, f'[model]\nsource = "path:{model}"\n{more}', interaction)
        write_release(root / "releases/two", 'retriever = "cosine"\nreranker = "cross"\ndepth = 9\n', "two-stage")
        write_release(root / "releases/fusion", FUSION, "fusion")
        for name in (*models, "two", "fusion"):
            found = harness.admit(name)
            assert found.ok, (name, [check for check in found.checks if not check.ok])
        for task in ("retrieval", "reranking"):
            suite(root, task)
    return root


@pytest.fixture
def project(tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for room in ("suites", "releases"):
        shutil.copytree(made / room, tmp_path / room)
    return tmp_path


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of MTEB's own: nothing but what a model is said to be is asked of the package."""
    package, models = ModuleType("mteb"), ModuleType("mteb.models")
    models.ModelMeta = SimpleNamespace
    monkeypatch.setitem(sys.modules, "mteb", package)
    monkeypatch.setitem(sys.modules, "mteb.models", models)


def batches(texts: list[str], size: int = 5) -> list[Mapping[str, list[str]]]:
    return [{"text": texts[start : start + size]} for start in range(0, len(texts), size)]


def rows(texts: Mapping[str, str], **more: str) -> list[Mapping[str, str]]:
    return [{"id": name, "text": text, **more} for name, text in texts.items()]


def searched(name: str, top_k: int = 31, **options: Any) -> dict[str, dict[str, float]]:
    model = harness.mteb_model(name)
    assert isinstance(model, SearchModel)
    model.index(rows(DOCUMENTS), **PLACE, encode_kwargs={})
    return model.search(rows(QUERIES), **PLACE, top_k=top_k, encode_kwargs={}, **options)


def ran(name: str, task: str = "retrieval") -> dict[str, dict[str, float]]:
    """By case, scores as a run keeps them."""
    harness.run(task, candidate=name, parent="none", cache=False)
    found: dict[str, dict[str, float]] = {case: {} for case in QUERIES}
    for case, document, score in harness.sql("SELECT case_id, document_id, score FROM rankings").rows:
        found[str(case)][str(document)] = float(str(score))
    return found


def refused(name: str) -> Misconfigured:
    with pytest.raises(Misconfigured) as caught:
        harness.mteb_model(name)
    return caught.value


@pytest.mark.usefixtures("metadata")
class TestTexts:
    def model(self, name: str) -> TextModel:
        found = harness.mteb_model(name)
        assert isinstance(found, TextModel)
        return found

    def test_vectors_are_the_librarys_own(self, project: Path, made: Path) -> None:
        """With the prompt of the side on a suite of the task's name, in whatever batches."""
        from sentence_transformers import SentenceTransformer

        texts = list(QUERIES.values())
        own = SentenceTransformer(str(made / "models/bi/model"), device="cpu")
        model = self.model("cosine")
        for side, prompt, task in (
            ("query", "heat: ", TASK), ("document", "flow ", TASK), ("query", "the: ", SimpleNamespace(name="Other")),
            (None, "heat: ", TASK),
        ):  # fmt: skip
            place = {**PLACE, "task_metadata": task}
            found = model.encode(batches(texts), **place, prompt_type=side, batch_size=3, show_progress_bar=False)
            assert found == pytest.approx(own.encode(texts, prompt=prompt), abs=1e-5)
            assert np.array_equal(found, model.encode(batches(texts, 1), **place, prompt_type=side))

    def test_vectors_are_as_wide_as_the_release_says(self, project: Path) -> None:
        assert self.model("cut").encode(batches(["the flow"]), **PLACE).shape == (1, 16)

    def test_similarity_is_the_declared_score(self, project: Path) -> None:
        """Of (3, 4) with (1, 0), (0, 0) and (6, 8): cosines .6, 0, 1; dots 3, 0, 50."""
        first, second = np.array([[3.0, 4.0]]), np.array([[1.0, 0.0], [0.0, 0.0], [6.0, 8.0]])
        for name, expected in (("cosine", [0.6, 0, 1]), ("dot", [3, 0, 50])):
            model = self.model(name)
            assert model.similarity(first, second)[0] == pytest.approx(expected)
            assert model.similarity_pairwise(np.repeat(first, 3, axis=0), second) == pytest.approx(expected)

    def test_an_encoder_for_each_side_needs_the_side(self, project: Path) -> None:
        model = self.model("router")
        by_side = [model.encode(batches(["the flow"]), **PLACE, prompt_type=side) for side in ("query", "document")]
        assert not np.allclose(*by_side, atol=1e-3)
        with pytest.raises(Misconfigured, match="neither queries nor documents"):
            model.encode(batches(["the flow"]), **PLACE)

    def test_what_would_not_be_honoured_is_refused(self, project: Path) -> None:
        with pytest.raises(Misconfigured, match="int8"):
            self.model("dot").encode(batches(["the"]), **PLACE, precision="int8")

    def test_a_text_without_a_vector_stops(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By its number, with the reason: MTEB would take NaN for a vector."""
        from harness.candidate.side import SideEncoder

        whole = SideEncoder.tokenise

        def broken(self: SideEncoder, texts: list[str]) -> Any:
            if any("burst" in text for text in texts):
                raise ValueError("too hot")
            return whole(self, texts)

        monkeypatch.setattr(SideEncoder, "tokenise", broken)
        with pytest.raises(Stopped, match=r"text 2 of 3: .*too hot"):
            self.model("dot").encode(batches(["the", "burst", "flow"]), **PLACE)


@pytest.mark.usefixtures("metadata", "plain_page")
class TestRankings:
    def test_pairs_have_the_scores_of_a_run(self, project: Path) -> None:
        """To the bit, in another order and company."""
        kept = ran("cross", "reranking")
        pairs = [(query, document) for document in DOCUMENTS for query in QUERIES if document in GIVEN[query]]
        first = [QUERIES[query] for query, _ in pairs]
        second = [DOCUMENTS[document] for _, document in pairs]
        scores = harness.mteb_model("cross").predict(batches(first), batches(second), **PLACE)
        assert scores.tolist() == [kept[query][document] for query, document in pairs]

    @pytest.mark.parametrize("name", ["late", "windows", "two", "fusion"])
    def test_a_search_has_the_rankings_of_a_run(self, project: Path, name: str) -> None:
        """To the bit; the document without text is in none."""
        found = searched(name)
        assert found == ran(name) and all(found.values())
        assert not any("empty" in ranking for ranking in found.values())

    def test_a_search_is_as_deep_as_it_is_asked(self, project: Path) -> None:
        whole = searched("late")
        for query, ranking in searched("late", top_k=4).items():
            assert list(ranking.items()) == list(whole[query].items())[:4]
        model = harness.mteb_model("late")
        model.index(rows(dict.fromkeys("abc", "the flow")), **PLACE, encode_kwargs={})
        assert len(model.search([{"id": "q", "text": "the"}], **PLACE, top_k=2, encode_kwargs={})["q"]) == 2

    def test_given_documents_alone_are_ranked(self, project: Path) -> None:
        """Each once, whatever stands twice in a list; a query without any has none. Two stages bring their own."""
        lists = {query: [*some, some[0]] for query, some in GIVEN.items()}
        assert searched("late", top_ranked=lists) == ran("late", "reranking")
        assert {len(each) for each in searched("late", 8, top_ranked=lists).values()} == {8}
        del lists["q0"]
        assert searched("late", top_ranked=lists)["q0"] == {}
        with pytest.raises(Misconfigured, match="its own candidates"):
            searched("two", top_ranked=lists)

    def test_a_query_without_a_ranking_stops(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Rather than to be scored 0."""
        from harness.run import retrieve

        whole = retrieve.encode

        def broken(encoders: Any, texts: Any, kept: Any) -> Any:
            encoded = whole(encoders, texts, kept)
            if len(texts) == len(QUERIES):
                encoded[0].values[:1] = np.nan
            return encoded

        monkeypatch.setattr(retrieve, "encode", broken)
        with pytest.raises(Stopped, match="'q0'"):
            searched("late")

    def test_queries_of_more_than_text_are_refused(self, project: Path) -> None:
        model = harness.mteb_model("late")
        model.index(rows(DOCUMENTS), **PLACE, encode_kwargs={})
        for query in ({"id": "q", "text": ["the", "flow"]},):
            with pytest.raises(Misconfigured, match="'q', which is a conversation"):
                model.search([query], **PLACE, top_k=1, encode_kwargs={})


class TestWhatIsHandedOver:
    @pytest.mark.usefixtures("metadata")
    def test_its_revision_is_the_content(self, project: Path) -> None:
        """And with it what MTEB's tables of models say."""
        content = harness.admit("cosine").content_id
        told = {name: harness.mteb_model(name).mteb_model_meta for name in ("cosine", "cross", "late", "two")}
        assert (told["cosine"].name, told["cosine"].revision) == ("releases/cosine", content)
        assert [each.model_type for each in told.values()] == [
            ["dense"], ["cross-encoder"], ["late-interaction"], ["hybrid"]
        ]  # fmt: skip
        assert [each.similarity_fn_name for each in told.values()] == ["cosine", None, "MaxSim", None]
        assert [each.embed_dim for each in told.values()] == [32, None, None, None]
        assert [each.use_instructions for each in told.values()] == [True, False, True, False]
        assert told["cosine"].max_tokens == 48 and told["cosine"].experiment_kwargs is None

    @pytest.mark.usefixtures("metadata")
    def test_a_release_is_admitted_before(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A DRAFT one by the way; one that fails a check is not handed over."""
        ledger = project / "releases/dot/lifecycle.jsonl"
        ledger.unlink()
        harness.mteb_model("dot")
        assert "RECONCILED" in ledger.read_text()
        ledger.unlink()
        broken = Check("parity", False, "off", "on", "mend")
        monkeypatch.setattr("harness.verb.admit.proofs_of", lambda _: iter([broken]))
        with pytest.raises(NotAdmitted, match="parity"):
            harness.mteb_model("dot")

    @pytest.mark.usefixtures("metadata")
    def test_what_answers_no_new_texts_is_refused(self, project: Path) -> None:
        """A recording, also as a member; a release that isn't there."""
        (project / "run.trec").write_text("q0 Q0 d0 1 1.0 tag\n")
        recorded = '[recorded]\nformat = "trec-run"\npath = "../../run.trec"\nscore_type = "dot"\n'
        write_release(project / "releases/heard", recorded, "recorded")
        two = 'retriever = "heard"\nreranker = "cross"\ndepth = 9\n'
        write_release(project / "releases/half", two, "two-stage")
        for name in ("heard", "half"):
            assert "'heard' as a model of MTEB: a recorded release" in str(refused(name))
        with pytest.raises(NotFound):
            harness.mteb_model("nobody")

    def test_without_the_package(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is optional, and the message says how to get it."""
        for name in ("mteb", "mteb.models"):
            monkeypatch.setitem(sys.modules, name, None)
        assert "pip install 'retrieval-harness[mteb]'" in refused("cosine").mend


@with_mteb
@pytest.mark.usefixtures("plain_page")
class TestInMteb:
    @pytest.fixture
    def task(self) -> Iterator[Any]:
        """The data as a task of MTEB, that keeps what MTEB finds for each query: its means are rounded."""
        from datasets import Dataset
        from mteb.abstasks import AbsTaskRetrieval
        from mteb.abstasks.task_metadata import TaskMetadata

        class Tiny(AbsTaskRetrieval):
            ignore_identical_ids = True
            found: Mapping[str, Mapping[str, float]] = {}

            def task_specific_scores(self, scores: Any, *_: Any, **__: Any) -> dict[str, float]:
                self.found = scores
                return {}

        def make(kind: str) -> Tiny:
            Tiny.metadata = TaskMetadata(
                name="Tiny", description="a task", dataset={"path": "none/tiny", "revision": "1"}, type=kind.title(),
                eval_langs=["eng-Latn"], main_score="ndcg_at_10",
            )  # fmt: skip
            made = Tiny()
            split = {
                "corpus": Dataset.from_list([{"title": "", **row} for row in rows(DOCUMENTS) if row["text"]]),
                "queries": Dataset.from_list(rows(QUERIES)),
                "relevant_docs": {query: dict(some) for query, some in RELEVANT.items()},
                "top_ranked": GIVEN if kind == "reranking" else None,
            }
            made.dataset, made.data_loaded = {"default": {"test": split}}, True
            return made

        yield make

    @pytest.mark.parametrize(
        ("name", "kind"),
        [
            ("cosine", "retrieval"), ("dot", "retrieval"), ("cut", "retrieval"), ("router", "retrieval"),
            ("late", "retrieval"), ("windows", "retrieval"), ("two", "retrieval"), ("fusion", "retrieval"),
            ("cross", "reranking"), ("cosine", "reranking"), ("late", "reranking"),
        ],
    )  # fmt: skip
    def test_both_measure_alike(self, project: Path, task: Any, name: str, kind: str) -> None:
        """nDCG@10 of every query, and of all; what was ranked is kept by query under the release's content."""
        import mteb

        mine = task(kind)
        results = mteb.evaluate(
            harness.mteb_model(name), mine, cache=None, prediction_folder=project / "kept", co2_tracker=False,
            show_progress_bar=False,
        )  # fmt: skip
        answer = harness.run(kind, candidate=name, parent="none", cache=False)
        measured = dict(harness.sql("SELECT case_id, value FROM case_metrics WHERE metric = 'nDCG@10'").rows)
        assert len(measured) == len(QUERIES)
        assert {query: scores["ndcg_cut_10"] for query, scores in mine.found.items()} == pytest.approx(
            measured, abs=1e-6
        )
        whole = answer.metrics["candidate"]["all"]["nDCG@10"].value
        assert 0 < whole < 1
        assert results.task_results[0].get_score() == pytest.approx(whole, abs=5.1e-6)
        assert results.model_revision == answer.candidate.content_id
        kept = json.loads((project / "kept/Tiny_predictions.json").read_text())
        assert kept["mteb_model_meta"] == {
            "model_name": f"releases/{name}", "revision": answer.candidate.content_id
        }  # fmt: skip
        assert kept["default"]["test"].keys() == QUERIES.keys() and all(kept["default"]["test"].values())

    def test_an_exported_result_loads(self, project: Path) -> None:
        """With the score that the run has, under MTEB's names."""
        from mteb.results import TaskResult

        answer = harness.run("retrieval", candidate="dot", parent="none")
        [file] = harness.export(answer.run, format="mteb").files
        loaded = TaskResult.from_disk(Path(file), load_historic_data=False)
        assert (loaded.task_name, loaded.dataset_revision) == ("Tiny", answer.suite_digest)
        values = answer.metrics["candidate"]["all"]
        assert loaded.get_score() == values["nDCG@10"].value
        assert loaded.get_score(getter=lambda scores: scores["map_at_10"]) == values["AP@10"].value
        again = project / "again.json"
        loaded.to_disk(again)
        assert TaskResult.from_disk(again).get_score() == pytest.approx(loaded.get_score(), abs=1e-6)
