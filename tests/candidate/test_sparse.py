"""What a loaded sparse encoder gives, held against the library's own `encode`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harness.candidate import batch, sparse
from harness.candidate import open as room
from harness.candidate.encoder import encode
from harness.candidate.load import load
from harness.errors import Misconfigured, NotAdmitted
from harness.release.open import Release, open_release

from .conftest import Memory, bare_bert, write_release
from .test_bi import texts
from .tiny import save_sparse


def opened(folder: Path, model: Path, more: str = "") -> Release:
    return open_release(write_release(folder, f'[model]\nsource = "path:{model}"\n{more}', "sparse"))


def library(model: Path):
    from sentence_transformers import SparseEncoder

    return SparseEncoder(str(model), device="cpu", local_files_only=True)


def dense(encoded, width: int) -> np.ndarray:
    return np.concatenate([encoded.piece(row).dense(width) for row in range(len(encoded.items))])


@pytest.fixture(scope="module")
def splade(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sparse(tmp_path_factory.mktemp("splade"))


@pytest.fixture
def release(tmp_path: Path, splade: Path):
    """A release of a saved model, the plain one unless another is given."""

    def make(more: str = "", model: Path = splade) -> Release:
        return opened(tmp_path / f"release-{len(list(tmp_path.iterdir()))}", model, more)

    return make


@pytest.fixture
def encoder(release):
    def make(more: str = "", **options: Any):
        made = release(more, **options)
        return load(made, made.prompts_for())

    return make


class TestEqualsTheLibrary:
    @pytest.mark.parametrize(
        "saved",
        [
            {},
            {"pooling": "sum", "activation": "log1p_relu"},
            {"keep": 7},
            {"legacy": True, "similarity": "cosine"},
        ],
        ids=str,
    )
    def test_vectors_are_those_of_encode(self, encoder, tmp_path: Path, saved: dict[str, Any]) -> None:
        """With each side's prompt, texts of all lengths, some of them cut."""
        model = save_sparse(tmp_path / "saved", **saved)
        mine = encoder('[prompts]\nquery = "the: "\ndocument = "flow "\n', model=model)
        theirs, given = library(model), texts(40)
        for side, prompt in (("query", "the: "), ("document", "flow ")):
            expected = theirs.encode(given, prompt=prompt, convert_to_sparse_tensor=False, convert_to_tensor=True)
            found = dense(mine.encode(given, side), expected.shape[1])
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)

    def test_a_plain_language_model_is_what_the_library_makes_of_it(self, encoder, tmp_path: Path) -> None:
        """Without modules.json."""
        model = bare_bert(tmp_path / "plain", head="ForMaskedLM")
        expected = library(model).encode(texts(5), convert_to_sparse_tensor=False, convert_to_tensor=True)
        found = dense(encoder(model=model).encode(texts(5), "query"), expected.shape[1])
        np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)

    def test_a_router_has_a_language_model_for_each_side(self, encoder, tmp_path: Path) -> None:
        """Other weights and another pooling."""
        from sentence_transformers import SparseEncoder
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Router
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        routes = [
            [Transformer(str(bare_bert(tmp_path / mode, seed=seed, head="ForMaskedLM")), transformer_task="fill-mask"),
             SpladePooling(mode)]
            for seed, mode in ((4, "max"), (5, "sum"))
        ]  # fmt: skip
        SparseEncoder(modules=[Router.for_query_document(*routes)], device="cpu").save(str(tmp_path / "model"))
        mine, theirs, given = encoder(model=tmp_path / "model"), library(tmp_path / "model"), texts(10)
        for side, encode_side in (("query", theirs.encode_query), ("document", theirs.encode_document)):
            expected = encode_side(given, convert_to_sparse_tensor=False, convert_to_tensor=True)
            found = dense(mine.encode(given, side), expected.shape[1])
            np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-5)


class TestPieces:
    def test_entries_rise_and_none_of_them_is_0(self, encoder) -> None:
        """One weight for each, in the order of the vocabulary."""
        model, given = encoder(), texts(20)
        encoded = model.encode(given, "query")
        assert encoded.values.shape == (encoded.offsets[-1], 1) and encoded.indices.dtype == np.int32
        for row in range(20):
            piece = encoded.piece(row)
            assert (piece.values > 0).all() and (np.diff(piece.indices) > 0).all()
            assert 0 < len(piece.indices) < model.sides["query"].width

    def test_no_more_weights_than_declared_are_kept(self, encoder, tmp_path: Path) -> None:
        encoded = encoder(model=save_sparse(tmp_path / "saved", keep=3)).encode(texts(9), "document")
        assert np.diff(encoded.offsets).tolist() == [3] * 9

    def test_a_text_that_fails_has_a_weight_that_is_no_number(self, encoder) -> None:
        """So that no search takes it for one without weights; the others have theirs."""
        encoded = encoder().encode(["the flow", "\ud800", "wing"], "query")
        assert list(encoded.failed) == [1]
        assert np.isnan(encoded.piece(1).values).all() and len(encoded.piece(1).indices) == 1
        alone = encoder().encode(["wing"], "query").piece(0)
        np.testing.assert_array_equal(encoded.piece(2).indices, alone.indices)

    def test_a_weight_that_is_not_finite_is_left_as_it_is(self, encoder) -> None:
        model = encoder()
        with torch.no_grad():
            model.sides["query"].modules[0].model.cls.predictions.bias[:] = torch.nan
        encoded = model.encode(["the flow"], "query")
        assert encoded.failed == {} and np.isnan(encoded.values).any()


