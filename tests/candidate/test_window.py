"""Texts longer than a model reads at once, in windows."""

import numpy as np
import pytest

from harness.candidate import bi
from harness.candidate.batch import Windows
from harness.candidate.encoder import encode
from harness.candidate.load import load, load_to_run
from harness.candidate.prove import proofs
from harness.candidate.side import SideEncoder
from harness.candidate.window import InWindows
from harness.errors import Misconfigured, NotAdmitted
from harness.release.manifest import Window
from harness.rows.windows import cut, mean_vector, owners, word_owners

from .conftest import WORDS, Memory, save_tiny
from .late_folder import save_late

LONG = " ".join(np.random.default_rng(4).choice(WORDS, 100))
SHORT = "the flow of heat"
# Ten tokens of the text between two special ones, every six tokens.
WINDOW = '[input.window]\nsize = 12\nstride = 6\naggregation = "{}"\n'
MEAN = WINDOW.format("mean") + 'normalise = "{}"\n'


@pytest.fixture(scope="module")
def raw(tmp_path_factory):
    """Vectors of any length."""
    return save_tiny(tmp_path_factory.mktemp("raw"), normalise=False)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_late(tmp_path_factory.mktemp("late"))


@pytest.fixture(scope="module")
def dense(tmp_path_factory):
    """Vectors of ten values behind a map with an activation, of which eight are kept; a prompt is left out."""
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import Normalize

    tail = [Dense(32, 10), Normalize()]
    return save_tiny(tmp_path_factory.mktemp("dense"), tail=lambda: tail, truncate_dim=8, include_prompt=False)


def pieces_of(text: str, size: int = 10, stride: int = 6) -> list[str]:
    """What the windows show, a word being one token here."""
    words = text.split()
    offsets = np.stack([np.arange(len(words)), np.arange(len(words)) + 1], axis=1)
    spans = cut("x" * len(words), offsets, source="", release="", size=size, stride=stride).windows
    return [" ".join(words[start:end]) for start, end in spans.tolist()]


