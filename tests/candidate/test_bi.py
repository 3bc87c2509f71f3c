"""What a loaded bi-encoder gives, held against the library's own `encode`."""

import hashlib

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from harness.candidate import batch
from harness.candidate import open as room
from harness.candidate.load import load
from harness.candidate.runtime import runtime
from harness.errors import Misconfigured, NotAdmitted, Stopped
from harness.release.prompts import Prompts

from .conftest import WORDS, save_tiny


def texts(count, *, longest=60, seed=1):
    """Texts of one to `longest` words; every one differs."""
    rng = np.random.default_rng(seed)
    return [f"{' '.join(rng.choice(WORDS, rng.integers(1, longest)))} {'abcdefgs'[row % 8]}" for row in range(count)]


class TestEqualsTheLibrary:
    @pytest.mark.parametrize("side", ["query", "document"])
    def test_vectors_are_those_of_encode(self, encoder, tiny, side):
        """With each side's prompt, texts of all lengths, some of them cut."""
        mine = encoder('[prompts]\nquery = "the: "\ndocument = "flow "\n')
        library = SentenceTransformer(str(tiny), device="cpu", local_files_only=True)
        encoded = mine.encode(texts(70), side)
        expected = library.encode(texts(70), prompt={"query": "the: ", "document": "flow "}[side])
        assert encoded.vectors.dtype == np.float32
        np.testing.assert_allclose(encoded.vectors, expected, atol=1e-6)

    def test_the_packaged_minilm_is_that_of_encode(self, release, minilm):
        """Real weights, prompts, case, accents, blanks, an empty text and one beyond 256 tokens."""
        opened = release(minilm, '[prompts]\nquery = "query: "\n')
        model = load(opened, opened.prompts_for("any"))
        given = [
            "How do I reset my password?",
            "  Café\tÜBER  naïve ",
            "",
            "x" * 300,
            "word " * 600,
            "日本語のテキスト",
        ]
        library = SentenceTransformer(str(opened.model_folder), device="cpu", local_files_only=True)
        for side, prompt in (("query", "query: "), ("document", "")):
            encoded = model.encode(given, side)
            np.testing.assert_allclose(encoded.vectors, library.encode(given, prompt=prompt), atol=1e-6)
        assert encoded.tokens_kept.tolist()[4] == 256

    @pytest.mark.parametrize("mode", ["cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"])
    def test_an_overridden_pooling_is_the_librarys_pooling_of_that_name(self, encoder, tiny, mode):
        """And not the folder's mean."""
        library = SentenceTransformer(str(tiny), device="cpu", local_files_only=True)
        plain = library.encode(texts(9))
        library[1].pooling_mode = mode
        found = encoder(f'[override.readout]\npooling = "{mode}"\n').encode(texts(9), "query").vectors
        np.testing.assert_allclose(found, library.encode(texts(9)), atol=1e-6)
        if mode != "mean_sqrt_len_tokens":  # of one direction with the mean, so equal once normalised
            assert np.abs(found - plain).max() > 1e-3

    def test_a_prompt_that_the_pooling_leaves_out_is_left_out(self, encoder, tmp_path):
        """As with INSTRUCTOR models: the prompt is read, but not averaged."""
        folder = save_tiny(tmp_path / "instructor", include_prompt=False, normalise=False)
        found = encoder('[prompts]\nquery = "the: flow "\n', folder).encode(texts(9), "query").vectors
        library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        np.testing.assert_allclose(found, library.encode(texts(9), prompt="the: flow "), atol=1e-6)
        library.set_pooling_include_prompt(True)
        assert np.abs(found - library.encode(texts(9), prompt="the: flow ")).max() > 1e-3


