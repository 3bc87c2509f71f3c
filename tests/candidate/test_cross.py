"""What a loaded cross-encoder gives, held against the library's own `predict`."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import CrossEncoder

from harness.candidate import batch
from harness.candidate.cross import Pair, load_cross
from harness.candidate.encoder import encode
from harness.errors import Misconfigured, NotAdmitted
from harness.release.open import open_release

from .conftest import WORDS, save_cross

GRID = 1e-6
THREE = ("contradiction", "entailment", "neutral")
IDENTITY = "torch.nn.modules.linear.Identity"


@pytest.fixture(scope="session")
def one(tmp_path_factory):
    return save_cross(tmp_path_factory.mktemp("one"))


@pytest.fixture(scope="session")
def three(tmp_path_factory):
    return save_cross(tmp_path_factory.mktemp("three"), labels=THREE)


@pytest.fixture
def opened(tmp_path):
    """Opens a release of a folder, with further lines of release.toml."""

    def make(folder: Path, extra: str = ""):
        at = tmp_path / f"release-{len(list(tmp_path.iterdir()))}"
        at.mkdir()
        (at / "release.toml").write_text(
            'schema = "harness.release.v1"\nname = "tiny"\ninteraction = "cross"\n'
            f"[model]\nsource = {json.dumps(f'path:{folder}')}\n{extra}"
        )
        return open_release(at)

    return make


def pairs(count, *, longest=40, seed=1):
    """Pairs of one to `longest` words on either side; every one differs."""
    rng = np.random.default_rng(seed)
    words = [[" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(2)] for _ in range(count)]
    return [Pair(f"{query} {'abcdefgh'[row % 8]}", document) for row, (query, document) in enumerate(words)]


def library(folder):
    return CrossEncoder(str(folder), device="cpu", local_files_only=True)


class TestEqualsTheLibrary:
    def test_scores_of_one_label_are_those_of_predict(self, opened, one):
        """Pairs of all lengths, some of them cut; the library sorts them by length and takes a sigmoid."""
        model, given = load_cross(opened(one)), pairs(60)
        encoded = model.encode(given)
        expected = library(one).predict([tuple(pair) for pair in given])
        np.testing.assert_allclose(model.scores(encoded.values, GRID), expected, atol=1e-5)
        logits = library(one).predict([tuple(pair) for pair in given], activation_fn=torch.nn.Identity())
        np.testing.assert_allclose(encoded.values[:, 0], logits, atol=1e-4)

    def test_a_saved_activation_is_applied_in_place_of_the_librarys(self, opened, tmp_path):
        """Identity: the score is the raw number, on the grid."""
        folder = save_cross(tmp_path / "identity", activation=IDENTITY)
        model, given = load_cross(opened(folder)), pairs(9)
        encoded = model.encode(given)
        found = model.scores(encoded.values, GRID)
        np.testing.assert_allclose(found, library(folder).predict([tuple(pair) for pair in given]), atol=1e-4)
        assert np.abs(found - encoded.values[:, 0]).max() <= GRID

    def test_the_declared_class_of_several_is_the_score(self, opened, three):
        """The second of three, without an activation."""
        model, given = load_cross(opened(three, '[score]\nlabel = "entailment"\n')), pairs(20)
        expected = library(three).predict([tuple(pair) for pair in given])
        encoded = model.encode(given)
        np.testing.assert_allclose(encoded.values, expected, atol=1e-4)
        np.testing.assert_allclose(model.scores(encoded.values, GRID), expected[:, 1], atol=1e-4)

    def test_the_default_prompt_stands_before_the_query(self, opened, tmp_path):
        """As the library puts it."""
        folder = save_cross(tmp_path / "prompted")
        settings = folder / "config_sentence_transformers.json"
        more = {"prompts": {"judge": "wing: "}, "default_prompt_name": "judge"}
        settings.write_text(json.dumps({**json.loads(settings.read_text()), **more}))
        model, given = load_cross(opened(folder)), pairs(9)
        expected = library(folder).predict([tuple(pair) for pair in given])
        np.testing.assert_allclose(model.scores(model.encode(given).values, GRID), expected, atol=1e-5)
        bare = [Pair(f"wing: {pair.query}", pair.document) for pair in given]
        assert model.encode(given).input_digests != model.encode(bare).input_digests


class TestNothingButThePair:
    @pytest.mark.parametrize("budget", [16, 200, 2048])
    def test_a_pairs_numbers_are_the_same_bits_in_any_company(self, opened, one, monkeypatch, budget):
        """Alone, shuffled, among a few or all in one batch."""
        model, given = load_cross(opened(one)), pairs(60)
        whole = model.encode(given).values
        monkeypatch.setitem(batch.PADDED_TOKENS, "cpu", budget)
        order = np.random.default_rng(2).permutation(60)
        assert model.encode([given[row] for row in order]).values.tobytes() == whole[order].tobytes()
        assert model.encode(given[:1]).values.tobytes() == whole[:1].tobytes()

    def test_one_thread_or_two_make_no_difference(self, opened, one):
        model, given = load_cross(opened(one)), pairs(40)
        before, found = torch.get_num_threads(), []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            found.append(model.encode(given).values.tobytes())
        torch.set_num_threads(before)
        assert len(set(found)) == 1

    def test_which_text_is_the_query_matters(self, opened, one):
        """A pair is no set."""
        model = load_cross(opened(one))
        found = model.encode([Pair("the flow", "a wing"), Pair("a wing", "the flow")])
        assert found.values[0] != found.values[1]

    def test_equal_pairs_of_two_releases_are_computed_once(self, opened, one, tmp_path, monkeypatch):
        """Two that differ in name, and one with another head: twelve pairs, not eighteen."""
        other = save_cross(tmp_path / "other", seed=6)
        models = [load_cross(opened(folder)) for folder in (one, one, other)]
        seen = []
        for model in models:
            rows = model.rows
            monkeypatch.setattr(model, "rows", lambda some, width, rows=rows: seen.extend(some) or rows(some, width))
        a, b, c = encode(models, pairs(6))
        assert len(seen) == 12
        assert a.values.tobytes() == b.values.tobytes() != c.values.tobytes()


class TestTruncation:
    def test_what_each_text_keeps_and_loses_is_told(self, opened, one):
        """48 tokens of which three are special: the longer text is cut first, then both alike."""
        model = load_cross(opened(one))
        given = [Pair("the flow", "a wing"), Pair("the " * 5, "wing " * 60), Pair("the " * 60, "wing " * 60)]
        encoded = model.encode(given)
        assert encoded.shares_kept.tolist() == [[2, 2], [5, 40], [22, 23]]
        assert encoded.shares_lost.tolist() == [[0, 0], [0, 20], [38, 37]]
        assert encoded.tokens_kept.tolist() == [7, 48, 48] and encoded.tokens_lost.tolist() == [0, 20, 75]

    def test_a_declared_length_cuts_sooner(self, opened, one):
        """And what is cut away makes no difference."""
        model = load_cross(opened(one, "[input]\nmax_length = 8\n"))
        encoded = model.encode([Pair("the flow", "a wing of heat"), Pair("the flow", "a wing of drag")])
        assert encoded.tokens_kept.tolist() == [8, 8]
        assert encoded.values[0].tobytes() == encoded.values[1].tobytes()

    def test_a_length_without_room_for_text_is_refused(self, opened, one):
        """Three special tokens fill a length of three."""
        with pytest.raises(Misconfigured, match="3 special tokens"):
            load_cross(opened(one, "[input]\nmax_length = 3\n"))


class TestFailures:
    def test_a_pair_that_makes_the_model_raise_fails_alone(self, opened, one, monkeypatch):
        model, given = load_cross(opened(one)), [Pair("the", "flow"), Pair("the", "wing"), Pair("a", "heat")]
        whole = model.encode(given).values
        wing, forward = model.tokenizer.convert_tokens_to_ids("wing"), model.model[0].forward

        def raising(features, **options):
            if (features["input_ids"] == wing).any():
                raise RuntimeError("no wings")
            return forward(features, **options)

        monkeypatch.setattr(model.model[0], "forward", raising)
        encoded = model.encode(given)
        assert encoded.failed == {1: "RuntimeError: no wings"}
        assert encoded.values[[0, 2]].tobytes() == whole[[0, 2]].tobytes()
        assert np.isnan(model.scores(encoded.values, GRID)).tolist() == [False, True, False]

    @pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
    def test_a_number_that_is_not_finite_is_no_score(self, opened, three, number):
        """Also where a sigmoid would make 1 of it, and where another class has it."""
        model = load_cross(opened(three, '[score]\nlabel = "neutral"\n'))
        found = model.scores(np.array([[number, 0.0, 1.0], [0.0, 0.0, 1.0]], dtype=np.float32), GRID)
        assert np.isnan(found[0]) and found[1] == pytest.approx(1.0)


class TestScores:
    def test_pairs_near_certainty_are_no_ties(self, opened, one):
        """Raw numbers 20 and 20.001 are on the grid apart, and still are behind the sigmoid."""
        model = load_cross(opened(one))
        found = model.scores(np.array([[20.0], [20.001], [20.0000001], [-0.0]], dtype=np.float32), GRID)
        assert found[0] < found[1] and found[0] == found[2] and found[3] == 0.5

    def test_several_classes_rank_by_none_unless_one_is_named(self, opened, three):
        """The refusal names them, and so does one of a misspelt label."""
        with pytest.raises(Misconfigured, match="contradiction, entailment, neutral"):
            load_cross(opened(three))
        with pytest.raises(Misconfigured, match="Did you mean 'entailment'"):
            opened(three, '[score]\nlabel = "entailmant"\n')

    def test_one_number_has_no_class(self, opened, one):
        with pytest.raises(Misconfigured, match="a head of one number"):
            opened(one, '[score]\nlabel = "one"\n')

    def test_another_class_is_another_release(self, opened, three):
        """Of the same pairs, so of the same contextual rows."""
        a, b = (opened(three, f'[score]\nlabel = "{label}"\n') for label in THREE[:2])
        assert a.content_id != b.content_id
        assert a.manifest.meaning.score.ties == "expected"

    def test_what_the_library_reads_otherwise_is_refused(self, opened, one, monkeypatch):
        """Another activation than the manifest's would rank on another scale."""
        from harness.candidate import cross

        read = cross.loaded

        def otherwise(release, library_class):
            model = read(release, library_class)
            model.activation_fn = torch.nn.Identity()
            return model

        monkeypatch.setattr(cross, "loaded", otherwise)
        with pytest.raises(NotAdmitted, match="activation identity"):
            load_cross(opened(one))