class TestVectors:
    def test_a_document_has_all_vectors_of_its_windows(self, encoder):
        """Each is that of its words alone: sixteen windows of a hundred words."""
        found = encoder(WINDOW.format("best")).encode([LONG, SHORT], "document")
        apart = encoder().encode([*pieces_of(LONG), SHORT], "document")
        assert found.offsets.tolist() == [0, 16, 17]
        assert np.array_equal(found.values, apart.values)

    def test_the_mean_is_that_of_normalised_vectors(self, encoder):
        """And is not of unit length itself."""
        found = encoder(MEAN.format("before")).encode([LONG], "document").vectors[0]
        apart = encoder().encode(pieces_of(LONG), "document").vectors
        np.testing.assert_allclose(found, apart.mean(axis=0), atol=1e-6)
        assert np.linalg.norm(found) < 0.99

    def test_or_the_mean_is_normalised(self, encoder, release, raw):
        """What is averaged are vectors as they are before the model's normalisation."""
        found = encoder(MEAN.format("after")).encode([LONG], "document").vectors[0]
        opened = release(f"path:{raw}")
        plain = load(opened, opened.prompts_for("any")).encode(pieces_of(LONG), "document").vectors
        np.testing.assert_allclose(found, mean_vector(plain, normalise="after"), atol=1e-6)
        other = encoder(MEAN.format("before")).encode([LONG], "document").vectors[0]
        assert np.abs(found - other / np.linalg.norm(other)).max() > 1e-4

    @pytest.mark.parametrize("text", [WINDOW.format("best"), MEAN.format("before"), MEAN.format("after")])
    def test_a_text_that_fits_is_read_as_without_windows(self, encoder, text):
        """To the bit, of every length up to a window's, and with a prompt."""
        texts = ["", *(" ".join(WORDS[:length]) for length in range(1, 9))]
        prompts = '[prompts]\nquery = "the : "\n'
        for side in ("query", "document"):
            found, plain = (encoder(prompts + extra).encode(texts, side) for extra in (text, ""))
            assert np.array_equal(found.values, plain.values) and found.items == plain.items

    def test_nothing_is_lost(self, encoder):
        """A hundred tokens and two special ones, of which the model reads twelve at a time."""
        found = encoder(WINDOW.format("best")).encode([LONG], "document")
        assert (found.tokens_kept.tolist(), found.tokens_lost.tolist()) == ([102], [0])
        assert encoder().encode([LONG], "document").tokens_lost.tolist() == [54]

    def test_characters_that_no_token_shows_are_counted(self, encoder):
        """A control character is cleaned away before there are tokens."""
        found = encoder(WINDOW.format("best")).encode([f"the \x00\x07 {LONG}", LONG], "document")
        assert found.uncovered.tolist() == [2, 0]

    def test_every_window_has_the_prompt(self, encoder):
        found = encoder(WINDOW.format("best") + '[prompts]\ndocument = "wing jet: "\n').encode([LONG], "document")
        plain = encoder('[prompts]\ndocument = "wing jet: "\n').encode(pieces_of(LONG, size=7), "document")
        assert np.array_equal(found.values, plain.values)

    def test_order_and_company_change_nothing(self, encoder):
        texts = [" ".join(np.random.default_rng(seed).choice(WORDS, 5 + 7 * seed)) for seed in range(9)]
        model = encoder(MEAN.format("after"))
        whole = model.encode(texts, "document").vectors
        assert np.array_equal(model.encode(texts[::-1], "document").vectors[::-1], whole)
        alone = [model.encode([text], "document").vectors[0] for text in texts]
        assert np.array_equal(np.stack(alone), whole)

    def test_a_window_that_raises_fails_its_text_alone(self, encoder, monkeypatch):
        model = encoder(WINDOW.format("best"))
        whole = SideEncoder.rows

        def broken(self, tokens, *more):
            if any(len(each) == 11 for each in tokens):
                raise ValueError("too short")
            return whole(self, tokens, *more)

        monkeypatch.setattr(SideEncoder, "rows", broken)
        # The last window of fifteen words has nine of them, that of thirteen has seven.
        found = model.encode([" ".join(WORDS + WORDS[:2]), " ".join(WORDS)], "document")
        assert list(found.failed) == [0] and "too short" in found.failed[0]