class TestNothingButTheText:
    @pytest.mark.parametrize("budget", [16, 200, 2048])
    def test_a_vector_is_the_same_bits_in_any_company(self, encoder, monkeypatch, budget):
        """Alone, shuffled, among a few or all in one batch."""
        model, given = encoder(), texts(80)
        whole = model.encode(given, "query").vectors
        monkeypatch.setitem(batch.PADDED_TOKENS, "cpu", budget)
        order = np.random.default_rng(2).permutation(80)
        shuffled = model.encode([given[row] for row in order], "query").vectors
        assert shuffled.tobytes() == whole[order].tobytes()
        assert model.encode(given[:1], "query").vectors.tobytes() == whole[:1].tobytes()

    @pytest.mark.parametrize("budget", [16, 200, 2048])
    def test_a_map_of_the_pooled_vector_is_the_same_bits_in_any_company(self, encoder, tmp_path, monkeypatch, budget):
        """There a batch has one row a text, alone and in a batch of five another number."""

        def tail():
            from sentence_transformers.sentence_transformer.modules import Dense, Normalize

            return [Dense(32, 24), Normalize()]

        model, given = encoder(folder=save_tiny(tmp_path / "dense", tail=tail)), texts(40)
        whole = model.encode(given, "query").vectors
        monkeypatch.setitem(batch.PADDED_TOKENS, "cpu", budget)
        order = np.random.default_rng(2).permutation(40)
        assert model.encode([given[row] for row in order], "query").vectors.tobytes() == whole[order].tobytes()
        assert model.encode(given[:1], "query").vectors.tobytes() == whole[:1].tobytes()

    def test_the_packaged_minilm_gives_the_same_bits_with_one_thread_and_two(self, release, minilm, monkeypatch):
        """Real widths, batches of one and of many, and the thread count is as it was afterwards."""
        opened = release(minilm)
        model = load(opened, opened.prompts_for("any"))
        given = texts(40, longest=120)
        before, found = torch.get_num_threads(), []
        for threads, budget in ((1, 2048), (2, 2048), (2, 100)):
            torch.set_num_threads(threads)
            monkeypatch.setitem(batch.PADDED_TOKENS, "cpu", budget)
            found.append(model.encode(given, "query").vectors.tobytes())
            assert torch.get_num_threads() == threads
        torch.set_num_threads(before)
        assert len(set(found)) == 1

    def test_a_short_text_alone_is_the_same_bits_as_among_others(self, release, minilm):
        """So few rows of tokens would be multiplied in another way, were they not padded."""
        opened = release(minilm)
        model = load(opened, opened.prompts_for("any"))
        given = ["flow", "a wing", "reset my password", ""]
        whole = model.encode(given, "query").vectors
        assert all(
            model.encode([text], "query").vectors.tobytes() == row.tobytes()
            for text, row in zip(given, whole, strict=True)
        )

    def test_equal_texts_are_computed_once_and_answered_each(self, encoder, monkeypatch):
        """Three texts, two of them equal, in one order and another."""
        model, seen = encoder(), []
        side = model.sides["query"]
        forward = side.rows
        monkeypatch.setattr(side, "rows", lambda some, width: seen.extend(some) or forward(some, width))
        encoded = model.encode(["the flow", "a wing", "the flow"], "query")
        assert len(seen) == 2
        assert encoded.vectors[0].tobytes() == encoded.vectors[2].tobytes() != encoded.vectors[1].tobytes()

    def test_no_texts_have_no_vectors(self, encoder):
        """Of the right width all the same."""
        assert encoder().encode([], "query").vectors.shape == (0, 32)


class TestTokens:
    def test_lengths_count_special_tokens_and_tell_what_was_cut(self, encoder):
        """Three words are five tokens; sixty are 62, of which 48 stay."""
        encoded = encoder().encode(["the flow wing", "the " * 60, ""], "query")
        assert encoded.tokens_kept.tolist() == [5, 48, 2]
        assert encoded.tokens_lost.tolist() == [0, 14, 0]

    def test_a_declared_length_cuts_sooner(self, encoder):
        """At seven tokens five words stay, and the sixth makes no difference."""
        model = encoder("[input]\nmax_length = 7\n")
        encoded = model.encode(["the flow wing heat drag", "the flow wing heat drag lift"], "query")
        assert encoded.tokens_kept.tolist() == [7, 7] and encoded.tokens_lost.tolist() == [0, 1]
        assert encoded.vectors[0].tobytes() == encoded.vectors[1].tobytes()

    def test_a_hundred_kilobytes_without_a_space_are_cut_and_told(self, encoder):
        """A tokenizer that breaks at every mark keeps 48 and loses the rest."""
        encoded = encoder().encode(["a:" * 50_000], "document")
        assert np.isfinite(encoded.vectors).all()
        assert encoded.tokens_kept.tolist() == [48] and encoded.tokens_lost.tolist() == [100_002 - 48]

    def test_padding_never_passes_the_models_positions(self, encoder, tmp_path):
        """45 positions are no multiple of eight; a text that fills them is encoded as the library does."""
        folder = save_tiny(tmp_path / "odd", positions=45)
        encoded = encoder(folder=folder).encode(["the " * 60], "query")
        library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
        assert encoded.failed == {} and encoded.tokens_kept.tolist() == [45]
        np.testing.assert_allclose(encoded.vectors, library.encode(["the " * 60]), atol=1e-6)

    def test_the_digest_is_that_of_the_rendered_text(self, encoder):
        """Prompt and text together, by side."""
        model = encoder('[prompts]\nquery = "the: "\n')
        assert model.encode(["wing"], "query").input_digests == (hashlib.sha256(b"the: wing").hexdigest(),)
        assert model.encode(["wing"], "document").input_digests == (hashlib.sha256(b"wing").hexdigest(),)


