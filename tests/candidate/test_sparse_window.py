"""Sparse encoders on texts longer than they read at once: the largest weight of every entry, the mean, or the best."""

import numpy as np
import pytest

from harness.candidate.encoder import encode
from harness.candidate.load import load
from harness.candidate.prove import proofs
from harness.candidate.sparse import SparseSide
from harness.errors import Misconfigured

from .conftest import WORDS, Memory
from .test_sparse import dense, encoder, release, splade  # noqa: F401  # the fixtures
from .test_window import LONG, SHORT, pieces_of
from .tiny import save_sparse

WINDOW = '[input.window]\nsize = 12\nstride = 6\naggregation = "{}"\n'
MAX, MEAN, BEST = (WINDOW.format(how) for how in ("max", "mean", "best"))


@pytest.fixture(scope="module")
def kept_five(tmp_path_factory):
    """No more than five weights a text."""
    return save_sparse(tmp_path_factory.mktemp("five"), keep=5)


class TestWeights:
    @pytest.mark.parametrize(("text", "joined"), [(MAX, np.max), (MEAN, np.mean)], ids=["max", "mean"])
    def test_they_are_joined_from_those_of_the_windows(self, encoder, text, joined) -> None:  # noqa: F811
        """Sixteen windows of a hundred words, each as its words alone are."""
        model, plain = encoder(text), encoder()
        found = dense(model.encode([LONG], "document"), 53)[0]
        apart = dense(plain.encode(pieces_of(LONG), "document"), 53)
        np.testing.assert_allclose(found, joined(apart.astype(np.float64), axis=0), rtol=1e-6)

    def test_the_largest_of_windows_is_that_of_all_their_rows(self, encoder) -> None:  # noqa: F811
        """No entry has more in the whole than in the window where it has most."""
        found = encoder(MAX).encode([LONG], "document")
        assert found.indices is not None and (np.diff(found.indices) > 0).all() and (found.values > 0).all()

    def test_as_many_are_kept_as_of_a_text(self, encoder, kept_five) -> None:  # noqa: F811
        """Of the joined weights the five largest, whichever window they are from."""
        found = encoder(MAX, model=kept_five).encode([LONG, SHORT], "document")
        assert np.diff(found.offsets).tolist() == [5, 5]
        whole = dense(encoder().encode(pieces_of(LONG), "document"), 53).max(axis=0)
        assert sorted(found.piece(0).values[:, 0].tolist()) == pytest.approx(np.sort(whole)[-5:].tolist(), rel=1e-5)

    @pytest.mark.parametrize("text", [MAX, MEAN, BEST])
    @pytest.mark.parametrize("keep", [None, 5])
    def test_a_text_that_fits_is_read_as_without_windows(self, encoder, splade, kept_five, text, keep) -> None:  # noqa: F811
        """To the bit, with a prompt."""
        model, texts = kept_five if keep else splade, ["", *(" ".join(WORDS[:count]) for count in range(1, 8))]
        prompts = '[prompts]\nquery = "the : "\n'
        for side in ("query", "document"):
            found, plain = (encoder(prompts + extra, model=model).encode(texts, side) for extra in (text, ""))
            assert found.values.tobytes() == plain.values.tobytes() and found.items == plain.items
            assert found.indices.tobytes() == plain.indices.tobytes()

    def test_nothing_is_lost(self, encoder) -> None:  # noqa: F811
        found = encoder(MAX).encode([f"the \x07 {LONG}"], "document")
        assert (found.tokens_kept.tolist(), found.tokens_lost.tolist(), found.uncovered.tolist()) == ([103], [0], [1])

    @pytest.mark.parametrize("keep", [None, 5])
    def test_of_the_best_every_window_is_a_vector(self, encoder, splade, kept_five, keep) -> None:  # noqa: F811
        """As its words alone are, to the bit, with as many weights as of a text."""
        model = kept_five if keep else splade
        found = encoder(BEST, model=model).encode([SHORT, LONG, SHORT], "document")
        apart = encoder(model=model).encode([SHORT, *pieces_of(LONG), SHORT], "document")
        assert found.several.texts.tolist() == [0, 1, 17, 18]
        assert found.several.vectors.tolist() == apart.offsets.tolist()
        assert found.values.tobytes() == apart.values.tobytes() and found.indices.tobytes() == apart.indices.tobytes()
        assert found.piece(1).counts.tolist() == np.diff(apart.offsets[1:18]).tolist()

    def test_texts_that_all_fit_have_one_vector_each(self, encoder) -> None:  # noqa: F811
        assert encoder(BEST).encode([SHORT, "jet"], "document").several is None

    def test_a_stride_without_room_is_refused(self, encoder) -> None:  # noqa: F811
        with pytest.raises(Misconfigured, match="2 of which are special"):
            encoder(MAX.replace("stride = 6", "stride = 11"))


class TestCache:
    def test_what_is_kept_of_a_window_is_never_stale(self, encoder, kept_five, counted) -> None:  # noqa: F811
        """Sixteen windows, once for both ways of joining; not for one that keeps fewer weights of each window, as of
        the best, which shares a short text with one that has no windows.
        """
        kept = Memory()
        for text, computed in ((MAX, 17), (MEAN, 0), ("", 2), (BEST, 16), (MAX, 0), (BEST, 0)):
            counted.clear()
            found = encode([encoder(text, model=kept_five).sides["document"]], [LONG, SHORT], kept)[0]
            assert len(counted) == computed
            plain = encode([encoder(text, model=kept_five).sides["document"]], [LONG, SHORT])[0]
            assert found.values.tobytes() == plain.values.tobytes()


class TestProof:
    @pytest.mark.parametrize("text", [MAX, MEAN, BEST])
    @pytest.mark.parametrize("keep", [None, 5])
    def test_what_is_joined_is_what_the_reference_joins(self, release, splade, kept_five, text, keep) -> None:  # noqa: F811
        opened = release('[prompts]\nquery = "the : "\n' + text, kept_five if keep else splade)
        shown = list(proofs(opened, load(opened, opened.prompts_for())))
        assert [each.name for each in shown if not each.ok and getattr(each, "fatal", True)] == []
        assert "parity: windows" in [each.name for each in shown]

    @pytest.mark.parametrize("fault", ["a window left out", "the other way"])
    def test_what_is_joined_otherwise_fails(self, release, monkeypatch, fault) -> None:  # noqa: F811
        opened, whole = release(MEAN), SparseSide.join

        def broken(self, tokens, pieces):
            if fault == "a window left out":
                return whole(self, tokens, pieces[:-1] or pieces)
            if self.window is not None:
                self.window = self.window.model_copy(update={"aggregation": "max"})
            return whole(self, tokens, pieces)

        monkeypatch.setattr(SparseSide, "join", broken)
        shown = proofs(opened, load(opened, opened.prompts_for()))
        assert not next(each for each in shown if each.name == "parity: windows").ok

    @pytest.mark.parametrize("fault", ["a window left out", "the other order"])
    def test_windows_that_are_not_all_there_fail(self, release, monkeypatch, fault) -> None:  # noqa: F811
        """Of the best, each is kept."""
        opened, whole = release(BEST), SparseSide.join

        def broken(self, tokens, pieces):
            other = pieces[:-1] or pieces if fault == "a window left out" else pieces[::-1]
            return whole(self, tokens, other)

        monkeypatch.setattr(SparseSide, "join", broken)
        shown = proofs(opened, load(opened, opened.prompts_for()))
        assert not next(each for each in shown if each.name == "parity: windows").ok