class TestPooledRows:
    """Rows of windows joined before they are pooled: every token once, what stands around a window in each."""

    TEXT = WINDOW.format("rows")

    def rows_of(self, encoder, text: str, owner) -> np.ndarray:
        """[r, d], special ones of every window, and of its tokens those that it owns."""
        side, found = encoder().sides["document"], []
        spans = cut("x" * 100, np.stack([np.arange(100), np.arange(100) + 1], axis=1), source="", release="", size=10,
                    stride=6).windows  # fmt: skip
        for at, piece in enumerate(pieces_of(text)):
            rows = side.forward([piece]).rows[0]
            mine = [1 + token - spans[at, 0] for token in range(*spans[at]) if owner[token] == at]
            found.append(rows[[0, *mine, 1 + len(piece.split())]])
        return np.concatenate(found)

    @pytest.mark.parametrize("policy", ["first", "centre", "largest-context"])
    def test_the_mean_is_that_of_all_rows_once(self, encoder, policy):
        """A hundred tokens, and two special ones of each of sixteen windows; then it is normalised."""
        spans = cut("x" * 100, np.stack([np.arange(100), np.arange(100) + 1], axis=1), source="", release="", size=10,
                    stride=6).windows  # fmt: skip
        rows = self.rows_of(encoder, LONG, owners(spans, 100, policy))
        assert len(rows) == 100 + 2 * 16
        mean = rows.astype(np.float64).mean(axis=0)
        found = encoder(f'{self.TEXT}owner = "{policy}"\n').encode([LONG], "document")
        np.testing.assert_allclose(found.vectors[0], mean / np.linalg.norm(mean), atol=1e-6)
        assert found.tokens_lost.tolist() == [0] and found.in_windows.owned.tolist()[0][0] == 0

    def test_it_is_no_mean_of_vectors(self, encoder):
        """Which counts a token as often as windows show it, and a short window as much as a long one."""
        rows, before, after = (
            encoder(text).encode([LONG], "document").vectors[0]
            for text in (self.TEXT, MEAN.format("before"), MEAN.format("after"))
        )
        assert min(np.abs(rows - other / np.linalg.norm(other)).max() for other in (before, after)) > 1e-3

    def test_windows_of_unequal_numbers_of_rows_have_their_weight(self):
        """Means 2 of three rows and 6 of one: 3, and not 4; none of no row."""
        means = np.array([[2, 0, 3], [6, 4, 1], [9, 9, 0]], dtype=np.float32)
        assert bi._mean_of_rows(means).tolist() == [[3, 1]]
        assert bi._mean_of_rows(means[2:].repeat(2, axis=0)).tolist() == [[0, 0]]

    def test_a_text_that_fits_is_read_as_without_windows(self, encoder, dense, tiny):
        """To the bit, behind a prompt that is left out, too."""
        texts = ["", *(" ".join(WORDS[:length]) for length in range(1, 9))]
        for folder in (dense, tiny):
            for side in ("query", "document"):
                prompts = '[prompts]\nquery = "the : "\n'
                found, plain = (encoder(prompts + extra, folder).encode(texts, side) for extra in (self.TEXT, ""))
                assert found.values.tobytes() == plain.values.tobytes() and found.items == plain.items

    def test_order_and_company_change_nothing(self, encoder, dense):
        texts = [" ".join(np.random.default_rng(seed).choice(WORDS, 5 + 7 * seed)) for seed in range(9)]
        model = encoder(self.TEXT, dense)
        whole = model.encode(texts, "document").vectors
        assert np.array_equal(model.encode(texts[::-1], "document").vectors[::-1], whole)
        assert np.array_equal(np.stack([model.encode([text], "document").vectors[0] for text in texts]), whole)

    def test_what_is_kept_is_never_stale(self, encoder, release, dense, counted):
        """Of sixteen windows what precedes the map, which a run without the model's weights applies as well. Who owns a
        token is in the key of what is read out.
        """
        kept, opened = Memory(), release(f"path:{dense}", self.TEXT)
        first = encode([encoder(self.TEXT, dense).sides["document"]], [LONG, SHORT], kept)[0]
        assert len(counted) == 17
        again = encode([load_to_run(opened, opened.prompts_for("any")).sides["document"]], [LONG, SHORT], kept)[0]
        assert again.values.tobytes() == first.values.tobytes() and len(counted) == 17
        for text, computed in (("", 2), (WINDOW.format("best"), 16), (self.TEXT + 'owner = "first"\n', 17)):
            before = len(counted)
            found = encode([encoder(text, dense).sides["document"]], [LONG, SHORT], kept)[0]
            assert len(counted) - before == computed
            assert np.array_equal(
                found.values, encode([encoder(text, dense).sides["document"]], [LONG, SHORT])[0].values
            )

    @pytest.mark.parametrize("pooling", ["cls", "max", ["mean", "max"]])
    def test_other_poolings_are_refused(self, release, tmp_path, pooling):
        """The first row of the whole is one window's; and so on."""
        folder = save_tiny(tmp_path / "other", pooling=pooling)
        with pytest.raises(NotAdmitted, match="of which only a mean is that of the whole text"):
            release(f"path:{folder}", self.TEXT)
        assert release(f"path:{folder}", WINDOW.format("best")).cannot_run is None

    @pytest.mark.parametrize("model", ["tiny", "dense"])
    def test_it_is_what_the_reference_joins(self, release, request, model):
        text = '[prompts]\nquery = "the : "\n' + self.TEXT
        opened = release(f"path:{request.getfixturevalue(model)}", text)
        shown = list(proofs(opened, load(opened, opened.prompts_for("any"))))
        assert [each.name for each in shown if not each.ok and getattr(each, "fatal", True)] == []
        assert "parity: windows" in [each.name for each in shown]

    @pytest.mark.parametrize("fault", ["no weights", "no owners", "the prompt counted"])
    def test_what_is_joined_otherwise_fails(self, release, dense, monkeypatch, fault):
        if fault == "no weights":
            monkeypatch.setattr(bi, "_mean_of_rows", lambda means: means[:, :-1].mean(axis=0, keepdims=True))
        elif fault == "no owners":
            monkeypatch.setattr(bi, "owning", lambda window, tokens, parts: parts)
        else:
            monkeypatch.setattr(bi, "_count", lambda attended, excluded: int(attended.sum()))
        opened = release(f"path:{dense}", '[prompts]\nquery = "the wing : "\n' + self.TEXT)
        shown = proofs(opened, load(opened, opened.prompts_for("any")))
        assert not next(each for each in shown if each.name == "parity: windows").ok


