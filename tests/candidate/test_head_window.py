"""Heads on texts longer than they read at once: labels, tags and answers of the whole text."""

import numpy as np
import pytest
import torch

from harness.candidate import head
from harness.candidate.encoder import encode
from harness.candidate.head import HeadModel, Layout, Sample, load_head
from harness.candidate.head_output import said_of
from harness.candidate.head_window_parity import head_window_parity
from harness.candidate.probe import probe_texts
from harness.candidate.window import parts
from harness.errors import NotAdmitted
from harness.output.task import Scores, Span
from harness.readout.head import windows_by_mean_logits, windows_by_mean_probabilities
from harness.release.open import Release
from harness.rows.windows import owners

from .conftest import WORDS
from .test_head import direct, folders, opened, said  # noqa: F401  # the fixtures

RNG = np.random.default_rng(8)
LONG = " ".join(RNG.choice(WORDS, 60))
# Ten tokens of the text between two special ones, every six tokens.
WINDOW = '[input.window]\nsize = 12\nstride = 6\naggregation = "{}"\n'
PROBABLE = '[score]\ntype = "probability"\n'


def meant(release: Release, numbers: list[list[float]]) -> np.ndarray:
    """What a text's windows come to that gave these numbers."""
    given = np.array(numbers, dtype=np.float32)
    found = said_of(release.manifest.meaning, [Sample("x")], [given], [], 0)
    return found.values if isinstance(found, Scores) else np.array([found.value])


class TestLabels:
    def test_a_mean_of_logits_is_no_mean_of_probabilities(self, opened) -> None:  # noqa: F811
        """[4, 0] and [0, 0]: [2, 0] has the probability .8808, and .9820 and .5 are .7410 in the mean."""
        numbers = [[4.0, 0.0, -50.0], [0.0, 0.0, -50.0]]
        logits = meant(opened("classes", PROBABLE + WINDOW.format("mean-of-logits")), numbers)
        chances = meant(opened("classes", PROBABLE + WINDOW.format("mean-of-probabilities")), numbers)
        assert logits[0] == pytest.approx(0.8808, abs=5e-5) and chances[0] == pytest.approx(0.7410, abs=5e-5)
        assert logits == pytest.approx(windows_by_mean_logits(np.array(numbers), 1.0))
        assert chances == pytest.approx(windows_by_mean_probabilities(np.array(numbers), 1.0))

    def test_logits_stay_logits_and_numbers_numbers(self, opened) -> None:  # noqa: F811
        assert meant(opened("classes", WINDOW.format("mean-of-logits")), [[4, 0, 1], [0, 2, 1]]).tolist() == [2, 1, 1]
        assert meant(opened("value", WINDOW.format("mean-of-logits")), [[4.0], [1.0]]).tolist() == [2.5]

    @pytest.mark.parametrize("how", ["mean-of-logits", "mean-of-probabilities"])
    def test_windows_are_read_as_texts_of_their_own(self, opened, how: str) -> None:  # noqa: F811
        """Ten of sixty words, held against transformers called on each window's words."""
        release = opened("classes", PROBABLE + WINDOW.format(how))
        words, plain = LONG.split(), opened("classes")
        numbers = [direct(plain, Sample(" ".join(words[start : start + 10]))) for start in range(0, 54, 6)]
        assert len(numbers) == 9 and words[54:] and len(words[54:]) == 6
        numbers.append(direct(plain, Sample(" ".join(words[54:]))))
        [found] = said(release, [Sample(LONG)])
        # The window from word 48 on reaches only to 58, so the tenth begins at 54.
        assert found.values == pytest.approx(meant(release, numbers), abs=1e-5)

    @pytest.mark.parametrize(
        ("kind", "how"),
        [("classes", "mean-of-logits"), ("value", "mean-of-logits"), ("tags", "rows"), ("span", "best")],
    )
    def test_a_text_that_fits_is_read_as_without_windows(self, opened, kind: str, how: str) -> None:  # noqa: F811
        """To the bit."""
        short = {
            "tags": [Sample(tuple(WORDS[:4])), Sample(("flowabc", "", "jet"))],
            "span": [Sample("the jet", "wing heat flow"), Sample("the", "")],
        }
        samples = short.get(kind, [Sample("the wing"), Sample("")])
        assert_same(said(opened(kind, WINDOW.format(how)), samples), said(opened(kind), samples))

    def test_nothing_is_lost(self, opened) -> None:  # noqa: F811
        found = encode([load_head(opened("classes", WINDOW.format("mean-of-logits")))], [Sample(LONG + " \x07")])[0]
        assert (found.tokens_kept.tolist(), found.tokens_lost.tolist(), found.uncovered.tolist()) == ([62], [0], [1])


