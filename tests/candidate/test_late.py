"""What loaded late interaction gives, held against the library's own `encode_query` and `encode_document`."""

import string

import numpy as np
import pytest
import torch
from sentence_transformers import MultiVectorEncoder, SentenceTransformer

from harness.candidate import batch
from harness.candidate import open as room
from harness.candidate.encoder import encode
from harness.candidate.load import load
from harness.errors import Misconfigured, NotAdmitted
from harness.release.prompts import Prompts

from .conftest import WORDS
from .late_folder import LENGTH, save_late, save_pylate, save_stanford

LEAST = {"strategy": "min", "attend": False, "length": 12}
MARKED = ["the flow, the wing.", "heat: of a plate!", "a", "", "!", "drag?? lift;"]
SAVED = {"own": save_late, "pylate": save_pylate, "stanford": save_stanford}


def texts(count, *, longest=60, seed=1):
    """Texts of one to `longest` words and marks; every one differs."""
    rng = np.random.default_rng(seed)
    words = [*WORDS, ",", "."]
    return [f"{' '.join(rng.choice(words, rng.integers(1, longest)))} {'abcdefgs'[row % 8]}" for row in range(count)]


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    """Each layout, saved once."""
    return {name: save(tmp_path_factory.mktemp(name)) for name, save in SAVED.items()}


@pytest.fixture
def late(release):
    """A loaded encoder of a folder, with further lines of release.toml."""

    def make(folder, extra=""):
        opened = release(str(folder) if str(folder).startswith("package:") else f"path:{folder}", extra, "late")
        return load(opened, opened.prompts_for("any"))

    return make


def own_rows(folder, given, prompt, skipped):
    """The rows of a bi-encoder's texts, of unit length, without those of some tokens."""
    library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    found = []
    for text, rows in zip(
        given, library.encode(given, prompt=prompt, output_value="token_embeddings", batch_size=1), strict=True
    ):
        ids = library.tokenizer(prompt + text, truncation=True, max_length=library.max_seq_length)["input_ids"]
        counted = [token not in skipped for token in library.tokenizer.convert_ids_to_tokens(ids)]
        found.append(torch.nn.functional.normalize(rows, dim=1).numpy()[counted])
    return found


def assert_equal(encoded, expected, atol=1e-6):
    assert encoded.failed == {} and encoded.values.dtype == np.float32
    for place, rows in enumerate(expected):
        assert encoded.piece(place).values.shape == rows.shape
        np.testing.assert_allclose(encoded.piece(place).values, rows, atol=atol)


def assert_as_the_library(mine, folder):
    library = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)
    given = [*texts(24), *MARKED]
    assert_equal(mine.encode(given, "query"), library.encode_query(given, convert_to_numpy=True))
    assert_equal(mine.encode(given, "document"), library.encode_document(given, convert_to_numpy=True))


class TestEqualsTheLibrary:
    @pytest.mark.parametrize("layout", SAVED)
    def test_rows_are_those_of_encode_in_every_layout(self, late, folders, layout):
        """Texts of all lengths, some of them cut; queries filled up to twelve rows, documents without punctuation."""
        assert_as_the_library(late(folders[layout]), folders[layout])

    @pytest.mark.parametrize(
        "saved",
        [
            {"expansion": None, "query_length": 20},
            {"expansion": {"strategy": "fixed", "attend": True, "length": 12, "token": "[SEP]"}},
            {"expansion": LEAST, "query_length": 30},
            {"expansion": {**LEAST, "attend": True}, "query_length": 12},
            {"expansion": LEAST, "skip": ["the", "[MASK]"], "skip_tasks": ["query", "document"]},
            {"dense": False, "document_length": None},
            {"bias": True, "activation": "Tanh"},
        ],
        ids=("not filled up", "attended", "at least", "at least, and no more", "skipped", "no map", "a map of its own"),
    )
    def test_so_they_are_under_every_policy(self, late, tmp_path, saved):
        """How queries are filled up, what is skipped where, and what the rows are mapped by."""
        folder = save_late(tmp_path / "saved", **saved)
        assert_as_the_library(late(folder), folder)

    def test_a_fixed_width_is_filled_where_the_tokenizer_would_pad(self, late, tmp_path):
        """On the left of a query, where that is its side."""
        saved = save_late(
            tmp_path / "left", padding_side="left", expansion={"strategy": "fixed", "attend": False, "length": 16}
        )
        library = MultiVectorEncoder(str(saved), device="cpu", local_files_only=True)
        given = texts(12, longest=9)
        assert_equal(late(saved).encode(given, "query"), library.encode_query(given, convert_to_numpy=True))

    def test_a_declared_length_is_that_of_documents(self, late, folders):
        """Queries are filled up to their own width all the same."""
        mine = late(folders["own"], "[input]\nmax_length = 40\n")
        library = MultiVectorEncoder(str(folders["own"]), device="cpu", local_files_only=True)
        library[0].document_length = 40
        given = texts(20)
        assert_equal(mine.encode(given, "query"), library.encode_query(given, convert_to_numpy=True))
        assert_equal(mine.encode(given, "document"), library.encode_document(given, convert_to_numpy=True))

    def test_the_score_is_the_librarys_similarity(self, late, folders, tmp_path):
        """By hand, of rows that are given: 0.6 + 1 for two query rows, and half of that as a mean."""
        query = np.array([[1, 0], [0, 1]], dtype=np.float32)
        document = np.array([[0.6, 0.8], [0, 1]], dtype=np.float32)
        assert late(folders["own"]).similarity([query], [document]) == pytest.approx(np.array([[1.6]]))
        mean = save_late(tmp_path / "mean", similarity="meanmaxsim")
        assert late(mean).similarity([query], [document]) == pytest.approx(np.array([[0.8]]))


