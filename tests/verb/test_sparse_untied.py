"""The main job with learned sparse encoders, with an encoder for each side, and heads, which rank nothing."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import harness
from harness.errors import Misconfigured
from harness.output.decision import Outcome
from harness.verb.admit import Admission

from ..candidate.conftest import WORDS, save_tiny, write_release
from ..candidate.test_head_parity import saved as save_head
from ..candidate.tiny import save_router, save_sparse
from .test_live import rankings, suite

DOCUMENTS = {f"d{i}": " ".join(np.random.default_rng(i).choice(WORDS, 4 + 7 * i % 30)) for i in range(24)}
QUERIES = {f"q{i}": " ".join(np.random.default_rng(90 + i).choice(WORDS, 3)) for i in range(8)}
PROMPTS = '[prompts]\nquery = "the: "\ndocument = "flow "\n'


@dataclass(frozen=True)
class Made:
    """Releases in `root`, each proven once."""

    root: Path
    admissions: Mapping[str, Admission]

    def model(self, name: str) -> Path:
        return self.root / name / "model"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two poolings of one language model, a capped cosine, a router, a pair, a head."""
    root = tmp_path_factory.mktemp("made")
    models = {
        "sparse-max": save_sparse(root / "max"),
        "sparse-sum": save_sparse(root / "sum", pooling="sum", activation="log1p_relu"),
        "sparse-cosine": save_sparse(root / "cosine", keep=6, similarity="cosine"),
        "router": save_router(root / "router"),
        "asks": save_tiny(root / "asks", pooling="cls", seed=4),
        "answers": save_tiny(root / "answers", seed=5),
    }
    for name, model in models.items():
        more = f'[model]\nsource = "path:{model}"\n' + ("" if name == "router" else PROMPTS)
        write_release(root / "releases" / name, more, "sparse" if name.startswith("sparse") else "bi")
    write_release(root / "releases" / "pair", '[pair]\nquery = "asks"\ndocument = "answers"\n')
    (root / "head").mkdir()
    shutil.move(save_head(root / "head", "MultipleChoice", 2).folder, root / "releases" / "head")
    text = (root / "releases" / "head" / "release.toml").read_text().replace("../model", str(root / "head" / "model"))
    (root / "releases" / "head" / "release.toml").write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        return Made(root, {name: harness.admit(name) for name in (*models, "pair", "head")})


