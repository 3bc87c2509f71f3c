"""Cross-encoders on documents longer than they read at once: the best of their windows, or the mean."""

import numpy as np
import pytest
import torch

from harness.candidate.cross import Pair, load_cross
from harness.candidate.encoder import encode
from harness.candidate.head_window_parity import head_window_parity
from harness.candidate.probe import probe_texts
from harness.errors import Misconfigured, NotAdmitted

from .conftest import WORDS, Memory, save_cross
from .test_cross import GRID, THREE, library, one, opened, three  # noqa: F401  # the fixtures

QUERY = "the jet"
LONG = " ".join(np.random.default_rng(8).choice(WORDS, 40))
# Three special tokens and two of the query leave seven of the document, every six.
WINDOW = '[input.window]\nsize = 12\nstride = 6\naggregation = "{}"\n'
BEST, MEAN, CHANCES = (WINDOW.format(how) for how in ("best", "mean-of-logits", "mean-of-probabilities"))


@pytest.fixture(scope="module")
def softened(tmp_path_factory):
    """Three classes of which a softmax makes probabilities."""
    folder = tmp_path_factory.mktemp("softened")
    return save_cross(folder, labels=THREE, activation="torch.nn.modules.activation.Softmax")


def windows_of(text: str, size: int = 7, stride: int = 6) -> list[str]:
    words = text.split()
    return [" ".join(words[at : at + size]) for at in range(0, max(1, len(words) - size + stride), stride)]


def raw(folder, *texts: str, query: str = QUERY) -> np.ndarray:
    """The library's own numbers of pairs, each by itself."""
    model = library(folder)
    return np.array([model.predict([(query, text)], activation_fn=torch.nn.Identity())[0] for text in texts])