class TestOwnRows:
    def test_they_are_a_bi_encoders_rows_of_unit_length(self, late, tiny):
        """Before its pooling; `skip` names tokens of documents, and queries keep them all."""
        mine = late(tiny, '[prompts]\nquery = "the: "\n[late]\nskip = ["flow", ":"]\n')
        given = [*texts(30), ": flow :"]
        assert_equal(mine.encode(given, "query"), own_rows(tiny, given, "the: ", ()), atol=5e-6)
        assert_equal(mine.encode(given, "document"), own_rows(tiny, given, "", ("flow", ":")), atol=5e-6)

    def test_the_packaged_minilm_has_them(self, late, minilm):
        """Real weights, at 32 tokens; punctuation is skipped in documents."""
        mine = late(minilm, '[input]\nmax_length = 256\n[late]\nskip = "punctuation"\n')
        given = ["How do I reset my password?", "v2.0-rc1: 1,234.56 %", "word " * 300, ""]
        folder = mine.sides["query"].folder
        assert_equal(mine.encode(given, "query"), own_rows(folder, given, "", ()))
        assert_equal(mine.encode(given, "document"), own_rows(folder, given, "", string.punctuation))

    def test_they_are_computed_once_beside_its_vectors(self, late, encoder, tiny, monkeypatch):
        """One pass through the model for both, and each has its own."""
        rows, pooled = late(tiny, "[late]\nskip = []\n").sides["document"], encoder().sides["document"]
        given, seen = texts(9), []
        apart = [encode([side], given)[0] for side in (rows, pooled)]
        for side in (rows, pooled):
            forward = side.rows
            monkeypatch.setattr(
                side, "rows", lambda some, width, forward=forward: seen.extend(some) or forward(some, width)
            )
        together = encode([rows, pooled], given)
        assert len(seen) == len(given)
        assert [each.values.tobytes() for each in together] == [each.values.tobytes() for each in apart]

    @pytest.mark.parametrize(
        ("extra", "match"), [("", "which of its rows count"), ("[late]\nskip = ['nowhere']\n", "'nowhere'")]
    )
    def test_what_no_folder_says_is_asked_for(self, late, tiny, extra, match):
        """And a token that the tokenizer does not have is no token."""
        with pytest.raises((Misconfigured, NotAdmitted), match=match):
            late(tiny, extra)

    def test_a_folder_of_late_interaction_says_it_itself(self, late, folders):
        """Two words on one matter are one too many."""
        with pytest.raises(Misconfigured, match=r"\[late\] beside"):
            late(folders["own"], '[late]\nskip = "punctuation"\n')

    def test_rows_that_would_have_to_go_through_a_map_are_refused(self, late, tmp_path):
        """A Dense after the pooling was trained on pooled vectors."""
        from sentence_transformers.sentence_transformer.modules import Dense

        from .conftest import save_tiny

        folder = save_tiny(tmp_path / "dense", tail=lambda: [Dense(32, 8)])
        with pytest.raises(NotAdmitted, match="nothing behind it but"):
            late(folder, "[late]\nskip = []\n")


class TestNothingButTheText:
    @pytest.mark.parametrize("budget", [16, 200])
    @pytest.mark.parametrize("side", ["query", "document"])
    def test_rows_are_the_same_bits_in_any_company(self, late, folders, monkeypatch, budget, side):
        """Alone, shuffled, among a few or all in one batch."""
        model, given = late(folders["own"]), [*texts(40), *MARKED]
        whole = model.encode(given, side)
        monkeypatch.setitem(batch.PADDED_TOKENS, "cpu", budget)
        order = np.random.default_rng(2).permutation(len(given))
        shuffled = model.encode([given[row] for row in order], side)
        for place, row in enumerate(order):
            assert shuffled.piece(place).values.tobytes() == whole.piece(row).values.tobytes()
        assert model.encode(given[:1], side).values.tobytes() == whole.piece(0).values.tobytes()

    def test_a_longer_query_beside_it_fills_nothing_up(self, late, tmp_path):
        """Under a least width the library widens a batch to its longest text, and so do we, without counting it."""
        model = late(save_late(tmp_path / "least", expansion=LEAST))
        encoded = model.encode(["the flow", "wing " * 40], "query")
        assert np.diff(encoded.offsets).tolist() == [12, 43]

    def test_items_tell_what_fills_a_query_up_from_its_own_text(self, late, tmp_path):
        """A query that ends in what others are filled up with reads as another item."""
        filled_up = {"strategy": "fixed", "attend": True, "length": 12, "token": "[SEP]"}
        side = late(save_late(tmp_path / "attended", expansion=filled_up)).sides["query"]
        short, long = side.tokenise(["flow", "flow" + " [SEP]" * 8])
        assert short.features["input_ids"] == long.features["input_ids"] and (short.kept, long.kept) == (4, 12)
        assert short.features["attention_mask"] == long.features["attention_mask"] == [1] * 12
        assert short.digest() != long.digest()