class TestNothingButTheText:
    @pytest.mark.parametrize("logits", [1, 3000, 1 << 24])
    @pytest.mark.parametrize("pooling", ["max", "sum"])
    def test_weights_are_the_same_bits_in_any_company(self, encoder, tmp_path, monkeypatch, pooling, logits) -> None:
        """Shuffled, in batches of one or of many."""
        model, given = save_sparse(tmp_path / "saved", pooling=pooling), texts(40)
        whole = encoder(model=model).encode(given, "query")
        monkeypatch.setitem(sparse.LOGITS, "cpu", logits)
        order = np.random.default_rng(2).permutation(40)
        shuffled = encoder(model=model).encode([given[row] for row in order], "query")
        for row, was in enumerate(order.tolist()):
            assert shuffled.piece(row).values.tobytes() == whole.piece(was).values.tobytes()
            assert shuffled.piece(row).indices.tobytes() == whole.piece(was).indices.tobytes()

    def test_a_batch_holds_no_more_logits_than_it_may(self, encoder, monkeypatch) -> None:
        """Texts of 16 columns and a vocabulary of 53: six thousand logits are seven texts."""
        monkeypatch.setitem(sparse.LOGITS, "cpu", 6000)
        model, sizes = encoder(), []
        side = model.sides["query"]
        rows = side.rows
        monkeypatch.setattr(side, "rows", lambda tokens, *more: sizes.append(len(tokens)) or rows(tokens, *more))
        assert side.width == 53
        model.encode([f"the {word} {letter}" for word in ("flow", "wing") for letter in "abcdefgh"], "query")
        assert sizes == [7, 7, 2]
        assert max(sizes) * 16 < batch.PADDED_TOKENS["cpu"]


class TestSharedRows:
    def test_two_poolings_of_one_language_model_cost_one_encode(self, release, tmp_path, splade, counted) -> None:
        """Each is what it is alone, to the bit."""
        other = save_sparse(tmp_path / "other", pooling="sum", activation="log1p_relu", keep=9)
        sides = [load(made, made.prompts_for()).sides["query"] for made in (release(), release(model=other))]
        assert sides[0].keys.rows == sides[1].keys.rows and sides[0].keys.vector != sides[1].keys.vector
        alone = [encode([side], texts(6))[0].values.tobytes() for side in sides]
        counted.clear()
        assert [each.values.tobytes() for each in encode(sides, texts(6))] == alone
        assert len(counted) == 6

    def test_another_head_shares_nothing(self, release, tmp_path, splade) -> None:
        """Though the rows below it are the same: what the first module gives are logits."""
        from safetensors.torch import load_file, save_file

        other = save_sparse(tmp_path / "other")
        weights = load_file(other / "model.safetensors")
        weights["cls.predictions.bias"] += 1
        save_file(weights, other / "model.safetensors", metadata={"format": "pt"})
        one, two = (load(made, made.prompts_for()).sides["query"] for made in (release(), release(model=other)))
        assert one.keys.rows != two.keys.rows and one.keys.source == two.keys.source

    def test_what_is_kept_is_not_computed_again(self, encoder, counted) -> None:
        kept, given = Memory(), texts(5)
        first = encode([encoder().sides["query"]], given, kept)[0]
        counted.clear()
        again = encode([encoder().sides["query"]], given, kept)[0]
        assert counted == [] and again.values.tobytes() == first.values.tobytes()


class TestLoading:
    @pytest.mark.parametrize(
        ("at", "name", "value", "named"),
        [
            ("1", "pooling_strategy", "sum", "pooling sum"),
            ("1", "activation_function", "log1p_relu", "activation log1p_relu"),
            ("", "max_active_dims", 5, "max_active_dims 5"),
            ("", "similarity_fn_name", "cosine", "score cosine"),
            ("0", "transformer_task", "feature-extraction", "task feature-extraction"),
        ],
    )
    def test_what_the_library_reads_otherwise_is_refused(self, release, monkeypatch, at, name, value, named) -> None:
        """By what departs."""
        made = release()
        model = room._loaded(str(made.model_folder), "SparseEncoder")
        setattr(model[int(at)] if at else model, name, value)
        monkeypatch.setattr(room, "_loaded", lambda folder, library_class: model)
        with pytest.raises(NotAdmitted, match=named):
            load(made, made.prompts_for())

    def test_a_length_without_room_for_text_is_refused(self, encoder) -> None:
        with pytest.raises(Misconfigured, match="2 special tokens"):
            encoder("[input]\nmax_length = 2\n")

    def test_a_static_table_of_weights_is_refused_by_name(self, release, tmp_path: Path) -> None:
        """An encoder that needs no model for its queries is not read by this version."""
        from sentence_transformers import SparseEncoder
        from sentence_transformers.base.modules import Transformer
        from sentence_transformers.sentence_transformer.modules import Router
        from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

        folder = str(bare_bert(tmp_path / "bare", head="ForMaskedLM"))
        document = Transformer(folder, transformer_task="fill-mask")
        routes = Router.for_query_document([SparseStaticEmbedding(document.tokenizer)], [document, SpladePooling()])
        SparseEncoder(modules=[routes], device="cpu").save(str(tmp_path / "model"))
        with pytest.raises(NotAdmitted, match="SparseStaticEmbedding"):
            release(model=tmp_path / "model")