@pytest.fixture
def here(tmp_path: Path, made: Made, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Twenty-four documents, one of them twice and one empty, and eight queries."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made.root / "releases", tmp_path / "releases")
    suite(tmp_path, {**DOCUMENTS, "twin": DOCUMENTS["d3"], "empty": ""}, QUERIES)
    harness.freeze("live")
    return tmp_path


def brute_force(score: Callable[[list[str], list[str]], np.ndarray]) -> np.ndarray:
    """[q, d] by the library, in float64."""
    return score(list(QUERIES.values()), [*DOCUMENTS.values(), DOCUMENTS["d3"]]).astype(np.float64)


def equals(side: str, expected: np.ndarray) -> None:
    """Every document with its score, best first; the twin tied with the document that it repeats; no empty one."""
    kept, names = rankings(side), [*DOCUMENTS, "twin"]
    assert list(kept) == list(QUERIES)
    for name, scores in zip(QUERIES, expected, strict=True):
        found = dict(kept[name])
        assert sorted(found) == sorted(names) and found["twin"] == found["d3"]
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert [found[each] for each in names] == pytest.approx(scores, abs=1e-5 * max(1, np.abs(scores).max()))


def sparse_scores(model: Path, queries: list[str], documents: list[str]) -> np.ndarray:
    from sentence_transformers import SparseEncoder

    library = SparseEncoder(str(model), device="cpu", local_files_only=True)
    sides = [library.encode(texts, prompt=prompt) for texts, prompt in ((queries, "the: "), (documents, "flow "))]
    return library.similarity(*sides).numpy()


def dense_scores(query: Path, document: Path, queries: list[str], documents: list[str]) -> np.ndarray:
    from sentence_transformers import SentenceTransformer

    asks, answers = (SentenceTransformer(str(each), device="cpu", local_files_only=True) for each in (query, document))
    return answers.similarity(
        asks.encode_query(queries, prompt="the: "), answers.encode_document(documents, prompt="flow ")
    ).numpy()


@pytest.mark.usefixtures("plain_page")
class TestSparse:
    def test_rankings_are_the_librarys_own(self, here: Path, made: Made) -> None:
        """By dot product, both sides of the run together; the run is decided, and its candidate proven."""
        found = harness.run("live", candidate="sparse-sum", parent="sparse-max")
        assert found.decision.outcome in (Outcome.PASS, Outcome.FAIL, Outcome.UNDECIDED)
        equals("candidate", brute_force(lambda q, d: sparse_scores(made.model("sum"), q, d)))
        equals("parent", brute_force(lambda q, d: sparse_scores(made.model("max"), q, d)))
        assert found.counts.failed == 0 and found.counts.cases == len(QUERIES)

    def test_a_cosine_of_capped_vectors_is_held_against_a_bi_encoder(self, here: Path, made: Made) -> None:
        """As the manifest says its score; a sparse and a dense side stand in one run."""
        harness.run("live", candidate="sparse-cosine", parent="asks")
        equals("candidate", brute_force(lambda q, d: sparse_scores(made.model("cosine"), q, d)))

    def test_parts_of_the_index_change_nothing(self, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Five documents at a time, to the bit."""
        from harness.run import retrieve

        harness.run("live", candidate="sparse-sum", parent="none")
        whole = rankings()
        shutil.rmtree(".harness")
        monkeypatch.setitem(retrieve.CHUNK, "sparse", 5)
        harness.run("live", candidate="sparse-sum", parent="none")
        assert rankings() == whole


@pytest.mark.usefixtures("plain_page")
class TestUntied:
    def test_a_router_ranks_as_the_library_does(self, here: Path, made: Made) -> None:
        """Each side through its own route, with the prompt that the folder has for it."""
        model = made.model("router")
        harness.run("live", candidate="router", parent="asks")
        equals("candidate", brute_force(lambda q, d: dense_scores(model, model, q, d)))

    def test_a_pair_ranks_as_its_members_do(self, here: Path, made: Made) -> None:
        """Beside the release that its documents' vectors come from."""
        harness.run("live", candidate="pair", parent="answers")
        asks, answers = made.model("asks"), made.model("answers")
        equals("candidate", brute_force(lambda q, d: dense_scores(asks, answers, q, d)))
        equals("parent", brute_force(lambda q, d: dense_scores(answers, answers, q, d)))

    def test_documents_that_both_sides_encode_alike_are_encoded_once(
        self, here: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pair that changes its queries alone costs no other vector of a document."""
        from harness.candidate.side import SideEncoder

        seen, rows = [], SideEncoder.rows
        monkeypatch.setattr(SideEncoder, "rows", lambda self, tokens, *a: seen.extend(tokens) or rows(self, tokens, *a))
        harness.run("live", candidate="pair", parent="answers")
        assert len(seen) == len(DOCUMENTS) + 2 * len(QUERIES)


class TestAdmit:
    @pytest.mark.parametrize("name", ["sparse-max", "sparse-sum", "sparse-cosine", "router", "pair", "head"])
    def test_it_is_reconciled_with_its_proof(self, made: Made, name: str) -> None:
        admission = made.admissions[name]
        assert admission.ok and admission.state == "RECONCILED"
        assert "parity" in {check.name for check in admission.checks}

    def test_of_a_pair_each_members_weights_are_seen_to_be_whole(self, made: Made) -> None:
        """A tensor that the library would make up in a member is one that the pair would run with."""
        found = {check.name for check in made.admissions["pair"].checks}
        assert {"weights-complete: asks", "weights-complete: answers"} <= found

    def test_a_head_is_proven_and_ranks_nothing(self, here: Path) -> None:
        """And says what it is for."""
        with pytest.raises(Misconfigured, match="a head release of choice, which ranks no documents"):
            harness.run("live", candidate="head", parent="none")