class TestNumbers:
    def test_the_best_window_speaks_for_a_document(self, opened, one) -> None:  # noqa: F811
        """Seven windows of forty words, the last of four: each is what the library makes of its words."""
        assert [len(each.split()) for each in windows_of(LONG)] == [7, 7, 7, 7, 7, 7, 4]
        expected = raw(one, *windows_of(LONG)).max()
        model = load_cross(opened(one, BEST))
        encoded = model.encode([Pair(QUERY, LONG)])
        assert encoded.values.shape == (1, 1) and encoded.values[0, 0] == pytest.approx(expected, abs=1e-4)
        assert model.scores(encoded.values, GRID)[0] == pytest.approx(1 / (1 + np.exp(-expected)), abs=1e-5)

    def test_or_the_mean_of_raw_numbers(self, opened, one) -> None:  # noqa: F811
        encoded = load_cross(opened(one, MEAN)).encode([Pair(QUERY, LONG)])
        assert encoded.values[0, 0] == pytest.approx(raw(one, *windows_of(LONG)).mean(), abs=1e-4)

    def test_or_those_of_the_mean_of_probabilities(self, opened, one) -> None:  # noqa: F811
        """Which is not the probability of the mean of numbers."""
        apart = 1 / (1 + np.exp(-raw(one, *windows_of(LONG)).astype(np.float64)))
        model = load_cross(opened(one, CHANCES))
        encoded = model.encode([Pair(QUERY, LONG)])
        assert model.scores(encoded.values, GRID)[0] == pytest.approx(apart.mean(), abs=1e-5)
        other = load_cross(opened(one, MEAN))
        assert abs(other.scores(other.encode([Pair(QUERY, LONG)]).values, GRID)[0] - apart.mean()) > 1e-3

    def test_a_mean_of_logits_is_no_mean_of_probabilities(self, opened, one) -> None:  # noqa: F811
        """4 and 0: 2 has the probability .8808, and .9820 and .5 are .7410 in the mean."""
        for text, expected in ((MEAN, 0.8808), (CHANCES, 0.7410)):
            model = load_cross(opened(one, text))
            [tokens] = model.tokenise([Pair(QUERY, LONG)])
            pieces = [type(model.blank())(np.array([[value]], dtype=np.float32)) for value in (4.0, 0.0)]
            assert model.scores(model.join(tokens, pieces).values, GRID)[0] == pytest.approx(expected, abs=5e-5)

    def test_of_several_classes_each_has_its_mean(self, opened, softened) -> None:  # noqa: F811
        """By a softmax over them all, whichever is the one that ranks."""
        apart = raw(softened, *windows_of(LONG)).astype(np.float64)
        chances = np.exp(apart) / np.exp(apart).sum(axis=1, keepdims=True)
        for column, label in enumerate(THREE):
            model = load_cross(opened(softened, f'[score]\nlabel = "{label}"\n{CHANCES}'))
            found = model.scores(model.encode([Pair(QUERY, LONG)]).values, GRID)[0]
            assert found == pytest.approx(chances[:, column].mean(), abs=1e-5)

    def test_the_window_is_chosen_by_the_class_that_ranks(self, opened, three) -> None:  # noqa: F811
        """And brings all its numbers."""
        apart = raw(three, *windows_of(LONG))
        for column, label in enumerate(THREE):
            release = opened(three, f'[score]\nlabel = "{label}"\n{BEST}')
            found = load_cross(release).encode([Pair(QUERY, LONG)]).values[0]
            np.testing.assert_allclose(found, apart[apart[:, column].argmax()], atol=1e-4)

    def test_windows_that_a_sigmoid_would_not_tell_apart_are(self, opened, one) -> None:  # noqa: F811
        """Of 50 and 60 it makes 1."""
        model = load_cross(opened(one, BEST))
        [tokens] = model.tokenise([Pair(QUERY, LONG)])
        pieces = [type(model.blank())(np.array([[value]], dtype=np.float32)) for value in (50.0, 60.0, -3.0)]
        assert model.join(tokens, pieces).values.tolist() == [[60.0]]
        assert model.join(tokens, pieces[:2][::-1]).values.tolist() == [[60.0]]

    @pytest.mark.parametrize("number", [np.nan, -np.inf])
    @pytest.mark.parametrize("text", [BEST, MEAN, CHANCES])
    def test_a_window_without_a_finite_number_is_not_passed_over(self, opened, one, number, text) -> None:  # noqa: F811
        """Though another is better than minus infinity."""
        model = load_cross(opened(one, text))
        [tokens] = model.tokenise([Pair(QUERY, LONG)])
        pieces = [type(model.blank())(np.array([[value]], dtype=np.float32)) for value in (1.0, number, 2.0)]
        assert np.isnan(model.scores(model.join(tokens, pieces).values, GRID)).all()

    @pytest.mark.parametrize("text", [BEST, MEAN, CHANCES])
    def test_a_pair_that_fits_is_read_as_without_windows(self, opened, one, text) -> None:  # noqa: F811
        """To the bit, up to twelve tokens, and an empty document."""
        given = [Pair(QUERY, " ".join(WORDS[:count])) for count in range(8)] + [Pair("", "wing")]
        found, plain = (load_cross(opened(one, extra)).encode(given) for extra in (text, ""))
        assert found.values.tobytes() == plain.values.tobytes() and found.items == plain.items
        assert found.shares_kept.tolist() == plain.shares_kept.tolist()


class TestReading:
    def test_nothing_is_lost_and_what_no_token_shows_is_counted(self, opened, one) -> None:  # noqa: F811
        encoded = load_cross(opened(one, BEST)).encode([Pair(QUERY, f"{LONG} \x07\x00"), Pair(QUERY, "wing")])
        assert encoded.shares_kept.tolist() == [[2, 40], [2, 1]] and not encoded.shares_lost.any()
        assert encoded.tokens_kept.tolist() == [45, 6] and not encoded.tokens_lost.any()
        assert encoded.uncovered.tolist() == [2, 0]

    def test_a_query_that_leaves_no_room_fails_its_pair_alone(self, opened, one) -> None:  # noqa: F811
        """Nine of its words and three special tokens fill a window; with eight, windows are a token long."""
        model = load_cross(opened(one, BEST))
        given = [Pair(" ".join(WORDS[:count]), LONG) for count in (9, 8, 2)]
        encoded = model.encode(given)
        assert list(encoded.failed) == [0] and "12 of a window" in encoded.failed[0]
        assert len(model.parts(model.tokenise(given[1:2])[0])) == 40

    def test_a_long_query_of_an_empty_document_is_cut(self, opened, one) -> None:  # noqa: F811
        encoded = load_cross(opened(one, BEST)).encode([Pair(LONG, "")])
        assert encoded.tokens_kept.tolist() == [12] and encoded.tokens_lost.tolist() == [31] and not encoded.failed

    @pytest.mark.parametrize("text", [MEAN, CHANCES])
    def test_order_and_company_change_nothing(self, opened, one, text) -> None:  # noqa: F811
        model = load_cross(opened(one, text))
        given = [Pair(QUERY, " ".join(WORDS * 2)[: 9 * count]) for count in range(1, 9)]
        whole = model.encode(given).values
        assert model.encode(given[::-1]).values[::-1].tobytes() == whole.tobytes()
        assert b"".join(model.encode([pair]).values.tobytes() for pair in given) == whole.tobytes()

    def test_single_windows_are_kept(self, opened, one, monkeypatch) -> None:  # noqa: F811
        """What joins them is never stale: seven windows are computed once for all ways of joining."""
        kept, seen = Memory(), []
        for text, computed in ((BEST, 7), (CHANCES, 0), (BEST.replace("stride = 6", "stride = 3"), 6)):
            model, before = load_cross(opened(one, text)), len(seen)
            rows = model.rows
            monkeypatch.setattr(model, "rows", lambda some, width, rows=rows: seen.extend(some) or rows(some, width))
            encode([model], [Pair(QUERY, LONG)], kept)
            assert len(seen) - before == computed