class TestFailures:
    def test_a_text_that_makes_the_model_raise_fails_alone(self, encoder, monkeypatch):
        """Of three in one batch the second fails, by name; the others have their vectors."""
        model = encoder()
        given = ["the flow", "a wing", "of heat"]
        whole = model.encode(given, "query").vectors
        wing = model.sides["query"].tokenizer.convert_tokens_to_ids("wing")
        transformer = model.sides["query"].modules[0]
        forward = transformer.forward

        def raising(features, **options):
            if (features["input_ids"] == wing).any():
                raise RuntimeError("no wings\nat all")
            return forward(features, **options)

        monkeypatch.setattr(transformer, "forward", raising)
        encoded = model.encode([*given, "a wing"], "query")
        assert encoded.failed == {1: "RuntimeError: no wings", 3: "RuntimeError: no wings"}
        assert encoded.vectors[[0, 2]].tobytes() == whole[[0, 2]].tobytes()
        assert np.isnan(encoded.vectors[[1, 3]]).all()

    def test_a_text_that_cannot_be_tokenized_fails_alone(self, encoder):
        """Half of a surrogate pair is no text."""
        encoded = encoder().encode(["the flow", "\ud800", "wing"], "query")
        assert list(encoded.failed) == [1]
        assert np.isfinite(encoded.vectors[[0, 2]]).all()

    def test_a_vector_that_is_not_finite_is_left_as_it_is(self, encoder):
        """Whoever runs the model fails the case; here nothing is hidden."""
        model = encoder()
        with torch.no_grad():
            model.sides["query"].modules[0].model.embeddings.word_embeddings.weight[
                model.sides["query"].tokenizer.convert_tokens_to_ids("jet")
            ] = torch.nan
        encoded = model.encode(["the jet", "the flow"], "query")
        assert encoded.failed == {}
        assert np.isnan(encoded.vectors[0]).all() and np.isfinite(encoded.vectors[1]).all()


class TestLoading:
    def test_weights_that_are_broken_stop_with_words(self, release, tmp_path):
        """Exit 5, the library's reason, and how to try it by hand."""
        folder = save_tiny(tmp_path / "broken")
        (folder / "model.safetensors").write_bytes(b"\x10\x00\x00\x00\x00\x00\x00\x00not weights")
        with pytest.raises(Stopped, match="does not load") as refusal:
            load(release(f"path:{folder}"), Prompts("", ""))
        assert refusal.value.exit_code == 5

    def test_what_the_library_reads_otherwise_is_refused(self, release, tiny, monkeypatch):
        """A library that changed its reading of a folder would change the meaning unseen."""
        opened = release(f"path:{tiny}")
        loaded = room._loaded(str(tiny), "SentenceTransformer")
        loaded[1].pooling_mode = "max"
        monkeypatch.setattr(room, "_loaded", lambda folder, library_class: loaded)
        with pytest.raises(NotAdmitted, match="pooling max"):
            load(opened, Prompts("", ""))

    def test_a_length_without_room_for_text_is_refused(self, release, tiny):
        """Two special tokens fill a length of two."""
        with pytest.raises(Misconfigured, match="2 special tokens"):
            load(release(f"path:{tiny}", "[input]\nmax_length = 2\n"), Prompts("", ""))

    def test_the_runtime_names_what_can_change_a_bit(self):
        """Versions, device and unit; not the thread count, on which nothing depends."""
        found = runtime()
        assert {"device", "unit", "dtype", "sentence-transformers", "transformers", "tokenizers", "torch"} <= set(found)
        assert "threads" not in found