class TestTokens:
    def test_lengths_count_the_texts_own_and_what_was_cut(self, late, folders):
        """`the flow wing` is six tokens of twelve; of sixty words and four tokens, nine words are left."""
        encoded = late(folders["own"]).encode(["flow wing", "the " * 60], "query")
        assert encoded.tokens_kept.tolist() == [5, 12] and encoded.tokens_lost.tolist() == [0, 51]
        assert np.diff(encoded.offsets).tolist() == [12, 12]

    def test_documents_have_a_length_of_their_own(self, late, folders):
        """And rows that do not count were read all the same."""
        encoded = late(folders["pylate"]).encode(["the, the", "the " * 60], "document")
        assert encoded.tokens_kept.tolist() == [6, LENGTH] and encoded.tokens_lost.tolist() == [0, 63 - LENGTH]
        assert np.diff(encoded.offsets).tolist() == [5, LENGTH]


class TestFailures:
    @pytest.fixture
    def bare(self, late, tmp_path):
        """Neither special tokens nor marks count."""
        saved = save_late(
            tmp_path / "bare", expansion=None, skip=["[CLS]", "[SEP]", ".", ":"], skip_tasks=["query", "document"],
            prompts={"query": ".", "document": ":"},
        )  # fmt: skip
        return late(saved)

    @pytest.mark.parametrize("side", ["query", "document"])
    def test_a_text_without_a_row_that_counts_fails_alone(self, bare, side):
        """By name; the others have their rows."""
        encoded = bare.encode(["the flow", "...", "wing"], side)
        assert encoded.failed == {1: "none of its rows counts"}
        assert np.diff(encoded.offsets).tolist() == [2, 0, 1] and encoded.tokens_kept.tolist() == [5, 6, 4]

    def test_a_text_that_makes_the_model_raise_has_no_rows(self, late, folders):
        """Half of a surrogate pair is no text."""
        encoded = late(folders["own"]).encode(["the flow", "\ud800"], "query")
        assert list(encoded.failed) == [1] and np.diff(encoded.offsets).tolist() == [12, 0]

    def test_rows_that_are_not_finite_are_left_as_they_are(self, late, folders):
        """Whoever runs the model fails the case; here nothing is hidden."""
        model = late(folders["own"])
        side = model.sides["query"]
        with torch.no_grad():
            weights = side.modules[0].model.embeddings.word_embeddings.weight
            weights[side.tokenizer.convert_tokens_to_ids("jet")] = torch.nan
        encoded = model.encode(["the jet", "the flow"], "query")
        assert encoded.failed == {}
        assert np.isnan(encoded.piece(0).values).all() and np.isfinite(encoded.piece(1).values).all()


class TestLoading:
    @pytest.mark.parametrize(
        ("change", "named"),
        [
            (lambda model: setattr(model, "similarity_fn_name", "meanmaxsim"), "maxsim mean"),
            (lambda model: setattr(model[0], "query_expansion", None), "filled up None"),
            (lambda model: setattr(model[0], "query_expansion", {"strategy": "min", "length": 12}), "'min', 12"),
            (lambda model: setattr(model[0], "document_length", 30), "length 30"),
            (lambda model: setattr(model[2], "_skiplist_ids", None), r"skipped \[\]"),
            (lambda model: setattr(model[2], "keep_only_token_ids", [5]), "kept by ID True"),
            (lambda model: model.__delitem__(3), "unit length False"),
            (lambda model: model.__delitem__(2), "masked False"),
            (lambda model: model.__delitem__(1), "width 32, projections 0"),
        ],
    )
    def test_what_the_library_reads_otherwise_is_refused(self, release, folders, monkeypatch, change, named):
        """A library that changed its reading of a folder would change the meaning unseen."""
        opened = release(f"path:{folders['own']}", interaction="late")
        loaded = room._loaded(str(folders["own"]), "MultiVectorEncoder")
        change(loaded)
        monkeypatch.setattr(room, "_loaded", lambda folder, library_class: loaded)
        with pytest.raises(NotAdmitted, match=named):
            load(opened, Prompts("the ", "flow: "))

    def test_a_length_without_room_for_text_is_refused(self, late, tiny):
        """Two special tokens fill a length of two."""
        with pytest.raises(Misconfigured, match="2 special tokens"):
            late(tiny, "[input]\nmax_length = 2\n[late]\nskip = []\n")