def assert_same(found: list, plain: list) -> None:
    for one, other in zip(found, plain, strict=True):
        if isinstance(one, Scores):
            assert one.values.tolist() == other.values.tolist()
        else:
            assert one == other


class TestTags:
    def numbers(self, release: Release, words: list[str]) -> np.ndarray:
        return direct(release, Sample(tuple(words)))[1:-1]

    def test_a_words_numbers_are_those_of_the_window_that_owns_it(self, opened) -> None:  # noqa: F811
        """Sixteen words in [0, 10) and [6, 16): words 6 and 7 have more on both sides of them in the first."""
        words = LONG.split()[:16]
        model = load_head(opened("tags", WINDOW.format("rows")))
        found = encode([model], [Sample(tuple(words))])[0].piece(0).values[1:-1]
        plain = opened("tags")
        first, second = self.numbers(plain, words[:10]), self.numbers(plain, words[6:])
        np.testing.assert_allclose(found, np.concatenate([first[:8], second[2:]]), atol=2e-4)

    def test_the_owner_can_be_said(self, opened) -> None:  # noqa: F811
        """The first window in which a word stands."""
        words = LONG.split()[:16]
        model = load_head(opened("tags", WINDOW.format("rows") + 'owner = "first"\n'))
        found = encode([model], [Sample(tuple(words))])[0].piece(0).values[1:-1]
        plain = opened("tags")
        first, second = self.numbers(plain, words[:10]), self.numbers(plain, words[6:])
        np.testing.assert_allclose(found, np.concatenate([first, second[4:]]), atol=2e-4)

    def test_every_word_has_a_tag(self, opened) -> None:  # noqa: F811
        """A text that is cut has none for the words that are."""
        sample = Sample(tuple(LONG.split()))
        assert len(said(opened("tags", WINDOW.format("rows")), [sample])[0].tags) == 60
        assert len(said(opened("tags"), [sample])[0].tags) == 46

    def test_a_words_pieces_are_those_of_one_window(self, opened) -> None:  # noqa: F811
        """Seven words, then one of four pieces, tokens 7 to 10 of sixteen, in [0, 10) and [6, 16). Its first piece is
        owned by the first window, which shows three of them; the fourth comes from the second.
        """
        words = [*WORDS[:7], "flowabc", *WORDS[:5]]
        model = load_head(opened("tags", WINDOW.format("rows")))
        [tokens] = model.tokenise([Sample(tuple(words))])
        assert tokens.windows.words.tolist() == [*range(7), 7, 7, 7, 7, *range(8, 13)]
        found = encode([model], [Sample(tuple(words))])[0].piece(0).values[1:-1]
        ids = torch.tensor(tokens.features["input_ids"])
        with torch.inference_mode():
            first, second = (
                model.model(torch.cat([ids[:1], ids[1 + start : 1 + end], ids[-1:]])[None]).logits[0, 1:-1].numpy()
                for start, end in ((0, 10), (6, 16))
            )
        np.testing.assert_allclose(found, np.concatenate([first[:10], second[4:]]), atol=2e-4)