class TestInWindows:
    """What is told of texts that have several windows, held against `cut`."""

    def reference(self, text: str, size: int = 10, stride: int = 6, policy: str = "largest-context"):
        ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
        starts = np.append(0, ends[:-1] + 1)
        return cut(text, np.stack([starts, ends], axis=1), source="", release="", size=size, stride=stride, special=2,
                   policy=policy)  # fmt: skip

    def test_they_lie_where_the_reference_cuts(self, encoder):
        """A word is a token here; a text that fits is not among them."""
        words = " ".join(WORDS)
        found = encoder(WINDOW.format("best")).encode([SHORT, LONG, words, LONG], "document").in_windows
        made = [self.reference(each) for each in (LONG, words, LONG)]
        assert found.rows.tolist() == [1, 2, 3] and found.counts.tolist() == [len(each.windows) for each in made]
        assert found.tokens.tolist() == np.concatenate([each.windows for each in made]).tolist()
        assert [tuple(each) for each in found.characters.tolist()] == [
            record.characters for each in made for record in each.records
        ]
        assert (found.around.tolist(), found.uncovered.tolist(), found.owned) == ([2, 2, 2], [0, 0, 0], None)

    def test_there_are_none_where_all_texts_fit(self, encoder):
        """Nor where no windows are declared."""
        assert encoder(WINDOW.format("best")).encode([SHORT, ""], "document").in_windows is None
        assert encoder().encode([LONG], "document").in_windows is None

    def test_a_prompt_stands_around_every_window(self, encoder):
        text = WINDOW.format("best") + '[prompts]\ndocument = "wing jet: "\n'
        found = encoder(text).encode([f"the \x07 {LONG}"], "document").in_windows
        assert (found.around.tolist(), found.uncovered.tolist()) == ([5], [1])
        assert found.tokens[0].tolist() == [0, 7] and found.characters[0, 0] == 0

    @pytest.mark.parametrize("policy", ["first", "centre", "largest-context"])
    @pytest.mark.parametrize("seed", range(4))
    def test_who_owns_a_token_is_told(self, policy, seed):
        """By stretches that are those of each window, and every token's once; of words as of tokens."""
        rng = np.random.default_rng(seed)
        size = int(rng.integers(2, 9))
        spans = cut("x" * 50, np.stack([np.arange(50), np.arange(50) + 1], axis=1), source="", release="", size=size,
                    stride=int(rng.integers(1, size + 1))).windows  # fmt: skip
        words = np.repeat(np.arange(50), rng.integers(1, 5, 50))[:50]
        for of in (None, words):
            window = Window(size=size, stride=1, aggregation="rows", normalise=None, owner=policy, text=None)
            found = InWindows.of(window, {7: Windows(1, 1, spans, spans, 0, of)})
            owner = owners(spans, 50, policy) if of is None else word_owners(spans, of, policy)
            told = np.concatenate([np.full(end - start, at) for at, (start, end) in enumerate(found.owned.tolist())])
            assert told.tolist() == owner.tolist() and found.owned[0, 0] == 0

    def test_parts_are_joined_in_the_order_of_all_texts(self, encoder):
        model, texts = encoder(WINDOW.format("best")), [LONG, SHORT, " ".join(WORDS), LONG[:200], "jet"]
        whole = model.encode(texts, "document").in_windows
        parts = []
        for rows in ([3, 4], [0, 2], [1]):
            some = model.encode([texts[row] for row in rows], "document").in_windows
            parts += [] if some is None else [some.among(np.array(rows))]
        joined = InWindows.joined(parts)
        for name in ("rows", "counts", "around", "uncovered", "tokens", "characters"):
            assert getattr(joined, name).tolist() == getattr(whole, name).tolist()
        assert InWindows.joined([]) is None