class TestAdmission:
    @pytest.mark.parametrize("how", ["mean", "rows", "max"])
    def test_a_way_that_it_has_no_numbers_for_is_refused(self, opened, one, how) -> None:  # noqa: F811
        with pytest.raises(NotAdmitted, match="best or mean-of-logits"):
            opened(one, WINDOW.format(how))

    def test_a_mean_of_probabilities_needs_probabilities(self, opened, one, three) -> None:  # noqa: F811
        """The library puts no activation on several numbers unless the folder says one."""
        assert opened(one, CHANCES).cannot_run is None
        with pytest.raises(NotAdmitted, match="a mean of probabilities of a cross whose score is a logit"):
            opened(three, f'[score]\nlabel = "neutral"\n{CHANCES}')

    def test_windows_are_of_the_document(self, opened, one) -> None:  # noqa: F811
        assert opened(one, BEST).manifest.meaning.towers["pair"].input.window.text == "second"
        with pytest.raises(NotAdmitted, match="windows of the first text"):
            opened(one, f'{BEST}text = "first"\n')

    def test_a_stride_without_room_is_refused(self, opened, one) -> None:  # noqa: F811
        with pytest.raises(Misconfigured, match="3 of which are special"):
            load_cross(opened(one, BEST.replace("stride = 6", "stride = 10")))

    @pytest.mark.parametrize("text", [BEST, MEAN, CHANCES])
    @pytest.mark.parametrize("labels", [1, 3])
    def test_it_is_what_the_reference_joins(self, opened, one, three, softened, text, labels) -> None:  # noqa: F811
        several = softened if text == CHANCES else three
        folder, label = (one, "") if labels == 1 else (several, '[score]\nlabel = "neutral"\n')
        shown = head_window_parity(opened(folder, label + text), probe_texts(48))
        assert shown is not None and shown.ok, shown.text
        assert shown.name == "parity: windows"
        assert head_window_parity(opened(folder, label), probe_texts(48)) is None

    def test_a_mean_of_logits_does_not_pass_for_one_of_probabilities(self, opened, one, monkeypatch) -> None:  # noqa: F811
        from harness.candidate import cross

        monkeypatch.setitem(cross.MEAN_PROBABILITIES, "sigmoid", lambda every: every.mean(axis=0))
        assert not head_window_parity(opened(one, CHANCES), probe_texts(48)).ok

    @pytest.mark.parametrize("fault", ["the first", "the last left out"])
    @pytest.mark.parametrize("text", [BEST, MEAN, CHANCES])
    def test_what_is_joined_otherwise_fails(self, opened, one, monkeypatch, fault, text) -> None:  # noqa: F811
        from harness.candidate.cross import PairEncoder

        whole = PairEncoder.join

        def broken(self, tokens, pieces):
            return whole(self, tokens, pieces[:1] if fault == "the first" else pieces[:-1] or pieces)

        monkeypatch.setattr(PairEncoder, "join", broken)
        shown = head_window_parity(opened(one, text), probe_texts(48))
        # The best of the windows need not be the last of any probe text.
        assert not shown.ok or (text == BEST and fault == "the last left out")