class TestAnswers:
    QUESTION = "the jet"

    def layout(self, start: int, count: int) -> Layout:
        """[CLS], a question's token, [SEP], `count` context tokens of two characters from one on, [SEP]."""
        texts = np.array([-1, 0, -1, *[1] * count, -1])
        offsets = np.zeros((count + 4, 2), dtype=np.int64)
        offsets[3:-1] = [[2 * (start + at), 2 * (start + at) + 1] for at in range(count)]
        return Layout(texts, np.full(count + 4, -1), offsets)

    def answer(self, release: Release, *windows: tuple[int, list[tuple[float, float]]]) -> Span:
        """Of windows that begin at a token of `a b c d e f`, with the start and end logits of their tokens; the first
        row's are 1.
        """
        rows = [[(1.0, 0.0), (0.0, 0.0), (0.0, 0.0), *logits, (0.0, 0.0)] for _, logits in windows]
        return said_of(
            release.manifest.meaning, [Sample("q", "a b c d e f")],
            [np.concatenate([np.array(each, dtype=np.float32) for each in rows])],
            [self.layout(start, len(logits)) for start, logits in windows], 0,
        )  # fmt: skip

    @pytest.fixture
    def windowed(self, opened) -> Release:  # noqa: F811
        return opened("span", WINDOW.format("best"))

    def test_no_answer_joins_two_windows(self, windowed) -> None:
        """The best start is in the first window and the best end in the second: of one alone 5 + 1 is best."""
        found = self.answer(windowed, (0, [(5, 0), (0, 1), (0, 0)]), (3, [(0, 0), (0, 4), (0, 0)]))
        assert (found.text, found.start, found.end, found.score) == ("a b", 0, 3, 6.0)

    def test_offsets_lead_back_to_the_whole_text(self, windowed) -> None:
        found = self.answer(windowed, (0, [(1, 1), (0, 0), (0, 0)]), (3, [(0, 0), (5, 0), (0, 5)]))
        assert (found.text, found.start, found.end) == ("e f", 8, 11)

    def test_of_equals_the_shorter_then_the_earlier(self, windowed) -> None:
        """Two tokens in the first window, one in the second; then one in each."""
        one = self.answer(windowed, (0, [(4, 0), (0, 4), (0, 0)]), (3, [(0, 0), (4, 4), (0, 0)]))
        assert (one.text, one.start) == ("e", 8)
        two = self.answer(windowed, (0, [(4, 4), (0, 0), (0, 0)]), (3, [(0, 0), (4, 4), (0, 0)]))
        assert (two.text, two.start) == ("a", 0)

    def test_the_window_that_doubts_it_most_says_whether_there_is_none(self, windowed) -> None:
        """One that does not show the answer is certain of that, and wrong."""
        numbers = np.zeros((12, 2), dtype=np.float32)
        numbers[0], numbers[6] = (9, 9), (-2, 1)
        found = said_of(
            windowed.manifest.meaning, [Sample("q", "a b c d")], [numbers], [self.layout(0, 2), self.layout(2, 2)], 0
        )
        assert found.null_score == -1.0

    def test_windows_are_read_behind_the_question(self, opened) -> None:  # noqa: F811
        """Twelve tokens, of which five are the question's and special: seven of the context, every six."""
        words, plain = LONG.split()[:19], opened("span", "[output]\nlongest = 3\n")
        [found] = said(opened("span", "[output]\nlongest = 3\n" + WINDOW.format("best")),
                       [Sample(self.QUESTION, " ".join(words))])  # fmt: skip
        apart = said(plain, [Sample(self.QUESTION, " ".join(words[start : start + 7])) for start in (0, 6, 12)])
        best = max(range(3), key=lambda at: apart[at].score)
        assert found.score == pytest.approx(apart[best].score, abs=1e-4) and found.text == apart[best].text
        assert found.start == apart[best].start + len(" ".join(words[: 6 * best])) + (best > 0)
        assert found.null_score == pytest.approx(min(each.null_score for each in apart), abs=1e-4)

    def test_a_question_that_leaves_no_room_fails_alone(self, opened) -> None:  # noqa: F811
        """Nine of its words and three special tokens fill a window; with eight, the windows are one token long."""
        model = load_head(opened("span", WINDOW.format("best")))
        samples = [Sample(" ".join(WORDS[:count]), LONG) for count in (9, 8)]
        found = [encode([model], [sample])[0] for sample in samples]
        assert "windows" in found[0].failed[0] and not found[1].failed
        assert len(model.layouts(samples[1:])) == 60
        together = encode([model], samples)[0]
        assert list(together.failed) == [0]


def test_company_and_order_change_nothing(opened) -> None:  # noqa: F811
    samples = [Sample(tuple(LONG.split()[: 3 + 5 * count])) for count in range(8)]
    model = load_head(opened("tags", WINDOW.format("rows")))
    whole = encode([model], samples)[0]
    back = encode([model], samples[::-1])[0]
    for at in range(8):
        alone = encode([model], [samples[at]])[0].piece(0).values
        assert np.array_equal(whole.piece(at).values, alone) and np.array_equal(back.piece(7 - at).values, alone)