class TestRoom:
    def test_a_stride_beyond_what_prompt_and_special_tokens_leave_is_refused(self, encoder):
        """It would skip tokens: of twelve, two are special and four the prompt's."""
        with pytest.raises(Misconfigured, match="6 of which"):
            encoder(WINDOW.format("best").replace("stride = 6", "stride = 7") + '[prompts]\nquery = "a b c :"\n')


class TestCache:
    """Of a text of a hundred words, sixteen windows; of a short one, one."""

    @pytest.fixture
    def filled(self, encoder):
        kept = Memory()
        encode([encoder(MEAN.format("before")).sides["document"]], [LONG, SHORT], kept)
        return kept

    @pytest.mark.parametrize(
        ("text", "computed"),
        [
            (MEAN.format("before"), 0),
            (WINDOW.format("best"), 0),
            # Nineteen windows, of which every sixth begins where one of the others does.
            (MEAN.format("before").replace("stride = 6", "stride = 5"), 15),
            # Sixteen, of which the last holds what it held.
            (MEAN.format("before").replace("size = 12", "size = 14"), 15),
            (MEAN.format("after"), 17),
            ("", 1),
        ],
        ids=["the same", "aggregation", "stride", "size", "normalisation", "none"],
    )
    def test_what_could_change_a_vector_misses(self, encoder, counted, filled, text, computed):
        """And whatever was kept, what comes out is what an empty cache would give."""
        before = len(counted)
        found = encode([encoder(text).sides["document"]], [LONG, SHORT], filled)[0]
        seen = len(counted) - before
        plain = encode([encoder(text).sides["document"]], [LONG, SHORT])[0]
        assert np.array_equal(found.values, plain.values)
        assert seen == computed

    def test_sides_that_share_windows_and_join_them_otherwise_do_not_share_what_they_join(self, encoder):
        mean, best = (encoder(text).sides["document"] for text in (MEAN.format("before"), WINDOW.format("best")))
        first, second = encode([mean, best], [LONG, SHORT])
        assert len(first.values) == 2 and len(second.values) == 17