class TestPairs:
    """Of two texts with a label the one that is named is read in windows."""

    OTHER = "the jet"

    @pytest.mark.parametrize("long", ["first", "second"])
    def test_the_other_stands_around_every_window(self, opened, long: str) -> None:  # noqa: F811
        """Twelve tokens, five of which are special and the other text's: seven, every six, of nineteen words."""
        words = LONG.split()[:19]
        window = WINDOW.format("mean-of-logits") + f'text = "{long}"\n'

        def pair(text: str) -> Sample:
            return Sample(text, self.OTHER) if long == "first" else Sample(self.OTHER, text)

        apart = [direct(opened("pairs"), pair(" ".join(words[start : start + 7]))) for start in (0, 6, 12)]
        [found] = said(opened("pairs", window), [pair(" ".join(words))])
        np.testing.assert_allclose(found.values, np.mean(apart, axis=0), atol=2e-4)

    @pytest.mark.parametrize("long", ["first", "second"])
    def test_pairs_that_fit_are_read_as_without_windows(self, opened, long: str) -> None:  # noqa: F811
        """To the bit; also where the long one has nothing to read."""
        window = WINDOW.format("mean-of-logits") + f'text = "{long}"\n'
        samples = [Sample("the wing", "jet heat"), Sample("", "jet"), Sample("jet", "")]
        assert_same(said(opened("pairs", window), samples), said(opened("pairs"), samples))

    def test_a_text_that_is_read_alone_has_no_other(self, opened) -> None:  # noqa: F811
        with pytest.raises(NotAdmitted, match="what is read alone"):
            opened("tags", WINDOW.format("rows") + 'text = "first"\n')


class TestChoices:
    """The context of a question, before it and each of its choices."""

    def meant(self, release: Release, *choices: list[float]) -> list[float]:
        given = [np.array(each, dtype=np.float32)[:, None] for each in choices]
        return said_of(release.manifest.meaning, [Sample("x", "y")] * len(given), given, [], 0).values.tolist()

    def test_a_choice_has_the_best_of_its_windows_or_their_mean(self, opened) -> None:  # noqa: F811
        """Whatever the number of windows that another has."""
        numbers = [[1.0, 5.0, 0.0], [3.0, 4.0]]
        assert self.meant(opened("choice", WINDOW.format("best")), *numbers) == [5.0, 4.0]
        assert self.meant(opened("choice", WINDOW.format("mean-of-logits")), *numbers) == [2.0, 3.5]

    def test_windows_are_read_before_question_and_choice(self, opened) -> None:  # noqa: F811
        """Twelve tokens, five of which are special and the choice's: seven, every six, of nineteen words."""
        words = LONG.split()[:19]
        apart = [direct(opened("choice"), Sample(" ".join(words[at : at + 7]), "the jet"))[0] for at in (0, 6, 12)]
        [found] = said(opened("choice", WINDOW.format("best")), [Sample(" ".join(words), "the jet")])
        assert found.values[0] == pytest.approx(max(apart), abs=2e-4)

    @pytest.mark.parametrize("how", ["best", "mean-of-logits"])
    def test_a_choice_that_fits_is_read_as_without_windows(self, opened, how: str) -> None:  # noqa: F811
        samples = [Sample("the wing", "jet heat"), Sample("", "jet")]
        assert_same(said(opened("choice", WINDOW.format(how)), samples), said(opened("choice"), samples))

    def test_no_window_has_chances_of_all_choices(self, opened) -> None:  # noqa: F811
        """Those of one choice lie otherwise than another's."""
        with pytest.raises(NotAdmitted, match="best or mean-of-logits"):
            opened("choice", PROBABLE + WINDOW.format("mean-of-probabilities"))


class TestProof:
    @pytest.mark.parametrize(
        ("kind", "text"),
        [
            ("classes", WINDOW.format("mean-of-logits")),
            ("classes", PROBABLE + WINDOW.format("mean-of-probabilities")),
            ("pairs", WINDOW.format("mean-of-logits") + 'text = "first"\n'),
            ("pairs", WINDOW.format("mean-of-logits") + 'text = "second"\n'),
            ("value", WINDOW.format("mean-of-logits")),
            ("tags", WINDOW.format("rows")),
            ("span", WINDOW.format("best")),
            ("choice", WINDOW.format("best")),
            ("choice", PROBABLE + WINDOW.format("mean-of-logits")),
        ],
    )
    def test_what_is_joined_is_what_the_reference_joins(self, opened, monkeypatch, kind: str, text: str) -> None:  # noqa: F811
        """And what leaves out the last window, or of tags gives the wrong one's, does not pass."""
        release = opened(kind, text)
        shown = head_window_parity(release, probe_texts(48))
        assert shown is not None and shown.ok and shown.name == "parity: windows", shown and shown.text
        monkeypatch.setattr(head, "word_owners", lambda spans, words, policy: owners(spans, len(words), "first"))
        if kind != "tags":
            monkeypatch.setattr(HeadModel, "parts", lambda self, tokens: parts(tokens)[:-1] or parts(tokens))
        assert not head_window_parity(release, probe_texts(48)).ok

    def test_without_windows_there_is_nothing_to_join(self, opened) -> None:  # noqa: F811
        assert head_window_parity(opened("classes"), probe_texts(48)) is None