class TestRows:
    """Late interaction: [CLS], the prompt's two tokens, eight of the text's and [SEP], every five of them."""

    TEXT = '[input.window]\nsize = 12\nstride = 5\naggregation = "rows"\n'

    @pytest.fixture
    def late(self, release, folder):
        def make(extra: str = ""):
            opened = release(f"path:{folder}", extra, "late")
            return load(opened, opened.prompts_for("any"))

        return make

    def test_a_token_that_two_windows_show_counts_once(self, late):
        """Words 5 to 7 stand in [0, 8) and in [5, 13): word 5 has two words behind it there and none before it here,
        word 6 one and one, so the earlier has both. Prompt and special tokens are every window's; of `flow:` the colon
        is skipped.
        """
        text = " ".join(WORDS)
        found = late(self.TEXT).encode([text], "document")
        first, second = (late().encode([each], "document").piece(0).values for each in pieces_of(text, 8, 5))
        assert (len(first), len(second)) == (11, 11)
        expected = [first[:2], first[2:9], first[10:], second[:2], second[4:10], second[10:]]
        assert np.array_equal(found.values, np.concatenate(expected))
        assert found.tokens_kept.tolist() == [17] and found.tokens_lost.tolist() == [0]

    def test_who_owns_a_token_can_be_said(self, late):
        """The first window in which it stands."""
        text = " ".join(WORDS)
        found = late(self.TEXT + 'owner = "first"\n').encode([text], "document")
        first, second = (late().encode([each], "document").piece(0).values for each in pieces_of(text, 8, 5))
        assert np.array_equal(found.values, np.concatenate([first, second[:2], second[5:]]))

    def test_owners_are_not_shared_by_what_shares_tokens(self, late):
        """Two releases that cut alike are read together, and each keeps its own rows."""
        texts = [" ".join(WORDS)]
        sides = [late(self.TEXT + extra).sides["document"] for extra in ("", 'owner = "first"\n')]
        together, kept = encode(sides, texts, Memory()), [encode([side], texts)[0] for side in sides]
        assert [each.values.tolist() for each in together] == [each.values.tolist() for each in kept]
        assert not np.array_equal(kept[0].values, kept[1].values)

    def test_a_text_that_fits_is_read_as_without_windows(self, late):
        found, plain = (late(extra).encode([SHORT, "jet"], "document") for extra in (self.TEXT, ""))
        assert np.array_equal(found.values, plain.values)

    def test_queries_that_are_filled_up_have_no_windows(self, late):
        """They all have one width."""
        assert late(self.TEXT).sides["query"].window is None and late(self.TEXT).sides["document"].window is not None

    def test_rows_are_those_that_the_reference_joins(self, release, folder):
        opened = release(f"path:{folder}", self.TEXT, "late")
        shown = list(proofs(opened, load(opened, opened.prompts_for("any"))))
        assert [each.name for each in shown if not each.ok and getattr(each, "fatal", True)] == []
        assert "parity: windows" in [each.name for each in shown]

    def test_rows_that_another_window_owns_fail(self, release, folder, monkeypatch):
        from harness.candidate import window as room

        opened = release(f"path:{folder}", self.TEXT, "late")
        monkeypatch.setattr(room, "owners", lambda windows, count, policy: np.zeros(count, dtype=np.int64))
        shown = proofs(opened, load(opened, opened.prompts_for("any")))
        assert not next(each for each in shown if each.name == "parity: windows").ok


class TestProof:
    @pytest.mark.parametrize("text", [WINDOW.format("best"), MEAN.format("before"), MEAN.format("after")])
    def test_what_is_joined_is_what_the_reference_joins(self, release, tiny, text):
        opened = release(f"path:{tiny}", text)
        shown = list(proofs(opened, load(opened, opened.prompts_for("any"))))
        assert [each.name for each in shown if not each.ok and getattr(each, "fatal", True)] == []
        assert "parity: windows" in [each.name for each in shown]

    @pytest.mark.parametrize("fault", ["a window left out", "no normalisation"])
    def test_what_is_joined_otherwise_fails(self, release, tiny, monkeypatch, fault):
        opened = release(f"path:{tiny}", MEAN.format("after"))
        whole = bi.PooledSide.join

        def broken(self, tokens, pieces):
            if fault == "a window left out":
                return whole(self, tokens, pieces[:-1] if len(pieces) > 1 else pieces)
            self._after = []
            return whole(self, tokens, pieces)

        monkeypatch.setattr(bi.PooledSide, "join", broken)
        shown = proofs(opened, load(opened, opened.prompts_for("any")))
        assert not next(each for each in shown if each.name == "parity: windows").ok
